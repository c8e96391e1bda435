//! Tests of machine files: their meaning, their errors, and that shipped files don't change
//! unnoticed.

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use antiphon_platform::{Atomic, AtomicInteger, Atomics};
use antiphon_sim::{
    Description, Kind, Level, Link, Machine, OwnLine, PRESETS, Sim, Simulation, Topology, Unit,
    known, now, work,
};
use std::sync::atomic::Ordering::Relaxed;

/// A machine of two nodes of two cores.
pub const SMALL: &str = include_str!("small.toml");

fn small() -> Description {
    Description::parse(SMALL).expect("it is sound")
}

#[test]
fn each_machine_is_sound_and_as_it_was_frozen() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    let names: BTreeSet<String> = PRESETS.iter().map(|preset| preset.name.to_owned()).collect();
    assert_eq!(files, names, "each file is a preset, and each preset there once");
    assert_eq!(names.len(), PRESETS.len());
    let frozen = include_str!("../../machines/FROZEN");
    let frozen: Vec<&str> = frozen.lines().filter(|line| !line.starts_with('#')).collect();
    let mut found = Vec::new();
    for preset in PRESETS {
        let read = Description::parse(preset.text);
        let described = read.unwrap_or_else(|wrong| panic!("{}.toml: {wrong}", preset.name));
        assert_eq!(described.machine.name, preset.name);
        assert!(described.numbers.iter().all(|number| !number.source.is_empty()));
        found.push(format!("{:016x}  {}", described.hash, preset.name));
    }
    assert_eq!(found, frozen, "a machine has changed: see the head of machines/FROZEN");
    assert!(known("8s-193c").is_none());
}

#[test]
fn machines_have_the_cpus_that_their_names_say() {
    let shape = |name: &str| {
        let machine = &known(name).expect("a preset").machine;
        (machine.topology.nodes(), machine.cores())
    };
    let expected = [
        ("8s-192c", (8, 192)),
        ("8s-120c", (8, 120)),
        ("opteron-64c", (8, 64)),
        ("phi-228t", (1, 228)),
        ("nemo-64c", (8, 64)),
        ("nemo-228t", (1, 228)),
        ("epyc-2x64c", (2, 128)),
        ("e7-8895v3-4s", (4, 144)),
        ("gold-5320-2s", (2, 104)),
        ("epyc-9754-2s", (2, 512)),
        ("xeon-2s", (2, 28)),
        ("cascade-2s", (2, 64)),
        ("milan-2s", (2, 256)),
        ("emerald-2s", (2, 128)),
        ("cloud-4s-128v", (4, 128)),
        ("ladder-64c", (8, 64)),
        ("numa-1024c", (16, 1024)),
        ("pe-laptop", (1, 20)),
    ];
    assert_eq!(expected.len(), PRESETS.len());
    for (name, expected) in expected {
        assert_eq!(shape(name), expected, "{name}");
    }
}

/// Distances from the tables against the definition: the innermost level of which both are in one
/// unit, and at the last one the hops between what is below it.
#[test]
fn tables_say_what_the_levels_say() {
    for preset in PRESETS {
        let topology = &known(preset.name).expect("a preset").machine.topology;
        let levels = topology.levels();
        let step = (topology.cpus() as usize / 97).max(1);
        for from in (0..topology.cpus()).step_by(step) {
            for to in (0..topology.cpus()).filter(|&to| to != from) {
                let unit = |level: &Level, cpu: u32| level.units[cpu as usize];
                let same = |level: &Level| unit(level, from) == unit(level, to);
                let meet = levels.iter().position(same).expect("one machine");
                let hops = if meet + 1 < levels.len() || topology.hops().is_empty() {
                    1
                } else {
                    let below = &levels[meet - 1];
                    topology.hops()[unit(below, from) as usize][unit(below, to) as usize]
                };
                let class = &topology.classes()[topology.class(from, to)];
                let seen = (class.level, class.hops, topology.transfer_ns(from, to));
                let ns = levels[meet].transfer_ns[hops as usize - 1];
                assert_eq!(seen, (meet, hops, ns), "{}: {from} to {to}", preset.name);
                assert_eq!(class, &topology.classes()[topology.class(to, from)]);
            }
        }
    }
}

