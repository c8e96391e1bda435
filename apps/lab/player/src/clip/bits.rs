//! Reads the bits of a NAL unit: fixed lengths and Exp-Golomb codes (H.264, §7.2 and §9.1).

/// A reader of a NAL unit's payload, from its front. Reads beyond the end return `None`.
pub(super) struct Bits {
    bytes: Vec<u8>,
    at: usize,
}

impl Bits {
    /// The payload `nal[1..]`, without the emulation prevention bytes (§7.4.1); at most `limit`
    /// bytes are read.
    pub(super) fn of(nal: &[u8], limit: usize) -> Self {
        let mut bytes = Vec::with_capacity(limit.min(nal.len()));
        let mut zeros = 0;
        for &byte in nal.iter().skip(1).take(limit) {
            if zeros >= 2 && byte == 3 {
                zeros = 0;
                continue;
            }
            zeros = if byte == 0 { zeros + 1 } else { 0 };
            bytes.push(byte);
        }
        Self { bytes, at: 0 }
    }

    /// Reads `u(count)`: at most 32 bits, the highest first.
    pub(super) fn take(&mut self, count: usize) -> Option<u32> {
        let mut value = 0;
        for _ in 0..count {
            let byte = *self.bytes.get(self.at / 8)?;
            value = value << 1 | u32::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Some(value)
    }

    /// Reads `u(1)`.
    pub(super) fn flag(&mut self) -> Option<bool> {
        Some(self.take(1)? == 1)
    }

    /// Reads `ue(v)`.
    pub(super) fn unsigned(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some((1 << zeros) - 1 + self.take(zeros)?)
    }

    /// Reads `se(v)`.
    pub(super) fn signed(&mut self) -> Option<i32> {
        let code = i64::from(self.unsigned()?);
        let half = (code + 1) / 2;
        i32::try_from(if code % 2 == 1 { half } else { -half }).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_standard_are_read() {
        // 1 010 011 00100 00101 | u(3) = 5, of table 9-1.
        let nal = [0x67, 0b1010_0110, 0b0100_0010, 0b1101_0000];
        let mut bits = Bits::of(&nal, 100);
        let values: Vec<_> = (0..5).map(|_| bits.unsigned().unwrap()).collect();
        assert_eq!(values, [0, 1, 2, 3, 4]);
        assert_eq!(bits.take(3), Some(5));
        let mut bits = Bits::of(&nal, 100);
        let values: Vec<_> = (0..5).map(|_| bits.signed().unwrap()).collect();
        assert_eq!(values, [0, 1, -1, 2, -2]);
    }

    #[test]
    fn what_keeps_start_codes_out_is_no_payload() {
        let mut bits = Bits::of(&[0x65, 0, 0, 3, 1, 0, 0, 3, 0, 0, 3], 100);
        assert_eq!(bits.take(32), Some(0x0000_0100));
        assert_eq!(bits.take(24), Some(0));
        assert_eq!(bits.take(1), None);
    }

    #[test]
    fn an_endless_code_ends() {
        assert_eq!(Bits::of(&[0; 100], 100).unsigned(), None);
        assert_eq!(Bits::of(&[0x67, 0], 100).unsigned(), None);
    }
}
