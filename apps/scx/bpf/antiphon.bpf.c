/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Cooperative fair sharing in the kernel: the policy of `antiphon_runtime::coop`.
 *
 * A cooperative thread whose release has passed runs first, in order of releases. Otherwise the
 * thread with the least virtual time runs. A thread that is ahead of its share by more than the
 * threshold is not served by its release. The names of invariants (COOP-n) and of standings are
 * those of crates/runtime/src/coop.
 *
 * Two queues: TIMELY, by release, of the threads that are due and within their share; FAIR, by
 * virtual time, of all others.
 *
 * - TRUST-1: a hint is read once, and clamped before it is used.
 * - TRUST-2: what decides (virtual time, standing, slot) is in memory that no process can write.
 * - TRUST-3: a thread is bound to a slot by `antiphon_register`, which takes no argument and
 *   concerns the calling thread and the page of its own process.
 * - TRUST-4: a thread's kicks are spaced by `kick_ns` on average.
 *
 * Where it differs from the Rust policy: the least virtual time leaves out threads in TIMELY; a
 * thread that joins a group brings its virtual time along; a thread in FAIR that was demoted for
 * its share is re-admitted when its release is looked at again, by the timer or when it is queued
 * next.
 */
#include "state.h"
#include "groups.h"
#include "standing.h"
#include "registration.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* The earliest release to come of the other cooperative threads; 0: there is none. */
static u64 next_release(u32 but, u64 now)
{
	u64 next = NEVER;
	u32 place, high = counters.high;

	if (scx_bpf_dsq_nr_queued(TIMELY) > 0)
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

/* The time of preemption in a turn, or a grace, of `ns` that begins now. */
static __always_inline void hold_for(struct task_struct *p, struct cpus *here, u64 now, u64 ns)
{
	here->cpu.until_ns = now + ns;
	scx_bpf_task_set_slice(p, ns);
	/* The kernel looks at slices at its ticks only. */
	if (ns < options.tick_ns)
		bpf_timer_start(&here->timer, ns, 0);
}

/*
 * Goes on with a turn, after a thread of a higher class has had the CPU. A turn that began anew
 * would never end beside one that wants the CPU often. The time of that thread is not part of it.
 */
static __always_inline u64 resume(struct task_struct *p, struct cpus *here, u64 now)
{
	u64 left = here->cpu.until_ns - here->cpu.stopped_ns;

	here->cpu.poll_ns += now - here->cpu.stopped_ns;
	hold_for(p, here, now, (s64)left > 0 ? left : 1);
	return here->cpu.poll_ns;
}

/* Begins a turn. Returns when the thread should poll, which is the slack before it is preempted. */
static __always_inline u64 begin(struct task_struct *p, struct task *t, struct cpus *here, u64 now)
{
	u64 ready = scx_bpf_dsq_nr_queued(TIMELY) + scx_bpf_dsq_nr_queued(FAIR) + 1;
	u64 slack = t->standing == STANDING_COOPERATIVE ? options.slack_ns : 0;
	u64 slice = t->timely ? 0 : options.period_ns / ready;
	u64 whole = slice + slack;
	bool picked = here->cpu.picks;

	note(picked ? EVENT_TURN : EVENT_RESUME, t->pid, now, t->timely, 0);
	here->cpu.picks = 0;
	here->cpu.release_ns = t->timely ? t->release_ns : NEVER;
	if (!picked && here->cpu.pid == t->pid)
		return resume(p, here, now);
	t->has_slack = slack != 0;
	t->turn = __sync_fetch_and_add(&turns, 1) + 1;
	here->cpu.pid = t->pid;
	here->cpu.poll_ns = now + slice;
	hold_for(p, here, now, whole > options.min_slice_ns ? whole : options.min_slice_ns);
	return now + slice;
}

/* Tells a thread what it should know when a turn begins. */
static __always_inline void answer(struct hints_slot *slot, struct task *t, u64 now, u64 until)
{
	if (!slot)
		return;
	slot->seen_ns = now;
	slot->until_ns = until;
	slot->next_release_ns = next_release(t->place, now);
	slot->others_importance = t->group ? others_importance(t->group, time_of(t)) : 0;
	slot->wanted = 0;
}

/* Makes a CPU look at TIMELY that runs something later. */
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
			if (!there || !bpf_cpumask_test_cpu(other, p->cpus_ptr))
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

/* Moves threads to TIMELY whose releases have come. */
static int releases_came(void *map, u32 *key, struct due *due)
{
	u64 now = bpf_ktime_get_ns(), next = NEVER;
	struct task_struct *p;

	due->at_ns = 0;
	bpf_for_each(scx_dsq, p, FAIR, 0)
	{
		struct task *t = task_of(p);

		if (!t || !t->slot)
			continue;
		struct hints_slot *slot = slot_of(p, t);
		look_from_outside(slot, t, now);
		police(slot, t);
		if (is_due(t, now)) {
			scx_bpf_dsq_move_set_vtime(THE_ITERATOR, t->release_ns);
			if (scx_bpf_dsq_move_vtime(THE_ITERATOR, p, TIMELY, 0))
				preempt_for(p, t, now);
		} else if (t->standing == STANDING_COOPERATIVE && t->release_ns > now &&
			   t->release_ns < next) {
			next = t->release_ns;
		}
	}
	if (next != NEVER)
		arm_due(next, now);
	return 0;
}

/* The end of a turn that is shorter than a tick. */
static int turn_ended(void *map, u32 *key, struct cpus *here)
{
	if (here->cpu.release_ns && bpf_ktime_get_ns() >= here->cpu.until_ns)
		scx_bpf_kick_cpu(*key, FLAG(scx_kick_flags, SCX_KICK_PREEMPT));
	return 0;
}

SEC("struct_ops/antiphon_select_cpu")
s32 BPF_PROG(antiphon_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;

	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
}

SEC("struct_ops/antiphon_runnable")
void BPF_PROG(antiphon_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task *t = task_of(p);

	/* Use it or lose it (COOP-4): at a wake-up only, not when a thread changes queues. */
	bool wakes = enq_flags & FLAG(scx_enq_flags, SCX_ENQ_WAKEUP);

	if (!t)
		return;
	t->wants = 1;
	count_thread(t);
	if (t->group)
		admit_member(t, wakes);
	else if (wakes)
		t->virtual_time = later(t->virtual_time, least);
	if (wakes)
		t->polls_before = t->polls;
}

SEC("struct_ops/antiphon_enqueue")
void BPF_PROG(antiphon_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task *t = task_of(p);
	u64 now = bpf_ktime_get_ns();
	struct scx_bpf_dsq_insert_vtime_args args = {
		.dsq_id = FAIR,
		.slice = options.period_ns,
		.enq_flags = enq_flags,
	};
	struct hints_slot *slot;
	s32 idle;

	if (!t) {
		args.vtime = least;
		__scx_bpf_dsq_insert_vtime(p, &args);
		return;
	}
	slot = slot_of(p, t);
	look(slot, t, now);
	police(slot, t);
	t->timely = is_due(t, now);
	args.vtime = time_of(t);
	if (t->timely) {
		args.dsq_id = TIMELY;
		args.vtime = t->release_ns;
	}
	bool timely = t->timely;
	__scx_bpf_dsq_insert_vtime(p, &args);
	if (!timely && t->standing == STANDING_COOPERATIVE && t->release_ns > now)
		arm_due(t->release_ns, now);
	/* A CPU that was idle when it was selected is woken by the kernel. */
	idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (idle >= 0)
		scx_bpf_kick_cpu(idle, FLAG(scx_kick_flags, SCX_KICK_IDLE));
	else if (timely)
		preempt_for(p, t, now);
}

static __always_inline bool take(u64 dsq)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___c))
		return scx_bpf_dsq_move_to_local___v2___c(dsq, 0);
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v1))
		return scx_bpf_dsq_move_to_local___v1(dsq);
	return false;
}

