/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Weights of control groups (`cpu.weight`): a thread's weight is its part of its control group's,
 * which is a part of that of the group above. Parts are by the weights of the threads and control
 * groups that want the CPU:
 *
 *     weight of a thread = its own * product of (weight / active) over its control groups
 *
 * The root has no weight: its threads and the control groups in it share the whole.
 *
 * - WEIGHT-1: `active` of a control group is the sum of what its threads and its children that want
 *   the CPU have counted there. All of them are in one value, under one lock, so that the counts on
 *   the way up change together.
 * - WEIGHT-2: what was counted is remembered, and taken away again as it was.
 *
 * A control group that is deeper than DEPTH, or for which there is no room, counts as the one
 * above.
 */
#pragma once

#include "state.h"

#define DEPTH 8
/* A power of 2. Number 0 is the root. */
#define MAX_SHARES 1024

/* A control group. */
struct share {
	u64 active;  /* of what is in it */
	u32 weight;  /* as its user has set it; 1024 is the default */
	u32 counted; /* of its weight, in `active` of the one above */
	u32 above;
	int level; /* 0: no control group has this place */
};

struct shares {
	struct bpf_spin_lock lock;
	struct share all[MAX_SHARES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct shares);
} shares SEC(".maps");

/* The places of control groups, by the kernel's number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16 * MAX_SHARES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, u32);
} places SEC(".maps");

static __always_inline struct shares *all_shares(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&shares, &zero);
}

static __always_inline struct share *share_at(struct shares *shares, u32 place)
{
	return &shares->all[place & (MAX_SHARES - 1)];
}

static __always_inline u32 place_of(struct cgroup *group)
{
	u64 key = group->kn->id;
	u32 *place = bpf_map_lookup_elem(&places, &key);

	return place ? *place : 0;
}

/* The kernel's weights are in hundredths of the default, which is 1024 here. */
static __always_inline u32 scaled(u32 weight)
{
	return weight * 1024 / 100 ?: 1;
}

/* Counts a weight in a control group, and those above that had nothing active (WEIGHT-1). */
__noinline int count_share(u32 place, u32 weight)
{
	struct shares *shares = all_shares();
	int level;

	if (!shares)
		return 0;
	bpf_spin_lock(&shares->lock);
#pragma unroll
	for (level = 0; level < DEPTH; level++) {
		struct share *share = share_at(shares, place);
		bool was_active = share->active;

		share->active += weight;
		if (was_active || !share->level)
			break;
		share->counted = weight = share->weight;
		place = share->above;
	}
	bpf_spin_unlock(&shares->lock);
	return 0;
}

/* Takes a weight away that was counted, and those above that have nothing active any more. */
__noinline int discount_share(u32 place, u32 weight)
{
	struct shares *shares = all_shares();
	int level;

	if (!shares)
		return 0;
	bpf_spin_lock(&shares->lock);
#pragma unroll
	for (level = 0; level < DEPTH; level++) {
		struct share *share = share_at(shares, place);

		share->active -= weight;
		if (share->active || !share->level)
			break;
		weight = share->counted;
		place = share->above;
	}
	bpf_spin_unlock(&shares->lock);
	return 0;
}

/* A thread wants the CPU, or no longer (WEIGHT-2). Threads of the root are counted nowhere. */
static __always_inline void count_thread(struct task *t)
{
	if (!t->share || t->shared)
		return;
	t->shared = t->weight;
	count_share(t->share, t->shared);
}

static __always_inline void discount_thread(struct task *t)
{
	if (!t->shared)
		return;
	discount_share(t->share, t->shared);
	t->shared = 0;
}

/* The weight of a thread of a control group, in 1024ths. What changes meanwhile is seen later. */
__noinline u64 part_of_share(struct task *t __arg_nonnull)
{
	struct shares *shares = all_shares();
	u64 weight = (u64)t->weight << 10;
	u32 place = t->share;
	int level;

	if (!shares)
		return weight;
#pragma unroll
	for (level = 0; level < DEPTH; level++) {
		struct share *share = share_at(shares, place);

		if (!share->level)
			break;
		weight = weight * share->weight / (share->active ?: 1);
		place = share->above;
	}
	return weight ?: 1;
}

/* The weight of a thread, in 1024ths. */
static __always_inline u64 weight_of(struct task *t)
{
	return t->share ? part_of_share(t) : (u64)t->weight << 10;
}

/* The kernel calls those of control groups one at a time. */
SEC("struct_ops.s/antiphon_cgroup_init")
s32 BPF_PROG(antiphon_cgroup_init, struct cgroup *group, struct scx_cgroup_init_args *args)
{
	struct shares *shares = all_shares();
	u64 key = group->kn->id;
	u32 weight = args->weight, place, at, above = 0;
	int level = group->level;
	struct cgroup *parent;

	/* The root. */
	if (!shares || !level)
		return 0;
	parent = bpf_cgroup_ancestor(group, level - 1);
	if (parent) {
		above = place_of(parent);
		bpf_cgroup_release(parent);
	}
	place = above;
	bpf_for(at, 1, MAX_SHARES)
	{
		struct share *share = share_at(shares, at);

		if (level > DEPTH)
			break;
		if (share->level)
			continue;
		bpf_spin_lock(&shares->lock);
		share->weight = scaled(weight);
		share->active = share->counted = 0;
		share->above = above;
		share->level = level;
		bpf_spin_unlock(&shares->lock);
		place = at;
		break;
	}
	/* One that can't be entered counts as the root: no reason to refuse it. */
	bpf_map_update_elem(&places, &key, &place, BPF_NOEXIST);
	return 0;
}

SEC("struct_ops.s/antiphon_cgroup_exit")
void BPF_PROG(antiphon_cgroup_exit, struct cgroup *group)
{
	struct shares *shares = all_shares();
	u32 place = place_of(group);
	u64 key = group->kn->id;
	struct share *share;

	bpf_map_delete_elem(&places, &key);
	if (!shares || !place)
		return;
	/* It may have the place of one above. */
	bpf_spin_lock(&shares->lock);
	share = share_at(shares, place);
	if (share->level == group->level)
		share->level = 0;
	bpf_spin_unlock(&shares->lock);
}

SEC("struct_ops/antiphon_cgroup_move")
void BPF_PROG(antiphon_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct task *t = task_of(p);

	if (!t)
		return;
	discount_thread(t);
	t->share = place_of(to);
	if (t->wants)
		count_thread(t);
}

SEC("struct_ops/antiphon_cgroup_set_weight")
void BPF_PROG(antiphon_cgroup_set_weight, struct cgroup *group, u32 weight)
{
	struct shares *shares = all_shares();
	u32 place = place_of(group);
	int level = group->level;
	struct share *share;

	if (!shares || !place)
		return;
	share = share_at(shares, place);
	weight = scaled(weight);
	bpf_spin_lock(&shares->lock);
	if (share->level == level) {
		share->weight = weight;
		if (share->active) {
			share_at(shares, share->above)->active += (u64)weight - share->counted;
			share->counted = weight;
		}
	}
	bpf_spin_unlock(&shares->lock);
}
