/* The ShflLock mutex: threads that take a free lock ahead of its waiters, a head that sleeps, and
 * how often it may be overtaken.
 *
 * verify: safety
 * verify: served
 * refute: safety BROKEN_LOCK
 * refute: safety BROKEN_STEAL
 * refute: served BROKEN_STEAL
 * refute: served BROKEN_FAIR
 * refute: served BROKEN_MISSES
 * refute: safety BROKEN_WAKE
 *
 * README.md in this folder maps the model to the code, and lists omissions.
 */

#define THREADS 3
/* Form::PATIENCE_NS, in acquisitions instead of time. */
#define PATIENCE 1
/* How often the head finds the lock free and loses it, before its patience starts. */
#define MISSES 2

/* ShflMutex::locked, and whether the head's patience runs (Patience::was_called). */
bool locked, wake, fair, called;

/* The queue, first to last. */
byte queue[THREADS], length;

/* The platform's token of a thread: a wake that it has not consumed. */
bool token[THREADS];

bool waits[THREADS];
byte inside;
/* How often the head was overtaken since it was signalled. */
byte overtaken;

#ifdef BROKEN_MISSES
#define PATIENT called
#else
#define PATIENT true
#endif

#define IS_HEAD (length > 0 && queue[0] == _pid)

/* ShflMutex::lock_uncontended: takes a lock that is free and not reserved. */
inline steal() {
    d_step {
        if
#if defined(BROKEN_STEAL)
        :: !locked ->
#elif defined(BROKEN_LOCK)
        :: !fair ->
#else
        :: !locked && !fair ->
#endif
            locked = true;
            had = true;
            if
            :: called -> overtaken++
            :: else
            fi
        :: else
        fi
    }
    /* The bound of bypass: the unlock that finds the head due reserves the lock for it. */
    assert(overtaken <= PATIENCE)
}

/* Place::join: the exchange of the tail, and the link behind the last waiter. */
inline join() {
    d_step { queue[length] = _pid; length++ }
}

/* Contended::take_as_head and pass_headship: the head takes a free lock, reserved or not; the next
 * waiter is the head before the critical section begins. */
inline take_as_head() {
    d_step {
        if
        :: !locked ->
            locked = true; fair = false; called = false; overtaken = 0; had = true;
            length--;
            at = 0;
            do
            :: at < length -> queue[at] = queue[at + 1]; at++
            :: else -> break
            od;
            queue[length] = 0;
            at = 0
        :: else
        fi
    }
}

/* ShflMutex::unlock_and_wake: clears WAKE and signals the head; reserves the lock for a head that
 * is due (Patience::is_over). */
inline unlock() {
    d_step {
        if
        :: wake ->
            wake = false; called = true;
#ifndef BROKEN_WAKE
            token[queue[0]] = true
#endif
        :: else
        fi;
#ifndef BROKEN_FAIR
        if
        :: called && overtaken == PATIENCE -> fair = true
        :: else
        fi;
#endif
        locked = false
    }
}

active [THREADS] proctype thread() {
    bool had, sleeps;
    byte at, missed;
    do
    :: waits[_pid] = true;
       steal();
       if
       :: had
       :: else ->
            join();
            IS_HEAD;
            do
            :: take_as_head();
               if
               :: had -> break
               :: else ->
                    /* Contended::ask_for_wake, only if a thread holds the lock; and park. */
                    d_step {
                        if
                        :: locked -> wake = true; sleeps = true
                        :: !locked && missed < MISSES -> missed++
                        :: else -> called = PATIENT
                        fi
                    }
                    if
                    :: sleeps -> token[_pid]; token[_pid] = false; sleeps = false
                    :: else
                    fi
               fi
            od
       fi;
       inside++;
       assert(inside == 1);
       waits[_pid] = false;
       inside--;
       had = false;
       missed = 0;
       unlock()
    :: break
    od
}

ltl served { [] (waits[0] -> <> !waits[0]) }
