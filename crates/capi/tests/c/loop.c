/* Event loops: timers first and in order, work in steps, files, threads, loops inside others. */
#include "check.h"

#include <antiphon_loop.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { MS = 1000000 };

/* The callbacks that were called, in order: a letter each. */
static char seen[64];
static int ends;

static void note(char what)
{
	size_t length = strlen(seen);
	if (length + 1 < sizeof seen)
		seen[length] = what;
}

static void forget(void *data)
{
	(void)data;
	ends++;
}

static int once(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	(void)loop, (void)when;
	note(*(const char *)data);
	return ANTIPHON_LOOP_DONE;
}

static antiphon_loop_event_t event(uint64_t when, int due,
				   int (*call)(antiphon_loop_t *, void *, uint64_t *),
				   const void *data)
{
	antiphon_loop_event_t made = { 0, 0, 0, NULL, forget, NULL, "event" };
	made.when = when;
	made.due = due;
	made.call = call;
	made.data = (void *)data;
	return made;
}

/* Three beats, then work, then sleep until woken. `data` is the event that the fourth wakes. */
static int beats(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	static int count;
	IS(antiphon_loop_now_ns() >= *when, 1);
	IS(antiphon_loop_run(loop), EDEADLK);
	IS(antiphon_loop_fd(loop), -1);
	note('b');
	switch (++count) {
	case 1:
	case 2:
		*when += MS;
		return ANTIPHON_LOOP_AT;
	case 3:
		*when = 7;
		return ANTIPHON_LOOP_MORE;
	case 4:
		IS(*when, 7);
		IS(antiphon_loop_wake(loop, *(uint64_t *)data), 0);
		return ANTIPHON_LOOP_ASLEEP;
	default:
		IS(*when, 7);
		return ANTIPHON_LOOP_DONE;
	}
}

static int submits(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	antiphon_loop_event_t more = event(0, ANTIPHON_LOOP_TIMER, once, "t");
	uint64_t *other = data, id;
	IS(*when, 1);
	/* A millisecond is the most that a call may take, and a half what it is told. */
	IS(antiphon_loop_until_ns(loop) <= antiphon_loop_now_ns() + MS / 2, 1);
	IS(antiphon_loop_submit(loop, &more, NULL), 0);
	IS(antiphon_loop_is_over(loop), 1);
	IS(antiphon_loop_cancel(loop, *other), 0);
	IS(antiphon_loop_cancel(loop, *other), ENOENT);
	more.kept = 1;
	IS(antiphon_loop_submit(loop, &more, &id), EINVAL);
	note('s');
	return ANTIPHON_LOOP_DONE;
}

static int stops(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	(void)data, (void)when;
	note('!');
	antiphon_loop_stop(loop);
	return ANTIPHON_LOOP_DONE;
}

static void order(antiphon_loop_t *loop)
{
	uint64_t now = antiphon_loop_now_ns(), asleep, never, stop;
	antiphon_loop_event_t of[] = {
		event(now + MS, ANTIPHON_LOOP_TIMER, beats, &stop),
		event(9, ANTIPHON_LOOP_WORK, once, "9"),
		event(2, ANTIPHON_LOOP_WORK, once, "2"),
		event(1, ANTIPHON_LOOP_WORK, submits, &never),
		event(50, ANTIPHON_LOOP_WOKEN, stops, NULL),
		event(5, ANTIPHON_LOOP_WOKEN, once, "never"),
	};
	antiphon_loop_stats_t stats;
	of[0].name = "beat";
	IS(antiphon_loop_submit(loop, &of[5], &never), 0);
	IS(antiphon_loop_submit(loop, &of[0], &asleep), 0);
	IS(antiphon_loop_submit(loop, &of[1], NULL), 0);
	IS(antiphon_loop_submit(loop, &of[2], NULL), 0);
	IS(antiphon_loop_submit(loop, &of[3], NULL), 0);
	IS(antiphon_loop_submit(loop, &of[4], &stop), 0);
	IS(antiphon_loop_run(loop), 1);
	/* Where the machine is busy, beats may come before work. */
	IS(strlen(seen), 9);
	IS(strchr(seen, 's') < strchr(seen, 't') && strchr(seen, 't') < strchr(seen, '2'), 1);
	IS(strchr(seen, '2') < strchr(seen, '9') && strchr(seen, '!') == seen + 8, 1);
	IS(antiphon_loop_wake(loop, asleep), 0);
	IS(antiphon_loop_run(loop), 0);
	IS(antiphon_loop_wake(loop, asleep), ENOENT);
	IS(seen[9], 'b');
	IS(ends, 7);
	IS(antiphon_loop_stats(loop, "beat", &stats), 0);
	IS(stats.called, 5);
	IS(stats.timers, 3);
	IS(stats.late_p50_ns <= stats.late_p99_ns && stats.late_p99_ns <= stats.late_max_ns, 1);
	IS(antiphon_loop_stats(loop, "nobody", &stats), ENOENT);
}

