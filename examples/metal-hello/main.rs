//! A program of your own on bare metal: a thread on each CPU, a lock, an event and messages, from
//! the same source as on Linux.
//!
//! `antiphon-lab metal --image examples/metal-hello` builds and boots it.
#![cfg_attr(antiphon_image, no_std, no_main)]

#[cfg(not(antiphon_image))]
fn main() {
    eprintln!("this is an image: `antiphon-lab metal --image examples/metal-hello` boots it");
    std::process::exit(2);
}

#[cfg(antiphon_image)]
mod image {
    extern crate alloc;

    use alloc::sync::Arc;
    use alloc::vec::Vec;
    use core::sync::atomic::AtomicU64;
    use core::sync::atomic::Ordering::Relaxed;

    use antiphon_metal::kernel::{cpu, thread};
    use antiphon_metal::x86::power::Outcome;
    use antiphon_metal::{Metal, println};
    use antiphon_runtime::message::{Actions, Mailbox, Message};
    use antiphon_sync::lock::ShflMutex;
    use antiphon_sync::wait::Event;

    antiphon_metal::program!(main);

    /// Held by a thread while it prints more than a line.
    static PRINTING: ShflMutex<Metal> = ShflMutex::NEW;

    fn main() -> Outcome {
        let cpus = u64::from(cpu::count());
        // The sum of the numbers that messages carry.
        let sum = Arc::new(AtomicU64::new(0));
        let added = sum.clone();
        let actions = Actions::<Metal>::new(1);
        let add = actions.register(move |[number, ..]| _ = added.fetch_add(number, Relaxed));
        let Ok(add) = add else { return Outcome::Failed };
        let mut mailbox = Mailbox::<Metal>::new(&actions, 64);

        let go = Arc::new(Event::<Metal>::NEW);
        let mut threads = Vec::new();
        for number in 0..cpu::count() {
            let (sender, go) = (mailbox.sender(), go.clone());
            let body = move || {
                go.wait();
                PRINTING.lock();
                println!("thread {number} runs on CPU {}", cpu::number());
                println!("  of node {}", cpu::this().node());
                // SAFETY: locked above.
                unsafe { PRINTING.unlock() };
                // The next thread may go.
                go.set();
                let message = Message { action: add, payload: [u64::from(number) + 1, 0, 0] };
                sender.post_wait(message, None).is_ok()
            };
            let Ok(thread) = thread::spawn_on(number, body) else { return Outcome::Failed };
            threads.push(thread);
        }
        go.set();
        let mut messages = 0;
        while messages < cpus {
            messages += u64::from(mailbox.wait(None).messages);
        }
        let posted = threads.into_iter().all(thread::JoinHandle::join);
        println!("sum={}", sum.load(Relaxed));
        let right = posted && sum.load(Relaxed) == cpus * (cpus + 1) / 2;
        if right { Outcome::Passed } else { Outcome::Failed }
    }
}
