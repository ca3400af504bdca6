//! What a medium is called.

use archive::label::MediumName;
use device::tape::scsi::attribute::CartridgeMemory;

use super::unfit::{Unfit, UsedMedium};
use crate::change::Refused;

/// The names that are at hand for the medium in the drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naming {
    /// The run was told that the medium is called so.
    told: Option<MediumName>,
    /// For a medium without a name.
    proposed: Option<MediumName>,
}

impl Naming {
    /// For the next medium of a run that was told `name` for its first one. Later media come
    /// without a name from the user: their bar code is on them, and so it comes first.
    pub(super) fn new(
        name: Option<MediumName>,
        memory: Option<&CartridgeMemory>,
        used: &[UsedMedium],
    ) -> Naming {
        let barcode = memory.and_then(|memory| MediumName::new(memory.barcode.as_deref()?));
        if used.is_empty() {
            return Naming { told: name, proposed: name.or(barcode) };
        }
        let numbered = name.and_then(|name| MediumName::new(&format!("{name}-{}", used.len() + 1)));
        Naming { told: None, proposed: barcode.or(numbered) }
    }

    /// The name of a medium that keeps its sets, and is called so by its labels.
    ///
    /// # Errors
    /// When the run was told that it is called otherwise: it is another medium.
    pub(super) fn of_used(
        &self,
        labelled: Option<MediumName>,
    ) -> Result<Option<MediumName>, Unfit> {
        match (labelled, self.told) {
            (Some(found), Some(wanted)) if found != wanted => {
                Err(Unfit::Refused(Refused::OtherName { found, wanted }))
            }
            _ => Ok(labelled.or(self.proposed)),
        }
    }

    /// The name of a medium that is written from its beginning. What is written on the cartridge
    /// does not change with its sets.
    pub(super) fn of_new(&self, before: Option<MediumName>) -> Option<MediumName> {
        self.told.or(before).or(self.proposed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<MediumName> {
        MediumName::new(text)
    }

    fn chip(barcode: &str) -> CartridgeMemory {
        let barcode = Some(barcode.to_owned());
        CartridgeMemory { serial: None, change_reference: None, barcode }
    }

    #[test]
    fn a_name_that_was_given_is_checked_against_the_labels() {
        let naming = Naming::new(name("week-3"), Some(&chip("000123L6")), &[]);
        assert_eq!(naming.of_used(None).ok(), Some(name("week-3")));
        assert_eq!(naming.of_used(name("week-3")).ok(), Some(name("week-3")));
        let other = naming.of_used(name("week-4"));
        assert!(matches!(other, Err(Unfit::Refused(Refused::OtherName { .. }))));
        assert_eq!(naming.of_new(name("week-4")), name("week-3"));
    }

    #[test]
    fn the_bar_code_is_the_name_where_nobody_gave_one() {
        let naming = Naming::new(None, Some(&chip("000123L6")), &[]);
        assert_eq!(naming.of_used(None).ok(), Some(name("000123L6")));
        assert_eq!(naming.of_used(name("week-3")).ok(), Some(name("week-3")));
        assert_eq!(naming.of_new(name("week-3")), name("week-3"));
        assert_eq!(Naming::new(None, Some(&chip("no name")), &[]).of_new(None), None);
    }

    #[test]
    fn later_media_get_their_bar_code_or_a_number() {
        let used = [UsedMedium { medium: [1; 16], volume: Some(1) }];
        let coded = Naming::new(name("week-3"), Some(&chip("000124L6")), &used);
        assert_eq!(coded.of_new(None), name("000124L6"));
        let plain = Naming::new(name("week-3"), None, &used);
        assert_eq!(plain.of_new(None), name("week-3-2"));
        assert_eq!(plain.of_used(name("old")).ok(), Some(name("old")));
        assert_eq!(Naming::new(name(&"n".repeat(32)), None, &used).of_new(None), None);
    }
}
