//! The cost of each block for the two stages of a stream, and how long the stream would have taken
//! with another ring or another end.
//!
//! The times of a whole run do not show a ring that is too small for the bursts of its source:
//! while the ring is full the source waits, while it is empty the target does, and both look busy
//! for half of the run. With the cost of each block and the size of the ring, the run can be
//! replayed ([`played_seconds`]), with a larger ring for example.
//!
//! The other end of a pipe is a program with its own pace. A program that keeps to a clock (`pv
//! -L`) takes a burst at once after it had to wait, and is then slow again: its time in a run that
//! made it wait does not show its pace. [`sustained_seconds`] does.

use std::sync::Mutex;
use std::time::Instant;

use base::failures::lock;

/// Most blocks that are kept: the first ones of a longer run.
pub const STEPS_MAX: usize = 1 << 16;
/// A shorter wait is the time of a block from thread to thread.
const WAIT_SECONDS: f64 = 1e-3;
/// Least number of blocks, and least time, for a pace.
const SUSTAINED_STEPS: usize = 4;
const SUSTAINED_SECONDS: f64 = 0.2;
/// An end that takes this share of its mean time for a block has nothing to make up for.
const SLOW_SHARE: f64 = 0.7;

/// One block in one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// Seconds for it, without the wait for the other stage.
    pub cost_seconds: f64,
    /// Seconds of waiting for the other stage before it.
    pub waited_seconds: f64,
    /// Part of that wait in which the program at the end of this stage worked, as far as observed
    /// ([`crate::neighbour`]).
    pub hidden_seconds: f64,
}

impl Step {
    /// Seconds that the end of the stage takes for it: the wait for it, and its work while no stage
    /// waited for it.
    pub fn own_seconds(&self) -> f64 {
        self.cost_seconds + self.hidden_seconds
    }
}

/// The steps of both stages of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamSteps {
    /// Steps of the stage that fills the ring.
    pub read: Vec<Step>,
    /// Steps of the stage that empties the ring.
    pub write: Vec<Step>,
    pub ring_blocks: usize,
    pub block_bytes: usize,
}

impl StreamSteps {
    /// How long the kept blocks take from the first read to the last write, with a ring of this
    /// many blocks.
    pub fn seconds_with(&self, ring_blocks: usize) -> f64 {
        played_seconds(&costs(&self.read), &costs(&self.write), ring_blocks)
    }
}

/// The cost of each block, as measured.
pub fn costs(steps: &[Step]) -> Vec<f64> {
    steps.iter().map(|step| step.cost_seconds).collect()
}

/// Replays a stream: block `k` is read into the slot of block `k - ring_blocks` once that is
/// written, and is written once it is read.
pub fn played_seconds(read: &[f64], write: &[f64], ring_blocks: usize) -> f64 {
    let ring_blocks = ring_blocks.max(1);
    let mut written_at = Vec::with_capacity(write.len());
    let (mut read_at, mut last) = (0.0_f64, 0.0_f64);
    for (number, (read, write)) in read.iter().zip(write).enumerate() {
        if let Some(slot) = number.checked_sub(ring_blocks) {
            read_at = read_at.max(written_at[slot]);
        }
        read_at += read;
        last = last.max(read_at) + write;
        written_at.push(last);
    }
    last
}

