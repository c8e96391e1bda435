/* Loops that share a CPU: tiers that change while they run, what is not permitted, which loops are
 * raised, and weights. */
#include "domains.h"

#include <sys/resource.h>

static int policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static int tier_of(const antiphon_loop_t *loop)
{
	antiphon_coop_status_t status;
	antiphon_loop_coop_status(loop, &status);
	return status.tier;
}

/* At each beat the loop changes to another tier; a tier that is not permitted leaves it as it
 * was. */
static int changes(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	static const int tiers[] = { ANTIPHON_COOP_BATON, ANTIPHON_COOP_BOOST, ANTIPHON_COOP_AUTO,
				     ANTIPHON_COOP_ALONE, ANTIPHON_COOP_BOOST };
	static int beat, was = ANTIPHON_COOP_ALONE;
	int here = *(int *)data, tier = tiers[beat % 5], done;
	antiphon_coop_t wanted = part("changes");
	/* By weights, in a group. */
	wanted.group = beat % 2 == 0 ? 0 : 3;
	wanted.slack_ns = 2 * MS;
	IS(tier_of(loop), was);
	done = antiphon_loop_cooperate(loop, tier, &wanted);
	if (tier == ANTIPHON_COOP_BOOST && !(here & tier)) {
		IS(done, EPERM);
		IS(tier_of(loop), was);
	} else if (done != 0) {
		/* The thread may not weigh more, or there is no helper. */
		IS(tier, ANTIPHON_COOP_BOOST);
		IS(done == EPERM || done == EAGAIN, 1);
	} else if (tier != ANTIPHON_COOP_AUTO) {
		IS(tier_of(loop), tier);
	} else {
		YES(tier_of(loop) & (here & ~ANTIPHON_COOP_ALONE));
	}
	was = tier_of(loop);
	if (was != ANTIPHON_COOP_ALONE) {
		antiphon_coop_status_t status;
		antiphon_loop_coop_status(loop, &status);
		IS(status.slack_ns, 2 * MS);
	}
	if (++beat == 50)
		antiphon_loop_stop(loop);
	*when += MS / 2;
	return ANTIPHON_LOOP_AT;
}

static int works(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	(void)data, (void)when;
	while (!antiphon_loop_is_over(loop))
		;
	return ANTIPHON_LOOP_MORE;
}

static void changing(int here)
{
	antiphon_loop_t *loop;
	antiphon_loop_event_t beat = { 0, 0, 0, changes, NULL, NULL, "beat" };
	antiphon_loop_event_t work = { 0, ANTIPHON_LOOP_WORK, 0, works, NULL, NULL, "work" };
	int nice = getpriority(PRIO_PROCESS, 0);
	IS(antiphon_loop_create(&loop), 0);
	beat.when = antiphon_loop_now_ns();
	beat.data = &here;
	IS(antiphon_loop_submit(loop, &beat, NULL), 0);
	IS(antiphon_loop_submit(loop, &work, NULL), 0);
	IS(antiphon_loop_run(loop), 1);
	/* The loop is destroyed while it is a member, or is raised. */
	antiphon_loop_destroy(loop);
	IS(getpriority(PRIO_PROCESS, 0), nice);
	IS(policy(), SCHED_OTHER);
}

static int raised(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	int *left = data;
	antiphon_coop_status_t status;
	/* The loop is overdue, and the helper was told. */
	while (policy() != SCHED_FIFO)
		;
	antiphon_loop_coop_status(loop, &status);
	YES(status.raises >= 1);
	IS(status.refusals, 0);
	*when = antiphon_loop_now_ns() + 5 * MS;
	return --*left > 0 ? ANTIPHON_LOOP_AT : ANTIPHON_LOOP_DONE;
}

