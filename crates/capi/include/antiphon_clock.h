/* antiphon_clock.h: timestamps without a shared counter, with a known uncertainty.
 *
 *	antiphon_clock_t clock;
 *	if (antiphon_clock_shared(&clock) == 0) {
 *		uint64_t one = antiphon_clock_now();
 *		…
 *		if (antiphon_clock_compare(&clock, one, other) == ANTIPHON_BEFORE)
 *
 * A stamp is a reading of the counter of the caller's CPU; it takes about 20 ns, whatever the
 * number of threads. Counters of two CPUs differ slightly, which is measured; stamps that are
 * closer than that have no certain order (Kashyap, Min, Kim and Kim, "A scalable ordering primitive
 * for multicore machines", EuroSys 2018).
 *
 * A clock may be copied as bytes, and used by any number of threads. All bytes zero: not measured,
 * and no order is certain. It covers the CPUs that the process could use when it was measured.
 * Measure again when CPUs come online, or when the virtual machine was suspended or moved to
 * another host, which antiphon_clock_verify finds out.
 *
 * The rules of antiphon.h hold, but measuring and asking for the source allocate memory, and must
 * not be done in signal handlers. */

#ifndef ANTIPHON_CLOCK_H
#define ANTIPHON_CLOCK_H

#include "antiphon.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A clock, 72 bytes. */
typedef struct antiphon_clock {
	uint64_t antiphon_private[9];
} antiphon_clock_t;

/* The results of antiphon_clock_compare: the first stamp was taken … the second. */
enum antiphon_order {
	ANTIPHON_BEFORE = -1,
	/* at the same time, or so close that it is unknown which came first */
	ANTIPHON_UNCERTAIN = 0,
	ANTIPHON_AFTER = 1
};

/* Stores the clock of this process. The first call measures it, and so blocks; concurrent calls
 * wait for that. EAGAIN, EPERM, EBUSY: see antiphon_clock_measure; nothing was written, and the
 * next call tries again. */
ANTIPHON_MUST_USE
int antiphon_clock_shared(antiphon_clock_t *clock) ANTIPHON_NOEXCEPT;

/* Measures how far the counters of all CPUs that this process may use are apart. Two threads of the
 * library exchange a word repeatedly. That takes a few milliseconds on two idle CPUs, at most about
 * 30 ms more, or 16 exchanges with each CPU if those take longer; on a busy machine up to four
 * times. Waits for its turn on each CPU, which may be long if a real-time thread has it. EAGAIN: no
 * thread could be made. EPERM: sched_setaffinity is refused. EBUSY: a CPU was taken away, or the
 * machine is too busy: measure again. Nothing was written then. */
ANTIPHON_MUST_USE
int antiphon_clock_measure(antiphon_clock_t *clock) ANTIPHON_NOEXCEPT;

/* Returns a stamp of this moment. No memory access is moved across it, except that earlier plain
 * stores may still be on their way. 0 is before all stamps. */
uint64_t antiphon_clock_now(void) ANTIPHON_NOEXCEPT;

/* Compares two stamps; returns an enum antiphon_order. */
int antiphon_clock_compare(const antiphon_clock_t *clock, uint64_t one,
			   uint64_t other) ANTIPHON_NOEXCEPT;

/* Stores a stamp that is certainly after `after`. Spins for at most the uncertainty of stamps.
 * EINVAL: the clock was not measured, or `after` is certainly in the future. */
ANTIPHON_MUST_USE
int antiphon_clock_new_time(const antiphon_clock_t *clock, uint64_t after,
			    uint64_t *later) ANTIPHON_NOEXCEPT;

/* Checks whether the measurement still holds: whether the kernel still trusts the counters, and
 * whether they have neither jumped nor changed their rate. Takes a few us; reads a file of /sys. A
 * jump of less than a millisecond, or of a thousandth of the time since the measurement, is not
 * seen.
 * ESTALE: it does not hold; earlier stamps cannot be compared with later ones. Measure again. But
 * if antiphon_clock_source named counters that the kernel does not trust any more, only a newly
 * started program has a clock. EINVAL: the clock was not measured. */
ANTIPHON_MUST_USE
int antiphon_clock_verify(const antiphon_clock_t *clock) ANTIPHON_NOEXCEPT;

/* Returns the uncertainty: stamps that were taken within this many nanoseconds may have no certain
 * order. UINT64_MAX: the clock was not measured. */
uint64_t antiphon_clock_uncertainty_ns(const antiphon_clock_t *clock) ANTIPHON_NOEXCEPT;

/* Returns the number of CPUs that were measured. */
uint32_t antiphon_clock_cpus(const antiphon_clock_t *clock) ANTIPHON_NOEXCEPT;

/* Returns 1 if stamps are made of the CPUs' counters; 0 if of CLOCK_MONOTONIC, because the counters
 * cannot be trusted. */
int antiphon_clock_has_counters(void) ANTIPHON_NOEXCEPT;

/* Writes a text for people that says what stamps are made of, and why. Like snprintf: writes at
 * most `size` bytes including the final zero, and returns the length of the whole text without
 * it. */
size_t antiphon_clock_source(char *text, size_t size) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_clock_t, 72, 8);

#endif
