// The C++ types are what the standard calls them, and work with its guards.
#include "check.hpp"

#include <antiphon.hpp>

#include <atomic>
#include <memory>
#include <new>
#include <shared_mutex>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;

// Requirements of [thread.req.lockable] and [thread.sharedtimedmutex.requirements], by name.
template <class L>
constexpr bool is_basic_lockable = std::is_void_v<decltype(std::declval<L &>().lock())> &&
				   std::is_void_v<decltype(std::declval<L &>().unlock())> &&
				   noexcept(std::declval<L &>().unlock());
template <class L>
constexpr bool is_lockable =
	is_basic_lockable<L> && std::is_same_v<bool, decltype(std::declval<L &>().try_lock())>;
template <class L>
constexpr bool is_timed_lockable =
	is_lockable<L> &&
	std::is_same_v<bool, decltype(std::declval<L &>().try_lock_for(1.5s))> &&
	std::is_same_v<bool, decltype(std::declval<L &>().try_lock_until(
				     std::chrono::steady_clock::now()))>;
template <class L>
constexpr bool is_shared_timed_lockable =
	std::is_void_v<decltype(std::declval<L &>().lock_shared())> &&
	std::is_void_v<decltype(std::declval<L &>().unlock_shared())> &&
	std::is_same_v<bool, decltype(std::declval<L &>().try_lock_shared())> &&
	std::is_same_v<bool, decltype(std::declval<L &>().try_lock_shared_for(1h))> &&
	std::is_same_v<bool, decltype(std::declval<L &>().try_lock_shared_until(
				     std::chrono::system_clock::now()))>;
template <class L>
constexpr bool stays = !std::is_copy_constructible_v<L> && !std::is_copy_assignable_v<L> &&
		       !std::is_move_constructible_v<L> && !std::is_move_assignable_v<L> &&
		       std::is_nothrow_default_constructible_v<L> && std::is_destructible_v<L>;

static_assert(is_timed_lockable<antiphon::mutex> && stays<antiphon::mutex>);
static_assert(is_timed_lockable<antiphon::shared_mutex> && stays<antiphon::shared_mutex>);
static_assert(is_shared_timed_lockable<antiphon::shared_mutex>);
static_assert(is_lockable<antiphon::spin_mutex> && stays<antiphon::spin_mutex>);
static_assert(stays<antiphon::condition_variable>);

// Objects of static storage, without an initialiser that runs: a constexpr object proves it.
constexpr antiphon::mutex constant_mutex;
constexpr antiphon::shared_mutex constant_shared;
constexpr antiphon::spin_mutex constant_spin;
constexpr antiphon::counting_semaphore constant_semaphore(4);
constexpr antiphon::once_flag constant_flag;
static antiphon::barrier static_barrier(1);
static antiphon::condition_variable static_condition;

// A clock of the user's, an hour ahead.
struct ahead {
	using duration = std::chrono::milliseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<ahead>;
	static constexpr bool is_steady = true;
	static time_point now()
	{
		auto now = std::chrono::steady_clock::now().time_since_epoch();
		return time_point(std::chrono::duration_cast<duration>(now) + 1h);
	}
};

template <class F>
static void elsewhere(F run)
{
	std::thread(run).join();
}

template <class M>
static void counts()
{
	M mutex, other;
	long count = 0;
	std::vector<std::thread> threads;
	for (int at = 0; at < 4; at++)
		threads.emplace_back([&, at] {
			for (int round = 0; round < 3000; round++) {
				// Both orders: scoped_lock avoids the deadlock.
				if (at % 2) {
					std::scoped_lock guard(mutex, other);
					count++;
				} else {
					std::scoped_lock guard(other, mutex);
					count++;
				}
				std::lock_guard guard(mutex);
				count++;
			}
		});
	for (auto &thread : threads)
		thread.join();
	YES(count == 24000);
	std::unique_lock guard(mutex, std::try_to_lock);
	YES(guard.owns_lock());
	elsewhere([&] { YES(!std::unique_lock(mutex, std::try_to_lock).owns_lock()); });
}

// No attempt ends before its time, whatever that is counted in.
template <class F>
static void gives_up_in_time(F attempt)
{
	auto begin = std::chrono::steady_clock::now();
	attempt();
	YES(std::chrono::steady_clock::now() - begin >= 5ms);
}

