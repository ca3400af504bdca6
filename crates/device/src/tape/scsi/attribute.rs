//! READ ATTRIBUTE: the memory chip of a cartridge, which answers without moving the tape.
//!
//! SPC-4, 6.16 and 7.4 (medium auxiliary memory). The *volume change reference* never repeats in
//! the life of a cartridge, and is another one after the first write since it was last read. So a
//! cartridge with the number that it had is as it was left.

use super::super::raw::QuestionError;
use super::{number, prefix, text};

const COMMAND: &str = "READ ATTRIBUTE";

/// Most bytes of an answer.
pub const ATTRIBUTE_BYTES_MAX: usize = 8192;

/// Values of all attributes of the cartridge.
pub const READ_ATTRIBUTES: [u8; 16] = {
    let [high, low] = (ATTRIBUTE_BYTES_MAX as u16).to_be_bytes();
    [0x8c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, high, low, 0, 0]
};

/// Volume change reference.
pub const CHANGE_REFERENCE: u16 = 0x0009;
/// Serial number of the cartridge, by its maker.
pub const SERIAL_NUMBER: u16 = 0x0401;
/// Barcode, if a library or a program wrote it.
pub const BARCODE: u16 = 0x0806;

/// What the memory of a cartridge says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CartridgeMemory {
    /// By its maker.
    pub serial: Option<String>,
    /// `None` if the drive does not know it.
    pub change_reference: Option<u32>,
    pub barcode: Option<String>,
}

impl CartridgeMemory {
    /// From the drive's answer.
    ///
    /// # Errors
    /// When it is too short. Attributes behind one that is cut off are left out.
    pub fn parse(bytes: &[u8]) -> Result<CartridgeMemory, QuestionError> {
        let length = u32::from_be_bytes(*prefix::<4>(COMMAND, bytes)?) as usize;
        let mut rest = &bytes[4..bytes.len().min(length.saturating_add(4))];
        let mut memory = CartridgeMemory::default();
        while let Some([high, low, _, long, short]) = rest.first_chunk::<5>() {
            let identifier = u16::from_be_bytes([*high, *low]);
            let end = 5 + usize::from(u16::from_be_bytes([*long, *short]));
            let Some(value) = rest.get(5..end) else { break };
            match identifier {
                CHANGE_REFERENCE => memory.change_reference = known_reference(value),
                SERIAL_NUMBER => memory.serial = known_text(value),
                BARCODE => memory.barcode = known_text(value),
                _ => {}
            }
            rest = &rest[end..];
        }
        Ok(memory)
    }

    /// Whether the cartridge is the same, and nothing was written to it since. Not known, so no,
    /// if either lacks a number.
    pub fn is_unchanged_since(&self, before: &CartridgeMemory) -> bool {
        let is_known = self.serial.is_some() && self.change_reference.is_some();
        is_known && self.serial == before.serial && self.change_reference == before.change_reference
    }
}

/// Zero and all ones say that the drive does not know it (SPC-4, 7.4.2.2.8).
fn known_reference(value: &[u8]) -> Option<u32> {
    let reference = number(value).and_then(|reference| u32::try_from(reference).ok());
    reference.filter(|reference| !matches!(*reference, 0 | u32::MAX))
}

fn known_text(value: &[u8]) -> Option<String> {
    Some(text(value)).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(identifier: u16, value: &[u8]) -> Vec<u8> {
        let length = (value.len() as u16).to_be_bytes();
        [&identifier.to_be_bytes()[..], &[0x80], &length, value].concat()
    }

    fn answer(attributes: &[Vec<u8>]) -> Vec<u8> {
        let attributes = attributes.concat();
        [&(attributes.len() as u32).to_be_bytes()[..], &attributes].concat()
    }

    #[test]
    fn a_cartridge_says_who_it_is_and_whether_it_changed() {
        let of = |reference: u32| {
            CartridgeMemory::parse(&answer(&[
                attribute(0, &[0; 8]),
                attribute(CHANGE_REFERENCE, &reference.to_be_bytes()),
                attribute(SERIAL_NUMBER, b"HH0123456789                    "),
                attribute(BARCODE, b"000123L6\0\0"),
            ]))
            .unwrap()
        };
        let memory = of(7);
        assert_eq!(memory.serial.as_deref(), Some("HH0123456789"));
        assert_eq!(memory.change_reference, Some(7));
        assert_eq!(memory.barcode.as_deref(), Some("000123L6"));
        assert!(of(7).is_unchanged_since(&memory));
        assert!(!of(8).is_unchanged_since(&memory));
        let other = CartridgeMemory { serial: Some("OTHER".to_owned()), ..memory.clone() };
        assert!(!other.is_unchanged_since(&memory));
        for unknown in [0, u32::MAX] {
            assert_eq!(of(unknown).change_reference, None);
            assert!(!of(unknown).is_unchanged_since(&of(unknown)), "not known is not unchanged");
        }
    }

    #[test]
    fn a_claimed_length_is_not_trusted() {
        let mut bytes = answer(&[attribute(BARCODE, b"A"), attribute(SERIAL_NUMBER, b"B")]);
        bytes[..4].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(CartridgeMemory::parse(&bytes).unwrap().serial.as_deref(), Some("B"));
        bytes.pop();
        assert_eq!(CartridgeMemory::parse(&bytes).unwrap().serial, None, "it is cut off");
        assert!(CartridgeMemory::parse(&[0, 0]).is_err());
    }
}
