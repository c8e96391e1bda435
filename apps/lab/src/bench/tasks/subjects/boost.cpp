// Boost.Fiber for `antiphon bench tasks`: program CASE WORKERS BATCH FIBONACCI SECONDS.
// Prints the outcome of one repetition as the others do. With one worker fibers take turns
// (round_robin); with several, threads steal them from each other (work_stealing).
#include <boost/fiber/all.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fibers = boost::fibers;
using Clock = std::chrono::steady_clock;

constexpr std::size_t MESSAGES = 10000, YIELDS = 1000;

[[noreturn]] static void fail(std::string const &what) {
	std::fprintf(stderr, "%s\n", what.c_str());
	std::exit(2);
}

static double cpu_ns() {
	rusage usage;
	if (getrusage(RUSAGE_SELF, &usage) != 0)
		fail("getrusage");
	auto ns = [](timeval of) { return of.tv_sec * 1e9 + of.tv_usec * 1e3; };
	return ns(usage.ru_utime) + ns(usage.ru_stime);
}

template <typename Round> static void timed(double seconds, double tasks, Round round) {
	auto since = [](Clock::time_point begun) {
		return std::chrono::duration<double>(Clock::now() - begun).count();
	};
	auto begun = Clock::now();
	round();
	auto times = std::size_t(std::clamp(seconds / since(begun), 1.0, 1e6));
	double before = cpu_ns();
	begun = Clock::now();
	for (std::size_t i = 0; i < times; i++)
		round();
	double all = tasks * double(times), took = since(begun) * 1e9;
	std::printf("{\"figures\":{\"ns_per_op\":%f,\"cpu_ns_per_op\":%f}}\n", took / all,
	            (cpu_ns() - before) / all);
}

static void join(std::vector<fibers::fiber> &all) {
	for (auto &one : all)
		one.join();
}

static void spawn_join(std::size_t batch) {
	std::vector<fibers::fiber> all;
	all.reserve(batch);
	for (std::size_t i = 0; i < batch; i++)
		all.emplace_back([] {});
	join(all);
}

static void yields(std::size_t tasks) {
	std::vector<fibers::fiber> all;
	for (std::size_t i = 0; i < tasks; i++)
		all.emplace_back([] {
			for (std::size_t j = 0; j < YIELDS; j++)
				boost::this_fiber::yield();
		});
	join(all);
}

// It stores one less than its capacity, which is a power of two: 128 have 127 places.
static std::size_t capacity(std::size_t room) {
	std::size_t capacity = 2;
	while (capacity < room)
		capacity *= 2;
	return capacity;
}

// A fiber sends another a number of messages. If they are to be apart, each keeps its thread until the
// other has begun.
static void channel(std::size_t room, bool apart) {
	fibers::buffered_channel<std::size_t> numbers(capacity(room));
	std::atomic<int> begun{0};
	auto meet = [&] {
		begun++;
		while (apart && begun < 2)
			;
	};
	std::size_t received = 0;
	std::vector<fibers::fiber> both;
	both.emplace_back([&] {
		meet();
		for (std::size_t i = 0; i < MESSAGES; i++)
			numbers.push(i);
		numbers.close();
	});
	both.emplace_back([&] {
		meet();
		for (std::size_t number; numbers.pop(number) == fibers::channel_op_status::success;)
			received++;
	});
	join(both);
	if (received != MESSAGES)
		fail("messages were lost");
}

int main(int count, char **arguments) {
	if (count != 6)
		fail("wants CASE WORKERS BATCH FIBONACCI SECONDS");
	std::string name = arguments[1];
	auto workers = std::uint32_t(std::stoul(arguments[2]));
	auto batch = std::size_t(std::stoul(arguments[3]));
	double seconds = std::stod(arguments[5]);
	fibers::mutex over_lock;
	fibers::condition_variable_any over;
	bool is_over = false;
	std::vector<std::thread> threads;
	for (std::uint32_t i = 1; i < workers; i++)
		threads.emplace_back([&] {
			fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(workers);
			std::unique_lock<fibers::mutex> guard(over_lock);
			over.wait(guard, [&] { return is_over; });
		});
	if (workers > 1)
		fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(workers);
	if (name == "spawn_join")
		timed(seconds, double(batch), [&] { spawn_join(batch); });
	else if (name == "yield")
		timed(seconds, double(batch * YIELDS), [&] { yields(batch); });
	else if (name == "channel" || name == "across")
		timed(seconds, double(MESSAGES), [&] { channel(batch, name == "across"); });
	else
		fail("no case " + name);
	{
		std::unique_lock<fibers::mutex> guard(over_lock);
		is_over = true;
	}
	over.notify_all();
	for (auto &thread : threads)
		thread.join();
}
