/* Timers in a thread of their own: when they are called, cancelled, or go with the rest. */
#include "check.h"

#include <antiphon_coop.h>
#include <antiphon_loop.h>
#include <antiphon_split.h>

enum { MS = 1000000 };

static int called, ended;
static pthread_t timers;

static int read_of(const int *count)
{
	return __atomic_load_n(count, __ATOMIC_ACQUIRE);
}

static void until(const int *count, int wanted)
{
	while (read_of(count) < wanted)
		usleep(1000);
	IS(read_of(count), wanted);
}

/* `data` is when it is due. */
static void call(void *data, uint64_t late_ns)
{
	uint64_t due = *(uint64_t *)data;
	YES(antiphon_loop_now_ns() >= due + late_ns);
	timers = pthread_self();
	__atomic_add_fetch(&called, 1, __ATOMIC_RELEASE);
}

static void end(void *data)
{
	(void)data;
	__atomic_add_fetch(&ended, 1, __ATOMIC_RELEASE);
}

static antiphon_split_t *split;

/* Submits once more, and changes the priority of its own thread. */
static void call_again(void *data, uint64_t late_ns)
{
	(void)late_ns;
	IS(antiphon_split_set_priority(split, 0), 0);
	antiphon_split_submit(split, *(uint64_t *)data, call, end, data, NULL);
}

static void arguments(void)
{
	antiphon_split_options_t options = { 0, 0, 100, 0 };
	IS(antiphon_split_create(&split, &options), EINVAL);
	options.priority = 0;
	options.kept = 1;
	IS(antiphon_split_create(&split, &options), EINVAL);
	options.kept = 0;
	options.worker_slice_ns = 10000000001ull;
	IS(antiphon_split_create(&split, &options), EINVAL);
}

static void runs(int tier)
{
	antiphon_split_options_t options = { 200000, 0, 0, 0 };
	antiphon_split_timer_t *early, *late;
	antiphon_split_worker_t *worker;
	antiphon_split_stats_t stats;
	uint64_t now, far, done;
	pid_t child;
	called = ended = 0;
	options.priority = tier == ANTIPHON_COOP_RT_SPLIT ? 1 : 0;
	IS(antiphon_split_create(&split, &options), 0);
	antiphon_split_stats(split, &stats);
	IS(stats.tier, tier);
	IS(stats.timers, 0);
	if (tier == ANTIPHON_COOP_SPLIT) {
		IS(antiphon_split_worker_create(&worker, split), 0);
		antiphon_split_worker_destroy(worker);
	}
	now = antiphon_loop_now_ns();
	far = now + 1000000ull * MS;
	done = now + 2 * MS;
	antiphon_split_submit(split, far, call, end, &far, &late);
	antiphon_split_submit(split, far, call, end, &far, NULL);
	antiphon_split_submit(split, done, call, NULL, &done, NULL);
	antiphon_split_submit(split, now, call, end, &now, &early);
	until(&called, 2);
	YES(antiphon_loop_now_ns() >= done);
	YES(!pthread_equal(timers, pthread_self()));
	until(&ended, 1);
	IS(antiphon_split_timer_cancel(early), ENOENT);
	IS(antiphon_split_timer_cancel(late), 0);
	IS(antiphon_split_timer_cancel(late), ENOENT);
	antiphon_split_timer_destroy(early);
	antiphon_split_timer_destroy(late);
	antiphon_split_submit(split, now, call_again, NULL, &now, NULL);
	until(&called, 3);
	antiphon_split_stats(split, &stats);
	IS(stats.timers, 4);
	IS(stats.tier, ANTIPHON_COOP_SPLIT);
	YES(stats.late_p50_ns <= stats.late_p99_ns && stats.late_p99_ns <= stats.late_max_ns);
	IS(antiphon_split_set_priority(split, 100), EINVAL);
	/* In a child no timer is called, and the child lets go of its copy. */
	child = fork();
	if (child == 0) {
		failures = 0;
		antiphon_split_submit(split, now, call, NULL, &now, NULL);
		usleep(20000);
		IS(read_of(&called), 3);
		antiphon_split_destroy(split);
		_exit(failures != 0);
	}
	IS(exit_of(child), 0);
	antiphon_split_destroy(split);
	IS(called, 3);
	/* The one that was cancelled, and the one that was not due. */
	IS(ended, 4);
}

int main(void)
{
	int here, at;
	static const int tiers[] = { ANTIPHON_COOP_SPLIT, ANTIPHON_COOP_RT_SPLIT };
	static const char *const names[] = { "T2", "T1b" };
	antiphon_split_options_t first = { 0, 0, 99, 0 };
	watchdog();
	arguments();
	here = antiphon_coop_available(NULL, 0);
	for (at = 0; at < 2; at++)
		if (here & tiers[at])
			runs(tiers[at]);
		else
			printf("skipped: no %s\n", names[at]);
	if (!(here & ANTIPHON_COOP_RT_SPLIT))
		IS(antiphon_split_create(&split, &first), EPERM);
	return failures != 0;
}