static void boosted(void)
{
	antiphon_loop_t *loop;
	antiphon_loop_event_t beat = { 0, 0, 0, raised, NULL, NULL, "beat" };
	antiphon_coop_t wanted;
	int left = 5;
	memset(&wanted, 0, sizeof wanted);
	/* A slack that does not run out here. */
	wanted.slack_ns = 10000ull * MS;
	IS(antiphon_loop_create(&loop), 0);
	IS(antiphon_loop_cooperate(loop, ANTIPHON_COOP_BOOST, &wanted), 0);
	beat.when = antiphon_loop_now_ns() + MS;
	beat.data = &left;
	IS(antiphon_loop_submit(loop, &beat, NULL), 0);
	IS(antiphon_loop_run(loop), 0);
	antiphon_loop_destroy(loop);
	IS(policy(), SCHED_OTHER);
}

static int nice_before, over;

/* Work that is more important than all other, until it is over. */
static int leads(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	(void)data, (void)when;
	while (!antiphon_loop_is_over(loop))
		;
	return __atomic_load_n(&over, __ATOMIC_RELAXED) ? ANTIPHON_LOOP_DONE : ANTIPHON_LOOP_MORE;
}

static void *rival(void *data)
{
	antiphon_loop_t *loop;
	antiphon_loop_event_t work = { 0, ANTIPHON_LOOP_WORK, 0, leads, NULL, NULL, "leads" };
	IS(antiphon_loop_create(&loop), 0);
	IS(antiphon_loop_submit(loop, &work, NULL), 0);
	IS(antiphon_loop_cooperate(loop, ANTIPHON_COOP_BOOST, data), 0);
	IS(antiphon_loop_run(loop), 0);
	antiphon_loop_destroy(loop);
	return NULL;
}

/* Once it weighs less, it joins anew: from what it was at first. */
static int joins_anew(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	static int times;
	if (getpriority(PRIO_PROCESS, 0) > nice_before) {
		times++;
		IS(antiphon_loop_cooperate(loop, ANTIPHON_COOP_BOOST, data), 0);
		IS(getpriority(PRIO_PROCESS, 0), nice_before);
	}
	if (times == 5) {
		__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
		antiphon_loop_stop(loop);
	}
	*when += MS;
	return ANTIPHON_LOOP_AT;
}

static void weights(void)
{
	antiphon_loop_t *loop;
	antiphon_loop_event_t beat = { 0, 0, 0, joins_anew, NULL, NULL, "beat" };
	antiphon_loop_event_t work = { 9, ANTIPHON_LOOP_WORK, 0, works, NULL, NULL, "work" };
	antiphon_coop_t wanted = part("weights");
	pthread_t leader;
	nice_before = getpriority(PRIO_PROCESS, 0);
	wanted.group = 3;
	IS(antiphon_loop_create(&loop), 0);
	if (antiphon_loop_cooperate(loop, ANTIPHON_COOP_BOOST, &wanted) == EPERM) {
		printf("skipped: no right to weigh more\n");
		antiphon_loop_destroy(loop);
		return;
	}
	__atomic_store_n(&over, 0, __ATOMIC_RELAXED);
	leader = start(rival, &wanted);
	beat.when = antiphon_loop_now_ns();
	beat.data = &wanted;
	IS(antiphon_loop_submit(loop, &beat, NULL), 0);
	IS(antiphon_loop_submit(loop, &work, NULL), 0);
	IS(antiphon_loop_run(loop), 1);
	antiphon_loop_destroy(loop);
	join(leader);
	IS(getpriority(PRIO_PROCESS, 0), nice_before);
}

static void without_rights(void)
{
	struct rlimit none = { 0, 0 };
	pid_t child = fork();
	if (child == 0) {
		failures = 0;
		IS(setrlimit(RLIMIT_RTPRIO, &none), 0);
		IS(setrlimit(RLIMIT_NICE, &none), 0);
		IS(getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0), 0);
		own_directory();
		IS(antiphon_coop_available(NULL, 0) & ANTIPHON_COOP_BOOST, 0);
		changing(antiphon_coop_available(NULL, 0));
		forget_directory();
		_exit(failures != 0);
	}
	IS(exit_of(child), 0);
}

int main(void)
{
	int here;
	watchdog();
	own_directory();
	without_rights();
	here = antiphon_coop_available(NULL, 0);
	changing(here);
	if (here & ANTIPHON_COOP_BOOST) {
		boosted();
		weights();
	} else {
		printf("skipped: no real-time rights\n");
	}
	forget_directory();
	return failures != 0;
}
