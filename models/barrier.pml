/* The barrier: threads that arrive, are released together, and arrive again at once.
 *
 * verify: safety
 * verify: served
 * verify: safety THREADS=2 NODES=1
 * verify: served THREADS=2 NODES=1
 * verify: safety LAST=2
 * verify: safety LAST=2 NODES=1
 * verify: safety THREADS=3 PARTIES=2
 * verify: gone THREADS=3 PARTIES=2
 * refute: served THREADS=3 PARTIES=2
 * refute: safety BROKEN_WAKE
 * refute: safety BROKEN_PARK
 * refute: safety BROKEN_LOOK
 * refute: safety BROKEN_CHAIN
 * refute: safety BROKEN_NEXT
 * refute: safety BROKEN_TAKE THREADS=3 PARTIES=2
 * refute: safety BROKEN_TOUCH LAST=1
 * refute: safety BROKEN_RETIRE LAST=1 NODES=1
 * refute: gone BROKEN_LIST THREADS=4 PARTIES=3
 *
 * If there are more threads than parties, one may fail its exchange for ever; those that have
 * arrived are released. README.md in this folder maps the model to the code, and lists omissions.
 */

#ifndef THREADS
#define THREADS 3
#endif
#ifndef PARTIES
#define PARTIES THREADS
#endif
/* The number of threads that have a node at a time; the others nap. */
#ifndef NODES
#define NODES THREADS
#endif
/* CrowdForm::ALONE: with more sleepers than this, woken threads wake others. */
#define ALONE 1
#define SHARE 2
/* Spurious wake-ups of sleepers, in all. */
#define SPURIOUS 1
#define NOBODY 255

/* Barrier::state: the waiter with a node, and how many arrived; two rounds can be told apart. */
byte waiters = NOBODY, came;
byte nappers;
#define ROUND(count) (count / PARTIES)

/* The nodes, one per thread. */
mtype = { WAITING, PARKED, GONE };
mtype status[THREADS];
byte next[THREADS], batch[THREADS];
byte taken;

/* The platform's token of a thread: a wake that it has not consumed. */
bool token[THREADS];
byte spurious;

/* By thread: it waits; it has arrived; its round is complete. */
bool waits[THREADS], here[THREADS], complete[THREADS];
/* BARRIER-3: a thread of the last round has returned, and has freed the barrier. */
bool freed;

/* Barrier::come: the load, and the exchange. Without a node, a thread is on no list. */
inline load() {
    d_step { assert(!freed); seen_first = waiters; seen = came }
}

inline exchange() {
    d_step {
        assert(!freed);
        if
        :: seen_first == waiters && seen == came ->
            had = true;
            round = ROUND(seen);
            here[_pid] = true;
            last = (seen + 1) % PARTIES == 0;
            came = (seen + 1) % (2 * PARTIES);
            if
            :: last ->
                /* BARRIER-1: all others of the round have arrived. */
                at = 0; count = 0;
                do
                :: at < THREADS ->
                    if
                    :: here[at] -> here[at] = false; complete[at] = true; count++
                    :: else
                    fi;
                    at++
                :: else -> break
                od;
                assert(count == PARTIES);
                first = waiters; at = 0; count = 0;
#ifndef BROKEN_TAKE
                waiters = NOBODY
#endif
            :: !last && node ->
#ifndef BROKEN_LIST
                next[_pid] = waiters;
#endif
                waiters = _pid
            :: else
            fi
        :: else
        fi
    }
}

/* together::let_spinners_go: releases a waiter of the list, or adds it to the sleepers. */
inline let_spinner_go() {
    d_step {
        at = next[first];
        if
        :: status[first] == WAITING -> status[first] = GONE
        :: else -> next[first] = asleep; asleep = first; count++
        fi;
        first = at;
        at = 0
    }
}

