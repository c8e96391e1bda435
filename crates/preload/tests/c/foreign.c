/* A mutex that is not flagged as shared, in each kind of memory that processes may share: the owner
 * can't wake a waiter of another process, which wakes up by itself. */
#include "check.h"
#include <stdint.h>
#include <sys/shm.h>

enum { PAGE = 4096 };

static void waits(void *memory)
{
	pthread_mutex_t *mutex = memory;
	*mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(mutex);
	pid_t child = fork();
	if (child == 0) {
		pthread_mutex_lock(mutex);
		pthread_mutex_unlock(mutex);
		_exit(0);
	}
	/* Until the thread sleeps there: byte 0 of our locks has the bit. The C library's would be 2. */
	while (!(*(volatile uint8_t *)mutex & 2))
		usleep(1000);
	pthread_mutex_unlock(mutex);
	IS(exit_of(child), 0);
}

enum { THREADS = 3, ROUNDS = 5 };

static void *some_rounds(void *mutex)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(mutex);
		usleep(1000);
		pthread_mutex_unlock(mutex);
	}
	return NULL;
}

static void rounds_of_threads(pthread_mutex_t *mutex)
{
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		threads[i] = start(some_rounds, mutex);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* Threads of two processes, which don't know each other's waiters: late, but all come through. */
static void crowds(void *memory)
{
	pthread_mutex_t *mutex = memory;
	*mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	pid_t child = fork();
	rounds_of_threads(mutex);
	if (child == 0)
		_exit(0);
	IS(exit_of(child), 0);
}

int main(void)
{
	watchdog();
	/* More than are remembered one by one, some of them gone again. */
	for (int i = 0; i < 200; i++) {
		void *memory = shared_memory(PAGE);
		if (i % 2)
			IS(munmap(memory, PAGE), 0);
	}
	void *mapped = shared_memory(3 * PAGE);
	waits((char *)mapped + 2 * PAGE);

	char *grown = mremap(shared_memory(PAGE), PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	YES(grown != MAP_FAILED);
	waits(grown);

	int segment = shmget(IPC_PRIVATE, PAGE, 0600);
	void *attached = shmat(segment, NULL, 0);
	YES(attached != (void *)-1);
	IS(shmctl(segment, IPC_RMID, NULL), 0);
	waits(attached);

	char *later = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	IS(mprotect(later, 2 * PAGE, PROT_READ | PROT_WRITE), 0);
	IS(munmap(later + 1, PAGE), -1);
	waits(later);

	char *page = mmap(NULL, 100, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	waits(page + 1024);
	crowds(page + 2048);

	/* Errors are the C library's. */
	errno = 0;
	YES(mmap(NULL, 0, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	IS(errno, EINVAL);
	errno = 0;
	IS(munmap((void *)1, PAGE), -1);
	IS(errno, EINVAL);
	return failures != 0;
}
