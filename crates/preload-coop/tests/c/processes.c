/* Processes: children of fork and vfork, a program that replaces itself, waits before main and
 * after it. */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "ways.h"

extern char **environ;

__attribute__((constructor)) static void early(void)
{
	become_loop();
}

static void late(void)
{
	become_loop();
	CHECK(poll(NULL, 0, 1) == 0);
}

__attribute__((destructor)) static void latest(void)
{
	late();
}

static void ends_well(pid_t child)
{
	int status;
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void forks(int depth)
{
	pid_t child = fork();
	if (child == 0) {
		for (enum way way = 0; way < WAYS; way++)
			CHECK(wait_by(way, -1, 1, NULL) == 0);
		if (depth > 0)
			forks(depth - 1);
		become_loop();
		exit(0);
	}
	/* Both continue at the same time. */
	for (int at = 0; at < 20; at++)
		CHECK(poll(NULL, 0, 1) == 0);
	ends_well(child);
}

int main(int count, char **arguments)
{
	CHECK(atexit(late) == 0);
	become_loop();
	forks(2);
	char *again[] = { arguments[0], "again", NULL };
	if (count == 1) {
		pid_t child = vfork();
		if (child == 0) {
			execve(arguments[0], again, environ);
			_exit(1);
		}
		ends_well(child);
		/* The new program runs in the same thread, with its place in the domain. */
		execve(arguments[0], again, environ);
		return 1;
	}
	return 0;
}
