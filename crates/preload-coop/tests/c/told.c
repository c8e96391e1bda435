/* A loop announces its next release time before waits of all kinds: no wait lasts longer, and a
 * time that never comes has no effect. The loop also changes its user, to the same one. */
#define _GNU_SOURCE
#include <sys/time.h>

#include "antiphon_coop.h"
#include "ways.h"

#define MS 1000000LL

static void handle(int signal)
{
	(void)signal;
}

static void is_told_in_time(enum way way, int file, int64_t ms)
{
	for (int64_t in_ms = -20; in_ms <= 20; in_ms += 20) {
		int64_t release = now_ns() + in_ms * MS;
		ANTIPHON_COOP_RELEASE(release);
		CHECK(wait_by(way, file, ms, NULL) == 0);
		CHECK(now_ns() >= release);
	}
}

static void has_none(enum way way, int file, uint64_t never)
{
	struct itimerval soon = { { 0, 30000 }, { 0, 30000 } }, none = { 0 };
	int64_t before = now_ns();
	ANTIPHON_COOP_RELEASE(never);
	CHECK(wait_by(way, file, 30, NULL) == 0);
	CHECK(now_ns() - before >= 30 * MS);
	CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
	ANTIPHON_COOP_RELEASE(never);
	CHECK(wait_by(way, file, -1, NULL) == -1 && errno == EINTR);
	CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
}

int main(void)
{
	struct sigaction action = { .sa_handler = handle };
	int empty[2];
	CHECK(pipe(empty) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
	become_loop();
	for (enum way way = EPOLL; way < WAYS; way++) {
		is_told_in_time(way, empty[0], -1);
		is_told_in_time(way, empty[0], 600000);
		has_none(way, empty[0], UINT64_MAX);
		has_none(way, empty[0], INT64_MAX);
		has_none(way, empty[0], 1ULL << 62);
	}
	/* The C library makes all threads do this, and waits for them. */
	CHECK(setgid(getgid()) == 0 && setuid(getuid()) == 0);
	return 0;
}
