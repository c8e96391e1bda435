//! The host's side of the [channel](antiphon_metal::channel): shared memory, and a thread that
//! serves the requests in it.
//!
//! The memory is a temporary file, which the emulator gives to the image as the memory of a device.
//! The thread checks all slots. After a request it keeps checking for a while without a pause; then
//! it sleeps between two checks, up to a millisecond.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use antiphon_metal::channel::{Channel, DATA, Error, LENGTH, Operation, Request, SLOTS};
use antiphon_report::failure::Failure;

use super::scratch::Scratch;
use super::share::Share;

/// Number of checks without a request before the thread begins to sleep between them.
const LOOKS: u32 = 200;
const SHORTEST: Duration = Duration::from_micros(20);
const LONGEST: Duration = Duration::from_millis(1);
/// Largest number of bytes of lines that an image may print.
const MOST_PRINTED: usize = 1 << 20;

/// A channel that is served.
pub struct Served {
    file: PathBuf,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
    _scratch: Scratch,
}

impl Served {
    /// Serves the files of a folder.
    ///
    /// # Errors
    ///
    /// The path is no folder, or the shared memory can't be made.
    pub fn begin(folder: &Path) -> Result<Self, Failure> {
        let named = |error| Failure::arguments(format!("--share {}: {error}", folder.display()));
        let share = Share::of(folder).map_err(named)?;
        let failed = |error| Failure::measured(format!("the memory of --share: {error}"));
        let scratch = Scratch::new().map_err(failed)?;
        let file = scratch.path("channel");
        let memory = Memory::make(&file).map_err(failed)?;
        // Before the image is started: it checks only once whether the host is ready.
        if let Some(channel) = memory.channel() {
            channel.open();
        }
        let ends = Arc::new(AtomicBool::new(false));
        let ended = ends.clone();
        let thread = thread::spawn(move || {
            let mut server = Server { share, lines: Vec::new(), printed: 0 };
            if let Some(channel) = memory.channel() {
                server.serve(channel, &ended);
            }
            server.lines
        });
        Ok(Self { file, ends, thread, _scratch: scratch })
    }

    /// Returns the arguments of the emulator that give the memory to the machine.
    pub fn arguments(&self) -> Vec<String> {
        // A comma would end the path.
        let file = self.file.display().to_string().replace(',', ",,");
        let memory = format!(
            "memory-backend-file,id=channel,share=on,mem-path={file},size={}K",
            LENGTH >> 10
        );
        let device = "ivshmem-plain,memdev=channel".to_owned();
        vec!["-object".to_owned(), memory, "-device".to_owned(), device]
    }

    /// Ends the service, and returns the lines that the image has printed through it.
    ///
    /// # Errors
    ///
    /// The thread has panicked.
    pub fn end(self) -> Result<Vec<String>, Failure> {
        // Relaxed: no data depends on it; the emulator has ended.
        self.ends.store(true, Relaxed);
        self.thread.join().map_err(|_| Failure::measured("the thread of --share has panicked"))
    }
}

/// The shared memory.
struct Memory(NonNull<AtomicU64>);

// SAFETY: the memory is only accessed as atomics, which all threads may use.
unsafe impl Send for Memory {}

impl Memory {
    /// Makes the file, and maps it.
    fn make(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        file.set_len(LENGTH as u64)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (shared, file) = (libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: a new mapping, at an address that the system chooses.
        let first = unsafe { libc::mmap(std::ptr::null_mut(), LENGTH, access, shared, file, 0) };
        if first == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(first.cast()).map(Self).ok_or_else(io::Error::last_os_error)
    }

    fn channel(&self) -> Option<Channel<'_>> {
        // SAFETY: the memory is mapped until this is dropped, has that length and is aligned; all
        // values are valid atomics.
        Channel::new(unsafe { std::slice::from_raw_parts(self.0.as_ptr(), LENGTH / 8) })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `make` has mapped the memory, and no borrow of it is left.
        unsafe { libc::munmap(self.0.as_ptr().cast(), LENGTH) };
    }
}

/// The server of requests, which serves one after the other.
struct Server {
    share: Share,
    lines: Vec<String>,
    printed: usize,
}

impl Server {
    fn serve(&mut self, channel: Channel<'_>, ends: &AtomicBool) {
        let (mut looks, mut nap) = (0, SHORTEST);
        // Relaxed: see `end`.
        while !ends.load(Relaxed) {
            if self.look(channel) > 0 {
                (looks, nap) = (0, SHORTEST);
            } else if looks < LOOKS {
                looks += 1;
                thread::yield_now();
            } else {
                thread::sleep(nap);
                nap = (2 * nap).min(LONGEST);
            }
        }
    }

    /// Serves the requests that are there; returns their number.
    fn look(&mut self, channel: Channel<'_>) -> usize {
        let mut data = [0; DATA];
        let mut served = 0;
        for slot in (0..SLOTS).map(|index| channel.slot(index)) {
            let Some(request) = slot.asked(&mut data) else { continue };
            let result = self.answer(&request, &mut data);
            let is_read = Operation::of(request.operation) == Some(Operation::Read);
            // Only the bytes that were read are sent back, and no part of another request.
            let length = if is_read { result.map_or(0, |read| read as usize) } else { 0 };
            slot.answer(result, &data[..length]);
            served += 1;
        }
        served
    }

