/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a thread has had, what it tells, and how it is treated for that.
 */
#pragma once

#include "groups.h"

/* Charges a thread that has run until now. */
static __always_inline void charge(struct task *t, u64 now)
{
	u64 ran = now - t->since_ns;

	if ((s64)ran <= 0)
		return;
	/* 8 s, which no thread runs between two ticks. */
	if (ran > 1ULL << 33)
		ran = 1ULL << 33;
	if (t->group)
		charge_group(t, ran);
	else
		t->virtual_time += advance_of(ran, weight_of(t));
	t->since_ns = now;
	note(EVENT_CHARGE, t->pid, now, ran, 0);
	struct thread *thread = t->slot ? thread_at(t->place) : NULL;
	if (thread)
		thread->ran_ns += ran;
}

static __always_inline void demote(struct task *t, u32 standing)
{
	t->standing = standing;
	struct thread *thread = t->slot ? thread_at(t->place) : NULL;
	switch (standing) {
	case STANDING_OVERRUN:
		__sync_fetch_and_add(&counters.overrun, 1);
		if (thread)
			thread->overrun++;
		break;
	case STANDING_SLEPT:
		__sync_fetch_and_add(&counters.slept, 1);
		if (thread)
			thread->slept++;
		break;
	case STANDING_SHARE:
		__sync_fetch_and_add(&counters.share, 1);
		if (thread)
			thread->share++;
		break;
	}
}

/* Reads the hints of a thread (TRUST-1) but that of its group: of one that waits, too. */
static __always_inline void look_from_outside(struct hints_slot *slot, struct task *t, u64 now)
{
	volatile struct hints_slot *hints = slot;
	u64 release, horizon = options.horizon_ns;
	u32 polls;

	if (!slot)
		return;
	polls = hints->polls;
	if (polls != t->polls) {
		t->polls = polls;
		if (t->standing != STANDING_SHARE)
			t->standing = STANDING_COOPERATIVE;
		note(EVENT_POLL, t->pid, now, hints->release_ns, hints->importance);
	}
	t->importance = hints->importance;
	release = hints->release_ns;
	if (release && release < now && now - release > horizon)
		release = now - horizon;
	if (release > now && release - now > horizon)
		release = 0;
	t->release_ns = release;
}

/* Reads the hints of a thread whose run queue is locked (GROUP-3). */
static __always_inline void look(struct hints_slot *slot, struct task *t, u64 now)
{
	if (!slot)
		return;
	look_from_outside(slot, t, now);
	regroup(t, ((volatile struct hints_slot *)slot)->group);
}

/* Demotes a thread that is too far ahead, and re-admits one that no longer is (COOP-5). */
static __always_inline void police(struct hints_slot *slot, struct task *t)
{
	s64 ahead_ns = (s64)(time_of(t) - least) >> 10;
	bool exceeds = options.police && ahead_ns > (s64)options.threshold_ns;

	if (t->standing == STANDING_COOPERATIVE && exceeds) {
		demote(t, STANDING_SHARE);
		if (slot)
			slot->policed++;
	} else if (t->standing == STANDING_SHARE && !exceeds) {
		t->standing = STANDING_COOPERATIVE;
	}
	struct thread *thread = t->slot ? thread_at(t->place) : NULL;
	if (thread) {
		thread->standing = t->standing;
		thread->release_ns = t->standing == STANDING_COOPERATIVE ? t->release_ns : 0;
	}
	if (slot)
		slot->standing = t->standing;
}

static __always_inline bool is_due(struct task *t, u64 now)
{
	return t->standing == STANDING_COOPERATIVE && t->release_ns && t->release_ns <= now;
}
