/* Says whose locks it has, then those of a fork, and then of itself executed in several ways: by
 * `execve` behind a `vfork`, `posix_spawn`, `system`, `execvp` with a changed environment, and with
 * the environment that `main` was given. */
#define _GNU_SOURCE
#include <elf.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The count of a recursive mutex: glibc's at 4, ours at 12. */
static void say(const char *who)
{
	pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	for (int level = 0; level < 3; level++)
		pthread_mutex_lock(&mutex);
	unsigned theirs, ours;
	memcpy(&theirs, (char *)&mutex + 4, sizeof theirs);
	memcpy(&ours, (char *)&mutex + 12, sizeof ours);
	printf("%s: %s\n", who, theirs == 3 ? "glibc" : ours == 3 ? "ours" : "nobody knows");
	fflush(stdout);
}

static void wait_for(pid_t child)
{
	int status;
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		exit(1);
}

/* Some programs look for the kernel's vector behind the environment. */
static int leads_to_vector(char **entry)
{
	while (*entry)
		entry++;
	const Elf64_auxv_t *vector = (const Elf64_auxv_t *)(entry + 1);
	for (; vector->a_type != AT_NULL; vector++)
		if (vector->a_type == AT_PAGESZ)
			return vector->a_un.a_val == getauxval(AT_PAGESZ);
	return 0;
}

int main(int argc, char **argv, char **env)
{
	if (argc > 1) {
		say(argv[1]);
		return 0;
	}
	say("itself");
	pid_t child = fork();
	if (!child) {
		say("fork");
		_exit(0);
	}
	wait_for(child);

	char *arguments[] = { argv[0], "vfork", NULL };
	child = vfork();
	if (!child) {
		execve(argv[0], arguments, environ);
		_exit(1);
	}
	wait_for(child);
	arguments[1] = "spawn";
	if (posix_spawn(&child, argv[0], NULL, NULL, arguments, environ))
		return 1;
	wait_for(child);
	arguments[1] = "main's environment";
	if (posix_spawn(&child, argv[0], NULL, NULL, arguments, env))
		return 1;
	wait_for(child);

	char *command;
	if (asprintf(&command, "'%s' system", argv[0]) < 0 || system(command))
		return 1;
	if (!leads_to_vector(environ) || !leads_to_vector(argv + argc + 1) || setenv("NEW", "1", 1))
		return 1;
	arguments[1] = "changed";
	child = fork();
	if (!child) {
		execvp(argv[0], arguments);
		_exit(1);
	}
	wait_for(child);
	return 0;
}
