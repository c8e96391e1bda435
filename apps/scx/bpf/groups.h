/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Groups (COOP-2): threads of a user that tell one number have one virtual time, which advances
 * when any of them runs, by the weight of all that want the CPU. When the group is the fairest, its
 * most important member runs; members that tell no importance take turns with that one.
 *
 * A thread that joins brings its virtual time along if that is later: else it could have had its
 * share in one group and go on in another one.
 */
#pragma once

#include "state.h"

struct group {
	u64 virtual_time;
	u64 weight; /* of the members that want the CPU */
	u64 members;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	/* A registered thread is in one at most. */
	__uint(max_entries, MAX_THREADS);
	__type(key, u64); /* the user, and the number */
	__type(value, struct group);
} groups SEC(".maps");

/* How many threads are in groups. */
static u64 grouped;
/* The number of the latest turn. */
static u64 turns;

static __always_inline struct group *group_of(struct task *t)
{
	u64 key = t->group;

	return key ? bpf_map_lookup_elem(&groups, &key) : NULL;
}

/*
 * Most functions below are not static, so that the verifier looks at each of them once, and not at
 * each place of a call. Those for threads without a group are not called.
 */

__noinline u64 group_time(struct task *t __arg_nonnull)
{
	struct group *group = group_of(t);

	return group ? group->virtual_time : t->virtual_time;
}

static __always_inline u64 time_of(struct task *t)
{
	return t->group ? group_time(t) : t->virtual_time;
}

/* Charges a group for what a member has run. */
__noinline int charge_group(struct task *t __arg_nonnull, u64 ran)
{
	struct group *group = group_of(t);
	u64 weight, more;

	if (!group)
		return 0;
	weight = group->weight ?: 1;
	more = (ran * (1024 * 1024) + weight - 1) / weight;
	t->virtual_time = __sync_fetch_and_add(&group->virtual_time, more) + more;
	return 0;
}

/* A member wants the CPU: counts its weight. `slept`: and did not before (COOP-4). */
__noinline int admit_member(struct task *t __arg_nonnull, bool slept)
{
	struct group *group = group_of(t);

	if (!group)
		return 0;
	if (slept && !group->weight)
		group->virtual_time = later(group->virtual_time, least);
	t->counted = t->weight;
	__sync_fetch_and_add(&group->weight, t->counted);
	return 0;
}

/* A member wants the CPU no longer. */
__noinline int dismiss_member(struct task *t __arg_nonnull)
{
	struct group *group = group_of(t);

	if (group)
		__sync_fetch_and_add(&group->weight, -(u64)t->counted);
	t->counted = 0;
	return 0;
}

__noinline int leave_group(struct task *t __arg_nonnull)
{
	struct group *group = group_of(t);
	u64 key = t->group;

	if (group) {
		t->virtual_time = group->virtual_time;
		__sync_fetch_and_add(&group->weight, -(u64)t->counted);
		if (__sync_fetch_and_add(&group->members, -1) == 1)
			bpf_map_delete_elem(&groups, &key);
	}
	t->counted = 0;
	t->group = 0;
	__sync_fetch_and_add(&grouped, -1);
	return 0;
}

__noinline int join_group(struct task *t __arg_nonnull, u64 key)
{
	struct group fresh = {}, *group;

	group = bpf_map_lookup_elem(&groups, &key);
	if (!group) {
		fresh.virtual_time = t->virtual_time;
		bpf_map_update_elem(&groups, &key, &fresh, BPF_NOEXIST);
		group = bpf_map_lookup_elem(&groups, &key);
		if (!group)
			return 0;
	}
	group->virtual_time = later(group->virtual_time, t->virtual_time);
	__sync_fetch_and_add(&group->members, 1);
	__sync_fetch_and_add(&grouped, 1);
	t->group = key;
	if (t->wants) {
		t->counted = t->weight;
		__sync_fetch_and_add(&group->weight, t->counted);
	}
	return 0;
}

/* Puts a thread into the group that it tells. */
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

/* Sorts members anew that wait in FAIR: their group's time has advanced. */
__noinline int sort_members(void)
{
	struct task_struct *p;
	int moved = 0;

	bpf_for_each(scx_dsq, p, FAIR, 0)
	{
		struct task *t = task_of(p);
		u64 time;

		if (!t || !t->group)
			continue;
		time = time_of(t);
		if (time == p->scx.dsq_vtime)
			continue;
		scx_bpf_dsq_move_set_vtime(THE_ITERATOR, time);
		moved += scx_bpf_dsq_move_vtime(THE_ITERATOR, p, FAIR, 0);
	}
	return moved;
}

/*
 * The thread that should run on `cpu` if a group is the fairest that waits; 0: none is. The members
 * are the most important one, and the one that waits for longest of those that tell no importance:
 * of these, the one that waits for longer. The thread `prev` of `prev_group` runs, and may go on.
 */
__noinline int most_important(s32 cpu, s32 prev, u64 prev_group, u64 prev_importance, u64 prev_turn)
{
	u64 key = 0, importance = NEVER, told_turn = NEVER, silent_turn = NEVER;
	s32 told = 0, silent = 0;
	struct task_struct *p;
	bool is_first = true;

	bpf_for_each(scx_dsq, p, FAIR, 0)
	{
		struct task *t = task_of(p);

		if (is_first)
			key = t ? t->group : 0;
		is_first = false;
		if (!key)
			break;
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

/* Gives this CPU a thread that waits in FAIR. */
__noinline int take_thread(s32 pid)
{
	struct task_struct *p;
	int taken = 0;

	bpf_for_each(scx_dsq, p, FAIR, 0)
	{
		if (p->pid != pid)
			continue;
		taken = scx_bpf_dsq_move(THE_ITERATOR, p, FLAG(scx_dsq_id_flags, SCX_DSQ_LOCAL), 0);
		break;
	}
	return taken;
}

/* The least importance of the members of a group that wait; 0: there is none. */
__noinline u64 others_importance(u64 group)
{
	struct task_struct *p;
	u64 least_of_all = NEVER;

	bpf_for_each(scx_dsq, p, FAIR, 0)
	{
		struct task *t = task_of(p);

		if (t && t->group == group && t->importance && t->importance < least_of_all)
			least_of_all = t->importance;
	}
	return least_of_all == NEVER ? 0 : least_of_all;
}
