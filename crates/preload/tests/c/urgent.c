/* Waiters of real-time priority are served in its order, the first waiter included, and those of
 * equal priority in the order of arrival; before all waiters without one. 64 random waiters wait
 * for each kind of object, on one CPU, so that they act in one order. With "ours" also cases that
 * the C library does not support: it prefers no reader for its priority. Exits with 77 where such
 * priorities are refused. */
#include "check.h"

enum { WAITERS = 64, ORDINARY = 4, LOWEST = 2, HIGHEST = 40 };

static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock;
static pthread_cond_t cond;
static int ours;

enum way {
	LOCK,
	TIMED,
	CLOCKED,
	WRITE,
	TIMED_WRITE,
	CLOCKED_WRITE,
	READ,
	TIMED_READ,
	WAIT,
	TIMED_WAIT
};

struct waiter {
	int priority; /* 0: ordinary */
	int came;
	enum way way;
	pthread_t thread;
	volatile pid_t tid;
};

static struct waiter waiters[WAITERS + ORDINARY];
static struct waiter *served[WAITERS + ORDINARY];
static int count;

static void *wait_and_note(void *argument)
{
	struct waiter *me = argument;
	struct timespec real = in_ms(CLOCK_REALTIME, 100000), mono = in_ms(CLOCK_MONOTONIC, 100000);
	me->tid = gettid();
	switch (me->way) {
	case LOCK:
		IS(pthread_mutex_lock(&mutex), 0);
		break;
	case TIMED:
		IS(pthread_mutex_timedlock(&mutex, &real), 0);
		break;
	case CLOCKED:
		IS(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &mono), 0);
		break;
	case WRITE:
		IS(pthread_rwlock_wrlock(&rwlock), 0);
		break;
	case TIMED_WRITE:
		IS(pthread_rwlock_timedwrlock(&rwlock, &real), 0);
		break;
	case CLOCKED_WRITE:
		IS(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &mono), 0);
		break;
	case READ:
		IS(pthread_rwlock_rdlock(&rwlock), 0);
		break;
	case TIMED_READ:
		IS(pthread_rwlock_timedrdlock(&rwlock, &real), 0);
		break;
	case WAIT:
		IS(pthread_mutex_lock(&mutex), 0);
		IS(pthread_cond_wait(&cond, &mutex), 0);
		break;
	case TIMED_WAIT:
		IS(pthread_mutex_lock(&mutex), 0);
		IS(pthread_cond_timedwait(&cond, &mutex, &real), 0);
	}
	served[__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED)] = me;
	if (me->way >= WRITE && me->way <= TIMED_READ)
		IS(pthread_rwlock_unlock(&rwlock), 0);
	else
		IS(pthread_mutex_unlock(&mutex), 0);
	return NULL;
}

/* Starts a waiter, and waits until it sleeps. */
static void begin(struct waiter *waiter)
{
	pthread_attr_t attributes;
	struct sched_param parameter = {.sched_priority = waiter->priority};
	int policy = !waiter->priority ? SCHED_OTHER : waiter->came % 3 ? SCHED_FIFO : SCHED_RR;
	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, policy);
	pthread_attr_setschedparam(&attributes, &parameter);
	pthread_attr_setstacksize(&attributes, 1 << 17);
	waiter->tid = 0;
	if (pthread_create(&waiter->thread, &attributes, wait_and_note, waiter))
		exit(98);
	pthread_attr_destroy(&attributes);
	while (!asleep(waiter->tid))
		usleep(200);
}

static int writes(const struct waiter *waiter)
{
	return waiter->way != READ && waiter->way != TIMED_READ;
}

static int is_before(const struct waiter *one, const struct waiter *other)
{
	if (one->priority != other->priority)
		return one->priority > other->priority;
	if (!one->priority)
		return 1;
	if (writes(one) != writes(other))
		return writes(one);
	return one->came < other->came;
}

static void set_up(int kind, int shared)
{
	pthread_mutexattr_t of_mutex;
	pthread_rwlockattr_t of_rwlock;
	pthread_condattr_t of_cond;
	pthread_mutexattr_init(&of_mutex);
	pthread_mutexattr_settype(&of_mutex, kind);
	pthread_mutex_init(&mutex, &of_mutex);
	pthread_rwlockattr_init(&of_rwlock);
	pthread_rwlockattr_setkind_np(&of_rwlock, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&rwlock, kind == PTHREAD_MUTEX_NORMAL ? NULL : &of_rwlock);
	pthread_condattr_init(&of_cond);
	pthread_condattr_setpshared(&of_cond, shared);
	pthread_cond_init(&cond, &of_cond);
}

