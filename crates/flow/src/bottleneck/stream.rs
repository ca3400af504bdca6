//! Replays a stream through one ring: what a larger ring would have saved, and the pace of one end
//! if the other one cost nothing.

use crate::run::{Endpoint, RunReport};
use crate::steps::{Pauses, Step, StreamSteps, costs, played_seconds, sustained_seconds};

/// A larger ring is reported if it saves at least this share of the run, and this time.
const WORTH_SHARE: f64 = 0.05;
const WORTH_SECONDS: f64 = 0.05;
/// Largest relative difference between replay and run.
const PLAYED_SHARE: f64 = 0.1;
/// Fewer blocks show nothing.
const LEAST_BLOCKS: usize = 8;
/// A ring within this share of the best time is as good as a larger one.
const AS_GOOD: f64 = 1.02;
/// Largest ring that is proposed.
const RING_BYTES_MAX: usize = 1 << 30;

/// What a larger ring would have saved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LargerRing {
    pub bytes: u64,
    /// Seconds of the run with it.
    pub seconds: f64,
}

/// What is known of the pace of an end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pace {
    /// Its measured time is its pace.
    AsSeen,
    /// It makes up for waits; its pace is this many seconds per block without them.
    Clock(f64),
    /// It pauses, even while it is not observed.
    Pauses(Pauses),
    /// It makes up for waits, and always had to wait.
    Unknown,
}

impl Pace {
    /// The pace of a program: it pauses, or it may keep to a clock.
    fn of_program(steps: &[Step]) -> Pace {
        match Pauses::of(steps) {
            Some(pauses) => Pace::Pauses(pauses),
            None => sustained_seconds(steps).map_or(Pace::Unknown, Pace::Clock),
        }
    }

    /// The cost of each block without waits.
    fn costs(self, steps: &[Step]) -> Vec<f64> {
        // If a pause was seen after a wait, its length need not be guessed.
        let are_hidden = steps.iter().all(|step| step.hidden_seconds <= 0.0);
        let cost = |step: &Step| match self {
            Pace::Clock(seconds) => seconds,
            Pace::Pauses(pauses) if are_hidden && step.cost_seconds >= pauses.least_seconds => {
                step.cost_seconds.max(pauses.whole_seconds)
            }
            _ => step.own_seconds(),
        };
        steps.iter().map(cost).collect()
    }
}

/// A run that can be replayed.
pub(super) struct Stream<'a> {
    steps: &'a StreamSteps,
    paces: [Pace; 2],
    /// Its replay with its real ring.
    played_seconds: f64,
    /// Ratio of run to replay.
    blocks_scale: f64,
    run_seconds: f64,
}

