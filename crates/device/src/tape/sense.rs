//! Sense data: what a drive reports about an error, in words.
//!
//! Codes are those of SPC-4 and SSC-3 (T10), as far as tape drives use them; the words are in
//! [`codes`]. Sense data come as bytes, from a command that bypassed the tape driver, or as lines
//! that the driver wrote to the kernel's log (`drivers/scsi/scsi_logging.c`).

mod codes;

use std::fmt;

/// Sense key, additional code and qualifier of one error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sense {
    /// Sense key, 0 to 15.
    pub key: u8,
    /// Additional sense code.
    pub code: u8,
    pub qualifier: u8,
    /// The error belongs to an earlier command than the one that reported it.
    pub deferred: bool,
}

/// `NO SENSE`.
const NO_SENSE: u8 = 0;
/// `RECOVERED ERROR`.
const RECOVERED: u8 = 1;
/// `ILLEGAL REQUEST`.
const ILLEGAL_REQUEST: u8 = 5;
/// `UNIT ATTENTION`.
const ATTENTION: u8 = 6;
/// `BLANK CHECK`.
const BLANK_CHECK: u8 = 8;
/// `MEDIUM ERROR`.
const MEDIUM_ERROR: u8 = 3;
/// Additional code and qualifier: end-of-data detected.
const END_OF_DATA: (u8, u8) = (0x00, 0x05);
/// Additional code: the medium may have changed.
const MEDIUM_CHANGED: u8 = 0x28;
/// Additional code: the drive was reset.
const RESET: u8 = 0x29;

impl Sense {
    /// From the bytes of fixed (70h, 71h) or descriptor format (72h, 73h); `None` for others.
    pub fn parse(bytes: &[u8]) -> Option<Sense> {
        let byte = |index: usize| bytes.get(index).copied();
        let (key, code, qualifier, deferred) = match byte(0)? & 0x7f {
            // Short sense data may leave out the codes; they are zero then (SPC-4, 4.5.3).
            kind @ (0x70 | 0x71) => {
                (byte(2)?, byte(12).unwrap_or(0), byte(13).unwrap_or(0), kind == 0x71)
            }
            kind @ (0x72 | 0x73) => {
                (byte(1)?, byte(2).unwrap_or(0), byte(3).unwrap_or(0), kind == 0x73)
            }
            _ => return None,
        };
        Some(Sense { key: key & 0xf, code, qualifier, deferred })
    }

    /// The drive did what was requested, after some effort.
    pub fn is_recovered(&self) -> bool {
        self.key == RECOVERED
    }

    /// The medium was changed, or may have been: what was known of it is invalid.
    pub fn is_medium_change(&self) -> bool {
        self.key == ATTENTION && self.code == MEDIUM_CHANGED
    }

    /// The drive was reset: the position is lost.
    pub fn is_reset(&self) -> bool {
        self.key == ATTENTION && self.code == RESET
    }

    /// The drive did what was requested, or met a filemark or an end of the medium.
    pub fn is_harmless(&self) -> bool {
        self.key == NO_SENSE || self.is_recovered()
    }

    /// A notice that something has happened to the drive or its medium. The command was not
    /// executed; when repeated, it will not fail for this reason.
    pub fn is_attention(&self) -> bool {
        self.key == ATTENTION
    }

    /// The drive does not support the command, or a field of it.
    pub fn is_illegal_request(&self) -> bool {
        self.key == ILLEGAL_REQUEST
    }

    /// Nothing is recorded from here on. The key alone does not show it: a drive that does not find
    /// the end of the data, or does not know the format of a medium, may report the same key
    /// (SSC-3, 4.2.10; table of sense codes).
    pub fn is_end_of_data(&self) -> bool {
        self.key == BLANK_CHECK && matches!((self.code, self.qualifier), (0, 0) | END_OF_DATA)
    }

    /// The drive cannot read the recorded data, or does not know the format.
    pub fn is_unreadable(&self) -> bool {
        matches!(self.key, MEDIUM_ERROR | BLANK_CHECK) && !self.is_end_of_data()
    }

    /// Name of the sense key.
    pub fn key_name(&self) -> &'static str {
        codes::KEYS[usize::from(self.key & 0xf)]
    }

    /// Meaning of the additional code, if the standards define it.
    pub fn meaning(&self) -> Option<&'static str> {
        codes::meaning(self.code, self.qualifier)
    }

    /// From the text behind `Sense Key : ` in the kernel's log.
    pub(super) fn from_log_key(text: &str) -> Option<Sense> {
        let name = text.split('[').next()?.trim().to_ascii_lowercase();
        // `Vendor Specific(9)`.
        let name = name.split('(').next()?;
        let named = codes::KEYS.iter().position(|key| *key == name);
        let numbered = || name.strip_prefix("0x").and_then(hexadecimal);
        let key = named.and_then(|key| u8::try_from(key).ok()).or_else(numbered)?;
        let deferred = text.contains("[deferred]");
        Some(Sense { key: key & 0xf, code: 0, qualifier: 0, deferred })
    }

    /// Sets the codes from the text behind `Add. Sense: ` in the log, or from a line with `ASC=0x..
    /// ASCQ=0x..`, which stands for codes that the kernel has no words for.
    pub(super) fn take_log_code(&mut self, text: &str) {
        let number_behind = |mark: &str| {
            let digits = text.split(mark).nth(1)?;
            hexadecimal(digits.split(|digit: char| !digit.is_ascii_hexdigit()).next()?)
        };
        let numbers = number_behind("ASC=0x").zip(number_behind("ASCQ=0x"));
        if let Some((code, qualifier)) = numbers.or_else(|| codes::find(text)) {
            (self.code, self.qualifier) = (code, qualifier);
        }
    }
}

