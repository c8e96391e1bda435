/* Two programs that compute all the time share a CPU, and each is on time: they hand it to each
 * other when a beat of either is due. Neither needs a right, nor knows of the other but the name of
 * their domain.
 *
 *	cc on_time.c $(pkg-config --cflags --libs antiphon) -o on_time */
#define _GNU_SOURCE
#include <antiphon_loop.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROGRAMS = 2, BEATS = 100, PERIOD_NS = 2000000 };

struct program {
	int beats, early;
	uint64_t steps;
};

static int beat(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	struct program *program = data;
	program->early += antiphon_loop_now_ns() < *when;
	if (++program->beats == BEATS)
		antiphon_loop_stop(loop);
	*when += PERIOD_NS;
	return ANTIPHON_LOOP_AT;
}

/* It computes in steps, which end when a beat is due: of this program, or of the other. */
static int compute(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	struct program *program = data;
	while (!antiphon_loop_is_over(loop))
		;
	program->steps++;
	*when += 1;
	return ANTIPHON_LOOP_MORE;
}

/* Returns 0 if no beat was called early, none was left out, and something was computed. */
static int run(const antiphon_coop_t *part)
{
	struct program program = { 0, 0, 0 };
	antiphon_loop_event_t timer = { 0, ANTIPHON_LOOP_TIMER, 0, beat, NULL, &program, "beat" };
	antiphon_loop_event_t work = { 0, ANTIPHON_LOOP_WORK, 0, compute, NULL, &program, "work" };
	antiphon_coop_status_t status;
	antiphon_loop_stats_t late;
	antiphon_loop_t *loop;
	if (antiphon_loop_create(&loop) != 0)
		return 1;
	timer.when = antiphon_loop_now_ns() + PERIOD_NS;
	if (antiphon_loop_submit(loop, &timer, NULL) != 0 ||
	    antiphon_loop_submit(loop, &work, NULL) != 0 ||
	    /* Last: a member that has joined and does not poll keeps the other from the CPU. */
	    antiphon_loop_cooperate(loop, ANTIPHON_COOP_BATON, part) != 0)
		return 1;
	if (antiphon_loop_run(loop) != 1 || antiphon_loop_stats(loop, "beat", &late) != 0)
		return 1;
	antiphon_loop_coop_status(loop, &status);
	fprintf(stderr, "beats: p99 %lu us late; demoted %lu times\n",
		(unsigned long)(late.late_p99_ns / 1000),
		(unsigned long)(status.overrun + status.slept + status.share));
	antiphon_loop_destroy(loop);
	return program.beats != BEATS || program.early != 0 || program.steps == 0 ||
	       status.tier != ANTIPHON_COOP_BATON;
}

int main(void)
{
	antiphon_coop_t part;
	int number, status, failed = 0, cpu = sched_getcpu();
	memset(&part, 0, sizeof part);
	part.domain = "on-time";
	/* Both on this one. */
	part.cpu = ANTIPHON_COOP_CPU(cpu < 0 ? 0 : cpu);
	for (number = 0; number < PROGRAMS; number++)
		if (fork() == 0)
			_exit(run(&part));
	while (wait(&status) > 0)
		failed += status != 0;
	printf("%d programs, %d beats each, none early; %d failed\n", PROGRAMS, BEATS, failed);
	return failed != 0;
}
