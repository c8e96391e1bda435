/* Light unlocks. The first argument is "light" or "exchange", what threads of this process are to
 * do; the second a case.
 *
 * A light unlock writes its thread's rseq area, in a word that only the kernel reads, and only of
 * threads that it knows. So whether a thread unlocks lightly shows when the kernel has been told to
 * forget the thread: a mark in that word is overwritten. */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

extern const ptrdiff_t __rseq_offset __attribute__((weak));

static int light;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static volatile uint64_t *word(void)
{
	return (uint64_t *)((char *)__builtin_thread_pointer() + __rseq_offset + 8);
}

static void lock_and_unlock(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

/* Whether this thread, which the kernel has forgotten or never known, unlocks lightly. */
static int unlocks_lightly(void)
{
	if (!&__rseq_offset)
		return 0;
	const uint64_t mark = 0x5a5a;
	*word() = mark;
	lock_and_unlock();
	int touched = *word() != mark;
	*word() = 0;
	return touched;
}

/* Makes the kernel forget this thread, if it knows it: otherwise the kernel takes the mark for a
 * critical section when the thread loses its CPU, and ends the process. */
static void forget_me(void)
{
	if (!&__rseq_offset)
		return;
	long code = syscall(SYS_rseq, (char *)word() - 8, 32, 1, 0x53053053);
	if (light)
		IS(code, 0);
}

static void *sleep_on(void *unused)
{
	pause();
	return unused;
}

static void *after_first_lock(void *unused)
{
	lock_and_unlock();
	forget_me();
	return (void *)(long)(unused ? 0 : unlocks_lightly());
}

static volatile int seen;

static void *around_vfork(void *unused)
{
	lock_and_unlock();
	pid_t child = vfork();
	if (child == 0) {
		seen = unlocks_lightly();
		_exit(0);
	}
	IS(exit_of(child), 0);
	IS(seen, 0);
	forget_me();
	IS(unlocks_lightly(), 0);
	return unused;
}

static int cloned(void *unused)
{
	(void)unused;
	seen = unlocks_lightly();
	return 0;
}

static void *around_clone(void *unused)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	lock_and_unlock();
	seen = 1;
	/* Shares thread-local state with its parent, which waits. */
	IS(exit_of(clone(cloned, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL)), 0);
	IS(seen, 0);
	return unused;
}

static void *around_fork(void *unused)
{
	lock_and_unlock();
	pid_t child = fork();
	if (child == 0) {
		/* A second thread, so that the unlock is not a plain store. */
		start(sleep_on, NULL);
		forget_me();
		_exit(unlocks_lightly());
	}
	IS(exit_of(child), light);
	return unused;
}

static void who_unlocks_lightly(void)
{
	IS(elsewhere(after_first_lock, NULL), light);
	elsewhere(around_vfork, NULL);
	elsewhere(around_clone, NULL);
	elsewhere(around_fork, NULL);
	/* The others go on. */
	IS(elsewhere(after_first_lock, NULL), light);
}

/* Makes the kernel refuse that call from now on. */
static void refuse(int call)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = filter};
	IS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	IS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

enum { THREADS = 6, ROUNDS = 150 };
static int sum;

static void *stay_long(void *unused)
{
	for (int round = 0; round < ROUNDS; round++) {
		pthread_mutex_lock(&mutex);
		sum++;
		/* Long enough for the others to fall asleep. */
		if (round % 4 == 0)
			usleep(500);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

static void contend(void)
{
	pthread_t threads[THREADS];
	for (int at = 0; at < THREADS; at++)
		threads[at] = start(stay_long, NULL);
	for (int at = 0; at < THREADS; at++)
		join(threads[at]);
	IS(sum, THREADS * ROUNDS);
}

/* A child that is single-stepped through every instruction makes progress. */
static void step_by_step(void)
{
	enum { PAIRS = 20, STEPS = 500000 };
	struct { int begun, done; } volatile *shared = shared_memory(sizeof *shared);
	pid_t child = fork();
	if (child == 0) {
		start(sleep_on, NULL);
		lock_and_unlock();
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		for (shared->begun = 1; shared->done < PAIRS; shared->done++)
			lock_and_unlock();
		_exit(0);
	}
	int status, steps = 0;
	IS(waitpid(child, &status, 0), child);
	YES(WIFSTOPPED(status));
	while (shared->done < PAIRS && steps++ < STEPS) {
		IS(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		IS(waitpid(child, &status, 0), child);
		if (!WIFSTOPPED(status))
			break;
	}
	IS(shared->begun, 1);
	IS(shared->done, PAIRS);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
}

int main(int argc, char **argv)
{
	watchdog();
	if (argc < 3)
		return 98;
	light = strcmp(argv[1], "light") == 0;
	const char *what = argv[2];
	if (strcmp(what, "filtered") == 0) {
		/* Refused from the start of the next program on. */
		refuse(SYS_membarrier);
		execl("/proc/self/exe", argv[0], argv[1], "who", NULL);
		return 97;
	}
	start(sleep_on, NULL);
	if (strcmp(what, "who") == 0) {
		who_unlocks_lightly();
	} else if (strcmp(what, "filter") == 0) {
		refuse(SYS_membarrier);
		contend();
	} else if (strcmp(what, "contend") == 0) {
		contend();
	} else if (strcmp(what, "step") == 0) {
		step_by_step();
	} else {
		return 96;
	}
	return failures != 0;
}
