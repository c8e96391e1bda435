/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What waiters are told, so that they sleep and do not spin: how many threads wait for a CPU, and
 * how many of their process have lost theirs in a section.
 *
 * - TOLD-1: a thread is counted in its page from when it leaves the CPU in a section, and wants it,
 *   until it has it again or wants it no more. The count is never read here.
 * - TOLD-2: the number of waiting threads is told when a turn begins, at each tick, and when the
 *   first begins to wait: then to the thread that runs on the CPU on which that one was last.
 * - TOLD-3: a thread that gives its CPU away gives it to the thread of its process that was last
 *   counted and had not given its own away, if that one waits in the same last-level cache, and is
 *   not ahead of its share by more than the threshold. So a process does not get more than its
 *   share by it, but for that.
 */
#pragma once

#include "groups.h"

/*
 * How many threads wait in an LLC; 0 if neither queue's first may run on this CPU, which is then no
 * help to them. Not static: see `keep`.
 */
__noinline u32 waiting_for(s32 cpu)
{
	u32 llc = llc_of(cpu);
	struct task_struct *first = scx_bpf_dsq_peek(timely_of(llc));

	if (first && bpf_cpumask_test_cpu(cpu, first->cpus_ptr))
		return waiting_in(llc);
	first = scx_bpf_dsq_peek(fair_of(llc));
	return first && bpf_cpumask_test_cpu(cpu, first->cpus_ptr) ? waiting_in(llc) : 0;
}

struct holder {
	u64 time; /* its virtual time */
	u64 pid;
};

/* The thread of each process that was last counted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct holder);
} holders SEC(".maps");

/* The thread to which one of this process gives its CPU (TOLD-3); 0: there is none. */
static __always_inline s32 holder_of(u32 process)
{
	struct holder *holder = bpf_map_lookup_elem(&holders, &process);

	if (!holder || (s64)(holder->time - least) >> 10 > (s64)options.threshold_ns)
		return 0;
	return holder->pid;
}

/* One turn more than `stepped`, in ns, up to a period. Not static: see `keep`, also below. */
__noinline u64 one_turn_more(u32 llc, u64 stepped)
{
	stepped += options.period_ns / (waiting_in(llc) + 1);
	return stepped < options.period_ns ? stepped : options.period_ns;
}

/*
 * By how much a thread is put behind its virtual time that gives its CPU away and tells nothing, so
 * that others come first for a turn. It is not charged for that. What a registered thread means by
 * it is in its hints. One that gives its CPU away again and again is put behind by one more turn
 * each time, up to a period: else it would only take turns with another that does the same, while
 * the thread that both wait for has had more than they.
 */
static __always_inline u64 behind(struct task *t, u32 llc)
{
	t->stepped = t->yields && !t->slot ? one_turn_more(llc, t->stepped) : 0;
	t->yields = 0;
	if (!t->stepped)
		return 0;
	/* A thread of a small weight would wait for seconds. */
	u64 step = advance_of(t->stepped, weight_of(t)), most = t->stepped << 10;
	return step < most ? step : most;
}

__noinline int count_stalled(u32 process, u32 pid, u64 time, bool yields)
{
	struct holder holder = {.time = time, .pid = pid};
	struct hints_page *page = page_of(process);

	if (!page)
		return 0;
	__sync_fetch_and_add(&page->header.stalled, 1);
	if (!yields)
		bpf_map_update_elem(&holders, &process, &holder, BPF_ANY);
	return 0;
}

__noinline int discount_stalled(u32 process, u32 pid)
{
	struct hints_page *page = page_of(process);
	struct holder *holder = bpf_map_lookup_elem(&holders, &process);

	/* A process may write anything there. */
	if (page && ((volatile struct hints_page *)page)->header.stalled)
		__sync_fetch_and_add(&page->header.stalled, -1);
	if (holder && holder->pid == pid)
		bpf_map_delete_elem(&holders, &process);
	return 0;
}

/* Counts a thread that has lost the CPU, if it is in a section. */
static __always_inline void stalls(u32 process, struct task *t, struct hints_slot *slot)
{
	if (t->stalled || !((volatile struct hints_slot *)slot)->section)
		return;
	t->stalled = 1;
	count_stalled(process, t->pid, time_of(t), t->yields);
}

static __always_inline void goes_on_in_section(u32 process, struct task *t)
{
	if (!t->stalled)
		return;
	t->stalled = 0;
	discount_stalled(process, t->pid);
}

/* Tells the thread that runs on a CPU that a thread waits, if it is the first. */
__noinline int first_waits(s32 cpu)
{
	struct cpus *there = cpus_of(cpu);
	struct hints_slot *slot;

	if (!there || !there->cpu.slot || waiting_in(llc_of(cpu)) != 1)
		return 0;
	slot = slot_at(there->cpu.process, there->cpu.slot);
	if (slot)
		slot->waiting = 1;
	return 0;
}
