// antiphon.hpp: locks for many-core Linux machines, with the interfaces of the C++ library (C++17).
//
//	antiphon::mutex lock;
//	std::lock_guard guard(lock);
//
// | type                         | as                        | meets                             |
// |------------------------------|---------------------------|-----------------------------------|
// | antiphon::mutex              | std::timed_mutex          | Lockable, TimedLockable           |
// | antiphon::shared_mutex       | std::shared_timed_mutex   | SharedTimedLockable               |
// | antiphon::spin_mutex         | std::mutex                | Lockable                          |
// | antiphon::condition_variable | std::condition_variable   | with unique_lock<antiphon::mutex> |
// | antiphon::counting_semaphore | std::counting_semaphore   |                                   |
// | antiphon::once_flag          | std::once_flag            | antiphon::call_once               |
// | antiphon::barrier            | (pthread_barrier_t)       | try_wait_for, try_wait_until      |
//
// antiphon::pshared::shared_mutex and antiphon::pshared::barrier are the same for memory that
// processes share. std::condition_variable_any works with every type that is Lockable. Constructors
// are constexpr: objects of static storage need no dynamic initialisation. Each type has the layout
// of its C type, which native_handle() returns. What differs from the types of the standard:
//
// - Any thread may unlock. Locking a mutex twice is not detected; it deadlocks.
// - lock_shared() throws std::system_error (resource_unavailable_try_again) if there are millions
//   of readers; counting_semaphore::release() throws it (value_too_large) if there would be too
//   many permits; the constructor of pshared::barrier throws it (invalid_argument) for a number
//   that is not allowed. Nothing else throws errors of its own. Without exceptions the program ends
//   instead.
// - antiphon::condition_variable::wait() does not end the program when the thread is cancelled
//   (pthread_cancel): the wait goes on.

#ifndef ANTIPHON_HPP
#define ANTIPHON_HPP

#if __cplusplus < 201703L
#error "antiphon.hpp needs C++17"
#endif

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "antiphon.h"

namespace antiphon {

namespace detail {

// A time as a timespec of C: rounded up, so that no wait ends early. Out of range means for ever.
template <class Duration>
timespec to_timespec(Duration since_zero)
{
	using std::chrono::seconds;
	using limits = std::numeric_limits<std::time_t>;
	using real = std::chrono::duration<long double>;
	timespec time{};
	// Compared as floating point: a period may be too coarse to be turned into seconds.
	if (std::chrono::duration_cast<real>(since_zero).count() >= 9e18L) {
		time.tv_sec = limits::max();
		return time;
	}
	if (since_zero <= Duration::zero())
		return time;
	const auto whole = std::chrono::floor<seconds>(since_zero);
	const auto rest = std::chrono::ceil<std::chrono::nanoseconds>(since_zero - whole);
	time.tv_sec = static_cast<std::time_t>(whole.count());
	time.tv_nsec = static_cast<long>(rest.count());
	if (time.tv_nsec >= 1'000'000'000) {
		time.tv_sec += 1;
		time.tv_nsec = 0;
	}
	return time;
}

// The time on the steady clock after that span. A sum out of range is for ever.
template <class Rep, class Period>
std::chrono::steady_clock::time_point after(const std::chrono::duration<Rep, Period> &span)
{
	using clock = std::chrono::steady_clock;
	using real = std::chrono::duration<long double, clock::period>;
	const auto now = clock::now();
	if (span <= span.zero())
		return now;
	const auto room = clock::duration::max() - now.time_since_epoch();
	if (std::chrono::duration_cast<real>(span) >= real(room))
		return clock::time_point::max();
	return now + std::chrono::ceil<clock::duration>(span);
}

// Calls `attempt` with a clock and a time of it, until it succeeds or the time has come. In
// libstdc++ and libc++ the steady clock is CLOCK_MONOTONIC, and the system clock CLOCK_REALTIME.
// Another clock may run at another speed: it is read again when that time seems to have come.
template <class Clock, class Duration, class Attempt>
bool until(const std::chrono::time_point<Clock, Duration> &when, Attempt attempt)
{
	if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
		const timespec time = to_timespec(when.time_since_epoch());
		return attempt(CLOCK_MONOTONIC, &time);
	} else if constexpr (std::is_same_v<Clock, std::chrono::system_clock>) {
		const timespec time = to_timespec(when.time_since_epoch());
		return attempt(CLOCK_REALTIME, &time);
	} else {
		for (;;) {
			if (until(after(when - Clock::now()), attempt))
				return true;
			if (Clock::now() >= when)
				return false;
		}
	}
}

// Whether a wait has succeeded, rather than timed out.
inline bool has_come(int code) noexcept
{
	return code == 0;
}

// Whether a wait at a barrier was that of the leader of the round; nullopt if it gave up.
inline std::optional<bool> leads(int code) noexcept
{
	return code == 0 || code == 1 ? std::optional(code == 1) : std::nullopt;
}

// The timed waits of an object whose C function is `TimedWait`; `Outcome` interprets its return
// code. The class is empty, so that the object has the layout of the C type.
template <class Object, auto TimedWait, auto Outcome = has_come>
class timed_waits {
public:
	template <class Rep, class Period>
	[[nodiscard]] auto try_wait_for(const std::chrono::duration<Rep, Period> &span)
	{
		return try_wait_until(detail::after(span));
	}