#[test]
fn memory_and_caches_are_found_by_cpu() {
    let epyc = &known("epyc-2x64c").expect("a preset").machine.topology;
    assert_eq!((epyc.caches(), epyc.cache_of(3), epyc.cache_of(4)), (32, 0, 1));
    assert_eq!(
        (epyc.memory_ns(0, 0), epyc.memory_ns(5, 1), epyc.memory_ns(64, 1)),
        (105, 186, 105)
    );
    assert_eq!((epyc.between_caches_ns(0, 1), epyc.between_caches_ns(0, 31)), (186, 267));
    assert_eq!((epyc.transfer_ns(0, 3), epyc.inclusive()), (25, false));
    let eight = &known("8s-192c").expect("a preset").machine.topology;
    assert_eq!((eight.transfer_ns(0, 24), eight.transfer_ns(0, 48)), (130, 195));
    assert_eq!((eight.memory_ns(0, 4), eight.memory_ns(0, 5)), (175, 240));
    let phi = &known("phi-228t").expect("a preset").machine.topology;
    assert_eq!((phi.caches(), phi.cache_ns(), phi.cache_of(7)), (57, None, 1));
    let laptop = &known("pe-laptop").expect("a preset").machine.topology;
    assert_eq!(laptop.siblings(3).collect::<Vec<_>>(), [2]);
    assert_eq!(laptop.siblings(15).count(), 0);
    assert_eq!((laptop.work_ns(0, 1_000), laptop.work_ns(12, 1_000)), (1_000, 1_700));
    // One thread a core first, whatever the core.
    let places: Vec<u32> = (0..21).map(|thread| laptop.place(thread)).collect();
    assert_eq!(places[..7], [0, 2, 4, 6, 8, 10, 12]);
    assert_eq!(places[13..], [19, 1, 3, 5, 7, 9, 11, 0]);
}

#[test]
fn a_number_keeps_its_source_and_its_line() {
    let described = small();
    let slice = described.numbers.iter().find(|number| number.name == "os.slice").expect("there");
    let line = SMALL.lines().position(|line| line.starts_with("slice")).expect("there") + 1;
    let seen = (slice.value, slice.kind, slice.source.as_str(), slice.line);
    assert_eq!(seen, (2_000_000.0, Kind::Recalled, "of a slice", line));
    assert_eq!(described.machine.slice_ns, 2_000_000);
    // 1.8 in the file; the simulator's nanoseconds are whole.
    assert_eq!(described.machine.hit_ns, 2);
    let kinds: usize = Kind::ALL.into_iter().map(|kind| described.count(kind)).sum();
    assert_eq!(kinds, described.numbers.len());
}

