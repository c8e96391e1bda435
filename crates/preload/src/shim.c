/* The parts that the ABI requires to be in C: a cancellable sleep, thread-local storage without a
 * call, and old symbol versions.
 *
 * A cancellation unwinds the stack of the waiting thread. A Rust frame must not be unwound this way
 * (the library is built with panic=abort), so the functions that wait are here, and call Rust
 * before and after the sleep, never around it. Cancellation is asynchronous only during the system
 * call, as in the C library's own waits. */

#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* `cond.rs` declares the same layout. */
struct wait {
	const uint32_t *word;
	const struct timespec *until;
	uint32_t expected;
	int operation;
	uint64_t private_words[20];
};

/* `theirs.rs` declares the same size. */
struct observed {
	uint64_t private_words[10];
};

enum { FORWARD = -1, NO_CLOCK = -1, CANCELLED = -1 };
enum way { WAIT, TIMEDWAIT, CLOCKWAIT };

/* Hidden from other objects. */
#pragma GCC visibility push(hidden)
int antiphon_cond_begin(struct wait *wait, void *cond, void *mutex, int clock,
			const struct timespec *until, const void *site);
int antiphon_cond_sleeps(struct wait *wait);
void antiphon_cond_slept(struct wait *wait, int code);
int antiphon_cond_end(struct wait *wait);
void antiphon_cond_cancelled(struct wait *wait);
int antiphon_observed_begin(struct observed *observed, void *cond, void *mutex, clockid_t clock,
			    const struct timespec *until, const void *site);
void antiphon_observed_end(struct observed *observed, int code);

typedef int wait_function(void *, void *);
typedef int timed_function(void *, void *, const struct timespec *);
typedef int clock_function(void *, void *, clockid_t, const struct timespec *);
wait_function *antiphon_real_cond_wait(void);
timed_function *antiphon_real_cond_timedwait(void);
clock_function *antiphon_real_cond_clockwait(void);

typedef int join_function(pthread_t, void **);
void antiphon_thread_begins(uintptr_t start, uint64_t number);
void antiphon_thread_ends(void);
uint32_t antiphon_joins(pthread_t thread);
void antiphon_joined(uint32_t number);
join_function *antiphon_real_join(void);
void *antiphon_thread_began(void *argument);
#pragma GCC visibility pop

/* Makes the futex call by the instruction, because other libraries, this one among them, are in
 * front of the C library's `syscall`. Returns the kernel's result. */
static inline __attribute__((always_inline)) long wait_on_futex(const struct wait *wait)
{
#if defined(__x86_64__)
	long result = SYS_futex;
	register const struct timespec *until __asm__("r10") = wait->until;
	register void *second __asm__("r8") = NULL;
	register long places __asm__("r9") = FUTEX_BITSET_MATCH_ANY;
	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(wait->word), "S"((long)wait->operation), "d"((long)wait->expected),
			   "r"(until), "r"(second), "r"(places)
			 : "rcx", "r11", "memory");
	return result;
#else
	register long number __asm__("x8") = SYS_futex;
	register long result __asm__("x0") = (long)wait->word;
	register long operation __asm__("x1") = wait->operation;
	register long expected __asm__("x2") = wait->expected;
	register const struct timespec *until __asm__("x3") = wait->until;
	register void *second __asm__("x4") = NULL;
	register long places __asm__("x5") = FUTEX_BITSET_MATCH_ANY;
	__asm__ volatile("svc 0"
			 : "+r"(result)
			 : "r"(number), "r"(operation), "r"(expected), "r"(until), "r"(second),
			   "r"(places)
			 : "memory");
	return result;
#endif
}

/* The only place where a cancellation takes effect. Nothing here needs a cleanup; the caller is at
 * a call instruction meanwhile, so its cleanup is found whichever instruction is interrupted here.
 * No call goes through a linkage table: a linker may leave no unwind information there
 * (build.rs). */
static __attribute__((noinline)) int sleep_cancellably(const struct wait *wait)
{
	int type;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	long result = wait_on_futex(wait);
	pthread_setcanceltype(type, &type);
	return result < 0 ? (int)-result : 0;
}

static void cancelled(struct wait **wait)
{
	if (*wait)
		antiphon_cond_cancelled(*wait);
}

static int wait_begun(struct wait *wait)
{
	__attribute__((cleanup(cancelled))) struct wait *open = wait;
	while (antiphon_cond_sleeps(wait))
		antiphon_cond_slept(wait, sleep_cancellably(wait));
	open = NULL;
	return antiphon_cond_end(wait);
}

static int real_wait(enum way way, void *cond, void *mutex, clockid_t clock,
		     const struct timespec *until)
{
	switch (way) {
	case WAIT:
		return antiphon_real_cond_wait()(cond, mutex);
	case TIMEDWAIT:
		return antiphon_real_cond_timedwait()(cond, mutex, until);
	default:
		return antiphon_real_cond_clockwait()(cond, mutex, clock, until);
	}
}

