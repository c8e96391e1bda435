/* One event after the other: the events of each thread are known in advance. Prints the address of
 * each lock by its name. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static volatile int waiting;
static int woken;

static void pause_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&time, NULL);
}

static void burn_ms(long ms)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static void *sleeper(void *unused)
{
	pthread_mutex_lock(&mutex);
	waiting = 1;
	while (!woken)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	/* Leaves in another way than by returning. */
	pthread_exit(unused);
}

int main(void)
{
	watchdog();
	pthread_t thread;
	IS(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
	IS(pthread_create(&thread, NULL, sleeper, NULL), 0);
	for (int seen = 0; !seen;) {
		pause_ms(1);
		if (waiting) {
			pthread_mutex_lock(&mutex);
			seen = 1;
		}
	}
	woken = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	IS(pthread_join(thread, NULL), 0);
	pthread_rwlock_rdlock(&rwlock);
	pause_ms(20);
	pthread_rwlock_unlock(&rwlock);
	pthread_rwlock_wrlock(&rwlock);
	burn_ms(20);
	pthread_rwlock_unlock(&rwlock);
	IS(pthread_mutex_trylock(&mutex), 0);
	pthread_mutex_unlock(&mutex);
	pthread_spin_lock(&spin);
	pthread_spin_unlock(&spin);
	printf("mutex %lu\nrwlock %lu\ncond %lu\nspin %lu\n", (unsigned long)&mutex,
	       (unsigned long)&rwlock, (unsigned long)&cond, (unsigned long)&spin);
	return failures != 0;
}
