/* The ShflLock mutex where owners hand it over: the owner keeps its place at the front of the queue
 * (PASS), hands the lock to the next waiter that is awake, and sets sleeping waiters aside (ASIDE).
 *
 * verify: safety
 * verify: served
 * refute: safety BROKEN_ASLEEP
 * refute: safety BROKEN_LIST
 * refute: safety BROKEN_OUT
 * refute: safety BROKEN_NAME
 * refute: served BROKEN_TURN
 * refute: served BROKEN_END
 *
 * README.md in this folder maps the model to the code, and lists omissions.
 */

#define THREADS 3
/* Form::COHORT: the number of hand-offs until a waiter that was set aside is turned out. */
#define TURN 2

/* ShflMutex::locked; `pass` is that bit of `head`. */
bool locked, wake, pass;

/* The queue, first to last. The first is the head; or the owner, if `pass`. */
byte queue[THREADS], length;

/* The waiters that were set aside, in order of arrival. */
byte aside[THREADS], aside_length;
/* The number of hand-offs in this turn. */
byte turn;

/* Bits of the status of a thread's node, and the platform's token of the thread. */
bool parked[THREADS], owner[THREADS], out[THREADS], token[THREADS];

bool waits[THREADS];
byte inside;

#define FIRST (length > 0 && queue[0] == _pid)
#define IS_HEAD (FIRST && !pass)

/* The entry at `from` leaves the queue. */
inline leave_queue(from) {
    length--;
    at = from;
    do
    :: at < length -> queue[at] = queue[at + 1]; at++
    :: else -> break
    od;
    queue[length] = 0;
    at = 0
}

/* The first waiter that was set aside leaves the list. */
inline leave_aside() {
    aside_length--;
    at = 0;
    do
    :: at < aside_length -> aside[at] = aside[at + 1]; at++
    :: else -> break
    od;
    aside[aside_length] = 0;
    at = 0
}

/* ShflMutex::give_place_up: the next waiter is the head. A sleeping head is left asleep, and the
 * release wakes it. */
inline give_place_up() {
    pass = false;
    leave_queue(0);
    if
#ifndef BROKEN_NAME
    :: length > 0 && parked[queue[0]] -> wake = true
#endif
    :: else
    fi
}

/* ShflMutex::unlock_and_wake. */
inline release() {
    if
    :: wake -> wake = false; token[queue[0]] = true
    :: else
    fi;
    locked = false
}

/* Contended::take_as_head, and pass_headship: the head keeps its place, or gives it up. */
inline take_as_head() {
    locked = true;
    had = true;
    if
    :: pass = true; turn = 0
    :: give_place_up()
    fi
}

/* ShflMutex::turn_out: at the end of a turn, the first waiter that was set aside is woken; it
 * is in no list then. */
inline turn_out() {
    turn++;
    if
#ifdef BROKEN_TURN
    :: false
#else
    :: turn >= TURN && aside_length > 0 ->
#endif
        turn = 0;
        out[aside[0]] = true;
#ifndef BROKEN_OUT
        token[aside[0]] = true;
#endif
        leave_aside()
    :: else
    fi
}

/* ShflMutex::call_back: waiters that were set aside are in the queue again, before all others. */
inline call_back() {
    do
    :: aside_length > 0 ->
        aside_length--;
        at = length;
#ifndef BROKEN_END
        do
        :: at > 1 -> queue[at] = queue[at - 1]; at--
        :: else -> break
        od;
#endif
#ifndef BROKEN_LIST
        queue[at] = aside[aside_length];
        length++;
#endif
        aside[aside_length] = 0;
        at = 0
    :: else -> break
    od
}

/* ShflMutex::hand_over_in_queue; gives the place up and releases if no waiter is awake. */
inline hand_over() {
    turn_out();
    do
#ifdef BROKEN_ASLEEP
    :: length > 1 ->
#else
    :: length > 1 && !parked[queue[1]] ->
#endif
        leave_queue(0);
        owner[queue[0]] = true;
        had = false;
        break
    /* ShflMutex::set_next_aside: not the last, behind which an arriving waiter may link itself. */
    :: length > 2 && parked[queue[1]] ->
        aside[aside_length] = queue[1]; aside_length++;
        leave_queue(1)
    :: else -> break
    od;
    if
    :: had -> call_back(); give_place_up(); release()
    :: else
    fi
}

active [THREADS] proctype thread() {
    bool had, rested;
    byte at;
    do
    :: waits[_pid] = true;
       /* An arriving waiter takes a free lock, or joins. mutex.pml bounds its overtaking. */
       d_step {
           if
           :: !locked && length == 0 -> locked = true; had = true
           :: else -> queue[length] = _pid; length++
           fi
       }
       do
       :: had -> break
       :: atomic { owner[_pid] -> owner[_pid] = false; had = true }
       :: d_step { out[_pid] -> out[_pid] = false; queue[length] = _pid; length++ }
       :: atomic { IS_HEAD && !locked -> take_as_head() }
       /* The head asks for a wake, and sleeps. */
       :: d_step { IS_HEAD && locked -> wake = true };
          token[_pid];
          token[_pid] = false
       /* Contended::spin_behind has lasted long enough. A woken waiter does not sleep again
        * before its turn, because it spins for longer than that takes. */
       :: d_step { !had && !rested && !FIRST && !owner[_pid] && !out[_pid] -> parked[_pid] = true };
          token[_pid];
          d_step { token[_pid] = false; parked[_pid] = false; rested = true }
       od;
       inside++;
       assert(inside == 1);
       waits[_pid] = false;
       inside--;
       d_step {
           if
           :: pass -> hand_over()
           :: else -> release()
           fi;
           had = false;
           rested = false
       }
    :: break
    od
}

ltl served { [] (waits[0] -> <> !waits[0]) }
