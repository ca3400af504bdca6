//! Sense data: what a drive says about an error, in words.
//!
//! Codes are those of SPC-4 and SSC-3 (T10), as far as a tape drive uses them.

use std::fmt;

/// Sense key, additional code and qualifier of one error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sense {
    /// Sense key, 0 to 15.
    pub key: u8,
    /// Additional sense code.
    pub code: u8,
    /// Its qualifier.
    pub qualifier: u8,
    /// The command that reported it was not the one that met it.
    pub deferred: bool,
}

impl fmt::Display for Sense {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, code, qualifier) = (self.key, self.code, self.qualifier);
        write!(formatter, "sense key {key:#x}, code {code:#04x}/{qualifier:#04x}")
    }
}
