// yes: a return without an unlock leaves the lock taken; the others wait with a deadline. no: it is
// released.
#include "common.h"

struct account {
	pthread_mutex_t lock;
	long balance;
};

static struct account *account;
static bool leaks;

static __attribute__((noinline)) int withdraw(long amount)
{
	pthread_mutex_lock(&account->lock);
	if (account->balance < amount && leaks)
		return -1;
	account->balance -= amount;
	pthread_mutex_unlock(&account->lock);
	return 0;
}

static void *look(void *unused)
{
	for (int round = 0; round < 3; round++) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 50000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		if (!pthread_mutex_timedlock(&account->lock, &until))
			pthread_mutex_unlock(&account->lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	leaks = asked(argc, argv);
	account = calloc(1, sizeof *account);
	pthread_mutex_init(&account->lock, NULL);
	withdraw(10);
	together(3, look);
}
