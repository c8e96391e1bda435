//! Builds one program with many mutants, of which an environment variable chooses one.
//!
//! Compiling a program for each mutant takes most of a trial's time. So the mutants of a file are
//! put into one text (*mutant schemata*: R. Untch, J. Offutt, M. J. Harrold, "Mutation Analysis
//! Using Mutant Schemata", 1993). For example, where mutants 3 and 7 change an ordering, and mutant
//! 9 changes the body of a function:
//!
//! ```text
//! load(match ::antiphon_platform::mutant(3) { 3 => { Relaxed } 7 => { … } _ => { Acquire } })
//! fn f() { match ::antiphon_platform::mutant(9) { 9 => { … } _ => { the body as it is } } }
//! ```
//!
//! The argument is the number of the place: that of its first mutant. If the environment names a
//! file for it, the program notes each place that it comes to. A test that does not come to a place
//! on the unchanged code can't notice a mutant there, and need not be run with it.
//!
//! A mutant that changes nothing inside a function is left out. So is a mutant that the compiler
//! rejects: [`Schema::blamed`] finds it from the place of the error. These are tried one by one.

use std::collections::BTreeMap;
use std::ops::Range;

use super::mutant::Mutant;
use crate::source::{closing, is_word, mask, words};

/// The variable that names the chosen mutant to a program.
pub const VARIABLE: &str = "ANTIPHON_MUTANT";

/// The variable that names a file to a program, to which it appends the places that it comes to.
pub const PLACES: &str = "ANTIPHON_MUTANT_PLACES";

/// The root file of the crate that all mutated crates use.
pub const ROOT: &str = "crates/platform/src/lib.rs";

/// The code appended to [`ROOT`]: the function that returns the chosen mutant (0: none) and notes
/// places. Their numbers are at most `last`.
pub fn root(last: u32) -> String {
    format!(
        r#"
extern crate self as antiphon_platform;
extern crate std;

#[doc(hidden)]
pub fn mutant(place: u32) -> u32 {{
    use core::sync::atomic::{{AtomicBool, Ordering::Relaxed}};
    static CHOSEN: std::sync::OnceLock<(u32, Option<std::path::PathBuf>)> =
        std::sync::OnceLock::new();
    static PLACES: [AtomicBool; {last} + 1] = [const {{ AtomicBool::new(false) }}; {last} + 1];
    let (chosen, places) = CHOSEN.get_or_init(|| {{
        let chosen = std::env::var({VARIABLE:?}).map_or(0, |number| number.parse().unwrap());
        (chosen, std::env::var_os({PLACES:?}).map(Into::into))
    }});
    if let Some(places) = places {{
        let noted = &PLACES[place as usize];
        if !noted.load(Relaxed) && !noted.swap(true, Relaxed) {{
            let mut file =
                std::fs::OpenOptions::new().create(true).append(true).open(places).unwrap();
            std::io::Write::write_all(&mut file, std::format!("{{place}}\n").as_bytes()).unwrap();
        }}
    }}
    *chosen
}}
"#
    )
}

/// The text of a file with several mutants.
pub struct Schema {
    /// The file.
    pub text: String,
    /// The parts of it that belong to mutants, with the mutants' numbers.
    parts: Vec<(Range<usize>, Vec<u32>)>,
    /// The place of each mutant, by its number.
    pub places: BTreeMap<u32, u32>,
}

/// A part of a file, with its replacement in each mutant.
struct Choice {
    range: Range<usize>,
    others: Vec<(u32, String)>,
}

impl Schema {
    /// `text` with all of `mutants` that change something inside a function. Their numbers must be
    /// distinct, and not 0.
    pub fn of(text: &str, mutants: &[(u32, &Mutant)]) -> Self {
        let bodies = bodies(&mask(text));
        let mut choices: Vec<Choice> = Vec::new();
        for &(number, mutant) in mutants {
            let around = bodies.iter().filter(|body| encloses(body, &mutant.range));
            let Some(body) = around.min_by_key(|body| body.len()) else { continue };
            let (range, other) = match mutant.entry {
                // The text of an entry may be any part of the body.
                Some(_) => (body.clone(), mutant.apply(text)),
                None => (with_path(text, &mutant.range), mutant.apply(text)),
            };
            let end = other.len() - (text.len() - range.end);
            let other = (number, other[range.start..end].to_owned());
            match choices.iter_mut().find(|choice| choice.range == range) {
                Some(choice) => choice.others.push(other),
                None => choices.push(Choice { range, others: vec![other] }),
            }
        }
        let mut schema = Self { text: String::new(), parts: Vec::new(), places: BTreeMap::new() };
        choices.sort_by_key(|choice| (choice.range.start, std::cmp::Reverse(choice.range.end)));
        schema.put(text, 0..text.len(), &choices);
        schema
    }

    /// Appends `range` of `text` with its `choices`, which are in order, the outer one first.
    fn put(&mut self, text: &str, range: Range<usize>, mut choices: &[Choice]) {
        let mut at = range.start;
        while let Some((choice, rest)) = choices.split_first() {
            let inside = rest.partition_point(|other| other.range.start < choice.range.end);
            let (inner, behind) = rest.split_at(inside);
            self.text.push_str(&text[at..choice.range.start]);
            let start = self.text.len();
            let place = choice.others[0].0;
            self.text.push_str(&format!("match ::antiphon_platform::mutant({place}) {{"));
            for (number, other) in &choice.others {
                self.places.insert(*number, place);
                let start = self.text.len();
                self.text.push_str(&format!("{number} => {{{other}}} "));
                self.parts.push((start..self.text.len(), vec![*number]));
            }
            self.text.push_str("_ => {");
            self.put(text, choice.range.clone(), inner);
            self.text.push_str("}}");
            let numbers = choice.others.iter().map(|(number, _)| *number).collect();
            self.parts.push((start..self.text.len(), numbers));
            at = choice.range.end;
            choices = behind;
        }
        self.text.push_str(&text[at..range.end]);
    }

