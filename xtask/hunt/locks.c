/* Threads that lock. */
#include "hunt.h"

enum { MOST = 4 };

static struct guarded mutexes[MOST];
static int used;
static uint64_t longest;
static pthread_spinlock_t spinlock;
static volatile uint64_t spun[2];
struct guarded forked, handled;

void guard(struct guarded *guarded, int kind)
{
	pthread_mutexattr_t attributes;
	MUST(pthread_mutexattr_init(&attributes));
	MUST(pthread_mutexattr_settype(&attributes, kind));
	MUST(pthread_mutex_init(&guarded->mutex, &attributes));
	MUST(pthread_mutexattr_destroy(&attributes));
	guarded->kind = kind;
	show(MUTEX, &guarded->mutex);
}

void set_up_locks(struct chance *chance, uint64_t longest_ns)
{
	static const int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_NORMAL,
				    PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
	longest = longest_ns;
	used = 1 + below(chance, MOST);
	for (int at = 0; at < used; at++)
		guard(&mutexes[at], kinds[below(chance, 4)]);
	guard(&forked, PTHREAD_MUTEX_NORMAL);
	guard(&handled, PTHREAD_MUTEX_NORMAL);
	MUST(pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE));
	show(SPIN, (const void *)&spinlock);
}

void section(struct guarded *guarded, uint64_t ns)
{
	uint64_t seen = guarded->first;
	if (guarded->second != seen)
		broken("a section is not exclusive: two words at its begin", seen);
	guarded->first = seen + 1;
	spin_for(ns);
	if (guarded->first != seen + 1 || guarded->second != seen)
		broken("a section is not exclusive: two words at its end", seen);
	guarded->second = seen + 1;
}

/* Locks in one of the four ways; returns whether it was had. */
static int acquire(pthread_mutex_t *mutex, struct chance *chance)
{
	struct timespec until;
	int code;
	switch (below(chance, 8)) {
	case 0:
	case 1:
		code = pthread_mutex_trylock(mutex);
		if (code == EBUSY)
			return 0;
		break;
	case 2:
		until = after_ns(CLOCK_REALTIME, below(chance, 200000));
		code = pthread_mutex_timedlock(mutex, &until);
		break;
	case 3:
		until = after_ns(CLOCK_MONOTONIC, below(chance, 200000));
		code = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
		break;
	default:
		code = pthread_mutex_lock(mutex);
	}
	if (code == ETIMEDOUT) {
		count(TIMEOUTS);
		return 0;
	}
	MUST(code);
	return 1;
}

/* What the kind of a mutex that the caller holds answers. */
static void provoke(struct guarded *guarded)
{
	if (guarded->kind == PTHREAD_MUTEX_RECURSIVE) {
		MUST(pthread_mutex_lock(&guarded->mutex));
		MUST(pthread_mutex_unlock(&guarded->mutex));
	} else if (guarded->kind == PTHREAD_MUTEX_ERRORCHECK) {
		int code = pthread_mutex_lock(&guarded->mutex);
		if (code != EDEADLK)
			broken("an error-checking mutex was locked again", code);
	} else if (pthread_mutex_trylock(&guarded->mutex) != EBUSY) {
		broken("a normal mutex was had by its owner", 0);
	}
}

static struct guarded *pick(struct chance *chance)
{
	switch (below(chance, 8)) {
	case 0:
		return &forked;
	case 1:
		return &handled;
	default:
		return &mutexes[below(chance, used)];
	}
}

static void spin_once(struct chance *chance)
{
	if (one_in(chance, 2))
		MUST(pthread_spin_lock(&spinlock));
	else if (pthread_spin_trylock(&spinlock))
		return;
	uint64_t seen = spun[0];
	if (spun[1] != seen)
		broken("a spinlock is not exclusive", seen);
	spun[0] = seen + 1;
	spun[1] = seen + 1;
	MUST(pthread_spin_unlock(&spinlock));
}

static void lock_once(struct chance *chance)
{
	struct guarded *outer = pick(chance);
	if (!acquire(&outer->mutex, chance))
		return;
	section(outer, below(chance, longest + 1));
	if (one_in(chance, 8))
		provoke(outer);
	/* Two at a time, in the order of their addresses. */
	struct guarded *inner = pick(chance);
	if (one_in(chance, 8) && inner > outer && acquire(&inner->mutex, chance)) {
		section(inner, 0);
		MUST(pthread_mutex_unlock(&inner->mutex));
	}
	if (one_in(chance, 64))
		sched_yield();
	MUST(pthread_mutex_unlock(&outer->mutex));
}

void *locker(void *argument)
{
	struct worker *worker = argument;
	while (!stops()) {
		if (one_in(&worker->chance, 10))
			spin_once(&worker->chance);
		else
			lock_once(&worker->chance);
		spin_for(below(&worker->chance, 4) * longest / 4);
		progress(worker->slot);
	}
	return NULL;
}

/* A cancellation that strikes here must not leave the mutex locked: a thread that waits on a
 * condition variable may be interrupted where it can be cancelled at any instruction. */
void try_in_handler(int signal)
{
	int saved = errno, state;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (pthread_mutex_trylock(&handled.mutex) == 0) {
		section(&handled, 0);
		MUST(pthread_mutex_unlock(&handled.mutex));
	}
	pthread_setcancelstate(state, &state);
	errno = saved;
	(void)signal;
}
