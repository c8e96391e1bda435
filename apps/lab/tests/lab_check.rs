//! `lab check`: the model checker's verb.

mod common;

use common::{FRAME, has_keys, json, output};

#[test]
fn small_models_are_complete() {
    let report = json(&["lab", "check", "--json", "ticket/"]);
    has_keys(&report, &FRAME);
    let models = report["models"].as_array().expect("a list");
    assert!(!models.is_empty());
    for model in models {
        has_keys(model, &["name", "threads", "operations", "bound", "executions", "complete"]);
        has_keys(model, &["mutants", "killed", "seconds", "verdict"]);
        assert!(model["executions"].as_u64() > Some(1) && model["complete"] == true, "{model:#}");
        assert!(model["failure"].is_null());
    }
}

#[test]
fn a_model_names_the_mutants_that_it_is_to_notice() {
    let report = json(&["lab", "check", "--json", "--seconds", "0", "shfl-spin/sorts-"]);
    let models = report["models"].as_array().expect("a list");
    let mutants = models[0]["mutants"].as_array().expect("a list");
    assert!(mutants.iter().any(|name| name == "any waiter begins to shuffle"), "{report:#}");
    let killed = &models[0]["killed"];
    assert!(killed.is_null() || killed.as_array().is_some_and(|it| it.len() <= mutants.len()));
}

#[test]
fn a_search_that_is_cut_short_does_not_call_itself_complete() {
    let report = json(&["lab", "check", "--json", "--seconds", "0", "shfl-mutex/excludes-"]);
    let models = report["models"].as_array().expect("a list");
    assert!(models.iter().any(|model| model["complete"] == false), "{report:#}");
}

#[test]
fn a_long_model_is_drawn_by_lot_unless_it_is_to_be_run_whole() {
    let verdict = |more: &[&str]| {
        let name = ["lab", "check", "--json", "semaphore/excludes-3x"];
        let report = json(&[&name, more].concat());
        report["models"][0]["verdict"].as_str().map(str::to_owned)
    };
    assert_eq!(verdict(&[]).as_deref(), Some("by lot"));
    assert_eq!(verdict(&["--whole", "--seconds", "0"]).as_deref(), Some("CUT"));
}

#[test]
fn an_unknown_model_and_an_aimless_replay_are_bad_arguments() {
    for arguments in [
        &["lab", "check", "cohort"][..],
        &["lab", "check", "--replay", "x"],
        &["lab", "check", "shfl-mutex/", "--replay", "x"],
        &["lab", "check", "ticket/excludes-2x1", "--replay", "no replay"],
    ] {
        assert_eq!(output(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_table_has_a_line_a_model() {
    let output = output(&["lab", "check", "shfl-spin/tries-"]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = table.lines().find(|line| line.starts_with("shfl-spin/tries-0+2"));
    assert!(
        output.status.success() && line.is_some_and(|line| line.contains("complete")),
        "{table}"
    );
}

#[test]
fn an_execution_in_which_nothing_goes_wrong_replays_as_that() {
    let output = output(&["lab", "check", "ticket/excludes-2x1", "--replay", "0s !1"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("nothing goes wrong"), "{said}");
}
