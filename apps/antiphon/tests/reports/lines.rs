//! Call sites have a function, a file and a line, wherever the debug information is stored.

use std::process::Command;

use crate::common::{Folder, output, skipped, stderr};
use serde_json::Value;

/// The C++ program, compiled with these options.
fn compiled(folder: &Folder, to: &str, options: &[&str]) -> String {
    let usual = ["-O2", "-pthread"];
    folder.compile_as(to, "c++", "inlined.cpp", &[&usual[..], options].concat())
}

/// Runs a tool of binutils or the like, which must succeed. `None` if it is missing.
fn tool(program: &str, arguments: &[&str]) -> Option<()> {
    let Ok(status) = Command::new(program).args(arguments).status() else {
        skipped(&format!("no {program} on this machine"));
        return None;
    };
    assert!(status.success(), "{program} {arguments:?}");
    Some(())
}

/// The report of a run, and its text.
fn report(folder: &Folder, program: &str, options: &[&str]) -> (Value, String) {
    let file = folder.path("report.json");
    let run = ["run", "--profile", "--report", &file];
    let output = output(&[&run[..], options, &["--", program]].concat());
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let text = std::fs::read(&file).expect("a report");
    (serde_json::from_slice(&text).expect("JSON"), stderr(&output))
}

/// The line of the source that contains this remark.
fn line_of(remark: &str) -> u64 {
    let source = include_str!("../programs/inlined.cpp");
    source.lines().position(|line| line.contains(remark)).expect("a line") as u64 + 1
}

/// Checks that both locks are named after the function of the program that takes them, with file
/// and line.
fn has_lines((report, text): &(Value, String)) {
    let locks = report["locks"].as_array().expect("rows");
    let add = locks.iter().find(|lock| lock["function"] == "Log::add").unwrap_or_else(|| {
        panic!("{:#}\n{text}", report["locks"]);
    });
    assert_eq!(add["line"], line_of("Log::add locks"), "{add:#}");
    assert!(add["file"].as_str().is_some_and(|file| file.ends_with("programs/inlined.cpp")));
    // Functions inlined into it come before it, and those around it after it.
    let frames = add["frames"].as_array().expect("frames");
    let names: Vec<_> = frames.iter().filter_map(|frame| frame["function"].as_str()).collect();
    let at = names.iter().position(|name| *name == "Log::add").expect("the function");
    assert!(names[..at].contains(&"std::mutex::lock"), "{names:?}");
    // Compilers give a lambda only this name.
    assert!(names[at + 1..].contains(&"operator()"), "{names:?}");
    let label = format!("Log::add inlined.cpp:{}", line_of("Log::add locks"));
    let template = format!("Table<…>::put inlined.cpp:{}", line_of("Table::put locks"));
    assert!(text.contains(&label) && text.contains(&template), "{text}");
    // Rows fit a terminal.
    let rows = text.lines().filter(|line| line.contains("inlined.cpp:"));
    assert!(rows.clone().count() > 0);
    for row in rows {
        assert!(row.chars().count() <= 100, "{row}");
    }
}

#[test]
fn inlined_functions_are_named_from_the_programs_own_debug_information() {
    let folder = Folder::new("lines");
    let program = compiled(&folder, "program", &["-g"]);
    has_lines(&report(&folder, &program, &[]));
    let (_, wide) = report(&folder, &program, &["--wide"]);
    assert!(wide.contains("std::mutex::lock /") && wide.contains("inlined.cpp:"), "{wide}");
    assert!(wide.contains("Table<std::vector<std::vector<int"), "{wide}");
}

#[test]
fn compressed_and_split_debug_information_is_read() {
    let folder = Folder::new("lines-split");
    has_lines(&report(&folder, &compiled(&folder, "compressed", &["-g", "-gz"]), &[]));
    let split = compiled(&folder, "split", &["-g", "-gsplit-dwarf"]);
    let parts = std::fs::read_dir(folder.path("")).expect("a folder").flatten();
    assert!(parts.into_iter().any(|part| part.path().extension().is_some_and(|it| it == "dwo")));
    has_lines(&report(&folder, &split, &[]));
}

