/* The results of the functions, with and without the library: readiness, timeouts, errors, signals,
 * masks, the time that select leaves in its timeout. */
#define _GNU_SOURCE
#include <limits.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "ways.h"

static volatile sig_atomic_t handled;

static void handle(int signal)
{
	(void)signal;
	handled++;
}

static void listen_to(int signal)
{
	struct sigaction action = { .sa_handler = handle };
	CHECK(sigaction(signal, &action, NULL) == 0);
}

static void ready_and_not(enum way way, int full, int empty)
{
	for (int64_t ms = -1; ms < 2; ms++) {
		errno = 77;
		CHECK(wait_by(way, full, ms, NULL) == 1);
		CHECK(errno == 77);
	}
	CHECK(wait_by(way, empty, 0, NULL) == 0);
	for (int64_t ms = 1; ms < 40; ms += 7) {
		int64_t before = now_ns();
		errno = 77;
		CHECK(wait_by(way, empty, ms, NULL) == 0);
		CHECK(errno == 77);
		CHECK(now_ns() - before >= ms * 1000000);
	}
	CHECK(wait_by(way, full, INT_MAX, NULL) == 1);
	CHECK(wait_by(way, full, -7, NULL) == 1);
}

/* A signal without SA_RESTART, and with it: such waits are never restarted. */
static void interrupted(enum way way, int empty)
{
	for (int endless = 0; endless < 2; endless++) {
		struct itimerval soon = { { 0, 30000 }, { 0, 30000 } }, never = { 0 };
		handled = 0;
		CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
		int result = wait_by(way, empty, endless ? -1 : 600000, NULL);
		CHECK(result == -1 && errno == EINTR && handled > 0);
		CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	}
}

/* A blocked signal that is pending is delivered in the wait, and nowhere else. */
static void masked(enum way way, int empty)
{
	if (way == EPOLL || way == POLL || way == SELECT)
		return;
	sigset_t usr, none, before, after;
	sigemptyset(&none);
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	CHECK(sigprocmask(SIG_BLOCK, &usr, &before) == 0);
	handled = 0;
	CHECK(raise(SIGUSR1) == 0 && handled == 0);
	CHECK(wait_by(way, empty, 5, &before) == -1 && errno == EINTR && handled == 1);
	CHECK(raise(SIGUSR1) == 0 && handled == 1);
	CHECK(wait_by(way, empty, 600000, &none) == -1 && errno == EINTR && handled == 2);
	CHECK(raise(SIGUSR1) == 0);
	CHECK(wait_by(way, empty, 5, NULL) == 0 && handled == 2);
	CHECK(sigprocmask(SIG_SETMASK, NULL, &after) == 0 && sigismember(&after, SIGUSR1));
	CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0 && handled == 3);
}

static void errors(int full)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct timespec bad = { 0, 1000000000 }, negative = { -1, 0 }, huge = { LONG_MAX, 999999999 };
	struct timeval negative_interval = { -1, 0 };
	struct pollfd one = { .fd = full, .events = POLLIN };
	/* Volatile, because the compiler would warn. */
	volatile int none = -1;
	int epoll = epoll_create1(0);
	CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, full, &event) == 0);
	for (int ms = -1; ms < 2; ms++) {
		CHECK(epoll_wait(-1, &event, 1, ms) == -1 && errno == EBADF);
		CHECK(epoll_wait(full, &event, 1, ms) == -1 && errno == EINVAL);
		CHECK(epoll_wait(epoll, &event, 0, ms) == -1 && errno == EINVAL);
		CHECK(epoll_pwait(epoll, &event, none, ms, NULL) == -1 && errno == EINVAL);
	}
	CHECK(epoll_pwait2(epoll, &event, 1, &bad, NULL) == -1 && errno == EINVAL);
	CHECK(epoll_pwait2(epoll, &event, 1, &huge, NULL) == 1);
	CHECK(ppoll(&one, 1, &bad, NULL) == -1 && errno == EINVAL);
	CHECK(ppoll(&one, 1, &negative, NULL) == -1 && errno == EINVAL);
	CHECK(ppoll(&one, 1, &huge, NULL) == 1);
	fd_set set;
	FD_ZERO(&set);
	FD_SET(full, &set);
	CHECK(select(-1, NULL, NULL, NULL, NULL) == -1 && errno == EINVAL);
	CHECK(select(0, NULL, NULL, NULL, &negative_interval) == -1 && errno == EINVAL);
	CHECK(pselect(full + 1, &set, NULL, NULL, &bad, NULL) == -1 && errno == EINVAL);
	CHECK(pselect(full + 1, &set, NULL, NULL, &huge, NULL) == 1);
	struct rlimit limit;
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	if (limit.rlim_cur < 1 << 20) {
		struct pollfd *many = calloc(limit.rlim_cur + 1, sizeof *many);
		CHECK(poll(many, limit.rlim_cur + 1, 0) == -1 && errno == EINVAL);
		free(many);
	}
	/* A closed epoll descriptor, and a closed file. */
	close(epoll);
	CHECK(epoll_wait(epoll, &event, 1, 0) == -1 && errno == EBADF);
	int gone = dup(full);
	FD_ZERO(&set);
	FD_SET(gone, &set);
	close(gone);
	CHECK(select(gone + 1, &set, NULL, NULL, NULL) == -1 && errno == EBADF);
	one.fd = gone;
	CHECK(poll(&one, 1, -1) == 1 && one.revents == POLLNVAL);
}

/* Linux writes the rest of the time to the timeout of select, and leaves others alone. */
static void left(int full, int empty)
{
	fd_set set;
	FD_ZERO(&set);
	struct timeval time = { 0, 20000 };
	CHECK(select(0, NULL, NULL, NULL, &time) == 0 && time.tv_sec == 0 && time.tv_usec == 0);
	CHECK(select(0, NULL, NULL, NULL, &time) == 0 && time.tv_sec == 0 && time.tv_usec == 0);
	FD_SET(full, &set);
	time = (struct timeval){ 1000, 0 };
	CHECK(select(full + 1, &set, NULL, NULL, &time) == 1 && FD_ISSET(full, &set));
	CHECK(time.tv_sec == 999 || (time.tv_sec < 1000 && time.tv_sec > 900));
	struct itimerval soon = { { 0, 30000 }, { 0, 30000 } }, never = { 0 };
	FD_ZERO(&set);
	FD_SET(empty, &set);
	time = (struct timeval){ 1000, 0 };
	CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
	CHECK(select(empty + 1, &set, NULL, NULL, &time) == -1 && errno == EINTR);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	CHECK(time.tv_sec > 900 && time.tv_sec < 1000);
	struct timespec same = { 0, 5000000 };
	CHECK(pselect(0, NULL, NULL, NULL, &same, NULL) == 0 && same.tv_nsec == 5000000);
	CHECK(ppoll(NULL, 0, &same, NULL) == 0 && same.tv_nsec == 5000000);
}

int main(void)
{
	int full[2], empty[2];
	CHECK(pipe(full) == 0 && pipe(empty) == 0 && write(full[1], "x", 1) == 1);
	listen_to(SIGALRM);
	listen_to(SIGUSR1);
	become_loop();
	for (enum way way = 0; way < WAYS; way++) {
		ready_and_not(way, full[0], empty[0]);
		interrupted(way, empty[0]);
		masked(way, empty[0]);
	}
	errors(full[0]);
	left(full[0], empty[0]);
	return 0;
}
