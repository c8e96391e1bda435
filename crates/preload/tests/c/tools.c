/* A program for tools that check programs. Without an argument it has no fault: threads share data
 * only under a lock. With one, it has this fault: "race", "overflow", "leak". */
#include "check.h"

enum { ROUNDS = 200, THREADS = 2 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static int turn, turns, written, spun, races;
static const char *fault = "";
static char *bytes;

static void *work(void *argument)
{
	long me = (long)argument;
	for (int round = 0; round < ROUNDS; round++) {
		pthread_mutex_lock(&mutex);
		while (turn != me)
			pthread_cond_wait(&cond, &mutex);
		turns++;
		turn = (turn + 1) % THREADS;
		pthread_cond_broadcast(&cond);
		pthread_mutex_unlock(&mutex);
		pthread_rwlock_wrlock(&rwlock);
		written++;
		pthread_rwlock_unlock(&rwlock);
		pthread_rwlock_rdlock(&rwlock);
		int seen = written;
		pthread_rwlock_unlock(&rwlock);
		pthread_spin_lock(&spin);
		spun += seen > 0;
		pthread_spin_unlock(&spin);
	}
	if (!strcmp(fault, "race"))
		races++;
	if (!strcmp(fault, "overflow") && me == 1)
		bytes[10] = 1;
	return NULL;
}

int main(int count, char **arguments)
{
	watchdog();
	if (count > 1)
		fault = arguments[1];
	bytes = malloc(10);
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	pthread_t threads[THREADS];
	for (long at = 0; at < THREADS; at++)
		threads[at] = start(work, (void *)at);
	for (int at = 0; at < THREADS; at++)
		join(threads[at]);
	IS(turns, THREADS * ROUNDS);
	IS(written, THREADS * ROUNDS);
	IS(spun, THREADS * ROUNDS);
	if (strcmp(fault, "leak"))
		free(bytes);
	bytes = NULL;
	return failures != 0;
}
