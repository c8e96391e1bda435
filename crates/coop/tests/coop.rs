//! Tests of processes that share a CPU: shares, processes that are killed, stopped, or lie, a
//! restart, and users that may not take part. Without the usual harness, because a process that
//! forks must have one thread.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../shared/tests/processes/mod.rs"]
mod processes;

use std::fs::{self, File};
use std::iter;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_coop::{
    Answer, Ask, Cooperate as _, Demotion, Domain, DomainOptions, Group, JoinError, MemberStatus,
    Membership, OpenError, Options, Standing, WEIGHT,
};

use antiphon_runtime::coop::PAGE_BYTES;
use processes::{LONG, child, exits_well, kill};

/// The memory that the processes of a case share.
#[repr(C)]
struct Common {
    stop: AtomicU32,
    players: [Player; 8],
}

/// The counts of one process.
#[repr(C)]
#[derive(Default)]
struct Player {
    chunks: AtomicU64,
    timers: AtomicU64,
    cpu_ns: AtomicU64,
}

const FRAME_NS: u64 = 16_666_667;

fn main() {
    let cases: [(&str, fn()); 13] = [
        // First, because the other cases stay on one CPU.
        ("who_may_run_on_several_cpus_joins_where_there_is_room", several),
        ("players_share_a_cpu_and_all_their_timers_fire", players_share),
        ("who_is_killed_is_forgotten", killed),
        ("who_is_stopped_is_not_waited_for", stopped),
        ("who_is_always_due_has_its_share", liar),
        ("whatever_is_scribbled_members_get_on", scribbled),
        ("a_restart_finds_nothing", restart),
        ("who_has_closed_its_files_joins_again", closed),
        ("another_user_has_no_part", strangers),
        ("another_version_is_refused", versions),
        ("a_child_of_a_fork_is_no_member", forked),
        ("a_name_is_a_name", names),
        ("a_private_domain_is_of_who_inherits_it_and_leaves_no_file", private),
    ];
    let runtime = std::env::temp_dir().join(format!("antiphon-coop-{}", std::process::id()));
    fs::create_dir(&runtime).expect("a directory of our own");
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).expect("ours");
    // SAFETY: the process has one thread.
    unsafe { std::env::set_var("XDG_RUNTIME_DIR", &runtime) };
    let wanted = std::env::args().nth(1).filter(|word| !word.starts_with('-'));
    for (name, case) in cases {
        if wanted.as_ref().is_none_or(|wanted| name.contains(wanted.as_str())) {
            let begun = Instant::now();
            case();
            println!("test {name} ... ok ({:.1} s)", begun.elapsed().as_secs_f64());
        }
    }
    fs::remove_dir_all(&runtime).expect("it was there");
}

fn common() -> &'static Common {
    // SAFETY: all zero is a valid value, and it consists of atomics.
    unsafe { processes::map() }
}

fn open(name: &str) -> Domain {
    Domain::open(name, on()).expect("a domain")
}

/// Returns options for a CPU that we may use.
fn on() -> DomainOptions {
    DomainOptions::on(antiphon_linux::allowed()[0])
}

fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours to write.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn cpu_ns() -> u64 {
    antiphon_linux::cpu_time_ns()
}

fn wait(until_ns: Option<u64>) {
    if let Some(ns) = until_ns {
        thread::sleep(Duration::from_nanos(ns.saturating_sub(now_ns())));
    }
}

fn spin(ns: u64) {
    let end = cpu_ns() + ns;
    while cpu_ns() < end {}
}

/// Runs a saturating player until it is told to stop: work in pieces of 250 µs, 60 frames a second.
fn play(member: &mut Membership, me: &Player, stop: &AtomicU32) -> bool {
    let (mut release, before) = (now_ns() + FRAME_NS, cpu_ns());
    while stop.load(Relaxed) == 0 {
        while release <= now_ns() {
            me.timers.fetch_add(1, Relaxed);
            release += FRAME_NS;
        }
        spin(250_000);
        let done = me.chunks.fetch_add(1, Relaxed);
        let ask = Ask { release_ns: Some(release), importance: Some(done) };
        let _: Answer = member.poll(ask, &mut wait);
        me.cpu_ns.store(cpu_ns() - before, Relaxed);
    }
    true
}

