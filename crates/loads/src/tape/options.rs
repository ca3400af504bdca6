//! What an experiment with tape needs to know besides its plan: permissions, not measurements.

use std::error::Error;

use super::error::TapeBenchError;

/// Where runs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// From the beginning of the medium.
    #[default]
    AtBeginning,
    /// Behind what the medium holds.
    BehindData,
}

/// What happens to a target that holds data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Occupied {
    /// It is left alone.
    #[default]
    Keep,
    /// It is written over.
    Overwrite,
}

/// Puts a medium into a drive. The drive is closed while this is at work.
pub trait MediumChanger: Send {
    /// Returns when the medium of this name is in `device`, or is said to be. `why` tells what was
    /// wrong with the one before.
    ///
    /// # Errors
    /// Why there will be none.
    fn bring(
        &mut self,
        device: &str,
        medium: &str,
        why: Option<&TapeBenchError>,
    ) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// Permissions of an experiment.
#[derive(Default)]
pub struct TapeOptions {
    /// Where runs are written.
    pub begin: Begin,
    /// What happens to a target that holds data.
    pub occupied: Occupied,
    /// Who changes media; needed where the plan has several.
    pub changer: Option<Box<dyn MediumChanger>>,
}