/* Whether `prev`, whose turn has ended, is to have another before all that wait. */
static __always_inline bool goes_on(struct task *t, u64 now)
{
	u64 virtual_time = time_of(t);

	if (scx_bpf_dsq_nr_queued(TIMELY) > 0)
		return is_due(t, now) && (s64)(t->release_ns - first_key(TIMELY, 0)) <= 0;
	if (is_due(t, now))
		return true;
	return scx_bpf_dsq_nr_queued(FAIR) == 0 ||
	       (s64)(virtual_time - first_key(FAIR, virtual_time)) < 0;
}

SEC("struct_ops/antiphon_dispatch")
void BPF_PROG(antiphon_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpus *here = cpus_of(cpu);
	u64 now = bpf_ktime_get_ns();
	s32 member = 0;

	if (options.stall)
		return;
	if (here)
		here->cpu.picks = 1;
	if (grouped)
		sort_members();
	/* `prev` is not queued yet, and may be more urgent than all that are. */
	if (here && prev && prev->scx.flags & FLAG(scx_ent_flags, SCX_TASK_QUEUED)) {
		struct task *t = task_of(prev);
		bool others = scx_bpf_dsq_nr_queued(TIMELY) + scx_bpf_dsq_nr_queued(FAIR) > 0;

		if (t) {
			struct hints_slot *slot = slot_of(prev, t);

			charge(t, now);
			look(slot, t, now);
			/* One that has polled in the turn is cooperative from the next one on. */
			if (others && t->standing == STANDING_COOPERATIVE &&
			    t->has_slack && now >= here->cpu.until_ns)
				demote(t, STANDING_OVERRUN);
			police(slot, t);
			bool on = goes_on(t, now);
			if (!on && grouped && !scx_bpf_dsq_nr_queued(TIMELY)) {
				member = most_important(cpu, prev->pid, t->group, t->importance,
							t->turn);
				on = member && member == prev->pid;
			}
			if (on) {
				t->timely = is_due(t, now);
				t->graced = 0;
				here->cpu.time = time_of(t);
				answer(slot, t, now, begin(prev, t, here, now));
				return;
			}
			if (slot && ((volatile struct hints_slot *)slot)->section) {
				/* Charged like all other time that it runs. */
				if (!t->graced && options.grace_ns) {
					t->graced = 1;
					slot->graces++;
					slot->wanted = 1;
					__sync_fetch_and_add(&counters.graces, 1);
					hold_for(prev, here, now, options.grace_ns);
					return;
				}
				slot->preempted_inside++;
			}
		}
	}
	if (take(TIMELY))
		return;
	if (grouped && !member)
		member = most_important(cpu, 0, 0, 0, 0);
	if (member && take_thread(member))
		return;
	/* With nothing to take, `prev` goes on, if it wants to. */
	if (!take(FAIR) && here && !(prev && prev->scx.flags & FLAG(scx_ent_flags, SCX_TASK_QUEUED)))
		here->cpu.active = 0;
}