/// Starts players, each in its own process.
fn players(name: &'static str, common: &'static Common, count: usize) -> Vec<libc::pid_t> {
    let player = |me: &'static Player| {
        child(move || {
            // Otherwise the players would play for ever when a case fails.
            antiphon_linux::end_with_parent();
            let mut member = open(name).join(Group::Own, WEIGHT).expect("a place");
            play(&mut member, me, &common.stop)
        })
    };
    common.players[..count].iter().map(player).collect()
}

/// Waits until each player has done `chunks` more pieces of work.
#[track_caller]
fn go_on(players: &[&Player], chunks: u64) {
    let had: Vec<_> = players.iter().map(|player| player.chunks.load(Relaxed)).collect();
    let begun = Instant::now();
    while players.iter().zip(&had).any(|(player, had)| player.chunks.load(Relaxed) < had + chunks) {
        assert!(begun.elapsed() < LONG, "a member does not get on");
        thread::sleep(Duration::from_millis(5));
    }
}

fn end(common: &Common, children: Vec<libc::pid_t>) {
    common.stop.store(1, Relaxed);
    assert!(children.into_iter().all(exits_well));
}

fn signal(process: libc::pid_t, signal: libc::c_int) {
    // SAFETY: our child, which was not waited for yet.
    assert_eq!(unsafe { libc::kill(process, signal) }, 0);
}

fn players_share() {
    let common = common();
    let domain = open("share");
    let children = players("share", common, 8);
    go_on(&common.players.each_ref(), 20);
    let (began_ns, fired) = (now_ns(), timers(common));
    share_alike(common, &[0, 1, 2, 3, 4, 5, 6, 7], 1_500_000_000, 0.9);
    // Each timer that was due meanwhile, except those of its last turn.
    let due = (now_ns() - began_ns) / FRAME_NS;
    go_on(&common.players.each_ref(), 2);
    let turns = domain.turns();
    for (player, (after, before)) in timers(common).into_iter().zip(fired).enumerate() {
        assert!(after - before + 1 >= due, "of player {player} {after} - {before} of {due}");
    }
    end(common, children);
    assert!(turns > 100, "they took {turns} turns");
    assert_eq!((domain.members(), domain.died()), (vec![], 0));
}

fn timers(common: &Common) -> [u64; 8] {
    common.players.each_ref().map(|player| player.timers.load(Relaxed))
}

