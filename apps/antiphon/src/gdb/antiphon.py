# Shows Antiphon's locks in gdb: who holds them, and who waits, in which order.
#
#     antiphon locks --gdb > antiphon.py
#     gdb -x antiphon.py -p PID            (or: gdb -x antiphon.py PROGRAM CORE)
#
#     (gdb) antiphon mutex m               a pthread_mutex_t, an antiphon::Mutex, or its address
#     (gdb) antiphon rwlock l              a pthread_rwlock_t or an antiphon::RwLock
#     (gdb) antiphon spin s                a pthread_spinlock_t
#     (gdb) antiphon threads               which threads sleep in a queue
#     (gdb) print m                        in one line, if the type is known
#
# Addresses do for programs without debug information. A lock knows its owner under
# `antiphon run`, and a waiter's thread is known while it sleeps: then it stands in the kernel with
# the address of its node. A thread that spins is not known, and is shown by its node alone.
# Written for the library of the same build: another one may have other fields.

import re

import gdb

NODE = @NODE@
# Nodes that are mapped at a time (`nodes.rs` of antiphon-linux).
PIECE = (64 << 10) // NODE
GENERATION = @GENERATION@
NEXT = @NEXT@
STATUS = @STATUS@
WANTS = @WANTS@
INDEX_BITS = @INDEX_BITS@
INDEX_MASK = (1 << INDEX_BITS) - 1

# Bits of a waiter's status: `crates/sync/src/lock/shfl/status.rs`.
PARKED, HEAD, ABANDONED, SHUFFLER = 1, 2, 4, 8

# Kinds of a pthread_mutex_t: those that stay glibc's, and the names of the others.
FOREIGN = 0xF0
KINDS = ("normal", "recursive", "errorcheck", "adaptive")

# Modes of the library from which on glibc keeps the locks: `crates/preload/src/mode.rs`.
OBSERVED = 4

LIBRARY = re.compile(r"antiphon[-_]preload")


def read(address, size):
    return int.from_bytes(gdb.selected_inferior().read_memory(address, size).tobytes(), "little")


def symbols(kind, name):
    """The addresses of all symbols of that name, those of the library first."""
    listed = gdb.execute("info %s ^%s" % (kind, name), to_string=True)
    # Older versions show the hash in a Rust symbol, too.
    symbol = re.compile(r"(0x[0-9a-f]+) +%s(::h[0-9a-f]{16})?$" % re.escape(name))
    found = [int(line[1], 16) for line in map(symbol.match, listed.splitlines()) if line]
    if not found:
        try:
            found = [int(gdb.parse_and_eval("(long) &'%s'" % name))]
        except gdb.error:
            pass
    return sorted(found, key=lambda at: not in_library(at))


def in_library(address):
    return bool(LIBRARY.search(gdb.solib_name(address) or ""))


def is_ours(function):
    """Whether the process has the library, with locks of its own behind that function."""
    modes = [at for at in symbols("variables", "antiphon_preload::mode::MODE") if in_library(at)]
    if not modes or read(modes[0], 4) >= OBSERVED:
        return False
    return any(in_library(at) for at in symbols("functions", function))


class Waiter:
    def __init__(self, index, memory):
        word = lambda at: int.from_bytes(memory[at : at + 4], "little")
        self.index = index
        self.in_use = word(GENERATION) % 2 == 1
        self.next = word(NEXT)
        self.status = word(STATUS)
        self.wants = word(WANTS)

    def describe(self, thread, what):
        state = []
        if self.status & ABANDONED:
            state.append("has given up, its node stays till the head passes it")
        elif self.status & HEAD:
            state.append("head")
        if thread or self.status & PARKED:
            state.append("sleeps")
        if self.status & SHUFFLER:
            state.append("shuffles")
        who = thread_name(thread) if thread else "thread not known (it does not sleep)"
        return "%s%s, node %d%s" % (who, what, self.index, "".join(", " + s for s in state))


