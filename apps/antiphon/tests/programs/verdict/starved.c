// yes: readers whose sections overlap pass a waiting writer. no: they wait behind it.
#include "common.h"

static pthread_rwlock_t table;
static volatile bool stops;

static void *reads(void *unused)
{
	while (!stops) {
		pthread_rwlock_rdlock(&table);
		usleep(3000);
		pthread_rwlock_unlock(&table);
	}
	return unused;
}

static void *writes(void *unused)
{
	usleep(20000);
	pthread_rwlock_wrlock(&table);
	pthread_rwlock_unlock(&table);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t readers[4], writer;
	pthread_rwlockattr_t attributes;
	pthread_rwlockattr_init(&attributes);
	if (!asked(argc, argv))
		pthread_rwlockattr_setkind_np(&attributes,
					      PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&table, &attributes);
	for (int number = 0; number < 4; number++) {
		start(&readers[number], reads, NULL);
		usleep(700);
	}
	start(&writer, writes, NULL);
	usleep(600000);
	stops = true;
	pthread_join(writer, NULL);
	for (int number = 0; number < 4; number++)
		pthread_join(readers[number], NULL);
}