template <class M>
static void times()
{
	M mutex;
	mutex.lock();
	elsewhere([&] {
		using std::chrono::duration;
		using std::chrono::steady_clock;
		using std::chrono::system_clock;
		gives_up_in_time([&] { YES(!mutex.try_lock_for(5ms)); });
		gives_up_in_time([&] { YES(!mutex.try_lock_for(duration<double>(0.005))); });
		gives_up_in_time([&] { YES(!mutex.try_lock_until(steady_clock::now() + 5ms)); });
		gives_up_in_time([&] { YES(!mutex.try_lock_until(ahead::now() + 6ms)); });
		YES(!mutex.try_lock_until(system_clock::now() + 5ms));
		YES(!mutex.try_lock_until(std::chrono::time_point<system_clock, std::chrono::hours>()));
		YES(!mutex.try_lock_for(-1h));
		YES(!mutex.try_lock_for(std::chrono::nanoseconds::min()));
	});
	std::atomic<int> had = 0;
	auto wait = [&](auto attempt) {
		return std::thread([&had, &mutex, attempt] {
			YES(attempt(mutex));
			had++;
			mutex.unlock();
		});
	};
	std::vector<std::thread> patient;
	patient.push_back(wait([](M &m) { return m.try_lock_for(std::chrono::hours::max()); }));
	patient.push_back(wait([](M &m) {
		return m.try_lock_until(std::chrono::steady_clock::time_point::max());
	}));
	patient.push_back(wait([](M &m) {
		using far = std::chrono::duration<double, std::ratio<31556952>>;
		return m.try_lock_for(far(1e300));
	}));
	std::this_thread::sleep_for(20ms);
	YES(had == 0);
	mutex.unlock();
	for (auto &thread : patient)
		thread.join();
	YES(had == 3);
	YES(mutex.try_lock_for(-1h));
	mutex.unlock();
}

static void shared()
{
	antiphon::shared_mutex mutex;
	{
		std::shared_lock reader(mutex);
		elsewhere([&] {
			YES(std::shared_lock(mutex, std::try_to_lock).owns_lock());
			YES(!std::unique_lock(mutex, std::try_to_lock).owns_lock());
			YES(std::shared_lock(mutex, 1h).owns_lock());
			gives_up_in_time([&] { YES(!std::unique_lock(mutex, 5ms).owns_lock()); });
		});
	}
	std::unique_lock writer(mutex);
	elsewhere([&] {
		YES(!std::shared_lock(mutex, std::try_to_lock).owns_lock());
		gives_up_in_time([&] { YES(!std::shared_lock(mutex, 5ms).owns_lock()); });
		auto soon = std::chrono::system_clock::now() + 5ms;
		YES(!mutex.try_lock_shared_until(soon));
	});
}

// Too many readers: the one thing that throws.
static void throws()
{
	antiphon::shared_mutex mutex;
	long readers = 0;
	try {
		for (;; readers++)
			mutex.lock_shared();
	} catch (const std::system_error &error) {
		YES(error.code() == std::errc::resource_unavailable_try_again);
	}
	YES(!mutex.try_lock_shared());
	YES(readers > 1000000);
	while (readers--)
		mutex.unlock_shared();
	YES(mutex.try_lock());
	mutex.unlock();
}

template <class M, class C>
static void queue()
{
	M mutex;
	C changed;
	int slot = 0;
	std::thread producer([&] {
		for (int item = 1; item <= 2000; item++) {
			std::unique_lock lock(mutex);
			changed.wait(lock, [&] { return slot == 0; });
			slot = item;
			changed.notify_all();
		}
	});
	for (int item = 1; item <= 2000; item++) {
		std::unique_lock lock(mutex);
		YES(changed.wait_for(lock, 60s, [&] { return slot != 0; }));
		YES(slot == item);
		slot = 0;
		lock.unlock();
		changed.notify_one();
	}
	producer.join();
	std::unique_lock lock(mutex);
	gives_up_in_time([&] { YES(changed.wait_for(lock, 5ms) == std::cv_status::timeout); });
	gives_up_in_time([&] { YES(!changed.wait_for(lock, 5ms, [] { return false; })); });
	gives_up_in_time([&] {
		auto soon = ahead::now() + 6ms;
		while (changed.wait_until(lock, soon) != std::cv_status::timeout)
			;
	});
	auto soon = std::chrono::system_clock::now() + 5ms;
	YES(changed.wait_until(lock, soon) == std::cv_status::timeout);
	YES(changed.wait_until(lock, soon, [] { return true; }));
	YES(lock.owns_lock());
}

