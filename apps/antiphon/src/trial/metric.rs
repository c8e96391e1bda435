//! A metric: a number that the program prints about itself, such as requests per second or a
//! latency.

use regex_lite::Regex;

/// A figure to look for in the program's output, and its name.
#[derive(Clone, Debug)]
pub struct Metric {
    name: String,
    pattern: Regex,
}

impl Metric {
    /// Parses `NAME=REGEX`, where the regular expression has one group: the number.
    ///
    /// # Errors
    ///
    /// A sentence, if the text has another form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, pattern) = text
            .split_once('=')
            .filter(|(name, pattern)| !name.is_empty() && !pattern.is_empty())
            .ok_or("takes NAME=REGEX, such as 'req/s=([0-9.]+) requests per second'")?;
        let pattern = Regex::new(pattern).map_err(|error| format!("{pattern:?}: {error}"))?;
        if pattern.captures_len() != 2 {
            return Err(format!("{:?} needs one group (…), around the number", pattern.as_str()));
        }
        Ok(Self { name: name.to_owned(), pattern })
    }

    /// The name that the user gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last match in `output`.
    ///
    /// # Errors
    ///
    /// A sentence, if there is no match, or the number is not above zero: it then has no ratio.
    pub fn find(&self, output: &str) -> Result<f64, String> {
        let last = self.pattern.captures_iter(output).last();
        let number = last.and_then(|captures| captures.get(1)).map(|group| group.as_str());
        let Some(number) = number else {
            return Err(format!(
                "nothing in the output matches {:?}; --keep-output shows it",
                self.pattern.as_str()
            ));
        };
        match number.replace(',', "").parse::<f64>() {
            Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
            _ => Err(format!("{} is {number:?}, which is not a number above zero", self.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_match_counts() {
        let metric = Metric::parse("req/s=([0-9.,]+) requests").unwrap();
        assert_eq!(metric.name(), "req/s");
        assert_eq!(metric.find("7 requests, then 12,000.5 requests"), Ok(12_000.5));
        assert!(metric.find("nothing").unwrap_err().contains("nothing in the output matches"));
        assert!(metric.find("0 requests").unwrap_err().contains("above zero"));
    }

    #[test]
    fn what_is_no_metric_is_refused() {
        for (text, part) in [
            ("req", "NAME=REGEX"),
            ("=(x)", "NAME=REGEX"),
            ("a=", "NAME=REGEX"),
            ("a=[0-9]+", "one group"),
            ("a=(1)(2)", "one group"),
            ("a=(", "("),
        ] {
            let error = Metric::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
