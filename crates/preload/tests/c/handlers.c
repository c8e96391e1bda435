/* Waiters whose sleep is interrupted by a signal handler that does not return, as collectors of
 * garbage stop threads: the one behind them has the lock all the same. */
#include "check.h"
#include <signal.h>
#include <stdatomic.h>

enum { MOST = 4, LATE_MS = 3000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int gate[2];
static atomic_int inside, had[MOST + 1];

static void stays(int signal)
{
	char byte;
	(void)signal;
	atomic_fetch_add(&inside, 1);
	while (read(gate[0], &byte, 1) < 0)
		;
}

static void *waiter(void *had)
{
	pthread_mutex_lock(&mutex);
	atomic_store((atomic_int *)had, 1);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void of(int stopped)
{
	pthread_t threads[MOST + 1];
	atomic_store(&inside, 0);
	pthread_mutex_lock(&mutex);
	for (int i = 0; i <= stopped; i++) {
		atomic_store(&had[i], 0);
		pthread_create(&threads[i], NULL, waiter, &had[i]);
		/* Each sleeps behind the one before it. */
		usleep(100 * 1000);
	}
	for (int i = 0; i < stopped; i++)
		pthread_kill(threads[i], SIGUSR1);
	while (atomic_load(&inside) < stopped)
		usleep(1000);
	pthread_mutex_unlock(&mutex);
	int waited = 0;
	while (!atomic_load(&had[stopped]) && waited++ < LATE_MS)
		usleep(1000);
	YES(atomic_load(&had[stopped]));
	for (int i = 0; i < stopped; i++)
		IS(write(gate[1], "x", 1), 1);
	for (int i = 0; i <= stopped; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	watchdog();
	IS(pipe(gate), 0);
	struct sigaction action = {.sa_handler = stays};
	sigaction(SIGUSR1, &action, NULL);
	for (int stopped = 1; stopped <= MOST; stopped++)
		of(stopped);
	return failures != 0;
}
