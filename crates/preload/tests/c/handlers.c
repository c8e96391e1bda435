/* Waiters whose sleep is interrupted by a signal handler that does not return, in the way that
 * garbage collectors stop threads: waiters behind them still get the lock. */
#include "check.h"
#include <signal.h>
#include <stdatomic.h>

enum { MOST = 4, BEHIND = 3, LATE_MS = 3000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct timespec until;
static int gate[2];
static atomic_int inside, through;

static void stays(int signal)
{
	char byte;
	(void)signal;
	atomic_fetch_add(&inside, 1);
	while (read(gate[0], &byte, 1) < 0)
		;
}

static void *waiter(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&mutex);
	atomic_fetch_add(&through, 1);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

/* Gets the lock, or gives up. */
static void *timed_waiter(void *unused)
{
	(void)unused;
	int error = pthread_mutex_timedlock(&mutex, &until);
	YES(error == 0 || error == ETIMEDOUT);
	if (!error)
		pthread_mutex_unlock(&mutex);
	return NULL;
}

/* Starts a thread and waits until it sleeps, behind the previous one. */
static pthread_t comes(void *(*run)(void *))
{
	pthread_t thread = start(run, NULL);
	usleep(50 * 1000);
	return thread;
}

/* `stopped` waiters in handlers, and behind them, if `timed`, one whose deadline is right after the
 * unlock: it is the first to wake up, and gives up. */
static void of(int stopped, int timed)
{
	pthread_t threads[MOST + 1 + BEHIND];
	int count = 0;
	atomic_store(&inside, 0);
	atomic_store(&through, 0);
	pthread_mutex_lock(&mutex);
	until = in_ms(CLOCK_REALTIME, 1000);
	for (int i = 0; i < stopped; i++)
		threads[count++] = comes(waiter);
	if (timed)
		threads[count++] = comes(timed_waiter);
	for (int i = 0; i < BEHIND; i++)
		threads[count++] = comes(waiter);
	for (int i = 0; i < stopped; i++)
		pthread_kill(threads[i], SIGUSR1);
	while (atomic_load(&inside) < stopped)
		usleep(1000);
	struct timespec shortly_before = until;
	shortly_before.tv_nsec -= 20 * 1000000;
	if (shortly_before.tv_nsec < 0) {
		shortly_before.tv_nsec += 1000000000;
		shortly_before.tv_sec--;
	}
	while (timed && !passed(CLOCK_REALTIME, &shortly_before))
		usleep(500);
	pthread_mutex_unlock(&mutex);
	for (int ms = 0; atomic_load(&through) < BEHIND && ms < LATE_MS; ms++)
		usleep(1000);
	IS(atomic_load(&through), BEHIND);
	for (int i = 0; i < stopped; i++)
		IS(write(gate[1], "x", 1), 1);
	while (count > 0)
		join(threads[--count]);
}

int main(void)
{
	watchdog();
	IS(pipe(gate), 0);
	struct sigaction action = {.sa_handler = stays};
	sigaction(SIGUSR1, &action, NULL);
	for (int stopped = 1; stopped <= MOST; stopped++)
		for (int timed = 0; timed < 2; timed++)
			of(stopped, timed);
	return failures != 0;
}