/// The error in a file in which `from` has become `to`, and its line.
pub fn wrong(from: &str, to: &str) -> (String, String) {
    assert!(SMALL.contains(from), "{from}");
    let text = SMALL.replacen(from, to, 1);
    let wrong = Description::parse(&text).expect_err(to);
    let line = text.lines().nth(wrong.line - 1).expect("a line of the file").to_owned();
    assert!(!wrong.what.contains('\n') && wrong.of(Path::new("m.toml")).starts_with("m.toml:"));
    (line, wrong.what)
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_what_would_be_right() {
    let check = |from: &str, to: &str, at: &str, words: &str| {
        let (line, what) = wrong(from, to);
        assert!(line.contains(at), "{to}: line {line:?}, {what}");
        assert!(what.contains(words), "{to}: {what}");
    };
    let bare = "switch = 700";
    let switch = "switch = { ns = 700, estimated = \"of a switch\" }";
    check(switch, bare, "switch", "number with its source, like { ns = 45, measured");
    check(switch, "switch = { ns = 700 }", "switch", "has no source: it needs one of measured");
    check(switch, "switch = { ns = 1, measured = \"\" }", "switch", "is empty");
    check(
        switch,
        "switch = { ns = 1, guessed = \"x\" }",
        "switch",
        "unknown key guessed in os.switch",
    );
    let two = "switch = { ns = 1, measured = \"x\", recalled = \"y\" }";
    check(switch, two, "switch", "two sources");
    check(switch, "switch = { ns = -1, measured = \"x\" }", "switch", "from 0 to 1 ms");
    for number in ["nan", "-inf", "1e999"] {
        let to = format!("switch = {{ ns = {number}, measured = \"x\" }}");
        let words = format!("os.switch.ns is {number}: a number like 45");
        check(switch, &to, "switch", &words);
    }
    check(switch, "switch = { ms = 1e9, measured = \"x\" }", "switch", "from 0 to 1 ms");
    check(
        switch,
        "switch = { ns = 1, us = 1, measured = \"x\" }",
        "switch",
        "one of ns, us and ms",
    );
    check(
        switch,
        "switch = { ns = \"7\", measured = \"x\" }",
        "switch",
        "a number, not of type string",
    );
    check(switch, "", "[os]", "os has no switch");
    check(switch, &format!("{switch}\n{switch}"), "switch", "duplicate key");
    check("load = { ns = 1.8", "load = { ns = 0", "load", "more than 0");
    check("[clock]", "[clocks]", "[clocks]", "the file has no clock, but clocks");
    check("slice =", "slcie =", "slcie", "os has no slice, but slcie");
    check("park =", "stop =", "[os]", "os has no park");
    check("[os]", "[os]\nfoo = 1", "foo", "unknown key foo in os: there are slice, switch");
    check("name = \"small\"", "name = \"Small One\"", "name", "a to z, 0 to 9 and -");
    check(
        "name = \"small\"",
        "name = \"small\"\nnames = 3",
        "names",
        "unknown key names in the file",
    );
    check("light = true", "light = 1", "light", "true or false");
}

#[test]
fn interrupts_by_distance_are_as_many_as_hops_and_wakes_send_them_or_not() {
    let check = |from: &str, to: &str, at: &str, words: &str| {
        let (line, what) = wrong(from, &format!("{to}\n{from}"));
        assert!(line.contains(at), "{line}: {what}");
        assert!(what.contains(words), "{to}: {what}");
    };
    let hops = "hops = [[0, 1], [1, 0]]";
    let two = "interrupt = [{ ns = 1, measured = \"x\" }, { ns = 2, measured = \"x\" }]";
    check(hops, two, "[[level]]", "interrupt of level machine lists 2, and needs 1");
    let none = "interrupt = { ns = 0, measured = \"x\" }";
    check(hops, none, "interrupt", "level.machine.interrupt is 0");
    let send = "send = { ns = 20, published = \"of a sender\" }";
    check(send, "wakes = \"idle\"", "wakes", "\"busy\" or \"all\", not \"idle\"");
    check(send, "wakes = true", "wakes", "interrupt.wakes is a text in quotes");
}

#[test]
fn a_link_has_both_its_numbers_or_is_left_out() {
    let link = |body: &str| ("[clock]", format!("[link]\n{body}\n\n[clock]"));
    let line = "line = { ns = 3.3, published = \"19.2 GB/s\" }";
    let check = |body: &str, at: &str, words: &str| {
        let (from, to) = link(body);
        let (found, what) = wrong(from, &to);
        assert!(found.contains(at) && what.contains(words), "{body}: {found}: {what}");
    };
    check(line, "[link]", "link has no transfers");
    let of = |count: &str| format!("{line}\ntransfers = {{ count = {count}, recalled = \"x\" }}");
    check(&of("0"), "transfers", "a whole number of 1 to 65536, not 0");
    check(&of("-3"), "transfers", "a whole number of 1 to 65536, not -3");
    check(&of("2.5"), "transfers", "not of type float");
    check(&of("70000"), "transfers", "not 70000");
    check(&format!("{line}\ntransfers = 12"), "transfers", "like { count = 32, measured");
    check(&format!("{}\nlanes = 2", of("9")), "lanes", "unknown key lanes in link");
    check("line = { ns = 0, recalled = \"x\" }", "line", "link.line is 0");
    let (from, to) = link(&of("12"));
    let read = Description::parse(&SMALL.replacen(from, &to, 1)).expect("it is sound");
    assert_eq!(read.machine.link, Some(Link { line_ns: 3, transfers: 12 }));
    let count = read.numbers.iter().find(|number| number.name == "link.transfers").expect("kept");
    assert_eq!((count.value, count.unit, count.kind), (12.0, Unit::Count, Kind::Recalled));
}

#[test]
fn offsets_of_counters_are_one_a_node_and_within_their_bound() {
    let offset = "offset = { ns = 0, estimated = \"of clocks\" }";
    let check = |listed: &str, words: &str| {
        let (line, what) = wrong(offset, &format!("{offset}\n{listed}"));
        assert!(line.starts_with("offsets") || line.starts_with("tick"), "{line}");
        assert!(what.contains(words), "{listed}: {what}");
    };
    check("offsets = [{ ns = 5, measured = \"x\" }]", "clock.offsets lists 1, and needs 2");
    check("offsets = []", "clock.offsets lists 0, and needs 2: one a node");
    check(
        "offsets = [{ ns = 9, measured = \"x\" }, { ns = 4, measured = \"x\" }]",
        "up to 5 ns apart: clock.offset says 0 at most",
    );
    check("offsets = { ns = 9, measured = \"x\" }", "clock.offsets is an array");
    check("offsets = [1, 2]", "clock.offsets[0] is a number with its source");
    check("tick = { ns = 0, measured = \"x\" }", "clock.tick is 0");
}

#[test]
fn a_shape_that_does_not_fit_is_refused() {
    let check = |from: &str, to: &str, words: &str| {
        let (_, what) = wrong(from, to);
        assert!(what.contains(words), "{to}: {what}");
    };
    check("of = 4", "of = 0", "a whole number of 1 to 4096, not 0");
    check("of = 4", "of = -2", "a whole number of 1 to 4096, not -2");
    check("of = 4", "of = 1.5", "a whole number of 1 to 4096, not of type float");
    check("of = 4", "of = 99999999999999999999999", "1 to 4096");
    check("of = 4", "of = 4096", "a machine has 1 to 4096 CPUs, not 8192");
    check("of = 4", "", "level socket has of = N, or groups");
    check("of = 4", "groups = [\"0-3\"]", "groups of 2 can't be made of 1 of the level below");
    check("of = 4", "groups = [\"0-3\", \"3-7\"]", "CPU 3 in two groups");
    check("of = 4", "groups = [\"0-3\", \"5-7\"]", "leaves out CPU 4");
    check("of = 4", "groups = [\"0-x\"]", "not a list of CPUs like \"0-3,8\"");
    check("of = 4", "groups = [\"3-0\", \"4-7\"]", "not a list of CPUs");
    check("of = 4", "groups = [\"0-5000\"]", "up to 4095");
    check("of = 2", "groups = [\"0-1,4-7\", \"2-3\"]", "a socket lies across two units");
    check("name = \"machine\"", "name = \"socket\"", "a second level named socket");
    check("hops = [[0, 1], [1, 0]]", "hops = [[0, 2], [1, 0]]", "0 to socket 1 are 2, and back 1");
    check("hops = [[0, 1], [1, 0]]", "hops = [[0, 1]]", "2 rows of 2 numbers");
    check("hops = [[0, 1], [1, 0]]", "hops = [[1, 1], [1, 0]]", "0 to socket 0 can't be 1");
    check("hops = [[0, 1], [1, 0]]", "hops = [[0, 2], [2, 0]]", "lists 1, and needs 2");
    check(
        "hops = [[0, 1], [1, 0]]",
        "cache = { ns = 3, recalled = \"x\" }\ninclusive = true",
        "second",
    );
    check("inclusive = true", "", "has no inclusive");
    let last = &SMALL[SMALL.find("memory = { ns = 150").expect("there")..];
    let last = last.lines().next().expect("a line");
    check(last, "", "level machine has no memory, and the level inside it has");
}

/// No text makes the parser panic, and each error names an existing line.
#[test]
fn damaged_files_are_refused_politely() {
    let refused = |text: &str| match Description::parse(text) {
        Ok(_) => false,
        Err(wrong) => {
            assert!(!wrong.what.is_empty() && wrong.line >= 1, "{wrong}");
            assert!(wrong.line <= text.matches('\n').count() + 1, "{wrong} of\n{text}");
            true
        }
    };
    // Cut anywhere before the last key, something is missing.
    let last = SMALL.rfind("light").expect("there");
    assert!((0..=last).all(|end| refused(&SMALL[..end])));
    let mut seed = 1_u64;
    let mut any = 0;
    let characters = b"\"{}[]=,.#-0123456789\n aeinstx";
    for _ in 0..3_000 {
        let mut bytes = SMALL.as_bytes().to_vec();
        for _ in 0..3 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = (seed >> 33) as usize;
            let character = characters[(seed >> 20) as usize % characters.len()];
            let at = place % bytes.len();
            match place % 3 {
                0 => bytes[at] = character,
                1 => bytes.insert(at, character),
                _ => drop(bytes.remove(at)),
            }
        }
        any += u32::from(refused(std::str::from_utf8(&bytes).expect("it is ASCII")));
    }
    assert!(any > 1_000, "most damage is noticed: {any}");
    assert!(refused(&format!("{SMALL}#{}", "x".repeat(1 << 20))));
}

