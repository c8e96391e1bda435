use super::*;
use crate::bench::events::cases::{Cases, Wanted};
use crate::bench::neighbours::Load;

fn order(subject: &str, case: &str) -> Order {
    let Ok(Cases(wanted)) = case.parse() else { panic!("{case} is a case") };
    let Wanted { case, waiters } = wanted[0];
    let cell = Cell { load: Load::Idle, case, gap_us: 1, waiters, target: None };
    let ticks = Ticks::calibrate();
    Order { subject: subject.to_owned(), cell, trials: 15, seconds: 10.0, ticks }
}

fn figures(subject: &str, case: &str) -> Option<Figures> {
    match measure(&order(subject, case)) {
        Ok(Outcome::Figures(figures)) => Some(figures),
        // This case does not exist on a machine with one CPU.
        Ok(Outcome::Missing(_)) if pinned::usable().len() < 2 => None,
        other => panic!("{subject}, {case}: {other:?}"),
    }
}

#[test]
fn each_trial_has_a_latency_and_a_cost() {
    for (subject, case) in [("spin", "parked"), ("futex", "parked"), ("eventfd", "busy-target")] {
        let Some(figures) = figures(subject, case) else { return };
        // Fewer trials than asked for, if the machine is so busy that the time is up before.
        let made = figures.latency_ns.len();
        assert!((1..=15).contains(&made) && made == figures.sender_ns.len(), "{subject}: {made}");
        assert!(figures.sender_ns.iter().all(|&ns| ns >= 0.0));
        assert!(figures.cpu_ns_per_event.is_some_and(|ns| ns > 0.0));
    }
}

#[test]
fn who_sleeps_is_told_from_who_spins() {
    let slept = |subject| figures(subject, "parked").and_then(|one| one.sleeps_per_event);
    let (Some(futex), Some(spin)) = (slept("futex"), slept("spin")) else { return };
    assert!(futex > 0.5 && spin < 0.5, "{futex} {spin}");
}

#[test]
fn a_broadcast_has_as_many_arrivals_as_waiters() {
    let Some(one) = figures("std", "broadcast-1") else { return };
    assert!(one.sigma_ns.iter().all(|&ns| ns == 0.0), "one arrival is not spread");
    let Some(four) = figures("serial-futex", "broadcast-4") else { return };
    assert!(four.sigma_ns.iter().any(|&ns| ns > 0.0));
}

#[test]
fn the_machine_has_figures_of_its_own() {
    let Some(noise) = figures("machine", "noise") else { return };
    assert!(noise.latency_ns.iter().all(|&ns| ns > 0.0) && noise.cpu_ns_per_event.is_none());
    let Some(clock) = figures("machine", "clock") else { return };
    let half = clock.latency_ns.iter().copied().fold(f64::MAX, f64::min);
    // The bounds of the two directions may come from different trials, so their sum may be less
    // than a round trip.
    assert!(clock.clock.is_some_and(|(_, doubt)| doubt <= half + 1e-6), "{clock:?}");
}

#[test]
fn the_sender_is_on_another_cpu_than_the_target() {
    let usable = pinned::usable();
    assert_eq!(places(None), usable);
    let [first, second, ..] = usable[..] else { return };
    for target in [first, second] {
        let cpu = pinned::number(target).expect("a CPU that may be used");
        let places = places(Some(cpu as usize));
        assert_eq!((places[0], places[1]), (first + second - target, target));
        assert_eq!(places.len(), usable.len());
    }
}

#[test]
fn what_can_not_be_asked_is_told_apart_from_what_is_not_known() {
    if pinned::usable().len() < 2 {
        return;
    }
    for (subject, case) in [("spin", "broadcast-2"), ("serial-futex", "parked")] {
        let outcome = measure(&order(subject, case));
        assert!(
            matches!(&outcome, Ok(Outcome::Missing(why)) if why.contains("tells")),
            "{outcome:?}"
        );
    }
    assert!(measure(&order("smoke", "parked")).is_err());
}

#[test]
fn a_repetition_ends_when_its_time_is_up() {
    let Some(_) = figures("spin", "parked") else { return };
    let order = Order { seconds: 0.0, trials: 1_000_000, ..order("spin", "parked") };
    let Ok(Outcome::Figures(figures)) = measure(&order) else { panic!("no figures") };
    assert_eq!(figures.latency_ns.len(), 1);
}
