/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the scheduler remembers: of threads, of CPUs, and of processes with pages. No process can
 * write any of it but its page (TRUST-2).
 */
#pragma once

#include "kernel.h"
#include "hints.h"
#include "shared.h"

#define NEVER (~0ULL)

/* The scheduler's options, which the loader sets. */
const volatile struct parameters options SEC(".rodata.options");

struct counters counters SEC(".data.counters");

/* Why the kernel unloaded it, in its words. */
char ending[192] SEC(".data.ending");

/* What runs on a CPU. A timely thread preempts it if its key is less than `release_ns`. */
struct cpu {
	u64 release_ns; /* 0: none of our threads; NEVER: one that is not timely */
	u64 time;	/* the virtual time of its latest thread of ours, as of its last tick */
	u64 active;	/* it has not been idle since */
	u64 pid;	/* whose turn it is */
	u64 until_ns;	/* the end of the turn, or of the grace */
	u64 poll_ns;	/* when the thread should poll */
	u64 stopped_ns; /* when a thread of ours last left the CPU */
	u64 in_order_ns; /* when it last ran a thread in order */
	u64 picks;	/* a thread is being picked, and its turn has not begun */
	u32 process;	/* of `pid` */
	u32 slot;	/* of `pid` */
	u64 looks;	/* how often it has looked at another LLC's queues */
};

struct task {
	u64 virtual_time; /* in 1024ths of a nanosecond of a thread of weight 1024 */
	u64 since_ns;	  /* it has run since then, and was charged up to then */
	u64 release_ns;	  /* 0: none */
	u64 kick_ns;	  /* earliest next kick */
	u64 group;	  /* its key; 0: none */
	u64 importance;	  /* as last told; 0: none */
	u64 stepped;	  /* by how much it was last put behind, in ns: see `behind` */
	u64 at;		  /* where it was last seen, in 64 bytes; only with `spun_ns` */
	u64 turn;	  /* the number of its latest turn */
	u32 entry;	  /* that of its group, in `groups` */
	u32 counted;	  /* of its weight, in that of its group */
	u32 weight;	  /* its own */
	u32 share;	  /* the place of its control group; 0: the root */
	u32 shared;	  /* of its weight, in that of its control group */
	u32 standing;
	u32 polls;	  /* as last read */
	u32 polls_before; /* as read when it last woke */
	u32 slot;	  /* 0: not registered */
	u32 place;	  /* in `threads` */
	u32 uid;
	u32 pid;
	u8 timely; /* picked by its release */
	u8 graced;
	u8 wants; /* it runs or is ready */
	u8 has_slack; /* it was cooperative when its turn began */
	u8 yields;    /* it gives its CPU away */
	u8 stalled;   /* it has lost the CPU in a section, and is counted in its page */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task);
} tasks SEC(".maps");

struct cpus {
	struct cpu cpu;
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct cpus);
} cpus SEC(".maps");

/* The timer that moves threads to TIMELY whose release comes while they wait in FAIR. */
struct due {
	struct bpf_timer timer;
	u64 at_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct due);
} due_timer SEC(".maps");

/* Registered threads, for answers and for the status. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS);
	__type(key, u32);
	__type(value, struct thread);
} threads SEC(".maps");

/* The first events, if they are kept. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_EVENTS);
	__type(key, u32);
	__type(value, struct event);
} trace SEC(".maps");

struct page_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct hints_page));
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__array(values, struct page_map);
} pages SEC(".maps");

/* Which slots of a process are taken, by bit. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, u64);
} taken SEC(".maps");

/* How many registered threads a user has. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, u64);
} users SEC(".maps");

enum { EVENT_TURN = 1, EVENT_CHARGE = 2, EVENT_POLL = 3, EVENT_RESUME = 4 };

/* Keeps an event. Not static: the verifier looks at it once. */
__noinline int keep(u32 kind, u32 pid, u64 now, u64 value, u64 importance)
{
	u32 place = __sync_fetch_and_add(&counters.events, 1);
	struct event *event = bpf_map_lookup_elem(&trace, &place);

	if (!event)
		return 0;
	event->at_ns = now;
	event->value = value;
	event->importance = importance;
	event->pid = pid;
	event->kind = kind;
	return 0;
}

static __always_inline void note(u32 kind, u32 pid, u64 now, u64 value, u64 importance)
{
	if (options.trace)
		keep(kind, pid, now, value, importance);
}

static __always_inline struct task *task_of(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, NULL, 0);
}

static __always_inline struct cpus *cpus_of(u32 cpu)
{
	return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline struct thread *thread_at(u32 place)
{
	return bpf_map_lookup_elem(&threads, &place);
}

static __always_inline struct hints_page *page_of(u32 process)
{
	u32 zero = 0;
	void *map = bpf_map_lookup_elem(&pages, &process);

	return map ? bpf_map_lookup_elem(map, &zero) : NULL;
}

/* Slots are counted from 1. */
static __always_inline struct hints_slot *slot_at(u32 process, u32 slot)
{
	struct hints_page *page;

	if (!slot || slot >= HINTS_SLOTS)
		return NULL;
	page = page_of(process);
	return page ? &page->slots[slot - 1] : NULL;
}

static __always_inline struct hints_slot *slot_of(struct task_struct *p, struct task *t)
{
	return slot_at(p->tgid, t->slot);
}

static __always_inline u64 later(u64 a, u64 b)
{
	return (s64)(a - b) < 0 ? b : a;
}
