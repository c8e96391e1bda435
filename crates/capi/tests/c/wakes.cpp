// Events, broadcasts and messages of the C++ headers.
#include "check.hpp"

#include <antiphon_event.hpp>
#include <antiphon_message.hpp>
#include <antiphon_pshared_event.hpp>

#include <atomic>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;

constexpr antiphon::event constant_event;
constexpr antiphon::latch constant_latch(3);
constexpr antiphon::event_count constant_count;
constexpr antiphon::broadcast constant_broadcast;
constexpr antiphon::pshared::event constant_shared;
constexpr antiphon::pshared::latch constant_shared_latch(3);
constexpr antiphon::pshared::broadcast constant_shared_broadcast;

template <class T>
constexpr bool stays = !std::is_copy_constructible_v<T> && !std::is_move_constructible_v<T> &&
		       !std::is_copy_assignable_v<T> && !std::is_move_assignable_v<T>;
static_assert(stays<antiphon::event> && stays<antiphon::latch> && stays<antiphon::event_count>);
static_assert(stays<antiphon::broadcast> && stays<antiphon::actions>);
static_assert(!std::is_copy_constructible_v<antiphon::mailbox> &&
	      std::is_nothrow_move_constructible_v<antiphon::mailbox>);

template <class Event>
static void events()
{
	Event asked, answered;
	int number = 21;
	std::thread other([&] {
		asked.wait();
		number *= 2;
		answered.set();
	});
	asked.set();
	YES(answered.try_wait_for(60s));
	YES(number == 42);
	other.join();
	YES(!answered.try_wait());
	YES(!answered.try_wait_for(2ms));
	YES(!answered.try_wait_until(std::chrono::system_clock::now() + 2ms));
	answered.set();
	YES(answered.try_wait_for(-1s));
}

template <class Latch>
static void latches()
{
	Latch done(3);
	std::atomic<int> parts{ 0 };
	std::vector<std::thread> threads;
	for (int part = 0; part < 2; part++)
		threads.emplace_back([&] {
			parts++;
			done.arrive_and_wait();
			YES(parts == 3);
		});
	YES(!done.try_wait());
	YES(!done.try_wait_for(1ms));
	parts++;
	done.count_down();
	done.wait();
	YES(done.try_wait());
	for (auto &thread : threads)
		thread.join();
}

static void counts()
{
	antiphon::event_count changed;
	std::atomic<int> stage{ 0 };
	std::thread other([&] {
		changed.wait([&] { return stage == 1; });
		stage = 2;
		changed.notify_all();
	});
	YES(!changed.wait_for(2ms, [&] { return stage == 2; }));
	stage = 1;
	changed.notify_one();
	YES(changed.wait_for(60s, [&] { return stage == 2; }));
	other.join();
	// Cancelled when it goes: no waiter is left to be notified.
	{
		auto key = changed.prepare();
	}
	YES(antiphon_event_count_destroy(changed.native_handle()) == 0);
	auto key = changed.prepare();
	changed.notify(1);
	key.wait();
}

template <class Broadcast>
static void broadcasts()
{
	Broadcast work;
	std::atomic<bool> ready{ false };
	std::vector<std::thread> threads;
	for (int at = 0; at < 3; at++)
		threads.emplace_back([&] {
			for (;;) {
				auto seen = work.now();
				if (ready)
					return;
				work.wait(seen);
			}
		});
	auto seen = work.now();
	YES(!work.try_wait_for(seen, 2ms));
	ready = true;
	work.send();
	YES(work.try_wait_for(seen, 0s));
	for (auto &thread : threads)
		thread.join();
}

static void messages()
{
	antiphon::actions actions(1);
	std::uint64_t sum = 0;
	int bells = 0;
	auto counted = std::make_shared<int>(7);
	auto add = actions.add([&sum, counted](const antiphon::payload &words) { sum += words[2]; });
	auto bell = actions.add_signal([&] { bells++; });
	YES(counted.use_count() == 2);
	YES(thrown([&] { (void)actions.add([](const antiphon::payload &) {}); }) == ENOSPC);

	antiphon::mailbox mailbox(actions, 2, antiphon::mailbox_kind::file);
	antiphon::sender sender = mailbox.sender();
	YES(mailbox.fd() >= 0 && mailbox.doze());
	YES(sender.try_post(add, { 0, 0, 1 }) && sender.try_post(add, { 0, 0, 2 }));
	YES(!sender.try_post(add, { 0, 0, 3 }) && !sender.try_post_for(add, { 0, 0, 3 }, 2ms));
	YES(!mailbox.doze());
	YES(mailbox.poll().messages == 2 && sum == 3);
	YES(mailbox.poll().messages == 0 && mailbox.wait_for(2ms).messages == 0);

	antiphon::mailbox moved = std::move(mailbox);
	std::thread other([&] {
		for (int at = 0; at < 1000; at++)
			sender.post(add, { 0, 0, 1 });
		sender.signal(bell);
	});
	while (sum < 1003 || bells == 0)
		moved.wait();
	other.join();
	actions.remove(add);
	YES(counted.use_count() == 1);
	YES(thrown([&] { actions.remove(add); }) == ENOENT);
	/* An action that C has registered. */
	std::uint32_t id = 0;
	auto nothing = [](void *, const std::uint64_t *) {};
	YES(antiphon_actions_register(actions.native_handle(), nothing, nullptr, &id) == 0);
	actions.remove(antiphon::action_id{ id });
	YES(sender.try_post(add, { 1, 1, 1 }));
	YES(moved.wait().strays == 1 && sum == 1003);
	{
		antiphon::mailbox closed = std::move(moved);
	}
	YES(thrown([&] { sender.post(add, { 1, 1, 1 }); }) == EPIPE);
	YES(thrown([&] { (void)sender.try_post({}, { 1, 1, 1 }); }) == EINVAL);
	YES(thrown([&] { sender.signal(bell); }) == EPIPE);
	YES(thrown([&] { antiphon::mailbox none(actions, 0); }) == EINVAL);
	YES(thrown([] { antiphon::actions many(1000); }) == EINVAL);
}

int main()
{
	alarm(120);
	events<antiphon::event>();
	events<antiphon::pshared::event>();
	latches<antiphon::latch>();
	latches<antiphon::pshared::latch>();
	counts();
	broadcasts<antiphon::broadcast>();
	broadcasts<antiphon::pshared::broadcast>();
	messages();
	return failures != 0;
}
