/* Threads that share a CPU: which threads may join, halves, other threads, forks, and which members
 * are demoted for which reason. */
#include "domains.h"

enum { PLACES = 64 };

#define NEVER ANTIPHON_COOP_NEVER

static void what_there_is(void)
{
	char report[4096], cut[9];
	int here = antiphon_coop_available(report, sizeof report);
	IS(here & ANTIPHON_COOP_ALONE, ANTIPHON_COOP_ALONE);
	IS(here & ANTIPHON_COOP_BATON, ANTIPHON_COOP_BATON);
	IS(here >> 6, 0);
	IS(strncmp(report, "T0 ", 3), 0);
	YES(strstr(report, "\nT1 ") && strstr(report, "\nT3 ") && strstr(report, "no: "));
	memset(cut, 'x', sizeof cut);
	IS(antiphon_coop_available(cut, sizeof cut - 1), here);
	IS(strlen(cut), sizeof cut - 2);
	IS(cut[sizeof cut - 1], 'x');
	IS(memcmp(cut, report, sizeof cut - 2), 0);
	IS(antiphon_coop_available(cut, 0), here);
	IS(cut[0], 'T');
	IS(antiphon_coop_available(NULL, 0), here);
}

/* Options that are not as the header has them are refused, by members and by loops alike. */
static void refused(antiphon_loop_t *loop, const antiphon_coop_t *wrong)
{
	antiphon_coop_member_t *member = NULL;
	IS(antiphon_coop_join(&member, wrong), EINVAL);
	YES(member == NULL);
	IS(antiphon_loop_cooperate(loop, ANTIPHON_COOP_BATON, wrong), EINVAL);
}

static void arguments(void)
{
	char long_name[66];
	antiphon_loop_t *loop;
	antiphon_coop_status_t status;
	antiphon_coop_t wrong;
	IS(antiphon_loop_create(&loop), 0);
	refused(loop, (wrong = part(""), &wrong));
	refused(loop, (wrong = part("a/b"), &wrong));
	refused(loop, (wrong = part("\xff"), &wrong));
	memset(long_name, 'a', sizeof long_name);
	long_name[65] = 0;
	refused(loop, (wrong = part(long_name), &wrong));
	IS(antiphon_loop_cooperate(loop, ANTIPHON_COOP_AUTO, &wrong), EINVAL);
	wrong = part("wrong");
	wrong.kept = 1;
	refused(loop, &wrong);
	wrong = part("wrong");
	wrong.priority = 99;
	refused(loop, &wrong);
	wrong = part("wrong");
	wrong.slack_ns = 10000000001ull;
	refused(loop, &wrong);
	wrong = part("wrong");
	wrong.cpu = ANTIPHON_COOP_CPU(4000);
	refused(loop, &wrong);
	wrong = part("right");
	IS(antiphon_loop_cooperate(loop, 3, &wrong), EINVAL);
	IS(antiphon_loop_cooperate(loop, -1, NULL), EINVAL);
	antiphon_loop_coop_status(loop, &status);
	IS(status.tier, ANTIPHON_COOP_ALONE);
	IS(status.period_ns, 0);
	antiphon_loop_destroy(loop);
}

static void halves(void)
{
	antiphon_coop_member_t *member;
	antiphon_coop_t wanted = part("halves");
	antiphon_coop_answer_t answer = { 1, 1, 1 };
	antiphon_coop_status_t status;
	uint64_t until = 1, now;
	wanted.period_ns = 30 * MS;
	wanted.threshold_ns = 40 * MS;
	IS(antiphon_coop_join(&member, &wanted), 0);
	IS(antiphon_coop_status(member, &status), 0);
	IS(status.tier, ANTIPHON_COOP_BATON);
	IS(status.standing, ANTIPHON_COOP_PLAIN);
	IS(status.period_ns, 30 * MS);
	IS(status.min_slice_ns, MS / 10);
	IS(status.slack_ns, MS);
	IS(status.threshold_ns, 40 * MS);
	IS(antiphon_coop_poll(member, NEVER, NEVER, &answer), EINVAL);
	IS(antiphon_coop_after(member, &answer), EINVAL);
	IS(answer.release_ns, 1);
	IS(antiphon_coop_poll(member, NEVER, 7, &answer), 0);
	IS(answer.release_ns == NEVER && answer.importance == NEVER, 1);
	IS(antiphon_coop_status(member, &status), 0);
	IS(status.standing, ANTIPHON_COOP_TIMELY);
	/* Without work it sleeps. */
	now = antiphon_loop_now_ns();
	IS(antiphon_coop_poll(member, now + 5 * MS, NEVER, &answer), 0);
	YES(antiphon_loop_now_ns() >= now + 5 * MS);
	/* The poll does not wait if that time has come, or with work. */
	IS(antiphon_coop_poll(member, now, NEVER, &answer), 0);
	IS(antiphon_coop_poll(member, now + 1000000ull * MS, 0, &answer), 0);
	now = antiphon_loop_now_ns() + 1000000ull * MS;
	IS(antiphon_coop_before(member, now, NEVER, &until), 0);
	IS(until, now);
	IS(antiphon_coop_before(member, now, NEVER, &until), EINVAL);
	IS(antiphon_coop_poll(member, now, NEVER, &answer), EINVAL);
	IS(antiphon_coop_after(member, &answer), 0);
	IS(antiphon_coop_after(member, &answer), EINVAL);
	IS(antiphon_coop_before(member, NEVER, NEVER, &until), 0);
	YES(until == NEVER);
	IS(antiphon_coop_after(member, &answer), 0);
	IS(antiphon_coop_before(member, NEVER, 0, &until), 0);
	IS(until, 0);
	/* In the middle of a poll. */
	IS(antiphon_coop_leave(member), 0);
	/* No options are fine. */
	IS(antiphon_coop_join(&member, NULL), 0);
	IS(antiphon_coop_poll(member, NEVER, 0, &answer), 0);
	IS(antiphon_coop_leave(member), 0);
}

