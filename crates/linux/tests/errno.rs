//! Tests that no function on a lock's path changes `errno`.

mod support;

use antiphon_linux::{Linux, park_begin, park_end};
use antiphon_platform::{
    Atomic, Budget, Clock, Deadline, Hint, Hints as _, LightUnlock as _, Parked, Platform,
    ThreadId, Topology as _,
};
use support::{Node, errno, set_errno};

/// Runs `f` and checks `errno`, in a fresh thread so that first uses are covered too.
fn kept(f: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(|| {
        set_errno(1234);
        f();
        assert_eq!(errno(), 1234);
    });
    thread.join().expect("errno is kept");
}

#[test]
fn errno_survives_everything() {
    kept(|| assert!((1..=1023).contains(&Linux::epoch())));
    kept(|| {
        let node = Node::take();
        for clock in [Clock::Monotonic, Clock::Realtime] {
            let past = Some(Deadline { clock, ns: 1 });
            assert_eq!(Linux::park(node.waiter, past), Parked::TimedOut);
        }
        Linux::unpark(node.reference());
        assert!(park_begin(node.waiter).is_none());
        assert!(park_begin(node.waiter).is_some() && !park_end(node.waiter));
        node.give();
    });
    kept(|| assert!(!Linux::alive(ThreadId(u32::MAX >> 1)) && Linux::alive(Linux::thread())));
    kept(|| assert!(Linux::random() != 0 && Linux::socket().0 < 1 << 16));
    kept(|| {
        Linux::hint(Hint::SpinBegin);
        let word = antiphon_linux::U8::ZERO;
        let spin =
            word.spin_while(std::sync::atomic::Ordering::Acquire, Budget::ns(50_000), |v| v == 0);
        assert_eq!((spin, Linux::crowded() || !Linux::crowded()), (Err(0), true));
        Linux::hint(Hint::SpinEnd);
    });
    kept(|| assert!(Linux::heavy_fence().is_ok() || !Linux::fenced()));
}