static void observed_cancelled(struct observed **observed)
{
	if (*observed)
		antiphon_observed_end(*observed, CANCELLED);
}

/* The C library's wait. Its own cleanup locks the mutex before ours records that. */
static int wait_observed(struct observed *observed, enum way way, void *cond, void *mutex,
			 clockid_t clock, const struct timespec *until)
{
	__attribute__((cleanup(observed_cancelled))) struct observed *open = observed;
	int code = real_wait(way, cond, mutex, clock, until);
	open = NULL;
	antiphon_observed_end(observed, code);
	return code;
}

static int forward(enum way way, void *cond, void *mutex, clockid_t clock,
		   const struct timespec *until, const void *site)
{
	struct observed observed;
	clockid_t asked = way == CLOCKWAIT ? clock : CLOCK_REALTIME;
	if (antiphon_observed_begin(&observed, cond, mutex, asked, until, site))
		return wait_observed(&observed, way, cond, mutex, clock, until);
	return real_wait(way, cond, mutex, clock, until);
}

static inline __attribute__((always_inline)) int wait_for(enum way way, void *cond, void *mutex,
							  clockid_t clock,
							  const struct timespec *until)
{
	const void *site = __builtin_return_address(0);
	struct wait wait;
	int code = antiphon_cond_begin(&wait, cond, mutex, clock, until, site);
	if (code == FORWARD)
		return forward(way, cond, mutex, clock, until, site);
	return code ? code : wait_begun(&wait);
}

int antiphon_cond_wait(void *cond, void *mutex)
{
	return wait_for(WAIT, cond, mutex, NO_CLOCK, NULL);
}

int antiphon_cond_timedwait(void *cond, void *mutex, const struct timespec *until)
{
	return wait_for(TIMEDWAIT, cond, mutex, NO_CLOCK, until);
}

int antiphon_cond_clockwait(void *cond, void *mutex, clockid_t clock, const struct timespec *until)
{
	/* An invalid clock, which for `antiphon_cond_begin` would mean the object's own. */
	if (clock == NO_CLOCK)
		return EINVAL;
	return wait_for(CLOCKWAIT, cond, mutex, clock, until);
}

/* `recorder/events.rs` declares the same layout. */
struct begin {
	void *(*start)(void *);
	void *argument;
	uint64_t number;
};

static void ended(const int *begun)
{
	(void)begun;
	antiphon_thread_ends();
}

/* The start function of a recorded thread. However the thread ends, its frames are unwound, so the
 * end is recorded. */
void *antiphon_thread_began(void *argument)
{
	struct begin begin = *(struct begin *)argument;
	free(argument);
	antiphon_thread_begins((uintptr_t)begin.start, begin.number);
	__attribute__((cleanup(ended), unused)) const int begun = 1;
	return begin.start(begin.argument);
}

/* A cancellation point. A cancelled wait has no end in the recording. */
int antiphon_join(pthread_t thread, void **result)
{
	join_function *join = antiphon_real_join();
	uint32_t number = antiphon_joins(thread);
	int code = join(thread, result);
	if (number)
		antiphon_joined(number);
	return code;
}

/* `thread.rs` declares the same layout, and uses the variable by its name. */
struct thread {
	uint64_t record;
	uint32_t id;
	uint32_t epoch;
	uint32_t ready;
	uint32_t holding;
	uint32_t nested;
	struct {
		uint64_t lock, since;
		uint32_t row, tag;
	} held[15];
	uint32_t pen[6];
	uint64_t span[6];
};

__thread struct thread antiphon_thread __attribute__((tls_model("initial-exec")));

/* The version that every C library has from 2.3.3 (x86-64) and 2.17 (AArch64) on. A plain link
 * would require GLIBC_2.34, in which this function moved to another file. */
#if defined(__x86_64__)
#define OLDEST "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#else
#error "which is the first version of the C library on this machine?"
#endif

__asm__(".symver old_dladdr1, dladdr1@" OLDEST);
int old_dladdr1(const void *address, void *about, void **object, int flags);

int antiphon_dladdr1(const void *address, void *about, void **object, int flags)
{
	return old_dladdr1(address, about, object, flags);
}

/* Rust's standard library refers to newer versions of these from its panic handler, which is linked
 * in though nothing here panics. It finds these instead; their functions are not needed: file names
 * in a backtrace, destructors of thread-local variables. */
struct stat;

static int unsupported(void)
{
	errno = ENOSYS;
	return -1;
}

int stat64(const char *path, struct stat *status)
{
	(void)path, (void)status;
	return unsupported();
}

int fstat64(int file, struct stat *status)
{
	(void)file, (void)status;
	return unsupported();
}

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	(void)key, (void)destructor;
	return ENOSYS;
}

int pthread_key_delete(pthread_key_t key)
{
	(void)key;
	return ENOSYS;
}

int pthread_setspecific(pthread_key_t key, const void *value)
{
	(void)key, (void)value;
	return ENOSYS;
}
