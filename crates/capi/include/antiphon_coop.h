/* antiphon_coop.h: threads that share a CPU fairly, and are on time while the machine is busy.
 *
 * Each member announces when its next timer is due and how important the rest of its work is,
 * learns the same of the others, and gives the CPU away when their timers are due. An event loop of
 * antiphon_loop.h does that by itself (antiphon_loop_cooperate); your own loop does this:
 *
 *	antiphon_coop_t part = { .domain = "players" };
 *	antiphon_coop_join(&member, &part);
 *	for (;;) {
 *		antiphon_coop_poll(member, frame_ns, importance, &answer);
 *		if (antiphon_loop_now_ns() >= frame_ns)
 *			frame_ns += show();
 *		decode_until(answer.until_ns);
 *	}
 *
 * Only members wait for each other: threads of processes of one user, in one PID namespace, that
 * name the same domain and CPU. Others wait for a member that does not poll until its slice and the
 * slack are over; then it is demoted until it polls. docs/event-loop.md has the tiers,
 * docs/coop-line.md the shared memory. */

#ifndef ANTIPHON_COOP_H
#define ANTIPHON_COOP_H

#include "antiphon.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* No time, or no importance. */
#define ANTIPHON_COOP_NEVER UINT64_MAX

/* Tiers: ways in which the timers of a loop come to run. */
enum {
	/* ANTIPHON_COOP_BOOST if it is available, else ANTIPHON_COOP_BATON. */
	ANTIPHON_COOP_AUTO = 0,
	/* None: the kernel shares the CPU out. */
	ANTIPHON_COOP_ALONE = 1,
	/* T3: members of a domain hand the CPU to each other. Needs no right. */
	ANTIPHON_COOP_BATON = 2,
	/* T1: a helper thread makes the loop run first while it is late. Needs real-time rights. In
	 * a group, members share the group's part by weights, which needs RLIMIT_NICE, too. */
	ANTIPHON_COOP_BOOST = 4,
	/* T2 and T1b, for antiphon_split.h and not for loops: timers in a thread of their own. */
	ANTIPHON_COOP_SPLIT = 8,
	ANTIPHON_COOP_RT_SPLIT = 16,
	/* T0: the scheduler in the kernel (`antiphon sched`). Where it runs all threads, a loop is
	 * under it by itself, before its tier. This asks for it also where it runs only threads that
	 * ask, when no other thread wants the CPU. While there is none, the loop has no tier, and
	 * looks for it. */
	ANTIPHON_COOP_KERNEL = 32
};

/* The standing of a member: what it may expect. */
enum {
	/* Its fair share, at any time: it has not polled yet. */
	ANTIPHON_COOP_PLAIN = 0,
	/* To run when it is due. */
	ANTIPHON_COOP_TIMELY = 1,
	/* Its fair share. Demoted because it has run beyond its slice and the slack. */
	ANTIPHON_COOP_OVERRUN = 2,
	/* The same. Demoted because it has slept otherwise than by polling. */
	ANTIPHON_COOP_SLEPT = 3,
	/* The same. Demoted because it has had more than its share and the threshold. */
	ANTIPHON_COOP_SHARE = 4
};

/* CPU `number`, for `cpu` below. */
#define ANTIPHON_COOP_CPU(number) ((uint32_t)(number) + 1)

/* The part that a thread wants. Zero means the default in brackets. No time may be above 10
 * seconds. */
typedef struct antiphon_coop {
	/* 1 to 64 letters, digits, `-` and `_` ("default", as `antiphon run --coop` has it). */
	const char *domain;
	/* ANTIPHON_COOP_CPU(n): the thread is pinned to it (the CPU that it runs on). */
	uint32_t cpu;
	/* Members with one number share a part, which goes to the member with the most important
	 * work (a group of its own). */
	uint32_t group;
	/* The weight beside others; 1024 is that of nice 0 (1024). */
	uint32_t weight;
	/* ANTIPHON_COOP_BOOST: the real-time priority while it is late, up to 98 (2). The right must
	 * reach one more. With 1, others wait again for a loop that has used up its slack before. */
	uint32_t priority;
	/* The thread that opens an unused domain sets the following four. The period in which each
	 * ready member has a turn (20 ms). */
	uint64_t period_ns;
	/* The least slice (100 us). */
	uint64_t min_slice_ns;
	/* The time after its slice at which a member that does not poll loses the CPU (1 ms). */
	uint64_t slack_ns;
	/* A member that has had this much more than others, for its weight, is not on time
	 * (20 ms). */
	uint64_t threshold_ns;
	/* Must be 0. */
	uint64_t kept;
} antiphon_coop_t;

