//! Output files: refused before the work, written completely, or left unchanged.

mod common;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Output};

use common::{Folder, PROGRAM, antiphon, fifo, files, output, stderr};

const SIM: [&str; 9] =
    ["sim", "locks", "--machine", "xeon-2s", "--subject", "mcs", "--threads", "4", "--ms=0.05"];
const MEMORY: [&str; 6] = ["sim", "memory", "--machine", "xeon-2s", "--inodes", "1000"];
const EVENTS: [&str; 6] = ["sim", "events", "--threads", "2", "--rounds", "1"];
const CALIBRATE: [&str; 3] = ["sim", "calibrate", "--quick"];

/// Runs `SIM` with this option.
fn sim(option: &str, file: &str) -> Output {
    output(&[&SIM[..], &[option, file]].concat())
}

/// Simulates where no file can exceed one block, which looks like a full disk to each writer.
fn sim_on_a_full_disk(option: &str, file: &str) -> Output {
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", PROGRAM]).args(SIM);
    command.args([option, file]).output().expect("a shell")
}

#[test]
fn what_cannot_be_written_is_refused_before_the_work() {
    let folder = Folder::new("output-refused");
    let here = folder.path("");
    for command in [
        &[&SIM[..], &["--html"]].concat()[..],
        &[&SIM[..], &["--trace"]].concat(),
        &[&MEMORY[..], &["--html"]].concat(),
        &[&EVENTS[..], &["--html"]].concat(),
        &[&CALIBRATE[..], &["--out"]].concat(),
    ] {
        for file in ["/no/such/folder/F", "/dev/full", &here, ""] {
            let output = output(&[command, &[file]].concat());
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{command:?} {file}: {said}");
            // Nothing was simulated or measured; otherwise a line or a table would have been
            // printed.
            assert_eq!((said.lines().count(), output.stdout.len()), (1, 0), "{command:?}: {said}");
            assert!(said.contains(command[command.len() - 1]) && said.contains(file), "{said}");
        }
    }
    assert!(files(&folder).is_empty(), "{:?}", files(&folder));
}

#[test]
fn a_stdout_that_takes_nothing_is_refused_before_the_work() {
    let reads = File::open("/dev/null").expect("a device");
    let full = File::options().write(true).open("/dev/full").expect("a device");
    for stdout in [reads, full] {
        let output = antiphon(&[&SIM[..], &["--json"]].concat()).stdout(stdout).output();
        let output = output.expect("the command starts");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with("antiphon: stdout: ") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_full_disk_is_told_behind_the_table_and_leaves_the_old_file() {
    let folder = Folder::new("output-full");
    for (option, name) in [("--html", "page.html"), ("--trace", "trace.json")] {
        let file = folder.path(name);
        for before in [None, Some("before")] {
            if let Some(before) = before {
                fs::write(&file, before).expect("a file");
            }
            let output = sim_on_a_full_disk(option, &file);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains(&format!("{option} {file}: File too large")), "{said}");
            assert!(String::from_utf8_lossy(&output.stdout).contains("mcs"), "{said}");
            assert_eq!(fs::read_to_string(&file).ok().as_deref(), before);
        }
    }
    assert_eq!(files(&folder), ["page.html", "trace.json"]);
}

#[test]
fn a_file_is_replaced_where_links_end_and_keeps_its_mode() {
    let folder = Folder::new("output-links");
    let (page, link, dangling) =
        (folder.path("page.html"), folder.path("link"), folder.path("dangling"));
    fs::write(&page, "before").expect("a file");
    fs::set_permissions(&page, fs::Permissions::from_mode(0o640)).expect("it is ours");
    symlink("page.html", &link).expect("a link");
    symlink(folder.path("new.html"), &dangling).expect("a link");
    for (to, at) in [(&link, &page), (&dangling, &folder.path("new.html"))] {
        assert!(sim("--html", to).status.success());
        assert!(fs::symlink_metadata(to).expect("it is there").is_symlink());
        assert!(fs::read_to_string(at).expect("a page").ends_with("</html>\n"));
    }
    let mode = fs::metadata(&page).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(files(&folder), ["dangling", "link", "new.html", "page.html"]);
}

#[test]
fn devices_and_pipes_are_written_as_they_are() {
    let folder = Folder::new("output-devices");
    assert!(sim("--html", "/dev/null").status.success());
    assert!(!fs::metadata("/dev/null").expect("a device").is_file());
    // To a pipe and to a file, the page is written before the table.
    let redirected = folder.path("stdout");
    let to_file = antiphon(&[&SIM[..], &["--html", "/dev/stdout"]].concat())
        .stdout(File::create(&redirected).expect("a file"))
        .status();
    assert!(to_file.expect("the command starts").success());
    let to_pipe = sim("--html", "/dev/stdout").stdout;
    for text in [fs::read(&redirected).expect("it is there"), to_pipe] {
        let text = String::from_utf8_lossy(&text).into_owned();
        let (page, table) = text.split_once("</html>\n").expect("a page");
        assert!(page.starts_with("<!doctype") && table.starts_with("Simulated"), "{text}");
    }
    let fifo = fifo(&folder, "fifo");
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).expect("a pipe")
    });
    assert!(sim("--html", &fifo).status.success());
    assert!(reader.join().expect("a reader").ends_with("</html>\n"));
    assert_eq!(files(&folder), ["fifo", "stdout"]);
}
