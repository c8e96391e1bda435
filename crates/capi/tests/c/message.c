/* Active messages: delivery, order, room, withdrawal, event loops, groups, misuse. */
#include "check.h"

#include <poll.h>

#include <antiphon_message.h>

enum { SENDERS = 3, EACH = 5000 };

static antiphon_actions_t *actions;
static antiphon_mailbox_t *mailbox;
static antiphon_sender_t *sender;
static antiphon_delivered_t delivered;
static uint32_t add, touch, meddle;
static uint64_t last[SENDERS], sum;
static int touched, codes[4], left, missed;

/* Words: what to add, the sender, which of its messages it is. */
static void run_add(void *context, const uint64_t *words)
{
	*(uint64_t *)context += words[0];
	IS(words[2], last[words[1]] + 1);
	last[words[1]] = words[2];
}

static void run_touch(void *context)
{
	++*(int *)context;
}

/* Calls that an action must not make. */
static void run_meddle(void *context, const uint64_t *words)
{
	antiphon_delivered_t inner;
	(void)words;
	codes[0] = antiphon_mailbox_poll(mailbox, &inner);
	codes[1] = antiphon_mailbox_close(mailbox, NULL, NULL);
	codes[2] = antiphon_actions_unregister(actions, *(uint32_t *)context);
	codes[3] = antiphon_mailbox_doze(mailbox);
}

static void run_nothing(void *unused, const uint64_t *words)
{
	(void)unused, (void)words;
}

static antiphon_message_t message(uint32_t action, uint64_t a, uint64_t b, uint64_t c)
{
	antiphon_message_t made = { 0, 0, { 0, 0, 0 } };
	made.action = action;
	made.payload[0] = a;
	made.payload[1] = b;
	made.payload[2] = c;
	return made;
}

static void *post(void *number)
{
	const struct timespec late = in_ms(CLOCK_MONOTONIC, 60000);
	uint64_t who = (uint64_t)(uintptr_t)number;
	int at;
	for (at = 1; at <= EACH; at++) {
		antiphon_message_t one = message(add, 2, who, (uint64_t)at);
		if (at % 2)
			IS(antiphon_sender_post_wait(sender, &one), 0);
		else
			IS(antiphon_sender_post_timedwait(sender, &one, CLOCK_MONOTONIC, &late), 0);
	}
	IS(antiphon_sender_signal(sender, touch), 0);
	return NULL;
}

static void many_to_one(int kind)
{
	pthread_t threads[SENDERS];
	uint64_t messages = 0;
	uintptr_t at;
	memset(last, 0, sizeof last);
	sum = 0;
	touched = 0;
	IS(antiphon_mailbox_create(&mailbox, actions, 16, kind), 0);
	sender = antiphon_mailbox_sender(mailbox);
	for (at = 0; at < SENDERS; at++)
		threads[at] = start(post, (void *)at);
	while (messages < SENDERS * EACH) {
		IS(antiphon_mailbox_wait(mailbox, &delivered), 0);
		messages += delivered.messages;
		IS(delivered.strays, 0);
	}
	for (at = 0; at < SENDERS; at++)
		join(threads[at]);
	(void)!antiphon_mailbox_poll(mailbox, &delivered);
	YES(touched >= 1 && touched <= SENDERS);
	IS(sum, 2 * SENDERS * EACH);
	IS(antiphon_mailbox_poll(mailbox, &delivered), EAGAIN);
	IS(delivered.messages, 0);
	IS(antiphon_mailbox_close(mailbox, NULL, NULL), 0);
	antiphon_sender_destroy(sender);
}

static void count_left(void *context, const antiphon_message_t *message)
{
	IS(message->action, add);
	IS(message->payload[2], ++*(uint64_t *)context);
	left++;
}

