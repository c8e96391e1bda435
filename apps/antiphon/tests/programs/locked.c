/* Locks all of its memory, present and future, contends for a mutex, and says how much of its
 * address space there is and how much is locked, in KiB. Exits with 5, or 1 if it may not lock. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *contend(void *argument)
{
	for (int round = 0; round < 100; round++) {
		pthread_mutex_lock(&lock);
		if (round % 10 == 0)
			usleep(200);
		pthread_mutex_unlock(&lock);
	}
	return argument;
}

static void say(const char *name)
{
	char line[256];
	size_t length = strlen(name);
	FILE *status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof line, status))
		if (!strncmp(line, name, length))
			fputs(line, stdout);
	if (status)
		fclose(status);
}

int main(void)
{
	pthread_t threads[4];
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		perror("mlockall");
		return 1;
	}
	for (int at = 0; at < 4; at++)
		if (pthread_create(&threads[at], &small, contend, NULL)) {
			perror("pthread_create");
			return 1;
		}
	for (int at = 0; at < 4; at++)
		pthread_join(threads[at], NULL);
	say("VmLck");
	return 5;
}
