/* antiphon_message.h: active messages. A sender names an action and gives it three words; the owner
 * of the mailbox runs the action when it polls or waits.
 *
 *	antiphon_actions_create(&actions, 16);
 *	antiphon_actions_register(actions, add, &sum, &id);
 *	antiphon_mailbox_create(&mailbox, actions, 64, ANTIPHON_MAILBOX_PARKS);
 *	sender = antiphon_mailbox_sender(mailbox);
 *
 *	antiphon_message_t message = { id, 0, { 20, 22, 0 } };
 *	antiphon_sender_post(sender, &message);			any thread
 *	antiphon_mailbox_wait(mailbox, &delivered);		the owner: calls add(&sum, words)
 *
 * |                   | message                            | signal                             |
 * |-------------------|------------------------------------|------------------------------------|
 * | carries           | an action and three words          | an action                          |
 * | runs it           | once for each message              | once or more after the last signal |
 * | mailbox full      | EAGAIN, or waits                   | is never refused                   |
 * | order             | as posted, of one sender           | none                               |
 *
 * Actions run only in antiphon_mailbox_poll, _wait and _timedwait. An action should be short, and
 * must return: no exception and no longjmp may leave it. It may post. It may wait for room only in
 * a mailbox whose owner never waits for this one, directly or by way of others. Nothing is
 * interrupted.
 *
 * The rules of antiphon.h hold, with these exceptions: objects are made and destroyed by functions,
 * which allocate (without memory, the program ends); objects cannot be used in a forked child; no
 * function may be called in signal handlers. Functions of one object may be called by several
 * threads at a time, except antiphon_group_add and the function that destroys the object, which
 * must be the last. */

#ifndef ANTIPHON_MESSAGE_H
#define ANTIPHON_MESSAGE_H

#include "antiphon.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A table of actions; a mailbox, as its owner has it; a handle by which others post; a group of
 * such handles. */
typedef struct antiphon_actions antiphon_actions_t;
typedef struct antiphon_mailbox antiphon_mailbox_t;
typedef struct antiphon_sender antiphon_sender_t;
typedef struct antiphon_group antiphon_group_t;

/* An action to run, and its arguments. */
typedef struct antiphon_message {
	/* The id from antiphon_actions_register; never 0, so a message of zeros is refused. */
	uint32_t action;
	/* Must be 0: reserved. */
	uint32_t antiphon_kept;
	uint64_t payload[3];
} antiphon_message_t;

/* Counts of what a poll has delivered. */
typedef struct antiphon_delivered {
	/* The number of messages, and of signals, whose actions have run. */
	uint32_t messages;
	uint32_t signals;
	/* The number of messages for actions that are not registered; they ran nothing. */
	uint32_t strays;
	uint32_t antiphon_kept;
} antiphon_delivered_t;

/* How the owner of a mailbox waits. */
enum antiphon_mailbox_kind {
	/* Spins for a while, then sleeps, like a waiter of a lock. */
	ANTIPHON_MAILBOX_PARKS = 0,
	/* Waits for a file (eventfd), also in an event loop beside others. */
	ANTIPHON_MAILBOX_FILE = 1,
	/* Spins without end, on a CPU that it has for itself: no system calls. */
	ANTIPHON_MAILBOX_SPINS = 2
};

/* The largest number of actions for messages, and of actions for signals, in a table. */
#define ANTIPHON_ACTIONS_MAX 961u
#define ANTIPHON_SIGNALS_MAX 63u

/* The largest capacity of a mailbox in messages, of 64 bytes each. */
#define ANTIPHON_MAILBOX_MAX 1048576u

/* --- actions --- */

/* Makes a table for `capacity` actions that messages run. EINVAL: more than
 * ANTIPHON_ACTIONS_MAX. */
ANTIPHON_MUST_USE
int antiphon_actions_create(antiphon_actions_t **actions, size_t capacity) ANTIPHON_NOEXCEPT;

