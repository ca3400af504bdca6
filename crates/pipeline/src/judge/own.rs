//! How long a stage would take if no other made it wait, and how long all stages would take then.
//!
//! The measured busy time of a stage is only a lower bound. A stage with a rate limit sleeps less
//! after it had to wait, and catches up: its rate says how long it takes. A stage that sleeps
//! without a known rate may or may not catch up: its time is not known.
//! While a stage is blocked the kernel reads its file ahead: how long the stage would wait for the
//! file without being blocked is not known.
//! The end of a stage overlaps with nothing: its work after its input has ended, and the time that
//! its target needs until it has everything.

use super::Case;

/// From this share of the run on, sleeping or reading can hide in waits for other stages, and the
/// other way round.
const HIDES_SHARE: f64 = 0.05;
/// Share of a stage's wait for its file: reading ahead during shorter blocks changes little.
const HIDDEN_SHARE: f64 = 0.5;
/// A time that is this share of the run is near the run itself.
const NEAR: f64 = 0.9;

impl Case<'_> {
    /// Bytes that passed a stage, from its own calls or those of its neighbours.
    pub(super) fn moved_bytes(&self, at: usize) -> Option<u64> {
        let all = &self.look.stages;
        let next = |at: usize| all.get(at + 1).and_then(|it| it.bytes_in);
        let before = |at: usize| at.checked_sub(1).and_then(|at| all[at].bytes_out);
        next(at).or(all[at].bytes_out).or_else(|| before(at)).or(all[at].bytes_in)
    }

    /// How long a stage takes at its rate limit.
    pub(super) fn declared_seconds(&self, at: usize) -> Option<f64> {
        let rate = self.look.stages[at].declared_bytes_per_second?;
        Some(self.moved_bytes(at)? as f64 / rate.max(f64::MIN_POSITIVE))
    }

    /// The least time that a stage takes, from its measured times.
    pub(super) fn seen_seconds(&self, at: usize) -> f64 {
        let stage = &self.look.stages[at];
        match self.declared_seconds(at) {
            Some(declared) => declared.max(stage.busy_seconds() - stage.clock_seconds),
            None => stage.busy_seconds(),
        }
    }

    /// Whether a stage may take longer by itself than [`Case::seen_seconds`].
    pub(super) fn hides_its_pace(&self, at: usize) -> bool {
        self.sleeps_apart(at)
            || self.is_read_ahead(at)
            || (at + 1 == self.look.stages.len() && (self.drive_stops() || self.may_have_stopped()))
    }

    /// Whether a stage waits for the clock at times and for its neighbours at others.
    fn sleeps_apart(&self, at: usize) -> bool {
        let stage = &self.look.stages[at];
        let waits = stage.blocked_seconds + stage.starved_seconds;
        self.declared_seconds(at).is_none()
            && self.share(stage.clock_seconds) >= HIDES_SHARE
            && self.share(waits) >= HIDES_SHARE
    }

    /// Whether a stage waits for its file, and is blocked for so long at other times that reading
    /// ahead hides much of that wait.
    fn is_read_ahead(&self, at: usize) -> bool {
        let stage = &self.look.stages[at];
        let reads = stage.device_seconds - stage.device_write_seconds;
        let blocked = stage.blocked_seconds;
        let is_much = self.share(reads) >= HIDES_SHARE && self.share(blocked) >= HIDES_SHARE;
        is_much && blocked > HIDDEN_SHARE * reads
    }

    /// How long a stage takes by itself, including its end; `None` where that is not known.
    fn own_seconds(&self, at: usize) -> Option<f64> {
        let spared = if at + 1 == self.look.stages.len() { self.spared_by_buffer() } else { 0.0 };
        (!self.hides_its_pace(at)).then(|| self.seen_seconds(at) - spared)
    }

    /// [`Case::own_seconds`] of a stage that always has input. Threads that ran one after the other
    /// because they starved overlap then: they take as long as the busiest thread, or as all of
    /// them need on the cores.
    pub(super) fn fed_seconds(&self, at: usize) -> Option<f64> {
        let own = self.own_seconds(at)?;
        let stage = &self.look.stages[at];
        let Some(busiest) = stage.busiest_thread_seconds else { return Some(own) };
        let fed = busiest.max(stage.processor_seconds / self.left_cores());
        Some(own - (stage.working_seconds - fed).max(0.0))
    }

    /// How long a stage runs alone: after its input has ended, and for the last stage until its
    /// target has everything.
    pub(super) fn tail_seconds(&self, at: usize) -> f64 {
        let stage = &self.look.stages[at];
        let is_last = at + 1 == self.look.stages.len();
        stage.tail_seconds.max(if is_last { stage.flush_seconds } else { 0.0 })
    }

    /// How long the stages after `at` run alone.
    pub(super) fn tails_behind(&self, at: usize) -> f64 {
        let last = self.look.stages.len().saturating_sub(1);
        (at + 1..=last).map(|behind| self.look.stages[behind].tail_seconds).sum()
    }

    /// [`Case::tail_seconds`] if the stage takes `own_seconds` including its end: its own work
    /// there changes in proportion.
    fn tail_with(&self, at: usize, own_seconds: f64) -> f64 {
        let seen = self.seen_seconds(at);
        let end = if at + 1 == self.look.stages.len() { self.end_seconds() } else { 0.0 };
        let work = (self.tail_seconds(at) - end).max(0.0);
        let ratio = (own_seconds - end).max(0.0) / (seen - end).max(f64::MIN_POSITIVE);
        (end + work * ratio.min(1.0)).min(own_seconds)
    }

    /// The first stage whose own time is not known.
    pub(super) fn hidden_pace(&self) -> Option<usize> {
        (0..self.look.stages.len()).find(|&at| self.hides_its_pace(at))
    }

    /// How long the last stage waits at its end until its target has everything.
    pub(super) fn end_seconds(&self) -> f64 {
        self.look.stages.last().map_or(0.0, |last| last.flush_seconds)
    }

    /// Run time if nothing waits for anything that can overlap. `changed` replaces the time of one
    /// stage, including its end; `used_seconds` is the processor time of all stages. `None` where
    /// it is not known.
    pub(super) fn overlapped_with(
        &self,
        changed: Option<(usize, f64)>,
        used_seconds: f64,
    ) -> Option<f64> {
        let own = |at: usize| match changed {
            Some((stage, seconds)) if stage == at => Some(seconds),
            _ => self.own_seconds(at),
        };
        self.overlapped_by(own, used_seconds)
    }

    /// Run time if the stage that all others waited for takes so long: the others then always have
    /// input.
    pub(super) fn fed_with(&self, (changed, seconds): (usize, f64)) -> Option<f64> {
        let own = |at: usize| if at == changed { Some(seconds) } else { self.fed_seconds(at) };
        self.overlapped_by(own, self.used_seconds())
    }

    fn overlapped_by(&self, own: impl Fn(usize) -> Option<f64>, used_seconds: f64) -> Option<f64> {
        let (mut longest, mut tails) = (0.0_f64, 0.0);
        for at in 0..self.look.stages.len() {
            let own = own(at)?;
            let tail = self.tail_with(at, own);
            longest = longest.max(own - tail);
            tails += tail;
        }
        // A tail works on one core while the other stages have ended.
        let works_alone = (tails - self.end_seconds()).max(0.0);
        let cores = (used_seconds - works_alone).max(0.0) / self.left_cores();
        let source = longest.max(cores);
        let end = self.stop_at_end_seconds(source).max(self.end_seconds());
        Some((source + tails - self.end_seconds() + end).max(self.drive_seconds_fed(source)))
    }

    /// Run time if nothing waits for anything that can overlap, without a change.
    pub(super) fn overlapped_seconds(&self) -> Option<f64> {
        // Models of drives are wrong by a few percent; the measured run is an upper bound.
        Some(self.overlapped_with(None, self.used_seconds())?.min(self.seconds()))
    }

    /// The same, as it is told. Stages that wait for cores would wait longer if all worked at once,
    /// by how much no sum of their times shows: then only what is near the run itself is told.
    pub(super) fn floor_seconds(&self) -> Option<f64> {
        let is_known = |seconds: f64| !self.is_short_of_cores() || seconds >= NEAR * self.seconds();
        self.overlapped_seconds().filter(|seconds| is_known(*seconds))
    }

    /// The reason why a stage's own time is not known.
    pub(super) fn hidden_because(&self, at: usize) -> String {
        if at + 1 == self.look.stages.len() && self.drive_stops() {
            return "the time of the drive without its stops is not known".to_owned();
        }
        if at + 1 == self.look.stages.len() && self.may_have_stopped() {
            return "writes waited for the drive longer than the data take at its rate, and whether \
                    it stopped for want of data is not known"
                .to_owned();
        }
        let stage = &self.look.stages[at];
        let share = |seconds: f64| base::format::percent(self.share(seconds).min(1.0));
        if self.is_read_ahead(at) {
            let reads = stage.device_seconds - stage.device_write_seconds;
            let read = stage.waits_for.first().map_or("its files", |wait| wait.what.as_str());
            return format!(
                "{} waits for {read} for {} of the run, and the kernel reads ahead while the stage \
                 is blocked",
                self.named(at),
                share(reads),
            );
        }
        format!(
            "{} waits for the clock for {} of the run, and may wait longer if nothing else \
             delays it",
            self.named(at),
            share(stage.clock_seconds)
        )
    }
}
