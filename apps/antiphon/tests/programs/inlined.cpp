// Locks in functions that are inlined, and in a template and a lambda; with LONG, sections that
// others wait for. Exits with 7.
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

struct Log {
	std::mutex mutex;
	std::vector<int> lines;

	void add(int line)
	{
		std::lock_guard<std::mutex> guard(mutex); // Log::add locks
		lines.push_back(line);
		if (lines.size() > 100)
			lines.clear();
#ifdef LONG
		std::this_thread::sleep_for(std::chrono::microseconds(300));
#endif
	}
};

template <typename Key, typename Value> struct Table {
	std::mutex mutex;
	Value last{};

	__attribute__((noinline)) void put(Key, Value value)
	{
		std::lock_guard<std::mutex> guard(mutex); // Table::put locks
		last = value;
	}
};

int main()
{
	Log log;
	Table<std::vector<std::vector<int>>, int> table;
	std::vector<std::thread> threads;
	for (int number = 0; number < 2; number++)
		threads.emplace_back([&] {
			for (int i = 0; i < 1000; i++) {
				log.add(i);
				table.put({}, i);
			}
		});
	for (auto &thread : threads)
		thread.join();
	return 7;
}
