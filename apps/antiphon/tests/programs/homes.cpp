// Objects with a lock that no call initialises.
#include <mutex>
#include <thread>
#include <vector>

struct Log {
	std::mutex mutex;
	std::vector<int> lines;

	__attribute__((noinline)) void add(int line)
	{
		std::lock_guard<std::mutex> guard(mutex); // Log::add
		lines.push_back(line);
	}

	__attribute__((noinline)) void clear()
	{
		std::lock_guard<std::mutex> guard(mutex); // Log::clear
		lines.clear();
	}
};

int main()
{
	std::vector<Log *> logs = {new Log, new Log, new Log};
	std::thread([&] {
		for (Log *log : logs) {
			log->add(1);
			log->clear();
		}
	}).join();
	for (Log *log : logs)
		delete log;
}