static int reads(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	char byte;
	(void)when;
	IS(antiphon_loop_ready(loop), ANTIPHON_LOOP_READ);
	IS(read(*(int *)data, &byte, 1), 1);
	note(byte);
	return byte == '.' ? ANTIPHON_LOOP_DONE : ANTIPHON_LOOP_ASLEEP;
}

static void *other(void *data)
{
	antiphon_loop_handle_t *handle = data;
	antiphon_loop_event_t work = event(0, ANTIPHON_LOOP_WORK, once, "w");
	uint64_t id;
	int i;
	for (i = 0; i < 3; i++)
		IS(antiphon_loop_handle_submit(handle, &work, NULL), 0);
	work = event(UINT64_MAX, ANTIPHON_LOOP_TIMER, once, "never");
	IS(antiphon_loop_handle_submit(handle, &work, &id), 0);
	IS(antiphon_loop_handle_wake(handle, UINT64_MAX / 4), 0);
	IS(antiphon_loop_handle_cancel(handle, id), 0);
	antiphon_loop_handle_destroy(handle);
	return NULL;
}

/* The loop goes on until the other thread has destroyed its handle. */
static void files_and_threads(antiphon_loop_t *loop)
{
	antiphon_loop_event_t watched;
	pthread_t thread;
	int pipes[2];
	memset(seen, 0, sizeof seen);
	ends = 0;
	IS(pipe(pipes), 0);
	watched = event(0, ANTIPHON_LOOP_WOKEN, reads, &pipes[0]);
	IS(antiphon_loop_watch(loop, pipes[0], 0, &watched, NULL), EINVAL);
	IS(antiphon_loop_watch(loop, pipes[0], ANTIPHON_LOOP_EDGE, &watched, NULL), EINVAL);
	IS(antiphon_loop_watch(loop, -1, ANTIPHON_LOOP_READ, &watched, NULL), EINVAL);
	IS(antiphon_loop_watch(loop, pipes[0], ANTIPHON_LOOP_READ, &watched, NULL), 0);
	IS(write(pipes[1], "xy.", 3), 3);
	IS(pthread_create(&thread, NULL, other, antiphon_loop_handle_create(loop)), 0);
	IS(antiphon_loop_run(loop), 0);
	IS(pthread_join(thread, NULL), 0);
	IS(strlen(seen), 6);
	IS(strchr(seen, 'x') < strchr(seen, 'y') && strchr(seen, 'y') < strchr(seen, '.'), 1);
	IS(ends, 5);
	close(pipes[0]);
	close(pipes[1]);
}

/* Inside a loop of the caller's. */
static void inside(antiphon_loop_t *loop)
{
	antiphon_loop_event_t timer =
		event(antiphon_loop_now_ns() + 2 * MS, ANTIPHON_LOOP_TIMER, once, "i");
	struct pollfd file = { 0, POLLIN, 0 };
	antiphon_loop_turn_t turn = { 0, 0, 0 };
	int waits = 0;
	memset(seen, 0, sizeof seen);
	IS(antiphon_loop_submit(loop, &timer, NULL), 0);
	file.fd = antiphon_loop_fd(loop);
	for (;;) {
		IS(antiphon_loop_turn(loop, 8, &turn), 0);
		if (turn.end >= 0)
			break;
		IS(turn.called > 0 || turn.next_ns == timer.when, 1);
		IS(poll(&file, 1, -1), 1);
		waits++;
	}
	IS(turn.end, 0);
	IS(strcmp(seen, "i"), 0);
	IS(waits > 0 && antiphon_loop_now_ns() >= timer.when, 1);
}

int main(void)
{
	antiphon_loop_t *loop;
	antiphon_loop_handle_t *handle;
	antiphon_loop_event_t left = event(UINT64_MAX, ANTIPHON_LOOP_TIMER, once, "never");
	watchdog();
	IS(antiphon_loop_create(&loop), 0);
	order(loop);
	files_and_threads(loop);
	inside(loop);
	/* Events that are left go with the loop; a call that comes after that is told so. */
	ends = 0;
	handle = antiphon_loop_handle_create(loop);
	IS(antiphon_loop_submit(loop, &left, NULL), 0);
	IS(antiphon_loop_handle_stop(handle), 0);
	IS(antiphon_loop_run(loop), 1);
	antiphon_loop_destroy(loop);
	IS(ends, 1);
	IS(antiphon_loop_handle_submit(handle, &left, NULL), ESRCH);
	IS(ends, 2);
	IS(antiphon_loop_handle_stop(handle), ESRCH);
	antiphon_loop_handle_destroy(handle);
	return failures != 0;
}
