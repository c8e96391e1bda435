/* No function is a cancellation point: a cancelled thread goes on waiting, and ends later. */
#include "check.h"

#include <fcntl.h>

#include <antiphon_clock.h>
#include <antiphon_loop.h>
#include <antiphon_message.h>
#include <antiphon_pool.h>

static antiphon_mutex_t mutex = ANTIPHON_MUTEX_INIT;
static antiphon_cond_t changed = ANTIPHON_COND_INIT;
static int waiting, ready, cleaned, returned;

static void unlock(void *unused)
{
	(void)unused;
	cleaned = 1;
	antiphon_mutex_unlock(&mutex);
}

static void *wait_cancelled(void *unused)
{
	(void)unused;
	antiphon_mutex_lock(&mutex);
	pthread_cleanup_push(unlock, NULL);
	waiting = 1;
	while (!ready)
		antiphon_cond_wait(&changed, &mutex);
	returned = 1;
	pthread_testcancel();
	pthread_cleanup_pop(1);
	return NULL;
}

static void *lock_cancelled(void *unused)
{
	(void)unused;
	waiting = 1;
	antiphon_mutex_lock(&mutex);
	returned = 1;
	antiphon_mutex_unlock(&mutex);
	pthread_testcancel();
	return NULL;
}

/* Called by the C library, where a thread may be cancelled. */
static void close_it(void *data)
{
	close(*(int *)data);
}

static int never(antiphon_loop_t *loop, void *data, uint64_t *when)
{
	(void)loop, (void)data, (void)when;
	return ANTIPHON_LOOP_DONE;
}

/* Calls that open files, close them, or start threads, and wait for them. */
static void *calls_cancelled(void *unused)
{
	antiphon_coop_answer_t answer;
	antiphon_coop_member_t *member;
	antiphon_coop_t part;
	antiphon_loop_t *loop;
	antiphon_loop_event_t event;
	antiphon_loop_handle_t *handle;
	uint64_t id;
	int files[3], which;
	antiphon_pool_t *pool;
	antiphon_clock_t clock;
	antiphon_actions_t *actions;
	antiphon_mailbox_t *mailbox;
	antiphon_sender_t *sender;
	int here;
	memset(&event, 0, sizeof event);
	memset(&part, 0, sizeof part);
	part.domain = "capi-cancel";
	for (which = 0; which < 3; which++)
		files[which] = open("/dev/null", O_RDONLY);
	IS(pthread_cancel(pthread_self()), 0);
	here = antiphon_coop_available(NULL, 0);
	IS(antiphon_coop_join(&member, &part), 0);
	IS(antiphon_coop_poll(member, antiphon_loop_now_ns() + 1000000, ANTIPHON_COOP_NEVER,
			      &answer), 0);
	IS(antiphon_coop_leave(member), 0);
	IS(antiphon_loop_create(&loop), 0);
	IS(antiphon_loop_cooperate(loop, ANTIPHON_COOP_BATON, &part), 0);
	if (here & ANTIPHON_COOP_BOOST)
		IS(antiphon_loop_cooperate(loop, ANTIPHON_COOP_BOOST, &part), 0);
	IS(antiphon_loop_run(loop), 0);
	event.due = ANTIPHON_LOOP_WOKEN;
	event.call = never;
	event.end = close_it;
	event.data = &files[0];
	IS(antiphon_loop_submit(loop, &event, &id), 0);
	IS(antiphon_loop_cancel(loop, id), 0);
	event.data = &files[1];
	IS(antiphon_loop_watch(loop, files[1], ANTIPHON_LOOP_READ, &event, NULL), EPERM);
	handle = antiphon_loop_handle_create(loop);
	antiphon_loop_destroy(loop);
	event.data = &files[2];
	IS(antiphon_loop_handle_submit(handle, &event, NULL), ESRCH);
	antiphon_loop_handle_destroy(handle);
	IS(antiphon_pool_create(&pool, 2, NULL), 0);
	antiphon_pool_destroy(pool);
	(void)!antiphon_clock_measure(&clock);
	IS(antiphon_actions_create(&actions, 1), 0);
	IS(antiphon_mailbox_create(&mailbox, actions, 4, ANTIPHON_MAILBOX_FILE), 0);
	sender = antiphon_mailbox_sender(mailbox);
	antiphon_mailbox_close(mailbox, NULL, NULL);
	antiphon_sender_destroy(sender);
	antiphon_actions_destroy(actions);
	returned = 1;
	pthread_testcancel();
	return unused;
}

int main(void)
{
	pthread_t waiter;
	watchdog();
	waiter = start(wait_cancelled, NULL);
	for (;;) {
		antiphon_mutex_lock(&mutex);
		if (waiting)
			break;
		antiphon_mutex_unlock(&mutex);
		usleep(1000);
	}
	antiphon_mutex_unlock(&mutex);
	IS(pthread_cancel(waiter), 0);
	settle();
	antiphon_mutex_lock(&mutex);
	IS(cleaned, 0);
	ready = 1;
	antiphon_cond_signal(&changed);
	antiphon_mutex_unlock(&mutex);
	YES(join(waiter) == PTHREAD_CANCELED);
	IS(returned, 1);
	IS(cleaned, 1);

	antiphon_mutex_lock(&mutex);
	waiting = returned = 0;
	waiter = start(lock_cancelled, NULL);
	IS(pthread_cancel(waiter), 0);
	settle();
	antiphon_mutex_unlock(&mutex);
	YES(join(waiter) == PTHREAD_CANCELED);
	IS(returned, 1);
	returned = 0;
	YES(join(start(calls_cancelled, NULL)) == PTHREAD_CANCELED);
	IS(returned, 1);
	IS(antiphon_mutex_destroy(&mutex), 0);
	return failures != 0;
}
