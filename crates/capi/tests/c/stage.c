/* Stages: each item is served once, in order where one is served at a time, and each ends. */
#include "check.h"

#include <antiphon_stage.h>

enum { ITEMS = 3000 };

static antiphon_pool_t *pool;

struct step {
	antiphon_inlet_t *next;
	uint64_t sum, last, served;
	int in_order, ends;
};

static void end(void *context)
{
	struct step *step = context;
	step->ends++;
	if (step->next)
		antiphon_inlet_destroy(step->next);
}

static void square(void *context, void *item)
{
	struct step *step = context;
	uint64_t number = *(uint64_t *)item;
	if (number % 100 == 0)
		antiphon_fiber_sleep(10000);
	number *= number;
	antiphon_inlet_send(step->next, &number);
}

/* One wide: no other thread adds up meanwhile. */
static void add(void *context, void *item)
{
	struct step *step = context;
	uint64_t number = *(uint64_t *)item;
	step->in_order &= step->last < number;
	step->last = number;
	step->sum += number;
	step->served++;
}

static void pipeline(size_t width)
{
	antiphon_stage_options_t of_square = { "square", sizeof(uint64_t), 4, 0, 2, 0 };
	antiphon_stage_options_t of_add = { NULL, sizeof(uint64_t), 0, 1, 0, 0 };
	struct step squares = { 0 }, adds = { 0 };
	antiphon_stage_t *square_stage, *add_stage;
	antiphon_stage_stats_t stats;
	antiphon_inlet_t *inlet, *other;
	struct timespec later = in_ms(CLOCK_MONOTONIC, 60000);
	uint64_t number, sum = 0;
	IS(antiphon_fiber_pool_create(&pool, 2, "fifo", 0), 0);
	of_square.width = width;
	adds.in_order = 1;
	IS(antiphon_stage_create(&add_stage, &squares.next, pool, &of_add, add, end, &adds), 0);
	IS(antiphon_stage_create(&square_stage, &inlet, pool, &of_square, square, end, &squares),
	   0);
	other = antiphon_inlet_clone(inlet);
	for (number = 1; number <= ITEMS; number++) {
		sum += number * number;
		if (number % 3 == 0)
			antiphon_inlet_send(inlet, &number);
		else if (number % 3 == 1)
			IS(antiphon_inlet_timedsend(other, &number, CLOCK_MONOTONIC, &later), 0);
		else
			while (antiphon_inlet_trysend(inlet, &number) != 0)
				antiphon_fiber_sleep(1000);
	}
	antiphon_inlet_destroy(inlet);
	antiphon_stage_stats(square_stage, &stats);
	IS(stats.room, 4);
	antiphon_inlet_destroy(other);
	antiphon_stage_join(square_stage, &stats);
	IS(stats.served, ITEMS);
	IS(stats.waiting, 0);
	IS(squares.ends, 1);
	antiphon_stage_join(add_stage, NULL);
	IS(adds.ends, 1);
	IS(adds.served, ITEMS);
	IS(adds.sum, sum);
	YES(adds.in_order || width > 1);
	antiphon_pool_destroy(pool);
}

static antiphon_latch_t gate = ANTIPHON_LATCH_INIT(1);

static void wait_at_gate(void *context, void *item)
{
	(void)context;
	(void)item;
	antiphon_latch_wait(&gate);
}

/* The stage is not joined: the pool waits for its end. */
static void refused(void)
{
	antiphon_stage_options_t options = { "gate", 100, 1, 1, 1, 0 };
	struct timespec soon = in_ms(CLOCK_REALTIME, 5);
	struct step step = { 0 };
	antiphon_stage_t *stage = NULL;
	antiphon_inlet_t *inlet = NULL;
	char item[100] = { 0 };
	IS(antiphon_pool_create(&pool, 1, NULL), 0);
	IS(antiphon_stage_create(&stage, &inlet, pool, &options, wait_at_gate, end, &step), EINVAL);
	antiphon_pool_destroy(pool);
	IS(antiphon_fiber_pool_create(&pool, 1, NULL, 0), 0);
	options.item_bytes = (size_t)-1;
	IS(antiphon_stage_create(&stage, &inlet, pool, &options, wait_at_gate, end, &step), EINVAL);
	options.item_bytes = sizeof item;
	options.width = (size_t)-1;
	IS(antiphon_stage_create(&stage, &inlet, pool, &options, wait_at_gate, end, &step), EINVAL);
	options.width = 1;
	options.kept = 1;
	IS(antiphon_stage_create(&stage, &inlet, pool, &options, wait_at_gate, end, &step), EINVAL);
	options.kept = 0;
	YES(stage == NULL && inlet == NULL && step.ends == 0);
	IS(antiphon_stage_create(&stage, &inlet, pool, &options, wait_at_gate, end, &step), 0);
	antiphon_inlet_send(inlet, item);
	/* One item is served, some time, and one waits. */
	antiphon_inlet_send(inlet, item);
	while (antiphon_inlet_trysend(inlet, item) == 0)
		;
	IS(antiphon_inlet_trysend(inlet, item), EAGAIN);
	IS(antiphon_inlet_timedsend(inlet, item, CLOCK_REALTIME, &soon), ETIMEDOUT);
	YES(passed(CLOCK_REALTIME, &soon));
	antiphon_latch_count_down(&gate, 1);
	antiphon_stage_detach(stage);
	antiphon_inlet_destroy(inlet);
	antiphon_pool_destroy(pool);
	IS(step.ends, 1);
}

int main(void)
{
	watchdog();
	pipeline(1);
	pipeline(4);
	refused();
	return failures != 0;
}
