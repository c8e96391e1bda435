/* Waits with a timeout of 0, of a late loop beside one that only wants the CPU: the late loop,
 * which was raised, repays the time meanwhile. Such waits by `epoll` are never interrupted; those
 * with a mask that admits a signal always are. */
#define _GNU_SOURCE
#include <sys/prctl.h>
#include <sys/time.h>

#include "antiphon_coop.h"
#include "ways.h"

#define MS 1000000LL

static volatile sig_atomic_t handled;

static void handle(int signal)
{
	(void)signal;
	handled++;
}

static void spin(int64_t ns)
{
	for (int64_t until = now_ns() + ns; now_ns() < until;)
		;
}

int main(void)
{
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = handle };
	int empty[2];
	CHECK(pipe(empty) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	int child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	become_loop();
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	sigset_t usr, none;
	sigemptyset(&none);
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	CHECK(sigprocmask(SIG_BLOCK, &usr, NULL) == 0);
	int64_t end = now_ns() + 2000 * MS, release = now_ns();
	for (int at = 0; now_ns() < end; at++) {
		while (release < now_ns())
			release += 5 * MS;
		ANTIPHON_COOP_RELEASE(release);
		if (at % 2 == 0) {
			CHECK(wait_by(at / 2 % (EPOLL_P2 + 1), empty[0], 0, NULL) == 0);
		} else {
			CHECK(raise(SIGUSR1) == 0);
			enum way way = at % 4 == 1 ? PPOLL : PSELECT;
			CHECK(wait_by(way, empty[0], 0, &none) == -1 && errno == EINTR);
		}
		spin(2 * MS);
	}
	CHECK(handled > 0 && kill(child, SIGKILL) == 0);
	return 0;
}
