/* A mutex that is handed from owner to waiter, through the functions of pthread.h: mutual
 * exclusion, waiters that give up, tries, broadcasts, forks by owners, and children that are
 * stopped. With "ours" some owners must be seen that will hand the mutex over: only where the
 * library simulates a machine with more CPUs. */
#include "check.h"
#include <signal.h>

enum { THREADS = 12, EACH = 2000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* Under the mutex. */
static volatile int inside;
static volatile long count, handing;
static volatile int rounds, here;

static long had;

/* Whether the owner of our mutex will hand it over: the highest bit of the half word after the
 * lock's byte and the policy's. */
static int hands_over(void)
{
	return ((volatile unsigned char *)&mutex)[3] >> 7;
}

/* The critical section, and its end. */
static void pass_through(void)
{
	if (inside++)
		abort();
	long before = count;
	handing += hands_over();
	if (before % 64 == 0)
		sched_yield();
	count = before + 1;
	inside--;
	IS(pthread_mutex_unlock(&mutex), 0);
}

static int lot(unsigned *seed, int below)
{
	return rand_r(seed) % below;
}

static struct timespec in_us(clockid_t clock, long us)
{
	struct timespec time;
	clock_gettime(clock, &time);
	long ns = time.tv_nsec + us * 1000;
	time.tv_sec += ns / 1000000000;
	time.tv_nsec = ns % 1000000000;
	return time;
}

static void *by_all_calls(void *argument)
{
	unsigned seed = (unsigned)(size_t)argument;
	long mine = 0;
	for (int i = 0; i < EACH; i++) {
		struct timespec soon;
		int result;
		switch (lot(&seed, 6)) {
		case 0:
			soon = in_us(CLOCK_REALTIME, lot(&seed, 200));
			result = pthread_mutex_timedlock(&mutex, &soon);
			YES(result == 0 || result == ETIMEDOUT);
			break;
		case 1:
			soon = in_us(CLOCK_MONOTONIC, lot(&seed, 200));
			result = pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon);
			YES(result == 0 || result == ETIMEDOUT);
			break;
		case 2:
			result = pthread_mutex_trylock(&mutex);
			YES(result == 0 || result == EBUSY);
			break;
		default:
			result = pthread_mutex_lock(&mutex);
			IS(result, 0);
		}
		if (!result) {
			mine++;
			pass_through();
		}
	}
	__atomic_fetch_add(&had, mine, __ATOMIC_RELAXED);
	return NULL;
}

static void on_threads(int threads, void *(*run)(void *))
{
	pthread_t started[THREADS];
	for (long i = 0; i < threads; i++)
		started[i] = start(run, (void *)(i + 1));
	for (int i = 0; i < threads; i++)
		join(started[i]);
}

static void is_free(void)
{
	IS(inside, 0);
	IS(pthread_mutex_trylock(&mutex), 0);
	IS(pthread_mutex_unlock(&mutex), 0);
}

static void excludes(void)
{
	count = had = 0;
	on_threads(THREADS, by_all_calls);
	IS(count, had);
	is_free();
}

enum { MEET = 6, ROUNDS = 150 };

/* The last thread to arrive lets all continue, while others take the mutex. */
static void *meet(void *argument)
{
	unsigned seed = (unsigned)(size_t)argument;
	for (int i = 0; i < ROUNDS; i++) {
		IS(pthread_mutex_lock(&mutex), 0);
		int round = rounds;
		if (++here == MEET) {
			here = 0;
			rounds++;
			IS(pthread_cond_broadcast(&changed), 0);
		}
		while (rounds == round) {
			struct timespec soon = in_us(CLOCK_REALTIME, lot(&seed, 3000));
			int result = i % 3 ? pthread_cond_wait(&changed, &mutex)
					   : pthread_cond_timedwait(&changed, &mutex, &soon);
			YES(result == 0 || result == ETIMEDOUT);
		}
		IS(pthread_mutex_unlock(&mutex), 0);
	}
	return NULL;
}

static void *disturb(void *argument)
{
	(void)argument;
	while (rounds < ROUNDS) {
		IS(pthread_mutex_lock(&mutex), 0);
		pass_through();
	}
	return NULL;
}

static void *meet_or_disturb(void *argument)
{
	return (size_t)argument <= MEET ? meet(argument) : disturb(argument);
}

static void broadcasts(void)
{
	rounds = here = 0;
	on_threads(MEET + 4, meet_or_disturb);
	IS(rounds, ROUNDS);
	is_free();
}

static volatile int over;

static void *contend(void *argument)
{
	(void)argument;
	while (!over) {
		IS(pthread_mutex_lock(&mutex), 0);
		pass_through();
	}
	return NULL;
}

/* Owners fork, as others wait: the child unlocks, and its own threads contend. */
static void forks(void)
{
	pthread_t started[4];
	over = 0;
	for (int i = 0; i < 4; i++)
		started[i] = start(contend, NULL);
	for (int i = 0; i < 80; i++) {
		IS(pthread_mutex_lock(&mutex), 0);
		pid_t child = fork();
		if (!child) {
			alarm(60);
			IS(pthread_mutex_unlock(&mutex), 0);
			count = had = 0;
			is_free();
			for (long j = 0; j < 50; j++) {
				IS(pthread_mutex_lock(&mutex), 0);
				pass_through();
			}
			if (i % 20 == 0) {
				count = 0;
				on_threads(4, by_all_calls);
				IS(count, had);
			}
			is_free();
			_exit(failures != 0);
		}
		IS(pthread_mutex_unlock(&mutex), 0);
		IS(exit_of(child), 0);
	}
	over = 1;
	for (int i = 0; i < 4; i++)
		join(started[i]);
	is_free();
}

/* A process is stopped at random moments, and continued. */
static void stops(void)
{
	pid_t child = fork();
	if (!child) {
		alarm(60);
		excludes();
		_exit(failures != 0);
	}
	for (int i = 0; i < 60; i++) {
		kill(child, SIGSTOP);
		usleep(2000);
		kill(child, SIGCONT);
		usleep(3000);
	}
	IS(exit_of(child), 0);
}

/* This mutex is freed when the last thread that wants it has released it. */
static pthread_mutex_t *volatile fleeting;
static int left;

static void *be_last(void *argument)
{
	(void)argument;
	pthread_mutex_t *mine = fleeting;
	IS(pthread_mutex_lock(mine), 0);
	int last = __atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) == 0;
	IS(pthread_mutex_unlock(mine), 0);
	if (last) {
		IS(pthread_mutex_destroy(mine), 0);
		munmap(mine, 4096);
	}
	return NULL;
}

static void is_gone_afterwards(void)
{
	for (int i = 0; i < 400; i++) {
		fleeting = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				0);
		IS(pthread_mutex_init(fleeting, NULL), 0);
		pthread_mutex_t *mine = fleeting;
		left = 5;
		IS(pthread_mutex_lock(mine), 0);
		pthread_t others[4];
		for (int j = 0; j < 4; j++)
			others[j] = start(be_last, NULL);
		sched_yield();
		int last = __atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) == 0;
		IS(pthread_mutex_unlock(mine), 0);
		YES(!last);
		for (int j = 0; j < 4; j++)
			join(others[j]);
	}
}

int main(int arguments, char **argument)
{
	watchdog();
	excludes();
	broadcasts();
	forks();
	stops();
	is_gone_afterwards();
	if (arguments > 1 && !strcmp(argument[1], "ours") && !handing) {
		fprintf(stderr, "no owner was seen that hands the mutex over\n");
		failures++;
	}
	return failures != 0;
}
