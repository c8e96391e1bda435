/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Groups (COOP-2): threads of a user that tell one number have one virtual time, which advances
 * when any of them runs, by the weight of all that want the CPU. When the group is the fairest, its
 * most important member runs; members that tell no importance take turns with that one.
 *
 * A thread that joins brings its virtual time along if that is later: else it could have had its
 * share in one group and go on in another one.
 *
 * A group is an entry of `groups`, which stays where it is; `numbers` tells the entry of a key.
 *
 *                 claims                 publishes, others join
 *     ┌──────┐ ───────────► ┌─────────┐ ◄──────────────────────► ┌──────┐
 *     │ free │              │ claimed │                          │ open │
 *     └──────┘ ◄─────────── └─────────┘                          └──┬───┘
 *         ▲     another was faster                                  │ the last member leaves
 *         │                     ┌─────────┐                         │
 *         └──────────────────── │ closing │ ◄───────────────────────┘
 *            the key is deleted └─────────┘
 *
 * - GROUP-1: an entry changes under its lock only, and is one of a key while it has members. So a
 *   member's run is always charged: the entry is there as long as the member is.
 * - GROUP-2: a free entry is told by no key. The last member deletes the key before it frees the
 *   entry, and a founder claims a free entry before it publishes it. A thread that finds an entry
 *   that is closing joins at its next turn.
 * - GROUP-3: a thread joins and leaves where its run queue is locked, so never on two CPUs at once.
 */
#pragma once

#include "queues.h"
#include "weights.h"

/* How many waiting threads a choice among members looks at, at most. */
#define LOOKS 64

/* 0, which the verifier does not know: it would follow a count from 0 step by step. */
static volatile u32 none;

struct group {
	struct bpf_spin_lock lock;
	u32 members;
	u64 key;
	u64 virtual_time;
	u64 weight; /* of the members that want the CPU, in 1024ths */
	u64 closing;
};

/* As many as there are registered threads: each is in one at most. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS);
	__type(key, u32);
	__type(value, struct group);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_THREADS);
	__type(key, u64); /* the user, and the number */
	__type(value, u32);
} numbers SEC(".maps");

/* How many threads are in groups. */
static u64 grouped;
/* The number of the latest turn. */
static u64 turns;

static __always_inline struct group *group_at(u32 entry)
{
	return bpf_map_lookup_elem(&groups, &entry);
}

/* Stops where another CPU may come in between: for a test of that. */
static __always_inline void hesitate(void)
{
	u64 step;

	if (!options.hesitation)
		return;
	bpf_for(step, 0, options.hesitation)
	{
		barrier_var(step);
	}
}

/*
 * Most functions below are not static, so that the verifier looks at each of them once, and not at
 * each place of a call. Those for threads without a group are not called.
 */

__noinline u64 group_time(struct task *t __arg_nonnull)
{
	struct group *group = group_at(t->entry);

	return group && group->key == t->group ? group->virtual_time : t->virtual_time;
}

static __always_inline u64 time_of(struct task *t)
{
	return t->group ? group_time(t) : t->virtual_time;
}

/* How far a virtual time advances in `ran` nanoseconds, by a weight in 1024ths. */
static __always_inline u64 advance_of(u64 ran, u64 weight)
{
	weight = weight ?: 1;
	return ((ran << 30) + weight - 1) / weight;
}

/* Charges a group for what a member has run (GROUP-1). */
__noinline int charge_group(struct task *t __arg_nonnull, u64 ran)
{
	struct group *group = group_at(t->entry);
	u64 key = t->group, time = 0;
	bool is_member = false;

	if (group) {
		bpf_spin_lock(&group->lock);
		is_member = group->members && group->key == key;
		if (is_member) {
			group->virtual_time += advance_of(ran, group->weight);
			time = group->virtual_time;
		}
		bpf_spin_unlock(&group->lock);
	}
	if (!is_member) {
		__sync_fetch_and_add(&counters.strays, 1);
		time = t->virtual_time + advance_of(ran, weight_of(t));
	}
	t->virtual_time = time;
	return 0;
}

