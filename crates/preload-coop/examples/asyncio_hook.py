"""An asyncio event loop that tells when its next timer is due, under `antiphon run --coop`.

    antiphon run --coop -- python3 crates/preload-coop/examples/asyncio_hook.py

While there are callbacks to run, asyncio waits with a timeout of 0, and nobody sees from outside
when its next timer is due. This loop says so before each wait. It uses what asyncio documents: a
selector of one's own, `call_at`, `TimerHandle.when` and `TimerHandle.cancelled`. Without the
preload library it is the loop that it comes from. Python 3.7 and later.
"""

import asyncio
import ctypes
import heapq
import itertools
import selectors


def release_hook():
    """The library's function that takes the time, or None if the library is not there."""
    try:
        hook = ctypes.CDLL(None).antiphon_coop_release
    except AttributeError:
        return None
    hook.argtypes, hook.restype = [ctypes.c_uint64], None
    return hook


class TellingSelector(selectors.DefaultSelector):
    """Calls `before` before each wait and `after` after it."""

    before = after = staticmethod(lambda: None)

    def select(self, timeout=None):
        self.before()
        ready = super().select(timeout)
        self.after()
        return ready


class CooperativeLoop(asyncio.SelectorEventLoop):
    """The loop: `CooperativeLoop().run_until_complete(main())`, or from Python 3.11 on
    `asyncio.Runner(loop_factory=CooperativeLoop)`."""

    def __init__(self):
        selector = TellingSelector()
        super().__init__(selector)
        self._timers, self._numbers = [], itertools.count()
        self._room = 64
        self._hook = release_hook()
        if self._hook:
            selector.before, selector.after = self._tell, self._waited

    def call_at(self, when, callback, *args, context=None):
        handle = super().call_at(when, callback, *args, context=context)
        heapq.heappush(self._timers, (when, next(self._numbers), handle))
        if len(self._timers) > self._room:
            # Timeouts of what has ended in time are cancelled, and not due for long.
            self._timers = [timer for timer in self._timers if not timer[2].cancelled()]
            heapq.heapify(self._timers)
            self._room = max(64, 2 * len(self._timers))
        return handle

    def _tell(self):
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        # asyncio's clock is CLOCK_MONOTONIC, in seconds.
        self._hook(int(timers[0][0] * 1e9) if timers else 0)

    def _waited(self):
        # What is due by now is called before the next wait.
        now = self.time()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)


async def ticks(count, period):
    """How late timers are called, each `period` seconds. A task that one of them wakes goes on an
    iteration later, as other work does: so what is to be on time is the callback."""
    loop = asyncio.get_running_loop()
    late, done = [], loop.create_future()

    def tick(due):
        late.append(loop.time() - due)
        if len(late) < count:
            loop.call_at(due + period, tick, due + period)
        else:
            done.set_result(sorted(late))

    first = loop.time() + period
    loop.call_at(first, tick, first)
    return await done


async def work():
    """Always something to do, half a millisecond at a time."""
    loop = asyncio.get_running_loop()
    while True:
        until = loop.time() + 0.0005
        while loop.time() < until:
            pass
        await asyncio.sleep(0)


async def main():
    busy = asyncio.create_task(work())
    late = await ticks(100, 0.01)
    busy.cancel()
    await asyncio.gather(busy, return_exceptions=True)
    p50, most = late[len(late) // 2], late[-1]
    print(f"{len(late)} ticks, p50 {p50 * 1e3:.2f} ms, max {most * 1e3:.2f} ms late")


if __name__ == "__main__":
    cooperative = CooperativeLoop()
    try:
        cooperative.run_until_complete(main())
    finally:
        cooperative.close()
