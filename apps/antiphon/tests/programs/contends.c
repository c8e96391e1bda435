/* Four threads that contend for a mutex. Exits with 5.
 *
 *   contends             once
 *   contends daemon F    its grandchild, in a session of its own and without any descriptor of
 *                        its parent's, does so for a while, and then writes F; it exits with 3 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long count;

__attribute__((noinline)) void *contend(void *argument)
{
	for (int round = 0; round < 200; round++) {
		pthread_mutex_lock(&lock);
		count++;
		if (round % 10 == 0)
			usleep(500);
		pthread_mutex_unlock(&lock);
	}
	return argument;
}

static int contend_all(void)
{
	pthread_t threads[4];
	for (int at = 0; at < 4; at++)
		if (pthread_create(&threads[at], NULL, contend, NULL))
			return 1;
	for (int at = 0; at < 4; at++)
		pthread_join(threads[at], NULL);
	return 5;
}

static int become_daemon(const char *path)
{
	if (fork())
		return 3;
	setsid();
	if (fork())
		_exit(0);
	if (chdir("/"))
		_exit(1);
	for (int at = 0; at < 256; at++)
		close(at);
	for (int round = 0; round < 20; round++)
		contend_all();
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	_exit(dprintf(file, "%ld\n", count) > 0 ? 0 : 1);
}

int main(int arguments, char **argument)
{
	if (arguments > 2 && !strcmp(argument[1], "daemon")) {
		contend_all();
		return become_daemon(argument[2]);
	}
	return contend_all();
}
