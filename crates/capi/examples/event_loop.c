/* An event loop that waits for a mailbox beside another file: other threads post to it, and lines
 * come through a pipe.
 *
 *	cc event_loop.c $(pkg-config --cflags --libs antiphon) -pthread -o event_loop */
#include <antiphon_message.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { POSTS = 1000, BYTES = 500 };

static antiphon_sender_t *sender;
static uint32_t add;
static uint64_t sum;
static int ends[2];

/* Runs on the thread of the loop: no lock is needed. */
static void run_add(void *context, const uint64_t *words)
{
	*(uint64_t *)context += words[0];
}

static void *post(void *unused)
{
	antiphon_message_t message = { add, 0, { 1, 0, 0 } };
	for (int at = 0; at < POSTS; at++)
		if (antiphon_sender_post_wait(sender, &message) != 0)
			fprintf(stderr, "the mailbox is gone\n");
	return unused;
}

static void *write_bytes(void *unused)
{
	for (int at = 0; at < BYTES; at++)
		if (write(ends[1], "x", 1) != 1)
			perror("write");
	close(ends[1]);
	return unused;
}

int main(void)
{
	antiphon_actions_t *actions;
	antiphon_mailbox_t *mailbox;
	antiphon_delivered_t delivered;
	pthread_t threads[2];
	long bytes = 0;
	int open = 1;
	if (antiphon_actions_create(&actions, 1) != 0 ||
	    antiphon_actions_register(actions, run_add, &sum, &add) != 0 ||
	    antiphon_mailbox_create(&mailbox, actions, 64, ANTIPHON_MAILBOX_FILE) != 0 ||
	    pipe(ends) != 0)
		return 1;
	sender = antiphon_mailbox_sender(mailbox);
	if (pthread_create(&threads[0], NULL, post, NULL) != 0 ||
	    pthread_create(&threads[1], NULL, write_bytes, NULL) != 0)
		return 1;
	struct pollfd files[] = { { ends[0], POLLIN, 0 },
				  { antiphon_mailbox_fd(mailbox), POLLIN, 0 } };
	while (open || sum < POSTS) {
		/* A message that is posted from here on ends the sleep; if one is there, don't sleep. */
		int sleeps = antiphon_mailbox_doze(mailbox) == 0;
		if (poll(files, 2, sleeps ? -1 : 0) < 0)
			return 1;
		if (files[0].revents != 0) {
			char some[64];
			ssize_t got = read(ends[0], some, sizeof some);
			bytes += got;
			if (got <= 0) {
				open = 0;
				/* poll passes it by. */
				files[0].fd = -1;
			}
		}
		/* Also awakes the mailbox from its doze. EAGAIN: it was the pipe. */
		(void)!antiphon_mailbox_poll(mailbox, &delivered);
	}
	for (int at = 0; at < 2; at++)
		pthread_join(threads[at], NULL);
	antiphon_sender_destroy(sender);
	antiphon_mailbox_close(mailbox, NULL, NULL);
	antiphon_actions_destroy(actions);
	printf("%lu posted, %ld bytes, one thread\n", (unsigned long)sum, bytes);
	return 0;
}
