/* The functions that programs call, and other parts that the ABI requires to be in C.
 *
 * A wait is a cancellation point: it may unwind the stack of its thread. A Rust frame must not be
 * unwound this way (the library is built with panic=abort), so the waits are here, and call Rust
 * before and after, never around them:
 *
 *   wait_begins     others run; how long the wait is to be
 *   the C library   with the caller's arguments, but for that: masks, errors and EINTR are its own
 *   wait_ends       it is this thread's turn
 *
 * Cancellation is off while Rust runs, and errno is preserved. A wait of a signal handler while
 * Rust runs goes directly to the C library. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

#define NS 1000000000LL
enum { FOREVER = -1, AS_ASKED = -1 };

/* `entry.rs` declares the same layout. */
struct wait {
	int64_t limit_ns;
	uint64_t private_words[16];
};

/* Rust's state of a thread; `entry.rs` declares the same layout. */
struct thread {
	void *loop;
	uint32_t epoch, waits;
};

/* Hidden from other objects. */
#pragma GCC visibility push(hidden)
int antiphon_coop_begin(struct thread *thread, struct wait *wait, int64_t timeout_ns,
			uint64_t told_ns);
void antiphon_coop_end(struct thread *thread, struct wait *wait, int timed_out);
void antiphon_coop_leave(void *loop);
void antiphon_coop_at_exit_of(void *loop);
void antiphon_coop_told(uint64_t ns);
int antiphon_coop_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout);
int antiphon_coop_epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout,
			      const sigset_t *mask);
int antiphon_coop_epoll_pwait2(int epoll, struct epoll_event *events, int most,
			       const struct timespec *timeout, const sigset_t *mask);
int antiphon_coop_poll(struct pollfd *files, nfds_t count, int timeout);
int antiphon_coop_ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout,
			const sigset_t *mask);
int antiphon_coop_select(int count, fd_set *read, fd_set *write, fd_set *except,
			 struct timeval *timeout);
int antiphon_coop_pselect(int count, fd_set *read, fd_set *write, fd_set *except,
			  const struct timespec *timeout, const sigset_t *mask);
int antiphon_coop_poll_chk(struct pollfd *files, nfds_t count, int timeout, size_t bytes);
int antiphon_coop_ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *timeout,
			    const sigset_t *mask, size_t bytes);
#pragma GCC visibility pop

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

static __thread struct thread current INITIAL_EXEC;
/* State that a signal handler may access while Rust uses `current`: the next release time that the
 * program has announced; whether Rust runs; whether the thread has left. */
static __thread volatile uint64_t told_ns INITIAL_EXEC;
static __thread volatile bool busy INITIAL_EXEC, gone INITIAL_EXEC;

/* The value of this key is a thread's loop; the destructor makes the loop leave. */
static pthread_key_t key;
static atomic_bool key_made;

static void thread_ends(void *loop)
{
	gone = true;
	current.loop = NULL;
	antiphon_coop_leave(loop);
}

__attribute__((constructor)) static void make_key(void)
{
	if (pthread_key_create(&key, thread_ends) == 0)
		atomic_store_explicit(&key_made, true, memory_order_release);
}

void antiphon_coop_at_exit_of(void *loop)
{
	/* If this fails, other members detect that the thread has ended. */
	if (atomic_load_explicit(&key_made, memory_order_acquire))
		(void)pthread_setspecific(key, loop);
}

void antiphon_coop_told(uint64_t ns)
{
	told_ns = ns;
}

/* Calls Rust, with cancellation off and errno preserved. */
#define IN_RUST(...) \
	do { \
		int state, saved = errno; \
		busy = true; \
		atomic_signal_fence(memory_order_seq_cst); \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state); \
		__VA_ARGS__; \
		pthread_setcancelstate(state, NULL); \
		atomic_signal_fence(memory_order_seq_cst); \
		busy = false; \
		errno = saved; \
	} while (0)

/* Returns whether the library takes part in the wait: then `wait_ends` must follow it. */
static bool wait_begins(struct wait *wait, int64_t timeout_ns)
{
	int ours = 0;
	wait->limit_ns = AS_ASKED;
	if (busy || gone)
		return false;
	uint64_t told = told_ns;
	told_ns = 0;
	IN_RUST(ours = antiphon_coop_begin(&current, wait, timeout_ns, told));
	return ours;
}

