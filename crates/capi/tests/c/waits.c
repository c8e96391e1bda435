/* Barriers, semaphores, once: the calls that they let through, each error. */
#include "check.h"

#include <antiphon.h>

enum { THREADS = 4, ROUNDS = 500, EACH = 3000 };

static antiphon_barrier_t barrier = ANTIPHON_BARRIER_INIT(THREADS);
static antiphon_sem_t sem = ANTIPHON_SEM_INIT(2);
static antiphon_once_t once = ANTIPHON_ONCE_INIT;
static int came[THREADS], leaders, inside, most, runs;

static void *meet(void *number)
{
	int round, at, *mine = number;
	for (round = 1; round <= ROUNDS; round++) {
		*mine = round;
		if (antiphon_barrier_wait(&barrier))
			leaders++;
		for (at = 0; at < THREADS; at++)
			IS(came[at], round);
		antiphon_barrier_wait(&barrier);
	}
	return NULL;
}

/* Freed by the first thread that is back. */
struct meeting {
	antiphon_barrier_t *barrier;
	int back;
};

static void *meet_once(void *argument)
{
	struct meeting *meeting = argument;
	antiphon_barrier_wait(meeting->barrier);
	if (__atomic_fetch_add(&meeting->back, 1, __ATOMIC_ACQ_REL) == 0) {
		antiphon_barrier_destroy(meeting->barrier);
		IS(munmap(meeting->barrier, 4096), 0);
	}
	return NULL;
}

static void in_threads(void *(*run)(void *), char *arguments, size_t size)
{
	pthread_t threads[THREADS];
	int at;
	for (at = 0; at < THREADS; at++)
		threads[at] = start(run, arguments + size * (size_t)at);
	for (at = 0; at < THREADS; at++)
		join(threads[at]);
}

static void barriers(void)
{
	antiphon_barrier_t alone = ANTIPHON_BARRIER_INIT(1), made;
	const struct timespec past = { 1, 0 }, odd = { 1, -1 };
	int round;
	memset(&made, 0, sizeof made);
	IS(antiphon_barrier_wait(&made), 1);
	IS(antiphon_barrier_wait(&alone), 1);
	IS(antiphon_barrier_timedwait(&alone, CLOCK_REALTIME, &past), 1);
	IS(antiphon_barrier_init(&made, 2), 0);
	IS(antiphon_barrier_timedwait(&made, CLOCK_REALTIME, &past), ETIMEDOUT);
	IS(antiphon_barrier_timedwait(&made, CLOCK_REALTIME, &odd), EINVAL);
	antiphon_barrier_destroy(&made);
	IS(antiphon_barrier_init(&made, 0), EINVAL);
	in_threads(meet, (char *)came, sizeof *came);
	IS(leaders, ROUNDS);
	for (round = 0; round < 100; round++) {
		struct meeting meeting = { NULL, 0 };
		meeting.barrier = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		IS(antiphon_barrier_init(meeting.barrier, THREADS), 0);
		in_threads(meet_once, (char *)&meeting, 0);
	}
}

static void *pass(void *unused)
{
	int round, now;
	(void)unused;
	for (round = 0; round < EACH; round++) {
		antiphon_sem_wait(&sem);
		now = __atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED);
		if (now > most)
			most = now;
		__atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
		IS(antiphon_sem_post(&sem, 1), 0);
	}
	return NULL;
}

static void *take_three(void *unused)
{
	int at;
	(void)unused;
	for (at = 0; at < 3; at++)
		antiphon_sem_wait(&sem);
	return NULL;
}

static void semaphores(void)
{
	const int clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };
	struct timespec past = { 0, 0 }, odd = { 0, 1000000000 };
	antiphon_sem_t none;
	pthread_t taker;
	size_t at;
	in_threads(pass, NULL, 0);
	YES(most >= 1 && most <= 2);
	IS(antiphon_sem_value(&sem), 2);
	IS(antiphon_sem_trywait(&sem), 0);
	IS(antiphon_sem_timedwait(&sem, CLOCK_MONOTONIC, &past), 0);
	IS(antiphon_sem_trywait(&sem), EBUSY);
	IS(antiphon_sem_timedwait(&sem, CLOCK_MONOTONIC, &odd), EINVAL);
	IS(antiphon_sem_timedwait(&sem, 99, &past), EINVAL);
	for (at = 0; at < 2; at++) {
		struct timespec soon = in_ms(clocks[at], 5);
		IS(antiphon_sem_timedwait(&sem, clocks[at], &soon), ETIMEDOUT);
		YES(passed(clocks[at], &soon));
	}
	taker = start(take_three, NULL);
	settle();
	IS(antiphon_sem_destroy(&sem), EBUSY);
	IS(antiphon_sem_post(&sem, 3), 0);
	join(taker);
	IS(antiphon_sem_destroy(&sem), 0);
	memset(&none, 0, sizeof none);
	IS(antiphon_sem_trywait(&none), EBUSY);
	IS(antiphon_sem_init(&none, ANTIPHON_SEM_MAX + 1), EINVAL);
	IS(antiphon_sem_init(&none, ANTIPHON_SEM_MAX - 1), 0);
	IS(antiphon_sem_post(&none, 2), EOVERFLOW);
	IS(antiphon_sem_post(&none, 1), 0);
	IS(antiphon_sem_value(&none), ANTIPHON_SEM_MAX);
}

/* Fails the first two times. */
static int try_it(void *argument)
{
	YES(argument == &runs);
	usleep(2000);
	return ++runs <= 2 ? 40 + runs : 0;
}

static void *do_once(void *failed)
{
	int code = antiphon_once(&once, try_it, &runs);
	if (code)
		__atomic_add_fetch((int *)failed, code, __ATOMIC_RELAXED);
	else
		IS(runs, 3);
	return NULL;
}

int main(void)
{
	int failed = 0;
	watchdog();
	barriers();
	semaphores();
	in_threads(do_once, (char *)&failed, 0);
	IS(failed, 41 + 42);
	IS(runs, 3);
	IS(antiphon_once(&once, try_it, NULL), 0);
	IS(runs, 3);
	return failures != 0;
}