    /// Carries out a request. `data` holds the data of the request, and gets the bytes that are
    /// read.
    fn answer(&mut self, request: &Request, data: &mut [u8; DATA]) -> Result<u64, Error> {
        let operation = Operation::of(request.operation).ok_or(Error::Malformed)?;
        let count = usize::try_from(request.count).ok().filter(|&count| count <= DATA);
        let data = &mut data[..count.ok_or(Error::Malformed)?];
        let (file, offset) = (request.file, request.offset);
        match operation {
            Operation::Open => self.share.open(data, false),
            Operation::Create => self.share.open(data, true),
            Operation::Read => self.share.read(file, offset, data).map(|read| read as u64),
            Operation::Write => self.share.write(file, offset, data).map(|put| put as u64),
            Operation::Close => self.share.close(file).map(|()| 0),
            Operation::Print => self.print(data),
            Operation::Clock => Ok(now_ns()),
        }
    }

    fn print(&mut self, line: &[u8]) -> Result<u64, Error> {
        // An empty line takes room, too: its end.
        self.printed = self.printed.saturating_add(line.len() + 1);
        if self.printed > MOST_PRINTED {
            return Err(Error::TooMuch);
        }
        self.lines.extend(String::from_utf8_lossy(line).lines().map(str::to_owned));
        Ok(0)
    }
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns memory such as an image has, and a server of an empty folder.
    fn machine() -> (Scratch, Vec<AtomicU64>, Server) {
        let scratch = Scratch::new().expect("a folder");
        let share = Share::of(&scratch.path("")).expect("a folder");
        let words = (0..LENGTH / 8).map(|_| AtomicU64::new(0)).collect();
        (scratch, words, Server { share, lines: Vec::new(), printed: 0 })
    }

    fn request(operation: Operation, file: u64, offset: u64, count: usize) -> Request {
        Request { operation: operation as u64, file, offset, count: count as u64 }
    }

    #[test]
    fn each_operation_is_served() {
        let (_scratch, words, mut server) = machine();
        let channel = Channel::new(&words).expect("enough words");
        assert!(!channel.is_open());
        channel.open();
        assert!(channel.is_open());
        let mut call = |request: Request, data: &[u8], into: &mut [u8]| {
            let slot = channel.slot(SLOTS - 1);
            slot.ask(&request, data);
            assert!(!slot.is_answered());
            assert_eq!(server.look(channel), 1);
            assert!(slot.is_answered());
            slot.take(into)
        };
        let file = call(request(Operation::Create, 0, 0, 4), b"file", &mut []).expect("a file");
        let text: Vec<u8> = (0..DATA).map(|at| at as u8).collect();
        let write = request(Operation::Write, file, 5, DATA);
        assert_eq!(call(write, &text, &mut []), Ok(DATA as u64));
        let mut back = vec![0; DATA];
        let read = request(Operation::Read, file, 6, DATA);
        assert_eq!(call(read, &[], &mut back), Ok(DATA as u64 - 1));
        assert_eq!(back[..DATA - 1], text[1..]);
        assert_eq!(back[DATA - 1], 0);
        assert_eq!(call(request(Operation::Close, file, 0, 0), &[], &mut []), Ok(0));
        assert_eq!(call(read, &[], &mut back), Err(Error::NotOpen));
        let before = now_ns();
        let now = call(request(Operation::Clock, 0, 0, 0), &[], &mut []).expect("a time");
        assert!((before..=now_ns()).contains(&now));
        assert_eq!(call(request(Operation::Print, 0, 0, 9), b"one\ntwo\xff ", &mut []), Ok(0));
        assert_eq!(server.look(channel), 0);
        assert_eq!(server.lines, ["one", "two\u{fffd} "]);
    }

    #[test]
    fn a_request_that_is_none_is_refused() {
        let (_scratch, words, mut server) = machine();
        let channel = Channel::new(&words).expect("enough words");
        for (operation, count) in [
            (0, 0),
            (8, 0),
            (u64::MAX, 1),
            (1, DATA as u64 + 1),
            (3, DATA as u64 + 1),
            (4, u64::MAX),
        ] {
            let slot = channel.slot(0);
            slot.ask(&Request { operation, file: 0, offset: 0, count }, b"data");
            assert_eq!(server.look(channel), 1);
            assert_eq!(slot.take(&mut []), Err(Error::Malformed), "{operation} {count}");
        }
    }

    #[test]
    fn lines_have_a_bound() {
        let (_scratch, words, mut server) = machine();
        let channel = Channel::new(&words).expect("enough words");
        let mut printed = 0;
        let refused = loop {
            let slot = channel.slot(0);
            slot.ask(&request(Operation::Print, 0, 0, DATA), &[b'x'; DATA]);
            server.look(channel);
            match slot.take(&mut []) {
                Ok(_) => printed += DATA,
                Err(error) => break error,
            }
        };
        assert_eq!(refused, Error::TooMuch);
        assert!(printed <= MOST_PRINTED);
        assert_eq!(server.lines.iter().map(String::len).sum::<usize>(), printed);
    }

    #[test]
    fn any_words_in_the_memory_are_served_without_a_failure() {
        let (_scratch, words, mut server) = machine();
        let channel = Channel::new(&words).expect("enough words");
        let mut seed = 1_u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let odd = [0, 1, 2, 7, DATA as u64, 1 << 20, 1 << 63, u64::MAX];
        let mut served = 0;
        for _ in 0..300 {
            // The heads of the slots: state, operation, file, offset, count, a path.
            for slot in 1..=SLOTS {
                let head = &words[slot * (words.len() / (SLOTS + 1))..];
                let values =
                    [draw(3), draw(10), draw(4), odd[draw(8) as usize], odd[draw(8) as usize]];
                for (word, value) in head.iter().zip(values) {
                    word.store(value, Relaxed);
                }
                head[8].store(u64::from_le_bytes(*b"../a/b\0c") >> (8 * draw(8)), Relaxed);
            }
            served += server.look(channel);
            assert_eq!(server.look(channel), 0, "each request is answered once");
        }
        assert!(served > 1000);
    }
}
