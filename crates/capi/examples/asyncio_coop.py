"""Two programs on Python's asyncio share a CPU by T3: each computes all the time, and gives the CPU
away when a callback of either is due.

asyncio waits in a selector: before that the member says when the next callback is due and whether
there is work, and after that it waits for its turn. Needs libantiphon where the system finds it:
LD_LIBRARY_PATH=PREFIX/lib python3 asyncio_coop.py
"""

import asyncio
import ctypes
import heapq
import os
import selectors
import sys
import traceback
from ctypes import POINTER, byref, c_char_p, c_uint32, c_uint64, c_void_p

NEVER = 2**64 - 1
PROGRAMS, BEATS, PERIOD = 2, 50, 0.004


class Part(ctypes.Structure):
    _fields_ = [
        ("domain", c_char_p),
        ("cpu", c_uint32),
        ("group", c_uint32),
        ("weight", c_uint32),
        ("priority", c_uint32),
        ("times_ns", c_uint64 * 4),
        ("kept", c_uint64),
    ]


class Answer(ctypes.Structure):
    _fields_ = [("release_ns", c_uint64), ("importance", c_uint64), ("until_ns", c_uint64)]


LIBRARY = ctypes.CDLL("libantiphon.so.0")
LIBRARY.antiphon_coop_join.argtypes = [POINTER(c_void_p), POINTER(Part)]
LIBRARY.antiphon_coop_before.argtypes = [c_void_p, c_uint64, c_uint64, POINTER(c_uint64)]
LIBRARY.antiphon_coop_after.argtypes = [c_void_p, POINTER(Answer)]
LIBRARY.antiphon_coop_leave.argtypes = [c_void_p]
LIBRARY.antiphon_loop_now_ns.restype = c_uint64


def check(error):
    if error:
        raise OSError(error, os.strerror(error))


class Selector(selectors.DefaultSelector):
    """Polls around each wait. `release_ns` says when the next callback is due."""

    def __init__(self, part):
        super().__init__()
        self.member, self.answer = c_void_p(), Answer()
        self.release_ns, self.has_waited = lambda: NEVER, lambda: None
        check(LIBRARY.antiphon_coop_join(byref(self.member), byref(part)))

    def select(self, timeout=None):
        importance = 0 if timeout is not None and timeout <= 0 else NEVER
        until = c_uint64()
        check(LIBRARY.antiphon_coop_before(self.member, self.release_ns(), importance, byref(until)))
        if until.value != NEVER:
            left = max(0, until.value - LIBRARY.antiphon_loop_now_ns()) / 1e9
            timeout = left if timeout is None else min(left, timeout)
        try:
            return super().select(timeout)
        finally:
            check(LIBRARY.antiphon_coop_after(self.member, byref(self.answer)))
            self.has_waited()

    def close(self):
        super().close()
        check(LIBRARY.antiphon_coop_leave(self.member))


class Loop(asyncio.SelectorEventLoop):
    """asyncio's, whose selector knows what is due: also while there is other work."""

    def __init__(self, part):
        self.due, self.waited, self.polls = [], 0.0, Selector(part)
        self.polls.release_ns, self.polls.has_waited = self.release_ns, self.note_time
        super().__init__(self.polls)

    def call_at(self, when, callback, *args, context=None):
        heapq.heappush(self.due, when)
        return super().call_at(when, callback, *args, context=context)

    def release_ns(self):
        # What was due when the last wait was over was called since, or was cancelled.
        while self.due and self.due[0] <= self.waited:
            heapq.heappop(self.due)
        return self.next_ns()

    def note_time(self):
        # asyncio looks at the time once more: what comes due in between is called, and told again.
        self.waited = self.time()

    def next_ns(self):
        return int(self.due[0] * 1e9) if self.due else NEVER


async def work(loop, done):
    """Goes on until the end of its slice, and for half a millisecond at the most."""
    steps = 0
    while not done.is_set():
        until = LIBRARY.antiphon_loop_now_ns() + 500_000
        until = min(until, loop.polls.answer.until_ns, loop.next_ns())
        while LIBRARY.antiphon_loop_now_ns() < until:
            pass
        steps += 1
        await asyncio.sleep(0)
    return steps


async def main():
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    beats = 0

    def beat(due):
        nonlocal beats
        beats += 1
        if beats == BEATS:
            done.set()
        else:
            loop.call_at(due + PERIOD, beat, due + PERIOD)

    first = loop.time() + PERIOD
    loop.call_at(first, beat, first)
    steps = await work(loop, done)
    return beats == BEATS and steps > 0


def run(part):
    loop = Loop(part)
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


cpu = min(os.sched_getaffinity(0))
part = Part(domain=b"asyncio-coop", cpu=cpu + 1)
children = []
for _ in range(PROGRAMS):
    child = os.fork()
    if child == 0:
        fine = False
        try:
            fine = run(part)
        except Exception:
            traceback.print_exc()
        os._exit(0 if fine else 1)
    children.append(child)
failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
print(f"{PROGRAMS} programs, {BEATS} beats each; {failed} failed")
sys.exit(failed != 0)
