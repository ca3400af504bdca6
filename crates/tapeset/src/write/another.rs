//! Another medium: the next one of a set, or the first where the drive is empty.

use std::time::Instant;

use base::failures::{lock, with_causes};
use device::target::Existing;
use flow::monitor::{Monitor, Pause};

use super::TapeDestination;
use super::begin::open_volume;
use super::error::TapeSetError;
use super::plan::SetPlan;
use super::unfit::{Unfit, UsedMedium};
use super::volume::Volume;
use crate::change::{CHANGE_ATTEMPTS_MAX, Refused, VolumePurpose, VolumeRequest};

/// The volume that a set needs.
pub(super) struct Wanted<'a> {
    pub(super) set: [u8; 16],
    /// Number of the volume, from 1.
    pub(super) number: u32,
    /// The media that the set has used.
    pub(super) used: &'a [UsedMedium],
}

/// A volume, and the seconds until somebody had put it in.
pub(super) struct Loaded {
    pub(super) volume: Volume,
    pub(super) asked_seconds: f64,
}

/// Opens the first volume of a set. An empty drive is filled by whoever changes media. A medium
/// that is there and may not be written to ends the run: somebody chose it. What may be written
/// over is in the drive already.
pub(super) fn first_volume(
    target: &TapeDestination,
    monitor: &dyn Monitor,
    plan: &SetPlan,
    set: [u8; 16],
) -> Result<Loaded, TapeSetError> {
    let refused = match open_volume(target, monitor, plan, &[], 1) {
        Ok(volume) => return Ok(Loaded { volume, asked_seconds: 0.0 }),
        Err(Unfit::Failed(error)) => return Err(error),
        Err(Unfit::Refused(refused)) => refused,
    };
    let is_asked = refused == Refused::NoMedium && plan.existing == Existing::Keep;
    if !is_asked || lock(&target.changer).is_nobody() {
        let device = target.drive.name().to_owned();
        return Err(TapeSetError::Refused { device, refused });
    }
    monitor.pause(Some(Pause::Changing));
    let wanted = Wanted { set, number: 1, used: &[] };
    let volume = another_volume(target, monitor, plan, &wanted, Some(refused));
    monitor.pause(None);
    volume
}

/// Asks for a volume until one is in the drive that may be written to.
pub(super) fn another_volume(
    target: &TapeDestination,
    monitor: &dyn Monitor,
    plan: &SetPlan,
    wanted: &Wanted<'_>,
    mut refused: Option<Refused>,
) -> Result<Loaded, TapeSetError> {
    let device = target.drive.name().to_owned();
    let (volume, mut asked_seconds) = (wanted.number, 0.0);
    for attempt in 1..=CHANGE_ATTEMPTS_MAX {
        let request = VolumeRequest {
            device: device.clone(),
            purpose: VolumePurpose::Write { set: wanted.set, volume },
            refused: refused.clone(),
            attempt,
        };
        let begun = Instant::now();
        let changed = lock(&target.changer).change(&request);
        asked_seconds += begun.elapsed().as_secs_f64();
        if let Err(source) = changed {
            return Err(TapeSetError::Change {
                device,
                volume,
                last: refused.map(Box::new),
                source,
            });
        }
        match open_volume(target, monitor, plan, wanted.used, volume) {
            Ok(volume) => return Ok(Loaded { volume, asked_seconds }),
            Err(Unfit::Refused(why)) => refused = Some(why),
            Err(Unfit::Failed(
                error @ (TapeSetError::Open(_)
                | TapeSetError::Tape(_)
                | TapeSetError::Exchanged { .. }),
            )) => {
                refused = Some(Refused::Unreadable { text: with_causes(&error) });
            }
            Err(Unfit::Failed(error)) => return Err(error),
        }
    }
    let last = refused.unwrap_or(Refused::NoMedium);
    let (attempts, used) = (CHANGE_ATTEMPTS_MAX, wanted.used.len());
    Err(TapeSetError::NoVolume { device, volume, attempts, last, used })
}
