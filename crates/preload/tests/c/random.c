/*
 * Random calls: three threads, one at a time, use a mutex, a readers-writer lock and a condition
 * variable of random kinds, with valid and invalid deadlines and clocks. Prints what each call
 * returns, so that two libraries can be compared: random FROM TO, a round for each seed. Calls that
 * POSIX leaves undefined, and those that would wait for ever, are left out.
 */
#include "check.h"
#include <semaphore.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

enum { THREADS = 3, CALLS = 40, SILENT = 77 };

enum call {
	LOCK, TRYLOCK, TIMEDLOCK, CLOCKLOCK, UNLOCK, DESTROY,
	RDLOCK, TRYRDLOCK, TIMEDRDLOCK, CLOCKRDLOCK,
	WRLOCK, TRYWRLOCK, TIMEDWRLOCK, CLOCKWRLOCK, RWUNLOCK,
	TIMEDWAIT, CLOCKWAIT, SIGNAL, BROADCAST, CALL_KINDS
};

static const int types[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
	PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP };
static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME,
	CLOCK_MONOTONIC_RAW, CLOCK_PROCESS_CPUTIME_ID, CLOCK_TAI, -1, 99 };

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock;
static pthread_cond_t cond;
static clockid_t cond_clock;
static int robust;

static struct worker {
	pthread_t thread;
	sem_t asked, answered;
	enum call call;
	clockid_t clock;
	int deadline, answer;
} workers[THREADS];

static struct timespec deadline(clockid_t clock, int which)
{
	struct timespec at = { 0, 0 };

	if (clock != CLOCK_MONOTONIC)
		clock = CLOCK_REALTIME;
	clock_gettime(clock, &at);
	switch (which) {
	case 0: at.tv_sec -= 5; break;
	case 1: at.tv_nsec = -1; break;
	case 2: at.tv_nsec = 1000000000; break;
	case 3: at = (struct timespec){ -1, 0 }; break;
	case 4: at = (struct timespec){ -1, 2000000000 }; break;
	case 5: at = (struct timespec){ 0, 0 }; break;
	default:
		at.tv_nsec += 1000000;
		at.tv_sec += at.tv_nsec / 1000000000;
		at.tv_nsec %= 1000000000;
	}
	return at;
}

static int perform(const struct worker *me)
{
	struct timespec real = deadline(CLOCK_REALTIME, me->deadline);
	struct timespec of_cond = deadline(cond_clock, me->deadline);
	struct timespec clocked = deadline(me->clock, me->deadline);

	switch (me->call) {
	case LOCK: return pthread_mutex_lock(&mutex);
	case TRYLOCK: return pthread_mutex_trylock(&mutex);
	case TIMEDLOCK: return pthread_mutex_timedlock(&mutex, &real);
	case CLOCKLOCK: return pthread_mutex_clocklock(&mutex, me->clock, &clocked);
	case UNLOCK: return pthread_mutex_unlock(&mutex);
	case DESTROY: return pthread_mutex_destroy(&mutex);
	case RDLOCK: return pthread_rwlock_rdlock(&rwlock);
	case TRYRDLOCK: return pthread_rwlock_tryrdlock(&rwlock);
	case TIMEDRDLOCK: return pthread_rwlock_timedrdlock(&rwlock, &real);
	case CLOCKRDLOCK: return pthread_rwlock_clockrdlock(&rwlock, me->clock, &clocked);
	case WRLOCK: return pthread_rwlock_wrlock(&rwlock);
	case TRYWRLOCK: return pthread_rwlock_trywrlock(&rwlock);
	case TIMEDWRLOCK: return pthread_rwlock_timedwrlock(&rwlock, &real);
	case CLOCKWRLOCK: return pthread_rwlock_clockwrlock(&rwlock, me->clock, &clocked);
	case RWUNLOCK: return pthread_rwlock_unlock(&rwlock);
	case TIMEDWAIT: return pthread_cond_timedwait(&cond, &mutex, &of_cond);
	case CLOCKWAIT: return pthread_cond_clockwait(&cond, &mutex, me->clock, &clocked);
	case SIGNAL: return pthread_cond_signal(&cond);
	case BROADCAST: return pthread_cond_broadcast(&cond);
	default: return -1;
	}
}

static void *work(void *argument)
{
	struct worker *me = argument;

	for (;;) {
		sem_wait(&me->asked);
		if (me->call == CALL_KINDS)
			return NULL;
		errno = SILENT;
		me->answer = perform(me);
		if (errno != SILENT)
			printf("errno became %d: ", errno);
		sem_post(&me->answered);
	}
}

static int ask(struct worker *worker, enum call call)
{
	worker->call = call;
	sem_post(&worker->asked);
	sem_wait(&worker->answered);
	return worker->answer;
}

/* The locks that the threads hold, by the answers so far. */
struct held {
	int depth, owner, writer, readers[THREADS];
};

static int all_readers(const struct held *held)
{
	int all = 0;

	for (int at = 0; at < THREADS; at++)
		all += held->readers[at];
	return all;
}

