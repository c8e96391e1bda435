// antiphon_event.hpp: events, latches, event counts and broadcasts (C++17).
//
//	antiphon::event ready;
//	ready.set();		// one thread
//	ready.wait();		// another
//
// | type                  | as, in C++                                     |
// |-----------------------|------------------------------------------------|
// | antiphon::event       | std::binary_semaphore that may be set again    |
// | antiphon::latch       | std::latch, with deadlines                     |
// | antiphon::event_count | a condition variable without a mutex           |
// | antiphon::broadcast   | std::atomic::wait and notify_all               |
//
// Constructors are constexpr. Each type has the layout of its C type, which native_handle()
// returns; antiphon_event.h describes each. All waits must have returned before an object is
// destroyed; calls that signal need not have. Events and latches also have try_wait_for() and
// try_wait_until(), which return false if they gave up.

#ifndef ANTIPHON_EVENT_HPP
#define ANTIPHON_EVENT_HPP

#include "antiphon.hpp"
#include "antiphon_event.h"

namespace antiphon {

// Releases one thread, and resets itself; 192 bytes.
class event : public detail::timed_waits<event, antiphon_event_timedwait> {
public:
	using native_handle_type = antiphon_event_t *;

	constexpr event() noexcept = default;
	event(const event &) = delete;
	event &operator=(const event &) = delete;

	void set() noexcept
	{
		antiphon_event_set(&object_);
	}

	void reset() noexcept
	{
		antiphon_event_reset(&object_);
	}

	void wait() noexcept
	{
		antiphon_event_wait(&object_);
	}

	[[nodiscard]] bool try_wait() noexcept
	{
		return antiphon_event_trywait(&object_) == 0;
	}

	[[nodiscard]] bool is_set() const noexcept
	{
		return antiphon_event_is_set(&object_) != 0;
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_event_t object_ = ANTIPHON_EVENT_INIT;
};

// Opens once, when it has been counted down to zero, and stays open; 24 bytes.
class latch : public detail::timed_waits<latch, antiphon_latch_timedwait> {
public:
	using native_handle_type = antiphon_latch_t *;

	// From 0 to max().
	constexpr explicit latch(std::ptrdiff_t count) noexcept
		: object_ ANTIPHON_LATCH_INIT(static_cast<std::uint32_t>(count))
	{
	}
	latch(const latch &) = delete;
	latch &operator=(const latch &) = delete;

	static constexpr std::ptrdiff_t max() noexcept
	{
		return ANTIPHON_LATCH_MAX;
	}

	// Counts down by what is left, if that is less.
	void count_down(std::ptrdiff_t step = 1) noexcept
	{
		antiphon_latch_count_down(&object_, static_cast<std::uint32_t>(step));
	}

	void wait() noexcept
	{
		antiphon_latch_wait(&object_);
	}

	void arrive_and_wait(std::ptrdiff_t step = 1) noexcept
	{
		count_down(step);
		wait();
	}

	[[nodiscard]] bool try_wait() noexcept
	{
		return antiphon_latch_trywait(&object_) == 0;
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_latch_t object_;
};

// Waits for a condition that is stored elsewhere; 16 bytes.
class event_count {
public:
	using native_handle_type = antiphon_event_count_t *;

	// A prepared wait; destroying it cancels the wait.
	class key {
	public:
		key(const key &) = delete;
		key &operator=(const key &) = delete;

		~key()
		{
			antiphon_event_count_cancel(&object_);
		}

		// Waits for a notification; may (seldom) return without one.
		void wait() noexcept
		{
			antiphon_event_count_wait(&object_);
		}

		// Waits once, also on a clock of the user's. The caller checks its condition.
		template <class Clock, class Duration>
		void wait_until(const std::chrono::time_point<Clock, Duration> &when)
		{
			detail::until(when, [this](int clock, const timespec *time) {
				// Whatever has ended the wait.
				(void)!antiphon_event_count_timedwait(&object_, clock, time);
				return true;
			});
		}

	private:
		friend class event_count;

		explicit key(antiphon_event_count_t *count) noexcept
		{
			antiphon_event_count_prepare(count, &object_);
		}

		antiphon_event_key_t object_;
	};

	constexpr event_count() noexcept = default;
	event_count(const event_count &) = delete;
	event_count &operator=(const event_count &) = delete;

	// From now on a notification may be for the caller, which checks its condition next.
	[[nodiscard]] key prepare() noexcept
	{
		return key(&object_);
	}

	// Waits until the condition is true.
	template <class Predicate>
	void wait(Predicate done)
	{
		while (!done()) {
			key prepared = prepare();
			if (done())
				return;
			prepared.wait();
		}
	}

	// Like wait, but gives up; returns the condition.
	template <class Clock, class Duration, class Predicate>
	bool wait_until(const std::chrono::time_point<Clock, Duration> &when, Predicate done)
	{
		while (!done()) {
			key prepared = prepare();
			if (done())
				return true;
			if (Clock::now() >= when)
				return false;
			prepared.wait_until(when);
		}
		return true;
	}

	template <class Rep, class Period, class Predicate>
	bool wait_for(const std::chrono::duration<Rep, Period> &span, Predicate done)
	{
		return wait_until(detail::after(span), done);
	}

	void notify_one() noexcept
	{
		antiphon_event_count_notify(&object_, 1);
	}

	void notify(std::uint32_t waiters) noexcept
	{
		antiphon_event_count_notify(&object_, waiters);
	}

	void notify_all() noexcept
	{
		antiphon_event_count_notify_all(&object_);
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_event_count_t object_ = ANTIPHON_EVENT_COUNT_INIT;
};

// Releases all waiters, any number of times; 1152 bytes.
class broadcast {
public:
	using native_handle_type = antiphon_broadcast_t *;
	// The number of sends.
	using generation = std::uint64_t;

	constexpr broadcast() noexcept = default;
	broadcast(const broadcast &) = delete;
	broadcast &operator=(const broadcast &) = delete;

	// Call this before the check of the condition.
	[[nodiscard]] generation now() const noexcept
	{
		return antiphon_broadcast_now(&object_);
	}

	void send() noexcept
	{
		antiphon_broadcast_send(&object_);
	}

	void wait(generation seen) noexcept
	{
		antiphon_broadcast_wait(&object_, seen);
	}

	template <class Rep, class Period>
	[[nodiscard]] bool try_wait_for(generation seen,
					const std::chrono::duration<Rep, Period> &span)
	{
		return try_wait_until(seen, detail::after(span));
	}

	template <class Clock, class Duration>
	[[nodiscard]] bool try_wait_until(generation seen,
					  const std::chrono::time_point<Clock, Duration> &when)
	{
		return detail::until(when, [this, seen](int clock, const timespec *time) {
			return antiphon_broadcast_timedwait(&object_, seen, clock, time) == 0;
		});
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_broadcast_t object_ = ANTIPHON_BROADCAST_INIT;
};

static_assert(sizeof(event) == sizeof(antiphon_event_t) && std::is_standard_layout_v<event>);
static_assert(sizeof(latch) == sizeof(antiphon_latch_t) && std::is_standard_layout_v<latch>);
static_assert(sizeof(event_count) == sizeof(antiphon_event_count_t) &&
	      std::is_standard_layout_v<event_count>);
static_assert(sizeof(broadcast) == sizeof(antiphon_broadcast_t) &&
	      std::is_standard_layout_v<broadcast>);

} // namespace antiphon

#endif
