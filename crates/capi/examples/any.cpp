// std::condition_variable_any waits with any lock of ours: here with readers of a shared one.
//
//	c++ -std=c++17 any.cpp $(pkg-config --cflags --libs antiphon) -pthread -o any
#include <antiphon.hpp>

#include <iostream>
#include <shared_mutex>
#include <thread>
#include <vector>

int main()
{
	antiphon::shared_mutex lock;
	std::condition_variable_any changed;
	antiphon::spin_mutex counting;
	int state = 0, seen = 0;

	std::vector<std::thread> readers;
	for (int reader = 0; reader < 3; reader++)
		readers.emplace_back([&] {
			std::shared_lock guard(lock);
			changed.wait(guard, [&] { return state == 7; });
			std::lock_guard count(counting);
			seen += state;
		});
	{
		std::lock_guard guard(lock);
		state = 7;
	}
	changed.notify_all();
	for (auto &reader : readers)
		reader.join();
	std::cout << seen << "\n";
}
