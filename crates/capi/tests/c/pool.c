/* Pools: each task is run once, a waiter sees what it did, forks, names, each error. */
#include "check.h"

#include <antiphon_pool.h>

#include <sched.h>
#include <stdlib.h>

enum { TASKS = 20000, DEPTH = 14 };

static antiphon_pool_t *pool;
static unsigned char done[TASKS];

static void mark(void *at)
{
	(*(unsigned char *)at)++;
}

static void all_marked(const char *policy, size_t threads)
{
	antiphon_task_group_t group = ANTIPHON_TASK_GROUP_INIT;
	int task, round;
	IS(antiphon_pool_create(&pool, threads, policy), 0);
	IS((int)antiphon_pool_threads(pool), (int)threads);
	for (round = 1; round <= 3; round++) {
		for (task = 0; task < TASKS; task++)
			antiphon_pool_spawn(pool, &group, mark, &done[task]);
		antiphon_task_group_wait(&group);
		for (task = 0; task < TASKS; task++)
			IS(done[task], round);
	}
	for (task = 0; task < TASKS; task++)
		done[task] = 0;
	/* Only destroy waits for these. */
	for (task = 0; task < TASKS; task++)
		antiphon_pool_spawn(pool, NULL, mark, &done[task]);
	antiphon_pool_destroy(pool);
	for (task = 0; task < TASKS; task++) {
		IS(done[task], 1);
		done[task] = 0;
	}
}

/* Tasks that spawn, and wait for what they have spawned. */
struct sum {
	unsigned from, to, sum;
};

static void add_up(void *argument)
{
	struct sum *sum = argument, parts[2];
	antiphon_task_group_t group = ANTIPHON_TASK_GROUP_INIT;
	unsigned half = (sum->from + sum->to) / 2;
	if (sum->to - sum->from <= 8) {
		sum->sum = 0;
		for (; sum->from < sum->to; sum->from++)
			sum->sum += sum->from;
		return;
	}
	parts[0].from = sum->from;
	parts[0].to = half;
	parts[1].from = half;
	parts[1].to = sum->to;
	antiphon_pool_spawn(pool, &group, add_up, &parts[0]);
	antiphon_pool_spawn(pool, &group, add_up, &parts[1]);
	antiphon_task_group_wait(&group);
	sum->sum = parts[0].sum + parts[1].sum;
}

static void nested(void)
{
	struct sum sum = { 0, 10000, 0 };
	IS(antiphon_pool_create(&pool, 3, "fifo/neighbours-2"), 0);
	antiphon_pool_call(pool, add_up, &sum);
	IS((int)sum.sum, 49995000);
	antiphon_pool_destroy(pool);
}

struct tree {
	int depth, leaves;
};

static void grow(void *argument)
{
	struct tree *tree = argument, left, right;
	if (tree->depth == 0) {
		tree->leaves = 1;
		return;
	}
	left.depth = right.depth = tree->depth - 1;
	antiphon_join(grow, &left, grow, &right);
	tree->leaves = left.leaves + right.leaves;
}

static void forks(void)
{
	struct tree tree = { DEPTH, 0 };
	grow(&tree);
	IS(tree.leaves, 1 << DEPTH);
	IS(antiphon_pool_create(&pool, 2, "adaptive"), 0);
	tree.leaves = 0;
	antiphon_pool_call(pool, grow, &tree);
	IS(tree.leaves, 1 << DEPTH);
	antiphon_pool_destroy(pool);
}

/* Policies take turns to be in charge while tasks are run. */
static void turns(void)
{
	antiphon_task_group_t group = ANTIPHON_TASK_GROUP_INIT;
	int task;
	IS(antiphon_pool_create(&pool, 2, "lifo,fifo/steal-one,lifo-slot"), 0);
	for (task = 0; task < TASKS; task++) {
		antiphon_pool_spawn(pool, &group, mark, &done[task]);
		if (task % 100 == 0)
			IS(antiphon_pool_put_in_charge(pool, (size_t)(task / 100 % 3)), 0);
	}
	IS(antiphon_pool_put_in_charge(pool, 3), EINVAL);
	antiphon_task_group_wait(&group);
	for (task = 0; task < TASKS; task++) {
		IS(done[task], 1);
		done[task] = 0;
	}
	antiphon_pool_destroy(pool);
	IS(antiphon_pool_create(&pool, 1, "fifo"), 0);
	IS(antiphon_pool_put_in_charge(pool, 0), 0);
	IS(antiphon_pool_put_in_charge(pool, 1), EINVAL);
	antiphon_pool_destroy(pool);
}

static int held, go;

static void hold(void *argument)
{
	(void)argument;
	__atomic_store_n(&held, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		sched_yield();
}

/* One worker, which is busy while others are refused. */
static void no_room(void)
{
	antiphon_task_group_t group = ANTIPHON_TASK_GROUP_INIT;
	int spawned = 0, task;
	IS(antiphon_pool_create(&pool, 1, NULL), 0);
	antiphon_pool_spawn(pool, &group, hold, NULL);
	while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
		sched_yield();
	while (spawned < TASKS &&
	       antiphon_pool_tryspawn(pool, &group, mark, &done[spawned]) == 0)
		spawned++;
	YES(spawned > 0 && spawned < TASKS);
	IS(antiphon_pool_tryspawn(pool, NULL, mark, &done[spawned]), EAGAIN);
	/* Here, as there is no room. */
	antiphon_pool_spawn(pool, &group, mark, &done[spawned]);
	IS(done[spawned], 1);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	antiphon_task_group_wait(&group);
	for (task = 0; task < TASKS; task++)
		IS(done[task], task <= spawned);
	antiphon_pool_destroy(pool);
}

int main(void)
{
	antiphon_pool_t *none = NULL;
	antiphon_task_group_t empty = ANTIPHON_TASK_GROUP_INIT;
	antiphon_task_group_wait(&empty);
	IS(antiphon_pool_create(&none, 1, "filo"), EINVAL);
	IS(antiphon_pool_create(&none, 1, "fifo/neighbours-0"), EINVAL);
	IS(antiphon_pool_create(&none, 1, "\xff"), EINVAL);
	IS(antiphon_pool_create(&none, 1, "fifo,"), EINVAL);
	IS(antiphon_pool_create(&none, (size_t)-1, NULL), EINVAL);
	IS(antiphon_pool_create(&none, 4097, NULL), EINVAL);
	IS(antiphon_pool_create(&none, 1000000, "fifo"), EINVAL);
	YES(none == NULL);
	IS(antiphon_pool_create(&pool, 0, NULL), 0);
	YES(antiphon_pool_threads(pool) >= 1);
	antiphon_pool_destroy(pool);
	all_marked(NULL, 1);
	all_marked("lifo-slot/steal-one", 3);
	all_marked("lifo/steal-half/blocks", 3);
	nested();
	forks();
	turns();
	no_room();
	return 0;
}
