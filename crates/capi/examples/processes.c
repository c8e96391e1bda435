/* A balance that several processes keep, in memory that they share. One of them dies in the middle
 * of a transfer; the next process is told, and puts things right.
 *
 *	cc processes.c $(pkg-config --cflags --libs antiphon) -pthread -o processes */
#define _DEFAULT_SOURCE
#include <antiphon.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 4, TRANSFERS = 1000, IN_ALL = 1000000 };

/* Left and right are IN_ALL in sum whenever no process writes. */
struct balance {
	antiphon_pshared_rwlock_t lock;
	antiphon_pshared_barrier_t begin;
	long left, right, repaired;
};

static void write_lock(struct balance *balance)
{
	if (antiphon_pshared_rwlock_wrlock(&balance->lock) != EOWNERDEAD)
		return;
	balance->right = IN_ALL - balance->left;
	balance->repaired++;
	antiphon_pshared_rwlock_recovered(&balance->lock);
}

static int transfer(struct balance *balance, int number)
{
	int at, wrong = 0;
	antiphon_pshared_barrier_wait(&balance->begin);
	for (at = 0; at < TRANSFERS; at++) {
		write_lock(balance);
		balance->left--;
		if (number == 0 && at == TRANSFERS / 2)
			_exit(0); /* a crash: no thread will unlock */
		balance->right++;
		antiphon_pshared_rwlock_wrunlock(&balance->lock);
		if (antiphon_pshared_rwlock_rdlock(&balance->lock) == 0)
			wrong += balance->left + balance->right != IN_ALL;
		antiphon_pshared_rwlock_rdunlock(&balance->lock);
	}
	return wrong;
}

int main(void)
{
	int number, status, failed = 0;
	struct balance *balance = mmap(NULL, sizeof *balance, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (balance == MAP_FAILED || antiphon_pshared_barrier_init(&balance->begin, PROCESSES))
		return 1;
	antiphon_pshared_rwlock_init(&balance->lock);
	balance->left = IN_ALL;
	for (number = 0; number < PROCESSES; number++)
		if (fork() == 0)
			_exit(transfer(balance, number) != 0);
	while (wait(&status) > 0)
		failed += status != 0;
	write_lock(balance);
	printf("%ld in all, repaired %ld time, %d failed\n", balance->left + balance->right,
	       balance->repaired, failed);
	antiphon_pshared_rwlock_wrunlock(&balance->lock);
	return 0;
}
