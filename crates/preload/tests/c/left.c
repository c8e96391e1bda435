/* The functions that the C library keeps work beside those that are replaced: barriers, semaphores,
 * `pthread_once` and the locks of C11, within a process and between two. */
#include "check.h"
#include <semaphore.h>
#include <threads.h>

enum { THREADS = 4, ROUNDS = 500 };

static struct meeting {
	pthread_barrier_t barrier;
	sem_t full, empty;
	int item, last;
	/* The count of arrivals, one more in each round; a thread that is let through finds all of
	 * them. */
	int arrived;
} *meeting;

static void *meet(void *rounds)
{
	for (int round = 1; round <= (long)rounds; round++) {
		__atomic_fetch_add(&meeting->arrived, 1, __ATOMIC_RELAXED);
		int code = pthread_barrier_wait(&meeting->barrier);
		YES(code == 0 || code == PTHREAD_BARRIER_SERIAL_THREAD);
		if (code)
			__atomic_fetch_add(&meeting->last, 1, __ATOMIC_RELAXED);
		YES(__atomic_load_n(&meeting->arrived, __ATOMIC_RELAXED) >= THREADS * round);
		/* No thread is a round ahead. */
		pthread_barrier_wait(&meeting->barrier);
		IS(__atomic_load_n(&meeting->last, __ATOMIC_RELAXED) >= round, 1);
	}
	return NULL;
}

static void barriers(int shared)
{
	pthread_barrierattr_t attributes;
	IS(pthread_barrierattr_init(&attributes), 0);
	if (shared)
		IS(pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
	IS(pthread_barrier_init(&meeting->barrier, &attributes, 0), EINVAL);
	IS(pthread_barrier_init(&meeting->barrier, &attributes, THREADS), 0);
	meeting->arrived = meeting->last = 0;
	pthread_t threads[THREADS];
	pid_t child = shared ? fork() : -1;
	if (child == 0) {
		meet((void *)ROUNDS);
		_exit(failures != 0);
	}
	for (int at = shared; at < THREADS; at++)
		threads[at] = start(meet, (void *)ROUNDS);
	for (int at = shared; at < THREADS; at++)
		join(threads[at]);
	if (shared)
		IS(exit_of(child), 0);
	IS(meeting->last, ROUNDS);
	IS(pthread_barrier_destroy(&meeting->barrier), 0);
}

static void *consume(void *argument)
{
	long sum = 0;
	(void)argument;
	for (int round = 0; round < ROUNDS; round++) {
		IS(sem_wait(&meeting->full), 0);
		sum += meeting->item;
		IS(sem_post(&meeting->empty), 0);
	}
	return (void *)sum;
}

static void semaphores(void)
{
	IS(sem_init(&meeting->full, 0, 0), 0);
	IS(sem_init(&meeting->empty, 0, 1), 0);
	pthread_t thread = start(consume, NULL);
	for (int round = 1; round <= ROUNDS; round++) {
		IS(sem_wait(&meeting->empty), 0);
		meeting->item = round;
		IS(sem_post(&meeting->full), 0);
	}
	IS((long)join(thread), ROUNDS * (ROUNDS + 1) / 2);
	struct timespec soon = in_ms(CLOCK_REALTIME, 5);
	IS(sem_timedwait(&meeting->full, &soon), -1);
	IS(errno, ETIMEDOUT);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t beside = PTHREAD_MUTEX_INITIALIZER;
static int runs;

static void run_once(void)
{
	IS(pthread_mutex_lock(&beside), 0);
	settle();
	runs++;
	IS(pthread_mutex_unlock(&beside), 0);
}

static void *call_it(void *argument)
{
	(void)argument;
	IS(pthread_once(&once, run_once), 0);
	IS(runs, 1);
	return NULL;
}

static mtx_t mutex;
static cnd_t cond;
static int turn;

static void *take_turns(void *me)
{
	for (int round = 0; round < ROUNDS; round++) {
		IS(mtx_lock(&mutex), thrd_success);
		while (turn != (int)(long)me)
			IS(cnd_wait(&cond, &mutex), thrd_success);
		turn = !turn;
		IS(cnd_signal(&cond), thrd_success);
		IS(mtx_unlock(&mutex), thrd_success);
	}
	return NULL;
}

int main(void)
{
	watchdog();
	meeting = shared_memory(sizeof *meeting);
	barriers(0);
	barriers(1);
	semaphores();
	pthread_t threads[THREADS];
	for (int at = 0; at < THREADS; at++)
		threads[at] = start(call_it, NULL);
	for (int at = 0; at < THREADS; at++)
		join(threads[at]);
	IS(mtx_init(&mutex, mtx_plain), thrd_success);
	IS(cnd_init(&cond), thrd_success);
	for (long at = 0; at < 2; at++)
		threads[at] = start(take_turns, (void *)at);
	for (int at = 0; at < 2; at++)
		join(threads[at]);
	return failures != 0;
}
