/* Executes FOLDER/NAME by each function that there is for it. FOLDER is in PATH. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void wait_for(pid_t child)
{
	int status;
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		exit(1);
}

#define CHILD(call)                                                                                \
	do {                                                                                       \
		pid_t child = fork();                                                              \
		if (!child) {                                                                      \
			call;                                                                      \
			perror(#call);                                                             \
			_exit(1);                                                                  \
		}                                                                                  \
		wait_for(child);                                                                   \
	} while (0)

/* The same environment, whose last entries stand before a page that can't be read, and whose last
 * string ends there. */
static char **at_the_end(char **environment)
{
	long page = sysconf(_SC_PAGESIZE);
	size_t count = 0, last = 0;
	while (environment[count])
		count++;
	last = strlen(environment[count - 1]) + 1;
	size_t entries = (count + 1) * sizeof(char *), room = (last + page - 1) / page * page;
	size_t more = (entries + page - 1) / page * page;
	char *texts = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *table = mmap(NULL, more + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (texts == MAP_FAILED || table == MAP_FAILED || mprotect(texts + room, page, PROT_NONE) ||
	    mprotect(table + more, page, PROT_NONE))
		exit(1);
	char **copy = (char **)(table + more - entries);
	memcpy(copy, environment, entries);
	copy[count - 1] = memcpy(texts + room - last, environment[count - 1], last);
	return copy;
}

int main(int argc, char **argv)
{
	(void)argc;
	const char *folder = argv[1], *name = argv[2];
	char *given[] = { (char *)name, "1", "2", "3", "4", "5", "6", "7", "8", NULL };
	char *marked[] = { "MARK=marked", NULL };
	char *path;
	if (asprintf(&path, "%s/%s", folder, name) < 0 || chdir(folder))
		return 1;
	int at = open(folder, O_PATH | O_DIRECTORY), file = open(path, O_RDONLY);
	pid_t child;

	CHILD(execve(path, given, environ));
	CHILD(execv(name, given));
	CHILD(execl(path, name, "1", "2", "3", "4", "5", "6", "7", "8", (char *)NULL));
	CHILD(execle(path, name, "1", "2", "3", "4", "5", "6", "7", "8", (char *)NULL, environ));
	CHILD(execvp(name, given));
	CHILD(execlp(name, name, "1", "2", "3", "4", "5", "6", "7", "8", (char *)NULL));
	CHILD(execvpe(name, given, environ));
	CHILD(fexecve(file, given, environ));
	CHILD(execveat(at, name, given, environ, 0));
	if (posix_spawn(&child, path, NULL, NULL, given, environ))
		return 1;
	wait_for(child);
	if (posix_spawnp(&child, name, NULL, NULL, given, environ))
		return 1;
	wait_for(child);
	CHILD(execve(path, given, marked));
	CHILD(execle(path, name, "1", (char *)NULL, marked));
	/* What fails must fail as it does, and was no program. */
	if (execv(folder, given) != -1 || errno != EACCES)
		return 1;
	const char *volatile nowhere = (const char *)8;
	if (execve(nowhere, given, environ) != -1 || errno != EFAULT)
		return 1;
	/* Neither the environment nor what is in it. */
	char *const *volatile none = (char *const *)8;
	char *astray[] = { "MARK=marked", (char *)nowhere, NULL };
	if (execve(path, given, none) != -1 || errno != EFAULT)
		return 1;
	if (execve(path, given, astray) != -1 || errno != EFAULT)
		return 1;
	/* A copy of the environment, of which a page that can't be read follows the end. */
	CHILD(execve(path, given, at_the_end(environ)));
	if (execv("/no/such/program", given) != -1 || execlp("no-such-program", "x", NULL) != -1)
		return 1;
	perror("failed");
	return 0;
}