static void end(const char *name, int waited)
{
	for (int i = 0; i < waited; i++)
		join(waiters[i].thread);
	IS(count, waited);
	for (int i = 1; i < count; i++)
		if (!is_before(served[i - 1], served[i])) {
			fprintf(stderr, "%s:", name);
			for (int j = 0; j < count; j++)
				fprintf(stderr, " %d%s", served[j]->priority,
					writes(served[j]) ? "" : "r");
			fputc('\n', stderr);
			failures++;
			break;
		}
	IS(pthread_mutex_destroy(&mutex), 0);
	IS(pthread_rwlock_destroy(&rwlock), 0);
	IS(pthread_cond_destroy(&cond), 0);
}

/* Waiters arrive in one of two random ways, while the caller holds the object that they wait for;
 * then `wake` is called. */
static void by_lot(const char *name, enum way one, enum way other, int priorities,
		   void (*wake)(int))
{
	int waits = one == WAIT || one == TIMED_WAIT, ordinary = waits || !ours ? 0 : ORDINARY;
	if (!waits) {
		IS(pthread_mutex_lock(&mutex), 0);
		IS(pthread_rwlock_wrlock(&rwlock), 0);
	}
	count = 0;
	for (int i = 0; i < WAITERS + ordinary; i++) {
		/* The ordinary ones here and there, one of them first. */
		int plain = ordinary && i % (WAITERS / ORDINARY + 1) == 0;
		waiters[i].priority = plain ? 0 : LOWEST + rand() % priorities;
		waiters[i].came = i;
		waiters[i].way = rand() % 2 ? one : other;
		begin(&waiters[i]);
	}
	if (wake)
		wake(WAITERS);
	else {
		IS(pthread_mutex_unlock(&mutex), 0);
		IS(pthread_rwlock_unlock(&rwlock), 0);
	}
	end(name, WAITERS + ordinary);
}

static void signals(int waited)
{
	for (int i = 0; i < waited; i++) {
		IS(pthread_cond_signal(&cond), 0);
		while (count <= i)
			usleep(200);
	}
}

static void broadcast_held(int waited)
{
	(void)waited;
	IS(pthread_mutex_lock(&mutex), 0);
	IS(pthread_cond_broadcast(&cond), 0);
	IS(pthread_mutex_unlock(&mutex), 0);
}

static void broadcast(int waited)
{
	(void)waited;
	IS(pthread_cond_broadcast(&cond), 0);
}

/* The mutex is wanted by those that were notified and by others. */
static void broadcast_among_others(void)
{
	set_up(PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE);
	count = 0;
	for (int i = 0; i < 32; i++) {
		if (i == 16) {
			IS(pthread_mutex_lock(&mutex), 0);
			IS(pthread_cond_broadcast(&cond), 0);
		}
		waiters[i].priority = LOWEST + rand() % (HIGHEST - LOWEST);
		/* Of equals, those may be first that were notified, or the others. */
		for (int j = 0; j < i; j++)
			if (waiters[j].priority == waiters[i].priority)
				waiters[i].priority++, j = -1;
		waiters[i].came = i;
		waiters[i].way = i < 16 ? WAIT : LOCK;
		begin(&waiters[i]);
	}
	usleep(20000);
	IS(pthread_mutex_unlock(&mutex), 0);
	end("broadcast among others", 32);
}

/* While readers hold the lock and a writer waits, only a reader more urgent than the writer gets
 * the lock. */
static void reader_above_writer(void)
{
	set_up(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PROCESS_PRIVATE);
	IS(pthread_rwlock_rdlock(&rwlock), 0);
	count = 0;
	static const int priorities[] = {5, 5, 3, 20};
	for (int i = 0; i < 4; i++) {
		waiters[i].priority = priorities[i];
		waiters[i].came = i;
		waiters[i].way = i ? READ : WRITE;
		if (i == 3) {
			IS(pthread_rwlock_tryrdlock(&rwlock), EBUSY);
			IS(count, 0);
			struct sched_param parameter = {.sched_priority = 20};
			pthread_attr_t attributes;
			pthread_attr_init(&attributes);
			pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
			pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
			pthread_attr_setschedparam(&attributes, &parameter);
			struct waiter *waiter = &waiters[i];
			pthread_t *thread = &waiter->thread;
			IS(pthread_create(thread, &attributes, wait_and_note, waiter), 0);
			/* The caller still reads. */
			while (!count)
				usleep(1000);
			YES(served[0] == &waiters[3]);
			usleep(20000);
			IS(count, 1);
		} else
			begin(&waiters[i]);
	}
	IS(pthread_rwlock_unlock(&rwlock), 0);
	end("a reader above a writer", 4);
}