/* Mailboxes that were made with the table go on as before. */
void antiphon_actions_destroy(antiphon_actions_t *actions) ANTIPHON_NOEXCEPT;

/* Registers an action: messages with `id` run run(context, payload) on the owner of the mailbox
 * that they are posted to, so several threads may run it at a time. Never waits. ENOSPC: the table
 * is full. */
ANTIPHON_MUST_USE
int antiphon_actions_register(antiphon_actions_t *actions,
			      void (*run)(void *context, const uint64_t *payload), void *context,
			      uint32_t *id) ANTIPHON_NOEXCEPT;

/* Registers an action for signals: signals with `id` run run(context). It must tolerate being run
 * without a signal: a signal of an action that was unregistered may be pending when another one
 * takes its place. ENOSPC. */
ANTIPHON_MUST_USE
int antiphon_actions_register_signal(antiphon_actions_t *actions, void (*run)(void *context),
				     void *context, uint32_t *id) ANTIPHON_NOEXCEPT;

/* When this returns 0, no thread runs the action, or ever will: its context may be freed. Messages
 * for it that are under way are delivered as strays. Waits until the batches that owners were
 * running are over. ENOENT: no such action is registered. EDEADLK: the caller is an action of this
 * table; call it on another thread. Nothing has changed then. */
ANTIPHON_MUST_USE
int antiphon_actions_unregister(antiphon_actions_t *actions, uint32_t id) ANTIPHON_NOEXCEPT;

/* --- mailbox: its owner is the thread that polls or waits, one at a time --- */

/* Makes a mailbox for at least `capacity` messages (the next power of two); `kind` is an enum
 * antiphon_mailbox_kind. EINVAL: another kind, or a capacity outside 1 to ANTIPHON_MAILBOX_MAX.
 * EMFILE, ENFILE and other errors of eventfd(2): no file could be made. */
ANTIPHON_MUST_USE
int antiphon_mailbox_create(antiphon_mailbox_t **mailbox, antiphon_actions_t *actions,
			    size_t capacity, int kind) ANTIPHON_NOEXCEPT;

/* Closes the mailbox and frees it: later posts, and posts that wait for room, return EPIPE. Calls
 * left(context, message) for each message that was not delivered, in order; `left` may be null.
 * Pending signals are dropped. EBUSY: a thread polls or waits, or the caller is an action of this
 * mailbox; nothing has changed then. */
int antiphon_mailbox_close(antiphon_mailbox_t *mailbox,
			   void (*left)(void *context, const antiphon_message_t *message),
			   void *context) ANTIPHON_NOEXCEPT;

/* Makes a handle that posts to the mailbox. */
ANTIPHON_MUST_USE
antiphon_sender_t *antiphon_mailbox_sender(antiphon_mailbox_t *mailbox) ANTIPHON_NOEXCEPT;

/* Delivers pending signals and at most 64 messages. Waits for nothing but the actions. EAGAIN:
 * nothing was pending. EBUSY: another thread polls or waits, or the caller is an action of this
 * mailbox; `delivered` was not written. */
ANTIPHON_MUST_USE
int antiphon_mailbox_poll(antiphon_mailbox_t *mailbox,
			  antiphon_delivered_t *delivered) ANTIPHON_NOEXCEPT;

/* Same as poll, but waits until something is pending. EBUSY. */
int antiphon_mailbox_wait(antiphon_mailbox_t *mailbox,
			  antiphon_delivered_t *delivered) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL, EBUSY. */
ANTIPHON_MUST_USE
int antiphon_mailbox_timedwait(antiphon_mailbox_t *mailbox, antiphon_delivered_t *delivered,
			       int clock, const struct timespec *until) ANTIPHON_NOEXCEPT;

/* For an event loop: returns the file of an ANTIPHON_MAILBOX_FILE, -1 for other kinds. It belongs
 * to the mailbox: do not read, write or close it. */
