/* Limits of a process that contention uses, with threads that have small stacks and allocate
 * nothing:
 *
 *   size     its address space grows by less than a MiB
 *   locked   a user without privileges that may lock 8 MiB has all memory locked, present and to
 *            come, after contention, and locks go on
 *   many     of 4 000 threads for which there is a MiB of address space, none is left without a
 *            node: while they wait for a mutex they sleep
 */
#include "check.h"
#include <stdint.h>
#include <sys/resource.h>

enum { MOST = 4000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_t threads[MOST];
static long counted;
static int gate[2];

static long size(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%ld", &pages) != 1)
		exit(99);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static void *contend(void *rounds)
{
	char go;
	while (read(gate[0], &go, 1) == 1 && go == '-')
		;
	for (intptr_t i = 0; i < (intptr_t)rounds; i++) {
		pthread_mutex_lock(&mutex);
		counted++;
		if (i % 100 == 1)
			usleep(100);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void create(int count, intptr_t rounds)
{
	pthread_attr_t small;
	IS(pipe(gate), 0);
	IS(pthread_attr_init(&small), 0);
	IS(pthread_attr_setstacksize(&small, 65536), 0);
	for (int i = 0; i < count; i++)
		IS(pthread_create(threads + i, &small, contend, (void *)rounds), 0);
	counted = 0;
}

static void let_go(void)
{
	close(gate[1]);
}

static void finish(int count, intptr_t rounds)
{
	for (int i = 0; i < count; i++)
		join(threads[i]);
	IS(counted, count * rounds);
	close(gate[0]);
}

static void grows_little(void)
{
	create(4, 1000);
	long before = size();
	let_go();
	finish(4, 1000);
	long grown = size() - before;
	YES(grown < 1 << 20);
}

static void can_be_locked(void)
{
	struct rlimit limit = { 8 << 20, 8 << 20 };
	IS(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	if (geteuid() == 0) {
		IS(setresgid(65534, 65534, 65534), 0);
		IS(setresuid(65534, 65534, 65534), 0);
	}
	create(4, 1000);
	let_go();
	finish(4, 1000);
	IS(mlockall(MCL_CURRENT | MCL_FUTURE), 0);
	create(4, 1000);
	let_go();
	finish(4, 1000);
}

static long switches(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

static void many_sleep(void)
{
	create(MOST, 1);
	struct rlimit limit = { (rlim_t)size() + (1 << 20), RLIM_INFINITY };
	IS(setrlimit(RLIMIT_AS, &limit), 0);
	pthread_mutex_lock(&mutex);
	let_go();
	/* Until all have come: the count grows fast as long as some have not. */
	long last, now = switches();
	int same = 0;
	for (int i = 0; i < 60 && same < 2; i++) {
		usleep(500000);
		last = now;
		now = switches();
		same = now - last < MOST / 2 ? same + 1 : 0;
	}
	/* A thread that naps looks up some thousand times in half a second; one that sleeps, once in 1.6
	 * seconds. */
	YES(same == 2);
	pthread_mutex_unlock(&mutex);
	finish(MOST, 1);
}

int main(int count, char **arguments)
{
	watchdog();
	const char *what = count > 1 ? arguments[1] : "";
	if (!strcmp(what, "size"))
		grows_little();
	else if (!strcmp(what, "locked"))
		can_be_locked();
	else if (!strcmp(what, "many"))
		many_sleep();
	else
		return 99;
	return failures != 0;
}
