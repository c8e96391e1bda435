//! Policies by call site: a small file that gives locks their policies in a program under the
//! preload library. The program counts in it how often each rule was applied.
//!
//! A rule is a range of offsets in a mapped file, and the name of a policy. The process that starts
//! the program writes the rules ([`file()`]), passes the file in [`VARIABLE`] and reads the counts
//! ([`matched`]); the library looks rules up ([`Rules`]), without an allocation or a lock.

use core::ffi::CStr;
use core::mem::{offset_of, size_of};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// The environment variable with the path of the file.
pub const VARIABLE: &str = "ANTIPHON_SITES";

/// Most rules of a file.
pub const RULES: usize = 512;
/// Bytes of a module's name.
pub const MODULE_BYTES: usize = 455;
/// Bytes of the name of a policy.
pub const POLICY_BYTES: usize = 31;
/// The length of the file, in bytes.
pub const FILE_BYTES: usize = size_of::<File>();

const MAGIC: u64 = u64::from_ne_bytes(*b"ANTISIT1");

/// The file.
#[repr(C)]
pub struct File {
    magic: u64,
    count: u64,
    rules: [Record; RULES],
}

#[repr(C)]
struct Record {
    /// The range of offsets that the rule applies to; `to` is exclusive.
    from: u64,
    to: u64,
    matched: AtomicU64,
    policy: [u8; POLICY_BYTES + 1],
    module: [u8; MODULE_BYTES + 1],
}

const _: () = assert!(size_of::<Record>() == 512);

/// A rule of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The file that contains the call: its path, as the kernel shows it, or only its last part.
    pub module: String,
    /// Offsets in that file of the last byte of the call.
    pub offsets: core::ops::Range<u64>,
    /// The name of the policy.
    pub policy: String,
}

/// Returns the contents of a file with these rules.
///
/// # Errors
///
/// A message if a rule or the list is too long.
pub fn file(rules: &[Rule]) -> Result<Vec<u8>, String> {
    if rules.len() > RULES {
        return Err(format!("{} places in programs: there is room for {RULES}", rules.len()));
    }
    let mut bytes = Vec::with_capacity(FILE_BYTES);
    bytes.extend(MAGIC.to_ne_bytes());
    bytes.extend((rules.len() as u64).to_ne_bytes());
    for rule in rules {
        for word in [rule.offsets.start, rule.offsets.end, 0] {
            bytes.extend(word.to_ne_bytes());
        }
        for (text, room) in [(&rule.policy, POLICY_BYTES), (&rule.module, MODULE_BYTES)] {
            if text.len() > room || text.contains('\0') {
                return Err(format!("the name is too long or contains a zero byte: {text}"));
            }
            bytes.extend(text.as_bytes());
            bytes.resize(bytes.len() + room + 1 - text.len(), 0);
        }
    }
    bytes.resize(FILE_BYTES, 0);
    Ok(bytes)
}

/// Returns how often each rule was applied, from the bytes of the file, read while the program runs
/// or later.
#[must_use]
pub fn matched(bytes: &[u8]) -> Vec<u64> {
    let word = |at: usize| {
        let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
        word.map_or(0, u64::from_ne_bytes)
    };
    let count = (word(offset_of!(File, count)) as usize).min(RULES);
    let begin = offset_of!(File, rules) + offset_of!(Record, matched);
    (0..count).map(|rule| word(begin + rule * size_of::<Record>())).collect()
}

/// The rules of a mapped file, looked up by the library. Never blocks or allocates.
#[derive(Clone, Copy)]
pub struct Rules(&'static File);

impl Rules {
    /// The rules that are mapped at `base`. `None` if the memory holds something else.
    ///
    /// # Safety
    ///
    /// `base` is aligned to 8 bytes, and [`FILE_BYTES`] are mapped there, shared, readable and
    /// writable, for as long as the process lives; no thread writes there any more, except the
    /// counts.
    #[must_use]
    pub unsafe fn at(base: *const File) -> Option<Self> {
        // SAFETY: mapped and aligned by the contract; any bytes are a valid `File`.
        let file = unsafe { &*base };
        (file.magic == MAGIC && file.count <= RULES as u64).then_some(Self(file))
    }

    /// The first rule for a call whose last byte is at `offset` in the file of that path.
    #[must_use]
    pub fn find(self, path: &[u8], offset: u64) -> Option<usize> {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        self.0.rules[..self.count()].iter().position(|rule| {
            let module = text(&rule.module);
            (rule.from..rule.to).contains(&offset) && (module == path || module == name)
        })
    }

    /// Number of rules.
    #[must_use]
    pub fn count(self) -> usize {
        self.0.count as usize
    }

    /// The name of a rule's policy.
    #[must_use]
    pub fn policy(self, rule: usize) -> &'static str {
        let name = self.0.rules.get(rule).map_or(&b""[..], |rule| text(&rule.policy));
        core::str::from_utf8(name).unwrap_or_default()
    }

    /// Counts that a rule was applied.
    pub fn applied(self, rule: usize) {
        if let Some(rule) = self.0.rules.get(rule) {
            rule.matched.fetch_add(1, Relaxed);
        }
    }
}

fn text(bytes: &'static [u8]) -> &'static [u8] {
    CStr::from_bytes_until_nul(bytes).map_or(&[], CStr::to_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(module: &str, offsets: core::ops::Range<u64>, policy: &str) -> Rule {
        Rule { module: module.to_owned(), offsets, policy: policy.to_owned() }
    }

    #[test]
    fn the_first_rule_that_fits_is_found_and_counted() {
        let rules = [
            rule("/lib/a.so", 16..32, "none"),
            rule("a.so", 24..40, "priority+distance"),
            rule("b", 0..1, "numa"),
        ];
        let bytes = file(&rules).expect("a file");
        assert_eq!((bytes.len(), matched(&bytes)), (FILE_BYTES, vec![0, 0, 0]));
        let words: Vec<u64> =
            bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_ne_bytes(word)).collect();
        let words = words.leak();
        // SAFETY: of the required length and alignment, never freed, and no other thread writes to
        // it.
        let found = unsafe { Rules::at(words.as_mut_ptr().cast()) }.expect("rules");
        let find = |path: &str, offset| found.find(path.as_bytes(), offset);
        assert_eq!(find("/lib/a.so", 15), None);
        assert_eq!(find("/lib/a.so", 16), Some(0));
        assert_eq!(find("/lib/a.so", 31), Some(0));
        assert_eq!(find("/lib/a.so", 32), Some(1));
        assert_eq!(find("/usr/lib/a.so", 31), Some(1));
        assert_eq!(find("/usr/bin/b", 0), Some(2));
        assert_eq!(find("/usr/bin/bb", 0), None);
        assert_eq!(found.policy(1), "priority+distance");
        found.applied(1);
        found.applied(1);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(matched(&bytes), [0, 2, 0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(file(&vec![rule("a", 0..1, "none"); RULES]).is_ok());
        assert!(file(&vec![rule("a", 0..1, "none"); RULES + 1]).is_err());
        assert!(file(&[rule(&"a".repeat(MODULE_BYTES), 0..1, "none")]).is_ok());
        assert!(file(&[rule(&"a".repeat(MODULE_BYTES + 1), 0..1, "none")]).is_err());
        assert!(file(&[rule("a", 0..1, &"a".repeat(POLICY_BYTES + 1))]).is_err());
        // SAFETY: an array of the file's length and alignment, never freed.
        let other = unsafe { Rules::at(vec![0_u64; FILE_BYTES / 8].leak().as_ptr().cast()) };
        assert!(other.is_none());
    }
}