// [thread.condition.condvar]: it may go when all are notified, before they have returned.
static void destroyed_when_notified()
{
	for (int round = 0; round < 300; round++) {
		antiphon::mutex mutex;
		auto changed = std::make_unique<antiphon::condition_variable>();
		auto *condition = changed.get();
		bool over = false, waits = false;
		std::thread waiter([&] {
			std::unique_lock lock(mutex);
			waits = true;
			while (!over)
				condition->wait_for(lock, 100us);
		});
		for (std::unique_lock lock(mutex); !waits;) {
			lock.unlock();
			std::this_thread::yield();
			lock.lock();
		}
		{
			std::lock_guard lock(mutex);
			over = true;
			changed->notify_all();
			changed.reset();
		}
		waiter.join();
	}
}

static void semaphore_barrier_once()
{
	antiphon::counting_semaphore semaphore(1);
	antiphon::barrier barrier(2);
	antiphon::once_flag flag;
	std::atomic<int> runs = 0, failed = 0, leaders = 0;
	auto run = [&](int argument) {
		YES(argument == 5);
		if (++runs == 1)
			throw std::runtime_error("the first");
	};
	auto both = [&] {
		leaders += barrier.wait();
		try {
			antiphon::call_once(flag, run, 5);
		} catch (const std::runtime_error &) {
			failed++;
		}
		leaders += barrier.wait();
		antiphon::call_once(flag, run, 5);
	};
	std::thread other(both);
	both();
	other.join();
	YES(runs == 2 && failed == 1 && leaders == 2);

	YES(semaphore.try_acquire() && !semaphore.try_acquire());
	gives_up_in_time([&] { YES(!semaphore.try_acquire_for(5ms)); });
	YES(!semaphore.try_acquire_until(std::chrono::system_clock::now() + 5ms));
	std::thread giver([&] { semaphore.release(2); });
	semaphore.acquire();
	YES(semaphore.try_acquire_for(60s));
	giver.join();
	semaphore.release(semaphore.max());
	YES(thrown([&] { semaphore.release(); }) == EOVERFLOW);
}

// A thread that gives up has not come, by whatever clock; one that comes is told whether it leads.
template <class Barrier>
static void rounds_with_deadlines()
{
	Barrier barrier(2);
	gives_up_in_time([&] { YES(!barrier.try_wait_for(5ms)); });
	gives_up_in_time([&] { YES(!barrier.try_wait_until(ahead::now() + 6ms)); });
	YES(!barrier.try_wait_until(std::chrono::system_clock::now() + 5ms));
	std::atomic<int> leaders = 0, came = 0;
	auto wait = [&] {
		for (int round = 0; round < 200; round++) {
			const std::optional<bool> led =
				round % 2 ? barrier.try_wait_for(60s)
					  : barrier.try_wait_until(ahead::now() + 60s);
			came += led.has_value();
			leaders += led.value_or(false);
		}
	};
	std::thread other(wait);
	wait();
	other.join();
	YES(came == 400 && leaders == 200);
}

static void between_processes()
{
	struct both {
		antiphon::pshared::shared_mutex lock;
		antiphon::pshared::barrier barrier{ 2 };
	};
	void *page = mmap(nullptr, sizeof(both), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	YES(page != MAP_FAILED);
	auto *shared = new (page) both;
	const pid_t child = fork();
	if (child == 0) {
		shared->lock.lock();
		shared->barrier.wait();
		_exit(0); // a writer that dies
	}
	shared->barrier.wait();
	YES(waitpid(child, nullptr, 0) == child);
	{
		std::shared_lock guard(shared->lock, 60s);
		YES(guard.owns_lock() && !shared->lock.is_whole());
		YES(!shared->lock.try_lock_for(5ms));
	}
	std::unique_lock guard(shared->lock);
	shared->lock.recovered();
	YES(shared->lock.is_whole());
	guard.unlock();
	YES(shared->lock.try_lock_shared());
	shared->lock.unlock_shared();
	YES(thrown([] { antiphon::pshared::barrier none(0); }) == EINVAL);
}

int main()
{
	alarm(120);
	between_processes();
	semaphore_barrier_once();
	rounds_with_deadlines<antiphon::barrier>();
	rounds_with_deadlines<antiphon::pshared::barrier>();
	counts<antiphon::mutex>();
	counts<antiphon::spin_mutex>();
	counts<antiphon::shared_mutex>();
	times<antiphon::mutex>();
	times<antiphon::shared_mutex>();
	shared();
	throws();
	queue<antiphon::mutex, antiphon::condition_variable>();
	queue<antiphon::mutex, std::condition_variable_any>();
	queue<antiphon::shared_mutex, std::condition_variable_any>();
	queue<antiphon::spin_mutex, std::condition_variable_any>();
	destroyed_when_notified();
	static_condition.notify_all();
	YES(static_barrier.wait());
	return failures != 0;
}