/* Whether a thread waits that should have this CPU before `t`. */
static __always_inline bool is_overtaken(struct task *t, s32 cpu)
{
	struct task_struct *first = scx_bpf_dsq_peek(TIMELY);
	u64 key;

	if (!first || !bpf_cpumask_test_cpu(cpu, first->cpus_ptr))
		return false;
	key = first->scx.dsq_vtime;
	barrier_var(key);
	return !t->timely || (s64)(key - t->release_ns) < 0;
}

SEC("struct_ops/antiphon_running")
void BPF_PROG(antiphon_running, struct task_struct *p)
{
	struct task *t = task_of(p);
	struct cpus *here = cpus_of(scx_bpf_task_cpu(p));
	u64 now = bpf_ktime_get_ns();
	struct hints_slot *slot;
	struct thread *thread;
	u64 until, key;

	if (!t || !here)
		return;
	t->since_ns = now;
	t->timely = is_due(t, now);
	t->graced = 0;
	/* The least of those that want a CPU (COOP-3). */
	u64 time = time_of(t);
	key = first_key(FAIR, time);
	here->cpu.time = time;
	here->cpu.active = 1;
	advance((s64)(key - time) < 0 ? key : time);
	until = begin(p, t, here, now);
	/*
	 * A thread of a higher class has left the CPU, and the kernel has given it back to the one
	 * that had it before, without a dispatch.
	 */
	if (is_overtaken(t, scx_bpf_task_cpu(p)))
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), FLAG(scx_kick_flags, SCX_KICK_PREEMPT));
	if (t->timely)
		__sync_fetch_and_add(&counters.timely, 1);
	else
		__sync_fetch_and_add(&counters.fair, 1);
	slot = slot_of(p, t);
	if (!slot)
		return;
	answer(slot, t, now, until);
	thread = thread_at(t->place);
	if (thread && t->timely) {
		u64 late = now - t->release_ns;

		thread->timely++;
		thread->late_ns += late;
		if (late > thread->latest_ns)
			thread->latest_ns = late;
	}
}

SEC("struct_ops/antiphon_stopping")
void BPF_PROG(antiphon_stopping, struct task_struct *p, bool runnable)
{
	struct task *t = task_of(p);
	struct cpus *here = cpus_of(scx_bpf_task_cpu(p));
	u64 now = bpf_ktime_get_ns();
	struct hints_slot *slot;

	if (here) {
		here->cpu.release_ns = 0;
		here->cpu.stopped_ns = now;
	}
	if (!t)
		return;
	charge(t, now);
	if (runnable) {
		slot = slot_of(p, t);
		if (slot)
			slot->preempted++;
	}
}

SEC("struct_ops/antiphon_quiescent")
void BPF_PROG(antiphon_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task *t = task_of(p);
	struct hints_slot *slot;

	if (!t)
		return;
	if (t->group)
		dismiss_member(t);
	t->wants = 0;
	discount_thread(t);
	if (!(deq_flags & FLAG(scx_deq_flags, SCX_DEQ_SLEEP)))
		return;
	slot = slot_of(p, t);
	if (!slot)
		return;
	look(slot, t, bpf_ktime_get_ns());
	if (t->standing == STANDING_COOPERATIVE && t->polls == t->polls_before)
		demote(t, STANDING_SLEPT);
	police(slot, t);
}

