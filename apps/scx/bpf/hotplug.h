/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CPUs that go and come back.
 *
 * A CPU that goes runs what is in its own queue only. The kernel puts threads there that the CPU
 * stops from then on, and moves each one that it picks to another CPU, also those that may run
 * nowhere else. It waits until none is left that was last on this CPU. So:
 *
 * - GONE-1: when a CPU goes, what waits in our queues and was last on it is given to its own queue.
 * - GONE-2: a thread that may run on one CPU only, where none of ours has run for 0.1 s, is
 *   given to that CPU's own queue. Linux 7.0 takes no thread from our queues any more as soon as a
 *   CPU is to go, and tells the scheduler so after a grace period of RCU. If such a thread was
 *   preempted within a section of RCU, each waits for the other; after 21 s the kernel finds a
 *   stall of RCU, and unloads the scheduler.
 */
#pragma once

#include "releases.h"

/* The time between two looks for threads of GONE-2. */
#define RESCUE_NS 100000000ULL

struct rescue {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct rescue);
} rescue_timer SEC(".maps");

/* Gives a CPU what waits in a queue and was last on it. */
static __noinline int give_back(u64 queue, s32 cpu)
{
	u64 own = FLAG(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON) | cpu;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0)
	{
		if (scx_bpf_task_cpu(p) == cpu)
			scx_bpf_dsq_move(THE_ITERATOR, p, own, 0);
	}
	return 0;
}

/*
 * Gives CPUs that do not ask for threads those that may run nowhere else (GONE-2). Not static: see
 * `releases_of`.
 */
__noinline int rescue_from(u64 queue, u64 now)
{
	u64 on = FLAG(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON);
	struct task_struct *p;
	u32 looks = none;

	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, queue, 0)
	{
		s32 cpu = scx_bpf_task_cpu(p);
		struct cpus *there = cpus_of(cpu);

		if (looks >= LOOKS)
			break;
		looks++;
		if (p->nr_cpus_allowed == 1 && there && !there->cpu.release_ns &&
		    now - there->cpu.stopped_ns > RESCUE_NS &&
		    bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			scx_bpf_dsq_move(THE_ITERATOR, p, on | cpu, 0);
	}
	bpf_rcu_read_unlock();
	return 0;
}

static int rescue(void *map, u32 *key, struct rescue *all)
{
	u64 now = bpf_ktime_get_ns();
	u32 llc;

	if (options.llcs < 2) {
		rescue_from(timely_of(0), now);
		rescue_from(fair_of(0), now);
	} else bpf_for(llc, 0, MAX_LLCS)
	{
		if (llc >= options.llcs)
			break;
		rescue_from(timely_of(llc), now);
		rescue_from(fair_of(llc), now);
	}
	bpf_timer_start(&all->timer, RESCUE_NS, 0);
	return 0;
}

static __always_inline s32 begin_rescue(void)
{
	u32 zero = 0;
	struct rescue *all = bpf_map_lookup_elem(&rescue_timer, &zero);
	s32 error;

	if (!all)
		return -ENOMEM;
	error = bpf_timer_init(&all->timer, &rescue_timer, CLOCK_MONOTONIC);
	if (error)
		return error;
	bpf_timer_set_callback(&all->timer, rescue);
	return bpf_timer_start(&all->timer, RESCUE_NS, 0);
}

SEC("struct_ops/antiphon_cpu_offline")
void BPF_PROG(antiphon_cpu_offline, s32 cpu)
{
	struct cpus *here = cpus_of(cpu);
	u32 llc;

	if (!here)
		return;
	here->cpu.active = here->cpu.release_ns = here->cpu.pid = 0;
	bpf_for(llc, 0, MAX_LLCS)
	{
		if (llc >= options.llcs)
			break;
		give_back(timely_of(llc), cpu);
		give_back(fair_of(llc), cpu);
	}
}

/* Without this operation the kernel would end the scheduler when a CPU comes. */
SEC("struct_ops/antiphon_cpu_online")
void BPF_PROG(antiphon_cpu_online, s32 cpu)
{
}