/* What a member learns about the others; ANTIPHON_COOP_NEVER: none. */
typedef struct antiphon_coop_answer {
	/* The earliest release of all others. */
	uint64_t release_ns;
	/* The least importance of the others of its group that are ready. */
	uint64_t importance;
	/* The time until which it may go on before it polls again. */
	uint64_t until_ns;
} antiphon_coop_answer_t;

/* The state of a member or a loop. */
typedef struct antiphon_coop_status {
	/* ANTIPHON_COOP_ALONE, _BATON or _BOOST; _KERNEL if it was under the scheduler in the
	 * kernel at its last poll. */
	int tier;
	/* The standing, as above; PLAIN if it is not a member with turns. */
	int standing;
	/* The number of demotions, by reason. */
	uint64_t overrun;
	uint64_t slept;
	uint64_t share;
	/* Boosted: how often it was raised, and could not be; the time that it ran raised, and the part
	 * that it still has to give back, including the time after the last poll. */
	uint64_t raises;
	uint64_t refusals;
	uint64_t borrowed_ns;
	uint64_t owed_ns;
	/* The options in force, of the domain or the helper. 0: alone. */
	uint64_t period_ns;
	uint64_t min_slice_ns;
	uint64_t slack_ns;
	uint64_t threshold_ns;
} antiphon_coop_status_t;

/* A thread's membership in a domain. */
typedef struct antiphon_coop_member antiphon_coop_member_t;

/* Returns the available tiers, joined by |. They are tried out, on a thread of the library. Unless
 * `report` is NULL, writes a table of all tiers that says why the others are not available, cut to
 * `bytes` including the final zero. */
int antiphon_coop_available(char *report, size_t bytes) ANTIPHON_NOEXCEPT;

/* Joins a domain by ANTIPHON_COOP_BATON. From now on the thread runs on that CPU and must poll; its
 * timer slack is a nanosecond. A thread has one membership in a domain: the latest. `part` may be
 * NULL. EINVAL: a number or the name is wrong, or the thread may not run on that CPU. ENOSPC: 64
 * threads have joined. EAGAIN: other threads kept this thread from running for a second while it
 * tried to join. EPROTO: the members use another version of this library or another PID namespace.
 * EBUSY: a program that initialises the domain does not finish. EACCES: the file or its folder does
 * not belong to the user alone. Other errors of the system. */
ANTIPHON_MUST_USE
int antiphon_coop_join(antiphon_coop_member_t **member,
		       const antiphon_coop_t *part) ANTIPHON_NOEXCEPT;

/* Publishes when the caller's next timer is due and the least user virtual time of its work, each
 * or ANTIPHON_COOP_NEVER; lets others run, and returns when it is the caller's turn. Without work
 * it sleeps until the release. EINVAL: there is neither a timer nor work, or the caller is between
 * the halves of a poll. EPERM: the caller is not the thread that has joined, or is its forked
 * child. */
int antiphon_coop_poll(antiphon_coop_member_t *member, uint64_t release_ns, uint64_t importance,
		       antiphon_coop_answer_t *answer) ANTIPHON_NOEXCEPT;

/* A poll in two halves, for callers that also wait for files: between the halves the caller waits
 * for its files until `until_ns` (ANTIPHON_COOP_NEVER: without a limit), and only checks them if
 * that has passed. EINVAL: the halves were not called in turn. EPERM. */
int antiphon_coop_before(antiphon_coop_member_t *member, uint64_t release_ns, uint64_t importance,
			 uint64_t *until_ns) ANTIPHON_NOEXCEPT;
int antiphon_coop_after(antiphon_coop_member_t *member,
			antiphon_coop_answer_t *answer) ANTIPHON_NOEXCEPT;

/* EPERM. */
int antiphon_coop_status(const antiphon_coop_member_t *member,
			 antiphon_coop_status_t *status) ANTIPHON_NOEXCEPT;

/* Leaves the domain, and frees the member. A forked child also frees its copy by this, and any
 * thread may free the member of a thread that has ended. EPERM: it belongs to another thread, and
 * stays. */
int antiphon_coop_leave(antiphon_coop_member_t *member) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_coop_t, 64, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_coop_answer_t, 24, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_coop_status_t, 96, 8);

#endif
