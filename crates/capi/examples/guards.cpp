// The standard's guards over our locks.
//
//	c++ -std=c++17 guards.cpp $(pkg-config --cflags --libs antiphon) -pthread -o guards
#include <antiphon.hpp>

#include <chrono>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

class journal {
public:
	void add(std::string line)
	{
		std::lock_guard guard(lock_);
		lines_.push_back(std::move(line));
	}

	std::size_t size() const
	{
		std::shared_lock guard(lock_);
		return lines_.size();
	}

private:
	mutable antiphon::shared_mutex lock_;
	std::vector<std::string> lines_;
};

int main()
{
	using namespace std::chrono_literals;
	journal lines;
	antiphon::mutex lock;
	antiphon::condition_variable changed;
	int finished = 0;

	std::vector<std::thread> writers;
	for (int writer = 0; writer < 3; writer++)
		writers.emplace_back([&, writer] {
			for (int line = 0; line < 100; line++)
				lines.add(std::to_string(writer) + ": " + std::to_string(line));
			std::lock_guard guard(lock);
			finished++;
			changed.notify_one();
		});

	std::unique_lock guard(lock);
	bool all = changed.wait_for(guard, 60s, [&] { return finished == 3; });
	guard.unlock();
	for (auto &writer : writers)
		writer.join();
	std::cout << lines.size() << " lines, " << (all ? "all" : "not all") << " in time\n";
}
