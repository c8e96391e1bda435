//! Counts the words of all files below a directory, in stages: one finds files, one reads them, one
//! counts the words of each, and one adds up. Then counts in a loop, and compares the results.
//!
//! `cargo run --release -p antiphon --example words -- DIRECTORY [THREADS]`

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use std::{env, fs, io, process};

use antiphon::pool::{Pool, blocking};
use antiphon::{fiber, stage::Stage};

type Words = HashMap<Box<str>, u64>;

fn main() {
    let mut arguments = env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| ".".to_owned());
    let threads = match arguments.next().map(|threads| threads.parse()) {
        None => 2,
        Some(Ok(threads @ 1..)) => threads,
        Some(_) => fail("THREADS is a number from 1 on"),
    };
    let began = Instant::now();
    let staged = staged(Path::new(&directory), threads)
        .unwrap_or_else(|error| fail(&format!("{directory}: {error}")));
    let staged_took = began.elapsed();
    let began = Instant::now();
    let looped = looped(Path::new(&directory)).unwrap_or_else(|error| fail(&error.to_string()));
    let looped_took = began.elapsed();
    assert!(staged == looped, "the same words");
    let mut most: Vec<_> = looped.into_iter().collect();
    most.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then(a.cmp(b)));
    most.truncate(5);
    println!("\nthe most frequent words: {most:?}");
    println!("a loop takes {looped_took:.2?}, the stages {staged_took:.2?}");
}

fn staged(directory: &Path, threads: usize) -> io::Result<Words> {
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool =
        unsafe { Pool::builder().threads(threads).fibers(4 * fiber::STACK_BYTES) }.build()?;
    let pool = Arc::new(pool);
    let all = Arc::new(Mutex::new(Words::new()));
    let total = all.clone();
    let (add, adds) = Stage::builder("add").room(16).width(1).on(&pool, move |words: Words| {
        add_to(&mut total.lock().expect("no panic"), words);
    });
    let (count, counts) = Stage::builder("count").room(16).on(&pool, move |text: String| {
        add.send(words(&text));
    });
    // While a stage waits for the disk, another thread continues.
    let (read, reads) = Stage::builder("read").room(64).width(4).on(&pool, move |path: PathBuf| {
        if let Some(text) = blocking(|| text(&path)) {
            count.send(text);
        }
    });
    // This thread waits if there is no room; so memory never holds more names or texts than the
    // stages have room for.
    find(directory, &mut |path| read.send(path))?;
    drop(read);
    println!("{:8} {:>8} {:>8}", "stage", "served", "was full");
    for stage in [reads, counts, adds] {
        let name = stage.name().to_owned();
        let stats = stage.join().unwrap_or_else(|_| fail("a stage has panicked"));
        println!("{name:8} {:8} {:8}", stats.served, stats.full);
    }
    let words = std::mem::take(&mut *all.lock().expect("no panic"));
    Ok(words)
}

fn looped(directory: &Path) -> io::Result<Words> {
    let mut all = Words::new();
    find(directory, &mut |path| {
        if let Some(text) = text(&path) {
            add_to(&mut all, words(&text));
        }
    })?;
    Ok(all)
}

/// Finds all files below a directory, without following links.
fn find(directory: &Path, found: &mut impl FnMut(PathBuf)) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => find(&entry.path(), found)?,
            kind if kind.is_file() => found(entry.path()),
            _ => {}
        }
    }
    Ok(())
}

/// Reads a text. Returns `None` if the file is not text or can't be read; both ways leave it out.
fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn words(text: &str) -> Words {
    let mut words = Words::new();
    for word in text.split(|character: char| !character.is_alphanumeric()) {
        if !word.is_empty() {
            *words.entry(word.into()).or_default() += 1;
        }
    }
    words
}

fn add_to(all: &mut Words, words: Words) {
    for (word, count) in words {
        *all.entry(word).or_default() += count;
    }
}

fn fail(why: &str) -> ! {
    eprintln!("words: {why}");
    process::exit(2)
}
