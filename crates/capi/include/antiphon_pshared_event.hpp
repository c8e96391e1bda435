// antiphon_pshared_event.hpp: events, latches and broadcasts in memory that processes share
// (C++17).
//
// | type                         | as                                                            |
// |------------------------------|---------------------------------------------------------------|
// | antiphon::pshared::event     | antiphon::event                                               |
// | antiphon::pshared::latch     | antiphon::latch                                               |
// | antiphon::pshared::broadcast | antiphon::broadcast, and in place of antiphon::event_count    |
//
// Constructors are constexpr. Memory that is all zero holds the object that the default constructor
// makes; for a latch, one that counts from 1. Each type has the layout of its C type, which
// native_handle() returns; antiphon_pshared_event.h describes each. Events and latches also have
// try_wait_for() and try_wait_until(), which return false if they gave up.

#ifndef ANTIPHON_PSHARED_EVENT_HPP
#define ANTIPHON_PSHARED_EVENT_HPP

#include "antiphon.hpp"
#include "antiphon_pshared_event.h"

namespace antiphon {
namespace pshared {

// Releases one thread, and resets itself; 4 bytes.
class event : public detail::timed_waits<event, antiphon_pshared_event_timedwait> {
public:
	using native_handle_type = antiphon_pshared_event_t *;

	constexpr event() noexcept = default;
	event(const event &) = delete;
	event &operator=(const event &) = delete;

	void set() noexcept
	{
		antiphon_pshared_event_set(&object_);
	}

	void wait() noexcept
	{
		antiphon_pshared_event_wait(&object_);
	}

	[[nodiscard]] bool try_wait() noexcept
	{
		return antiphon_pshared_event_trywait(&object_) == 0;
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_pshared_event_t object_ = ANTIPHON_PSHARED_EVENT_INIT;
};

// Opens once, when it has been counted down to zero, and stays open; 8 bytes.
class latch : public detail::timed_waits<latch, antiphon_pshared_latch_timedwait> {
public:
	using native_handle_type = antiphon_pshared_latch_t *;

	// From 0 to max().
	constexpr explicit latch(std::ptrdiff_t count) noexcept
		: object_ ANTIPHON_PSHARED_LATCH_INIT(static_cast<std::uint32_t>(count))
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
		antiphon_pshared_latch_count_down(&object_, static_cast<std::uint32_t>(step));
	}

	void wait() noexcept
	{
		antiphon_pshared_latch_wait(&object_);
	}

	void arrive_and_wait(std::ptrdiff_t step = 1) noexcept
	{
		count_down(step);
		wait();
	}

	[[nodiscard]] bool try_wait() noexcept
	{
		return antiphon_pshared_latch_trywait(&object_) == 0;
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_pshared_latch_t object_;
};

// Releases all waiters, any number of times; 4 bytes.
class broadcast {
public:
	using native_handle_type = antiphon_pshared_broadcast_t *;
	// The number of sends, modulo 2^31.
	using generation = std::uint32_t;

	constexpr broadcast() noexcept = default;
	broadcast(const broadcast &) = delete;
	broadcast &operator=(const broadcast &) = delete;

	// Call this before the check of the condition.
	[[nodiscard]] generation now() const noexcept
	{
		return antiphon_pshared_broadcast_now(&object_);
	}

	void send() noexcept
	{
		antiphon_pshared_broadcast_send(&object_);
	}

	void wait(generation seen) noexcept
	{
		antiphon_pshared_broadcast_wait(&object_, seen);
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
			return antiphon_pshared_broadcast_timedwait(&object_, seen, clock, time) ==
			       0;
		});
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_pshared_broadcast_t object_ = ANTIPHON_PSHARED_BROADCAST_INIT;
};

static_assert(sizeof(event) == sizeof(antiphon_pshared_event_t) &&
	      std::is_standard_layout_v<event>);
static_assert(sizeof(latch) == sizeof(antiphon_pshared_latch_t) &&
	      std::is_standard_layout_v<latch>);
static_assert(sizeof(broadcast) == sizeof(antiphon_pshared_broadcast_t) &&
	      std::is_standard_layout_v<broadcast>);

} // namespace pshared
} // namespace antiphon

#endif