/* Whether the call is defined, and comes back. `asks`: the mutex knows its owner. */
static int may(const struct held *held, const struct worker *worker, int who, int asks)
{
	int mine = held->depth && held->owner == who;

	switch (worker->call) {
	case LOCK: return !held->depth || (mine && asks);
	case UNLOCK: return mine || asks;
	/* A robust mutex is destroyed although a thread holds it. */
	case DESTROY: return held->depth && !robust;
	case TIMEDWAIT: case CLOCKWAIT: return mine && held->depth == 1;
	case RDLOCK: return held->writer < 0 || held->writer == who;
	case WRLOCK: return held->writer == who || (held->writer < 0 && !all_readers(held));
	case RWUNLOCK: return held->readers[who] || held->writer == who;
	default: return 1;
	}
}

static void note(struct held *held, enum call call, int who)
{
	switch (call) {
	case LOCK: case TRYLOCK: case TIMEDLOCK: case CLOCKLOCK:
		held->owner = who;
		held->depth++;
		break;
	case UNLOCK:
		held->depth--;
		break;
	case RDLOCK: case TRYRDLOCK: case TIMEDRDLOCK: case CLOCKRDLOCK:
		held->readers[who]++;
		break;
	case WRLOCK: case TRYWRLOCK: case TIMEDWRLOCK: case CLOCKWRLOCK:
		held->writer = who;
		break;
	case RWUNLOCK:
		if (held->writer == who)
			held->writer = -1;
		else
			held->readers[who]--;
		break;
	default:
		break;
	}
}

static int lot(int below)
{
	return random() % below;
}

static int make(void)
{
	pthread_mutexattr_t of_mutex;
	pthread_rwlockattr_t of_rwlock;
	pthread_condattr_t of_cond;
	int type = types[lot(LENGTH(types))], shared = lot(2);
	int protocol = lot(4) ? PTHREAD_PRIO_NONE : PTHREAD_PRIO_INHERIT;

	robust = lot(4) == 0;
	cond_clock = clocks[lot(2)];
	memset(&mutex, 0xa5, sizeof(mutex));
	memset(&rwlock, 0xa5, sizeof(rwlock));
	memset(&cond, 0xa5, sizeof(cond));
	IS(pthread_mutexattr_init(&of_mutex), 0);
	IS(pthread_mutexattr_settype(&of_mutex, type), 0);
	IS(pthread_mutexattr_setrobust(&of_mutex, robust), 0);
	IS(pthread_mutexattr_setprotocol(&of_mutex, protocol), 0);
	IS(pthread_mutex_init(&mutex, &of_mutex), 0);
	IS(pthread_rwlockattr_init(&of_rwlock), 0);
	IS(pthread_rwlockattr_setkind_np(&of_rwlock, lot(3)), 0);
	IS(pthread_rwlockattr_setpshared(&of_rwlock, shared), 0);
	IS(pthread_rwlock_init(&rwlock, &of_rwlock), 0);
	IS(pthread_condattr_init(&of_cond), 0);
	IS(pthread_condattr_setclock(&of_cond, cond_clock), 0);
	IS(pthread_cond_init(&cond, &of_cond), 0);
	return type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK;
}

static void round_of(unsigned seed)
{
	struct held held = { .writer = -1 };

	srandom(seed);
	int asks = make();
	printf("seed %u\n", seed);
	for (int at = 0; at < CALLS; at++) {
		int who = lot(THREADS);
		struct worker *worker = &workers[who];

		worker->call = lot(CALL_KINDS);
		worker->clock = clocks[lot(LENGTH(clocks))];
		worker->deadline = lot(8);
		if (!may(&held, worker, who, asks))
			continue;
		int answer = ask(worker, worker->call);
		printf("%d, thread %d, clock %d, deadline %d: %d, owner %d\n", worker->call, who,
			worker->clock, worker->deadline, answer, mutex.__data.__owner != 0);
		if (answer == 0)
			note(&held, worker->call, who);
	}
	for (; held.depth > 0; held.depth--)
		IS(ask(&workers[held.owner], UNLOCK), 0);
	for (int who = 0; who < THREADS; who++) {
		for (; held.readers[who] > 0; held.readers[who]--)
			IS(ask(&workers[who], RWUNLOCK), 0);
		if (held.writer == who)
			IS(ask(&workers[who], RWUNLOCK), 0);
	}
	IS(pthread_mutex_destroy(&mutex), 0);
	IS(pthread_rwlock_destroy(&rwlock), 0);
	IS(pthread_cond_destroy(&cond), 0);
}

int main(int count, char **arguments)
{
	watchdog();
	if (count != 3)
		return 99;
	for (struct worker *one = workers; one < workers + THREADS; one++) {
		sem_init(&one->asked, 0, 0);
		sem_init(&one->answered, 0, 0);
		IS(pthread_create(&one->thread, NULL, work, one), 0);
	}
	for (int seed = atoi(arguments[1]); seed < atoi(arguments[2]); seed++)
		round_of(seed);
	for (struct worker *one = workers; one < workers + THREADS; one++) {
		one->call = CALL_KINDS;
		sem_post(&one->asked);
		IS(pthread_join(one->thread, NULL), 0);
	}
	return failures != 0;
}