/* together::wake_in_turn: releases the first of the list `asleep`, and wakes it. */
inline wake_one() {
    d_step {
        at = asleep;
#ifndef BROKEN_NEXT
        asleep = next[at];
#endif
        status[at] = GONE
    }
#ifdef BROKEN_NEXT
    asleep = next[at];
#endif
#ifndef BROKEN_WAKE
    token[at] = true;
#endif
    at = 0
}

/* together::let_go: if there are many sleepers, each woken one is left the sleepers behind it. */
inline let_go() {
#ifdef BROKEN_TAKE
    d_step { first = waiters; waiters = NOBODY }
#endif
    do
    :: first != NOBODY -> let_spinner_go()
    :: else -> break
    od;
    do
    :: asleep == NOBODY -> break
    :: asleep != NOBODY && count <= ALONE -> wake_one()
    :: asleep != NOBODY && count > ALONE ->
        d_step {
            batch[asleep] = SHARE - 1;
            rest = asleep; at = 0;
            do
            :: at < SHARE && rest != NOBODY -> rest = next[rest]; at++
            :: else -> break
            od;
            at = 0
        }
        wake_one();
        asleep = rest
    od;
    count = 0; rest = NOBODY; asleep = NOBODY
#ifdef BROKEN_TOUCH
    assert(!freed)
#endif
}

/* Member::wait: spins for a while and sleeps; then wakes the sleepers that were left to it. */
inline wait() {
    if
    :: status[_pid] == GONE
    :: d_step {
#ifdef BROKEN_PARK
           true ->
#else
           status[_pid] == WAITING ->
#endif
           status[_pid] = PARKED
       }
       do
       :: atomic {
              if
              :: token[_pid] -> token[_pid] = false
              :: spurious < SPURIOUS -> spurious++
              fi
          }
#ifndef BROKEN_LOOK
          if
          :: status[_pid] == GONE -> break
          :: else
          fi
#else
          break
#endif
       od
    fi;
#ifndef BROKEN_CHAIN
    asleep = next[_pid]; count = batch[_pid];
    do
    :: count > 0 && asleep != NOBODY -> wake_one(); count--
    :: else -> break
    od;
#endif
    asleep = NOBODY; count = 0
}

active [THREADS] proctype thread() {
    bool node, had, last;
    byte seen, seen_first = NOBODY, first = NOBODY, asleep = NOBODY, rest = NOBODY;
    byte round, at, count;
#ifdef LAST
    byte rounds;
#endif
    do
    :: d_step {
           waits[_pid] = true;
           /* Member::take. */
           node = taken < NODES;
           if
           :: node ->
               taken++; status[_pid] = WAITING; batch[_pid] = 0; next[_pid] = NOBODY
           :: else
           fi
       }
       if
       :: !node -> d_step { assert(!freed); nappers++ }
       :: else
       fi;
       do
       :: load();
          exchange();
          if
          :: had -> break
          :: else
          fi
       od;
       if
       :: last -> let_go()
       :: !last && node -> wait()
       :: !last && !node -> atomic { ROUND(came) != round -> assert(!freed) }
       fi;
       if
       :: node -> taken--
       :: else -> d_step { assert(!freed); nappers-- }
       fi;
       d_step {
           assert(complete[_pid]);
           complete[_pid] = false; waits[_pid] = false;
           had = false; last = false; node = false;
           seen = 0; seen_first = NOBODY; first = NOBODY; round = 0
       }
#ifdef LAST
       rounds++;
       if
       :: rounds == LAST ->
           /* Barrier::retire, by the first thread that returns. */
#ifdef BROKEN_RETIRE
           freed = true;
#else
           if
           :: freed
           :: nappers == 0 -> freed = true
           fi;
#endif
           break
       :: else
       fi
#endif
    od
}

ltl served { [] (waits[0] -> <> !waits[0]) }
ltl gone { [] ((here[0] || complete[0]) -> <> (!here[0] && !complete[0])) }