/// Seconds per block at the pace of an end that may keep to a clock: such an end makes up at once
/// for what it could not do while it had to wait, and only then is slow again.
///
/// Consider a moment at which the end is slow, with nothing left to make up for. Up to there it has
/// done what its clock allows: all the time so far, waits included, divided by all blocks. An end
/// that is as slow right after a wait as later makes up for nothing; then waits are not included.
/// Of several such moments the shortest time counts, since none of them can be below its pace.
/// `None` if there is none: an end that always made up for its waits has not shown its pace.
pub fn sustained_seconds(steps: &[Step]) -> Option<f64> {
    let (mut blocks, mut seconds, mut pace) = (0, 0.0, None::<f64>);
    for stretch in steps.chunk_by(|_, next| next.waited_seconds < WAIT_SECONDS) {
        let worked: f64 = stretch.iter().map(Step::own_seconds).sum();
        let waited: f64 = stretch.iter().map(|it| it.waited_seconds - it.hidden_seconds).sum();
        blocks += stretch.len();
        seconds += worked + waited;
        if stretch.len() < SUSTAINED_STEPS || seconds < SUSTAINED_SECONDS {
            continue;
        }
        let part = (stretch.len() / 4).max(2);
        let (first, last) =
            (mean_cost(&stretch[1..=part]), mean_cost(&stretch[stretch.len() - part..]));
        let mean = seconds / blocks as f64;
        let shown = if worked >= SUSTAINED_SECONDS && first >= SLOW_SHARE * last {
            Some(worked / stretch.len() as f64)
        } else {
            (last >= SLOW_SHARE * mean).then_some(mean)
        };
        pace = shown.map(|shown| pace.map_or(shown, |pace| pace.min(shown))).or(pace);
    }
    pace
}

fn mean_cost(steps: &[Step]) -> f64 {
    steps.iter().map(|step| step.cost_seconds).sum::<f64>() / steps.len() as f64
}

/// An end that works in bursts with pauses, rather than at a pace: most of its time is in a few
/// blocks that take much longer than the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pauses {
    /// Least seconds of a block with a pause.
    pub least_seconds: f64,
    /// A typical pause that was measured completely. A source that pauses while there is no room
    /// for its data has part of the pause done when there is room again, and only the rest is
    /// measured, unless its pipe was observed.
    pub whole_seconds: f64,
}

impl Pauses {
    /// The pauses of an end, if it works in bursts.
    pub fn of(steps: &[Step]) -> Option<Pauses> {
        /// A clock such as `pv`'s ticks ten times a second.
        const PAUSE_SECONDS: f64 = 0.12;
        const TIMES_THE_MEDIAN: f64 = 4.0;
        const PAUSES_MIN: usize = 3;
        let mut sorted: Vec<f64> = steps.iter().map(Step::own_seconds).collect();
        sorted.sort_by(f64::total_cmp);
        let median = sorted.get(sorted.len() / 2)?;
        let least_seconds = PAUSE_SECONDS.max(TIMES_THE_MEDIAN * median);
        let long = &sorted[sorted.partition_point(|cost| *cost < least_seconds)..];
        // What a clock makes up for after its first burst is no pattern.
        if long.len() < PAUSES_MIN {
            return None;
        }
        // A single pause that was longer by chance must not set the measure.
        let whole_seconds = *long.get(long.len() * 3 / 4)?;
        let is_most = long.iter().sum::<f64>() > sorted.iter().sum::<f64>() / 2.0;
        is_most.then_some(Pauses { least_seconds, whole_seconds })
    }
}

/// Steps that are being kept.
#[derive(Debug)]
pub(crate) struct Keeper(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    last: Instant,
    waited_ns: u64,
    hidden_ns: u64,
    steps: Vec<Step>,
}

impl Keeper {
    pub(crate) fn new() -> Keeper {
        let (last, steps) = (Instant::now(), Vec::new());
        Keeper(Mutex::new(Kept { last, waited_ns: 0, hidden_ns: 0, steps }))
    }

    /// A block is done; `waited_ns` is how long the stage has waited for the other one so far, and
    /// its end worked for `hidden_ns` of that.
    pub(crate) fn add(&self, waited_ns: u64, hidden_ns: u64) {
        let mut kept = lock(&self.0);
        if kept.steps.len() == STEPS_MAX {
            return;
        }
        let now = Instant::now();
        let whole = now.duration_since(kept.last).as_secs_f64();
        let waited_seconds = waited_ns.saturating_sub(kept.waited_ns) as f64 / 1e9;
        let cost_seconds = (whole - waited_seconds).max(0.0);
        let hidden_seconds = hidden_ns.saturating_sub(kept.hidden_ns) as f64 / 1e9;
        let hidden_seconds = hidden_seconds.min(waited_seconds);
        kept.steps.push(Step { cost_seconds, waited_seconds, hidden_seconds });
        (kept.last, kept.waited_ns, kept.hidden_ns) = (now, waited_ns, hidden_ns);
    }

