//! What is known of a drive and the medium in it before a run: its buffer, its speeds, what the
//! medium takes, what filemarks and winding take. A virtual drive says what it is set to; of a real
//! one its logs tell some, and the table of generations the rest.

use base::format::size;
use device::tape::{Compression, DriveCompression, Tape};
use model::tape::generation::Generation;
use model::tape::parameters::TapeParameters;
use sim::mount::drive::{DriveTime, ParameterValue};

use super::super::error::TapeBenchError;
use super::super::job::TapeJob;
use super::MeasuredDrive;
use crate::payload::Data;

/// Share of a medium's capacity behind which no run is begun that may not end before the end.
const CAPACITY_SHARE: f64 = 0.97;

/// What is known of a drive's buffer and speeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Rates {
    pub(in super::super) buffer_bytes: Option<u64>,
    pub(in super::super) highest_bytes_per_second: Option<u64>,
    pub(in super::super) lowest_bytes_per_second: Option<u64>,
    /// What filemarks and winding take.
    pub(in super::super) parameters: Option<TapeParameters>,
    /// Whether these are what a virtual drive is set to, and not what is assumed of a generation.
    pub(in super::super) is_set: bool,
    /// Native bytes of the medium in the drive.
    pub(in super::super) capacity_bytes: Option<u64>,
}

impl Rates {
    /// Native bytes that runs can have, one behind the other.
    pub(in super::super) fn usable_bytes(&self) -> Option<u64> {
        self.capacity_bytes.map(usable)
    }
}

/// What a model of the drive is made of: what a virtual drive says of itself, in place of what is
/// known of its generation.
fn told_parameters(mut parameters: TapeParameters, time: Option<&DriveTime>) -> TapeParameters {
    for row in time.iter().flat_map(|time| &time.parameters) {
        if let ParameterValue::One(value) = row.value {
            parameters.set(&row.name, value);
        }
    }
    parameters
}

impl MeasuredDrive {
    /// What is known of the drive's buffer and speeds.
    pub(in super::super) fn rates(&mut self) -> Rates {
        let time = self.virtual_time();
        let told = |of: fn(&DriveTime) -> u64| time.as_ref().map(of);
        let generation = self.tape.as_mut().and_then(generation);
        let base = generation.map(TapeParameters::of);
        Rates {
            parameters: base.map(|base| told_parameters(base, time.as_ref())),
            is_set: time.is_some(),
            capacity_bytes: self.capacity(),
            buffer_bytes: told(|time| time.buffer_bytes)
                .or(self.log_buffer_bytes)
                .or(generation.map(|known| known.buffer_bytes)),
            highest_bytes_per_second: told(|time| time.highest_bytes_per_second)
                .or(generation.map(Generation::highest_speed)),
            lowest_bytes_per_second: told(|time| time.lowest_bytes_per_second)
                .or(generation.map(Generation::lowest_speed)),
        }
    }

    /// Native bytes of the medium: as the drive told, or those of its generation.
    pub(super) fn capacity(&mut self) -> Option<u64> {
        self.told_capacity_bytes
            .or_else(|| self.tape.as_mut().and_then(generation).map(|known| known.capacity_bytes))
    }

    /// Refuses a run that is longer than the medium in the drive, where nothing makes its data
    /// shorter. Asked before anything is written.
    pub(in super::super) fn check_length(
        &mut self,
        jobs: &[TapeJob],
    ) -> Result<(), TapeBenchError> {
        let Some(capacity_bytes) = self.rates().capacity_bytes else { return Ok(()) };
        let longest = jobs.iter().filter(|job| !self.may_shrink(job)).map(TapeJob::bytes).max();
        match longest {
            Some(run_bytes) if run_bytes > capacity_bytes => {
                let device = self.drive.name().to_owned();
                Err(TapeBenchError::LongerThanMedium { device, run_bytes, capacity_bytes })
            }
            _ => Ok(()),
        }
    }

    /// Says of runs that they may meet the end of the medium.
    pub(in super::super) fn near_the_end(&mut self, jobs: &[TapeJob]) -> Option<String> {
        let rates = self.rates();
        let (usable, capacity) = (rates.usable_bytes()?, size(rates.capacity_bytes?));
        let long: Vec<&TapeJob> = jobs.iter().filter(|job| job.bytes() > usable).collect();
        let longest = long.iter().map(|job| job.bytes()).max()?;
        let unless = if long.iter().any(|job| self.may_shrink(job)) {
            " unless the drive compresses the data"
        } else {
            ""
        };
        Some(format!(
            "{} of {} runs, of up to {}, come to the end of the medium, which takes {capacity}, \
             and fail{unless}: --length makes them shorter",
            long.len(),
            jobs.len(),
            size(longest)
        ))
    }

    /// Whether the data of a run may take less on the medium than they have.
    fn may_shrink(&self, job: &TapeJob) -> bool {
        match (job.compression, self.compression) {
            (Some(DriveCompression::Off), _) => return false,
            (None, Some(Compression::Off | Compression::Unable)) => return false,
            _ => {}
        }
        let has_ratio = |time: DriveTime| time.given_compression_ratio;
        job.data != Data::Random || self.virtual_time().and_then(has_ratio).is_some()
    }
}

/// Native bytes of the medium, where the drive tells. Asks it.
pub(super) fn told_capacity(tape: &mut Tape) -> Option<u64> {
    let volume = tape.volume_statistics().ok()?;
    volume.capacity_bytes.filter(|&bytes| bytes > 0)
}

/// Bytes before the drive warns of the end of the medium, or the end itself may come.
pub(super) fn usable(capacity_bytes: u64) -> u64 {
    (capacity_bytes as f64 * CAPACITY_SHARE) as u64
}

pub(super) fn generation(tape: &mut Tape) -> Option<&'static Generation> {
    let medium = Generation::of_density(tape.status().ok()?.density)?;
    let product = tape.inquiry().map(|names| names.product).unwrap_or_default();
    Some(medium.in_drive(&product))
}
