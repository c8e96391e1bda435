/* Fibers: each kind of wait suspends one and not its thread; channels, promises, tokens, select. */
#include "check.h"

#include <antiphon_fiber.h>

enum { FIBERS = 500, ITEMS = 5000 };

static antiphon_pool_t *pool;
static antiphon_task_group_t group = ANTIPHON_TASK_GROUP_INIT;

static void fibers(size_t threads)
{
	IS(antiphon_fiber_pool_create(&pool, threads, NULL, 0), 0);
}

static void spawn(void (*run)(void *argument), void *argument)
{
	antiphon_pool_spawn(pool, &group, run, argument);
}

/* Each waits for the next, all on one thread. */
static antiphon_latch_t chain[FIBERS + 1];
static antiphon_mutex_t lock = ANTIPHON_MUTEX_INIT;
static int been;

static void pass_on(void *argument)
{
	antiphon_latch_t *mine = argument;
	YES(antiphon_fiber_is_fiber());
	antiphon_latch_wait(mine + 1);
	antiphon_mutex_lock(&lock);
	antiphon_fiber_yield();
	been++;
	antiphon_mutex_unlock(&lock);
	antiphon_fiber_yield_soft();
	antiphon_fiber_checkpoint();
	antiphon_latch_count_down(mine, 1);
}

static void fibers_wait_for_each_other(void)
{
	struct timespec begun = in_ms(CLOCK_MONOTONIC, 0), until = in_ms(CLOCK_MONOTONIC, 5);
	int fiber;
	YES(!antiphon_fiber_is_fiber());
	antiphon_fiber_yield();
	antiphon_fiber_checkpoint();
	for (fiber = 0; fiber <= FIBERS; fiber++)
		IS(antiphon_latch_init(&chain[fiber], 1), 0);
	fibers(1);
	for (fiber = 0; fiber < FIBERS; fiber++)
		spawn(pass_on, &chain[fiber]);
	antiphon_latch_count_down(&chain[FIBERS], 1);
	antiphon_latch_wait(&chain[0]);
	antiphon_task_group_wait(&group);
	IS(been, FIBERS);
	antiphon_fiber_sleep(1000);
	YES(passed(CLOCK_MONOTONIC, &begun));
	IS(antiphon_fiber_sleep_until(CLOCK_MONOTONIC, &until), 0);
	YES(passed(CLOCK_MONOTONIC, &until));
	IS(antiphon_fiber_sleep_until(CLOCK_PROCESS_CPUTIME_ID, &until), EINVAL);
	antiphon_pool_destroy(pool);
	IS(antiphon_fiber_pool_create(&pool, 1, "filo", 0), EINVAL);
	IS(antiphon_fiber_pool_create(&pool, 1, NULL, 1), EINVAL);
	IS(antiphon_fiber_pool_create(&pool, 4097, NULL, 0), EINVAL);
	IS(antiphon_fiber_pool_create(&pool, 1, "fifo", 256 << 10), 0);
	antiphon_pool_destroy(pool);
}

/* Items of each size, through room for few. */
struct item {
	uint32_t number;
	unsigned char bytes[96];
};

static antiphon_channel_t *items, *sums;
static antiphon_latch_t sent;
static size_t bytes_of_item;

static void send_items(void *argument)
{
	struct item item;
	(void)argument;
	memset(&item, 7, sizeof item);
	for (item.number = 1; item.number <= ITEMS; item.number++)
		IS(antiphon_channel_send(items, &item), 0);
	antiphon_latch_count_down(&sent, 1);
}

static void receive_items(void *argument)
{
	uint64_t sum = 0;
	struct item item;
	(void)argument;
	for (;;) {
		size_t byte;
		int code;
		memset(&item, 0, sizeof item);
		code = antiphon_channel_recv(items, &item);
		if (code != 0) {
			IS(code, EPIPE);
			break;
		}
		sum += item.number;
		for (byte = sizeof item.number; byte < sizeof item; byte++)
			IS(((unsigned char *)&item)[byte], byte < bytes_of_item ? 7 : 0);
	}
	IS(antiphon_channel_send(sums, &sum), 0);
}

