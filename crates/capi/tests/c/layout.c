/* The header and the library agree about the types; zeroes are free objects. */
#include "check.h"

#include <antiphon_clock.h>
#include <antiphon_event.h>
#include <antiphon_message.h>
#include <antiphon_pool.h>
#include <antiphon_pshared_event.h>
#include <antiphon_loop.h>
#include <antiphon_split.h>
#include <antiphon_stage.h>

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
	char before_event;
	antiphon_event_t event;
	char before_latch;
	antiphon_latch_t latch;
	char before_event_count;
	antiphon_event_count_t event_count;
	char before_event_key;
	antiphon_event_key_t event_key;
	char before_broadcast;
	antiphon_broadcast_t broadcast;
	char before_pshared_event;
	antiphon_pshared_event_t pshared_event;
	char before_clock;
	antiphon_clock_t clock;
	char before_message;
	antiphon_message_t message;
	char before_delivered;
	antiphon_delivered_t delivered;
	char before_pshared_latch;
	antiphon_pshared_latch_t pshared_latch;
	char before_pshared_broadcast;
	antiphon_pshared_broadcast_t pshared_broadcast;
	char before_task_group;
	antiphon_task_group_t task_group;
	char before_case;
	antiphon_case_t one_case;
	char before_stage_options;
	antiphon_stage_options_t stage_options;
	char before_stage_stats;
	antiphon_stage_stats_t stage_stats;
	char before_loop_event;
	antiphon_loop_event_t loop_event;
	char before_loop_turn;
	antiphon_loop_turn_t loop_turn;
	char before_loop_stats;
	antiphon_loop_stats_t loop_stats;
	char before_coop;
	antiphon_coop_t coop;
	char before_coop_answer;
	antiphon_coop_answer_t coop_answer;
	char before_coop_status;
	antiphon_coop_status_t coop_status;
	char before_loop_options;
	antiphon_loop_options_t loop_options;
	char before_loop_trouble;
	antiphon_loop_trouble_t loop_trouble;
	char before_loop_bucket;
	antiphon_loop_bucket_t loop_bucket;
	char before_loop_sighting;
	antiphon_loop_sighting_t loop_sighting;
	char before_split_options;
	antiphon_split_options_t split_options;
	char before_split_stats;
	antiphon_split_stats_t split_stats;
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
	static const antiphon_event_t event = ANTIPHON_EVENT_INIT;
	static const antiphon_latch_t latch = ANTIPHON_LATCH_INIT(1), three = ANTIPHON_LATCH_INIT(3);
	static const antiphon_event_count_t count = ANTIPHON_EVENT_COUNT_INIT;
	static const antiphon_broadcast_t broadcast = ANTIPHON_BROADCAST_INIT;
	static const antiphon_pshared_event_t pshared_event = ANTIPHON_PSHARED_EVENT_INIT;
	static const antiphon_pshared_latch_t pshared_latch = ANTIPHON_PSHARED_LATCH_INIT(3);
	static const antiphon_pshared_broadcast_t pshared_broadcast = ANTIPHON_PSHARED_BROADCAST_INIT;
	static const antiphon_task_group_t group = ANTIPHON_TASK_GROUP_INIT;
	static const char zero[2048];
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
	check(ANTIPHON_TYPE_EVENT, sizeof(antiphon_event_t), offsetof(struct apart, event));
	check(ANTIPHON_TYPE_LATCH, sizeof(antiphon_latch_t), offsetof(struct apart, latch));
	check(ANTIPHON_TYPE_EVENT_COUNT, sizeof(antiphon_event_count_t),
	      offsetof(struct apart, event_count));
	check(ANTIPHON_TYPE_EVENT_KEY, sizeof(antiphon_event_key_t),
	      offsetof(struct apart, event_key));
	check(ANTIPHON_TYPE_BROADCAST, sizeof(antiphon_broadcast_t),
	      offsetof(struct apart, broadcast));
	check(ANTIPHON_TYPE_PSHARED_EVENT, sizeof(antiphon_pshared_event_t),
	      offsetof(struct apart, pshared_event));
	check(ANTIPHON_TYPE_CLOCK, sizeof(antiphon_clock_t), offsetof(struct apart, clock));
	check(ANTIPHON_TYPE_MESSAGE, sizeof(antiphon_message_t), offsetof(struct apart, message));
	check(ANTIPHON_TYPE_DELIVERED, sizeof(antiphon_delivered_t),
	      offsetof(struct apart, delivered));
	check(ANTIPHON_TYPE_PSHARED_LATCH, sizeof(antiphon_pshared_latch_t),
	      offsetof(struct apart, pshared_latch));
	check(ANTIPHON_TYPE_PSHARED_BROADCAST, sizeof(antiphon_pshared_broadcast_t),
	      offsetof(struct apart, pshared_broadcast));
	check(ANTIPHON_TYPE_TASK_GROUP, sizeof(antiphon_task_group_t),
	      offsetof(struct apart, task_group));
	check(ANTIPHON_TYPE_CASE, sizeof(antiphon_case_t), offsetof(struct apart, one_case));
	check(ANTIPHON_TYPE_STAGE_OPTIONS, sizeof(antiphon_stage_options_t),
	      offsetof(struct apart, stage_options));
	check(ANTIPHON_TYPE_STAGE_STATS, sizeof(antiphon_stage_stats_t),
	      offsetof(struct apart, stage_stats));
	check(ANTIPHON_TYPE_LOOP_EVENT, sizeof(antiphon_loop_event_t),
	      offsetof(struct apart, loop_event));
	check(ANTIPHON_TYPE_LOOP_TURN, sizeof(antiphon_loop_turn_t),
	      offsetof(struct apart, loop_turn));
	check(ANTIPHON_TYPE_LOOP_STATS, sizeof(antiphon_loop_stats_t),
	      offsetof(struct apart, loop_stats));
	check(ANTIPHON_TYPE_COOP, sizeof(antiphon_coop_t), offsetof(struct apart, coop));
	check(ANTIPHON_TYPE_COOP_ANSWER, sizeof(antiphon_coop_answer_t),
	      offsetof(struct apart, coop_answer));
	check(ANTIPHON_TYPE_COOP_STATUS, sizeof(antiphon_coop_status_t),
	      offsetof(struct apart, coop_status));
	check(ANTIPHON_TYPE_LOOP_OPTIONS, sizeof(antiphon_loop_options_t),
	      offsetof(struct apart, loop_options));
	check(ANTIPHON_TYPE_LOOP_TROUBLE, sizeof(antiphon_loop_trouble_t),
	      offsetof(struct apart, loop_trouble));
	check(ANTIPHON_TYPE_LOOP_BUCKET, sizeof(antiphon_loop_bucket_t),
	      offsetof(struct apart, loop_bucket));
	check(ANTIPHON_TYPE_LOOP_SIGHTING, sizeof(antiphon_loop_sighting_t),
	      offsetof(struct apart, loop_sighting));
	check(ANTIPHON_TYPE_SPLIT_OPTIONS, sizeof(antiphon_split_options_t),
	      offsetof(struct apart, split_options));
	check(ANTIPHON_TYPE_SPLIT_STATS, sizeof(antiphon_split_stats_t),
	      offsetof(struct apart, split_stats));
	IS(antiphon_layout(0, &size, &align), EINVAL);
	IS(antiphon_layout(1000, &size, &align), EINVAL);
	IS(size, 1);

	IS(memcmp(&mutex, zero, sizeof mutex), 0);
	IS(memcmp(&rwlock, zero, sizeof rwlock), 0);
	IS(memcmp(&spin, zero, sizeof spin), 0);
	IS(memcmp(&cond, zero, sizeof cond), 0);
	IS(memcmp(&group, zero, sizeof group), 0);
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
	IS(memcmp(&event, zero, sizeof event), 0);
	IS(memcmp(&latch, zero, sizeof latch), 0);
	IS(memcmp(&count, zero, sizeof count), 0);
	IS(memcmp(&broadcast, zero, sizeof broadcast), 0);
	IS(memcmp(&pshared_event, zero, sizeof pshared_event), 0);
	IS(antiphon_event_init(&made.event), 0);
	IS(antiphon_latch_init(&made.latch, 3), 0);
	antiphon_event_count_init(&made.event_count);
	IS(antiphon_broadcast_init(&made.broadcast), 0);
	antiphon_pshared_event_init(&made.pshared_event);
	IS(antiphon_pshared_latch_init(&made.pshared_latch, 3), 0);
	antiphon_pshared_broadcast_init(&made.pshared_broadcast);
	IS(memcmp(&made.event, zero, sizeof event), 0);
	IS(memcmp(&made.latch, &three, sizeof three), 0);
	IS(memcmp(&made.event_count, zero, sizeof count), 0);
	IS(memcmp(&made.broadcast, zero, sizeof broadcast), 0);
	IS(memcmp(&made.pshared_event, zero, sizeof pshared_event), 0);
	IS(memcmp(&made.pshared_latch, &pshared_latch, sizeof pshared_latch), 0);
	IS(memcmp(&made.pshared_broadcast, zero, sizeof pshared_broadcast), 0);
	IS(memcmp(&pshared_broadcast, zero, sizeof pshared_broadcast), 0);
	/* The initialisers write the same as the functions of the library. */
	IS(antiphon_barrier_init(&made.barrier, 3), 0);
	IS(antiphon_sem_init(&made.sem, 3), 0);
	IS(memcmp(&made.barrier, &barrier, sizeof barrier), 0);
	IS(memcmp(&made.sem, &sem, sizeof sem), 0);

	IS(strcmp(antiphon_version(), ANTIPHON_VERSION), 0);
	return failures != 0;
}