impl fmt::Display for Sense {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, code, qualifier) = (self.key, self.code, self.qualifier);
        if self.deferred {
            formatter.write_str("deferred ")?;
        }
        formatter.write_str(self.key_name())?;
        match self.meaning() {
            Some(meaning) if code != 0 || qualifier != 0 => write!(formatter, ", {meaning}")?,
            _ => {}
        }
        write!(formatter, " (sense {key:x}/{code:02x}/{qualifier:02x})")
    }
}

fn hexadecimal(digits: &str) -> Option<u8> {
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats() {
        let mut fixed = [0u8; 18];
        (fixed[0], fixed[2], fixed[12], fixed[13]) = (0xf0, 0x63, 0x11, 0x00);
        let expected = Sense { key: 3, code: 0x11, qualifier: 0, deferred: false };
        assert_eq!(Sense::parse(&fixed), Some(expected));
        let descriptor = [0x73, 0x04, 0x15, 0x01, 0, 0, 0, 0];
        let expected = Sense { key: 4, code: 0x15, qualifier: 1, deferred: true };
        assert_eq!(Sense::parse(&descriptor), Some(expected));
        // Short data have a key but no codes.
        let expected = Sense { key: 2, ..Sense::default() };
        assert_eq!(Sense::parse(&fixed_short(2)), Some(expected));
    }

    fn fixed_short(key: u8) -> [u8; 8] {
        [0x70, 0, key, 0, 0, 0, 0, 0]
    }

    #[test]
    fn any_bytes_are_taken() {
        for first in 0..=255u8 {
            for length in 0..20 {
                let mut bytes = vec![0xa5; length];
                if let Some(byte) = bytes.first_mut() {
                    *byte = first;
                }
                let parsed = Sense::parse(&bytes);
                let known = (0x70..=0x73).contains(&(first & 0x7f));
                assert!(known || parsed.is_none());
                let _ = parsed.map(|sense| sense.to_string());
            }
        }
    }

    #[test]
    fn words() {
        let sense = Sense { key: 3, code: 0x0c, qualifier: 0, deferred: true };
        assert_eq!(sense.to_string(), "deferred medium error, write error (sense 3/0c/00)");
        let sense = Sense { key: 5, code: 0xc1, qualifier: 2, deferred: false };
        assert_eq!(sense.to_string(), "illegal request (sense 5/c1/02)");
        let sense = Sense { key: 4, code: 0x40, qualifier: 0x81, deferred: false };
        let expected = "hardware error, diagnostic failure on a component (sense 4/40/81)";
        assert_eq!(sense.to_string(), expected);
    }

    #[test]
    fn not_every_blank_check_is_the_end_of_the_data() {
        let sense = |key, code, qualifier| Sense { key, code, qualifier, deferred: false };
        assert!(sense(8, 0, 5).is_end_of_data() && sense(8, 0, 0).is_end_of_data());
        for (code, qualifier) in [(0x14, 0x03), (0x14, 0x00), (0x30, 0x01), (0x30, 0x02)] {
            let sense = sense(8, code, qualifier);
            assert!(!sense.is_end_of_data() && sense.is_unreadable(), "{sense}");
        }
        assert!(!sense(3, 0, 5).is_end_of_data() && !sense(6, 0x28, 0).is_unreadable());
    }

    #[test]
    fn every_code_comes_back_from_its_words() {
        for (code, qualifier, words) in codes::all() {
            let found = codes::find(words).unwrap();
            assert_eq!(codes::meaning(found.0, found.1), Some(words));
            assert_eq!(codes::meaning(code, qualifier), Some(words));
        }
    }

    #[test]
    fn keys_from_the_log() {
        let key = |text| Sense::from_log_key(text).map(|sense| (sense.key, sense.deferred));
        assert_eq!(key("Medium Error [current] "), Some((3, false)));
        assert_eq!(key("Aborted Command [current] [descriptor] "), Some((11, false)));
        assert_eq!(key("Vendor Specific(9) [deferred] "), Some((9, true)));
        assert_eq!(key("0xf [current] "), Some((15, false)));
        assert_eq!(key("nothing"), None);
    }
}