/* A member wants the CPU: counts its weight. `slept`: and did not before (COOP-4). */
__noinline int admit_member(struct task *t __arg_nonnull, bool slept)
{
	struct group *group = group_at(t->entry);
	u32 weight = weight_of(t);

	if (!group)
		return 0;
	bpf_spin_lock(&group->lock);
	if (slept && !group->weight)
		group->virtual_time = later(group->virtual_time, least);
	group->weight += weight;
	bpf_spin_unlock(&group->lock);
	t->counted = weight;
	return 0;
}

/* A member wants the CPU no longer. */
__noinline int dismiss_member(struct task *t __arg_nonnull)
{
	struct group *group = group_at(t->entry);
	u32 weight = t->counted;

	if (!group)
		return 0;
	bpf_spin_lock(&group->lock);
	group->weight -= weight;
	bpf_spin_unlock(&group->lock);
	t->counted = 0;
	return 0;
}

__noinline int leave_group(struct task *t __arg_nonnull)
{
	struct group *group = group_at(t->entry);
	u64 key = t->group, time;
	u32 weight = t->counted;
	bool is_last;

	if (!group)
		return 0;
	bpf_spin_lock(&group->lock);
	time = group->virtual_time;
	group->weight -= weight;
	group->members--;
	is_last = !group->members;
	group->closing = is_last;
	bpf_spin_unlock(&group->lock);
	if (is_last) {
		hesitate();
		if (bpf_map_delete_elem(&numbers, &key))
			__sync_fetch_and_add(&counters.strays, 1);
		bpf_spin_lock(&group->lock);
		group->closing = 0;
		bpf_spin_unlock(&group->lock);
	}
	t->virtual_time = time;
	t->counted = 0;
	t->group = 0;
	__sync_fetch_and_add(&grouped, -1);
	return 0;
}

/* Makes a thread a member of an entry, if that is open and of the key. */
static __always_inline bool enter_group(struct task *t, u64 key, u32 entry, u32 weight)
{
	struct group *group = group_at(entry);
	u64 time = t->virtual_time;
	bool is_open;

	if (!group)
		return false;
	hesitate();
	bpf_spin_lock(&group->lock);
	is_open = group->members && group->key == key;
	if (is_open) {
		group->members++;
		group->weight += weight;
		group->virtual_time = later(group->virtual_time, time);
	}
	bpf_spin_unlock(&group->lock);
	return is_open;
}

/* Claims a free entry for a thread, which is then its member; MAX_THREADS: there is none. */
static __always_inline u32 claim_group(struct task *t, u64 key, u32 weight)
{
	u64 time = t->virtual_time;
	u32 place = t->place, entry, i;

	bpf_for(i, 0, MAX_THREADS)
	{
		struct group *group;
		bool is_free;

		/* No other thread looks for one from here on. */
		entry = (place + i) % MAX_THREADS;
		group = group_at(entry);
		if (!group || group->members)
			continue;
		bpf_spin_lock(&group->lock);
		is_free = !group->members && !group->closing;
		if (is_free) {
			group->members = 1;
			group->key = key;
			group->weight = weight;
			group->virtual_time = time;
		}
		bpf_spin_unlock(&group->lock);
		if (is_free)
			return entry;
	}
	return MAX_THREADS;
}

__noinline int join_group(struct task *t __arg_nonnull, u64 key)
{
	u32 *told = bpf_map_lookup_elem(&numbers, &key), entry;
	u32 weight = t->wants ? weight_of(t) : 0;

	if (told) {
		entry = *told;
		if (!enter_group(t, key, entry, weight))
			return 0;
	} else {
		entry = claim_group(t, key, weight);
		if (entry >= MAX_THREADS)
			return 0;
		if (bpf_map_update_elem(&numbers, &key, &entry, BPF_NOEXIST)) {
			/* Another thread has founded it meanwhile. */
			struct group *group = group_at(entry);

			if (!group)
				return 0;
			bpf_spin_lock(&group->lock);
			group->members = 0;
			bpf_spin_unlock(&group->lock);
			return 0;
		}
	}
	t->counted = weight;
	t->entry = entry;
	t->group = key;
	__sync_fetch_and_add(&grouped, 1);
	return 0;
}

/* Puts a thread into the group that it tells (GROUP-3). */
static __always_inline void regroup(struct task *t, u32 number)
{
	u64 key = number ? (u64)t->uid << 32 | number : 0;

	if (key == t->group)
		return;
	if (t->group)
		leave_group(t);
	if (key)
		join_group(t, key);
}