/* The latest is the member; with the other the thread gets on, and takes its place back. */
static void twice(void)
{
	antiphon_coop_member_t *first, *second;
	antiphon_coop_t wanted = part("twice");
	antiphon_coop_answer_t answer;
	int at;
	IS(antiphon_coop_join(&first, &wanted), 0);
	wanted.group = 5;
	IS(antiphon_coop_join(&second, &wanted), 0);
	for (at = 0; at < 100; at++) {
		IS(antiphon_coop_poll(second, NEVER, 0, &answer), 0);
		IS(antiphon_coop_poll(first, NEVER, 0, &answer), 0);
	}
	IS(antiphon_coop_leave(first), 0);
	IS(antiphon_coop_poll(second, antiphon_loop_now_ns() + MS, NEVER, &answer), 0);
	IS(antiphon_coop_leave(second), 0);
}

static void *uses(void *data)
{
	antiphon_coop_member_t *member = data;
	antiphon_coop_answer_t answer;
	antiphon_coop_status_t status;
	uint64_t until;
	IS(antiphon_coop_poll(member, NEVER, 0, &answer), EPERM);
	IS(antiphon_coop_before(member, NEVER, 0, &until), EPERM);
	IS(antiphon_coop_after(member, &answer), EPERM);
	IS(antiphon_coop_status(member, &status), EPERM);
	return NULL;
}

static void *uses_and_leaves(void *data)
{
	uses(data);
	IS(antiphon_coop_leave(data), EPERM);
	return NULL;
}

static void *joins(void *data)
{
	antiphon_coop_member_t *member;
	antiphon_coop_t wanted = part("strangers");
	(void)data;
	IS(antiphon_coop_join(&member, &wanted), 0);
	return member;
}

/* Other threads, a thread that has ended, and the child of a fork, which may join itself. */
static void strangers(void)
{
	antiphon_coop_member_t *member = joins(NULL), *ended;
	antiphon_coop_answer_t answer;
	antiphon_coop_status_t status;
	pid_t child;
	elsewhere(uses_and_leaves, member);
	ended = join(start(joins, NULL));
	uses(ended);
	/* The kernel forgets a joined thread a moment after that. */
	while (antiphon_coop_leave(ended) == EPERM)
		usleep(1000);
	child = fork();
	if (child == 0) {
		antiphon_coop_member_t *own;
		failures = 0;
		uses(member);
		IS(antiphon_coop_leave(member), 0);
		own = joins(NULL);
		IS(antiphon_coop_poll(own, NEVER, 0, &answer), 0);
		IS(antiphon_coop_leave(own), 0);
		_exit(failures != 0);
	}
	IS(exit_of(child), 0);
	IS(antiphon_coop_poll(member, NEVER, 0, &answer), 0);
	IS(antiphon_coop_status(member, &status), 0);
	IS(status.standing, ANTIPHON_COOP_TIMELY);
	IS(antiphon_coop_leave(member), 0);
}

/* Threads that join and stay, or whose loops do, for as long as the others do. */
struct crowd {
	pthread_barrier_t joined, left;
	int by_loop;
};

static void *crowds(void *data)
{
	struct crowd *crowd = data;
	antiphon_coop_t wanted = part("crowd");
	antiphon_coop_member_t *member = NULL;
	antiphon_loop_t *loop = NULL;
	if (crowd->by_loop) {
		IS(antiphon_loop_create(&loop), 0);
		IS(antiphon_loop_cooperate(loop, ANTIPHON_COOP_BATON, &wanted), 0);
	} else {
		IS(antiphon_coop_join(&member, &wanted), 0);
	}
	pthread_barrier_wait(&crowd->joined);
	pthread_barrier_wait(&crowd->left);
	if (crowd->by_loop)
		antiphon_loop_destroy(loop);
	else
		IS(antiphon_coop_leave(member), 0);
	/* The thread goes on: its place is free all the same. */
	pthread_barrier_wait(&crowd->joined);
	pthread_barrier_wait(&crowd->left);
	return NULL;
}

