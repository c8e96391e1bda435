// The C++ library's locks, over whatever pthread functions there are.
#include "check.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <pthread.h>
#include <shared_mutex>
#include <thread>
#include <vector>
#include <unistd.h>

using namespace std::chrono_literals;

static void timed_mutex()
{
	std::timed_mutex mutex;
	mutex.lock();
	std::thread([&] {
		auto begin = std::chrono::steady_clock::now();
		YES(!mutex.try_lock_for(20ms));
		YES(std::chrono::steady_clock::now() - begin >= 20ms);
		YES(!mutex.try_lock_until(std::chrono::system_clock::now() + 5ms));
		YES(!mutex.try_lock_until(std::chrono::steady_clock::now() + 5ms));
		YES(!mutex.try_lock_for(-1s));
	}).join();
	mutex.unlock();
	YES(mutex.try_lock_for(-1s));
	mutex.unlock();
	std::recursive_timed_mutex recursive;
	YES(recursive.try_lock_for(1s) && recursive.try_lock_for(1s));
	recursive.unlock();
	recursive.unlock();
}

static void recursive_mutex()
{
	std::recursive_mutex mutex;
	long count = 0;
	std::vector<std::thread> threads;
	for (int at = 0; at < 4; at++)
		threads.emplace_back([&] {
			for (int round = 0; round < 5000; round++) {
				std::lock_guard<std::recursive_mutex> outer(mutex), inner(mutex);
				count++;
			}
		});
	for (auto &thread : threads)
		thread.join();
	YES(count == 20000);
}

static void condition_variable()
{
	std::mutex mutex;
	std::condition_variable cond;
	std::condition_variable_any any;
	bool ready = false;
	std::unique_lock<std::mutex> lock(mutex);
	YES(cond.wait_for(lock, 10ms) == std::cv_status::timeout);
	YES(cond.wait_until(lock, std::chrono::system_clock::now() + 10ms) ==
	    std::cv_status::timeout);
	YES(cond.wait_until(lock, std::chrono::steady_clock::now() + 10ms) ==
	    std::cv_status::timeout);
	YES(any.wait_for(lock, 10ms) == std::cv_status::timeout);
	std::thread thread([&] {
		std::lock_guard<std::mutex> guard(mutex);
		ready = true;
		cond.notify_all();
	});
	YES(cond.wait_for(lock, 60s, [&] { return ready; }));
	lock.unlock();
	thread.join();
}

static void shared_mutex()
{
	std::shared_mutex shared;
	std::shared_timed_mutex timed;
	long count = 0;
	std::vector<std::thread> threads;
	for (int at = 0; at < 4; at++)
		threads.emplace_back([&] {
			for (int round = 0; round < 2000; round++) {
				shared.lock();
				count++;
				shared.unlock();
				std::shared_lock<std::shared_mutex> reader(shared);
				YES(timed.try_lock_shared_for(60s));
				timed.unlock_shared();
			}
		});
	for (auto &thread : threads)
		thread.join();
	YES(count == 8000);
	std::shared_lock<std::shared_timed_mutex> reader(timed);
	std::thread([&] {
		auto begin = std::chrono::steady_clock::now();
		YES(!timed.try_lock() && !timed.try_lock_for(20ms));
		YES(std::chrono::steady_clock::now() - begin >= 20ms);
		YES(!timed.try_lock_until(std::chrono::system_clock::now() + 5ms));
		YES(timed.try_lock_shared());
		timed.unlock_shared();
	}).join();
	reader.unlock();
	std::unique_lock<std::shared_timed_mutex> writer(timed);
	std::thread([&] {
		YES(!timed.try_lock_shared() && !timed.try_lock_shared_for(5ms));
		YES(!timed.try_lock_shared_until(std::chrono::steady_clock::now() + 5ms));
		YES(!timed.try_lock_shared_until(std::chrono::system_clock::now() + 5ms));
	}).join();
}

// Left to the C library, and still working.
static void untouched()
{
	std::once_flag once;
	std::atomic<int> calls{0};
	std::vector<std::thread> threads;
	for (int at = 0; at < 4; at++)
		threads.emplace_back([&] { std::call_once(once, [&] { calls++; }); });
	for (auto &thread : threads)
		thread.join();
	YES(calls == 1);
	YES(std::async(std::launch::async, [] { return 5; }).get() == 5);
}

// A cancellation unwinds C++ frames above the wait: their destructors run, with the mutex held.
static std::mutex cancel_mutex;
static std::condition_variable cancel_cond;
static std::atomic<int> entered{0}, unwound{0};

struct Unwound {
	~Unwound() { unwound++; }
};

static void *wait_for_ever(void *)
{
	Unwound first;
	std::unique_lock<std::mutex> lock(cancel_mutex);
	Unwound second;
	entered = 1;
	for (;;)
		pthread_cond_wait(cancel_cond.native_handle(), cancel_mutex.native_handle());
}

static void cancellation()
{
	pthread_t thread;
	pthread_create(&thread, nullptr, wait_for_ever, nullptr);
	while (!entered)
		std::this_thread::yield();
	std::this_thread::sleep_for(20ms);
	pthread_cancel(thread);
	void *result;
	pthread_join(thread, &result);
	YES(result == PTHREAD_CANCELED && unwound == 2);
	YES(cancel_mutex.try_lock());
	cancel_mutex.unlock();
}

int main()
{
	alarm(120);
	timed_mutex();
	recursive_mutex();
	condition_variable();
	shared_mutex();
	untouched();
	cancellation();
	return failures != 0;
}