/// Returns the CPU time of each player when all together have had `together_ns`; how long that
/// takes depends on the machine.
#[track_caller]
fn have(common: &Common, together_ns: u64) -> [u64; 8] {
    let cpu = || common.players.each_ref().map(|player| player.cpu_ns.load(Relaxed));
    let (before, begun) = (cpu(), Instant::now());
    loop {
        let mut had = cpu();
        had.iter_mut().zip(before).for_each(|(had, before)| *had -= before);
        if had.iter().sum::<u64>() >= together_ns {
            return had;
        }
        assert!(begun.elapsed() < 10 * LONG, "the members do not get on");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until these players have equal parts of that much CPU time, by their own clocks: Jain's
/// index is at least `least`. That takes a while if the machine has run only some of them.
#[track_caller]
fn share_alike(common: &Common, players: &[usize], together_ns: u64, least: f64) {
    let jain = || {
        let all = have(common, together_ns);
        let had: Vec<_> = players.iter().map(|&player| all[player] as f64).collect();
        let squares = had.iter().map(|had| had * had).sum::<f64>();
        had.iter().sum::<f64>().powi(2) / (had.len() as f64 * squares)
    };
    let seen: Vec<_> = iter::repeat_with(jain).take(4).take_while(|&jain| jain < least).collect();
    assert!(seen.len() < 4, "Jain {seen:?} of {players:?}");
}

fn killed() {
    let common = common();
    let domain = open("killed");
    let mut children = players("killed", common, 4);
    go_on(&common.players.each_ref()[..4], 10);
    for _ in 0..2 {
        kill(children.pop().expect("a player"));
        let left: Vec<_> = common.players[..children.len()].iter().collect();
        go_on(&left, 40);
    }
    let begun = Instant::now();
    while domain.died() < 2 {
        assert!(begun.elapsed() < LONG, "the dead were not found");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(domain.members().len(), 2);
    // The remaining members share as if the others had never existed.
    share_alike(common, &[0, 1], 400_000_000, 0.8);
    // One member returns.
    let again = child(|| {
        let mut member = open("killed").join(Group::Own, WEIGHT).expect("a place");
        play(&mut member, &common.players[7], &common.stop)
    });
    go_on(&[&common.players[0], &common.players[7]], 40);
    share_alike(common, &[0, 1, 7], 600_000_000, 0.8);
    children.push(again);
    end(common, children);
}

fn stopped() {
    let common = common();
    let domain = open("stopped");
    let children = players("stopped", common, 3);
    go_on(&common.players.each_ref()[..3], 10);
    for _ in 0..3 {
        signal(children[0], libc::SIGSTOP);
        go_on(&[&common.players[1], &common.players[2]], 60);
        share_alike(common, &[1, 2], 300_000_000, 0.8);
        signal(children[0], libc::SIGCONT);
        go_on(&common.players.each_ref()[..3], 20);
        is_cooperative(&domain, children[0]);
        // It does not catch up on missed time.
        share_alike(common, &[0, 1, 2], 450_000_000, 0.8);
    }
    assert_eq!(domain.died(), 0);
    end(common, children);
}

/// Waits until that process is timely again, like other members.
#[track_caller]
fn is_cooperative(domain: &Domain, process: libc::pid_t) {
    let begun = Instant::now();
    let is_so = |member: &MemberStatus| {
        member.thread == process.cast_unsigned() && member.standing == Standing::Cooperative
    };
    while !domain.members().iter().any(is_so) {
        assert!(begun.elapsed() < LONG, "{:?}", domain.members());
        thread::sleep(Duration::from_millis(1));
    }
}

/// Runs a player that claims each time to have a timer now and the most important work.
fn liar() {
    let common = common();
    let mut children = players("liar", common, 2);
    let liar = &common.players[2];
    children.push(child(|| {
        let mut member = open("liar").join(Group::Own, WEIGHT).expect("a place");
        let before = cpu_ns();
        while common.stop.load(Relaxed) == 0 {
            spin(250_000);
            liar.chunks.fetch_add(1, Relaxed);
            member.poll(Ask { release_ns: Some(now_ns()), importance: Some(0) }, &mut wait);
            liar.cpu_ns.store(cpu_ns() - before, Relaxed);
        }
        true
    }));
    go_on(&common.players.each_ref()[..3], 20);
    let [one, other, liar, ..] = have(common, 1_000_000_000);
    end(common, children);
    let most = one.min(other) * 3 / 2 + 100_000_000;
    assert!(liar <= most, "the liar had {liar} ns, the others {one} and {other}");
}

fn several() {
    let cpus = antiphon_linux::allowed();
    let [one, other, ..] = cpus[..] else {
        println!("skipped: there is one CPU");
        return;
    };
    let lightest = || {
        let options = Options::default();
        Domain::open_lightest("several", &[one, other], options).expect("domains")
    };
    // The file exists while it is used, and members stay on their CPUs.
    let fine = exits_well(child(|| {
        let first = lightest();
        let place = first.join(Group::Own, WEIGHT);
        let second = lightest();
        let stranger = child(|| {
            let place = lightest().join(Group::Own, 2 * WEIGHT);
            let fine = place.is_ok();
            // Ends like a killed process.
            std::mem::forget(place);
            fine
        });
        let came = exits_well(stranger);
        let third = lightest();
        drop(place);
        let fourth = lightest();
        let places = [&first, &second, &third, &fourth].map(Domain::cpu);
        came && places == [one, other, other, one]
    }));
    assert!(fine, "it was not where there is room");
}

/// Tests words that a lying member may leave: single ones, and finally all of them.
fn scribbled() {
    let common = common();
    let domain = open("scribbled");
    let children = players("scribbled", common, 3);
    let all: Vec<_> = common.players[..3].iter().collect();
    go_on(&all, 10);
    let file = File::options().write(true).open(file_of("scribbled")).expect("it is ours");
    let mut seed = u64::from(std::process::id());
    let mut lot = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let words = [0, u64::MAX, 1, u64::MAX >> 1, 1 << 31];
    let mut scribble = |at: u64| {
        let word = words.get(lot(8) as usize).copied().unwrap_or(lot(u64::MAX));
        file.write_all_at(&word.to_le_bytes(), at).expect("room");
    };
    // The header then says that there is no member.
    file.write_all_at(&[0; 4], 12).expect("room");
    go_on(&all, 10);
    // The current turn, and the lines of the three members and of a missing one.
    for at in (64..384).step_by(8) {
        scribble(at);
        go_on(&all, 2);
    }
    for _ in 0..10 {
        (8..PAGE_BYTES as u64 / 8).for_each(|word| scribble(word * 8));
        go_on(&all, 5);
    }
    assert!(domain.members().len() >= 3);
    end(common, children);
}

fn restart() {
    let common = common();
    let mut children = players("restart", common, 2);
    go_on(&common.players.each_ref()[..2], 10);
    while let Some(player) = children.pop() {
        kill(player);
    }
    let domain = open("restart");
    assert_eq!((domain.turns(), domain.members(), domain.died()), (0, vec![], 0));
    let children = players("restart", common, 2);
    go_on(&common.players.each_ref()[..2], 10);
    end(common, children);
}

/// Daemons close all files that they do not know, and lose the lock with the domain's file.
fn closed() {
    let common = common();
    let me = &common.players[0];
    let player = child(|| {
        // Never dropped: another file may have its number by then.
        let member = open("closed").join(Group::Own, WEIGHT).expect("a place");
        let mut member = ManuallyDrop::new(member);
        // SAFETY: only the domain uses a file here, and it no longer uses its own.
        assert_eq!(unsafe { libc::close_range(3, u32::MAX, 0) }, 0);
        while common.stop.load(Relaxed) == 0 {
            let _: Answer = member.poll(Ask { release_ns: None, importance: Some(0) }, &mut |_| ());
            me.chunks.fetch_add(1, Relaxed);
        }
        true
    });
    go_on(&[me], 5);
    for _ in 0..500 {
        // No process has a lock: each call initialises the file again.
        drop(open("closed"));
    }
    go_on(&[me], 5);
    let domain = open("closed");
    let begun = Instant::now();
    while domain.members().is_empty() {
        assert!(begun.elapsed() < LONG, "it does not join again");
        thread::sleep(Duration::from_millis(5));
    }
    end(common, vec![player]);
}

fn file_of(name: &str) -> PathBuf {
    let runtime = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR").expect("set by `main`"));
    runtime.join("antiphon").join(format!("{name}.{}", on().cpu))
}

/// Only root can be another user.
fn strangers() {
    const NOBODY: libc::uid_t = 65_534;
    let domain = open("strangers");
    let _member = domain.join(Group::Own, WEIGHT).expect("a place");
    let file = file_of("strangers");
    let mode = |path: &PathBuf| fs::metadata(path).expect("it is there").permissions().mode();
    assert_eq!(mode(&file) & 0o777, 0o600);
    assert_eq!(mode(&file.parent().expect("it has one").to_owned()) & 0o777, 0o700);
    // If there is no room for the file, opening it fails, without a SIGBUS.
    let opened = File::open(&file).expect("it is ours");
    // SAFETY: an open file.
    let hole = unsafe { libc::lseek(opened.as_raw_fd(), 0, libc::SEEK_HOLE) };
    assert_eq!(hole, PAGE_BYTES as libc::off_t);
    // SAFETY: takes no arguments.
    if unsafe { libc::geteuid() } != 0 {
        println!("another user: not looked at, since only root can be one");
        return;
    }
    let fine = exits_well(child(|| {
        // SAFETY: takes a number; the child is one thread.
        assert_eq!(unsafe { libc::setuid(NOBODY) }, 0);
        let theirs = File::options().read(true).write(true).open(&file);
        // Another domain, if any: `/dev/shm` may be missing.
        let ours = Domain::open("strangers", on());
        let apart = ours.is_ok_and(|domain| domain.members().is_empty() && domain.turns() == 0);
        let _ = fs::remove_dir_all(format!("/dev/shm/antiphon-{NOBODY}"));
        theirs.is_err() && apart
    }));
    assert!(fine, "another user has a part in it");
}

fn versions() {
    let domain = open("versions");
    let file = File::options().write(true).open(file_of("versions")).expect("it is ours");
    file.write_all_at(&9_u32.to_le_bytes(), 8).expect("room");
    match Domain::open("versions", on()) {
        Err(error @ OpenError::Version { found: 9, .. }) => {
            assert!(error.to_string().contains("version 9"));
        }
        other => panic!("{other:?}"),
    }
    // The content of a file that no process uses is overwritten.
    drop(domain);
    file.set_len(100).expect("it is ours");
    drop(file);
    assert_eq!(open("versions").turns(), 0);
}

fn forked() {
    let domain = open("forked");
    let mut member = Some(domain.join(Group::Own, WEIGHT).expect("a place"));
    let member = &mut member;
    let ask = Ask { release_ns: None, importance: Some(7) };
    let _: Option<Answer> = member.as_mut().map(|member| member.poll(ask, &mut wait));
    let fine = exits_well(child(|| {
        let Some(mut copy) = member.take() else { return false };
        let answer = copy.poll(ask, &mut wait);
        let no_member = answer == Answer::default() && copy.status().is_none();
        drop(copy);
        no_member && domain.join(Group::Own, WEIGHT).err() == Some(JoinError::Forked)
    }));
    assert!(fine);
    assert_eq!(domain.members().len(), 1, "the parent still is one");
    assert_eq!(domain.members()[0].demotions.len(), Demotion::ALL.len());
}

fn private() {
    let directory =
        PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR").expect("set")).join("antiphon");
    let files = || fs::read_dir(&directory).map_or(0, Iterator::count);
    let before = files();
    let schedule = Options { period_ns: 7_000_000, ..Options::default() };
    let options = DomainOptions { schedule, ..DomainOptions::default() };
    let domain = Domain::private(options).expect("memory");
    let other = Domain::private(options).expect("memory");
    let name = domain.private_name().expect("it is private");
    assert_eq!(files(), before);
    let _member = domain.join(Group::Own, WEIGHT).expect("it is empty");
    let inherits = child(|| {
        // With any options: the domain exists already.
        let again = Domain::open(&name, DomainOptions::on(options.cpu)).expect("inherited");
        assert_eq!((again.members().len(), again.options()), (1, schedule));
        let _member = again.join(Group::Own, WEIGHT).expect("there is room");
        again.members().len() == 2
    });
    exits_well(inherits);
    assert_eq!((domain.members().len(), other.members().len(), files()), (1, 0, before));
    drop(other);
    for none in ["/proc/self/fd/0", "/proc/self/fd/99999"] {
        let refused = Domain::open(none, options);
        assert!(matches!(refused, Err(OpenError::File(..))), "{none}: {refused:?}");
    }
}

fn names() {
    for name in ["", "a/b", "..", "ä", &"a".repeat(65)] {
        assert!(matches!(Domain::open(name, on()), Err(OpenError::Name)), "{name}");
    }
    let nowhere = DomainOptions::on(1 << 20);
    let domain = Domain::open("nowhere", nowhere).expect("a domain");
    assert_eq!(domain.join(Group::Own, WEIGHT).err(), Some(JoinError::Cpu(1 << 20)));
}
