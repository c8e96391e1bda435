/* A program that gives locks a hard time, for a while, under a watchdog: see `hunt.h`.
 *
 *	hunt BOARD SEED MILLISECONDS PARENT [deadlock]
 *
 * BOARD is the shared file, PARENT the process that must not die before us. With `deadlock` two
 * threads lock two mutexes in different order, and wait for ever: the watchdog's own test. */
#include "hunt.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

struct board *board;
int stopping;

/* What the seed decides. */
static struct {
	int lockers, sharers, members, producers, consumers, neighbours;
	uint64_t longest_ns, pause_us;
	int forks, signals, cancels, one_cpu;
} plan;

static struct worker workers[SLOTS];
static int all = FIRST_SLOT;
static uint64_t seed;

_Noreturn void broken(const char *what, long code)
{
	dprintf(STDERR_FILENO, "hunt: %s (%ld), process %d, seed %lu\n", what, code, getpid(),
		(unsigned long)seed);
	abort();
}

/* SplitMix64. */
uint64_t next(struct chance *chance)
{
	uint64_t word = chance->state += 0x9e3779b97f4a7c15;
	word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
	word = (word ^ word >> 27) * 0x94d049bb133111eb;
	return word ^ word >> 31;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

struct timespec after_ns(clockid_t clock, uint64_t ns)
{
	uint64_t then = now_ns(clock) + ns;
	return (struct timespec){.tv_sec = then / 1000000000, .tv_nsec = then % 1000000000};
}

void spin_for(uint64_t ns)
{
	if (!ns)
		return;
	uint64_t end = now_ns(CLOCK_MONOTONIC) + ns;
	while (now_ns(CLOCK_MONOTONIC) < end)
		;
}

void show(enum object kind, const void *address)
{
	static int shown;
	if (shown == OBJECTS)
		broken("the board is full", shown);
	board->objects[shown].kind = kind;
	board->objects[shown++].address = (uintptr_t)address;
}

static void *neighbour(void *argument)
{
	struct worker *worker = argument;
	while (!stops()) {
		spin_for(100000);
		progress(worker->slot);
	}
	return NULL;
}

static pthread_mutex_t crossed[2];

static void *cross(void *argument)
{
	struct worker *worker = argument;
	MUST(pthread_mutex_lock(&crossed[worker->at]));
	usleep(200000);
	MUST(pthread_mutex_lock(&crossed[!worker->at]));
	return NULL;
}

static void *(*const roles[])(void *) = {
	[LOCKER] = locker,     [MEMBER] = member,       [PRODUCER] = producer,
	[CONSUMER] = consumer, [NEIGHBOUR] = neighbour, [SHARER] = sharer,
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	return roles[worker->role](worker);
}

static void start(struct worker *worker, void *(*run)(void *))
{
	/* A consumer in the place of another has numbers of its own. */
	worker->chance.state = seed ^ (uint64_t)worker->slot << 32 ^ board->progress[worker->slot];
	MUST(pthread_create(&worker->thread, NULL, run, worker));
}

static void join(struct worker *worker)
{
	MUST(pthread_join(worker->thread, NULL));
	board->roles[worker->slot] = ABSENT;
	progress(PEST_SLOT);
}

static void hire(enum role role, int workers_of_role)
{
	for (int at = 0; at < workers_of_role; at++) {
		struct worker *worker = &workers[all];
		*worker = (struct worker){.slot = all, .role = role, .at = at};
		board->roles[all++] = role;
		start(worker, work);
	}
}

/* Joins the workers of a role, which are on their way out. */
static void dismiss(enum role role)
{
	for (int slot = FIRST_SLOT; slot < all; slot++)
		if (workers[slot].role == (int)role)
			join(&workers[slot]);
}

static void decide(struct chance *chance)
{
	static const uint64_t lengths[] = {0, 100, 1000, 5000, 50000};
	/* 2 to 32 threads, the neighbours apart. */
	int left = 2 + below(chance, one_in(chance, 3) ? 31 : 9);
	plan.lockers = below(chance, left + 1);
	left -= plan.lockers;
	plan.sharers = one_in(chance, 3) ? 0 : below(chance, left + 1);
	left -= plan.sharers;
	plan.members = left < 2 || one_in(chance, 4) ? 0 : 2 + below(chance, left - 1);
	left -= plan.members;
	plan.producers = left < 2 ? 0 : 1 + below(chance, one_in(chance, 2) ? 1 : left - 1);
	plan.consumers = left < 2 ? 0 : left - plan.producers;
	plan.lockers += left < 2 ? left : 0;
	plan.neighbours = one_in(chance, 3) ? 1 + below(chance, 2) : 0;
	plan.longest_ns = lengths[below(chance, 5)];
	plan.pause_us = 1 + below(chance, 2000);
	plan.forks = one_in(chance, 2);
	plan.signals = one_in(chance, 2);
	plan.cancels = !one_in(chance, 4);
	plan.one_cpu = one_in(chance, 4);
}

static void use_one_cpu(struct chance *chance)
{
	cpu_set_t set;
	MUST(sched_getaffinity(0, sizeof set, &set));
	int skipped = below(chance, CPU_COUNT(&set)), cpu = 0;
	while (!CPU_ISSET(cpu, &set) || skipped--)
		cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	MUST(sched_setaffinity(0, sizeof set, &set));
}

/* Cancels a consumer, in its wait or before the next one, and puts another in its place; but not
 * before the rest have gone on without it: a newcomer finds an item though no consumer was woken
 * for it, and so would hide that a notification went to the grave with the cancelled one. */
static void replace_consumer(struct chance *chance)
{
	int first = FIRST_SLOT + plan.lockers + plan.sharers + plan.members + plan.producers;
	struct worker *worker = &workers[first + below(chance, plan.consumers)];
	void *result;
	MUST(pthread_cancel(worker->thread));
	MUST(pthread_join(worker->thread, &result));
	if (result != PTHREAD_CANCELED)
		broken("a consumer ended though it was cancelled", (long)result);
	count(CANCELS);
	if (plan.consumers > 1)
		await_consumption();
	start(worker, work);
}

/* Among the threads until the end: signals, cancels, forks. All of them are alive, because it alone
 * ends any. */
static void be_pest(struct chance *chance, uint64_t end)
{
	while (now_ns(CLOCK_MONOTONIC) < end) {
		if (plan.signals && all > FIRST_SLOT && one_in(chance, 2)) {
			int slot = FIRST_SLOT + below(chance, all - FIRST_SLOT);
			MUST(pthread_kill(workers[slot].thread, SIGUSR1));
			count(SIGNALS);
		}
		if (plan.cancels && plan.consumers && one_in(chance, 4))
			replace_consumer(chance);
		if (plan.forks && one_in(chance, 32))
			fork_once(chance);
		usleep(below(chance, plan.pause_us));
		progress(PEST_SLOT);
	}
}

static void set_up_board(const char *path)
{
	int file = open(path, O_RDWR | O_CLOEXEC);
	board = file == -1 ? MAP_FAILED
			   : mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (board == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	close(file);
	board->roles[PEST_SLOT] = PEST;
	board->magic = MAGIC;
}

static void deadlock(void)
{
	for (int at = 0; at < 2; at++)
		show(MUTEX, &crossed[at]);
	for (int at = 0; at < 2; at++) {
		struct worker *worker = &workers[all];
		*worker = (struct worker){.slot = all, .role = LOCKER, .at = at};
		board->roles[all++] = LOCKER;
		start(worker, cross);
	}
	dismiss(LOCKER);
}

int main(int arguments, char **argument)
{
	if (arguments < 5) {
		fprintf(stderr, "usage: hunt BOARD SEED MILLISECONDS PARENT [deadlock]\n");
		return 2;
	}
	seed = strtoull(argument[2], NULL, 10);
	uint64_t ms = strtoull(argument[3], NULL, 10);
	/* No process is left behind, whatever ends the hunter. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != atoi(argument[4]))
		return 2;
	set_up_board(argument[1]);
	if (arguments > 5 && !strcmp(argument[5], "deadlock")) {
		deadlock();
		return 0;
	}

	struct chance chance = {seed};
	decide(&chance);
	if (plan.one_cpu)
		use_one_cpu(&chance);
	struct sigaction action = {.sa_handler = try_in_handler, .sa_flags = SA_RESTART};
	MUST(sigaction(SIGUSR1, &action, NULL));
	set_up_locks(&chance, plan.longest_ns);
	set_up_shared(&chance, plan.longest_ns);
	set_up_tokens(&chance, plan.members);
	hire(LOCKER, plan.lockers);
	hire(SHARER, plan.sharers);
	hire(MEMBER, plan.members);
	hire(PRODUCER, plan.producers);
	hire(CONSUMER, plan.consumers);
	hire(NEIGHBOUR, plan.neighbours);
	be_pest(&chance, now_ns(CLOCK_MONOTONIC) + ms * 1000000);

	__atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
	dismiss(LOCKER);
	dismiss(SHARER);
	dismiss(MEMBER);
	dismiss(PRODUCER);
	end_consumers(plan.consumers);
	dismiss(CONSUMER);
	dismiss(NEIGHBOUR);
	check_buffer();
	return 0;
}