class Queues:
    """The waiters' nodes of one copy of the locks: the preload library's, or the program's."""

    def __init__(self, pieces_at):
        pages = symbols("variables", "antiphon_linux::identity::PAGE_OF_PROCESS")
        same = lambda at: gdb.solib_name(at) == gdb.solib_name(pieces_at)
        page = next((read(at, 8) for at in pages if same(at)), 0)
        self.epoch = read(page, 4) if page > 1 else 0
        # Where each piece is, in order; null ends them, since none is mapped before the last.
        self.pieces = []
        while piece := read(pieces_at + 8 * len(self.pieces), 8):
            self.pieces.append(piece)
        self.waiters = {}
        for number, piece in enumerate(self.pieces):
            memory = gdb.selected_inferior().read_memory(piece, PIECE * NODE).tobytes()
            for at in range(PIECE):
                index = number * PIECE + at
                waiter = Waiter(index, memory[at * NODE : (at + 1) * NODE])
                # The first node is no waiter's.
                if index and waiter.in_use:
                    self.waiters[index] = waiter

    def behind(self, tail):
        """The queue that ends with the node of that name, from its head on."""
        if not tail:
            return []
        if self.epoch and tail >> INDEX_BITS != self.epoch:
            raise gdb.GdbError("the waiters are another process's")
        return self.ending_at(tail & INDEX_MASK)

    def ending_at(self, index):
        ahead = {waiter.next & INDEX_MASK: waiter for waiter in self.waiters.values()}
        queue, seen = [], set()
        waiter = self.waiters.get(index)
        while waiter and waiter.index not in seen:
            seen.add(waiter.index)
            queue.insert(0, waiter)
            waiter = ahead.get(waiter.index)
        return queue

    def sleepers(self):
        """By node, the thread that sleeps on it."""
        found = {}
        for thread, address in sleeping():
            for number, piece in enumerate(self.pieces):
                if piece <= address < piece + PIECE * NODE:
                    found[number * PIECE + (address - piece) // NODE] = thread
        return found


def all_queues():
    return [Queues(at) for at in symbols("variables", "antiphon_linux::nodes::PIECES")]


def queue_of(tail):
    """The queue of that tail, and the threads that sleep in it."""
    if not tail:
        return [], {}
    for queues in all_queues():
        queue = queues.behind(tail)
        if queue:
            return queue, queues.sleepers()
    return [], {}


def sleeping():
    """Threads in the futex system call, with the address that they sleep on."""
    selected = gdb.selected_thread()
    frame = gdb.selected_frame() if selected else None
    found = []
    try:
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            register = gdb.newest_frame().read_register
            try:
                number, address = int(register("orig_rax")), int(register("rdi"))
                in_futex = number == 202
            except ValueError:
                number, address = int(register("x8")), int(register("x0"))
                in_futex = number == 98
            if in_futex:
                found.append((thread, address & (1 << 64) - 1))
    finally:
        if selected:
            selected.switch()
            frame.select()
    return found


def thread_name(thread):
    name = " (%s)" % thread.name if thread.name else ""
    return "thread %d%s, LWP %d" % (thread.num, name, thread.ptid[1] or thread.ptid[0])


def owner_name(tid):
    for thread in gdb.selected_inferior().threads():
        if tid in (thread.ptid[1], thread.ptid[0] if not thread.ptid[1] else 0):
            return thread_name(thread)
    return "LWP %d" % tid


def address_of(value):
    kind = value.type.strip_typedefs()
    # A spinlock is a number, too.
    number = kind.code == gdb.TYPE_CODE_INT and value.address is None
    if number or kind.code == gdb.TYPE_CODE_PTR:
        return int(value) & (1 << 64) - 1
    if kind.code == gdb.TYPE_CODE_STRUCT and any(f.name == "raw" for f in kind.fields()):
        value = value["raw"]
    if value.address is None:
        raise gdb.GdbError("not in memory; give its address")
    return int(value.address)


def count(number, one, more):
    return "%d %s" % (number, one if number == 1 else more)


class Lock:
    """A lock: its state in words, and its queue."""

    def __init__(self, name, state, tail, details=()):
        self.name, self.state, self.details = name, state, details
        self.queue, self.sleepers = queue_of(tail)

    def line(self):
        waiting = [waiter for waiter in self.queue if not waiter.status & ABANDONED]
        line = "%s: %s" % (self.name, self.state)
        if waiting:
            line += ", " + count(len(waiting), "thread waits", "threads wait")
        return line

    def show(self):
        print(self.line())
        for detail in self.details:
            print("  " + detail)
        for place, waiter in enumerate(self.queue, 1):
            what = ""
            if self.name.endswith("rwlock") or self.name.endswith("RwLock"):
                what = " to write" if waiter.wants else " to read"
            thread = self.sleepers.get(waiter.index)
            print("  %d. %s" % (place, waiter.describe(thread, what)))


def shfl_mutex(address, name, owner=None):
    state = read(address, 1)
    words = "free"
    if state & 1:
        words = "held by " + owner_name(owner) if owner else "held"
    if state & 4:
        words += ", kept for the head of the queue"
    details = ["the release wakes the head"] if state & 2 else []
    return Lock(name, words, read(address + 4, 4), details)


def pthread_mutex(address):
    kind = read(address + 16, 4)
    if kind & FOREIGN or not is_ours("pthread_mutex_lock"):
        return None
    # Kept for the kinds that don't ask for it, too, but not cleared with the lock.
    owner = read(address + 8, 4) if read(address, 1) & 1 else 0
    kind = KINDS[kind & 3]
    lock = shfl_mutex(address, "pthread mutex (%s)" % kind, owner)
    if kind == "recursive" and owner:
        lock.state += ", %s" % count(read(address + 12, 4), "time", "times")
    return lock


def shfl_rwlock(address, name, writer=None):
    state = read(address, 8)
    readers = state >> 40
    words = []
    if state & 1:
        words.append("held to write" + (" by " + owner_name(writer) if writer else ""))
    if readers:
        words.append("held by " + count(readers, "reader", "readers"))
    if state & 16:
        words.append("one of them upgradable" if readers else "held by one upgradable reader")
    details = []
    for bit, detail in (
        (2, "the release wakes the head"),
        (4, "kept for the head of the queue"),
        (8, "a writer waits at the head"),
        (32, "the upgradable reader waits to write"),
    ):
        if state & bit:
            details.append(detail)
    return Lock(name, ", ".join(words) or "free", read(address + 8, 4), details)


def pthread_rwlock(address):
    if read(address + 28, 4) or not is_ours("pthread_rwlock_rdlock"):
        return None
    return shfl_rwlock(address, "pthread rwlock", read(address + 24, 4))


def pthread_spin(address):
    word = read(address, 4)
    x86 = "x86" in gdb.selected_inferior().architecture().name()
    held = word != 1 if x86 else word != 0
    return "pthread spinlock: %s; who holds it and who spins is not known" % (
        "held" if held else "free"
    )


class Antiphon(gdb.Command):
    """Antiphon's locks: who holds them, and who waits, in which order."""

    def __init__(self):
        super().__init__("antiphon", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)


class Show(gdb.Command):
    def __init__(self, word, of_pthread, of_rust):
        self.of_pthread, self.of_rust = of_pthread, of_rust
        self.__doc__ = "Show a lock: antiphon %s EXPRESSION-OR-ADDRESS" % word
        super().__init__("antiphon " + word, gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError(self.__doc__)
        try:
            self.show(argument)
        except gdb.error as error:
            raise gdb.GdbError(str(error))

    def show(self, argument):
        value = gdb.parse_and_eval(argument)
        address = address_of(value)
        if RUST.search(str(value.type.strip_typedefs())):
            lock = self.of_rust(address)
        else:
            lock = self.of_pthread(address)
        if lock is None:
            raise gdb.GdbError(
                "glibc keeps this lock: it is robust, priority or process-shared, or the process "
                "has no Antiphon library that replaces such locks"
            )
        print(lock) if isinstance(lock, str) else lock.show()


class Threads(gdb.Command):
    """Show which threads sleep in a queue of a lock or condition variable."""

    def __init__(self):
        super().__init__("antiphon threads", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        shown = 0
        for queues in all_queues():
            for index, thread in sorted(queues.sleepers().items()):
                waiter = queues.waiters.get(index)
                if waiter:
                    print(waiter.describe(thread, ""))
                    shown += 1
        if not shown:
            print("no thread sleeps in a queue of Antiphon's")


RUST = re.compile(r"antiphon::(mutex|raw|rw)::Raw|antiphon_sync::lock")
RUST_MUTEX = re.compile(r"lock_api::mutex::Mutex<antiphon::(mutex|raw)::RawMutex\b")
RUST_RWLOCK = re.compile(r"lock_api::rwlock::RwLock<antiphon::rw::RawRwLock\b")


class Printer:
    """In one line; of a Rust lock, with what it guards."""

    def __init__(self, value, lock):
        self.value, self.lock = value, lock

    def to_string(self):
        return self.lock.line()

    def children(self):
        kind = self.value.type.strip_typedefs()
        if any(field.name == "data" for field in kind.fields()):
            data = self.value["data"]
            yield "data", data["value"] if "UnsafeCell" in str(data.type) else data


def printer(value):
    kind = value.type.strip_typedefs()
    names = (value.type.name or "", kind.name or kind.tag or "")
    if value.address is None:
        return None
    lock = None
    try:
        if "pthread_mutex_t" in names:
            lock = pthread_mutex(address_of(value))
        elif "pthread_rwlock_t" in names:
            lock = pthread_rwlock(address_of(value))
        elif RUST_MUTEX.match(names[1]):
            lock = shfl_mutex(address_of(value), "antiphon::Mutex")
        elif RUST_RWLOCK.match(names[1]):
            lock = shfl_rwlock(address_of(value), "antiphon::RwLock")
    except (gdb.error, gdb.GdbError):
        # Memory that can't be read, or waiters of another process: shown as it is.
        return None
    return Printer(value, lock) if lock else None


Antiphon()
Show("mutex", pthread_mutex, lambda at: shfl_mutex(at, "antiphon::Mutex"))
Show("rwlock", pthread_rwlock, lambda at: shfl_rwlock(at, "antiphon::RwLock"))
Show("spin", pthread_spin, pthread_spin)
Threads()
printer.name = "antiphon"
gdb.pretty_printers.insert(0, printer)
