/* Every function that executes a program, in another root directory, where `show` prints its
 * arguments and variables. In the old root directory, the same call passes the library on. */
#include "check.h"
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>

#ifdef SHOW

/* Executed: the arguments and the variables, and what the calls are to leave alone. */
int main(int count, char **arguments, char **environment)
{
	printf("%d %s", count, arguments[count - 1]);
	for (; *environment; environment++)
		printf(" %s", *environment);
	printf("\n");
	return 0;
}

#else

enum { CALLS = 11 };

static char *const arguments[] = { "show", "last", NULL };

/* Executes `path`, whose last part is in `PATH`, too. Returns if it can't. */
static void execute(int call, const char *path, char *const *own)
{
	pid_t child;
	int file = open(path, O_PATH), wrong = EFAULT;
	switch (call) {
	case 0:
		execve(path, arguments, own);
		break;
	case 1:
		execv(path, arguments);
		break;
	case 2:
		execl(path, "show", "1", "2", "3", "4", "5", "6", "last", NULL);
		break;
	case 3:
		execle(path, "show", "1", "2", "3", "4", "5", "6", "last", NULL, own);
		break;
	case 4:
		execvp("show", arguments);
		break;
	case 5:
		execlp("show", "show", "last", NULL);
		break;
	case 6:
		execvpe("show", arguments, own);
		break;
	case 7:
		fexecve(file, arguments, own);
		break;
	case 8:
		execveat(file, "", arguments, own, AT_EMPTY_PATH);
		break;
	default:
		wrong = (call == 9 ? posix_spawn : posix_spawnp)(&child, call == 9 ? path : "show",
								 NULL, NULL, arguments, own);
		YES(!wrong && waitpid(child, NULL, 0) == child);
		_exit(failures);
	}
	perror(path);
	_exit(1);
}

/* Spawns by `vfork`, whose child has the parent's memory. */
static void spawn(int call, const char *path, char *const *own)
{
	pid_t child = call % 2 ? vfork() : fork();
	if (!child)
		execute(call, path, own);
	int status;
	IS(waitpid(child, &status, 0), child);
	IS(status, 0);
}

/* A wrong environment is EFAULT, wherever it is. */
static void wrong(const char *path)
{
	char *const *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
	mprotect((char *)page + 4096, 4096, PROT_NONE);
	char **end = (char **)((char *)page + 4096);
	end[-1] = "A=1";
	char *const text[] = { "A=1", (char *)end, NULL }, *const *wrong[] = { end, end - 1, text };
	for (int i = 0; i < 3; i++) {
		errno = 0;
		IS(execve(path, arguments, wrong[i]), -1);
		IS(errno, EFAULT);
	}
	errno = 0;
	IS(execv("/no/such", arguments), -1);
	IS(errno, ENOENT);
}

int main(int count, char **given)
{
	watchdog();
	/* Our library is between others. */
	char preload[4096];
	snprintf(preload, sizeof(preload), "LD_PRELOAD=first.so:%s second.so", getenv("LD_PRELOAD"));
	char *const own[] = { "A=1", preload, "B=2", NULL };
	char path[4096];
	snprintf(path, sizeof(path), "%s/show", given[1]);
	setenv("PATH", given[1], 1);
	spawn(1, path, own);
	if (chroot(given[1]) || chdir("/"))
		return count == 2 ? 77 : 2;
	setenv("PATH", "/", 1);
	for (int call = 0; call < CALLS; call++)
		spawn(call, "/show", own);
	wrong("/show");
	YES(getenv("LD_PRELOAD") && strstr(getenv("LD_PRELOAD"), "preload"));
	return failures;
}

#endif
