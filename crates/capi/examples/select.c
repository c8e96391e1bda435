/* Producers and a consumer, all fibers of one thread: it takes from whichever has something, until
 * it is told to stop.
 *
 *	cc select.c $(pkg-config --cflags --libs antiphon) -pthread -o select */
#include <antiphon_fiber.h>
#include <stdio.h>

enum { NUMBERS = 1000 };

static antiphon_channel_t *even, *odd;
static antiphon_token_t *stop;

/* Sends every second number, and waits where there is no room. */
static void produce(void *argument)
{
	antiphon_channel_t *channel = argument;
	for (uint64_t number = channel == odd; number < NUMBERS; number += 2)
		if (antiphon_channel_send(channel, &number) != 0)
			return;
}

static void consume(void *argument)
{
	uint64_t number, sum = 0, received = 0;
	size_t chosen;
	(void)argument;
	for (;;) {
		antiphon_case_t cases[] = {
			ANTIPHON_CASE_RECV(even, &number),
			ANTIPHON_CASE_RECV(odd, &number),
			ANTIPHON_CASE_TOKEN(stop),
		};
		if (antiphon_select(cases, 3, &chosen) != 0 || chosen == 2)
			break;
		sum += number;
		if (++received == NUMBERS)
			antiphon_token_cancel(stop);
	}
	printf("%lu numbers, sum %lu\n", (unsigned long)received, (unsigned long)sum);
}

int main(void)
{
	antiphon_task_group_t group = ANTIPHON_TASK_GROUP_INIT;
	antiphon_pool_t *pool;
	if (antiphon_fiber_pool_create(&pool, 1, NULL, 0) != 0 ||
	    antiphon_channel_create(&even, sizeof(uint64_t), 4) != 0 ||
	    antiphon_channel_create(&odd, sizeof(uint64_t), 4) != 0)
		return 1;
	antiphon_token_create(&stop, NULL);
	antiphon_pool_spawn(pool, &group, consume, NULL);
	antiphon_pool_spawn(pool, &group, produce, even);
	antiphon_pool_spawn(pool, &group, produce, odd);
	antiphon_task_group_wait(&group);
	antiphon_pool_destroy(pool);
	antiphon_channel_destroy(even);
	antiphon_channel_destroy(odd);
	antiphon_token_destroy(stop);
	return 0;
}
