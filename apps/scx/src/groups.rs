//! Groups of users, by name.
//!
//! `/etc/group` is read directly: the program may be linked statically, and the C library then
//! finds no other sources of names. A number serves for the groups that are elsewhere.

use std::fs;

/// Returns the number of the group that has this name, or is this number.
///
/// # Errors
///
/// There is none, in words.
pub fn number(name: &str) -> Result<u32, String> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let text = fs::read_to_string("/etc/group").map_err(|error| format!("/etc/group: {error}"))?;
    find(&text, name).ok_or_else(|| format!("/etc/group has no group {name:?}: give its number"))
}

fn find(text: &str, name: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_by_its_whole_name() {
        let text = "root:x:0:\naudio:x:29:ann,bob\nbroken\nvideo:x:none:\n";
        assert_eq!((find(text, "audio"), find(text, "root")), (Some(29), Some(0)));
        for name in ["aud", "broken", "video", ""] {
            assert_eq!(find(text, name), None, "{name}");
        }
        assert_eq!(number("1000"), Ok(1_000));
        assert!(number("no such group").is_err());
    }
}
