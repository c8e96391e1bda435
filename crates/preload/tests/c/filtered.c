/* Threads that lock for the first time behind a filter of system calls: all that the C library's
 * locks need is allowed, and nothing else. First argument: how the filter is installed. Second:
 * what it does to other calls: `kill`, `trap` or `errno`. */
#include "check.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { THREADS = 4, ROUNDS = 1000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, shared_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, shared_cond;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static long counts[3];
static volatile long sink;

static void work(int steps)
{
	for (int i = 0; i < steps; i++)
		sink++;
}

/* The system calls that are needed to wait for a condition variable, the program's clock and the
 * end of a thread. */
static const int needed[] = { SYS_futex,  SYS_exit,	    SYS_exit_group, SYS_write,
			      SYS_munmap, SYS_rt_sigprocmask, SYS_madvise,    SYS_rt_sigreturn };
/* The system calls that making threads needs beside these. */
static const int making[] = { SYS_clone, SYS_clone3, SYS_mmap, SYS_mprotect, SYS_rt_sigaction,
			      SYS_set_robust_list, SYS_rseq, SYS_brk, SYS_getrandom,
			      SYS_sched_getaffinity, SYS_wait4 };

static const char *action_name;

static unsigned action(void)
{
	if (!strcmp(action_name, "kill"))
		return SECCOMP_RET_KILL_PROCESS;
	return !strcmp(action_name, "trap") ? SECCOMP_RET_TRAP : SECCOMP_RET_ERRNO | EPERM;
}

enum by { BY_PRCTL, BY_SYSCALL, BY_PRCTL_BY_SYSCALL, ALL_THREADS };

static void install(enum by by, int threads)
{
	struct sock_filter steps[64] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	int length = 1;
	for (unsigned i = 0; i < sizeof needed / sizeof *needed; i++) {
		steps[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, needed[i], 0, 1);
		steps[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	for (unsigned i = 0; threads && i < sizeof making / sizeof *making; i++) {
		steps[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, making[i], 0, 1);
		steps[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	steps[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action());
	struct sock_fprog program = { .len = length, .filter = steps };
	int done = -1;
	switch (by) {
	case BY_PRCTL:
		done = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
		break;
	case BY_PRCTL_BY_SYSCALL:
		done = syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
		break;
	case BY_SYSCALL:
		done = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
		break;
	case ALL_THREADS:
		done = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
			       &program);
		break;
	}
	if (done) {
		perror("no filter");
		_exit(98);
	}
}

static void is_killed(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	char text[] = "system call 000\n";
	for (int i = 14, number = info->si_syscall; i > 11; i--, number /= 10)
		text[i] = '0' + number % 10;
	ssize_t written = write(2, text, sizeof text - 1);
	_exit(written > 0 ? 97 : 96);
}

static void lock_all(int i)
{
	pthread_mutex_t *all[] = { &mutex, &recursive, &checking };
	for (int k = 0; k < 3; k++) {
		IS(pthread_mutex_lock(all[k]), 0);
		counts[k]++;
		work(i % 200 == 0 ? 300000 : 100);
		IS(pthread_mutex_unlock(all[k]), 0);
	}
	IS(pthread_rwlock_rdlock(&rwlock), 0);
	work(100);
	IS(pthread_rwlock_unlock(&rwlock), 0);
	if (i % 4 == 0) {
		IS(pthread_rwlock_wrlock(&rwlock), 0);
		work(i % 200 == 0 ? 300000 : 100);
		IS(pthread_rwlock_unlock(&rwlock), 0);
		IS(pthread_spin_lock(&spin), 0);
		work(i % 200 == 0 ? 300000 : 100);
		IS(pthread_spin_unlock(&spin), 0);
	}
	struct timespec soon = in_ms(CLOCK_REALTIME, 1);
	int code = i % 3 ? 0 : pthread_mutex_timedlock(&mutex, &soon);
	YES(code == 0 || code == ETIMEDOUT);
	if (i % 3 == 0 && code == 0)
		IS(pthread_mutex_unlock(&mutex), 0);
	if (i % 50 == 0) {
		int shared = i % 100 == 0;
		pthread_mutex_t *its = shared ? &shared_mutex : &mutex;
		IS(pthread_mutex_lock(its), 0);
		code = pthread_cond_timedwait(shared ? &shared_cond : &cond, its, &soon);
		YES(code == 0 || code == ETIMEDOUT);
		IS(pthread_mutex_unlock(its), 0);
	} else if (i % 50 == 7) {
		IS(pthread_cond_broadcast(&cond), 0);
		IS(pthread_cond_broadcast(&shared_cond), 0);
	}
}

static int own_filter, no_counter, busy, arrived;

/* The C library reads its clocks by the CPU's counter: nothing with a deadline. */
static void *locks_untimed(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		IS(pthread_mutex_lock(&mutex), 0);
		counts[0]++;
		work(i % 200 == 0 ? 300000 : 100);
		IS(pthread_mutex_unlock(&mutex), 0);
		IS(pthread_rwlock_wrlock(&rwlock), 0);
		counts[1]++;
		work(100);
		IS(pthread_rwlock_unlock(&rwlock), 0);
		IS(pthread_spin_lock(&spin), 0);
		counts[2]++;
		work(100);
		IS(pthread_spin_unlock(&spin), 0);
	}
	return NULL;
}

static void *locks(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&barrier);
	if (own_filter)
		install(BY_SYSCALL, 0);
	if (!busy)
		pthread_barrier_wait(&barrier);
	__atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
	if (no_counter)
		return locks_untimed();
	for (int i = 0; i < ROUNDS; i++)
		lock_all(i);
	return NULL;
}

static void *locks_once(void *unused)
{
	lock_all(0);
	return unused;
}

static void all_end(pthread_t *threads, int count)
{
	for (int i = 0; i < count; i++)
		IS(pthread_join(threads[i], NULL), 0);
}

/* No file can be opened any more: the limit is 0, the root directory has none of them, and the user
 * has no permission. */
static void lose_files(void)
{
	struct rlimit none = { 0, 0 };
	IS(setrlimit(RLIMIT_NOFILE, &none), 0);
	if (geteuid() == 0) {
		IS(chroot("/dev"), 0);
		IS(setresgid(65534, 65534, 65534), 0);
		IS(setresuid(65534, 65534, 65534), 0);
	}
}

/* Only read, write, _exit and sigreturn are left. */
static void strict(void)
{
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) {
		perror("not strict");
		_exit(98);
	}
	IS(pthread_mutex_lock(&mutex), 0);
	IS(pthread_mutex_unlock(&mutex), 0);
	IS(pthread_mutex_lock(&checking), 0);
	IS(pthread_mutex_lock(&checking), EDEADLK);
	IS(pthread_mutex_unlock(&checking), 0);
	IS(pthread_mutex_lock(&recursive), 0);
	IS(pthread_mutex_lock(&recursive), 0);
	IS(pthread_mutex_unlock(&recursive), 0);
	IS(pthread_mutex_unlock(&recursive), 0);
	IS(pthread_rwlock_wrlock(&rwlock), 0);
	IS(pthread_rwlock_unlock(&rwlock), 0);
	IS(pthread_spin_lock(&spin), 0);
	IS(pthread_spin_unlock(&spin), 0);
	IS(pthread_cond_signal(&cond), 0);
	/* exit_group is not allowed. */
	syscall(SYS_exit, failures != 0);
}

