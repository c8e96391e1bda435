/* The header and the library agree about the types; zeroes are free objects. */
#include "check.h"

#include <antiphon.h>

struct apart {
	char before_mutex;
	antiphon_mutex_t mutex;
	char before_rwlock;
	antiphon_rwlock_t rwlock;
	char before_spin;
	antiphon_spin_t spin;
	char before_cond;
	antiphon_cond_t cond;
	char before_barrier;
	antiphon_barrier_t barrier;
	char before_sem;
	antiphon_sem_t sem;
	char before_once;
	antiphon_once_t once;
	char before_pshared_rwlock;
	antiphon_pshared_rwlock_t pshared_rwlock;
	char before_pshared_barrier;
	antiphon_pshared_barrier_t pshared_barrier;
};

static void check(int type, size_t size, size_t offset)
{
	size_t their_size = 0, their_align = 0;
	IS(antiphon_layout(type, &their_size, &their_align), 0);
	IS(their_size, size);
	YES(their_align != 0 && offset % their_align == 0);
	YES(size % their_align == 0);
}

int main(void)
{
	static const antiphon_mutex_t mutex = ANTIPHON_MUTEX_INIT;
	static const antiphon_rwlock_t rwlock = ANTIPHON_RWLOCK_INIT;
	static const antiphon_spin_t spin = ANTIPHON_SPIN_INIT;
	static const antiphon_cond_t cond = ANTIPHON_COND_INIT;
	static const antiphon_barrier_t barrier = ANTIPHON_BARRIER_INIT(3);
	static const antiphon_sem_t sem = ANTIPHON_SEM_INIT(3);
	static const antiphon_once_t once = ANTIPHON_ONCE_INIT;
	static const antiphon_pshared_rwlock_t pshared = ANTIPHON_PSHARED_RWLOCK_INIT;
	static const char zero[64];
	struct apart made;
	size_t size = 1, align = 1;

	check(ANTIPHON_TYPE_MUTEX, sizeof(antiphon_mutex_t), offsetof(struct apart, mutex));
	check(ANTIPHON_TYPE_RWLOCK, sizeof(antiphon_rwlock_t), offsetof(struct apart, rwlock));
	check(ANTIPHON_TYPE_SPIN, sizeof(antiphon_spin_t), offsetof(struct apart, spin));
	check(ANTIPHON_TYPE_COND, sizeof(antiphon_cond_t), offsetof(struct apart, cond));
	check(ANTIPHON_TYPE_BARRIER, sizeof(antiphon_barrier_t), offsetof(struct apart, barrier));
	check(ANTIPHON_TYPE_SEM, sizeof(antiphon_sem_t), offsetof(struct apart, sem));
	check(ANTIPHON_TYPE_ONCE, sizeof(antiphon_once_t), offsetof(struct apart, once));
	check(ANTIPHON_TYPE_PSHARED_RWLOCK, sizeof(antiphon_pshared_rwlock_t),
	      offsetof(struct apart, pshared_rwlock));
	check(ANTIPHON_TYPE_PSHARED_BARRIER, sizeof(antiphon_pshared_barrier_t),
	      offsetof(struct apart, pshared_barrier));
	IS(antiphon_layout(0, &size, &align), EINVAL);
	IS(antiphon_layout(1000, &size, &align), EINVAL);
	IS(size, 1);

	IS(memcmp(&mutex, zero, sizeof mutex), 0);
	IS(memcmp(&rwlock, zero, sizeof rwlock), 0);
	IS(memcmp(&spin, zero, sizeof spin), 0);
	IS(memcmp(&cond, zero, sizeof cond), 0);
	memset(&made, 0xff, sizeof made);
	antiphon_mutex_init(&made.mutex);
	antiphon_rwlock_init(&made.rwlock);
	antiphon_spin_init(&made.spin);
	antiphon_cond_init(&made.cond);
	antiphon_pshared_rwlock_init(&made.pshared_rwlock);
	IS(memcmp(&made.pshared_rwlock, &pshared, sizeof pshared), 0);
	IS(memcmp(&pshared, zero, sizeof pshared), 0);
	IS(memcmp(&made.mutex, zero, sizeof mutex), 0);
	IS(memcmp(&made.rwlock, zero, sizeof rwlock), 0);
	IS(memcmp(&made.spin, zero, sizeof spin), 0);
	IS(memcmp(&made.cond, zero, sizeof cond), 0);
	IS(memcmp(&once, zero, sizeof once), 0);
	/* What the initialisers write is what the library does. */
	IS(antiphon_barrier_init(&made.barrier, 3), 0);
	IS(antiphon_sem_init(&made.sem, 3), 0);
	IS(memcmp(&made.barrier, &barrier, sizeof barrier), 0);
	IS(memcmp(&made.sem, &sem, sizeof sem), 0);

	IS(strcmp(antiphon_version(), ANTIPHON_VERSION), 0);
	return failures != 0;
}
