"""An event loop of Antiphon inside Python's asyncio: timers to the nanosecond, beside coroutines.

asyncio waits for the loop as for a file, and has it take a turn when that is readable; asyncio's
own timers are rounded up to milliseconds by its selector. Needs libantiphon where the system finds
it: LD_LIBRARY_PATH=PREFIX/lib python3 asyncio_loop.py
"""

import asyncio
import ctypes
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_uint32, c_uint64, c_void_p

CALL = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(c_uint64))
DONE, MORE, AT, ASLEEP = range(4)
TIMER, WORK, WOKEN = range(3)


class Event(ctypes.Structure):
    _fields_ = [
        ("when", c_uint64),
        ("due", c_int),
        ("kept", c_int),
        ("call", CALL),
        ("end", c_void_p),
        ("data", c_void_p),
        ("name", c_char_p),
    ]


class Turn(ctypes.Structure):
    _fields_ = [("next_ns", c_uint64), ("called", c_uint32), ("end", c_int)]


LIBRARY = ctypes.CDLL("libantiphon.so.0")
LIBRARY.antiphon_loop_now_ns.restype = c_uint64
LIBRARY.antiphon_loop_create.argtypes = [POINTER(c_void_p)]
LIBRARY.antiphon_loop_submit.argtypes = [c_void_p, POINTER(Event), POINTER(c_uint64)]
LIBRARY.antiphon_loop_turn.argtypes = [c_void_p, c_uint32, POINTER(Turn)]
for function in ("destroy", "fd"):
    getattr(LIBRARY, f"antiphon_loop_{function}").argtypes = [c_void_p]

now_ns = LIBRARY.antiphon_loop_now_ns


class Loop:
    """Of the thread that runs asyncio, and closed before asyncio's loop is."""

    def __init__(self):
        self.loop = c_void_p()
        error = LIBRARY.antiphon_loop_create(byref(self.loop))
        if error:
            raise OSError(error, "no event loop")
        self.calls = {}
        self.asyncio = asyncio.get_running_loop()
        self.fd = LIBRARY.antiphon_loop_fd(self.loop)
        self.asyncio.add_reader(self.fd, self.turn)
        self.turn()

    def turn(self):
        LIBRARY.antiphon_loop_turn(self.loop, 64, byref(Turn()))

    def submit(self, due, when, call):
        """`call(when)` returns what becomes of the event, and when: (AT, release_ns), say."""

        def step(_loop, _data, at):
            next_step, at[0] = call(at[0])
            if next_step == DONE:
                # Not at once: it is being called.
                self.asyncio.call_soon(self.calls.pop, id(step))
            return next_step

        # What C may call stays.
        kept = self.calls[id(step)] = CALL(step)
        event = Event(when, due, 0, kept, None, None, None)
        error = LIBRARY.antiphon_loop_submit(self.loop, byref(event), None)
        if error:
            raise OSError(error, "no such event")

    async def sleep_until(self, release_ns):
        future = self.asyncio.create_future()

        def awake(when):
            if not future.done():
                future.set_result(None)
            return DONE, when

        self.submit(TIMER, release_ns, awake)
        await future

    def close(self):
        self.asyncio.remove_reader(self.fd)
        LIBRARY.antiphon_loop_destroy(self.loop)
        self.calls.clear()


async def main():
    loop = Loop()
    beats, early = 0, 0
    done = asyncio.Event()

    def beat(release_ns):
        nonlocal beats, early
        beats += 1
        early += now_ns() < release_ns
        if beats < 50:
            return AT, release_ns + 700_000
        done.set()
        return DONE, release_ns

    loop.submit(TIMER, now_ns() + 700_000, beat)
    own = 0
    for _ in range(10):
        await asyncio.sleep(0.001)
        own += 1
    await done.wait()
    at = now_ns() + 300_000
    await loop.sleep_until(at)
    slept = "then a sleep" if now_ns() >= at else "and no sleep"
    loop.close()
    kept = "none early" if early == 0 else f"{early} early"
    print(f"{beats} beats, {kept}, beside {own} of asyncio's; {slept}")


asyncio.run(main())