	template <class Clock, class Duration>
	[[nodiscard]] auto try_wait_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		int code = ETIMEDOUT;
		detail::until(when, [&](int clock, const timespec *time) {
			code = TimedWait(static_cast<Object *>(this)->native_handle(), clock, time);
			return code != ETIMEDOUT;
		});
		return Outcome(code);
	}
};

inline void check(int code)
{
	if (code == 0)
		return;
#if defined(__cpp_exceptions)
	throw std::system_error(code, std::generic_category(), "antiphon");
#else
	std::terminate();
#endif
}

} // namespace detail

// A mutex that sleeps, 8 bytes.
class mutex {
public:
	using native_handle_type = antiphon_mutex_t *;

	constexpr mutex() noexcept = default;
	mutex(const mutex &) = delete;
	mutex &operator=(const mutex &) = delete;

	void lock() noexcept
	{
		antiphon_mutex_lock(&object_);
	}

	[[nodiscard]] bool try_lock() noexcept
	{
		return antiphon_mutex_trylock(&object_) == 0;
	}

	template <class Rep, class Period>
	[[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period> &span)
	{
		return try_lock_until(detail::after(span));
	}

	template <class Clock, class Duration>
	[[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return detail::until(when, [this](int clock, const timespec *time) {
			return antiphon_mutex_timedlock(&object_, clock, time) == 0;
		});
	}

	void unlock() noexcept
	{
		antiphon_mutex_unlock(&object_);
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_mutex_t object_ = ANTIPHON_MUTEX_INIT;
};

// A spinlock, 4 bytes: for sections well under a microsecond, and not more threads than CPUs.
class spin_mutex {
public:
	using native_handle_type = antiphon_spin_t *;

	constexpr spin_mutex() noexcept = default;
	spin_mutex(const spin_mutex &) = delete;
	spin_mutex &operator=(const spin_mutex &) = delete;

	void lock() noexcept
	{
		antiphon_spin_lock(&object_);
	}

	[[nodiscard]] bool try_lock() noexcept
	{
		return antiphon_spin_trylock(&object_) == 0;
	}

	void unlock() noexcept
	{
		antiphon_spin_unlock(&object_);
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_spin_t object_ = ANTIPHON_SPIN_INIT;
};

// A readers-writer lock that sleeps, 16 bytes. Arriving readers wait behind a waiting writer.
class shared_mutex {
public:
	using native_handle_type = antiphon_rwlock_t *;

	constexpr shared_mutex() noexcept = default;
	shared_mutex(const shared_mutex &) = delete;
	shared_mutex &operator=(const shared_mutex &) = delete;

	void lock() noexcept
	{
		antiphon_rwlock_wrlock(&object_);
	}

	[[nodiscard]] bool try_lock() noexcept
	{
		return antiphon_rwlock_trywrlock(&object_) == 0;
	}

	template <class Rep, class Period>
	[[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period> &span)
	{
		return try_lock_until(detail::after(span));
	}

	template <class Clock, class Duration>
	[[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return detail::until(when, [this](int clock, const timespec *time) {
			return antiphon_rwlock_timedwrlock(&object_, clock, time) == 0;
		});
	}

	void unlock() noexcept
	{
		antiphon_rwlock_wrunlock(&object_);
	}

	void lock_shared()
	{
		detail::check(antiphon_rwlock_rdlock(&object_));
	}

	[[nodiscard]] bool try_lock_shared() noexcept
	{
		return antiphon_rwlock_tryrdlock(&object_) == 0;
	}

	template <class Rep, class Period>
	[[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &span)
	{
		return try_lock_shared_until(detail::after(span));
	}

	template <class Clock, class Duration>
	[[nodiscard]] bool
	try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return detail::until(when, [this](int clock, const timespec *time) {
			return antiphon_rwlock_timedrdlock(&object_, clock, time) == 0;
		});
	}

	void unlock_shared() noexcept
	{
		antiphon_rwlock_rdunlock(&object_);
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_rwlock_t object_ = ANTIPHON_RWLOCK_INIT;
};

// A condition variable for antiphon::mutex, 32 bytes. It may be destroyed as soon as all waiters
// have been notified.
class condition_variable {
public:
	using native_handle_type = antiphon_cond_t *;

	constexpr condition_variable() noexcept = default;
	condition_variable(const condition_variable &) = delete;
	condition_variable &operator=(const condition_variable &) = delete;

	~condition_variable()
	{
		antiphon_cond_destroy(&object_);
	}

	void notify_one() noexcept
	{
		antiphon_cond_signal(&object_);
	}

	void notify_all() noexcept
	{
		antiphon_cond_broadcast(&object_);
	}

	void wait(std::unique_lock<mutex> &lock) noexcept
	{
		antiphon_cond_wait(&object_, lock.mutex()->native_handle());
	}

	template <class Predicate>
	void wait(std::unique_lock<mutex> &lock, Predicate done)
	{
		while (!done())
			wait(lock);
	}

	template <class Clock, class Duration>
	std::cv_status wait_until(std::unique_lock<mutex> &lock,
				  const std::chrono::time_point<Clock, Duration> &when)
	{
		// One wait, also on a clock of the user's; it may end without a notification.
		bool notified = false;
		detail::until(when, [&](int clock, const timespec *time) {
			antiphon_mutex_t *owned = lock.mutex()->native_handle();
			notified = antiphon_cond_timedwait(&object_, owned, clock, time) == 0;
			return true;
		});
		if (notified || Clock::now() < when)
			return std::cv_status::no_timeout;
		return std::cv_status::timeout;
	}

	template <class Clock, class Duration, class Predicate>
	bool wait_until(std::unique_lock<mutex> &lock,
			const std::chrono::time_point<Clock, Duration> &when, Predicate done)
	{
		while (!done()) {
			if (wait_until(lock, when) == std::cv_status::timeout)
				return done();
		}
		return true;
	}

	template <class Rep, class Period>
	std::cv_status wait_for(std::unique_lock<mutex> &lock,
				const std::chrono::duration<Rep, Period> &span)
	{
		return wait_until(lock, detail::after(span));
	}

	template <class Rep, class Period, class Predicate>
	bool wait_for(std::unique_lock<mutex> &lock,
		      const std::chrono::duration<Rep, Period> &span, Predicate done)
	{
		return wait_until(lock, detail::after(span), done);
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_cond_t object_ = ANTIPHON_COND_INIT;
};

// A counting semaphore, 16 bytes.
class counting_semaphore {
public:
	using native_handle_type = antiphon_sem_t *;

	// 0 to max() permits.
	constexpr explicit counting_semaphore(std::ptrdiff_t permits) noexcept
		: object_ ANTIPHON_SEM_INIT(static_cast<std::uint32_t>(permits))
	{
	}
	counting_semaphore(const counting_semaphore &) = delete;
	counting_semaphore &operator=(const counting_semaphore &) = delete;

	static constexpr std::ptrdiff_t max() noexcept
	{
		return ANTIPHON_SEM_MAX;
	}

	void acquire() noexcept
	{
		antiphon_sem_wait(&object_);
	}

	[[nodiscard]] bool try_acquire() noexcept
	{
		return antiphon_sem_trywait(&object_) == 0;
	}

	template <class Rep, class Period>
	[[nodiscard]] bool try_acquire_for(const std::chrono::duration<Rep, Period> &span)
	{
		return try_acquire_until(detail::after(span));
	}

	template <class Clock, class Duration>
	[[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return detail::until(when, [this](int clock, const timespec *time) {
			return antiphon_sem_timedwait(&object_, clock, time) == 0;
		});
	}

	// 0 to max() permits.
	void release(std::ptrdiff_t permits = 1)
	{
		const auto number = static_cast<std::uint32_t>(permits);
		detail::check(antiphon_sem_post(&object_, number));
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_sem_t object_;
};

// A barrier, 32 bytes, for any number of rounds. try_wait_for() and try_wait_until() return
// std::nullopt if they gave up, as if the thread had not arrived; otherwise the same as wait().
class barrier : public detail::timed_waits<barrier, antiphon_barrier_timedwait, detail::leads> {
public:
	using native_handle_type = antiphon_barrier_t *;

	// For 1 or more threads.
	constexpr explicit barrier(std::uint32_t parties) noexcept
		: object_ ANTIPHON_BARRIER_INIT(parties)
	{
	}
	barrier(const barrier &) = delete;
	barrier &operator=(const barrier &) = delete;

	// Allowed once one wait of the last round has returned, even if others have not.
	~barrier()
	{
		antiphon_barrier_destroy(&object_);
	}

	// True for one thread of each round.
	bool wait() noexcept
	{
		return antiphon_barrier_wait(&object_) != 0;
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_barrier_t object_;
};

// Whether call_once has run its function, 4 bytes.
class once_flag {
public:
	using native_handle_type = antiphon_once_t *;

	constexpr once_flag() noexcept = default;
	once_flag(const once_flag &) = delete;
	once_flag &operator=(const once_flag &) = delete;

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_once_t object_ = ANTIPHON_ONCE_INIT;
};

// Types for memory that several processes share; all zero is a free object.
namespace pshared {

// A readers-writer lock, 4 bytes: antiphon_pshared_rwlock_t, which antiphon.h describes. The thread
// that has acquired it may ask whether a writer has died with it.
class shared_mutex {
public:
	using native_handle_type = antiphon_pshared_rwlock_t *;

	constexpr shared_mutex() noexcept = default;
	shared_mutex(const shared_mutex &) = delete;
	shared_mutex &operator=(const shared_mutex &) = delete;

	void lock() noexcept
	{
		antiphon_pshared_rwlock_wrlock(&object_);
	}

	[[nodiscard]] bool try_lock() noexcept
	{
		return had(antiphon_pshared_rwlock_trywrlock(&object_));
	}

	template <class Rep, class Period>
	[[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period> &span)
	{
		return try_lock_until(detail::after(span));
	}

	template <class Clock, class Duration>
	[[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return detail::until(when, [this](int clock, const timespec *time) {
			return had(antiphon_pshared_rwlock_timedwrlock(&object_, clock, time));
		});
	}

	void unlock() noexcept
	{
		antiphon_pshared_rwlock_wrunlock(&object_);
	}

	void lock_shared() noexcept
	{
		antiphon_pshared_rwlock_rdlock(&object_);
	}

	[[nodiscard]] bool try_lock_shared() noexcept
	{
		return had(antiphon_pshared_rwlock_tryrdlock(&object_));
	}

	template <class Rep, class Period>
	[[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &span)
	{
		return try_lock_shared_until(detail::after(span));
	}

	template <class Clock, class Duration>
	[[nodiscard]] bool
	try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return detail::until(when, [this](int clock, const timespec *time) {
			return had(antiphon_pshared_rwlock_timedrdlock(&object_, clock, time));
		});
	}

	void unlock_shared() noexcept
	{
		antiphon_pshared_rwlock_rdunlock(&object_);
	}

	// For a thread that holds the lock: false if a writer has died with it and recovered()
	// has not been called.
	[[nodiscard]] bool is_whole() const noexcept
	{
		return antiphon_pshared_rwlock_is_whole(&object_) != 0;
	}

	// Called by the writer: what the lock guards is whole again.
	void recovered() noexcept
	{
		antiphon_pshared_rwlock_recovered(&object_);
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	static bool had(int code) noexcept
	{
		return code == 0 || code == EOWNERDEAD;
	}

	antiphon_pshared_rwlock_t object_ = ANTIPHON_PSHARED_RWLOCK_INIT;
};

// A barrier, 8 bytes, for any number of rounds; with the waits of antiphon::barrier.
class barrier
	: public detail::timed_waits<barrier, antiphon_pshared_barrier_timedwait, detail::leads> {
public:
	using native_handle_type = antiphon_pshared_barrier_t *;

	// For 1 to 65535 threads.
	explicit barrier(std::uint32_t parties)
	{
		detail::check(antiphon_pshared_barrier_init(&object_, parties));
	}
	barrier(const barrier &) = delete;
	barrier &operator=(const barrier &) = delete;

	// True for one thread of each round.
	bool wait() noexcept
	{
		return antiphon_pshared_barrier_wait(&object_) != 0;
	}

	native_handle_type native_handle() noexcept
	{
		return &object_;
	}

private:
	antiphon_pshared_barrier_t object_;
};

} // namespace pshared

namespace detail {

// A call that is passed through C, and the exception that it has thrown.
template <class Call>
struct carried {
	Call &call;
	std::exception_ptr thrown;

	static int run(void *self) noexcept
	{
		auto *carried_call = static_cast<carried *>(self);
#if defined(__cpp_exceptions)
		try {
			carried_call->call();
			return 0;
		} catch (...) {
			carried_call->thrown = std::current_exception();
			return 1;
		}
#else
		carried_call->call();
		return 0;
#endif
	}
};

} // namespace detail

// Calls `run` with the arguments if no call has succeeded, or waits for the call in progress. An
// exception goes to the caller; the call then does not count.
template <class Run, class... Arguments>
void call_once(once_flag &flag, Run &&run, Arguments &&...arguments)
{
	auto call = [&] {
		std::invoke(std::forward<Run>(run), std::forward<Arguments>(arguments)...);
	};
	detail::carried<decltype(call)> carried{ call, nullptr };
	antiphon_once(flag.native_handle(), detail::carried<decltype(call)>::run, &carried);
	if (carried.thrown)
		std::rethrow_exception(carried.thrown);
}

static_assert(sizeof(mutex) == sizeof(antiphon_mutex_t) && std::is_standard_layout_v<mutex>);
static_assert(sizeof(spin_mutex) == sizeof(antiphon_spin_t) &&
	      std::is_standard_layout_v<spin_mutex>);
static_assert(sizeof(shared_mutex) == sizeof(antiphon_rwlock_t) &&
	      std::is_standard_layout_v<shared_mutex>);
static_assert(sizeof(condition_variable) == sizeof(antiphon_cond_t) &&
	      std::is_standard_layout_v<condition_variable>);

static_assert(sizeof(counting_semaphore) == sizeof(antiphon_sem_t) &&
	      std::is_standard_layout_v<counting_semaphore>);
static_assert(sizeof(barrier) == sizeof(antiphon_barrier_t) &&
	      std::is_standard_layout_v<barrier>);
static_assert(sizeof(once_flag) == sizeof(antiphon_once_t) &&
	      std::is_standard_layout_v<once_flag>);
static_assert(sizeof(pshared::shared_mutex) == sizeof(antiphon_pshared_rwlock_t) &&
	      std::is_standard_layout_v<pshared::shared_mutex>);
static_assert(sizeof(pshared::barrier) == sizeof(antiphon_pshared_barrier_t) &&
	      std::is_standard_layout_v<pshared::barrier>);

} // namespace antiphon

#endif