static void items_of(size_t bytes, size_t threads)
{
	uint64_t sum = 0;
	int part;
	bytes_of_item = bytes;
	IS(antiphon_channel_create(&items, bytes, 3), 0);
	IS(antiphon_channel_create(&sums, sizeof sum, 8), 0);
	IS(antiphon_channel_room(items), 4);
	IS(antiphon_latch_init(&sent, 2), 0);
	fibers(threads);
	spawn(receive_items, NULL);
	spawn(receive_items, NULL);
	spawn(send_items, NULL);
	/* A thread beside them. */
	send_items(NULL);
	antiphon_latch_wait(&sent);
	/* Items that were sent are received. */
	antiphon_channel_close(items);
	for (part = 0; part < 2; part++) {
		uint64_t more = 0;
		IS(antiphon_channel_recv(sums, &more), 0);
		sum += more;
	}
	antiphon_task_group_wait(&group);
	antiphon_pool_destroy(pool);
	antiphon_channel_destroy(items);
	antiphon_channel_destroy(sums);
	IS(sum, (uint64_t)ITEMS * (ITEMS + 1));
}

static void channels_say_what_is(void)
{
	antiphon_channel_t *channel = NULL;
	struct timespec soon = in_ms(CLOCK_REALTIME, 5);
	uint32_t item = 1, large[64] = { 0 };
	IS(antiphon_channel_create(&channel, 4, 0), EINVAL);
	IS(antiphon_channel_create(&channel, 4, (size_t)-1), EINVAL);
	IS(antiphon_channel_create(&channel, ANTIPHON_ITEM_MAX + 1u, 1), EINVAL);
	YES(channel == NULL);
	IS(antiphon_channel_create(&channel, 4, 1), 0);
	IS(antiphon_channel_tryrecv(channel, &item), EAGAIN);
	IS(antiphon_channel_timedrecv(channel, &item, CLOCK_REALTIME, &soon), ETIMEDOUT);
	YES(passed(CLOCK_REALTIME, &soon));
	IS(antiphon_channel_timedrecv(channel, &item, 77, &soon), EINVAL);
	IS(antiphon_channel_trysend(channel, &item), 0);
	IS(antiphon_channel_trysend(channel, &item), EAGAIN);
	IS(antiphon_channel_timedsend(channel, &item, CLOCK_REALTIME, &soon), ETIMEDOUT);
	IS(antiphon_channel_len(channel), 1);
	antiphon_channel_close(channel);
	IS(antiphon_channel_send(channel, &item), EPIPE);
	IS(antiphon_channel_trysend(channel, &item), EPIPE);
	item = 0;
	IS(antiphon_channel_recv(channel, &item), 0);
	IS(item, 1);
	IS(antiphon_channel_tryrecv(channel, &item), EPIPE);
	antiphon_channel_destroy(channel);
	/* An item that was not received is freed; items may have no bytes. */
	IS(antiphon_channel_create(&channel, sizeof large, 2), 0);
	IS(antiphon_channel_send(channel, large), 0);
	antiphon_channel_destroy(channel);
	IS(antiphon_channel_create(&channel, 0, 2), 0);
	IS(antiphon_channel_send(channel, NULL), 0);
	IS(antiphon_channel_recv(channel, NULL), 0);
	antiphon_channel_destroy(channel);
}

static void keep_promise(void *argument)
{
	antiphon_fiber_sleep(100000);
	antiphon_promise_fulfil(argument, argument);
}