    pub(crate) fn steps(&self) -> Vec<Step> {
        lock(&self.0).steps.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that keeps to a clock: `per_block` each, but it makes up at once for the time that
    /// it waited.
    fn clocked(waits: &[f64], per_block: f64) -> Vec<Step> {
        let mut owed = 0.0;
        let step = |waited: &f64| {
            owed += waited;
            let saved = per_block.min(owed);
            owed -= saved;
            Step { cost_seconds: per_block - saved, waited_seconds: *waited, ..Step::default() }
        };
        waits.iter().map(step).collect()
    }

    #[test]
    fn a_ring_holds_a_burst_or_it_does_not() {
        // Ten blocks at once, then a pause of 0.5 s; each block takes 0.05 s to write.
        let read: Vec<f64> = (0..80).map(|k| if k % 10 == 9 { 0.5 } else { 0.0 }).collect();
        let write = vec![0.05; 80];
        let small = played_seconds(&read, &write, 2);
        let large = played_seconds(&read, &write, 64);
        assert!((large - 4.05).abs() < 0.51, "{large}");
        assert!(small > 7.0, "{small}");
        assert!((played_seconds(&read, &write, 1 << 20) - large).abs() < 0.5);
        assert!((played_seconds(&vec![0.0; 80], &write, 2) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn what_a_clock_makes_up_for_is_not_its_pace() {
        // It waits 0.25 s for every tenth block, at 0.05 s a block: five of ten come at once.
        let waits: Vec<f64> = (0..80).map(|k| if k % 10 == 0 { 0.25 } else { 0.0 }).collect();
        let steps = clocked(&waits, 0.05);
        let total: f64 = steps.iter().map(|step| step.cost_seconds).sum();
        assert!((total - 2.0).abs() < 1e-9, "{total}");
        let pace = sustained_seconds(&steps).unwrap();
        assert!((pace - 0.05).abs() < 1e-9, "{pace}");
        // An end that waits for each block shows no pace.
        assert_eq!(sustained_seconds(&clocked(&[0.06; 80], 0.05)), None);
    }

    /// A source gives 10 MB and pauses 0.4 s, the target keeps to 24 MB/s: after the first burst,
    /// it makes up for waits until near the end of each.
    #[test]
    fn what_is_nearly_all_made_up_for_is_not_its_pace() {
        let pace = 0.25 / 24.0;
        let waits: Vec<f64> =
            (0..160).map(|k| if k % 40 == 0 && k > 0 { 0.4 } else { 0.0 }).collect();
        let found = sustained_seconds(&clocked(&waits, pace)).unwrap();
        assert!((found - pace).abs() < 0.05 * pace, "{found} for {pace}");
        // A reader that is as slow right after a wait makes up for nothing.
        let steady = |waited_seconds: &f64| Step {
            cost_seconds: pace,
            waited_seconds: *waited_seconds,
            ..Step::default()
        };
        let late: Vec<Step> = [0.4].iter().chain(&waits[1..]).map(steady).collect();
        let found = sustained_seconds(&late).unwrap();
        assert!((found - pace).abs() < 0.05 * pace, "{found} for {pace}");
    }

    #[test]
    fn pauses_are_told_from_a_pace() {
        let step = |cost_seconds| Step { cost_seconds, ..Step::default() };
        let bursts: Vec<Step> =
            (0..80).map(|k| step(if k % 10 == 9 { 0.3 } else { 0.001 })).collect();
        assert_eq!(Pauses::of(&bursts).map(|it| it.whole_seconds), Some(0.3));
        let ticks: Vec<Step> =
            (0..80).map(|k| step(if k % 2 == 0 { 0.1 } else { 0.001 })).collect();
        assert_eq!(Pauses::of(&ticks), None);
        assert_eq!(Pauses::of(&[step(0.3); 10]), None);
        assert_eq!(Pauses::of(&[]), None);
    }
}