static void full(int by_loop)
{
	struct crowd crowd;
	pthread_t threads[PLACES];
	antiphon_coop_t wanted = part("crowd");
	antiphon_coop_member_t *member = NULL;
	antiphon_loop_t *loop;
	antiphon_coop_status_t status;
	int at;
	crowd.by_loop = by_loop;
	IS(pthread_barrier_init(&crowd.joined, NULL, PLACES + 1), 0);
	IS(pthread_barrier_init(&crowd.left, NULL, PLACES + 1), 0);
	for (at = 0; at < PLACES; at++)
		threads[at] = start(crowds, &crowd);
	pthread_barrier_wait(&crowd.joined);
	IS(antiphon_loop_create(&loop), 0);
	IS(antiphon_coop_join(&member, &wanted), ENOSPC);
	IS(antiphon_loop_cooperate(loop, ANTIPHON_COOP_BATON, &wanted), ENOSPC);
	antiphon_loop_coop_status(loop, &status);
	IS(status.tier, ANTIPHON_COOP_ALONE);
	pthread_barrier_wait(&crowd.left);
	pthread_barrier_wait(&crowd.joined);
	IS(antiphon_loop_cooperate(loop, ANTIPHON_COOP_BATON, &wanted), 0);
	antiphon_loop_destroy(loop);
	pthread_barrier_wait(&crowd.left);
	for (at = 0; at < PLACES; at++)
		join(threads[at]);
	pthread_barrier_destroy(&crowd.joined);
	pthread_barrier_destroy(&crowd.left);
}

/* The member runs beside a hog and one with timers, until it was demoted for its act. */
static int over;

static void *hogs(void *data)
{
	antiphon_coop_t wanted = part("police");
	antiphon_coop_member_t *member;
	antiphon_coop_answer_t answer;
	uint64_t turn = 0;
	IS(antiphon_coop_join(&member, &wanted), 0);
	for (; !__atomic_load_n(&over, __ATOMIC_RELAXED); turn++) {
		if (data == NULL) {
			spin(MS / 5);
			IS(antiphon_coop_poll(member, NEVER, turn, &answer), 0);
		} else {
			uint64_t next = antiphon_loop_now_ns() + 2 * MS;
			IS(antiphon_coop_poll(member, next, NEVER, &answer), 0);
			YES(antiphon_loop_now_ns() >= next);
		}
	}
	IS(antiphon_coop_leave(member), 0);
	return NULL;
}

static void overruns(antiphon_coop_member_t *member)
{
	antiphon_coop_answer_t answer;
	IS(antiphon_coop_poll(member, NEVER, 0, &answer), 0);
	spin(30 * MS);
}

static void sleeps(antiphon_coop_member_t *member)
{
	antiphon_coop_answer_t answer;
	IS(antiphon_coop_poll(member, NEVER, 0, &answer), 0);
	usleep(30000);
}

static void always_due(antiphon_coop_member_t *member)
{
	antiphon_coop_answer_t answer;
	spin(MS / 4);
	IS(antiphon_coop_poll(member, antiphon_loop_now_ns(), 0, &answer), 0);
}

static void police(void (*act)(antiphon_coop_member_t *), int why)
{
	antiphon_coop_t wanted = part("police");
	antiphon_coop_member_t *member;
	antiphon_coop_status_t status;
	uint64_t counts[3] = { 0, 0, 0 };
	pthread_t hog, timers;
	__atomic_store_n(&over, 0, __ATOMIC_RELAXED);
	hog = start(hogs, NULL);
	timers = start(hogs, "timers");
	IS(antiphon_coop_join(&member, &wanted), 0);
	while (counts[why - ANTIPHON_COOP_OVERRUN] == 0) {
		act(member);
		IS(antiphon_coop_status(member, &status), 0);
		counts[0] = status.overrun;
		counts[1] = status.slept;
		counts[2] = status.share;
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	IS(antiphon_coop_leave(member), 0);
	join(hog);
	join(timers);
}

int main(void)
{
	watchdog();
	own_directory();
	what_there_is();
	arguments();
	halves();
	twice();
	strangers();
	full(0);
	full(1);
	police(overruns, ANTIPHON_COOP_OVERRUN);
	police(sleeps, ANTIPHON_COOP_SLEPT);
	police(always_due, ANTIPHON_COOP_SHARE);
	forget_directory();
	return failures != 0;
}
