// antiphon_message.hpp: active messages (C++17). A sender posts the name of an action and three
// words to a mailbox; the owner of the mailbox runs the action when it polls or waits.
//
//	antiphon::actions actions(16);
//	auto add = actions.add([&](const antiphon::payload &words) { sum += words[0]; });
//	antiphon::mailbox mailbox(actions, 64);
//	antiphon::sender sender = mailbox.sender();
//
//	sender.post(add, { 42, 0, 0 });		// any thread
//	mailbox.wait();				// the owner: runs the action
//
// antiphon_message.h describes each function. The error codes of C are thrown as std::system_error:
// broken_pipe if a mailbox was closed, no_space_on_device if a table of actions is full,
// device_or_resource_busy if a mailbox is polled by two threads or by its own action,
// resource_deadlock_would_occur if an action removes an action, invalid_argument. An action that
// throws ends the program.

#ifndef ANTIPHON_MESSAGE_HPP
#define ANTIPHON_MESSAGE_HPP

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "antiphon.hpp"
#include "antiphon_message.h"

namespace antiphon {

// The words that a message carries to its action.
using payload = std::array<std::uint64_t, 3>;
// The numbers of messages and signals that a poll has delivered.
using delivered = antiphon_delivered_t;

// Names of actions. The name zero belongs to no action: posting it is an invalid_argument.
enum class action_id : std::uint32_t {};
enum class signal_id : std::uint32_t {};

enum class mailbox_kind {
	parks = ANTIPHON_MAILBOX_PARKS,
	file = ANTIPHON_MAILBOX_FILE,
	spins = ANTIPHON_MAILBOX_SPINS
};

namespace detail {

// A deleter that calls a C function.
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

// A table of actions. Its destructor removes the actions that are left; an action must not destroy
// the table.
class actions {
public:
	using native_handle_type = antiphon_actions_t *;

	// Room for this many actions of messages, beside the actions of signals.
	explicit actions(std::size_t capacity)
	{
		antiphon_actions_t *made = nullptr;
		detail::check(antiphon_actions_create(&made, capacity));
		table_.reset(made);
	}

	~actions()
	{
		// After a failure here, an action that is gone would be run.
		for (const entry &kept : kept_)
			if (antiphon_actions_unregister(table_.get(), kept.first) != 0)
				std::terminate();
	}

	actions(const actions &) = delete;
	actions &operator=(const actions &) = delete;

	// Registers call(payload) for messages. Any thread with a mailbox runs it, also several at
	// a time.
	template <class Call>
	[[nodiscard]] action_id add(Call call)
	{
		auto run = [](void *context, const std::uint64_t *words) noexcept {
			(*static_cast<Call *>(context))(payload{ words[0], words[1], words[2] });
		};
		return action_id(keep(std::move(call), run, antiphon_actions_register));
	}

	// Registers call() for signals. It may also be run without a signal.
	template <class Call>
	[[nodiscard]] signal_id add_signal(Call call)
	{
		auto run = [](void *context) noexcept { (*static_cast<Call *>(context))(); };
		return signal_id(keep(std::move(call), run, antiphon_actions_register_signal));
	}

	// When this returns, the action is not running, will not run again, and has been destroyed.
	// Waits until all batches that owners were running are over.
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
	// The functions of the actions, by number.
	using entry = std::pair<std::uint32_t, std::shared_ptr<void>>;

	template <class Call, class Run, class Register>
	std::uint32_t keep(Call call, Run run, Register with)
	{
		auto context = std::make_shared<Call>(std::move(call));
		std::uint32_t id = 0;
		std::lock_guard guard(lock_);
		// Done before the action may be run: nothing may throw from then on.
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
		// An action that was registered by the native handle is not in the list.
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

	// Posts; false if the mailbox is full. Never waits.
	[[nodiscard]] bool try_post(action_id id, const payload &words)
	{
		const antiphon_message_t message = detail::message(id, words);
		return had(antiphon_sender_post(object_.get(), &message), EAGAIN);
	}

	// Posts, and waits while the mailbox is full. An action must not call this for a mailbox
	// whose owner may be waiting for the action in turn.
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

	// Makes the owner run the action at least once from now on. Never waits.
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

// The owner's end of a mailbox; destroying it closes the mailbox.
class mailbox {
public:
	using native_handle_type = antiphon_mailbox_t *;

	// Room for at least this many messages.
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

	// Delivers the messages that are there, and returns when their actions have.
	delivered poll()
	{
		delivered found{};
		const int code = antiphon_mailbox_poll(object_, &found);
		detail::check(code == EAGAIN ? 0 : code);
		return found;
	}

	// Delivers the messages that are there, or waits for one.
	delivered wait()
	{
		delivered found{};
		detail::check(antiphon_mailbox_wait(object_, &found));
		return found;
	}

	// Like wait, but gives up, and has then delivered nothing.
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

	// The file descriptor for an event loop; -1 unless the kind is mailbox_kind::file.
	[[nodiscard]] int fd() const noexcept
	{
		return antiphon_mailbox_fd(object_);
	}

	// To be called before the event loop sleeps; false if there is something to poll.
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