static int wait_ends(struct wait *wait, int result)
{
	IN_RUST(antiphon_coop_end(&current, wait, result == 0));
	return result;
}

/* The next function of that name after ours; fails with ENOSYS if there is none. */
#define REAL(name) \
	({ \
		static _Atomic(__typeof__(&name)) real; \
		__typeof__(&name) found = atomic_load_explicit(&real, memory_order_relaxed); \
		if (!found) { \
			int saved = errno; \
			found = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
			atomic_store_explicit(&real, found, memory_order_relaxed); \
			errno = saved; \
		} \
		found; \
	})

static int missing(void)
{
	errno = ENOSYS;
	return -1;
}

/* Conversion of timeouts. Returns false for an invalid one, which goes to the C library. */

static int64_t of_ms(int ms)
{
	return ms < 0 ? FOREVER : ms * (NS / 1000);
}

static bool of_timespec(const struct timespec *time, int64_t *ns)
{
	*ns = FOREVER;
	if (!time)
		return true;
	if (time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec >= NS)
		return false;
	/* A timeout of centuries counts as endless. */
	if (time->tv_sec < INT32_MAX)
		*ns = time->tv_sec * NS + time->tv_nsec;
	return true;
}

static bool of_timeval(const struct timeval *time, int64_t *ns)
{
	*ns = FOREVER;
	if (!time)
		return true;
	if (time->tv_sec < 0 || time->tv_usec < 0)
		return false;
	if (time->tv_sec < INT32_MAX && time->tv_usec < INT32_MAX)
		*ns = time->tv_sec * NS + time->tv_usec * 1000;
	return true;
}

/* The timeout for the C library's wait: the time left, rounded up to whole units. */

static int in_ms(const struct wait *wait, int ms)
{
	if (wait->limit_ns == AS_ASKED)
		return ms;
	int64_t left = (wait->limit_ns + NS / 1000 - 1) / (NS / 1000);
	return left < INT_MAX ? (int)left : INT_MAX;
}

static const struct timespec *in_timespec(const struct wait *wait, const struct timespec *asked,
					  struct timespec *left)
{
	if (wait->limit_ns == AS_ASKED)
		return asked;
	*left = (struct timespec){ wait->limit_ns / NS, wait->limit_ns % NS };
	return left;
}

/* An `epoll` call with a timeout of 0 fails with EINTR only because the library made it wait; so do
 * the other functions, unless they wait for the signals of a mask. Then the call must be
 * repeated. */
static bool was_a_look(const struct wait *wait, int64_t asked_ns, int result)
{
	return result < 0 && errno == EINTR && asked_ns == 0 && wait->limit_ns > 0;
}

int antiphon_coop_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
	__typeof__(&epoll_wait) real = REAL(epoll_wait);
	struct wait wait;
	if (!wait_begins(&wait, of_ms(timeout)))
		return real(epoll, events, most, timeout);
	int result = real(epoll, events, most, in_ms(&wait, timeout));
	if (was_a_look(&wait, timeout, result))
		result = real(epoll, events, most, timeout);
	return wait_ends(&wait, result);
}

int antiphon_coop_epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout,
			 const sigset_t *mask)
{
	__typeof__(&epoll_pwait) real = REAL(epoll_pwait);
	struct wait wait;
	if (!wait_begins(&wait, of_ms(timeout)))
		return real(epoll, events, most, timeout, mask);
	int result = real(epoll, events, most, in_ms(&wait, timeout), mask);
	if (was_a_look(&wait, timeout, result))
		result = real(epoll, events, most, timeout, mask);
	return wait_ends(&wait, result);
}

int antiphon_coop_epoll_pwait2(int epoll, struct epoll_event *events, int most,
			  const struct timespec *timeout, const sigset_t *mask)
{
	__typeof__(&epoll_pwait2) real = REAL(epoll_pwait2);
	struct timespec left;
	struct wait wait;
	int64_t ns;
	if (!real)
		return missing();
	if (!of_timespec(timeout, &ns) || !wait_begins(&wait, ns))
		return real(epoll, events, most, timeout, mask);
	int result = real(epoll, events, most, in_timespec(&wait, timeout, &left), mask);
	if (was_a_look(&wait, ns, result))
		result = real(epoll, events, most, timeout, mask);
	return wait_ends(&wait, result);
}

