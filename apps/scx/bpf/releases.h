/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What happens when a release comes, and what is due elsewhere.
 */
#pragma once

#include "standing.h"

/* The earliest release to come of the other cooperative threads; 0: there is none. */
static u64 next_release(u32 llc, u32 but, u64 now)
{
	u64 next = NEVER;
	u32 place, high = counters.high;

	if (scx_bpf_dsq_nr_queued(timely_of(llc)) > 0)
		return now;
	bpf_for(place, 0, MAX_THREADS)
	{
		if (place >= high)
			break;
		struct thread *thread = thread_at(place);
		if (!thread || place == but)
			continue;
		u64 release = thread->release_ns;
		if (release > now && release < next)
			next = release;
	}
	return next == NEVER ? 0 : next;
}

/* Makes a CPU of the thread's LLC look at TIMELY that runs something later. */
static __always_inline void preempt_for(struct task_struct *p, struct task *t, u64 now)
{
	s32 cpu = scx_bpf_task_cpu(p), best = -1;
	u32 other, count = scx_bpf_nr_cpu_ids();
	struct cpus *there;
	u64 release = 0;

	if (!options.kick)
		return;
	if ((s64)(t->kick_ns - now) > (s64)(4 * options.kick_ns)) {
		__sync_fetch_and_add(&counters.kicks_refused, 1);
		return;
	}
	there = cpus_of(cpu);
	if (there && there->cpu.release_ns == NEVER &&
	    bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
		best = cpu;
	} else {
		bpf_for(other, 0, MAX_CPUS)
		{
			if (other >= count)
				break;
			there = cpus_of(other);
			if (!there || llc_of(other) != llc_of(cpu) ||
			    !bpf_cpumask_test_cpu(other, p->cpus_ptr))
				continue;
			if (there->cpu.release_ns > release) {
				release = there->cpu.release_ns;
				best = other;
			}
		}
		if (best < 0 || release <= t->release_ns)
			return;
	}
	t->kick_ns = later(t->kick_ns, now) + options.kick_ns;
	__sync_fetch_and_add(&counters.kicks, 1);
	scx_bpf_kick_cpu(best, FLAG(scx_kick_flags, SCX_KICK_PREEMPT));
}

static __always_inline void arm_due(u64 at, u64 now)
{
	u32 zero = 0;
	struct due *due = bpf_map_lookup_elem(&due_timer, &zero);

	if (!due)
		return;
	/* A time that has just passed is that of a timer which is about to fire. */
	if (due->at_ns && due->at_ns <= at)
		return;
	due->at_ns = bpf_timer_start(&due->timer, at > now ? at - now : 0, 0) ? 0 : at;
}

/*
 * Moves threads of an LLC to TIMELY whose releases have come. Returns the next one, or NEVER. The
 * verifier looks at it once, as it is not static; and takes it for a part of a program that sleeps,
 * as one of these sets the timer.
 */
__noinline u64 releases_of(u32 llc, u64 now)
{
	u64 next = NEVER, fair = fair_of(llc);
	struct task_struct *p;

	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, fair, 0)
	{
		struct task *t = task_of(p);

		if (!t || !t->slot)
			continue;
		struct hints_slot *slot = slot_of(p, t);
		look_from_outside(slot, t, now);
		police(slot, t);
		if (is_due(t, now)) {
			scx_bpf_dsq_move_set_vtime(THE_ITERATOR, t->release_ns);
			if (scx_bpf_dsq_move_vtime(THE_ITERATOR, p, timely_of(llc), 0))
				preempt_for(p, t, now);
		} else if (t->standing == STANDING_COOPERATIVE && t->release_ns > now &&
			   t->release_ns < next) {
			next = t->release_ns;
		}
	}
	bpf_rcu_read_unlock();
	return next;
}

static int releases_came(void *map, u32 *key, struct due *due)
{
	u64 now = bpf_ktime_get_ns(), next = NEVER;
	u32 llc;

	due->at_ns = 0;
	/* A loop around its loop takes the verifier long. */
	if (options.llcs < 2)
		next = releases_of(0, now);
	else bpf_for(llc, 0, MAX_LLCS)
	{
		u64 first;

		if (llc >= options.llcs)
			break;
		first = releases_of(llc, now);
		if (first < next)
			next = first;
	}
	if (next != NEVER)
		arm_due(next, now);
	return 0;
}

/*
 * Looks at another LLC, at each in turn (LLC-3). Returns the queue whose first thread is neglected
 * and may run on `cpu`, which would run one of this virtual time next; 0: there is none.
 */
__noinline u64 neglected(s32 cpu, u64 now, u64 time)
{
	struct cpus *here = cpus_of(cpu);
	u32 others = options.llcs - 1, llc;
	struct task_struct *first;
	u64 key;

	if (!here || !others)
		return 0;
	llc = (llc_of(cpu) + 1 + here->cpu.looks++ % others) % (others + 1);
	first = scx_bpf_dsq_peek(timely_of(llc));
	if (first && bpf_cpumask_test_cpu(cpu, first->cpus_ptr)) {
		key = first->scx.dsq_vtime;
		barrier_var(key);
		if ((s64)(now - key) > (s64)options.lag_ns)
			return timely_of(llc);
	}
	first = scx_bpf_dsq_peek(fair_of(llc));
	if (first && bpf_cpumask_test_cpu(cpu, first->cpus_ptr)) {
		struct task *t = task_of(first);

		/* Not its key: a group's time may have advanced since its member was queued. */
		if (t && (s64)(time - time_of(t)) >> 10 > (s64)options.lag_ns)
			return fair_of(llc);
	}
	return 0;
}
