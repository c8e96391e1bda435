//! Costs of an event loop's files, by `epoll` and by `io_uring`, in nanoseconds: `cargo run
//! --release -p antiphon-coop --features io_uring --example loop_backends [ROUNDS]`; under
//! `strace -c` with `epoll` or `io_uring` behind the number, only that one runs, and its system
//! calls are counted.

use std::cell::Cell;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::rc::Rc;
use std::thread;

use antiphon_coop::event_loop::{Event, EventLoop, Files, Options, Source, Step, now_ns};
use antiphon_linux::schedule::own_cpu_ns;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let rounds = words.first().map_or(Ok(20_000), |word| word.parse::<u32>());
    let (Ok(rounds @ 1..), ..=2) = (rounds, words.len()) else {
        eprintln!("loop_backends [ROUNDS [epoll|io_uring]]: how many rounds? a number from 1");
        return ExitCode::from(2);
    };
    match all(rounds, words.get(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("loop_backends: {error}");
            ExitCode::FAILURE
        }
    }
}

fn all(rounds: u32, only: Option<&String>) -> io::Result<()> {
    println!("{:9} {:>12} {:>14} {:>14}", "", "there and back", "a look in vain", "a new file");
    for make in [Files::by_epoll, Files::new] {
        let name = make()?.backend().to_string();
        if only.is_none_or(|only| *only == name) {
            let (answer, look, add) =
                (answers(make, rounds)?, looks(make, rounds)?, adds(make, rounds)?);
            println!("{name:9} {answer:14} {look:14} {add:14}");
        }
    }
    Ok(())
}

type Make = fn() -> io::Result<Files>;

/// A byte to a thread that blocks, and back to the loop.
fn answers(make: Make, rounds: u32) -> io::Result<u64> {
    let mut events = EventLoop::new(make()?, Options::default());
    let (mut one, mut other) = UnixStream::pair()?;
    let echo = thread::spawn(move || {
        let mut byte = [0];
        while other.read_exact(&mut byte).is_ok() && other.write_all(&byte).is_ok() {}
    });
    let begun_ns = now_ns();
    one.write_all(b"x")?;
    let (one, mut left) = (Rc::new(one), rounds);
    let reads = one.clone();
    let answered = Event::when_woken(0, move |_| {
        (&*reads).read_exact(&mut [0]).expect("it is ready");
        left -= 1;
        if left == 0 {
            return Step::Done;
        }
        (&*reads).write_all(b"x").expect("room");
        Step::Asleep
    });
    events.watch(Source::readable(one), answered)?;
    let _ = events.run();
    let ns = (now_ns() - begun_ns) / u64::from(rounds);
    echo.join().expect("no panic");
    Ok(ns)
}

/// The CPU time that a loop that is never idle spends on its looks, beside one without a file.
fn looks(make: Make, rounds: u32) -> io::Result<u64> {
    // A look each time that anything was called.
    let options = Options { look_ns: 0, ..Options::default() };
    let busy = |file: Option<UnixStream>| -> io::Result<u64> {
        let mut events = EventLoop::new(make()?, options);
        if let Some(file) = file {
            events.watch(Source::readable(file), Event::when_woken(0, |_| Step::Done))?;
        }
        let left = Rc::new(Cell::new(rounds));
        events.submit(Event::best_effort_in_steps(1, move |context| {
            left.set(left.get() - 1);
            if left.get() == 0 {
                context.stop();
            }
            Step::More(1)
        }));
        let begun_ns = own_cpu_ns();
        let _ = events.run();
        Ok((own_cpu_ns() - begun_ns) / u64::from(rounds))
    };
    let (file, _other) = UnixStream::pair()?;
    let without = busy(None)?;
    Ok(busy(Some(file))?.saturating_sub(without))
}

/// The CPU time to wait for a file, be told that it is ready, and wait for it no more.
fn adds(make: Make, rounds: u32) -> io::Result<u64> {
    let mut events = EventLoop::new(make()?, Options::default());
    let (file, mut other) = UnixStream::pair()?;
    other.write_all(b"x")?;
    let file = Rc::new(file);
    let begun_ns = own_cpu_ns();
    for _ in 0..rounds {
        events.watch(Source::readable(file.clone()), Event::when_woken(0, |_| Step::Done))?;
        let _ = events.run();
    }
    Ok((own_cpu_ns() - begun_ns) / u64::from(rounds))
}
