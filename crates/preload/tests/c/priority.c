/* A thread of high real-time priority waits for a lock that a thread without priority holds, and
 * both have only one CPU: the waiter must sleep, or the owner would hardly get to release it.
 * Without permission for such a priority nothing is tested. */
#include "check.h"
#include <sys/resource.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int how;

static long cpu_us(void)
{
	struct rusage usage;
	IS(getrusage(RUSAGE_THREAD, &usage), 0);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000L + usage.ru_utime.tv_usec +
	       usage.ru_stime.tv_usec;
}

static void *wait_above(void *argument)
{
	(void)argument;
	struct sched_param high = {.sched_priority = 10};
	if (sched_setscheduler(0, SCHED_FIFO, &high))
		return NULL;
	long before = cpu_us();
	switch (how) {
	case 0:
		IS(pthread_mutex_lock(&mutex), 0);
		IS(pthread_mutex_unlock(&mutex), 0);
		break;
	case 1:
		IS(pthread_rwlock_wrlock(&rwlock), 0);
		IS(pthread_rwlock_unlock(&rwlock), 0);
		break;
	default:
		IS(pthread_rwlock_rdlock(&rwlock), 0);
		IS(pthread_rwlock_unlock(&rwlock), 0);
	}
	/* The owner holds it for 100 ms. */
	YES(cpu_us() - before < 50000);
	return NULL;
}

int main(void)
{
	watchdog();
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	IS(sched_setaffinity(0, sizeof one, &one), 0);
	for (how = 0; how < 3; how++) {
		IS(pthread_mutex_lock(&mutex), 0);
		IS(how == 1 ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock), 0);
		pthread_t thread = start(wait_above, NULL);
		/* If the thread may not have that priority, it ends at once. */
		usleep(100000);
		IS(pthread_mutex_unlock(&mutex), 0);
		IS(pthread_rwlock_unlock(&rwlock), 0);
		join(thread);
	}
	return failures != 0;
}
