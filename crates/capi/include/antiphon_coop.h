/* antiphon_coop.h: threads that are on time while the machine is busy, and share a CPU fairly.
 *
 * Each tells when its next timer is due and how important the rest of its work is, is told the same
 * of the others, and gives the CPU away when they are due. An event loop of antiphon_loop.h does
 * that by itself (antiphon_loop_cooperate); here is what a loop of one's own does:
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
 * Only members wait for each other: processes of one user, in one PID namespace, that name the same
 * domain and CPU. One that does not poll is waited for until its slice and the slack are over, and
 * demoted until it polls. docs/event-loop.md has the tiers, docs/coop-line.md what is shared. */

#ifndef ANTIPHON_COOP_H
#define ANTIPHON_COOP_H

#include "antiphon.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A time or an importance that there is not. */
#define ANTIPHON_COOP_NEVER UINT64_MAX

/* How the timers of a loop come to run: tiers. */
enum {
	/* By ANTIPHON_COOP_BOOST where it is to be had, else by ANTIPHON_COOP_BATON. */
	ANTIPHON_COOP_AUTO = 0,
	/* None: the kernel shares the CPU out. */
	ANTIPHON_COOP_ALONE = 1,
	/* T3: members of a domain hand the CPU to each other. Needs no right. */
	ANTIPHON_COOP_BATON = 2,
	/* T1: a helper, a thread, has the loop run first while it is late. Needs real-time rights.
	 * In a group, members share that one's part by weights, which needs RLIMIT_NICE, too. */
	ANTIPHON_COOP_BOOST = 4,
	/* T2 and T1b, of antiphon_split.h, and of no loop: timers in a thread of their own. */
	ANTIPHON_COOP_SPLIT = 8,
	ANTIPHON_COOP_RT_SPLIT = 16
};

/* What a member may expect. */
enum {
	/* Its fair share at any time: it has not polled yet. */
	ANTIPHON_COOP_PLAIN = 0,
	/* To run when it is due. */
	ANTIPHON_COOP_TIMELY = 1,
	/* Its fair share, as it was demoted: it has run beyond its slice and the slack; */
	ANTIPHON_COOP_OVERRUN = 2,
	/* it has slept otherwise than by polling; */
	ANTIPHON_COOP_SLEPT = 3,
	/* it has had more than its share, and the threshold. */
	ANTIPHON_COOP_SHARE = 4
};

/* The CPU of that number, for `cpu` below. */
#define ANTIPHON_COOP_CPU(number) ((uint32_t)(number) + 1)

/* The part that a thread wants. All zero: what is in brackets. No time is above 10 seconds. */
typedef struct antiphon_coop {
	/* 1 to 64 letters, digits, `-` and `_` ("default", as `antiphon run --coop` has it). */
	const char *domain;
	/* ANTIPHON_COOP_CPU(n): the thread is pinned to it (that which it runs on). */
	uint32_t cpu;
	/* Those of one number share a part, which goes to whom it is most important (its own). */
	uint32_t group;
	/* Beside others; 1024 is that of nice 0 (1024). */
	uint32_t weight;
	/* ANTIPHON_COOP_BOOST: the real-time priority while it is late, up to 98 (2). The right has to
	 * reach one more. With 1, others wait again for one that has used up its slack before. */
	uint32_t priority;
	/* Who opens a domain that nobody uses decides how it is scheduled. In so long each member
	 * that is ready has a turn (20 ms). */
	uint64_t period_ns;
	/* Nobody loses the CPU before (100 us). */
	uint64_t min_slice_ns;
	/* So long after its slice a member that does not poll loses it (1 ms). */
	uint64_t slack_ns;
	/* Who has had so much more than others, for its weight, is not on time (20 ms). */
	uint64_t threshold_ns;
	/* 0. */
	uint64_t kept;
} antiphon_coop_t;

