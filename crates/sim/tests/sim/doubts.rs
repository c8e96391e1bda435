//! Tests of the warnings about unusual values in machine files.

use antiphon_sim::{Description, PRESETS};

use crate::machines::SMALL;

/// Lines and words of the doubts about a file in which `from` has become `to`.
fn doubts(from: &str, to: &str) -> Vec<(String, String)> {
    let text = SMALL.replacen(from, to, 1);
    let described = Description::parse(&text).unwrap_or_else(|wrong| panic!("{to}: {wrong}"));
    let line = |number: usize| text.lines().nth(number - 1).expect("a line").to_owned();
    described.doubts.iter().map(|doubt| (line(doubt.line), doubt.what.clone())).collect()
}

#[test]
fn what_costs_less_farther_out_is_doubted_where_it_stands() {
    let near = "transfer = { ns = 40, measured = \"within\" }";
    let found = doubts(near, "transfer = { ns = 121, measured = \"within\" }");
    let [(line, what)] = &found[..] else { panic!("{found:?}") };
    assert!(line.contains("across"), "{line}");
    let words = "level.machine.transfer is 120 ns, but the nearer level.socket.transfer is 121 ns";
    assert!(what.starts_with(words), "{what}");
    assert_eq!(doubts(near, "transfer = { ns = 120, measured = \"within\" }"), []);
    let memory = doubts("ns = 150, recalled", "ns = 89, recalled");
    assert!(memory.len() == 1 && memory[0].1.contains("level.machine.memory is 89 ns"));
}

#[test]
fn each_further_hop_is_farther_out() {
    let hops = |first, second| {
        let cost = |ns| format!("{{ ns = {ns}, measured = \"x\" }}");
        format!("transfer = [{}, {}]", cost(first), cost(second))
    };
    let text = SMALL
        .replace("of = 2\nhops = [[0, 1], [1, 0]]", "of = 2\nhops = [[0, 2], [2, 0]]")
        .replace(
            "{ ns = 150, recalled = \"far\" }",
            "[{ ns = 150, recalled = \"far\" }, { ns = 160, recalled = \"far\" }]",
        );
    let across = "transfer = { ns = 120, measured = \"across\" }";
    let of = |costs: &str| Description::parse(&text.replace(across, costs)).expect("sound").doubts;
    assert_eq!(of(&hops(120, 130)), []);
    let doubts = of(&hops(130, 120));
    assert_eq!(doubts.len(), 1);
    assert!(doubts[0].what.contains("level.machine.transfer[1] is 120 ns, but the nearer level."));
}

/// A cluster of efficient cores is slower within than the ring is between.
#[test]
fn of_the_machines_that_come_along_one_is_such_a_machine() {
    let doubted = PRESETS
        .iter()
        .filter(|preset| !Description::parse(preset.text).expect("it is sound").doubts.is_empty());
    assert_eq!(doubted.map(|preset| preset.name).collect::<Vec<_>>(), ["pe-laptop"]);
}