/*
 * Sorts members anew at the head of an LLC's FAIR whose group's time has advanced while they
 * waited. Behind the first thread that is there by its present time no thread is earlier: times
 * only advance. If more members than LOOKS are to be sorted, one of them may run too early; the
 * group is charged for that, too.
 */
__noinline int sort_members(u32 llc)
{
	struct task_struct *p;
	u64 fair = fair_of(llc);
	u32 looks = none;

	bpf_for_each(scx_dsq, p, fair, 0)
	{
		struct task *t = task_of(p);
		u64 time;

		if (!t || !t->group || looks >= LOOKS)
			break;
		time = time_of(t);
		if (time == p->scx.dsq_vtime)
			break;
		looks++;
		scx_bpf_dsq_move_set_vtime(THE_ITERATOR, time);
		scx_bpf_dsq_move_vtime(THE_ITERATOR, p, fair, 0);
	}
	return looks;
}

/*
 * The thread that should run on `cpu` if a group is the fairest that waits in its LLC; 0: none is.
 * The members are the most important one, and the one that waits for longest of those that tell no
 * importance: of these, the one that waits for longer. The thread `prev` of `prev_group` runs, and
 * may go on.
 *
 * When the head of FAIR is sorted, all members of its group are there by the same time as it.
 */
__noinline int most_important(s32 cpu, s32 prev, u64 prev_group, u64 prev_importance, u64 prev_turn)
{
	u64 key = 0, time = 0, importance = NEVER, told_turn = NEVER, silent_turn = NEVER;
	u64 fair = fair_of(llc_of(cpu));
	s32 told = 0, silent = 0;
	struct task_struct *p;
	u32 looks = none;

	bpf_for_each(scx_dsq, p, fair, 0)
	{
		struct task *t = task_of(p);

		if (!looks) {
			key = t ? t->group : 0;
			time = p->scx.dsq_vtime;
		}
		if (!key || p->scx.dsq_vtime != time || looks >= LOOKS)
			break;
		looks++;
		if (!t || t->group != key || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (!t->importance) {
			if (t->turn < silent_turn) {
				silent_turn = t->turn;
				silent = p->pid;
			}
		} else if (t->importance < importance ||
			   (t->importance == importance && t->turn < told_turn)) {
			importance = t->importance;
			told_turn = t->turn;
			told = p->pid;
		}
	}
	if (!key)
		return 0;
	/* Of two that are equal `prev` has had the later turn. */
	if (prev_group == key && !prev_importance && !silent) {
		silent_turn = prev_turn;
		silent = prev;
	} else if (prev_group == key && prev_importance && prev_importance < importance) {
		told_turn = prev_turn;
		told = prev;
	}
	return silent_turn < told_turn ? silent : told;
}

/* Gives this CPU a thread of its LLC's FAIR, of those that `most_important` looks at. */
__noinline int take_thread(s32 cpu, s32 pid)
{
	u64 fair = fair_of(llc_of(cpu));
	struct task_struct *p;
	u32 looks = none;
	int taken = 0;

	bpf_for_each(scx_dsq, p, fair, 0)
	{
		if (looks >= LOOKS)
			break;
		looks++;
		if (p->pid != pid)
			continue;
		/* Of one that may not run here the kernel would unload the scheduler. */
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			break;
		taken = scx_bpf_dsq_move(THE_ITERATOR, p, FLAG(scx_dsq_id_flags, SCX_DSQ_LOCAL), 0);
		break;
	}
	return taken;
}

/*
 * The least importance of the members of a group that wait, among the first threads of an LLC's
 * FAIR; 0: there is none. `time` is the group's: no member waits by a later one.
 */
__noinline u64 others_importance(u32 llc, u64 group, u64 time)
{
	u64 least_of_all = NEVER, fair = fair_of(llc);
	struct task_struct *p;
	u32 looks = none;

	bpf_for_each(scx_dsq, p, fair, 0)
	{
		struct task *t = task_of(p);

		if (looks >= LOOKS || (s64)(p->scx.dsq_vtime - time) > 0)
			break;
		looks++;
		if (t && t->group == group && t->importance && t->importance < least_of_all)
			least_of_all = t->importance;
	}
	return least_of_all == NEVER ? 0 : least_of_all;
}
