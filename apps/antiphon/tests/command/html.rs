//! The page of a report in a browser: it opens, and only its own script runs.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::common::{Folder, output};

/// The name of a function of the program: interpreted as markup, it would leave a mark.
const NAME: &str = "<script>document.documentElement.dataset.owned=1</script>";
/// An argument of the program, which is markup, too.
const ARGUMENT: &str = "\"'><img src=x onerror=document.documentElement.dataset.owned=2>";

fn succeeds(command: &mut Command) {
    assert!(command.status().is_ok_and(|status| status.success()), "{command:?}");
}

/// The page of a run of `names.c`, with a function called [`NAME`].
fn page(folder: &Folder) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/names.c");
    let (object, program) = (folder.path("names.o"), folder.path("names"));
    succeeds(Command::new("cc").args(["-O1", "-pthread", "-c", "-o", &object]).arg(source));
    let renamed = format!("renamed={NAME}");
    succeeds(Command::new("objcopy").args(["--redefine-sym", &renamed, &object]));
    succeeds(Command::new("cc").args(["-pthread", "-o", &program, &object]));
    let file = folder.path("report.html");
    let run = output(&["run", "--profile", "--html", &file, "--", &program, ARGUMENT]);
    assert_eq!(run.status.code(), Some(0), "{}", crate::common::stderr(&run));
    std::fs::read_to_string(file).expect("a page")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A browser that runs without a screen, if there is one.
fn browser() -> Option<&'static str> {
    let names = ["chromium-headless-shell", "chromium", "google-chrome", "chrome"];
    let is_there = |name: &&str| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    names.into_iter().find(is_there)
}

/// The state of a page in the browser, and the messages of its console.
fn opened(browser: &str, folder: &Folder, page: &str) -> (String, Vec<String>) {
    let file = folder.path("opened.html");
    std::fs::write(&file, page).expect("a page");
    let output = Command::new("timeout")
        .args(["120", browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg("--enable-logging=stderr")
        .arg(format!("--user-data-dir={}", folder.path("browser")))
        .arg(format!("file://{file}"))
        .output()
        .expect("the browser starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let console = said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned);
    (String::from_utf8_lossy(&output.stdout).into_owned(), console.collect())
}

#[test]
fn the_page_needs_nothing_else_and_names_are_text_in_it() {
    let folder = Folder::new("html");
    let page = page(&folder);
    assert!(page.contains(&escaped(NAME)), "{page}");
    assert!(!page.contains("<script>") && !page.contains("<img"), "{page}");
    // The page loads nothing from anywhere.
    for word in ["http:", "https:", "src=\"", "href", "@import", "fetch(", "url(h"] {
        assert!(!page.contains(word), "{word}");
    }
    for words in ["Waits by call site", "How long waits were", "edge inverted", "Threads, by"] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

#[test]
fn in_a_browser_the_pages_own_script_runs_and_no_other_does() {
    let Some(browser) = browser() else {
        let why = "no browser on this machine (apt install chromium-headless-shell)";
        return writeln!(std::io::stderr(), "skipped: {why}").expect("stderr");
    };
    let folder = Folder::new("browser");
    let page = page(&folder);
    let (dom, console) = opened(browser, &folder, &page);
    assert!(dom.contains("data-script=\"ran\""), "{console:?}\n{dom}");
    assert!(!dom.contains("data-owned") && console.is_empty(), "{console:?}\n{dom}");
    assert!(dom.contains(&format!("<h1>{}", folder.path("names"))), "{dom}");

    // If a name became markup after all, the page's policy would keep it from running.
    let markup = format!("{NAME}<img src=x onerror=document.documentElement.dataset.owned=2>");
    let (dom, console) = opened(browser, &folder, &page.replace("<h1>", &format!("{markup}<h1>")));
    assert!(dom.contains("data-script=\"ran\"") && !dom.contains("data-owned="), "{dom}");
    assert!(console.iter().any(|line| line.contains("Content Security Policy")), "{console:?}");

    // A user sorts and selects; the resulting state is written down.
    let nonce = page.split_once("<script nonce=").and_then(|(_, rest)| rest.split_once('>'));
    let nonce = nonce.expect("a script").0;
    let user = format!("<script nonce={nonce}>{USER}</script></body>");
    let (dom, console) = opened(browser, &folder, &page.replace("</body>", &user));
    assert!(console.is_empty(), "{console:?}");
    let noted = |key: &str| {
        let value = dom.split_once(&format!("data-{key}=\"")).and_then(|(_, v)| v.split_once('"'));
        value.unwrap_or_else(|| panic!("no {key}: {dom}")).0.to_owned()
    };
    let numbers = |key: &str| -> Vec<u64> {
        noted(key).split(',').map(|number| number.parse().expect("a number")).collect()
    };
    let (down, up) = (numbers("down"), numbers("up"));
    assert!(
        down.len() >= 4 && down.is_sorted_by(|a, b| a >= b) && up.is_sorted(),
        "{down:?} {up:?}"
    );
    assert!(down.first() > down.last(), "{down:?}");
    let mut names: Vec<String> = noted("names").split(',').map(str::to_owned).collect();
    let sorted = names.clone();
    names.sort();
    assert_eq!(names, sorted);
    assert_eq!(noted("shown"), "1");
}

/// The user's clicks and selections.
const USER: &str = "{
const note = document.documentElement.dataset;
const table = document.getElementById('sites');
const head = (name) =>
  [...table.tHead.rows[0].cells].find((cell) => cell.textContent === name);
const values = (name) => {
  const column = head(name).cellIndex;
  const value = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
  return [...table.tBodies[0].rows].map(value).join();
};
head('taken').firstChild.click();
note.down = values('taken');
head('taken').firstChild.click();
note.up = values('taken');
head('kind').firstChild.click();
note.names = values('kind');
const choice = document.getElementById('histogram-of');
choice.value = '1';
choice.dispatchEvent(new Event('change'));
const figures = [...document.querySelectorAll('figure.histogram')];
note.shown = figures.filter((figure) => figure.checkVisibility()).map((f) => f.dataset.of).join();
}";