/// How long a load takes by CPU 1 or 4 of a line that CPUs 0 and 2 have read.
fn load_ns(machine: &Machine, by: u32) -> u64 {
    let shared = Rc::new(OwnLine(<Sim as Atomics>::U64::ZERO));
    let took = Rc::new(std::cell::Cell::new(0));
    let read = |delay| {
        let shared = Rc::clone(&shared);
        move || {
            work(delay);
            shared.load(Relaxed);
        }
    };
    let simulation = Simulation::new(machine.clone().without_jitter(), 1)
        .thread_on(0, read(0))
        .thread_on(2, read(1_000))
        .thread_on(by, {
            let (shared, took) = (Rc::clone(&shared), Rc::clone(&took));
            move || {
                work(10_000);
                let begin = now();
                shared.load(Relaxed);
                took.set(now() - begin);
            }
        });
    let _ = simulation.run(0).expect("all end");
    took.get()
}

#[test]
fn a_clean_line_comes_from_the_cache_if_that_is_inclusive_and_else_from_a_core() {
    let machine = small().machine;
    assert_eq!(load_ns(&machine, 1), 20);
    assert_eq!(load_ns(&machine, 4), 120);
    let topology = machine.topology.clone().with_inclusive(false);
    assert_eq!(load_ns(&Machine { topology, ..machine }, 1), 40);
}

