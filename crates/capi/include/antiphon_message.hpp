// antiphon_message.hpp: active messages (C++17). A sender names an action and gives it three words,
// and the thread whose mailbox it is runs the action where it polls or waits.
//
//	antiphon::actions actions(16);
//	auto add = actions.add([&](const antiphon::payload &words) { sum += words[0]; });
//	antiphon::mailbox mailbox(actions, 64);
//	antiphon::sender sender = mailbox.sender();
//
//	sender.post(add, { 42, 0, 0 });		// any thread
//	mailbox.wait();				// the owner: runs the action
//
// antiphon_message.h says more of each function. What C tells by codes is thrown as
// std::system_error: broken_pipe where a mailbox was closed, no_space_on_device where a table of
// actions is full, device_or_resource_busy where a mailbox is polled by two threads or by its own
// action, resource_deadlock_would_occur where an action removes one, invalid_argument. An action
// that throws ends the program.

#ifndef ANTIPHON_MESSAGE_HPP
#define ANTIPHON_MESSAGE_HPP

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "antiphon.hpp"
#include "antiphon_message.h"

namespace antiphon {

// What a message carries to its action.
using payload = std::array<std::uint64_t, 3>;
// What a poll has delivered.
using delivered = antiphon_delivered_t;

// Names of actions. One that is zero is nobody's: to post it is an invalid_argument.
enum class action_id : std::uint32_t {};
enum class signal_id : std::uint32_t {};

enum class mailbox_kind {
	parks = ANTIPHON_MAILBOX_PARKS,
	file = ANTIPHON_MAILBOX_FILE,
	spins = ANTIPHON_MAILBOX_SPINS
};

namespace detail {

// Destroys by a function of C.
template <auto Destroy>
struct destroyed_by {
	template <class Object>
	void operator()(Object *object) const noexcept
	{
		Destroy(object);
	}
};

inline antiphon_message_t message(action_id id, const payload &words) noexcept
{
	const auto action = static_cast<std::uint32_t>(id);
	return { action, 0, { words[0], words[1], words[2] } };
}

} // namespace detail

// A table of actions. Removes those that are left when it is destroyed, which an action must not
// do.
class actions {
public:
	using native_handle_type = antiphon_actions_t *;

	// For so many actions that messages run, beside those that signals run.
	explicit actions(std::size_t capacity)
	{
		antiphon_actions_t *made = nullptr;
		detail::check(antiphon_actions_create(&made, capacity));
		table_.reset(made);
	}

	~actions()
	{
		// What fails here would run what is gone.
		for (const entry &kept : kept_)
			if (antiphon_actions_unregister(table_.get(), kept.first) != 0)
				std::terminate();
	}

	actions(const actions &) = delete;
	actions &operator=(const actions &) = delete;

	// Has messages run call(payload), on any thread that has a mailbox, and by several at a time.
	template <class Call>
	[[nodiscard]] action_id add(Call call)
	{
		auto run = [](void *context, const std::uint64_t *words) noexcept {
			(*static_cast<Call *>(context))(payload{ words[0], words[1], words[2] });
		};
		return action_id(keep(std::move(call), run, antiphon_actions_register));
	}

	// Has signals run call(). It must bear being run for no reason.
	template <class Call>
	[[nodiscard]] signal_id add_signal(Call call)
	{
		auto run = [](void *context) noexcept { (*static_cast<Call *>(context))(); };
		return signal_id(keep(std::move(call), run, antiphon_actions_register_signal));
	}

	// When this returns, nobody runs the action, nobody will, and it was destroyed. Waits until
	// all batches are over that owners were running.
	void remove(action_id id)
	{
		forget(static_cast<std::uint32_t>(id));
	}

	void remove(signal_id id)
	{
		forget(static_cast<std::uint32_t>(id));
	}

	native_handle_type native_handle() noexcept
	{
		return table_.get();
	}

private:
	// What an action runs, by its number.
	using entry = std::pair<std::uint32_t, std::shared_ptr<void>>;

	template <class Call, class Run, class Register>
	std::uint32_t keep(Call call, Run run, Register with)
	{
		auto context = std::make_shared<Call>(std::move(call));
		std::uint32_t id = 0;
		std::lock_guard guard(lock_);
		// Before it may be run: nothing can be thrown from then on.
		kept_.emplace_back(id, context);
		const int code = with(table_.get(), run, context.get(), &id);
		kept_.back().first = id;
		if (code != 0)
			kept_.pop_back();
		detail::check(code);
		return id;
	}

	void forget(std::uint32_t id)
	{
		detail::check(antiphon_actions_unregister(table_.get(), id));
		std::lock_guard guard(lock_);
		auto is_it = [id](const entry &kept) { return kept.first == id; };
		// One that was registered by the native handle is not there.
		const auto at = std::find_if(kept_.begin(), kept_.end(), is_it);
		if (at != kept_.end())
			kept_.erase(at);
	}