int antiphon_coop_poll(struct pollfd *files, nfds_t count, int timeout)
{
	__typeof__(&poll) real = REAL(poll);
	struct wait wait;
	if (!wait_begins(&wait, of_ms(timeout)))
		return real(files, count, timeout);
	int result = real(files, count, in_ms(&wait, timeout));
	if (was_a_look(&wait, timeout, result))
		result = real(files, count, timeout);
	return wait_ends(&wait, result);
}

int antiphon_coop_ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout,
		   const sigset_t *mask)
{
	__typeof__(&ppoll) real = REAL(ppoll);
	struct timespec left;
	struct wait wait;
	int64_t ns;
	if (!of_timespec(timeout, &ns) || !wait_begins(&wait, ns))
		return real(files, count, timeout, mask);
	int result = real(files, count, in_timespec(&wait, timeout, &left), mask);
	if (!mask && was_a_look(&wait, ns, result))
		result = real(files, count, timeout, mask);
	return wait_ends(&wait, result);
}

int antiphon_coop_pselect(int count, fd_set *read, fd_set *write, fd_set *except,
		     const struct timespec *timeout, const sigset_t *mask)
{
	__typeof__(&pselect) real = REAL(pselect);
	struct timespec left;
	struct wait wait;
	int64_t ns;
	if (!of_timespec(timeout, &ns) || !wait_begins(&wait, ns))
		return real(count, read, write, except, timeout, mask);
	int result = real(count, read, write, except, in_timespec(&wait, timeout, &left), mask);
	if (!mask && was_a_look(&wait, ns, result))
		result = real(count, read, write, except, timeout, mask);
	return wait_ends(&wait, result);
}

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS + now.tv_nsec;
}

/* Linux stores the time left in `timeout` when the call returns, which is now. Only if it has
 * written to our copy: a personality may forbid that, and zero stays zero. */
static void what_is_left(struct timeval *timeout, const struct timeval *written,
			 const struct timeval *before, int64_t end_ns)
{
	bool was_left = before->tv_sec != 0 || before->tv_usec != 0;
	if (was_left && written->tv_sec == before->tv_sec && written->tv_usec == before->tv_usec)
		return;
	int64_t left = end_ns - now_ns();
	if (left < 0)
		left = 0;
	*timeout = (struct timeval){ left / NS, left % NS / 1000 };
}

int antiphon_coop_select(int count, fd_set *read, fd_set *write, fd_set *except,
		    struct timeval *timeout)
{
	__typeof__(&select) real = REAL(select);
	struct wait wait;
	int64_t ns;
	if (!of_timeval(timeout, &ns))
		return real(count, read, write, except, timeout);
	int64_t end_ns = ns > 0 ? now_ns() + ns : 0;
	if (!wait_begins(&wait, ns))
		return real(count, read, write, except, timeout);
	if (ns == FOREVER && wait.limit_ns == AS_ASKED)
		return wait_ends(&wait, real(count, read, write, except, timeout));
	struct timeval given = { 0 };
	if (wait.limit_ns == AS_ASKED) {
		given = *timeout;
	} else {
		int64_t us = (wait.limit_ns + 999) / 1000;
		given = (struct timeval){ us / 1000000, us % 1000000 };
	}
	const struct timeval before = given;
	int result = real(count, read, write, except, &given);
	if (was_a_look(&wait, ns, result))
		result = real(count, read, write, except, timeout);
	result = wait_ends(&wait, result);
	if (ns > 0)
		what_is_left(timeout, &given, &before, end_ns);
	return result;
}

/* The forms that a compiler replaces them with (_FORTIFY_SOURCE). */

int __poll_chk(struct pollfd *files, nfds_t count, int timeout, size_t bytes);
int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t bytes);

int antiphon_coop_poll_chk(struct pollfd *files, nfds_t count, int timeout, size_t bytes)
{
	/* The C library's form ends the program. */
	if (bytes / sizeof *files < count)
		return REAL(__poll_chk)(files, count, timeout, bytes);
	return antiphon_coop_poll(files, count, timeout);
}

int antiphon_coop_ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *timeout,
			    const sigset_t *mask, size_t bytes)
{
	if (bytes / sizeof *files < count)
		return REAL(__ppoll_chk)(files, count, timeout, mask, bytes);
	return antiphon_coop_ppoll(files, count, timeout, mask);
}
