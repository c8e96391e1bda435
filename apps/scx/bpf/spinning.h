/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The option `--spinners`: threads that spin for one without a CPU, in programs that tell nothing.
 *
 * - SPUN-1: threads of a process spin if two of them were seen at one place of the program within
 *   `spun_ns`, each at two looks in a row: 64 bytes of instructions. Looks are at ticks and at ends
 *   of turns. After that one look is enough, until none is seen there for that time.
 * - SPUN-2: a thread that is seen to spin gives its CPU, or its turn, to a thread of its process
 *   that waits, that was not last seen there, and that is not ahead of its share by more than the
 *   threshold.
 * - SPUN-3: a CPU gives turns of threads that wait only within five periods after it has run one in
 *   order, so that other processes wait no longer for many threads of one.
 *
 * A loop that computes may be short, too. Where all threads of a program are in one, none waits
 * that is elsewhere; where some are, these come before their turn, and their process does not get
 * more than its share by it.
 */
#pragma once

#include "told.h"

struct service {
	u64 place;
	u64 seen_ns;	/* when a thread was last seen to spin there */
	u64 shared_ns;	/* when a second one was; 0: never */
	u32 pid;	/* the last one */
	u32 unused;
};

/* Processes whose threads may spin. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct service);
} services SEC(".maps");

/* Notes where a thread is: at the same place as at its last look, if `again`. */
__noinline int note_place(u32 process, u32 pid, u64 place, bool again)
{
	struct service *service = bpf_map_lookup_elem(&services, &process);
	u64 now = bpf_ktime_get_ns();

	/* Where threads are known to spin, one look is enough. */
	if (!again && !(service && service->shared_ns && service->place == place))
		return 0;
	if (!service || (service->place != place && now - service->seen_ns > options.spun_ns)) {
		struct service first = {.place = place, .seen_ns = now, .pid = pid};

		bpf_map_update_elem(&services, &process, &first, BPF_ANY);
		return 0;
	}
	if (service->place != place)
		return 0;
	service->seen_ns = now;
	if (service->pid != pid) {
		service->shared_ns = now;
		service->pid = pid;
	}
	return 0;
}

/* Looks where a thread is that runs. */
static __always_inline void look_at_place(struct task_struct *p, struct task *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(p);
	u64 place = regs->ip >> 6, before = t->at;

	t->at = place;
	note_place(p->tgid, t->pid, place, place == before);
}

/* Whether a thread that was last seen at a place spins together with others (SPUN-1). */
static __always_inline bool spins(u32 process, u64 place, u64 now)
{
	struct service *service = bpf_map_lookup_elem(&services, &process);

	return service && service->shared_ns && now - service->shared_ns < options.spun_ns &&
	       service->place == place;
}

/*
 * A thread that waits and for which one of its process spins that was last seen at a place
 * (SPUN-2); 0: there is none, or that one does not spin.
 */
__noinline int spun_for(s32 cpu, u32 process, u64 place)
{
	u64 fair = fair_of(llc_of(cpu));
	struct task_struct *p;
	u32 looks = none;
	s32 found = 0;

	if (!spins(process, place, bpf_ktime_get_ns()))
		return 0;
	bpf_for_each(scx_dsq, p, fair, 0)
	{
		struct task *t;

		if (looks >= LOOKS)
			break;
		looks++;
		if ((u32)p->tgid != process || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		t = task_of(p);
		if (!t || t->at == place)
			continue;
		if ((s64)(time_of(t) - least) >> 10 <= (s64)options.threshold_ns) {
			found = p->pid;
			break;
		}
	}
	return found;
}

/* Gives this CPU to the thread for which the first one that waits spins. Returns whether it has. */
__noinline int first_gives_turn(s32 cpu)
{
	struct task_struct *first = scx_bpf_dsq_peek(fair_of(llc_of(cpu)));
	struct task *t = first ? task_of(first) : NULL;
	struct cpus *here = cpus_of(cpu);
	s32 holder;

	/* SPUN-3 */
	if (!t || !here || bpf_ktime_get_ns() - here->cpu.in_order_ns > 5 * options.period_ns)
		return 0;
	holder = spun_for(cpu, first->tgid, t->at);
	if (!holder || !take_thread(cpu, holder))
		return 0;
	__sync_fetch_and_add(&counters.spun_for, 1);
	return 1;
}

/*
 * Gives this CPU to the thread to which one of a process gives it that yields, or spins, unless a
 * thread is due. Returns whether it has.
 */
__noinline int gives_cpu(s32 cpu, u32 process, u64 place, bool yields)
{
	s32 holder = yields ? holder_of(process) : 0, spun = 0;

	if (!holder && options.spun_ns)
		holder = spun = spun_for(cpu, process, place);
	if (!holder)
		return 0;
	if (take(timely_of(llc_of(cpu))))
		return 1;
	if (!take_thread(cpu, holder))
		return 0;
	if (spun)
		__sync_fetch_and_add(&counters.spun_for, 1);
	return 1;
}
