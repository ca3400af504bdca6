//! A plan for many rates of the source.

use model::ModelError;
use model::plan::{Compression, Setup};

use super::Planned;

/// Number of rates that are planned.
const POINTS: u64 = 60;
/// Bytes of content that the stops refer to.
const TERABYTE: f64 = 1e12;

/// Plans for ascending rates of the source.
#[derive(Clone, Debug)]
pub struct PlanCurve {
    /// Where the data are compressed.
    pub compression: Compression,
    /// The plans.
    pub points: Vec<CurvePoint>,
}

/// A plan for a rate of the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// The rate of the source.
    pub source_bytes_per_second: u64,
    /// Content per second while writing.
    pub bytes_per_second: f64,
    /// Back-hitches for each TB of content.
    pub back_hitches: f64,
}

impl Planned {
    /// The plan against the rate of the source, without and with the drive's compression.
    ///
    /// # Errors
    /// When a setup cannot be planned.
    pub fn curves(&self) -> Result<[PlanCurve; 2], ModelError> {
        let plain = self.curve(Compression::None)?;
        Ok([plain, self.curve(Compression::Drive(self.drive_ratio))?])
    }

    fn curve(&self, compression: Compression) -> Result<PlanCurve, ModelError> {
        let most = self.curve_rate_most();
        let point = |number: u64| {
            let mut setup = Setup { compression, ..self.setup.clone() };
            setup.source.bytes_per_second = most / POINTS * number;
            setup.source.files = 0;
            let plan = model::plan::plan(&setup)?;
            let size = setup.source.size_bytes as f64;
            Ok(CurvePoint {
                source_bytes_per_second: setup.source.bytes_per_second,
                bytes_per_second: size / (plan.seconds - plan.change_seconds),
                back_hitches: plan.back_hitches as f64 / size * TERABYTE,
            })
        };
        let points = (1..=POINTS).map(point).collect::<Result<_, ModelError>>()?;
        Ok(PlanCurve { compression, points })
    }

    /// The highest rate: a little above what the drive takes, or above the source.
    fn curve_rate_most(&self) -> u64 {
        let drive = &self.setup.drive;
        let native = drive.highest_bytes_per_second();
        let compressed = self.drive_ratio.host_rate(native);
        let takes = compressed.max(native).min(drive.host_bytes_per_second.value.max(native));
        let shown = takes.max(self.setup.archive_rate()).min(4 * takes);
        (shown / 5).saturating_mul(6).saturating_mul(self.setup.drives).max(POINTS)
    }
}
