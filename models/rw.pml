/* The ShflLock readers-writer lock: readers that arrive and leave for ever while a writer
 * waits, and writers while a reader waits.
 *
 * verify: safety
 * verify: writer_served
 * verify: reader_served
 * verify: writer_served READERS=1 WRITERS=2
 * verify: reader_served READERS=1 WRITERS=2
 * refute: safety BROKEN_COUNT
 * refute: safety BROKEN_WAKE
 * refute: writer_served BROKEN_PASS
 * refute: writer_served BROKEN_SETTLE
 * refute: writer_served BROKEN_FAIR
 * refute: reader_served BROKEN_FAIR READERS=1 WRITERS=2
 *
 * README.md in this folder maps the model to the code, and lists omissions.
 */

/* Readers first, then writers. */
#ifndef READERS
#define READERS 2
#define WRITERS 1
#endif
#define THREADS (READERS + WRITERS)
#define WRITES (_pid >= READERS)

/* Form::PATIENCE_NS, in unsuccessful wake-ups instead of time. */
#define PATIENCE 1
/* How often the head finds the lock free and loses it, before its patience starts. */
#define MISSES 1

/* State: the owners, and the head's flags. */
byte readers;
bool writer, wake, fair, waiting;
byte name;

/* The queue, first to last. */
byte queue[THREADS], length;

/* The platform's token of a thread: a wake that it has not consumed. */
bool token[THREADS];

bool waits[THREADS];
byte reading, writing;

#define FREE (readers == 0 && !writer)
#define IS_HEAD (length > 0 && queue[0] == _pid)

#ifdef BROKEN_PASS
#define WAITING false
#else
#define WAITING waiting
#endif

/* The next action of a reader. */
#define IN 0
#define OVERTAKES 1
#define SETTLES 2
#define LEAVES 3
#define TAKES_BACK 4
#define OUT 5

/* ShflRwLock::count_in, and the beginning of `settle`: State::is_open, or State::admits_reader in
 * the state that was found. */
inline count_in() {
    d_step {
        if
        :: !writer && !fair && !WAITING -> next = IN
        :: else ->
            if
            :: FREE && wake && !fair -> next = OVERTAKES; found = name
            :: else -> next = SETTLES
            fi
        fi;
        readers++
    }
}

/* `settle` of a reader that is in and has overtaken the head: takes its wish away if the state is
 * still the same, and wakes the head, because the state may be the same again. */
inline overtake() {
    d_step {
        if
        :: readers == 1 && !writer && wake && waiting && !fair && name == found ->
            waiting = false;
#ifndef BROKEN_SETTLE
            woken = true
#endif
        :: else
        fi
    }
    wake_up(found);
    next = IN
}

/* `settle` of a reader that should have stayed out. */
inline settle() {
    d_step {
        if
#ifdef BROKEN_COUNT
        :: writer -> next = IN
#endif
        :: !writer && !WAITING && !fair -> next = IN
        :: !writer && (WAITING || fair) -> next = LEAVES
        :: writer -> next = TAKES_BACK
        fi
    }
}

/* The exchange that requests a hand-off to the writer. */
inline take_back() {
    d_step {
        if
        :: writer -> readers--; next = OUT
        :: else -> next = SETTLES
        fi
    }
}

/* ShflRwLock::leave_as_reader: the last reader wakes the head. */
inline leave() {
    d_step {
        readers--;
        if
#ifndef BROKEN_WAKE
        :: readers == 0 && wake -> woken = true; found = name
#endif
        :: else
        fi
    }
    wake_up(found)
}

/* ShflRwLock::unlock_write: State::release_writer. */
inline unlock_write() {
    d_step {
        writer = false;
        if
        :: wake -> wake = false; waiting = false; woken = true; found = name
        :: else
        fi
    }
    wake_up(found)
}

/* wake::wake, after the release. */
inline wake_up(who) {
    if
    :: woken -> d_step { token[who] = true; woken = false; found = 0 }
    :: else -> found = 0
    fi
}

/* Kind::enter of an arriving writer. */
inline write_at_once() {
    d_step {
        if
        :: FREE && !fair -> writer = true; next = IN
        :: else -> next = OUT
        fi
    }
}

/* Place::join. */
inline join() {
    d_step { queue[length] = _pid; length++ }
}

/* Entry::announce: State::with_writer_waiting. */
inline announce() {
    d_step {
        if
        :: WRITES && readers > 0 && !writer -> wake = false; waiting = true
        :: else
        fi
    }
}

/* Entry::take_as_head: Kind::enter and State::without_head; and pass_headship. */
inline take_as_head() {
    d_step {
        if
        :: (WRITES && FREE) || (!WRITES && !writer) ->
            if
            :: WRITES -> writer = true
            :: else -> readers++
            fi;
            wake = false; fair = false; waiting = false; name = 0; next = IN;
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

/* Contended::wait_as_head. */
inline wait_as_head() {
    do
    :: announce();
       take_as_head();
       if
       :: next == IN -> break
       :: else
       fi;
#ifndef BROKEN_FAIR
       if
       :: vain > PATIENCE ->
            /* Entry::insist. */
            fair = true;
            take_as_head()
       :: else
       fi;
       if
       :: next == IN -> break
       :: else
       fi;
#endif
       /* Entry::ask_for_wake, only if an owner keeps the head out; and park. */
       d_step {
           if
           :: (WRITES && !FREE) || (!WRITES && writer) ->
                wake = true; waiting = WRITES; name = _pid; sleeps = true
           :: else ->
                if
                :: missed < MISSES -> missed++
                :: else -> vain = vain + (vain <= PATIENCE)
                fi
           fi
       }
       if
       :: sleeps ->
            token[_pid];
            d_step { token[_pid] = false; sleeps = false; vain = vain + (vain <= PATIENCE) }
       :: else
       fi
    od;
    vain = 0;
    missed = 0
}

active [THREADS] proctype thread() {
    bool woken, sleeps;
    byte at, found, missed, vain;
    byte next = OUT;
    do
    :: waits[_pid] = true;
       if
       :: WRITES -> write_at_once()
       :: else ->
            count_in();
            do
            :: next == OVERTAKES -> overtake()
            :: next == SETTLES -> settle()
            :: next == TAKES_BACK -> take_back()
            :: next == LEAVES -> leave(); next = OUT
            :: next == IN || next == OUT -> break
            od
       fi;
       if
       :: next == OUT -> join(); IS_HEAD; wait_as_head()
       :: else
       fi;
       next = OUT;
       if
       :: WRITES ->
            d_step { writing++; waits[_pid] = false; assert(writing == 1 && reading == 0) }
            writing--;
            unlock_write()
       :: else ->
            d_step { reading++; waits[_pid] = false; assert(writing == 0) }
            reading--;
            leave()
       fi
    :: break
    od
}

ltl writer_served { [] (waits[READERS] -> <> !waits[READERS]) }
ltl reader_served { [] (waits[0] -> <> !waits[0]) }
