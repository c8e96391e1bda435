/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Registration: binds a thread to a slot of its process's page (TRUST-3), within the limits of its
 * user, and takes the slot back when the thread ends.
 */
#pragma once

#include "groups.h"
#include "told.h"

SEC("struct_ops/antiphon_exit_task")
void BPF_PROG(antiphon_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task *t = task_of(p);
	struct thread *thread;
	u32 key = p->tgid, uid;
	u64 *word;

	if (!t)
		return;
	discount_thread(t);
	goes_on_in_section(p->tgid, t);
	if (!t->slot)
		return;
	word = bpf_map_lookup_elem(&taken, &key);
	if (word)
		__sync_fetch_and_and(word, ~(1ULL << (t->slot & 63)));
	if (t->group)
		leave_group(t);
	uid = t->uid;
	word = bpf_map_lookup_elem(&users, &uid);
	if (word)
		__sync_fetch_and_add(word, -1);
	thread = thread_at(t->place);
	if (thread) {
		thread->release_ns = 0;
		__sync_lock_test_and_set(&thread->pid, 0);
	}
	t->slot = 0;
	__sync_fetch_and_add(&counters.registered, -1);
}

/* Takes one of a user's registrations. */
static __always_inline bool admit_user(u32 uid)
{
	u64 none = 0, *count = bpf_map_lookup_elem(&users, &uid);

	if (!count) {
		bpf_map_update_elem(&users, &uid, &none, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&users, &uid);
		if (!count)
			return false;
	}
	if (__sync_fetch_and_add(count, 1) < options.per_user)
		return true;
	__sync_fetch_and_add(count, -1);
	return false;
}

static __always_inline void dismiss_user(u32 uid)
{
	u64 *count = bpf_map_lookup_elem(&users, &uid);

	if (count)
		__sync_fetch_and_add(count, -1);
}

/* Registers the calling thread (TRUST-3). Returns its slot, or an error number below 0. */
SEC("syscall")
int antiphon_register(void *context)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task *t = task_of(p);
	struct hints_slot *hints;
	u32 key = p->tgid, uid = bpf_get_current_uid_gid(), slot, place, found = 0;
	u64 none = 0, *word;
	s32 error = -ENOSPC;

	if (!t || !bpf_map_lookup_elem(&pages, &key))
		return -EPERM;
	if (t->slot)
		return t->slot;
	word = bpf_map_lookup_elem(&taken, &key);
	if (!word) {
		bpf_map_update_elem(&taken, &key, &none, BPF_NOEXIST);
		word = bpf_map_lookup_elem(&taken, &key);
		if (!word)
			return -ENOSPC;
	}
	if (!admit_user(uid)) {
		__sync_fetch_and_add(&counters.refused, 1);
		return -EDQUOT;
	}
	bpf_for(slot, 1, HINTS_SLOTS)
	{
		u64 bit = 1ULL << (slot & 63);

		if (!(__sync_fetch_and_or(word, bit) & bit)) {
			found = slot;
			break;
		}
	}
	if (!found)
		goto refuse;
	bpf_for(place, 0, MAX_THREADS)
	{
		struct thread *thread = thread_at(place);

		if (thread && !__sync_val_compare_and_swap(&thread->pid, 0, p->pid)) {
			thread->tgid = key;
			thread->standing = STANDING_PLAIN;
			thread->ran_ns = thread->timely = thread->late_ns = thread->latest_ns = 0;
			thread->begun_ns = bpf_ktime_get_ns();
			thread->overrun = thread->slept = thread->share = 0;
			if (place >= counters.high)
				counters.high = place + 1;
			t->place = place;
			t->uid = uid;
			t->polls = t->polls_before = 0;
			t->standing = STANDING_PLAIN;
			/* What a thread has left there that had the slot before. */
			hints = slot_at(key, found);
			if (hints)
				__builtin_memset(hints, 0, sizeof(*hints));
			t->slot = found;
			__sync_fetch_and_add(&counters.registered, 1);
			return found;
		}
	}
	__sync_fetch_and_and(word, ~(1ULL << (found & 63)));
refuse:
	dismiss_user(uid);
	__sync_fetch_and_add(&counters.refused, 1);
	return error;
}
