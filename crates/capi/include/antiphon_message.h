/* antiphon_message.h: active messages. A sender names an action and gives it three words, and the
 * thread whose mailbox it is runs the action where it polls or waits.
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
 * Actions run nowhere but in antiphon_mailbox_poll, _wait and _timedwait. One should be short, and
 * must return: no exception and no longjmp may leave it. It may post; and wait for room only in a
 * mailbox whose owner never waits for this one, in turn or at all. Nothing is interrupted.
 *
 * As antiphon.h says of all functions, but: objects are made and destroyed by the functions here,
 * which allocate (without memory, the program ends); what is for one process is of no use in a
 * forked child; and no function may be called in signal handlers. Functions of one object may be
 * called by several threads at a time, but for the one that ends it, which is to be its last, and
 * antiphon_group_add. */

#ifndef ANTIPHON_MESSAGE_H
#define ANTIPHON_MESSAGE_H

#include "antiphon.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A table of actions; the end of a mailbox that its owner has; an end that others have; several of
 * those. */
typedef struct antiphon_actions antiphon_actions_t;
typedef struct antiphon_mailbox antiphon_mailbox_t;
typedef struct antiphon_sender antiphon_sender_t;
typedef struct antiphon_group antiphon_group_t;

/* An action to be run, and what with. */
typedef struct antiphon_message {
	/* What antiphon_actions_register has named; never 0, so a message of zeros is refused. */
	uint32_t action;
	/* 0: kept for kinds to come. */
	uint32_t antiphon_kept;
	uint64_t payload[3];
} antiphon_message_t;

/* What a poll has delivered. */
typedef struct antiphon_delivered {
	/* How many messages, and how many signals, have run their actions. */
	uint32_t messages;
	uint32_t signals;
	/* How many were for actions that are not registered, and ran nothing. */
	uint32_t strays;
	uint32_t antiphon_kept;
} antiphon_delivered_t;

/* How the owner of a mailbox waits. */
enum antiphon_mailbox_kind {
	/* Asleep, as waiters of locks do, after a while of spinning. */
	ANTIPHON_MAILBOX_PARKS = 0,
	/* For a file (eventfd), also in an event loop beside others. */
	ANTIPHON_MAILBOX_FILE = 1,
	/* Spinning, without an end, on a CPU that it has for itself: no system calls. */
	ANTIPHON_MAILBOX_SPINS = 2
};

/* How many actions that messages run a table can hold, and how many that signals run. */
#define ANTIPHON_ACTIONS_MAX 961u
#define ANTIPHON_SIGNALS_MAX 63u

/* For how many messages a mailbox may be. Each takes 64 bytes. */
#define ANTIPHON_MAILBOX_MAX 1048576u

/* --- actions --- */

/* A table for so many actions that messages run. EINVAL: more than ANTIPHON_ACTIONS_MAX. */
ANTIPHON_MUST_USE
int antiphon_actions_create(antiphon_actions_t **actions, size_t capacity) ANTIPHON_NOEXCEPT;

/* Mailboxes that were made with it go on as if it were there. */
void antiphon_actions_destroy(antiphon_actions_t *actions) ANTIPHON_NOEXCEPT;

/* Has messages of that `id` run run(context, payload), on the thread whose mailbox they are posted
 * to, and so by several threads at a time. Never waits. ENOSPC: the table is full. */
ANTIPHON_MUST_USE
int antiphon_actions_register(antiphon_actions_t *actions,
			      void (*run)(void *context, const uint64_t *payload), void *context,
			      uint32_t *id) ANTIPHON_NOEXCEPT;

/* Has signals of that `id` run run(context). It must bear being run for no reason: a signal of an
 * action that was unregistered may be pending when another takes its place. ENOSPC. */
ANTIPHON_MUST_USE
int antiphon_actions_register_signal(antiphon_actions_t *actions, void (*run)(void *context),
				     void *context, uint32_t *id) ANTIPHON_NOEXCEPT;

/* When this returns 0, nobody runs the action, and nobody will: its context may go. Messages for it
 * that are under way are delivered as strays. Waits until all batches are over that owners were
 * running when it was called. ENOENT: no such action is registered. EDEADLK: the caller is an
 * action of this table; have another thread do it. Nothing has changed then. */
ANTIPHON_MUST_USE
int antiphon_actions_unregister(antiphon_actions_t *actions, uint32_t id) ANTIPHON_NOEXCEPT;

/* --- mailbox: its owner is whoever polls or waits, one thread at a time --- */

/* For at least so many messages (the next power of two); `kind` is an enum antiphon_mailbox_kind.
 * EINVAL: another kind, or not 1 to ANTIPHON_MAILBOX_MAX messages. EMFILE, ENFILE and others of
 * eventfd(2): there is no file to be had. */
ANTIPHON_MUST_USE
int antiphon_mailbox_create(antiphon_mailbox_t **mailbox, antiphon_actions_t *actions,
			    size_t capacity, int kind) ANTIPHON_NOEXCEPT;

/* Closes the mailbox and frees it: who posts is told EPIPE from now on, and so is who waits for
 * room. Calls left(context, message) for each message that was not delivered, in their order;
 * `left` may be null. Pending signals are dropped. EBUSY: a thread polls or waits, or the caller is
 * an action of this mailbox; nothing has changed then. */
int antiphon_mailbox_close(antiphon_mailbox_t *mailbox,
			   void (*left)(void *context, const antiphon_message_t *message),
			   void *context) ANTIPHON_NOEXCEPT;