int antiphon_mailbox_fd(const antiphon_mailbox_t *mailbox) ANTIPHON_NOEXCEPT;

/* Makes the file readable when something is posted, until the next poll or wait.
 *
 *	if (antiphon_mailbox_doze(mailbox) == 0)
 *		epoll_wait(…);
 *	antiphon_mailbox_poll(mailbox, &delivered);
 *
 * EAGAIN: something is pending already: poll, and do not sleep. EINVAL: the mailbox has no file.
 * EBUSY. */
ANTIPHON_MUST_USE
int antiphon_mailbox_doze(antiphon_mailbox_t *mailbox) ANTIPHON_NOEXCEPT;

/* --- sender --- */

/* Destroys the handle; the mailbox and other handles stay. */
void antiphon_sender_destroy(antiphon_sender_t *sender) ANTIPHON_NOEXCEPT;

/* Posts a message. Never waits; makes a system call to wake the owner if it sleeps. What the caller
 * did before happens before the action. EAGAIN: there is no room. EPIPE: the mailbox was closed.
 * EINVAL: the action is one that signals run, or 0. A message for another action that is not
 * registered is counted as a stray by the owner. */
ANTIPHON_MUST_USE
int antiphon_sender_post(const antiphon_sender_t *sender,
			 const antiphon_message_t *message) ANTIPHON_NOEXCEPT;

/* Same as post, but sleeps while there is no room, until the owner's poll has made some and the
 * owner polls again, dozes or waits. Actions that wait for each other's mailboxes wait for ever. An
 * action of the same mailbox does not wait: EAGAIN, and ETIMEDOUT at once from the timed form.
 * EPIPE, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_sender_post_wait(const antiphon_sender_t *sender,
			      const antiphon_message_t *message) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL, EPIPE. */
ANTIPHON_MUST_USE
int antiphon_sender_post_timedwait(const antiphon_sender_t *sender,
				   const antiphon_message_t *message, int clock,
				   const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Makes the owner run the action at least once from now on. Several signals of one action that the
 * owner has not seen yet count as one. Never waits. EPIPE: the mailbox was closed. ENOENT: the
 * action was unregistered, or the id is 0. EINVAL: the action is for messages. */
ANTIPHON_MUST_USE
int antiphon_sender_signal(const antiphon_sender_t *sender, uint32_t id) ANTIPHON_NOEXCEPT;

/* --- group: handles of several mailboxes, by the socket on which each owner runs --- */

ANTIPHON_MUST_USE
antiphon_group_t *antiphon_group_create(void) ANTIPHON_NOEXCEPT;

void antiphon_group_destroy(antiphon_group_t *group) ANTIPHON_NOEXCEPT;

/* Adds the mailbox of `sender`, which stays the caller's, behind the other members of `socket`;
 * places of members on sockets with larger numbers grow by one. No other thread may use the group
 * meanwhile. */
void antiphon_group_add(antiphon_group_t *group, uint32_t socket,
			const antiphon_sender_t *sender) ANTIPHON_NOEXCEPT;

/* Posts to each member once; never waits. Returns the number of members to which it could not be
 * posted, and calls missed(context, member, code) for each of these: its place in the group, and
 * EAGAIN, EPIPE or EINVAL. `missed` may be null. */
size_t antiphon_group_broadcast(const antiphon_group_t *group, const antiphon_message_t *message,
				void (*missed)(void *context, size_t member, int code),
				void *context) ANTIPHON_NOEXCEPT;

/* Same as broadcast, to the members on one socket. */
size_t antiphon_group_multicast(const antiphon_group_t *group, uint32_t socket,
				const antiphon_message_t *message,
				void (*missed)(void *context, size_t member, int code),
				void *context) ANTIPHON_NOEXCEPT;

/* Returns the socket of the caller's CPU; 0 if all CPUs are on one socket. */
uint32_t antiphon_current_socket(void) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_message_t, 32, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_delivered_t, 16, 4);

#endif
