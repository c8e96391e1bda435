/* Condition variables: return values, clocks, no lost wake, and memory that is freed right after
 * the destruction. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int state, woken;

static void codes(void)
{
	struct timespec wrong = {.tv_sec = 1, .tv_nsec = 1000000000}, past = {1, 0},
			negative = {-1, 0};
	IS(pthread_cond_wait(&cond, &mutex), EPERM);
	IS(pthread_cond_timedwait(&cond, &mutex, &past), EPERM);
	IS(pthread_mutex_lock(&mutex), 0);
	IS(pthread_cond_timedwait(&cond, &mutex, &wrong), EINVAL);
	wrong.tv_nsec = -1;
	IS(pthread_cond_timedwait(&cond, &mutex, &wrong), EINVAL);
	IS(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &wrong), EINVAL);
	IS(pthread_cond_clockwait(&cond, &mutex, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
	IS(pthread_cond_clockwait(&cond, &mutex, -1, &past), EINVAL);
	IS(pthread_cond_timedwait(&cond, &mutex, &past), ETIMEDOUT);
	IS(pthread_cond_timedwait(&cond, &mutex, &negative), ETIMEDOUT);
	IS(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	/* After each call its owner still has the mutex. */
	IS(pthread_mutex_lock(&mutex), EDEADLK);
	IS(pthread_mutex_unlock(&mutex), 0);
}

static void clocks(void)
{
	clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
	IS(pthread_mutex_lock(&mutex), 0);
	for (int at = 0; at < 2; at++) {
		pthread_cond_t timed;
		pthread_condattr_t attributes;
		IS(pthread_condattr_init(&attributes), 0);
		IS(pthread_condattr_setclock(&attributes, clocks[at]), 0);
		IS(pthread_cond_init(&timed, &attributes), 0);
		struct timespec soon = in_ms(clocks[at], 30);
		IS(pthread_cond_timedwait(&timed, &mutex, &soon), ETIMEDOUT);
		YES(passed(clocks[at], &soon));
		/* The other clock, by name. */
		soon = in_ms(clocks[!at], 30);
		IS(pthread_cond_clockwait(&timed, &mutex, clocks[!at], &soon), ETIMEDOUT);
		YES(passed(clocks[!at], &soon));
		IS(pthread_cond_destroy(&timed), 0);
	}
	IS(pthread_mutex_unlock(&mutex), 0);
}

static void *await(void *argument)
{
	(void)argument;
	IS(pthread_mutex_lock(&mutex), 0);
	woken++;
	while (!state)
		IS(pthread_cond_wait(&cond, &mutex), 0);
	woken--;
	IS(pthread_mutex_unlock(&mutex), 0);
	return NULL;
}

static void wakes(void)
{
	enum { MANY = 20 };
	pthread_t threads[MANY];
	for (int broadcast = 0; broadcast < 2; broadcast++) {
		state = 0;
		for (int at = 0; at < MANY; at++)
			threads[at] = start(await, NULL);
		for (int all = 0; !all; sched_yield()) {
			pthread_mutex_lock(&mutex);
			all = woken == MANY;
			pthread_mutex_unlock(&mutex);
		}
		pthread_mutex_lock(&mutex);
		state = 1;
		if (broadcast)
			IS(pthread_cond_broadcast(&cond), 0);
		pthread_mutex_unlock(&mutex);
		for (int at = 0; !broadcast && at < MANY; at++)
			IS(pthread_cond_signal(&cond), 0);
		for (int at = 0; at < MANY; at++)
			join(threads[at]);
		IS(woken, 0);
	}
}

static int turn;

static void *play(void *argument)
{
	long me = (long)argument;
	for (int round = 0; round < 10000; round++) {
		pthread_mutex_lock(&mutex);
		while (turn != me)
			IS(pthread_cond_wait(&cond, &mutex), 0);
		turn = (turn + 1) % 3;
		IS(pthread_cond_broadcast(&cond), 0);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

/* A thread that has locked a recursive mutex twice holds it while it waits: a broadcast that made
 * it wait for the mutex would make it wait for itself. Two waiters, each with its own. */
static int rounds_left = 200;

static void *hold_and_wait(void *argument)
{
	(void)argument;
	pthread_mutex_t twice = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	IS(pthread_mutex_lock(&twice), 0);
	IS(pthread_mutex_lock(&twice), 0);
	while (__atomic_sub_fetch(&rounds_left, 1, __ATOMIC_RELAXED) > 0)
		IS(pthread_cond_wait(&cond, &twice), 0);
	IS(pthread_mutex_unlock(&twice), 0);
	IS(pthread_mutex_unlock(&twice), 0);
	IS(pthread_mutex_unlock(&twice), EPERM);
	__atomic_sub_fetch(&woken, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void held_all_the_while(void)
{
	pthread_t threads[2];
	woken = 2;
	for (int at = 0; at < 2; at++)
		threads[at] = start(hold_and_wait, NULL);
	while (__atomic_load_n(&woken, __ATOMIC_RELAXED)) {
		IS(pthread_cond_broadcast(&cond), 0);
		usleep(100);
	}
	for (int at = 0; at < 2; at++)
		join(threads[at]);
}

/* Waiters that are notified, or reach their deadline at that moment, while the object is
 * destroyed. */
struct doomed {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	int waiting, stop;
};
static pthread_mutex_t outside = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_doom(void *argument)
{
	struct doomed *doomed = argument;
	pthread_mutex_lock(&outside);
	doomed->waiting++;
	while (!doomed->stop) {
		struct timespec soon = in_ms(CLOCK_MONOTONIC, 0);
		soon.tv_nsec += random() % 40000;
		if (soon.tv_nsec >= 1000000000)
			soon.tv_nsec = 999999999;
		int code = pthread_cond_clockwait(&doomed->cond, &outside, CLOCK_MONOTONIC, &soon);
		/* The object may be gone now if this was the notification of the end. */
		YES(code == 0 || code == ETIMEDOUT);
		if (code == 0)
			break;
	}
	pthread_mutex_unlock(&outside);
	return NULL;
}

static void doom(void)
{
	for (int round = 0; round < 300; round++) {
		struct doomed *doomed = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pthread_cond_init(&doomed->cond, NULL);
		pthread_t threads[3];
		for (int at = 0; at < 3; at++)
			threads[at] = start(wait_for_doom, doomed);
		for (int all = 0; !all; sched_yield()) {
			pthread_mutex_lock(&outside);
			all = doomed->waiting == 3;
			pthread_mutex_unlock(&outside);
		}
		pthread_mutex_lock(&outside);
		doomed->stop = 1;
		/* Waiters are notified now; none waits again, because `stop` is checked first. */
		pthread_cond_broadcast(&doomed->cond);
		pthread_cond_destroy(&doomed->cond);
		memset(&doomed->cond, 0xff, sizeof doomed->cond);
		pthread_mutex_unlock(&outside);
		for (int at = 0; at < 3; at++)
			join(threads[at]);
		for (unsigned at = 0; at < sizeof doomed->cond; at++)
			IS(((unsigned char *)&doomed->cond)[at], 0xff);
		munmap(doomed, 4096);
	}
}

int main(void)
{
	watchdog();
	codes();
	clocks();
	wakes();
	pthread_t players[3];
	for (long at = 0; at < 3; at++)
		players[at] = start(play, (void *)at);
	for (int at = 0; at < 3; at++)
		join(players[at]);
	held_all_the_while();
	doom();
	IS(pthread_cond_destroy(&cond), 0);
	return failures != 0;
}
