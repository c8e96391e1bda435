//! The Promela models of `models/`: what the head of each says is verified is, and what it says is
//! refuted is too.
//!
//! ```text
//!  * verify: PROPERTY [DEFINE…]     no error in the whole state space
//!  * refute: PROPERTY [DEFINE…]     an error, of the kind that breaks the property
//! ```
//!
//! `safety` means that no assertion fails and no process is stuck; any other property is the `ltl`
//! formula of that name, under weak fairness.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A line of a model's head.
#[derive(Debug, PartialEq, Eq)]
struct Claim {
    holds: bool,
    property: String,
    defines: Vec<String>,
}

fn claims(model: &str) -> Vec<Claim> {
    let parse = |line: &str| {
        let (verdict, rest) = line.strip_prefix(" * ")?.split_once(": ")?;
        let holds = match verdict {
            "verify" => true,
            "refute" => false,
            _ => return None,
        };
        let mut words = rest.split_whitespace().map(str::to_owned);
        Some(Claim { holds, property: words.next()?, defines: words.collect() })
    };
    let head = model.lines().take_while(|line| *line != " */");
    head.filter_map(parse).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models")
}

/// Runs a program in `directory` to its end; what it has printed.
///
/// # Panics
///
/// If it can't be run or fails.
fn run(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(directory).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{program} {arguments:?}:\n{text}");
    text
}

/// The answer of the verifier that spin makes of `model`, about a claim.
fn search(model: &Path, claim: &Claim) -> String {
    let stem = model.file_stem().unwrap().to_string_lossy();
    let name = format!("promela-{stem}-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::copy(model, directory.join("model.pml")).unwrap();
    let defines: Vec<_> = claim.defines.iter().map(|define| format!("-D{define}")).collect();
    let mut spin: Vec<_> = defines.iter().map(String::as_str).collect();
    spin.extend(["-a", "model.pml"]);
    run(&directory, "spin", &spin);
    let (flags, arguments): (&[&str], &[&str]) = match claim.property.as_str() {
        "safety" => (&["-DSAFETY", "-DNOCLAIM"], &[]),
        // -f: weakly fair; -A: without assertions, which are not what is asked about.
        ltl => (&["-DNFAIR=3"], &["-a", "-f", "-A", "-N", ltl]),
    };
    run(&directory, "gcc", &[&["-O1", "-w", "-DCOLLAPSE", "-o", "pan", "pan.c"], flags].concat());
    let said = run(&directory, "./pan", &[&["-m1000000"], arguments].concat());
    std::fs::remove_dir_all(&directory).unwrap();
    said
}

/// The contradiction between the claim and a verifier's answer, if there is one.
fn objection(claim: &Claim, said: &str) -> Option<String> {
    let has = |what: &str| said.contains(what);
    if has("max search depth too small") || has("out of memory") || has("interrupted") {
        return Some("the search was cut short".to_owned());
    }
    let Some(errors) = said.lines().find_map(|line| line.split_once("errors: ")) else {
        return Some("no answer".to_owned());
    };
    let found = errors.1.trim() != "0";
    let is_kind = match claim.property.as_str() {
        "safety" => has("assertion violated") || has("invalid end state ("),
        _ => has("acceptance cycle ("),
    };
    match (claim.holds, found) {
        (true, true) => Some("refuted".to_owned()),
        (false, false) => Some("not refuted".to_owned()),
        (false, true) if !is_kind => Some("refuted by something else".to_owned()),
        _ => None,
    }
}

fn check(name: &str) {
    let path = folder().join(name).with_extension("pml");
    let claims = claims(&std::fs::read_to_string(&path).unwrap());
    let count = |holds| claims.iter().filter(|claim| claim.holds == holds).count();
    assert!(count(true) > 0 && count(false) > 0, "{name} claims too little");
    if Command::new("spin").arg("-V").output().is_err() {
        // Past the capture of the test harness.
        let said = writeln!(std::io::stderr(), "skipped: no spin to check {name}.pml (.ci/setup)");
        return assert!(said.is_ok());
    }
    for claim in &claims {
        let said = search(&path, claim);
        if let Some(objection) = objection(claim, &said) {
            panic!("{name}.pml: {claim:?}: {objection}\n{said}");
        }
    }
}

#[test]
fn barrier() {
    check("barrier");
}

#[test]
fn handover() {
    check("handover");
}

#[test]
fn mutex() {
    check("mutex");
}

#[test]
fn queue() {
    check("queue");
}

#[test]
fn rw() {
    check("rw");
}

#[test]
fn every_model_is_checked() {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut models: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "pml"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    models.sort();
    assert_eq!(models, ["barrier", "handover", "mutex", "queue", "rw"], "a test each");
}

#[test]
fn claims_are_read_from_the_head() {
    let head =
        "/* A lock.\n *\n * verify: safety\n * refute: served BROKEN_X N=2\n */\n * verify: x\n";
    let [safe, served] = &claims(head)[..] else { panic!("{:?}", claims(head)) };
    assert!(safe.holds && safe.property == "safety" && safe.defines.is_empty());
    assert!(!served.holds && served.property == "served" && served.defines == ["BROKEN_X", "N=2"]);
}

#[test]
fn an_answer_that_does_not_fit_is_told() {
    let claim =
        |holds, property: &str| Claim { holds, property: property.to_owned(), defines: vec![] };
    let fine = "State-vector 48 byte, depth reached 5, errors: 0\n";
    let stuck = "pan:1: invalid end state (at depth 5)\nerrors: 1\n";
    let starved = "pan:1: acceptance cycle (at depth 5)\nerrors: 1\n";
    let is_fine = |claim, said| objection(&claim, said).is_none();
    assert!(is_fine(claim(true, "safety"), fine) && !is_fine(claim(false, "safety"), fine));
    assert!(is_fine(claim(false, "safety"), stuck) && !is_fine(claim(true, "safety"), stuck));
    assert!(is_fine(claim(false, "served"), starved) && !is_fine(claim(false, "served"), stuck));
    assert!(!is_fine(claim(true, "safety"), ""));
    assert!(!is_fine(claim(true, "safety"), &format!("error: max search depth too small\n{fine}")));
}
