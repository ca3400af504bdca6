//! What a target that limits is said to do.

use base::finding::{Certainty, Finding};
use base::format::{duration, rate};
use base::rounding::Rounding;

use super::range;
use crate::amount::Amount;
use crate::chain::{Chain, Target};
use crate::rank::Rates;
use crate::rules;

/// From this share of a run on what a drive takes beside the data is told.
const BESIDE: f64 = 0.3;

/// The target of a chain, which limits it to the rate that is `reached`.
pub(super) fn limit(chain: &Chain, then: &str, own: &Amount, reached: &Rates) -> Finding {
    match &chain.target {
        Target::Tape(tape) => {
            let native = tape.parameters.highest_bytes_per_second() as f64 * tape.speed_up;
            let seconds = chain.source.bytes() as f64 / reached.bytes.typical.max(1.0);
            let of_data = (seconds - reached.beside_seconds).max(1e-9);
            // A chain that the drive holds back by half, without a stop in this run, is held back
            // by what comes once.
            let is_fast = own.typical * of_data > 2.0 * chain.source.bytes() as f64;
            let stops = reached.stops_per_hour * seconds / 3600.0;
            let is_once = is_fast && chain.source.is_whole && stops < 1.0;
            let is_beside = reached.beside_seconds > BESIDE * seconds || is_once;
            if is_fast && !is_beside {
                let what = format!("{then}the drive {} stops and starts again", tape.shown);
                let low = tape.parameters.lowest_bytes_per_second() as f64 * tape.speed_up;
                let why = format!("it gets less than its lowest speed, {}", rate(low));
                return Finding::new(&rules::DRIVE, Certainty::Inferred, what).because(why);
            }
            if is_beside {
                let what = format!("{then}the start and the end at {} are the limit", tape.shown);
                let [beside, whole] = [reached.beside_seconds, seconds].map(duration);
                let why = format!(
                    "the drive starts, and at the end writes what was gathered for it: {beside} of \
                     {whole}; of a longer run that is a smaller part"
                );
                return Finding::new(&rules::DRIVE, Certainty::Inferred, what).because(why);
            }
            let what =
                format!("{then}the drive {} is the limit: {}", tape.shown, rate(own.typical));
            let why = if chain.compresses() {
                format!("its highest speed is {}, and the data come compressed", rate(native))
            } else if tape.ratio > 1.01 {
                let ratio = Rounding::digits(2).number(tape.ratio);
                format!("its highest speed is {}, and it makes {ratio} bytes one", rate(native))
            } else {
                format!("its highest speed is {}", rate(native))
            };
            // Whether a real drive compresses was not asked.
            let certainty = match (tape.is_virtual, tape.ratio > 1.01) {
                (true, _) => Certainty::Told,
                (false, true) => Certainty::Assumed,
                (false, false) => Certainty::Inferred,
            };
            Finding::new(&rules::DRIVE, certainty, what).because(why)
        }
        target => {
            let what = format!("{then}{} is the limit: it takes {}", target.shown(), range(own));
            Finding::new(&rules::TARGET, own.certainty, what)
        }
    }
}
