/* Threads that read and write under readers-writer locks. */
#include "hunt.h"

enum { MOST = 3 };

/* Two words that are equal while no writer is in the section. */
struct shared {
	pthread_rwlock_t lock;
	int kind;
	volatile uint64_t first, second;
};

static struct shared locks[MOST];
static int used;
static uint64_t longest;
pthread_rwlock_t forked_shared = PTHREAD_RWLOCK_INITIALIZER;

void set_up_shared(struct chance *chance, uint64_t longest_ns)
{
	static const int kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP,
				    PTHREAD_RWLOCK_PREFER_WRITER_NP,
				    PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
	longest = longest_ns;
	used = 1 + below(chance, MOST);
	for (int at = 0; at < used; at++) {
		struct shared *shared = &locks[at];
		pthread_rwlockattr_t attributes;
		shared->kind = kinds[below(chance, 3)];
		MUST(pthread_rwlockattr_init(&attributes));
		MUST(pthread_rwlockattr_setkind_np(&attributes, shared->kind));
		MUST(pthread_rwlock_init(&shared->lock, &attributes));
		MUST(pthread_rwlockattr_destroy(&attributes));
		show(RWLOCK, &shared->lock);
	}
	show(RWLOCK, &forked_shared);
}

static struct timespec soon(struct chance *chance, clockid_t clock)
{
	return after_ns(clock, below(chance, 500000));
}

/* Whether a call has the lock now. */
static int had(int code)
{
	if (code == ETIMEDOUT)
		count(TIMEOUTS);
	else if (code != EBUSY)
		MUST(code);
	return code == 0;
}

static int acquire_to_read(struct shared *shared, struct chance *chance)
{
	struct timespec until;
	switch (below(chance, 8)) {
	case 0:
		return had(pthread_rwlock_tryrdlock(&shared->lock));
	case 1:
		until = soon(chance, CLOCK_REALTIME);
		return had(pthread_rwlock_timedrdlock(&shared->lock, &until));
	case 2:
		until = soon(chance, CLOCK_MONOTONIC);
		return had(pthread_rwlock_clockrdlock(&shared->lock, CLOCK_MONOTONIC, &until));
	default:
		return had(pthread_rwlock_rdlock(&shared->lock));
	}
}

/* Kinds that prefer readers may starve a writer for good, and the watchdog would call it a hang:
 * there writers give up. */
static int acquire_to_write(struct shared *shared, struct chance *chance)
{
	int patient = shared->kind == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
	struct timespec until;
	switch (below(chance, patient ? 8 : 3)) {
	case 0:
		return had(pthread_rwlock_trywrlock(&shared->lock));
	case 1:
		until = soon(chance, CLOCK_REALTIME);
		return had(pthread_rwlock_timedwrlock(&shared->lock, &until));
	case 2:
		until = soon(chance, CLOCK_MONOTONIC);
		return had(pthread_rwlock_clockwrlock(&shared->lock, CLOCK_MONOTONIC, &until));
	default:
		return had(pthread_rwlock_wrlock(&shared->lock));
	}
}

static void read_once(struct shared *shared, struct chance *chance)
{
	if (!acquire_to_read(shared, chance))
		return;
	uint64_t seen = shared->first;
	/* A reader that is in gets in again, past writers that wait. */
	int again = shared->kind != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP
		    && one_in(chance, 8);
	if (again)
		MUST(pthread_rwlock_rdlock(&shared->lock));
	spin_for(below(chance, longest + 1));
	if (shared->first != seen || shared->second != seen)
		broken("a writer was in beside a reader", seen);
	if (again)
		MUST(pthread_rwlock_unlock(&shared->lock));
	MUST(pthread_rwlock_unlock(&shared->lock));
}

static void write_once(struct shared *shared, struct chance *chance)
{
	if (!acquire_to_write(shared, chance))
		return;
	uint64_t seen = shared->first;
	if (shared->second != seen)
		broken("a writer is not alone: two words at its begin", seen);
	shared->first = seen + 1;
	spin_for(below(chance, longest + 1));
	if (one_in(chance, 16) && pthread_rwlock_wrlock(&shared->lock) != EDEADLK)
		broken("a writer was let in again", 0);
	if (shared->first != seen + 1 || shared->second != seen)
		broken("a writer is not alone: two words at its end", seen);
	shared->second = seen + 1;
	MUST(pthread_rwlock_unlock(&shared->lock));
}

void *sharer(void *argument)
{
	struct worker *worker = argument;
	struct chance *chance = &worker->chance;
	while (!stops()) {
		struct shared *shared = &locks[below(chance, used)];
		if (one_in(chance, 4))
			write_once(shared, chance);
		else
			read_once(shared, chance);
		if (one_in(chance, 8)) {
			MUST(pthread_rwlock_rdlock(&forked_shared));
			MUST(pthread_rwlock_unlock(&forked_shared));
		}
		spin_for(below(chance, 4) * longest / 4);
		progress(worker->slot);
	}
	return NULL;
}
