/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Queues: a pair for each last-level cache (LLC). TIMELY, by release, has the threads that are due
 * and within their share; FAIR, by virtual time, has all others.
 *
 *     LLC 0                       LLC 1
 *     ┌ TIMELY ┐  ┌ FAIR ┐        ┌ TIMELY ┐  ┌ FAIR ┐
 *     └───┬────┘  └──┬───┘        └───┬────┘  └──┬───┘
 *         1          3                1          3        its own, in this order
 *     ┌───▼──────────▼───┐        ┌───▼──────────▼───┐
 *     │   CPU     CPU    │ ◄────► │   CPU     CPU    │    2: a neglected thread of another LLC
 *     └──────────────────┘        └──────────────────┘    4: any thread, before the CPU is idle
 *
 * - LLC-1: a thread waits in the LLC of the CPU that it was last on, or that was selected for it
 *   when it woke. So it stays there until a CPU of another LLC takes it.
 * - LLC-2: a CPU takes a thread of another LLC only if it would be idle, or that thread is
 *   neglected: it has waited for longer than all threads of an LLC with as much load do. So due
 *   threads stay where they are while their LLC serves them, and two loads that are equal are not
 *   mixed.
 * - LLC-3: no LLC's threads starve. All virtual times are on one scale. Each time that a CPU picks
 *   a thread, it looks at the first one of one other LLC, of each in turn.
 * - LLC-4: no CPU is idle while a thread waits that may run on it. One that is queued wakes an idle
 *   CPU, of its own LLC if there is one, and of another one otherwise.
 * - LLC-5: a thread that is far ahead, as it had a CPU for itself or has a small weight, is queued
 *   behind what others of nice 0 run in `LONGEST_NS` at most: the kernel unloads a scheduler under
 *   which a thread waits for 5 s. Its virtual time stays.
 *
 * With one LLC the kernel's verifier removes all that concerns others.
 */
#pragma once

#include "state.h"

#define LONGEST_NS 2000000000ULL

/* The LLC of each CPU, which the loader sets: a number below `options.llcs`. */
const volatile u16 llcs[MAX_CPUS] SEC(".rodata.llcs");

/* The virtual time of the queues (COOP-3): it never goes back. */
static u64 least;

static __always_inline u32 llc_of(u32 cpu)
{
	return options.llcs > 1 ? llcs[cpu % MAX_CPUS] % MAX_LLCS : 0;
}

static __always_inline u64 timely_of(u32 llc)
{
	return 2 * llc + 1;
}

static __always_inline u64 fair_of(u32 llc)
{
	return 2 * llc + 2;
}

/* How many threads wait in an LLC. */
static __always_inline u64 waiting_in(u32 llc)
{
	return scx_bpf_dsq_nr_queued(timely_of(llc)) + scx_bpf_dsq_nr_queued(fair_of(llc));
}

/* The key of a virtual time in FAIR (LLC-5). Not static: see `keep`. */
__noinline u64 key_of(u64 time, u32 llc)
{
	u64 most = least + ((LONGEST_NS / (waiting_in(llc) + 1)) << 10);

	return (s64)(time - most) < 0 ? time : most;
}

/* The key of the first thread of a queue. */
static __always_inline u64 first_key(u64 queue, u64 otherwise)
{
	struct task_struct *first = scx_bpf_dsq_peek(queue);
	u64 key;

	if (!first)
		return otherwise;
	key = first->scx.dsq_vtime;
	/* The verifier refuses one load from either of two kinds of memory. */
	barrier_var(key);
	return key;
}

/* The least of the virtual times of the first threads of all FAIR queues, and of `time`. */
static __always_inline u64 least_waiting(u64 time)
{
	u32 llc;

	bpf_for(llc, 0, MAX_LLCS)
	{
		u64 key;

		if (llc >= options.llcs)
			break;
		key = first_key(fair_of(llc), time);
		if ((s64)(key - time) < 0)
			time = key;
	}
	return time;
}

/*
 * Advances the queues' virtual time to `to`, but to no later time than that of a CPU: a thread that
 * wakes would else come behind one that has run less. The time of a CPU stays from one turn to the
 * next, so that a thread counts also between the queue and its turn. Not static: see `keep`.
 */
__noinline int advance(u64 to)
{
	u32 cpu, count = scx_bpf_nr_cpu_ids();

	if ((s64)(to - least) <= 0)
		return 0;
	bpf_for(cpu, 0, MAX_CPUS)
	{
		struct cpus *there;

		if (cpu >= count)
			break;
		there = cpus_of(cpu);
		if (there && there->cpu.active && (s64)(there->cpu.time - to) < 0)
			to = there->cpu.time;
	}
	if (options.llcs > 1)
		to = least_waiting(to);
	least = later(least, to);
	return 0;
}

/* Gives this CPU the first thread of a queue that may run on it. */
static __always_inline bool take(u64 queue)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___c))
		return scx_bpf_dsq_move_to_local___v2___c(queue, 0);
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v1))
		return scx_bpf_dsq_move_to_local___v1(queue);
	return false;
}

/* Takes a thread of any other LLC (LLC-4). */
static __always_inline bool take_elsewhere(u32 own)
{
	u32 away;

	bpf_for(away, 1, MAX_LLCS)
	{
		u32 llc;

		if (away >= options.llcs)
			break;
		llc = (own + away) % options.llcs;
		if (take(timely_of(llc)) || take(fair_of(llc)))
			return true;
	}
	return false;
}