static void room_and_end(void)
{
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 5), odd = { 0, -1 };
	antiphon_message_t one = message(add, 1, 0, 0);
	uint64_t order = 0;
	int at;
	IS(antiphon_mailbox_create(&mailbox, actions, 4, ANTIPHON_MAILBOX_PARKS), 0);
	sender = antiphon_mailbox_sender(mailbox);
	IS(antiphon_mailbox_timedwait(mailbox, &delivered, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
	YES(passed(CLOCK_MONOTONIC, &soon));
	IS(antiphon_mailbox_timedwait(mailbox, &delivered, CLOCK_MONOTONIC, &odd), EINVAL);
	for (at = 1; at <= 4; at++) {
		one.payload[2] = (uint64_t)at;
		IS(antiphon_sender_post(sender, &one), 0);
	}
	IS(antiphon_sender_post(sender, &one), EAGAIN);
	soon = in_ms(CLOCK_REALTIME, 5);
	IS(antiphon_sender_post_timedwait(sender, &one, CLOCK_REALTIME, &soon), ETIMEDOUT);
	IS(antiphon_sender_post_timedwait(sender, &one, 99, &soon), EINVAL);
	/* A signal needs no room; messages are not signalled. */
	IS(antiphon_sender_signal(sender, touch), 0);
	IS(antiphon_sender_signal(sender, add), EINVAL);
	IS(antiphon_sender_signal(sender, UINT32_MAX), EINVAL);
	IS(antiphon_sender_signal(sender, touch + 1), ENOENT);
	IS(antiphon_mailbox_close(mailbox, count_left, &order), 0);
	IS(left, 4);
	IS(antiphon_sender_post(sender, &one), EPIPE);
	IS(antiphon_sender_post_wait(sender, &one), EPIPE);
	IS(antiphon_sender_signal(sender, touch), EPIPE);
	antiphon_sender_destroy(sender);
}

static int posted;

static void *wait_closed(void *unused)
{
	antiphon_message_t one = message(add, 1, 0, 1);
	(void)unused;
	IS(antiphon_sender_post(sender, &one), 0);
	__atomic_store_n(&posted, 1, __ATOMIC_RELEASE);
	IS(antiphon_sender_post_wait(sender, &one), EPIPE);
	return NULL;
}

static void *wait_message(void *unused)
{
	int code;
	(void)unused;
	/* The other one looks whether we have it, and has it for that moment. */
	do
		code = antiphon_mailbox_wait(mailbox, &delivered);
	while (code == EBUSY);
	IS(code, 0);
	return NULL;
}

/* A message of zeros names no action, though a signal's is the table's first; nor does that one. */
static void unnamed(void)
{
	const struct timespec late = in_ms(CLOCK_MONOTONIC, 60000);
	antiphon_message_t one = message(0, 0, 0, 0);
	const int before = touched;
	IS(antiphon_sender_post(sender, &one), EINVAL);
	IS(antiphon_sender_post_wait(sender, &one), EINVAL);
	IS(antiphon_sender_post_timedwait(sender, &one, CLOCK_MONOTONIC, &late), EINVAL);
	one.action = touch;
	IS(antiphon_sender_post(sender, &one), EINVAL);
	IS(antiphon_sender_signal(sender, 0), ENOENT);
	IS(antiphon_actions_unregister(actions, 0), ENOENT);
	IS(antiphon_mailbox_poll(mailbox, &delivered), EAGAIN);
	IS(touched, before);
}

static void misuse(void)
{
	antiphon_delivered_t mine;
	antiphon_message_t one = message(meddle, 0, 0, 0);
	pthread_t thread;
	IS(antiphon_mailbox_create(&mailbox, actions, 0, ANTIPHON_MAILBOX_PARKS), EINVAL);
	IS(antiphon_mailbox_create(&mailbox, actions, ANTIPHON_MAILBOX_MAX + 1, 0), EINVAL);
	IS(antiphon_mailbox_create(&mailbox, actions, 1, 3), EINVAL);
	IS(antiphon_mailbox_create(&mailbox, actions, 1, ANTIPHON_MAILBOX_PARKS), 0);
	IS(antiphon_mailbox_fd(mailbox), -1);
	IS(antiphon_mailbox_doze(mailbox), EINVAL);
	sender = antiphon_mailbox_sender(mailbox);
	IS(antiphon_sender_post(sender, &one), 0);
	IS(antiphon_mailbox_poll(mailbox, &delivered), 0);
	IS(codes[0], EBUSY);
	IS(codes[1], EBUSY);
	IS(codes[2], EDEADLK);
	IS(codes[3], EINVAL);
	/* Another thread has it. */
	thread = start(wait_message, NULL);
	while (antiphon_mailbox_poll(mailbox, &mine) != EBUSY)
		usleep(1000);
	IS(antiphon_mailbox_close(mailbox, NULL, NULL), EBUSY);
	/* An action that is not registered is a stray. */
	one.action = UINT32_MAX;
	IS(antiphon_sender_post(sender, &one), 0);
	join(thread);
	IS(delivered.strays, 1);
	unnamed();
	thread = start(wait_closed, NULL);
	while (!__atomic_load_n(&posted, __ATOMIC_ACQUIRE))
		usleep(1000);
	settle();
	IS(antiphon_mailbox_close(mailbox, NULL, NULL), 0);
	join(thread);
	antiphon_sender_destroy(sender);
}

/* An action is gone when it is unregistered, and its place has another name. */
static void withdrawal(void)
{
	antiphon_message_t one;
	uint32_t first = 0, second = 0;
	IS(antiphon_mailbox_create(&mailbox, actions, 4, ANTIPHON_MAILBOX_PARKS), 0);
	sender = antiphon_mailbox_sender(mailbox);
	IS(antiphon_actions_register(actions, run_meddle, &first, &first), 0);
	one = message(first, 0, 0, 0);
	IS(antiphon_sender_post(sender, &one), 0);
	IS(antiphon_actions_unregister(actions, first), 0);
	IS(antiphon_actions_unregister(actions, first), ENOENT);
	IS(antiphon_actions_register(actions, run_meddle, &first, &second), 0);
	YES(second != first);
	codes[0] = 0;
	IS(antiphon_mailbox_poll(mailbox, &delivered), 0);
	IS(delivered.strays, 1);
	IS(codes[0], 0);
	IS(antiphon_actions_register(actions, run_meddle, NULL, &first), ENOSPC);
	IS(antiphon_actions_unregister(actions, second), 0);
	IS(antiphon_actions_unregister(actions, UINT32_MAX), ENOENT);
	IS(antiphon_mailbox_close(mailbox, NULL, NULL), 0);
	antiphon_sender_destroy(sender);
}

static void *post_later(void *unused)
{
	antiphon_message_t one = message(add, 1, 0, 1);
	(void)unused;
	settle();
	IS(antiphon_sender_post(sender, &one), 0);
	return NULL;
}

static void event_loop(void)
{
	antiphon_message_t one = message(add, 1, 0, 1);
	struct pollfd file = { -1, POLLIN, 0 };
	pthread_t thread;
	last[0] = 0;
	IS(antiphon_mailbox_create(&mailbox, actions, 4, ANTIPHON_MAILBOX_FILE), 0);
	sender = antiphon_mailbox_sender(mailbox);
	file.fd = antiphon_mailbox_fd(mailbox);
	IS(antiphon_mailbox_doze(mailbox), 0);
	IS(poll(&file, 1, 0), 0);
	thread = start(post_later, NULL);
	IS(poll(&file, 1, 60000), 1);
	join(thread);
	IS(antiphon_mailbox_doze(mailbox), EAGAIN);
	IS(antiphon_mailbox_poll(mailbox, &delivered), 0);
	IS(delivered.messages, 1);
	IS(poll(&file, 1, 0), 0);
	/* Awake: the file is left alone. */
	last[0] = 0;
	IS(antiphon_sender_post(sender, &one), 0);
	IS(poll(&file, 1, 0), 0);
	IS(antiphon_mailbox_poll(mailbox, &delivered), 0);
	/* Closed in its doze. */
	IS(antiphon_mailbox_doze(mailbox), 0);
	IS(antiphon_mailbox_close(mailbox, NULL, NULL), 0);
	antiphon_sender_destroy(sender);
}

static void tell_missed(void *context, size_t member, int code)
{
	IS(member, *(size_t *)context);
	IS(code, EAGAIN);
	missed++;
}

static void tell_unnamed(void *unused, size_t member, int code)
{
	(void)unused, (void)member;
	IS(code, EINVAL);
	missed++;
}

static void groups(void)
{
	antiphon_group_t *group = antiphon_group_create();
	antiphon_message_t one;
	antiphon_mailbox_t *boxes[3];
	antiphon_sender_t *senders[3];
	size_t full = 1;
	uint32_t id = 0;
	int at;
	IS(antiphon_actions_register(actions, run_nothing, NULL, &id), 0);
	one = message(id, 0, 0, 0);
	for (at = 0; at < 3; at++) {
		IS(antiphon_mailbox_create(&boxes[at], actions, 1, ANTIPHON_MAILBOX_PARKS), 0);
		senders[at] = antiphon_mailbox_sender(boxes[at]);
		antiphon_group_add(group, at == 2, senders[at]);
		antiphon_sender_destroy(senders[at]);
	}
	IS(antiphon_group_multicast(group, 1, &one, tell_missed, &full), 0);
	IS(antiphon_mailbox_poll(boxes[2], &delivered), 0);
	IS(antiphon_group_broadcast(group, &one, NULL, NULL), 0);
	IS(antiphon_mailbox_poll(boxes[0], &delivered), 0);
	IS(antiphon_mailbox_poll(boxes[2], &delivered), 0);
	/* The second has had no look. */
	IS(antiphon_group_broadcast(group, &one, tell_missed, &full), 1);
	IS(missed, 1);
	one.action = 0;
	IS(antiphon_group_broadcast(group, &one, tell_unnamed, NULL), 3);
	IS(missed, 4);
	antiphon_group_destroy(group);
	for (at = 0; at < 3; at++)
		IS(antiphon_mailbox_close(boxes[at], NULL, NULL), 0);
	YES(antiphon_current_socket() < 1024);
}

int main(void)
{
	watchdog();
	IS(antiphon_actions_create(&actions, ANTIPHON_ACTIONS_MAX + 1), EINVAL);
	IS(antiphon_actions_create(&actions, 3), 0);
	IS(antiphon_actions_register(actions, run_add, &sum, &add), 0);
	IS(antiphon_actions_register(actions, run_meddle, &add, &meddle), 0);
	IS(antiphon_actions_register_signal(actions, run_touch, &touched, &touch), 0);
	many_to_one(ANTIPHON_MAILBOX_PARKS);
	many_to_one(ANTIPHON_MAILBOX_FILE);
	room_and_end();
	misuse();
	withdrawal();
	event_loop();
	groups();
	antiphon_actions_destroy(actions);
	return failures != 0;
}
