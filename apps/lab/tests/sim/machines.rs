//! `sim machines`.

use std::process::Command;

use crate::common::{FRAME, Folder, PROGRAM, has_keys, json, output, refused, stderr};

fn text(arguments: &[&str]) -> String {
    let output = output(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is UTF-8")
}

#[test]
fn the_list_has_each_machine_and_how_well_it_is_known() {
    let list = text(&["sim", "machines"]);
    for word in ["8s-192c", "8 × 24", "machine, 2 hops 195", "1 × 57 × 4", "measured", "1024"] {
        assert!(list.contains(word), "no {word} in {list}");
    }
    let report = json(&["sim", "machines", "--json"]);
    has_keys(&report, &FRAME);
    let machines = report["machines"].as_array().expect("a list");
    assert_eq!(machines.len(), 18);
    for machine in machines {
        has_keys(
            machine,
            &["name", "sockets", "cores", "smt", "cpus", "levels", "sources", "hash"],
        );
        has_keys(&machine["sources"], &["measured", "published", "recalled", "estimated"]);
    }
}

#[test]
fn one_machine_has_its_numbers_with_their_sources() {
    let whole = text(&["sim", "machines", "xeon-2s"]);
    assert!(whole.contains("level.machine.transfer") && whole.contains("E5-2680 v4, 120 to 136"));
    let report = json(&["sim", "machines", "xeon-2s", "--json"]);
    let machine = &report["machines"][0];
    let numbers = machine["numbers"].as_array().expect("a list");
    let slice = numbers.iter().find(|number| number["name"] == "os.slice").expect("a slice");
    assert_eq!((&slice["value_ns"], &slice["kind"]), (&3e6.into(), &"recalled".into()));
    let counted = machine["sources"].as_object().expect("counts").values();
    let counted: u64 = counted.filter_map(serde_json::Value::as_u64).sum();
    assert_eq!(counted, numbers.len() as u64);
}

#[test]
fn this_machine_is_one_of_them() {
    // In a folder without a calibration of this machine.
    let folder = Folder::new("sim-machines-host");
    let mut command = Command::new(PROGRAM);
    command.args(["sim", "machines", "host"]).env("XDG_CACHE_HOME", folder.path("."));
    let host = command.output().expect("the laboratory runs").stdout;
    let host = String::from_utf8(host).expect("it is UTF-8");
    assert!(host.contains("This machine: topology from /sys") && host.contains("0 measured"));
}

#[test]
fn a_file_is_checked_and_an_error_has_its_line() {
    let folder = std::env::temp_dir().join(format!("antiphon-machines-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("mine.toml");
    let name = path.to_str().expect("a name");
    let file = text(&["sim", "machines", "xeon-2s", "--toml"]);
    std::fs::write(&path, &file).expect("written");
    assert!(text(&["sim", "machines", "--check", name]).contains("xeon-2s, 28 CPUs"));
    assert!(text(&["sim", "machines", name]).contains("Two sockets"));
    let line = file.lines().position(|line| line.starts_with("slice")).expect("there") + 1;
    std::fs::write(&path, file.replace("slice = {", "slices = {")).expect("written");
    assert!(refused(&["sim", "machines", "--check", name]).contains("os has no slice"));
    std::fs::write(&path, file.replace("slice = { ms", "slice = { s")).expect("written");
    let said = refused(&["sim", "machines", "--check", name]);
    assert!(
        said.contains(&format!("mine.toml:{line}: os.slice needs exactly one of ns, us")),
        "{said}"
    );
    assert_eq!(refused(&["sim", "machines", name]), said);
    std::fs::write(&path, [0xff, 0xfe]).expect("written");
    assert!(refused(&["sim", "machines", name]).contains("not a text in UTF-8"));
    std::fs::remove_dir_all(&folder).expect("removed");
    assert!(refused(&["sim", "machines", name]).contains("No such file"));
    assert!(refused(&["sim", "machines", "/dev/zero"]).contains("more than 1024 KiB"));
    assert!(refused(&["sim", "machines", "8s-193c"]).contains("there are 8s-192c, 8s-120c"));
}

/// A machine file of one CPU may come from anyone, and a terminal interprets control characters.
#[test]
fn what_a_file_calls_its_machine_and_levels_is_text() {
    let folder = Folder::new("machines-names");
    let file = text(&["sim", "machines", "xeon-2s", "--toml"]);
    let (levels, rest) = file.split_at(file.find("[core]").expect("a core"));
    let about = levels.lines().find(|line| line.starts_with("about")).expect("it says");
    let levels = levels
        .replace(about, r#"about = "x\u001b]0;title\u0007\u009b2J\u202e""#)
        .replace("name = \"socket\"", r#"name = "socket\u001b[2J""#)
        .replace("of = 14", "of = 1")
        .replace("of = 2\n", "of = 1\n");
    let path = folder.path("mine.toml");
    std::fs::write(&path, levels + rest).expect("written");
    let whole = text(&["sim", "machines", &path]);
    assert!(!whole.replace('\n', "").contains(|letter: char| letter.is_control()), "{whole:?}");
    assert!(!whole.contains('\u{202e}'), "{whole:?}");
    assert!(whole.contains(r"x\u{1b}]0;title\u{7}\u{9b}2J\u{202e}"), "{whole}");
    assert!(whole.contains(r"socket\u{1b}[2J 45"), "{whole}");
    assert!(
        whole.contains(", 1 CPU, ") && whole.contains("; 1 shared cache, inclusive"),
        "{whole}"
    );
}

#[test]
fn what_costs_less_farther_out_is_doubted_on_stderr_and_possible() {
    let folder = Folder::new("machines-doubts");
    let file = text(&["sim", "machines", "xeon-2s", "--toml"]);
    let path = folder.path("mine.toml");
    std::fs::write(&path, file.replace("{ ns = 45", "{ ns = 450")).expect("written");
    let checked = output(&["sim", "machines", "--check", &path]);
    let said = stderr(&checked);
    assert!(checked.status.success() && said.lines().count() == 1, "{said}");
    let words = "level.machine.transfer is 127 ns, but the nearer level.socket.transfer is 450 ns";
    assert!(said.contains("mine.toml:") && said.contains(words), "{said}");
    std::fs::write(&path, file).expect("written");
    assert_eq!(stderr(&output(&["sim", "machines", "--check", &path])), "");
}