#[test]
fn a_separate_debug_file_is_found_by_the_name_that_the_program_has_for_it() {
    let folder = Folder::new("lines-separate");
    let program = compiled(&folder, "program", &["-g", "-Wl,--build-id=none"]);
    let debug = folder.path("program.debug");
    let link = format!("--add-gnu-debuglink={debug}");
    let done = tool("objcopy", &["--only-keep-debug", &program, &debug])
        .and_then(|()| tool("objcopy", &["--strip-all", &link, &program]));
    let Some(()) = done else { return };
    has_lines(&report(&folder, &program, &[]));
    // The debug file of another build is not used.
    std::fs::write(&debug, b"other").expect("a file");
    let (_, text) = report(&folder, &program, &[]);
    assert!(!text.contains("inlined.cpp") && text.contains("have no lines"), "{text}");
}

#[test]
fn a_stripped_program_says_what_to_do_and_a_packed_table_has_names() {
    let folder = Folder::new("lines-stripped");
    let program = compiled(&folder, "program", &[]);
    let (symbols, packed) = (folder.path("symbols"), folder.path("symbols.xz"));
    let kept = tool("objcopy", &["--strip-debug", &program, &symbols]);
    let Some(()) = kept.and_then(|()| tool("xz", &["-k", &symbols])) else { return };
    let Some(()) = tool("strip", &[&program]) else { return };
    let (stripped, text) = report(&folder, &program, &[]);
    let notes = stripped["notes"].to_string();
    assert!(notes.contains("(compile it with -g)"), "{notes}");
    assert!(text.contains("program+0x"), "{text}");
    let section = format!("--add-section=.gnu_debugdata={packed}");
    let Some(()) = tool("objcopy", &[&section, &program]) else { return };
    let (_, text) = report(&folder, &program, &[]);
    assert!(text.contains("Table<std::vector") && text.contains("::put+0x"), "{text}");
}

#[test]
fn callers_are_known_where_nothing_is_inlined_and_a_wrapper_has_the_name_of_its_caller() {
    let folder = Folder::new("lines-callers");
    let program = compiled(&folder, "program", &["-O0", "-g", "-DLONG"]);
    let (report, text) = report(&folder, &program, &[]);
    let locks = report["locks"].as_array().expect("rows");
    let add = locks.iter().find(|lock| lock["function"] == "Log::add").unwrap_or_else(|| {
        panic!("{:#}\n{text}", report["locks"]);
    });
    // The call itself is in a function of the standard library.
    assert!(add["site"].as_str().is_some_and(|site| site.starts_with("__gthread_mutex_lock")));
    assert_eq!(add["line"], line_of("Log::add locks"), "{add:#}");
    let stacks = report["stacks"].as_array().expect("stacks");
    let of_add = stacks.iter().find(|stack| stack["site"]["function"] == "Log::add");
    let of_add = of_add.expect("a stack");
    assert!(of_add["whole"] == true && of_add["waits"].as_u64() > Some(0), "{of_add:#}");
    let callers = of_add["callers"].as_array().expect("callers");
    let named = |at: usize, name: &str| callers[at]["function"] == name;
    assert!(named(0, "std::mutex::lock") && callers.iter().any(|it| it["function"] == "Log::add"));
    let notes = report["notes"].to_string();
    assert!(notes.contains("through __gthread_mutex_lock gthr-default.h:"), "{notes}");
    assert!(text.contains("Callers, by their share"), "{text}");
    let chain = format!("Log::add inlined.cpp:{} ← ", line_of("Log::add locks"));
    let tree = text.lines().find(|line| line.contains(&chain)).expect("a line of the tree");
    assert!(tree.contains(" %  ") && tree.contains("{lambda} inlined.cpp:"), "{text}");
}

#[test]
fn a_program_without_tables_runs_and_its_stacks_are_cut_short() {
    let folder = Folder::new("lines-tables");
    let none = ["-fno-exceptions", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"];
    let program = compiled(&folder, "program", &[&none[..], &["-g", "-DLONG"]].concat());
    let (report, _) = report(&folder, &program, &[]);
    assert!(report["locks"].as_array().is_some_and(|rows| !rows.is_empty()));
    for stack in report["stacks"].as_array().expect("stacks") {
        assert_eq!(stack["whole"], false, "{stack:#}");
    }
}
