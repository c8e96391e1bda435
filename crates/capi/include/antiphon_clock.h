/* antiphon_clock.h: timestamps that no shared counter is needed for, with a known uncertainty.
 *
 *	antiphon_clock_t clock;
 *	if (antiphon_clock_shared(&clock) == 0) {
 *		uint64_t one = antiphon_clock_now();
 *		…
 *		if (antiphon_clock_compare(&clock, one, other) == ANTIPHON_BEFORE)
 *
 * A stamp is what the counter of the CPU under the caller says: some 20 ns, whoever else takes
 * stamps. Counters of two CPUs are apart by a little, which is measured; stamps that are closer
 * than that have no certain order (Kashyap, Min, Kim and Kim, "A scalable ordering primitive for
 * multicore machines", EuroSys 2018).
 *
 * A clock may be copied as bytes, and used by any number of threads. All zero: it was not measured,
 * and no order is certain. It knows the CPUs that the process could use when it was measured: a
 * program measures again when CPUs come online, or its virtual machine was moved to another host,
 * or suspended, which antiphon_clock_verify finds out.
 *
 * As antiphon.h says of all functions; but to measure, and to ask for the source, allocates, and
 * may not be done in signal handlers. */

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

/* What antiphon_clock_compare returns: the first stamp was taken … the second. */
enum antiphon_order {
	ANTIPHON_BEFORE = -1,
	/* so soon before or after that nobody can tell, or at the same time as */
	ANTIPHON_UNCERTAIN = 0,
	ANTIPHON_AFTER = 1
};

/* The clock of this process. The first call measures it, and so blocks; others wait for that.
 * EAGAIN, EPERM, EBUSY: as of measure; nothing was written, and the next call tries again. */
ANTIPHON_MUST_USE
int antiphon_clock_shared(antiphon_clock_t *clock) ANTIPHON_NOEXCEPT;

/* Measures how far the counters of all CPUs that this process may use are apart: two threads of
 * its own pass a word to and fro, for a few milliseconds on two idle CPUs, and some 30 ms more at
 * most, or 16 exchanges with each CPU where those take longer; on a busy machine, up to four times.
 * It waits for its turn on each CPU, which may be long where a real-time thread has one.
 * EAGAIN: no thread could be made. EPERM: sched_setaffinity is refused. EBUSY: a CPU was taken
 * away, or the machine has too much to do: measure again. Nothing was written then. */
ANTIPHON_MUST_USE
int antiphon_clock_measure(antiphon_clock_t *clock) ANTIPHON_NOEXCEPT;

/* A stamp of this moment. It is in its place in the program: no access is moved across, except
 * that earlier plain stores may still be on their way. 0 is before all stamps. */
uint64_t antiphon_clock_now(void) ANTIPHON_NOEXCEPT;

/* Which of two stamps was taken first, if that is certain: an enum antiphon_order. */
int antiphon_clock_compare(const antiphon_clock_t *clock, uint64_t one,
			   uint64_t other) ANTIPHON_NOEXCEPT;

/* A stamp that is certainly after another. Spins for as long as stamps are uncertain, at most.
 * EINVAL: the clock was not measured, or that stamp is certainly of the future. */
ANTIPHON_MUST_USE
int antiphon_clock_new_time(const antiphon_clock_t *clock, uint64_t after,
			    uint64_t *later) ANTIPHON_NOEXCEPT;

/* Looks whether what was measured still holds: whether the kernel trusts the counters as it did,
 * and whether they have neither jumped nor changed their rate. A few us; reads a file of /sys. A
 * jump of less than a millisecond, or of a thousandth of the time since, is not seen.
 * ESTALE: it does not; stamps from before can't be compared with later ones. Measure again; but if
 * antiphon_clock_source named counters and the kernel has given up on these, only a program that is
 * started now has a clock. EINVAL: the clock was not measured. */
ANTIPHON_MUST_USE
int antiphon_clock_verify(const antiphon_clock_t *clock) ANTIPHON_NOEXCEPT;

/* Stamps that were taken within so many nanoseconds may have no certain order. UINT64_MAX: the
 * clock was not measured. */
uint64_t antiphon_clock_uncertainty_ns(const antiphon_clock_t *clock) ANTIPHON_NOEXCEPT;

/* How many CPUs were measured. */
uint32_t antiphon_clock_cpus(const antiphon_clock_t *clock) ANTIPHON_NOEXCEPT;

/* 1 if stamps are made of the CPUs' counters; 0 if of CLOCK_MONOTONIC, because the counters can't
 * be trusted. */
int antiphon_clock_has_counters(void) ANTIPHON_NOEXCEPT;

/* What stamps are made of, and why, as a text for people; as snprintf: at most `size` bytes with
 * the zero at its end, and returns how long all of it is without that. */
size_t antiphon_clock_source(char *text, size_t size) ANTIPHON_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

ANTIPHON_ASSERT_LAYOUT(antiphon_clock_t, 72, 8);

#endif
