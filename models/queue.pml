/* The queue of a ShflLock that waiters shuffle: which waiter may pass which, and how often.
 *
 * verify: safety
 * verify: served
 * refute: safety BROKEN_GROUP
 * refute: served BROKEN_GROUP
 * refute: safety BROKEN_ROLE
 *
 * README.md in this folder maps the model to the code, and lists omissions.
 */

#define THREADS 5
/* Form::GROUP. */
#define GROUP 2
#define NOBODY 255

/* Four threads of one socket: a holder, two to stand around the fifth, and a tail. */
#define SOCKET(thread) (thread == 4)

/* ShflSpin::locked. No thread barges: mutex.pml has that. */
bool locked;

/* The queue, first to last; Waiter::batch; which waiter has the shuffling role. */
byte queue[THREADS], length;
byte batch[THREADS];
byte role = NOBODY;

bool waits[THREADS];
/* The number of later waiters that have passed the fifth. */
byte passed;

#define IS_HEAD (length > 0 && queue[0] == _pid)

/* Place::join: the exchange of the tail, and the link behind the last waiter. */
inline join() {
    d_step {
        queue[length] = _pid;
        length++;
        batch[_pid] = 0;
        waits[_pid] = true;
        if
        :: _pid == 4 -> passed = 0
        :: else
        fi
    }
}

/* shuffle::shuffle, one move of it: the first waiter behind the role's owner that is of its socket,
 * and is not the tail, moves to the place right behind it, and gets the role. */
inline shuffle() {
    d_step {
        at = 0;
        do
        :: at < length && queue[at] != role -> at++
        :: else -> break
        od;
        from = at + 1;
        do
        :: from < length && SOCKET(queue[from]) != SOCKET(role) -> from++
        :: else -> break
        od;
        if
#ifdef BROKEN_GROUP
        :: from + 1 < length ->
#else
        :: from + 1 < length && batch[role] < GROUP ->
#endif
            moved = queue[from];
            do
            :: from > at + 1 ->
                queue[from] = queue[from - 1];
                if
                :: queue[from] == 4 -> passed++
                :: else
                fi;
                from--
            :: else -> break
            od;
            queue[from] = moved;
            batch[moved] = batch[role] + (batch[role] < GROUP);
            role = moved
        :: else
        fi;
        at = 0; from = 0; moved = 0
    }
    /* INV-5: each waiter before the fifth may gather one group. */
    assert(passed < GROUP * THREADS);
}

/* The head, which has the lock, leaves the queue. */
inline leave() {
    d_step {
        locked = true;
        if
        :: role == _pid -> role = NOBODY
        :: else
        fi;
        length--;
        do
        :: at < length -> queue[at] = queue[at + 1]; at++
        :: else -> break
        od;
        queue[length] = 0;
        batch[_pid] = 0;
        at = 0
    }
}

active [THREADS] proctype thread() {
    byte at, from, moved;
    do
    :: join();
       do
       :: IS_HEAD && !locked -> leave(); break
       :: role == _pid && locked -> shuffle()
#ifdef BROKEN_ROLE
       :: IS_HEAD && role != _pid && locked ->
#else
       :: IS_HEAD && role != _pid && locked && batch[_pid] == 0 ->
#endif
            /* INV-2: the role comes into being at a head that no waiter has grouped. INV-1: then
             * no waiter has it. */
            d_step { assert(role == NOBODY); role = _pid; batch[_pid] = 1 }
       od;
       assert(locked);
       waits[_pid] = false;
       locked = false
    :: break
    od
}

ltl served { [] (waits[4] -> <> !waits[4]) }