/* What a member is told of the others; ANTIPHON_COOP_NEVER: there is none. */
typedef struct antiphon_coop_answer {
	/* The earliest release of all others. */
	uint64_t release_ns;
	/* The least importance of the others of its group that are ready. */
	uint64_t importance;
	/* Until when it may go on, before it polls again. */
	uint64_t until_ns;
} antiphon_coop_answer_t;

/* What has become of a member, or of a loop. */
typedef struct antiphon_coop_status {
	/* ANTIPHON_COOP_ALONE, _BATON or _BOOST. */
	int tier;
	/* As above; PLAIN where it is no member with turns. */
	int standing;
	/* How often it was demoted, by reason. */
	uint64_t overrun;
	uint64_t slept;
	uint64_t share;
	/* Boosted: how often it was raised, and could not be; what it ran so, and what of that it has
	 * yet to give back: between two polls, with all since the first of them. */
	uint64_t raises;
	uint64_t refusals;
	uint64_t borrowed_ns;
	uint64_t owed_ns;
	/* By what it goes: as the domain, or the helper, has it. 0: alone. */
	uint64_t period_ns;
	uint64_t min_slice_ns;
	uint64_t slack_ns;
	uint64_t threshold_ns;
} antiphon_coop_status_t;

/* A thread's part in a domain. */
typedef struct antiphon_coop_member antiphon_coop_member_t;

/* Which tiers there are here, joined by |: tried out, on a thread that ends with that. `report` is
 * NULL, or gets a table of all tiers that says why the others are not, in lines, cut to `bytes`
 * with the 0 at its end. */
int antiphon_coop_available(char *report, size_t bytes) ANTIPHON_NOEXCEPT;

/* Joins a domain by ANTIPHON_COOP_BATON. From here on the thread runs on that CPU, and is to poll;
 * its timer slack is a nanosecond. One membership a thread and domain: the latest. `part` is NULL,
 * or as above. EINVAL: a number, or the name, is not as above, or the thread may not run on that
 * CPU. ENOSPC: 64 threads have joined. EAGAIN: others kept the thread from running while it tried,
 * for a second. EPROTO: its members are of another version of this library or another PID
 * namespace. EBUSY: a program that makes the domain does not go on. EACCES: its file, or the
 * folder, is not the user's alone. Else what the system says of it. */
ANTIPHON_MUST_USE
int antiphon_coop_join(antiphon_coop_member_t **member,
		       const antiphon_coop_t *part) ANTIPHON_NOEXCEPT;

/* Says when the caller's next timer is due, and the least user virtual time of its work, or
 * ANTIPHON_COOP_NEVER; lets others run, and returns when it is the caller's turn. Without work it
 * sleeps until the release. EINVAL: there is neither, or the caller is between the halves. EPERM:
 * the caller is another thread than has joined, or its forked child. */
int antiphon_coop_poll(antiphon_coop_member_t *member, uint64_t release_ns, uint64_t importance,
		       antiphon_coop_answer_t *answer) ANTIPHON_NOEXCEPT;

/* The same in two halves, for who has more to wait for: between them the caller waits for its files
 * until `until_ns` (ANTIPHON_COOP_NEVER: for good), and only looks if that has passed. EINVAL: they
 * do not take turns. EPERM. */
int antiphon_coop_before(antiphon_coop_member_t *member, uint64_t release_ns, uint64_t importance,
			 uint64_t *until_ns) ANTIPHON_NOEXCEPT;
int antiphon_coop_after(antiphon_coop_member_t *member,
			antiphon_coop_answer_t *answer) ANTIPHON_NOEXCEPT;

/* EPERM. */
int antiphon_coop_status(const antiphon_coop_member_t *member,
			 antiphon_coop_status_t *status) ANTIPHON_NOEXCEPT;

/* Leaves, and lets go of the member. A forked child lets go of its copy so, and any thread of that
 * of a thread which has ended. EPERM: it is another thread's, and stays. */
int antiphon_coop_leave(antiphon_coop_member_t *member) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_coop_t, 64, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_coop_answer_t, 24, 8);
ANTIPHON_ASSERT_LAYOUT(antiphon_coop_status_t, 96, 8);

#endif