/* A waiter that gives up leaves the others in their order, wherever it was. */
static void *give_up(void *argument)
{
	(void)argument;
	struct sched_param parameter = {.sched_priority = 30};
	IS(sched_setscheduler(0, SCHED_FIFO, &parameter), 0);
	struct timespec soon = in_ms(CLOCK_REALTIME, 5);
	IS(pthread_mutex_timedlock(&mutex, &soon), ETIMEDOUT);
	return NULL;
}

static void after_one_gave_up(void)
{
	set_up(PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE);
	IS(pthread_mutex_lock(&mutex), 0);
	count = 0;
	for (int i = 0; i < 16; i++) {
		if (i % 4 == 2)
			elsewhere(give_up, NULL);
		waiters[i].priority = LOWEST + rand() % 8;
		waiters[i].came = i;
		waiters[i].way = LOCK;
		begin(&waiters[i]);
	}
	IS(pthread_mutex_unlock(&mutex), 0);
	end("after some gave up", 16);
}

int main(int arguments, char **argument)
{
	watchdog();
	ours = arguments > 1 && !strcmp(argument[1], "ours");
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	IS(sched_setaffinity(0, sizeof one, &one), 0);
	struct sched_param lowest = {.sched_priority = 1};
	if (sched_setscheduler(0, SCHED_FIFO, &lowest))
		return 77;
	srand(1);
	static const struct {
		const char *name;
		int kind;
		enum way one, other;
	} locks[] = {
		{"normal", PTHREAD_MUTEX_NORMAL, LOCK, LOCK},
		{"timed", PTHREAD_MUTEX_NORMAL, TIMED, CLOCKED},
		{"timed or not", PTHREAD_MUTEX_NORMAL, LOCK, TIMED},
		{"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, LOCK, LOCK},
		{"recursive", PTHREAD_MUTEX_RECURSIVE, LOCK, TIMED},
		{"error-checking", PTHREAD_MUTEX_ERRORCHECK, LOCK, TIMED},
		{"writers", PTHREAD_MUTEX_NORMAL, WRITE, TIMED_WRITE},
		{"writers, preferred", PTHREAD_MUTEX_ERRORCHECK, WRITE, CLOCKED_WRITE},
	};
	for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
		set_up(locks[i].kind, PTHREAD_PROCESS_PRIVATE);
		by_lot(locks[i].name, locks[i].one, locks[i].other, HIGHEST - LOWEST, NULL);
		/* Many that are equal. */
		set_up(locks[i].kind, PTHREAD_PROCESS_PRIVATE);
		by_lot(locks[i].name, locks[i].one, locks[i].other, 3, NULL);
	}
	static void (*const wakes[])(int) = {signals, broadcast_held, broadcast};
	for (int i = 0; i < 3; i++) {
		set_up(PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_PRIVATE);
		by_lot("condition", WAIT, TIMED_WAIT, HIGHEST - LOWEST, wakes[i]);
		set_up(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PROCESS_PRIVATE);
		by_lot("condition, equals", WAIT, WAIT, 3, wakes[i]);
	}
	set_up(PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_SHARED);
	by_lot("shared condition", WAIT, TIMED_WAIT, HIGHEST - LOWEST, broadcast_held);
	broadcast_among_others();
	after_one_gave_up();
	if (ours) {
		for (int kind = 0; kind < 2; kind++) {
			int of = kind ? PTHREAD_MUTEX_ERRORCHECK : PTHREAD_MUTEX_NORMAL;
			set_up(of, PTHREAD_PROCESS_PRIVATE);
			by_lot("readers and writers", READ, WRITE, HIGHEST - LOWEST, NULL);
			set_up(of, PTHREAD_PROCESS_PRIVATE);
			by_lot("readers and writers, equals", TIMED_READ, TIMED_WRITE, 3, NULL);
		}
		reader_above_writer();
	}
	return failures != 0;
}