static void promises(void)
{
	antiphon_promise_t *promise;
	antiphon_awaited_t *awaited;
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 5);
	void *value = NULL;
	fibers(1);
	antiphon_promise_create(&promise, &awaited);
	IS(antiphon_awaited_trywait(awaited, &value), EBUSY);
	IS(antiphon_awaited_timedwait(awaited, &value, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
	YES(value == NULL);
	spawn(keep_promise, promise);
	IS(antiphon_awaited_wait(awaited, &value), 0);
	YES(value == promise);
	value = NULL;
	IS(antiphon_awaited_trywait(awaited, &value), 0);
	IS(antiphon_awaited_timedwait(awaited, &value, CLOCK_MONOTONIC, &soon), 0);
	YES(value == promise);
	antiphon_awaited_destroy(awaited);
	antiphon_promise_create(&promise, &awaited);
	antiphon_promise_break(promise);
	IS(antiphon_awaited_wait(awaited, &value), EPIPE);
	IS(antiphon_awaited_wait(awaited, &value), EPIPE);
	antiphon_awaited_destroy(awaited);
	antiphon_promise_create(&promise, &awaited);
	antiphon_awaited_destroy(awaited);
	antiphon_promise_fulfil(promise, NULL);
	antiphon_task_group_wait(&group);
	antiphon_pool_destroy(pool);
}

static void wait_for_token(void *argument)
{
	antiphon_token_wait(argument);
	YES(antiphon_token_is_cancelled(argument));
}

static void tokens(void)
{
	antiphon_token_t *all, *some, *soon;
	struct timespec until = in_ms(CLOCK_MONOTONIC, 5);
	fibers(1);
	antiphon_token_create(&all, NULL);
	antiphon_token_create(&some, all);
	IS(antiphon_token_create_until(&soon, some, CLOCK_MONOTONIC, &until), 0);
	IS(antiphon_token_create_until(&soon, some, 77, &until), EINVAL);
	spawn(wait_for_token, soon);
	wait_for_token(soon);
	YES(passed(CLOCK_MONOTONIC, &until));
	YES(!antiphon_token_is_cancelled(some));
	IS(antiphon_token_timedwait(some, CLOCK_MONOTONIC, &until), ETIMEDOUT);
	spawn(wait_for_token, some);
	antiphon_token_cancel(all);
	antiphon_task_group_wait(&group);
	IS(antiphon_token_timedwait(some, CLOCK_MONOTONIC, &until), 0);
	antiphon_token_destroy(all);
	antiphon_token_destroy(some);
	antiphon_token_destroy(soon);
	antiphon_pool_destroy(pool);
}

static int pair[2];

static void read_pair(void *argument)
{
	IS(read(pair[0], argument, 1), 1);
}

static void wait_for_pair(void *argument)
{
	antiphon_pool_blocking(read_pair, argument);
}

static void write_pair(void *argument)
{
	IS(write(pair[1], argument, 1), 1);
}

/* The only thread is in a read, and another runs the task that ends it. */
static void blocking(void)
{
	char got = 0, sent = 5;
	IS(pipe(pair), 0);
	fibers(1);
	spawn(wait_for_pair, &got);
	spawn(write_pair, &sent);
	antiphon_task_group_wait(&group);
	IS(got, 5);
	antiphon_pool_blocking(write_pair, &sent);
	antiphon_pool_destroy(pool);
}

/* Receives of two until both are closed, and leaves a closed one out. */
static antiphon_channel_t *both[2];

static void send_to(void *argument)
{
	antiphon_channel_t *channel = argument;
	uint64_t number;
	for (number = 1; number <= ITEMS; number++) {
		antiphon_case_t cases[] = { ANTIPHON_CASE_SEND(channel, &number) };
		size_t chosen = 9;
		IS(antiphon_select(cases, 1, &chosen), 0);
		IS(chosen, 0);
		IS(cases[0].code, 0);
	}
	antiphon_channel_close(channel);
}

static void receive_both(void *argument)
{
	uint64_t item[2] = { 0, 0 }, *sum = argument;
	antiphon_case_t cases[] = {
		ANTIPHON_CASE_RECV(both[0], &item[0]),
		ANTIPHON_CASE_RECV(both[1], &item[1]),
	};
	int left = 2;
	while (left > 0) {
		size_t chosen = 9;
		IS(antiphon_select(cases, 2, &chosen), 0);
		YES(chosen < 2);
		if (cases[chosen].code == 0) {
			*sum += item[chosen];
		} else {
			IS(cases[chosen].code, EPIPE);
			cases[chosen].kind = ANTIPHON_CASE_KIND_NEVER;
			left--;
		}
	}
}

static void selects(size_t threads)
{
	uint64_t sum = 0;
	fibers(threads);
	IS(antiphon_channel_create(&both[0], sizeof sum, 1), 0);
	IS(antiphon_channel_create(&both[1], sizeof sum, 16), 0);
	spawn(receive_both, &sum);
	spawn(send_to, both[0]);
	spawn(send_to, both[1]);
	antiphon_task_group_wait(&group);
	IS(sum, (uint64_t)ITEMS * (ITEMS + 1));
	antiphon_channel_destroy(both[0]);
	antiphon_channel_destroy(both[1]);
	antiphon_pool_destroy(pool);
}

static antiphon_event_t event = ANTIPHON_EVENT_INIT;
static antiphon_latch_t latch = ANTIPHON_LATCH_INIT(1);

/* Each kind is chosen when it is ready, and none before. */
static void each_kind(void)
{
	antiphon_channel_t *channel;
	antiphon_token_t *token;
	antiphon_promise_t *promise;
	antiphon_awaited_t *awaited;
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 5);
	uint32_t item = 3, sent = 4;
	size_t chosen = 99;
	void *value = NULL;
	int filler;
	IS(antiphon_channel_create(&channel, sizeof item, 1), 0);
	antiphon_token_create(&token, NULL);
	antiphon_promise_create(&promise, &awaited);
	{
		antiphon_case_t cases[12] = {
			ANTIPHON_CASE_RECV(channel, &item),   ANTIPHON_CASE_EVENT(&event),
			ANTIPHON_CASE_LATCH(&latch),          ANTIPHON_CASE_TOKEN(token),
			ANTIPHON_CASE_AWAITED(awaited, &value), ANTIPHON_CASE_SEND(channel, &sent),
		};
		/* More than need no allocation; zeroes are ANTIPHON_CASE_NEVER. */
		for (filler = 5; filler <= 12; filler += 7) {
			size_t count = (size_t)filler;
			cases[5].kind = ANTIPHON_CASE_KIND_NEVER;
			IS(antiphon_tryselect(cases, count, &chosen), EAGAIN);
			IS(antiphon_timedselect(cases, count, &chosen, CLOCK_MONOTONIC, &soon),
			   ETIMEDOUT);
			IS(antiphon_timedselect(cases, count, &chosen, 77, &soon), EINVAL);
			YES(passed(CLOCK_MONOTONIC, &soon));
			cases[5].kind = ANTIPHON_CASE_KIND_SEND;
			IS(antiphon_select(cases + 5, 1, &chosen), 0);
			IS(chosen, 0);
			cases[5].kind = ANTIPHON_CASE_KIND_NEVER;
			IS(antiphon_select(cases, count, &chosen), 0);
			IS(chosen, 0);
			IS(item, 4);
			antiphon_event_set(&event);
			IS(antiphon_select(cases, count, &chosen), 0);
			IS(chosen, 1);
			YES(!antiphon_event_is_set(&event));
		}
		antiphon_promise_fulfil(promise, &item);
		IS(antiphon_select(cases, 12, &chosen), 0);
		IS(chosen, 4);
		IS(cases[4].code, 0);
		YES(value == &item);
		/* The result stays the same. */
		value = NULL;
		IS(antiphon_tryselect(cases, 12, &chosen), 0);
		YES(chosen == 4 && value == &item);
		cases[4].kind = ANTIPHON_CASE_KIND_NEVER;
		antiphon_latch_count_down(&latch, 1);
		IS(antiphon_select(cases, 12, &chosen), 0);
		IS(chosen, 2);
		cases[2].kind = ANTIPHON_CASE_KIND_NEVER;
		antiphon_token_cancel(token);
		IS(antiphon_select(cases, 12, &chosen), 0);
		IS(chosen, 3);
		antiphon_channel_close(channel);
		IS(antiphon_select(cases + 5, 0, &chosen), EINVAL);
		cases[5].kind = ANTIPHON_CASE_KIND_SEND;
		IS(antiphon_select(cases + 5, 1, &chosen), 0);
		IS(cases[5].code, EPIPE);
		cases[5].kind = 77;
		IS(antiphon_tryselect(cases, 12, &chosen), EINVAL);
	}
	antiphon_awaited_destroy(awaited);
	antiphon_token_destroy(token);
	antiphon_channel_destroy(channel);
}

int main(void)
{
	watchdog();
	fibers_wait_for_each_other();
	items_of(4, 1);
	items_of(32, 2);
	items_of(33, 1);
	items_of(sizeof(struct item), 2);
	channels_say_what_is();
	promises();
	tokens();
	blocking();
	selects(1);
	selects(2);
	each_kind();
	return failures != 0;
}
