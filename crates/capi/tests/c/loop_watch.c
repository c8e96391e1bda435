/* The order of a loop, callbacks that are told of trouble, and what is counted and seen of its
 * events. */
#include "check.h"

#include <antiphon_loop.h>

enum { MS = 1000000 };

static void spin(uint64_t ns)
{
	uint64_t until = antiphon_loop_now_ns() + ns;
	while (antiphon_loop_now_ns() < until)
		;
}

static void submit(antiphon_loop_t *loop, uint64_t when, int due, const char *name, void *data,
		   int (*call)(antiphon_loop_t *, void *, uint64_t *))
{
	antiphon_loop_event_t event = { 0, 0, 0, NULL, NULL, NULL, NULL };
	event.when = when;
	event.due = due;
	event.call = call;
	event.data = data;
	event.name = name;
	IS(antiphon_loop_submit(loop, &event, NULL), 0);
}

/* The reports that a loop was told. */
struct told {
	int longs, behinds;
	/* The last callback that took long, and the last time that it was behind. */
	antiphon_loop_trouble_t slow, late;
};

static void tell(void *data, const antiphon_loop_trouble_t *trouble)
{
	struct told *told = data;
	IS(trouble->kept, 0);
	if (trouble->what == ANTIPHON_LOOP_LONG) {
		told->longs++;
		told->slow = *trouble;
	} else {
		told->behinds++;
		told->late = *trouble;
	}
}

static int slow(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	(void)loop, (void)data, (void)when;
	spin(6 * MS);
	return ANTIPHON_LOOP_DONE;
}

/* Always due, and longer than it has. */
static int greedy(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	struct told *told = data;
	spin(MS / 10);
	if (told->behinds > 0) {
		antiphon_loop_stop(loop);
		return ANTIPHON_LOOP_DONE;
	}
	*when += MS / 20;
	return ANTIPHON_LOOP_AT;
}

static int asks(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	uint64_t now = antiphon_loop_now_ns();
	(void)data, (void)when;
	/* Half of the time that a step may take, which is much more than half of a millisecond. */
	IS(antiphon_loop_until_ns(loop) <= now + 20000ull * MS, 1);
	IS(antiphon_loop_until_ns(loop) > now + 1000ull * MS, 1);
	return ANTIPHON_LOOP_DONE;
}

static void options(void)
{
	antiphon_loop_t *loop;
	antiphon_loop_options_t options = { 0, 0, 0, 0, NULL, NULL, 1 };
	antiphon_loop_stats_t stats;
	struct told told;
	memset(&told, 0, sizeof told);
	IS(antiphon_loop_create_with(&loop, &options), EINVAL);
	options.kept = 0;
	options.long_ns = 40000ull * MS;
	IS(antiphon_loop_create_with(&loop, &options), 0);
	submit(loop, 0, ANTIPHON_LOOP_WORK, NULL, NULL, asks);
	submit(loop, 1, ANTIPHON_LOOP_WORK, "slow", NULL, slow);
	IS(antiphon_loop_run(loop), 0);
	IS(antiphon_loop_stats(loop, "slow", &stats), 0);
	IS(stats.called, 1);
	IS(stats.long_calls, 0);
	antiphon_loop_destroy(loop);

	options.long_ns = 5 * MS;
	options.behind_ns = 10 * MS;
	options.trouble = tell;
	options.data = &told;
	IS(antiphon_loop_create_with(&loop, &options), 0);
	submit(loop, 0, ANTIPHON_LOOP_WORK, "slow", NULL, slow);
	IS(antiphon_loop_run(loop), 0);
	IS(told.longs, 1);
	IS(told.behinds, 0);
	IS(strcmp(told.slow.name, "slow"), 0);
	IS(told.slow.ran_ns >= 6 * MS, 1);
	IS(told.slow.for_ns, 0);
	IS(antiphon_loop_stats(loop, "slow", &stats), 0);
	IS(stats.long_calls, 1);
	/* Without a name it is "event". */
	submit(loop, antiphon_loop_now_ns(), ANTIPHON_LOOP_TIMER, NULL, &told, greedy);
	IS(antiphon_loop_run(loop), 1);
	IS(told.behinds, 1);
	IS(strcmp(told.late.name, "event"), 0);
	IS(told.late.for_ns > 10 * MS && told.late.ran_ns > 0, 1);
	antiphon_loop_destroy(loop);
}

static int beat(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	int *left = data;
	(void)loop;
	*when += MS / 4;
	return --*left > 0 ? ANTIPHON_LOOP_AT : ANTIPHON_LOOP_DONE;
}

static int forgets(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	(void)data, (void)when;
	antiphon_loop_reset_stats(loop);
	return ANTIPHON_LOOP_DONE;
}

static uint64_t sum(const antiphon_loop_bucket_t *buckets, size_t count)
{
	uint64_t all = 0;
	size_t at;
	for (at = 0; at < count; at++) {
		IS(at == 0 || buckets[at - 1].upto_ns < buckets[at].upto_ns, 1);
		IS(buckets[at].count > 0, 1);
		all += buckets[at].count;
	}
	return all;
}

