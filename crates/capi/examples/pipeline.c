/* A pipeline by active messages: three stages, each a thread with a mailbox. An item is a message;
 * a stage does its work in the action, and posts the result to the next.
 *
 *	cc pipeline.c $(pkg-config --cflags --libs antiphon) -pthread -o pipeline */
#include <antiphon_message.h>
#include <pthread.h>
#include <stdio.h>

enum { STAGES = 3, ITEMS = 1000 };

static uint64_t decode(uint64_t item)
{
	return item ^ 0x5a;
}

static uint64_t scale(uint64_t item)
{
	return item * 3;
}

static uint64_t clip(uint64_t item)
{
	return item < 2500 ? item : 2500;
}

static struct stage {
	uint64_t (*work)(uint64_t item);
	/* The action, the mailbox and the thread of a stage, and the sender that posts to it. */
	uint32_t process;
	antiphon_mailbox_t *mailbox;
	antiphon_sender_t *sender;
	pthread_t thread;
} stages[STAGES] = { { .work = decode }, { .work = scale }, { .work = clip } };

static uint64_t sum, items;

/* Runs an item through the stage, and posts it to the next. */
static void process(void *context, const uint64_t *words)
{
	struct stage *stage = context, *next = stage + 1;
	antiphon_message_t result = { 0, 0, { stage->work(words[0]), 0, 0 } };
	if (stage == &stages[STAGES - 1]) {
		sum += result.payload[0];
		items++;
		return;
	}
	result.action = next->process;
	/* No stage waits for one before it: the last makes room. */
	if (antiphon_sender_post_wait(next->sender, &result) != 0)
		fprintf(stderr, "the next stage is gone\n");
}

static void *run(void *argument)
{
	struct stage *stage = argument;
	antiphon_delivered_t delivered;
	uint64_t all = 0;
	while (all < ITEMS && antiphon_mailbox_wait(stage->mailbox, &delivered) == 0)
		all += delivered.messages;
	return NULL;
}

int main(void)
{
	antiphon_actions_t *actions;
	if (antiphon_actions_create(&actions, STAGES) != 0)
		return 1;
	for (struct stage *stage = stages; stage < stages + STAGES; stage++) {
		if (antiphon_actions_register(actions, process, stage, &stage->process) != 0 ||
		    antiphon_mailbox_create(&stage->mailbox, actions, 64,
					    ANTIPHON_MAILBOX_PARKS) != 0)
			return 1;
		stage->sender = antiphon_mailbox_sender(stage->mailbox);
	}
	for (struct stage *stage = stages; stage < stages + STAGES; stage++)
		if (pthread_create(&stage->thread, NULL, run, stage) != 0)
			return 1;
	for (uint64_t item = 0; item < ITEMS; item++) {
		antiphon_message_t message = { stages[0].process, 0, { item, 0, 0 } };
		/* Waits while the first stage is full; `post` would return EAGAIN. */
		if (antiphon_sender_post_wait(stages[0].sender, &message) != 0)
			return 1;
	}
	for (struct stage *stage = stages; stage < stages + STAGES; stage++) {
		pthread_join(stage->thread, NULL);
		antiphon_sender_destroy(stage->sender);
		antiphon_mailbox_close(stage->mailbox, NULL, NULL);
	}
	antiphon_actions_destroy(actions);
	printf("%lu items through %d threads, sum %lu\n", (unsigned long)items, STAGES,
	       (unsigned long)sum);
	return 0;
}
