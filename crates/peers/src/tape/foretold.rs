//! The model's prediction of a run, in virtual time.

use anyhow::Context as _;
use model::program::{Copy, Ratio, Stream, copy, stream};
use model::tape::TapeModel;
use model::tape::generation::Generation;
use model::tape::parameters::{Known, TapeParameters};

use super::{DriveSetup, Writer};

/// A block as Takeup writes it; the time of the tape does not depend on it.
const BLOCK_BYTES: u64 = 1 << 20;
/// Faster than any interface.
const UNLIMITED_BYTES_PER_SECOND: u64 = 1_000_000_000_000;

/// Seconds and back-hitches of the model for `host_bytes` from the beginning of a blank cartridge,
/// closed by a synchronising filemark.
///
/// # Errors
/// When the setup names an unknown drive or parameter.
pub fn foretell(setup: &DriveSetup, host_bytes: u64) -> anyhow::Result<(f64, u64)> {
    let mut tape = TapeModel::new(parameters(setup)?);
    let never_waits = Stream {
        source_bytes_per_second: UNLIMITED_BYTES_PER_SECOND,
        ring_bytes: BLOCK_BYTES,
        start_fill_percent: 0,
        drain_bytes_per_second: None,
        block_bytes: BLOCK_BYTES,
        ratio: Ratio::NONE,
    };
    let program = match setup.writer {
        Writer::Unlimited => never_waits,
        Writer::Copy { block_bytes, source_bytes_per_second } => {
            let program = Copy { block_bytes, source_bytes_per_second, ratio: Ratio::NONE };
            let run = copy(&mut tape, program, host_bytes);
            return Ok((run.elapsed_ns as f64 / 1e9, tape.counters().back_hitches));
        }
        Writer::Ring {
            source_bytes_per_second,
            ring_bytes,
            start_fill_percent,
            drain_bytes_per_second,
        } => Stream {
            source_bytes_per_second,
            ring_bytes,
            start_fill_percent,
            drain_bytes_per_second,
            ..never_waits
        },
    };
    let run = stream(&mut tape, program, host_bytes);
    Ok((run.elapsed_ns as f64 / 1e9, tape.counters().back_hitches))
}

fn parameters(setup: &DriveSetup) -> anyhow::Result<TapeParameters> {
    let plain = |name: &str| name.to_ascii_lowercase().replace('-', "");
    let known = Generation::all().iter().find(|one| plain(one.name) == setup.generation);
    let generation = known.with_context(|| format!("no generation {}", setup.generation))?;
    let mut parameters = TapeParameters::of(generation);
    // As in `takeup sim tape` with a shorter cartridge: the time of a wrap stays the same.
    let full = u128::from(parameters.capacity_bytes.value.max(1));
    let wraps = u128::from(parameters.wraps.value) * u128::from(setup.capacity_bytes) / full;
    parameters.wraps = Known::given(wraps.max(1) as u64);
    parameters.capacity_bytes = Known::given(setup.capacity_bytes);
    for (name, value) in setup.settings {
        if !parameters.set(name, *value) {
            anyhow::bail!("no parameter of a drive: {name}");
        }
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LTO_7: DriveSetup = DriveSetup {
        generation: "lto7",
        settings: &[],
        capacity_bytes: 8_000_000_000,
        writer: Writer::Unlimited,
    };

    #[test]
    fn a_drive_at_full_speed_needs_its_rate_its_buffer_and_its_filemark() {
        let (seconds, back_hitches) = foretell(&LTO_7, 4_000_000_000).unwrap();
        // 13.1 s at 306 MB/s, 3 s for the filemark, 1.1 s until the buffer is full at 750 MB/s.
        assert!((17.0..17.4).contains(&seconds), "{seconds}");
        assert_eq!(back_hitches, 0);
    }

    #[test]
    fn small_blocks_wait_for_their_commands() {
        let writer = Writer::Copy { block_bytes: 10_240, source_bytes_per_second: 1_400_000_000 };
        let (seconds, _) = foretell(&DriveSetup { writer, ..LTO_7 }, 4_000_000_000).unwrap();
        // 390,625 times 50 us for a command, 13.7 us for its bytes and 7.3 us to read them; the
        // drive runs behind and ends with a buffer at most.
        assert!((30.7..34.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn settings_reach_the_model() {
        let settings = &[("synchronise_ns", 0)];
        let (seconds, _) = foretell(&DriveSetup { settings, ..LTO_7 }, 4_000_000_000).unwrap();
        assert!((14.0..14.4).contains(&seconds), "{seconds}");
        let settings = &[("colour", 0)];
        assert!(foretell(&DriveSetup { settings, ..LTO_7 }, 1).is_err());
    }
}