static void buckets(void)
{
	antiphon_loop_t *loop;
	antiphon_loop_bucket_t found[40];
	antiphon_loop_stats_t stats;
	size_t count = 77, again;
	int left = 40;
	IS(antiphon_loop_create(&loop), 0);
	IS(antiphon_loop_buckets(loop, "beat", ANTIPHON_LOOP_LATE, found, 40, &count), ENOENT);
	IS(count, 77);
	submit(loop, antiphon_loop_now_ns(), ANTIPHON_LOOP_TIMER, "beat", &left, beat);
	IS(antiphon_loop_run(loop), 0);
	IS(antiphon_loop_buckets(loop, "beat", 2, found, 40, &count), EINVAL);
	IS(antiphon_loop_buckets(loop, "beat", ANTIPHON_LOOP_LATE, found, 40, &count), 0);
	IS(count >= 1 && count <= 40, 1);
	IS(sum(found, count), 40);
	IS(antiphon_loop_stats(loop, "beat", &stats), 0);
	IS(stats.late_max_ns <= found[count - 1].upto_ns, 1);
	IS(antiphon_loop_buckets(loop, "beat", ANTIPHON_LOOP_RAN, found, 40, &count), 0);
	IS(sum(found, count), 40);
	/* Nothing is written beyond the room. */
	found[0].count = found[1].count = 12345;
	IS(antiphon_loop_buckets(loop, "beat", ANTIPHON_LOOP_RAN, found, 1, &again), 0);
	IS(again, count);
	IS(found[0].count != 12345 && found[1].count == 12345, 1);
	IS(antiphon_loop_buckets(loop, "beat", ANTIPHON_LOOP_RAN, NULL, 0, &again), 0);
	IS(again, count);
	antiphon_loop_reset_stats(loop);
	IS(antiphon_loop_buckets(loop, "beat", ANTIPHON_LOOP_LATE, found, 40, &count), 0);
	IS(count, 0);
	/* Called from a callback, which is counted after that. */
	left = 3;
	submit(loop, antiphon_loop_now_ns(), ANTIPHON_LOOP_TIMER, "beat", &left, beat);
	submit(loop, antiphon_loop_now_ns() + 20 * MS, ANTIPHON_LOOP_TIMER, "last", NULL, forgets);
	IS(antiphon_loop_run(loop), 0);
	IS(antiphon_loop_stats(loop, "beat", &stats), 0);
	IS(stats.called, 0);
	IS(antiphon_loop_stats(loop, "last", &stats), 0);
	IS(stats.called, 1);
	IS(stats.timers, 0);
	antiphon_loop_destroy(loop);
}

struct watched {
	antiphon_loop_lookout_t *lookout;
	int seen;
};

static void *watches(void *data)
{
	struct watched *watched = data;
	antiphon_loop_sighting_t sighting = { NULL, 0 };
	for (;;) {
		int none = antiphon_loop_lookout_look(watched->lookout, &sighting);
		if (none == 0 && sighting.for_ns >= 5 * MS)
			break;
		IS(none == 0 || none == ENOENT, 1);
		usleep(1000);
	}
	IS(strcmp(sighting.name, "stuck"), 0);
	__atomic_store_n(&watched->seen, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* It lasts until the watcher has seen it. */
static int stuck(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	struct watched *watched = data;
	antiphon_loop_lookout_t *own = antiphon_loop_lookout_create(loop);
	antiphon_loop_sighting_t sighting;
	(void)when;
	IS(antiphon_loop_lookout_look(own, &sighting), 0);
	IS(strcmp(sighting.name, "stuck"), 0);
	antiphon_loop_lookout_destroy(own);
	while (!__atomic_load_n(&watched->seen, __ATOMIC_ACQUIRE))
		usleep(1000);
	return ANTIPHON_LOOP_DONE;
}

static void lookout(void)
{
	antiphon_loop_t *loop;
	antiphon_loop_sighting_t sighting;
	struct watched watched = { NULL, 0 };
	pthread_t thread;
	IS(antiphon_loop_create(&loop), 0);
	watched.lookout = antiphon_loop_lookout_create(loop);
	IS(antiphon_loop_lookout_look(watched.lookout, &sighting), ENOENT);
	submit(loop, 0, ANTIPHON_LOOP_WORK, "stuck", &watched, stuck);
	thread = start(watches, &watched);
	/* The watcher does not delay the loop. */
	IS(antiphon_loop_run(loop), 0);
	join(thread);
	IS(antiphon_loop_lookout_look(watched.lookout, &sighting), ENOENT);
	antiphon_loop_destroy(loop);
	IS(antiphon_loop_lookout_look(watched.lookout, &sighting), ENOENT);
	antiphon_loop_lookout_destroy(watched.lookout);
}

int main(void)
{
	watchdog();
	options();
	buckets();
	lookout();
	return failures != 0;
}