SEC("struct_ops/antiphon_tick")
void BPF_PROG(antiphon_tick, struct task_struct *p)
{
	struct task *t = task_of(p);
	struct cpus *here = cpus_of(scx_bpf_task_cpu(p));
	u64 now = bpf_ktime_get_ns();
	struct hints_slot *slot;

	if (!t || !here)
		return;
	charge(t, now);
	here->cpu.time = time_of(t);
	slot = slot_of(p, t);
	if (!slot)
		return;
	slot->seen_ns = now;
	look(slot, t, now);
	police(slot, t);
	if (t->standing != STANDING_COOPERATIVE)
		here->cpu.release_ns = NEVER;
}

static __always_inline void weigh(struct task *t, u32 weight)
{
	t->weight = scaled(weight);
	if (t->shared) {
		discount_thread(t);
		count_thread(t);
	}
	if (t->wants && t->group) {
		dismiss_member(t);
		admit_member(t, false);
	}
}

SEC("struct_ops/antiphon_set_weight")
void BPF_PROG(antiphon_set_weight, struct task_struct *p, u32 weight)
{
	struct task *t = task_of(p);

	if (t)
		weigh(t, weight);
}

SEC("struct_ops/antiphon_enable")
void BPF_PROG(antiphon_enable, struct task_struct *p)
{
	struct task *t = task_of(p);

	if (!t)
		return;
	t->virtual_time = least;
	t->pid = p->pid;
	weigh(t, p->scx.weight);
}

SEC("struct_ops.s/antiphon_init_task")
s32 BPF_PROG(antiphon_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task *t = bpf_task_storage_get(&tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t)
		return -ENOMEM;
	if (bpf_core_field_exists(args->cgroup) && args->cgroup)
		t->share = place_of(args->cgroup);
	return 0;
}

SEC("struct_ops.s/antiphon_init")
s32 BPF_PROG(antiphon_init)
{
	u32 cpu, zero = 0, count = scx_bpf_nr_cpu_ids();
	struct due *due = bpf_map_lookup_elem(&due_timer, &zero);
	s32 error;

	if (!due)
		return -ENOMEM;
	error = bpf_timer_init(&due->timer, &due_timer, CLOCK_MONOTONIC);
	if (error)
		return error;
	bpf_timer_set_callback(&due->timer, releases_came);
	bpf_for(cpu, 0, MAX_CPUS)
	{
		struct cpus *here;

		if (cpu >= count)
			break;
		here = cpus_of(cpu);
		if (!here)
			return -ENOMEM;
		error = bpf_timer_init(&here->timer, &cpus, CLOCK_MONOTONIC);
		if (error)
			return error;
		bpf_timer_set_callback(&here->timer, turn_ended);
	}
	error = scx_bpf_create_dsq(TIMELY, -1);
	return error ?: scx_bpf_create_dsq(FAIR, -1);
}

SEC("struct_ops/antiphon_exit")
void BPF_PROG(antiphon_exit, struct scx_exit_info *info)
{
	/*
	 * There are no operations for CPUs that come and go: a thread that may only run on one that
	 * has gone would stay in its queue. So the kernel ends the scheduler then, which puts such a
	 * thread elsewhere, and wants it loaded again.
	 */
	counters.restarts = !!(info->exit_code & FLAG(scx_exit_code, SCX_ECODE_ACT_RESTART));
	counters.ended = info->kind;
	bpf_probe_read_kernel_str(ending, sizeof(ending), info->reason);
}

SEC(".struct_ops.link")
struct sched_ext_ops antiphon = {
	.select_cpu = (void *)antiphon_select_cpu,
	.enqueue = (void *)antiphon_enqueue,
	.dispatch = (void *)antiphon_dispatch,
	.tick = (void *)antiphon_tick,
	.runnable = (void *)antiphon_runnable,
	.running = (void *)antiphon_running,
	.stopping = (void *)antiphon_stopping,
	.quiescent = (void *)antiphon_quiescent,
	.set_weight = (void *)antiphon_set_weight,
	.init_task = (void *)antiphon_init_task,
	.exit_task = (void *)antiphon_exit_task,
	.enable = (void *)antiphon_enable,
	.cgroup_init = (void *)antiphon_cgroup_init,
	.cgroup_exit = (void *)antiphon_cgroup_exit,
	.cgroup_move = (void *)antiphon_cgroup_move,
	.cgroup_set_weight = (void *)antiphon_cgroup_set_weight,
	.init = (void *)antiphon_init,
	.exit = (void *)antiphon_exit,
	.flags = OPS_SWITCH_PARTIAL | OPS_ENQ_EXITING,
	.timeout_ms = 5000,
	.name = "antiphon",
};
