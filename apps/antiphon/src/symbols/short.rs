//! Shortens names of functions so that a row of a table fits a terminal. Reports in JSON and
//! `--wide` have the full names.

/// Template arguments of at most this many letters are kept.
const ARGUMENTS: usize = 10;

/// The name in at most `letters` letters: without what the compiler adds, with long template
/// arguments as `<…>`, and of a long path only the end.
pub fn short(name: &str, letters: usize) -> String {
    let mut name = of_its_type(name).to_owned();
    for (long, short) in
        [("(anonymous namespace)::", ""), ("{lambda()#", "{lambda#"), ("{{closure}}", "{closure}")]
    {
        name = name.replace(long, short);
    }
    name = without_arguments(&without_tags(&name));
    // The only function of a lambda has no name, and its type may have none either.
    if name == "operator()" {
        return "{lambda}".to_owned();
    }
    if let Some(lambda) = name.strip_suffix("::operator()").filter(|name| name.ends_with('}')) {
        name = lambda.to_owned();
    }
    end_of_path(name, letters)
}

/// Writes `<Type as Trait>::f` as `Type::f`: the trait is known from the function.
fn of_its_type(name: &str) -> String {
    let Some(rest) = name.strip_prefix('<') else { return name.to_owned() };
    let Some(end) = closing(rest) else { return name.to_owned() };
    let of = rest[..end].split(" as ").next().unwrap_or_default();
    format!("{of}{}", &rest[end + 1..])
}

/// The position in `text` of the bracket that closes one opened before it.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            // The `>` of an arrow closes nothing.
            '>' if !text[..at].ends_with(['-', '=']) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Removes tags such as in `f[abi:cxx11]`.
fn without_tags(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(at) = rest.find("[abi:") {
        let Some(end) = rest[at..].find(']') else { break };
        out.push_str(&rest[..at]);
        rest = &rest[at + end + 1..];
    }
    out + rest
}

/// Writes long arguments of templates and generics as `<…>`; brackets in an operator's name are no
/// arguments.
fn without_arguments(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(at) = rest.find('<') {
        let (before, arguments) = (&rest[..at], &rest[at + 1..]);
        out.push_str(before);
        match closing(arguments) {
            Some(end) if !before.ends_with("operator") => {
                let inside = &arguments[..end];
                let inside = if inside.chars().count() > ARGUMENTS { "…" } else { inside };
                out.push_str(&format!("<{inside}>"));
                rest = &arguments[end + 1..];
            }
            _ => {
                out.push('<');
                rest = arguments;
            }
        }
    }
    out + rest
}

/// The end of a path that is too long: as many whole parts as fit.
fn end_of_path(name: String, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name;
    }
    let fits = |end: &&str| end.chars().count() + 3 <= letters;
    let parts = name.match_indices("::").map(|(at, _)| &name[at + 2..]);
    match parts.into_iter().find(fits) {
        Some(end) => format!("…::{end}"),
        None => name.chars().take(letters.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LETTERS: usize = 44;

    #[test]
    fn names_lose_what_a_reader_does_not_need() {
        let cases = [
            ("pthread_mutex_lock", "pthread_mutex_lock"),
            ("main::{lambda()#1}::operator()", "main::{lambda#1}"),
            ("operator()", "{lambda}"),
            ("Less::operator()", "Less::operator()"),
            ("std::vector<int>::push_back", "std::vector<int>::push_back"),
            ("Map<std::string, std::vector<int>>::get", "Map<…>::get"),
            ("(anonymous namespace)::f[abi:cxx11]", "f"),
            ("operator<<", "operator<<"),
            ("std::operator<< <std::char_traits<char> >", "std::operator<< <…>"),
            ("<my::Type as core::ops::Drop>::drop", "my::Type::drop"),
            ("<F as FnOnce<(A,)>>::call_once", "F::call_once"),
            ("app::run::{{closure}}", "app::run::{closure}"),
        ];
        for (long, expected) in cases {
            assert_eq!(short(long, LETTERS), expected, "{long}");
        }
    }

    #[test]
    fn a_long_path_keeps_its_end() {
        let long = "one::two::three::four::five::six::seven::eight::nine::ten::eleven";
        let name = short(long, LETTERS);
        assert!(name.chars().count() <= LETTERS && name.ends_with("::eleven"), "{name}");
        assert!(name.starts_with("…::"), "{name}");
        let word = short(&"a".repeat(99), LETTERS);
        assert!(word.chars().count() == LETTERS && word.ends_with('…'), "{word}");
        // Malformed names stay as they are.
        assert_eq!(short("f<g<h", LETTERS), "f<g<h");
    }
}
