//! The command line of the kernel: words `name=value`, in any order.

/// The options of a command line.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(pub &'a str);

impl<'a> Options<'a> {
    /// Returns the value of the last word `name=value`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let mut words = self.0.split_ascii_whitespace().rev();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    /// Returns the number of the last word `name=number`, or `default` if there is none.
    ///
    /// # Errors
    ///
    /// The value, if it is not a number.
    pub fn number(&self, name: &str, default: u64) -> Result<u64, &'a str> {
        self.get(name).map_or(Ok(default), |value| value.parse().map_err(|_| value))
    }
}
