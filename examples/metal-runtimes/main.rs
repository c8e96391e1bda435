//! Runtimes that are not of this tree, on bare metal and on Linux, beside our pool: chili and rayon
//! join the same tree of forks.
//!
//! | build | theirs | ours |
//! |---|---|---|
//! | image | the registry's files, on the modules of `std/` | `antiphon-runtime`, on `Metal` |
//! | Linux | the registry's crates, on Rust's `std` | `antiphon::pool` |
//!
//! Figures are of 1000 forks that are joined, the least of some rounds: in instructions or ticks in
//! the image, in nanoseconds on Linux. `n=N` (18 in the image, 26 on Linux) is the size of the
//! tree, `rounds=N` (9) their number. `.elsewhere` is how many leaves of one further tree ran on
//! another thread than its root. `beat_us=N` is how often a fork of our pool may become a task
//! in the image: every 10 µs, unless it is given; chili's beat is 100 µs.
#![cfg_attr(antiphon_image, no_std, no_main)]

#[cfg(antiphon_image)]
extern crate alloc;
#[cfg(antiphon_image)]
extern crate ported_chili as chili;
#[cfg(antiphon_image)]
extern crate ported_rayon_core as rayon_core;

#[cfg(antiphon_image)]
#[path = "../../apps/kernel/src/programs/blocks.rs"]
mod blocks;
#[path = "../../apps/kernel/src/programs/fibonacci.rs"]
mod fibonacci;
#[cfg(antiphon_image)]
#[path = "../../apps/kernel/src/programs/pool.rs"]
#[allow(dead_code, reason = "of tasks that are not forks, which this program has none of")]
mod pool;
#[cfg_attr(antiphon_image, path = "image.rs")]
#[cfg_attr(not(antiphon_image), path = "linux.rs")]
mod system;

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_metal::options::Options;

use fibonacci::{Counted, expected, fork_with};

/// The greatest `n`: each level takes some of a stack of 64 KiB.
const MOST: u64 = 30;
/// The most rounds.
const ROUNDS: usize = 64;

/// Measures, and prints the figures. `None`: an option is wrong; `false`: a result is.
fn measure(options: Options<'_>) -> Option<bool> {
    let n = options.number("n", system::SIZE).ok().filter(|&n| n <= MOST)? as u32;
    let rounds = options.number("rounds", 9).ok().filter(|&n| n <= ROUNDS as u64)?.max(1);
    let mut right = true;
    let mut print = |name: &str, part: &mut dyn FnMut() -> Counted| {
        let expected = expected(n);
        let mut took = [0; ROUNDS];
        let took = &mut took[..rounds as usize];
        // The first one is not timed: threads come up meanwhile.
        right &= part() == expected;
        for took in took.iter_mut() {
            let began = system::now();
            let counted = part();
            *took = (system::now() - began) * 1000 / expected.joins.max(1);
            right &= counted == expected;
        }
        let least = took.iter().copied().min().unwrap_or(0);
        system::print(&format_args!("{name}.per_1000={least}"));
        least
    };
    print("call", &mut || call(n));
    let (ours, one) = {
        let pool = system::Ours::start(system::workers(options))?;
        let ours = print("ours", &mut || pool.run(move || ours(n, system::pause)));
        let counted = pool.run(move || ours_noting(n));
        print_elsewhere("ours");
        (ours, counted)
    };
    system::share_cpus();
    let (theirs, other) = {
        let threads = chili::ThreadPool::with_config(chili::Config {
            thread_count: core::num::NonZero::new(system::workers(options)),
            ..chili::Config::default()
        });
        let mut scope = threads.scope();
        let chili = print("chili", &mut || theirs(&mut scope, n, system::pause));
        let counted = theirs(&mut scope, n, noting());
        print_elsewhere("chili");
        (chili, counted)
    };
    let (rayon, third) = {
        let threads = rayon_core::ThreadPoolBuilder::new().num_threads(system::workers(options));
        let threads = threads.build().ok()?;
        let rayon = print("rayon", &mut || threads.install(|| rayon(n, system::pause)));
        let counted = threads.install(|| rayon_noting(n));
        print_elsewhere("rayon");
        (rayon, counted)
    };
    for (name, figure) in [("chili", theirs), ("rayon", rayon)] {
        system::print(&format_args!("{name}.percent_of_ours={}", figure * 100 / ours.max(1)));
    }
    system::print_ports();
    Some(right && [one, other, third] == [expected(n); 3])
}

/// Prints how many leaves of the last tree ran elsewhere.
fn print_elsewhere(name: &str) {
    system::print(&format_args!("{name}.elsewhere={}", ELSEWHERE.swap(0, Relaxed)));
}

/// Without forks.
fn call(n: u32) -> Counted {
    fork_with(n, system::pause, |one, other| (call(one), call(other)))
}

/// By chili.
fn theirs(scope: &mut chili::Scope<'_>, n: u32, leaf: impl Leaf) -> Counted {
    fork_with(n, leaf, |one, other| {
        scope.join(|scope| theirs(scope, one, leaf), |scope| theirs(scope, other, leaf))
    })
}

/// By rayon.
fn rayon(n: u32, leaf: impl Leaf) -> Counted {
    fork_with(n, leaf, |one, other| rayon_core::join(|| rayon(one, leaf), || rayon(other, leaf)))
}

/// By rayon; its leaves are counted if they run on another thread than the caller.
fn rayon_noting(n: u32) -> Counted {
    rayon(n, noting())
}

/// By our pool.
fn ours(n: u32, leaf: impl Leaf) -> Counted {
    fork_with(n, leaf, |one, other| system::join(|| ours(one, leaf), || ours(other, leaf)))
}

/// What a leaf does.
trait Leaf: Fn() + Copy + Send + Sync {}

impl<F: Fn() + Copy + Send + Sync> Leaf for F {}

/// By our pool; its leaves are counted if they run on another thread than the caller.
fn ours_noting(n: u32) -> Counted {
    ours(n, noting())
}

/// Leaves that ran on another thread than the root of their tree.
static ELSEWHERE: AtomicU64 = AtomicU64::new(0);

/// A leaf that counts itself if it runs on another thread than the caller.
fn noting() -> impl Leaf + 'static {
    let home = system::thread();
    move || {
        // Relaxed: a number; the joins order it.
        ELSEWHERE.fetch_add(u64::from(system::thread() != home), Relaxed);
        system::pause();
    }
}

#[cfg(not(antiphon_image))]
fn main() {
    system::main();
}