impl<'a> Stream<'a> {
    /// `None` if the blocks were not kept, or the replay does not match the run.
    pub(super) fn new(run: &'a RunReport) -> Option<Stream<'a>> {
        let steps = run.steps.as_ref()?;
        let blocks = steps.read.len().min(steps.write.len());
        if blocks < LEAST_BLOCKS {
            return None;
        }
        let played_seconds = steps.seconds_with(steps.ring_blocks);
        let took: f64 =
            steps.write[..blocks].iter().map(|it| it.cost_seconds + it.waited_seconds).sum();
        if (played_seconds - took).abs() > PLAYED_SHARE * took {
            return None;
        }
        let kept_bytes = (blocks * steps.block_bytes) as f64;
        let read = match run.source {
            Endpoint::Pipe | Endpoint::Stream => Pace::of_program(&steps.read),
            _ => Pace::AsSeen,
        };
        let write = match run.target {
            Endpoint::Pipe | Endpoint::Stream => Pace::of_program(&steps.write),
            Endpoint::Tape => sustained_seconds(&steps.write).map_or(Pace::Unknown, Pace::Clock),
            _ => Pace::AsSeen,
        };
        Some(Stream {
            steps,
            paces: [read, write],
            played_seconds,
            blocks_scale: (run.archive_bytes as f64 / kept_bytes).max(1.0),
            run_seconds: run.seconds,
        })
    }

    /// The least time of the run with the end `free` at no cost; `None` if the pace of the other
    /// end is unknown.
    pub(super) fn seconds_without(&self, free: usize) -> Option<f64> {
        let (steps, pace) = match free {
            0 => (&self.steps.write, self.paces[1]),
            _ => (&self.steps.read, self.paces[0]),
        };
        let sum = |pace: Pace| pace.costs(steps).iter().sum::<f64>() * self.blocks_scale;
        (pace != Pace::Unknown).then(|| sum(Pace::AsSeen).max(sum(pace)))
    }

    /// The smallest ring that is as good as a very large one, if it helps the run.
    pub(super) fn larger_ring(&self) -> Option<LargerRing> {
        if self.paces.contains(&Pace::Unknown) {
            return None;
        }
        let steps = self.steps;
        let largest = (RING_BYTES_MAX / steps.block_bytes.max(1)).min(steps.write.len());
        let best = self.seconds_with(largest.max(steps.ring_blocks));
        let mut blocks = steps.ring_blocks * 2;
        while blocks < largest && self.seconds_with(blocks) > best * AS_GOOD {
            blocks *= 2;
        }
        let saved = (self.played_seconds - self.seconds_with(blocks)) * self.blocks_scale;
        let is_worth = saved >= (WORTH_SHARE * self.run_seconds).max(WORTH_SECONDS);
        is_worth.then(|| LargerRing {
            bytes: (blocks * steps.block_bytes) as u64,
            seconds: self.run_seconds - saved,
        })
    }

    /// With measured times and with their own pace: the longer of both.
    fn seconds_with(&self, blocks: usize) -> f64 {
        let [read, write] = self.paces;
        let at_their_pace =
            played_seconds(&read.costs(&self.steps.read), &write.costs(&self.steps.write), blocks);
        let as_seen = played_seconds(&costs(&self.steps.read), &costs(&self.steps.write), blocks);
        as_seen.max(at_their_pace)
    }
}

/// The least time that the target of a run with several rings needs: zero for a disk, `None` for a
/// program or a drive that did not show its pace.
pub(super) fn target_floor_seconds(run: &RunReport) -> Option<f64> {
    if !is_program_or_drive(run.target) {
        return Some(0.0);
    }
    let Some(steps) = &run.steps else { return Some(0.0) };
    let bytes = (steps.write.len() * steps.block_bytes.max(1)) as f64;
    let scale = (run.target_bytes as f64 / bytes.max(1.0)).max(1.0);
    let pace = match run.target {
        Endpoint::Tape => sustained_seconds(&steps.write).map_or(Pace::Unknown, Pace::Clock),
        _ => Pace::of_program(&steps.write),
    };
    (pace != Pace::Unknown).then(|| pace.costs(&steps.write).iter().sum::<f64>() * scale)
}

/// An end with a pace of its own, which shows only while it does not wait for the run.
pub(super) fn is_program_or_drive(end: Endpoint) -> bool {
    matches!(end, Endpoint::Pipe | Endpoint::Stream | Endpoint::Tape)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// A run whose first half was kept: 128 blocks, 64 of them with their costs.
    fn half_kept(read: Vec<Step>, mut write: Vec<Step>, target: Endpoint) -> RunReport {
        let steps = |write: &[Step]| StreamSteps {
            read: read.clone(),
            write: write.to_vec(),
            ring_blocks: 8,
            block_bytes: MIB,
        };
        let played_seconds = steps(&write).seconds_with(8);
        write[0].waited_seconds =
            played_seconds - write.iter().map(|it| it.cost_seconds).sum::<f64>();
        RunReport {
            seconds: 2.0 * played_seconds,
            archive_bytes: 128 * MIB as u64,
            source: Endpoint::File,
            target,
            steps: Some(steps(&write)),
            ..RunReport::default()
        }
    }

    fn cost(cost_seconds: f64) -> Step {
        Step { cost_seconds, ..Step::default() }
    }

    #[test]
    fn an_end_alone_takes_its_own_pace_for_all_blocks() {
        let run = half_kept(vec![cost(0.001); 64], vec![cost(0.02); 64], Endpoint::Pipe);
        let stream = Stream::new(&run).unwrap();
        let [without_read, without_write] =
            [0, 1].map(|free| stream.seconds_without(free).unwrap());
        assert!((without_read - 128.0 * 0.02).abs() < 1e-9, "{without_read}");
        assert!((without_write - 128.0 * 0.001).abs() < 1e-9, "{without_write}");
        // It had to wait before each block, so its pace is unknown.
        let waits =
            vec![Step { cost_seconds: 0.001, waited_seconds: 0.02, hidden_seconds: 0.0 }; 64];
        let mut run = half_kept(vec![cost(0.021); 64], waits.clone(), Endpoint::Pipe);
        run.steps.as_mut().unwrap().write = waits;
        assert_eq!(Stream::new(&run).unwrap().seconds_without(0), None);
    }

    /// Sixteen blocks and a pause of 0.2 s, in which a ring of eight runs empty.
    #[test]
    fn what_a_larger_ring_saves_it_saves_of_all_blocks() {
        let is_behind = |number: usize| number > 0 && number.is_multiple_of(16);
        let read =
            (0..64).map(|number| cost(if is_behind(number) { 0.2 } else { 0.0001 })).collect();
        let run = half_kept(read, vec![cost(0.0125); 64], Endpoint::File);
        let ring = Stream::new(&run).unwrap().larger_ring().unwrap();
        let with = run.steps.as_ref().unwrap().seconds_with(ring.bytes as usize / MIB);
        assert!(ring.bytes > 8 * MIB as u64 && with < 0.9 * run.seconds / 2.0, "{ring:?}");
        assert!((ring.seconds - 2.0 * with).abs() < 1e-9, "{ring:?} {with}");
    }
}