int main(int count, char **arguments)
{
	if (count < 3)
		return 2;
	watchdog();
	const char *how = arguments[1];
	action_name = arguments[2];
	struct sigaction handler = { .sa_sigaction = is_killed, .sa_flags = SA_SIGINFO };
	IS(sigaction(SIGSYS, &handler, NULL), 0);
	IS(pthread_spin_init(&spin, 0), 0);
	IS(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
	pthread_condattr_t attributes;
	IS(pthread_condattr_init(&attributes), 0);
	IS(pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
	IS(pthread_cond_init(&shared_cond, &attributes), 0);
	IS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	/* Questions whether there are filters are no filters. */
	IS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0), -1);
	IS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL), -1);
	IS(syscall(SYS_gettid), getpid());

	if (!strcmp(how, "strict"))
		strict();
	int before = !strncmp(how, "before", 6);
	if (before)
		install(how[6] ? BY_PRCTL_BY_SYSCALL : BY_PRCTL, 1);
	own_filter = !strcmp(how, "each");
	no_counter = !strcmp(how, "no-counter");
	/* Threads wait for locks when the filter is installed. */
	busy = !strcmp(how, "busy");
#ifdef __x86_64__
	if (no_counter)
		IS(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0), 0);
#endif
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		threads[i] = start(locks, NULL);
	pthread_barrier_wait(&barrier);
	if (busy)
		work(1000000 + getpid() % 16 * 500000);
	if (!strcmp(how, "no-files"))
		lose_files();
	else if (!before && !own_filter && !no_counter)
		install(ALL_THREADS, 0);
	/* The mutex stays locked for a while after the threads have come, so that they wait, and that is
	 * recorded. */
	IS(pthread_mutex_lock(&mutex), 0);
	if (!busy)
		pthread_barrier_wait(&barrier);
	while (__atomic_load_n(&arrived, __ATOMIC_RELAXED) < THREADS)
		work(1);
	work(20000000);
	IS(pthread_mutex_unlock(&mutex), 0);
	all_end(threads, THREADS);
	for (int k = 0; k < 3; k++)
		IS(counts[k], THREADS * ROUNDS);
	/* Many threads start and end, and each waits. */
	for (int wave = 0; before && wave < 50; wave++) {
		for (int i = 0; i < THREADS; i++)
			threads[i] = start(locks_once, NULL);
		all_end(threads, THREADS);
	}
	if (before) {
		pid_t child = fork();
		if (child == 0) {
			for (int i = 0; i < THREADS; i++)
				threads[i] = start(locks_once, NULL);
			lock_all(0);
			all_end(threads, THREADS);
			_exit(failures != 0);
		}
		IS(exit_of(child), 0);
	}
	_exit(failures != 0);
}
