/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Cooperative fair sharing in the kernel: the policy of `antiphon_runtime::coop`.
 *
 * A cooperative thread whose release has passed runs first, in order of releases. Otherwise the
 * thread with the least virtual time runs. A thread that is ahead of its share by more than the
 * threshold is not served by its release. The names of invariants (COOP-n) and of standings are
 * those of crates/runtime/src/coop.
 *
 * The queues are in queues.h: two for each last-level cache.
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
 * next. With several last-level caches each has its own order, and so has the part of a group that
 * is there.
 */
#include "hotplug.h"
#include "spinning.h"
#include "registration.h"

char _license[] SEC("license") = "Dual MIT/GPL";

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
static __always_inline u64 begin(struct task_struct *p, struct task *t, struct cpus *here, u32 llc,
				 u64 now)
{
	u64 ready = waiting_in(llc) + 1;
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
static __always_inline void answer(struct hints_slot *slot, struct task *t, s32 cpu, u64 now,
				   u64 until)
{
	u32 llc = llc_of(cpu);

	if (!slot)
		return;
	slot->seen_ns = now;
	slot->until_ns = until;
	slot->next_release_ns = next_release(llc, t->place, now);
	slot->others_importance = t->group ? others_importance(llc, t->group, time_of(t)) : 0;
	slot->waiting = waiting_for(cpu);
	slot->wanted = 0;
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

/* Wakes an idle CPU for a thread, of its own LLC if there is one (LLC-4). */
static __always_inline bool wake_idle(struct task_struct *p, s32 cpu)
{
	bool is_idle = false;
	s32 idle;

	if (options.llcs > 1) {
		idle = scx_bpf_select_cpu_dfl(p, cpu, 0, &is_idle);
	} else {
		idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		is_idle = idle >= 0;
	}
	if (is_idle)
		scx_bpf_kick_cpu(idle, FLAG(scx_kick_flags, SCX_KICK_IDLE));
	return is_idle;
}

SEC("struct_ops/antiphon_enqueue")
void BPF_PROG(antiphon_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task *t = task_of(p);
	s32 cpu = scx_bpf_task_cpu(p);
	u64 now = bpf_ktime_get_ns();
	struct scx_bpf_dsq_insert_vtime_args args = {
		.dsq_id = fair_of(llc_of(cpu)),
		.slice = options.period_ns,
		.enq_flags = enq_flags,
	};
	struct hints_slot *slot;

	if (!t) {
		args.vtime = least;
		__scx_bpf_dsq_insert_vtime(p, &args);
		return;
	}
	slot = slot_of(p, t);
	look(slot, t, now);
	police(slot, t);
	t->timely = is_due(t, now);
	args.vtime = key_of(time_of(t) + behind(t, llc_of(cpu)), llc_of(cpu));
	if (t->timely) {
		args.dsq_id = timely_of(llc_of(cpu));
		args.vtime = t->release_ns;
	}
	bool timely = t->timely;
	__scx_bpf_dsq_insert_vtime(p, &args);
	if (!timely && t->standing == STANDING_COOPERATIVE && t->release_ns > now)
		arm_due(t->release_ns, now);
	/* A CPU that was idle when it was selected is woken by the kernel. */
	if (wake_idle(p, cpu))
		return;
	first_waits(cpu);
	if (timely)
		preempt_for(p, t, now);
}

/* Whether `prev`, whose turn has ended, is to have another before all that wait. */
static __always_inline bool goes_on(struct task *t, u32 llc, u64 now)
{
	u64 virtual_time = time_of(t), timely = timely_of(llc), fair = fair_of(llc);

	if (scx_bpf_dsq_nr_queued(timely) > 0)
		return is_due(t, now) && (s64)(t->release_ns - first_key(timely, 0)) <= 0;
	if (is_due(t, now))
		return true;
	return scx_bpf_dsq_nr_queued(fair) == 0 ||
	       (s64)(virtual_time - first_key(fair, virtual_time)) < 0;
}

SEC("struct_ops/antiphon_dispatch")
void BPF_PROG(antiphon_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpus *here = cpus_of(cpu);
	u64 now = bpf_ktime_get_ns(), elsewhere = 0;
	u32 llc = llc_of(cpu);
	u64 timely = timely_of(llc), fair = fair_of(llc);
	s32 member = 0;

	if (options.stall)
		return;
	if (here)
		here->cpu.picks = 1;
	if (grouped)
		sort_members(llc);
	/* `prev` is not queued yet, and may be more urgent than all that are. */
	if (here && prev && prev->scx.flags & FLAG(scx_ent_flags, SCX_TASK_QUEUED)) {
		struct task *t = task_of(prev);
		bool others = waiting_in(llc) > 0;

		if (t) {
			struct hints_slot *slot = slot_of(prev, t);

			charge(t, now);
			look(slot, t, now);
			/* One that has polled in the turn is cooperative from the next one on. */
			if (others && t->standing == STANDING_COOPERATIVE &&
			    t->has_slack && now >= here->cpu.until_ns)
				demote(t, STANDING_OVERRUN);
			police(slot, t);
			if (options.spun_ns)
				look_at_place(prev, t);
			if ((t->yields || options.spun_ns) &&
			    gives_cpu(cpu, prev->tgid, t->at, t->yields))
				return;
			bool steps_back = t->yields && !t->slot && others;
			bool on = !steps_back && goes_on(t, llc, now);
			if (!on && !steps_back && grouped && !scx_bpf_dsq_nr_queued(timely)) {
				member = most_important(cpu, prev->pid, t->group, t->importance,
							t->turn);
				on = member && member == prev->pid;
			}
			if (options.llcs > 1 && on && !is_due(t, now)) {
				elsewhere = neglected(cpu, now, time_of(t));
				on = !elsewhere;
			}
			if (on) {
				t->yields = t->stepped = 0;
				here->cpu.in_order_ns = now;
				t->timely = is_due(t, now);
				t->graced = 0;
				here->cpu.time = time_of(t);
				answer(slot, t, cpu, now, begin(prev, t, here, llc, now));
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
	if (take(timely))
		return;
	if (options.llcs > 1) {
		if (!elsewhere && scx_bpf_dsq_nr_queued(fair))
			elsewhere = neglected(cpu, now, first_key(fair, least));
		if (elsewhere && take(elsewhere))
			return;
	}
	if (grouped && !member)
		member = most_important(cpu, 0, 0, 0, 0);
	if (member && take_thread(cpu, member))
		return;
	if (options.spun_ns && first_gives_turn(cpu))
		return;
	if (take(fair)) {
		if (here)
			here->cpu.in_order_ns = now;
		return;
	}
	if (options.llcs > 1 && take_elsewhere(llc))
		return;
	/* With nothing to take, `prev` goes on, if it wants to. */
	if (prev && prev->scx.flags & FLAG(scx_ent_flags, SCX_TASK_QUEUED)) {
		struct task *t = task_of(prev);

		if (t)
			t->yields = 0;
	} else if (here) {
		here->cpu.active = 0;
	}
}

/* Whether a thread waits that should have this CPU before `t`. */
static __always_inline bool is_overtaken(struct task *t, s32 cpu)
{
	struct task_struct *first = scx_bpf_dsq_peek(timely_of(llc_of(cpu)));
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
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpus *here = cpus_of(cpu);
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
	key = first_key(fair_of(llc_of(cpu)), time);
	here->cpu.time = time;
	here->cpu.active = 1;
	advance((s64)(key - time) < 0 ? key : time);
	until = begin(p, t, here, llc_of(cpu), now);
	/*
	 * A thread of a higher class has left the CPU, and the kernel has given it back to the one
	 * that had it before, without a dispatch.
	 */
	if (is_overtaken(t, cpu))
		scx_bpf_kick_cpu(cpu, FLAG(scx_kick_flags, SCX_KICK_PREEMPT));
	if (t->timely)
		__sync_fetch_and_add(&counters.timely, 1);
	else
		__sync_fetch_and_add(&counters.fair, 1);
	here->cpu.process = p->tgid;
	here->cpu.slot = t->slot;
	goes_on_in_section(p->tgid, t);
	slot = slot_of(p, t);
	if (!slot)
		return;
	answer(slot, t, cpu, now, until);
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
		here->cpu.slot = 0;
	}
	if (!t)
		return;
	charge(t, now);
	if (runnable) {
		slot = slot_of(p, t);
		if (slot) {
			slot->preempted++;
			stalls(p->tgid, t, slot);
		}
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
	goes_on_in_section(p->tgid, t);
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

SEC("struct_ops/antiphon_yield")
bool BPF_PROG(antiphon_yield, struct task_struct *from, struct task_struct *to)
{
	struct task *t = task_of(from);

	if (t)
		t->yields = 1;
	/* As without this operation. */
	scx_bpf_task_set_slice(from, 0);
	return false;
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
	if (options.spun_ns) {
		look_at_place(p, t);
		if (spun_for(scx_bpf_task_cpu(p), p->tgid, t->at))
			scx_bpf_task_set_slice(p, 0);
	}
	here->cpu.time = time_of(t);
	slot = slot_of(p, t);
	if (!slot)
		return;
	slot->seen_ns = now;
	slot->waiting = waiting_for(scx_bpf_task_cpu(p));
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
	u32 cpu, llc, zero = 0, count = scx_bpf_nr_cpu_ids();
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
	bpf_for(llc, 0, MAX_LLCS)
	{
		if (llc >= options.llcs)
			break;
		error = scx_bpf_create_dsq(timely_of(llc), -1);
		error = error ?: scx_bpf_create_dsq(fair_of(llc), -1);
		if (error)
			return error;
	}
	return begin_rescue();
}

SEC("struct_ops/antiphon_exit")
void BPF_PROG(antiphon_exit, struct scx_exit_info *info)
{
	counters.ended = info->kind;
	bpf_probe_read_kernel_str(ending, sizeof(ending), info->reason);
}

SEC(".struct_ops.link")
struct sched_ext_ops antiphon = {
	.select_cpu = (void *)antiphon_select_cpu,
	.enqueue = (void *)antiphon_enqueue,
	.dispatch = (void *)antiphon_dispatch,
	.tick = (void *)antiphon_tick,
	.yield = (void *)antiphon_yield,
	.runnable = (void *)antiphon_runnable,
	.running = (void *)antiphon_running,
	.stopping = (void *)antiphon_stopping,
	.quiescent = (void *)antiphon_quiescent,
	.set_weight = (void *)antiphon_set_weight,
	.cpu_online = (void *)antiphon_cpu_online,
	.cpu_offline = (void *)antiphon_cpu_offline,
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
