//! Tests of members of a domain that the kernel schedules by weights. If the process may not raise
//! its weight, each test prints that and is skipped.

use std::sync::Barrier;
use std::thread;

use antiphon_coop::{
    Answer, Ask, Clock, Cooperate, Domain, DomainOptions, Group, JoinError, WEIGHT, Weighted,
};
use antiphon_linux::Linux;
use antiphon_linux::{allowed, schedule};
use antiphon_platform::{Clocks as _, ThreadId};

const MS: u64 = 1_000_000;

fn now() -> u64 {
    Linux::now(Clock::Monotonic)
}

fn nice() -> i32 {
    schedule::nice(ThreadId(0)).expect("one may ask")
}

fn domain() -> Domain {
    let cpu = *allowed().last().expect("it runs somewhere");
    Domain::private(DomainOptions::on(cpu)).expect("there is memory for it")
}

fn join(domain: &Domain, group: Group) -> Option<Weighted> {
    match domain.weigh(group, WEIGHT) {
        Ok(member) => Some(member),
        Err(error @ JoinError::Weight(_)) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn poll(member: &mut Weighted, importance: Option<u64>, release_ns: Option<u64>) -> Answer {
    member.poll(Ask { release_ns, importance }, &mut |_| ())
}

/// Works on frames that cost `cost_ns` of CPU time each, until `until_ns`: the fewer frames it has,
/// the more important it is.
fn frames(member: &mut Weighted, cost_ns: u64, until_ns: u64) -> u64 {
    let begun_ns = schedule::own_cpu_ns();
    let mut done = 0;
    while now() < until_ns {
        poll(member, Some(done), None);
        let step = schedule::own_cpu_ns() + 500_000;
        while schedule::own_cpu_ns() < step && now() < until_ns {
            std::hint::spin_loop();
        }
        done = (schedule::own_cpu_ns() - begun_ns) / cost_ns;
    }
    done
}

#[test]
fn whose_frames_cost_more_has_more_of_the_cpu() {
    let domain = domain();
    if join(&domain, Group::Own).is_none() {
        return;
    }
    let ready = Barrier::new(2);
    let play = |cost_ns| {
        let mut member = join(&domain, Group::Number(1)).expect("as above");
        ready.wait();
        frames(&mut member, cost_ns, now() + 2_000 * MS)
    };
    let done = thread::scope(|scope| {
        let players = [2 * MS, 6 * MS].map(|cost_ns| {
            let play = &play;
            scope.spawn(move || play(cost_ns))
        });
        players.map(|player| player.join().expect("no panic"))
    });
    // Under the kernel's scheduler alone the first would have three times as many frames.
    let [cheap, dear] = done;
    assert!(dear > 0 && cheap * 2 <= dear * 3, "{done:?}");
}

/// Runs `what` while there is another member, of group 1, that is more important than 9.
fn beside_another(domain: &Domain, what: impl FnOnce()) {
    let (ready, done) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = join(domain, Group::Number(1)).expect("as the first");
            poll(&mut other, Some(7), Some(u64::MAX / 2));
            ready.wait();
            done.wait();
        });
        ready.wait();
        what();
        done.wait();
    });
}

#[test]
fn who_leaves_weighs_what_it_did() {
    let domain = domain();
    let before = nice();
    let Some(mut member) = join(&domain, Group::Number(1)) else { return };
    assert_eq!(nice(), before, "alone it has what it had");
    beside_another(&domain, || {
        let answer = poll(&mut member, Some(9), None);
        assert_eq!((answer.release_ns, answer.importance), (Some(u64::MAX / 2), None));
        assert!(nice() > before, "the other is more important");
    });
    drop(member);
    assert_eq!(nice(), before);
}

#[test]
fn who_joins_anew_steps_from_what_it_weighed_at_first() {
    let domain = domain();
    let before = nice();
    let Some(mut member) = join(&domain, Group::Number(1)) else { return };
    beside_another(&domain, || {
        poll(&mut member, Some(9), None);
        let stepped = nice();
        assert!(stepped > before);
        let mut anew = join(&domain, Group::Number(1)).expect("as before");
        assert_eq!(nice(), stepped);
        drop(std::mem::replace(&mut member, anew));
        assert_eq!(nice(), before);
        anew = join(&domain, Group::Number(1)).expect("as before");
        poll(&mut anew, Some(9), None);
        assert_eq!(nice(), stepped);
    });
    drop(member);
    assert_eq!(nice(), before);
}
