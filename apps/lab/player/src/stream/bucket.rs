//! A token bucket, which limits the rate of a link.

/// A token bucket: bytes at a rate, and a burst at once. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    byte_ns: f64,
    burst_ns: f64,
    /// The time when all bytes taken so far are paid for.
    paid_ns: f64,
}

impl Bucket {
    /// A bucket of `bytes_per_second`, of which the bytes of `burst_ns` may be taken at once.
    ///
    /// # Panics
    ///
    /// If the rate is 0.
    pub fn new(bytes_per_second: u64, burst_ns: u64) -> Self {
        assert!(bytes_per_second > 0, "the rate of a link must be above 0");
        let byte_ns = 1e9 / bytes_per_second as f64;
        Self { byte_ns, burst_ns: burst_ns as f64, paid_ns: 0.0 }
    }

    /// The time until which the bucket is empty; `None` if it is not empty now.
    pub fn empty_until_ns(&self, now_ns: u64) -> Option<u64> {
        let until_ns = (self.paid_ns - self.burst_ns).ceil();
        (until_ns > now_ns as f64).then_some(until_ns as u64)
    }

    /// Takes bytes. If these are more than the bucket has, the bucket stays empty until they are
    /// paid for.
    pub fn take(&mut self, now_ns: u64, bytes: usize) {
        self.paid_ns = self.paid_ns.max(now_ns as f64) + bytes as f64 * self.byte_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_had_is_the_rate_and_a_burst_at_most() {
        for rate in [1000, 125_000, 10_000_000] {
            let mut bucket = Bucket::new(rate, 20_000_000);
            let (mut now_ns, mut had) = (5_000_000_000, 0);
            let end_ns = now_ns + 3_000_000_000;
            while now_ns < end_ns {
                match bucket.empty_until_ns(now_ns) {
                    Some(until_ns) => now_ns = until_ns,
                    None => {
                        bucket.take(now_ns, 700);
                        had += 700;
                    }
                }
            }
            let wanted = 3 * rate as usize;
            assert!((wanted..=wanted + rate as usize / 50 + 1400).contains(&had), "{rate}: {had}");
        }
    }

    #[test]
    fn what_is_not_taken_is_not_saved() {
        let mut bucket = Bucket::new(1000, 1_000_000_000);
        assert_eq!(bucket.empty_until_ns(0), None);
        bucket.take(3_600_000_000_000, 3000);
        assert_eq!(bucket.empty_until_ns(3_600_000_000_000), Some(3_602_000_000_000));
    }
}