/* What posts to the mailbox. */
ANTIPHON_MUST_USE
antiphon_sender_t *antiphon_mailbox_sender(antiphon_mailbox_t *mailbox) ANTIPHON_NOEXCEPT;

/* Delivers what is there: signals, and 64 messages at most. Waits for nothing but the actions.
 * EAGAIN: there was nothing. EBUSY: another thread polls or waits, or the caller is an action of
 * this mailbox; `delivered` was not written. */
ANTIPHON_MUST_USE
int antiphon_mailbox_poll(antiphon_mailbox_t *mailbox,
			  antiphon_delivered_t *delivered) ANTIPHON_NOEXCEPT;

/* As poll; but waits until something is there. EBUSY. */
int antiphon_mailbox_wait(antiphon_mailbox_t *mailbox,
			  antiphon_delivered_t *delivered) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL, EBUSY. */
ANTIPHON_MUST_USE
int antiphon_mailbox_timedwait(antiphon_mailbox_t *mailbox, antiphon_delivered_t *delivered,
			       int clock, const struct timespec *until) ANTIPHON_NOEXCEPT;

/* For an event loop: the file of an ANTIPHON_MAILBOX_FILE, -1 of others. It is the mailbox's: not
 * to be read, written or closed. */
int antiphon_mailbox_fd(const antiphon_mailbox_t *mailbox) ANTIPHON_NOEXCEPT;

/* Has the file become readable when something is posted; until the next poll or wait.
 *
 *	if (antiphon_mailbox_doze(mailbox) == 0)
 *		epoll_wait(…);
 *	antiphon_mailbox_poll(mailbox, &delivered);
 *
 * EAGAIN: something is there already: poll, and do not sleep. EINVAL: it has no file. EBUSY. */
ANTIPHON_MUST_USE
int antiphon_mailbox_doze(antiphon_mailbox_t *mailbox) ANTIPHON_NOEXCEPT;

/* --- sender --- */

/* The mailbox and other senders stay. */
void antiphon_sender_destroy(antiphon_sender_t *sender) ANTIPHON_NOEXCEPT;

/* Never waits; makes a system call if the owner sleeps, to wake it. What the caller did before
 * happens before the action. EAGAIN: there is no room. EPIPE: the mailbox was closed. EINVAL: the
 * message names an action that signals run, or none: it is 0. Another that is not registered is
 * told to the owner, as a stray. */
ANTIPHON_MUST_USE
int antiphon_sender_post(const antiphon_sender_t *sender,
			 const antiphon_message_t *message) ANTIPHON_NOEXCEPT;

/* As post; but waits while there is no room, asleep, until the owner's poll has made some and the
 * owner polls again, dozes or waits. By an action, nobody makes room where each waits for the
 * other. An action of the same mailbox does not wait: EAGAIN, and ETIMEDOUT at once of the timed
 * form. EPIPE, EINVAL. */
ANTIPHON_MUST_USE
int antiphon_sender_post_wait(const antiphon_sender_t *sender,
			      const antiphon_message_t *message) ANTIPHON_NOEXCEPT;

/* ETIMEDOUT, EINVAL, EPIPE. */
ANTIPHON_MUST_USE
int antiphon_sender_post_timedwait(const antiphon_sender_t *sender,
				   const antiphon_message_t *message, int clock,
				   const struct timespec *until) ANTIPHON_NOEXCEPT;

/* Has the owner run the action at least once from now on. Signals of one action that the owner has
 * not seen yet are one. Never waits. EPIPE: the mailbox was closed. ENOENT: the action was
 * unregistered, or the id is 0. EINVAL: messages run it, and not signals. */
ANTIPHON_MUST_USE
int antiphon_sender_signal(const antiphon_sender_t *sender, uint32_t id) ANTIPHON_NOEXCEPT;

/* --- group: senders of several mailboxes, by the socket that the owner of each is on --- */

ANTIPHON_MUST_USE
antiphon_group_t *antiphon_group_create(void) ANTIPHON_NOEXCEPT;

void antiphon_group_destroy(antiphon_group_t *group) ANTIPHON_NOEXCEPT;

/* Adds the mailbox of the sender, which stays the caller's, behind others of that socket; members
 * of larger sockets have a place more from then on. Nobody else may use the group meanwhile. */
void antiphon_group_add(antiphon_group_t *group, uint32_t socket,
			const antiphon_sender_t *sender) ANTIPHON_NOEXCEPT;

/* Posts to each member, once; never waits. Returns how many it was not posted to, and calls
 * missed(context, member, code) for each of them: its place in the group, and EAGAIN, EPIPE or
 * EINVAL. `missed` may be null. */
size_t antiphon_group_broadcast(const antiphon_group_t *group, const antiphon_message_t *message,
				void (*missed)(void *context, size_t member, int code),
				void *context) ANTIPHON_NOEXCEPT;

/* As broadcast, to the members on one socket. */
size_t antiphon_group_multicast(const antiphon_group_t *group, uint32_t socket,
				const antiphon_message_t *message,
				void (*missed)(void *context, size_t member, int code),
				void *context) ANTIPHON_NOEXCEPT;

/* The socket of the CPU under the caller; 0 where all CPUs are on one. */
uint32_t antiphon_current_socket(void) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_message_t, 32, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_delivered_t, 16, 4);

#endif