	std::unique_ptr<antiphon_actions_t, detail::destroyed_by<antiphon_actions_destroy>> table_;
	mutex lock_;
	std::vector<entry> kept_;
};

// Posts to one mailbox. May outlive it.
class sender {
public:
	using native_handle_type = antiphon_sender_t *;

	// Posts; false if there is no room. Never waits.
	[[nodiscard]] bool try_post(action_id id, const payload &words)
	{
		const antiphon_message_t message = detail::message(id, words);
		return had(antiphon_sender_post(object_.get(), &message), EAGAIN);
	}

	// Posts, and waits for room; by an action not where that one waits for it in turn.
	void post(action_id id, const payload &words)
	{
		const antiphon_message_t message = detail::message(id, words);
		detail::check(antiphon_sender_post_wait(object_.get(), &message));
	}

	template <class Rep, class Period>
	[[nodiscard]] bool try_post_for(action_id id, const payload &words,
					const std::chrono::duration<Rep, Period> &span)
	{
		return try_post_until(id, words, detail::after(span));
	}

	template <class Clock, class Duration>
	[[nodiscard]] bool try_post_until(action_id id, const payload &words,
					  const std::chrono::time_point<Clock, Duration> &when)
	{
		const antiphon_message_t message = detail::message(id, words);
		return detail::until(when, [&](int clock, const timespec *time) {
			return had(antiphon_sender_post_timedwait(object_.get(), &message, clock,
								  time),
				   ETIMEDOUT);
		});
	}

	// Has the owner run the action at least once from now on. Never waits.
	void signal(signal_id id)
	{
		const auto number = static_cast<std::uint32_t>(id);
		detail::check(antiphon_sender_signal(object_.get(), number));
	}

	native_handle_type native_handle() noexcept
	{
		return object_.get();
	}

private:
	friend class mailbox;

	explicit sender(antiphon_sender_t *object) noexcept : object_(object)
	{
	}

	static bool had(int code, int refused)
	{
		if (code != refused)
			detail::check(code);
		return code == 0;
	}

	std::unique_ptr<antiphon_sender_t, detail::destroyed_by<antiphon_sender_destroy>> object_;
};

// The end of a mailbox that its owner has; closed when it is destroyed.
class mailbox {
public:
	using native_handle_type = antiphon_mailbox_t *;

	// For at least so many messages.
	mailbox(actions &actions, std::size_t capacity, mailbox_kind kind = mailbox_kind::parks)
	{
		detail::check(antiphon_mailbox_create(&object_, actions.native_handle(), capacity,
						      static_cast<int>(kind)));
	}

	~mailbox()
	{
		if (object_ && antiphon_mailbox_close(object_, nullptr, nullptr) != 0)
			std::terminate();
	}

	mailbox(mailbox &&other) noexcept : object_(std::exchange(other.object_, nullptr))
	{
	}
	mailbox &operator=(mailbox &&other) noexcept
	{
		std::swap(object_, other.object_);
		return *this;
	}

	[[nodiscard]] antiphon::sender sender()
	{
		return antiphon::sender(antiphon_mailbox_sender(object_));
	}

	// Delivers what is there; waits for nothing but the actions.
	delivered poll()
	{
		delivered found{};
		const int code = antiphon_mailbox_poll(object_, &found);
		detail::check(code == EAGAIN ? 0 : code);
		return found;
	}

	// Delivers what is there, or waits until something is.
	delivered wait()
	{
		delivered found{};
		detail::check(antiphon_mailbox_wait(object_, &found));
		return found;
	}

	// As wait; but gives up, and has delivered nothing then.
	template <class Rep, class Period>
	delivered wait_for(const std::chrono::duration<Rep, Period> &span)
	{
		return wait_until(detail::after(span));
	}

	template <class Clock, class Duration>
	delivered wait_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		delivered found{};
		detail::until(when, [&](int clock, const timespec *time) {
			const int code = antiphon_mailbox_timedwait(object_, &found, clock, time);
			detail::check(code == ETIMEDOUT ? 0 : code);
			return code == 0;
		});
		return found;
	}

	// The file for an event loop; -1 but of mailbox_kind::file.
	[[nodiscard]] int fd() const noexcept
	{
		return antiphon_mailbox_fd(object_);
	}

	// Before the event loop sleeps: false if there is something to poll.
	[[nodiscard]] bool doze()
	{
		const int code = antiphon_mailbox_doze(object_);
		detail::check(code == EAGAIN ? 0 : code);
		return code == 0;
	}

	native_handle_type native_handle() noexcept
	{
		return object_;
	}

private:
	antiphon_mailbox_t *object_ = nullptr;
};

} // namespace antiphon

#endif