    /// The mutants that an error at the byte `at` belongs to: those of the smallest part around it.
    pub fn blamed(&self, at: usize) -> &[u32] {
        let around = self.parts.iter().filter(|(part, _)| part.contains(&at));
        around.min_by_key(|(part, _)| part.len()).map_or(&[], |(_, numbers)| numbers)
    }
}

/// `range` extended by the path before it: a choice replaces a whole expression.
fn with_path(text: &str, range: &Range<usize>) -> Range<usize> {
    let before = text[..range.start].bytes().rev();
    let path = before.take_while(|&byte| is_word(byte) || byte == b':').count();
    range.start - path..range.end
}

fn encloses(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// The insides of the bodies of all functions that may differ by mutant. Functions that return an
/// unnamed type are left out: each body would return a different type.
fn bodies(masked: &str) -> Vec<Range<usize>> {
    words(masked, "fn").filter_map(|at| body(masked, at)).collect()
}

/// The inside of the body of the function whose `fn` is at `at`.
fn body(masked: &str, at: usize) -> Option<Range<usize>> {
    let rest = &masked[at + "fn".len()..];
    // A type, `fn(u8)`, has no name.
    if !is_word(*rest.trim_start().as_bytes().first()?) {
        return None;
    }
    let mut depth = 0_usize;
    let open = rest.bytes().position(|byte| {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(byte, b'{' | b';')
    })?;
    let returned = rest[..open].rsplit_once(") -> ").map_or("", |(_, returned)| returned);
    if rest.as_bytes()[open] == b';' || words(returned, "impl").next().is_some() {
        return None;
    }
    let open = at + "fn".len() + open;
    Some(open + 1..closing(masked, open)? - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str, old: &str, new: &str) -> Mutant {
        let mut mutant = ordering(text, old, new);
        mutant.entry = Some("name [INV-1]".to_owned());
        mutant
    }

    fn ordering(text: &str, old: &str, new: &str) -> Mutant {
        let at = text.find(old).unwrap();
        Mutant::new("f", text, at..at + old.len(), new)
    }

    fn shown(schema: &Schema) -> String {
        let places = schema.places.values();
        places.fold(schema.text.clone(), |text, place| {
            text.replace(&format!("::antiphon_platform::mutant({place})"), "m")
        })
    }

    #[test]
    fn an_entry_has_a_body_of_its_own() {
        let text = "fn f(a: [u8; 2]) -> u8 { one(); two() }\nfn g() {}\n";
        let (a, b) = (entry(text, "one", "1"), entry(text, "two", "2"));
        let schema = Schema::of(text, &[(4, &a), (5, &b)]);
        assert_eq!(
            shown(&schema),
            "fn f(a: [u8; 2]) -> u8 {match m {4 => { 1(); two() } 5 => { one(); 2() } \
             _ => { one(); two() }}}\nfn g() {}\n"
        );
        assert_eq!(schema.places, BTreeMap::from([(4, 4), (5, 4)]));
        let blamed = |what: &str| schema.blamed(schema.text.find(what).unwrap()).to_owned();
        assert_eq!(blamed("1()"), [4]);
        assert_eq!(blamed("2()"), [5]);
        assert_eq!(blamed("match"), [4, 5]);
        assert_eq!(blamed("_ =>"), [4, 5]);
        assert!(blamed("fn g").is_empty());
    }

    #[test]
    fn an_ordering_is_chosen_where_it_stands() {
        let text = "fn f() { P::fence(Ordering::SeqCst); fn g() { a.b(AcqRel) } }";
        let removed = ordering(text, "P::fence(Ordering::SeqCst)", "()");
        let weaker = ordering(text, "SeqCst", "AcqRel");
        let (acquire, release) =
            (ordering(text, "(AcqRel", "(Acquire"), ordering(text, "(AcqRel", "(Release"));
        let body = entry(text, "a.b", "c");
        let mut of_paren = [acquire, release];
        for one in &mut of_paren {
            one.range.start += 1;
            one.new.remove(0);
        }
        let [acquire, release] = of_paren;
        let schema = Schema::of(
            text,
            &[(1, &removed), (2, &weaker), (3, &acquire), (4, &release), (5, &body)],
        );
        assert_eq!(
            shown(&schema),
            "fn f() { match m {1 => {()} _ => {P::fence(match m {2 => {Ordering::AcqRel} \
             _ => {Ordering::SeqCst}})}}; \
             fn g() {match m {5 => { c(AcqRel) } _ => { a.b(match m {3 => {Acquire} \
             4 => {Release} _ => {AcqRel}}) }}} }"
        );
    }

    #[test]
    fn what_is_in_no_body_is_left_out() {
        let text = "const A: u8 = 1;\nfn f() -> impl Fn() { g(2) }\ntype T = fn(u8);\nfn h();\n";
        let (a, b) = (entry(text, "1", "3"), entry(text, "2", "3"));
        let schema = Schema::of(text, &[(1, &a), (2, &b)]);
        assert_eq!(schema.text, text);
        assert!(schema.places.is_empty());
    }
}