#[test]
fn where_nobody_knows_who_has_a_line_all_are_asked() {
    let took = |machine: Machine| {
        let shared = Rc::new(OwnLine(<Sim as Atomics>::U64::ZERO));
        let took = Rc::new(std::cell::Cell::new(0));
        let simulation = Simulation::new(machine.without_jitter(), 1)
            .thread_on(0, {
                let shared = Rc::clone(&shared);
                move || _ = shared.load(Relaxed)
            })
            .thread_on(1, {
                let (shared, took) = (Rc::clone(&shared), Rc::clone(&took));
                move || {
                    work(1_000);
                    shared.load(Relaxed);
                    let begin = now();
                    shared.fetch_add(1, Relaxed);
                    took.set(now() - begin);
                }
            });
        let _ = simulation.run(0).expect("both end");
        took.get()
    };
    let machine = small().machine;
    assert_eq!(took(machine.clone()), 40);
    assert_eq!(took(Machine { shared_write_ns: 300, ..machine }), 300);
}

#[test]
fn a_shape_in_code_is_checked_too() {
    let level = |units: &[u32], memory: &[u64]| Level {
        name: "machine".to_owned(),
        units: units.to_vec(),
        transfer_ns: vec![5],
        memory_ns: memory.to_vec(),
        interrupt_ns: vec![],
        cache_ns: None,
        crowded_permille: None,
    };
    let words = |levels: Vec<Level>| Topology::new(levels, vec![]).expect_err("bad").what;
    assert!(words(vec![]).contains("at least one level"));
    assert!(words(vec![level(&[], &[9])]).contains("CPUs, not 0"));
    assert!(words(vec![level(&[0, 0], &[])]).contains("no memory"));
    assert!(words(vec![level(&[0, 1], &[9])]).contains("is one unit"));
    assert!(words(vec![level(&[1, 1], &[9])]).contains("unit 0 of level machine has no CPU"));
    assert!(Topology::new(vec![level(&[0, 0], &[9])], vec![]).is_ok());
}
