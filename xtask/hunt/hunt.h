/* What the parts of the hunted program share.
 *
 * | file | what |
 * |---|---|
 * | `hunt.c` | the plan that a seed makes, the threads, and the pest among them |
 * | `locks.c` | threads that lock: mutexes of three kinds, spinlocks, a signal handler that tries |
 * | `sharers.c` | threads that read and write: readers-writer locks of three kinds |
 * | `tokens.c` | threads that wait: a ring with a token, a bounded buffer with cancellation |
 * | `child.c` | what the child of a fork does with a mutex that threads of its parent wait for |
 *
 * Two things show a defect of the locks under it. A section that is not exclusive finds its two
 * words unequal, and the program says so and aborts. A lost wake-up leaves a thread asleep for
 * good: nothing here, the end of the program included, wakes a thread but the one notification
 * that is owed to it. The watchdog sees that from outside, on the board. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The board: what the program shows to the watchdog, in a shared file. `board.rs` has the same. */
enum { MAGIC = 0x746e7568, SLOTS = 64, OBJECTS = 64 };
enum count { TIMEOUTS, CANCELS, FORKS, SIGNALS, COUNTS };
enum role { ABSENT, PEST, CHILD, LOCKER, MEMBER, PRODUCER, CONSUMER, NEIGHBOUR, SHARER };
enum object { NOTHING, MUTEX, COND, SPIN, RWLOCK };

struct board {
	uint64_t magic;
	/* The child that the pest waits for, or 0. */
	uint64_t child;
	uint64_t counts[4];
	/* The worker of each slot, and how much it has done. */
	uint64_t roles[SLOTS], progress[SLOTS];
	struct {
		uint64_t kind, address;
	} objects[OBJECTS];
};

extern struct board *board;
/* Workers of slots 0 and 1: the pest, and the child of a fork. */
enum { PEST_SLOT, CHILD_SLOT, FIRST_SLOT };

/* The program is to end; set once. */
extern int stopping;

static inline int stops(void)
{
	return __atomic_load_n(&stopping, __ATOMIC_RELAXED);
}

static inline void progress(int slot)
{
	__atomic_fetch_add(&board->progress[slot], 1, __ATOMIC_RELAXED);
}

static inline void count(enum count what)
{
	__atomic_fetch_add(&board->counts[what], 1, __ATOMIC_RELAXED);
}

/* Says what is wrong, and aborts. */
_Noreturn void broken(const char *what, long code);

/* Every call that must succeed goes through this. */
#define MUST(call)                                                                                 \
	do {                                                                                       \
		long code_ = (call);                                                               \
		if (code_)                                                                         \
			broken(#call, code_);                                                      \
	} while (0)

/* Random numbers: each thread has its own, from the seed and its slot. */
struct chance {
	uint64_t state;
};

uint64_t next(struct chance *chance);

static inline uint64_t below(struct chance *chance, uint64_t end)
{
	return next(chance) % end;
}

static inline int one_in(struct chance *chance, uint64_t n)
{
	return below(chance, n) == 0;
}

/* What each thread is started with. */
struct worker {
	pthread_t thread;
	int slot, role, at;
	struct chance chance;
};

struct timespec after_ns(clockid_t clock, uint64_t ns);
void spin_for(uint64_t ns);
void show(enum object kind, const void *address);

/* Two words that are equal while no thread is in the section. */
struct guarded {
	pthread_mutex_t mutex;
	int kind;
	volatile uint64_t first, second;
};

void guard(struct guarded *guarded, int kind);
void section(struct guarded *guarded, uint64_t ns);

/* locks.c */
void set_up_locks(struct chance *chance, uint64_t longest_ns);
void *locker(void *worker);
void try_in_handler(int signal);
/* Held by the pest when it forks; the handler and the lockers want it too. */
extern struct guarded forked, handled;

/* sharers.c */
void set_up_shared(struct chance *chance, uint64_t longest_ns);
void *sharer(void *worker);
/* Held by the pest when it forks, and wanted by sharers. The child makes it anew: the C library
 * takes its writer for the parent's thread, and keeps count of readers that are not there. */
extern pthread_rwlock_t forked_shared;

/* tokens.c */
void set_up_tokens(struct chance *chance, int members);
void *member(void *worker);
void *producer(void *worker);
void *consumer(void *worker);
/* Returns when a consumer has taken an item since the call. */
void await_consumption(void);
/* After the producers have ended: ends `consumers` consumers. */
void end_consumers(int consumers);
void check_buffer(void);

/* child.c */
void fork_once(struct chance *chance);
