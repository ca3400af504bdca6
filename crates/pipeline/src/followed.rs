//! One running stage: what its threads do at each sample, and what the kernel counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::time::Instant;

use machine::control_groups;
use machine::processes::{Ending, Process, ProcessBytes, ProcessTimes, children, name};
use machine::threads::{self, Call, Schedule};

use super::doing::{Doing, Opened, doing, moves_uncounted};
use super::sampler::PROCESSES_MAX;
use super::{Stage, Wait, pace};

/// Waits for more different things than this are not recorded.
const NAMES_MAX: usize = 64;
/// This many waits are reported.
const WAITS_TOLD: usize = 3;
/// A quota that took less than this share of a stage's time is within the error of sampling.
const THROTTLED_SHARE: f64 = 0.02;

/// A process that moved fewer bytes is not counted among those that move the stage's data.
const MOVING_BYTES: u64 = 1 << 20;
/// Reasons why the bytes of a stage are not known.
pub(super) const SPLICES: &str = "it uses splice(2), whose bytes the kernel does not count";
const NOT_READABLE: &str = "takeup may not read its counters; run takeup as root";
/// What a sleeping stage waits for.
pub(super) const CLOCK: &str = "the clock";
const CLOCK_OR_FILE: &str = "the clock or another file";
/// The program that sleeps for a fixed time, whatever happened before.
const SLEEP: &str = "sleep";
const SEVERAL: &str = "several of its processes move the data, so some bytes would count twice";

/// How a stage was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It already ran.
    Running,
    /// It has just been started.
    Started,
    /// It is the shell that starts the others, or becomes the only one.
    Shell,
}

/// The state of the pipes of a stage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AtPipes {
    /// A pipe that it reads is empty.
    pub(super) is_empty: bool,
    /// A pipe that it writes is full.
    pub(super) is_full: bool,
    /// Every stage that wrote its input has ended.
    pub(super) is_input_over: bool,
}

/// The kernel's counters of all processes of a stage.
#[derive(Clone, Copy, Default)]
struct Counted {
    used_seconds: f64,
    system_seconds: f64,
    bytes: ProcessBytes,
}

/// A stage that is sampled.
pub(super) struct Followed {
    pub(super) process: Process,
    /// `None` where only a sample can show its end.
    ending: Option<Ending>,
    pub(super) is_shell: bool,
    pub(super) is_gone: bool,
    pub(super) processes: Vec<u32>,
    /// Open files, each with its process, that are pipes between processes of this stage.
    pub(super) inner: BTreeSet<(u32, u64)>,
    stage: Stage,
    /// When it was found.
    pub(super) since: Instant,
    /// The counters of its processes at the first sample; zero for a stage that was just started.
    before: Option<Counted>,
    /// Why its bytes are not known.
    uncounted_because: Option<&'static str>,
    /// Whether it has had child processes: they may come and go.
    starts_others: bool,
    /// Working time of the programs that it started, by name, in seconds.
    worked: BTreeMap<String, f64>,
    schedule_before: BTreeMap<u32, Schedule>,
    schedule: BTreeMap<u32, Schedule>,
    /// Seconds that the quota of its control group had taken at the first sample and at the last.
    throttled: Option<(f64, f64)>,
    calls: (u64, u64),
    waits: BTreeMap<String, f64>,
    /// The most threads that worked at the same time.
    working_at_once: usize,
    /// Its age at the last sample, in seconds.
    looked_seconds: f64,
    /// How long it ran on after the last sample, if its input had ended by then.
    end_seconds: f64,
    /// Whether its input had ended by the last sample.
    was_input_over: bool,
    /// What the last sample found it doing.
    last: Option<Doing>,
}

impl Followed {
    pub(super) fn new(process: Process, found: Found) -> Followed {
        let top = process.pid;
        let is_new = found != Found::Running;
        Followed {
            process,
            ending: Ending::of(process),
            is_shell: found == Found::Shell,
            is_gone: false,
            processes: vec![top],
            inner: BTreeSet::new(),
            stage: Stage { pid: top, ..Stage::default() },
            since: Instant::now(),
            before: is_new.then(Counted::default),
            uncounted_because: None,
            starts_others: false,
            worked: BTreeMap::new(),
            schedule_before: BTreeMap::new(),
            schedule: BTreeMap::new(),
            throttled: None,
            calls: (0, 0),
            waits: BTreeMap::new(),
            working_at_once: 0,
            looked_seconds: 0.0,
            end_seconds: 0.0,
            was_input_over: false,
            last: None,
        }
    }

    /// Whether it has ended since the last check; costs next to nothing.
    pub(super) fn has_just_ended(&self) -> bool {
        !self.is_gone && self.ending.as_ref().is_some_and(Ending::has_come)
    }

    /// Notices whether it has ended. The kernel's counters stay readable until its parent waits for
    /// it. `pipes` is the state of its pipes during the `seconds` before.
    pub(super) fn notice_end(&mut self, seconds: f64, pipes: AtPipes) {
        if self.is_gone || self.process.runs() {
            return;
        }
        self.is_gone = true;
        if self.ending.is_some() {
            self.stage.lifetime_seconds = self.since.elapsed().as_secs_f64();
            if pipes.is_input_over {
                self.end_seconds = seconds;
                // No byte could come any more: this time is not like that of the samples before,
                // in which it mostly waited for bytes. What of it was work, the kernel counts.
                self.stage.other_seconds += seconds;
            }
        }
        let times = ProcessTimes::of(self.process.pid);
        if times.is_some_and(|times| times.start_ticks == self.process.start_ticks) {
            self.count();
        }
    }

    /// Finds its processes, without those that are stages themselves.
    pub(super) fn search(&mut self, tops: &BTreeSet<u32>) {
        self.find_processes(tops);
        let now = self.processes.iter().filter_map(|&it| control_groups::throttled_seconds(it));
        if let Some(now) = now.reduce(f64::max) {
            self.throttled = Some((self.throttled.map_or(now, |(first, _)| first), now));
        }
        // During an exec it has no command line for a moment.
        let arguments = threads::arguments(self.process.pid);
        if !arguments.is_empty() {
            self.stage.command = arguments.join(" ");
            self.stage.arguments = arguments;
        }
        self.find_pace();
        if self.stage.command.is_empty() {
            self.stage.command = name(self.process.pid).unwrap_or_default();
        }
    }

    /// Finds the rate limit of its programs; of several the lowest.
    fn find_pace(&mut self) {
        for &process in &self.processes {
            let words = threads::arguments(process);
            let Some(rate) = pace::declared(&words) else { continue };
            if self.stage.declared_bytes_per_second.is_none_or(|known| rate < known) {
                self.stage.declared_bytes_per_second = Some(rate);
                let name = words[0].rsplit('/').next().unwrap_or_default();
                self.stage.declared_by = Some(name.to_owned());
            }
        }
    }

    fn find_processes(&mut self, tops: &BTreeSet<u32>) {
        let own = std::process::id();
        let mut all = vec![self.process.pid];
        let mut next = 0;
        while let Some(&process) = all.get(next).filter(|_| all.len() < PROCESSES_MAX) {
            let is_part = |child: &&u32| **child != own && !tops.contains(child);
            all.extend(children(process).iter().filter(is_part));
            next += 1;
        }
        self.starts_others |= all.len() > 1;
        self.processes = all;
    }

    /// Samples all threads.
    pub(super) fn look(&mut self, seconds: f64, pipes: AtPipes, tops: &BTreeSet<u32>) {
        if self.starts_others {
            self.find_processes(tops);
        }
        let mut found = None;
        let (mut count, mut working) = (0, 0);
        for at in 0..self.processes.len() {
            let process = self.processes[at];
            for thread in threads::of(process) {
                // Every user may read this file: if it is missing, the thread has ended.
                let Some(schedule) = Schedule::of(process, thread) else { continue };
                self.schedule_before.entry(thread).or_insert(schedule);
                self.schedule.insert(thread, schedule);
                count += 1;
                let call = Call::of(process, thread);
                if moves_uncounted(call) {
                    self.uncounted_because = Some(SPLICES);
                }
                let here = match doing(call, |file| self.opened(process, file)) {
                    Doing::Sleeping if name(process).as_deref() == Some(SLEEP) => Doing::Slept,
                    here => here,
                };
                working += usize::from(here == Doing::Working);
                if here == Doing::Working && process != self.process.pid {
                    self.works_in(process, seconds);
                }
                if found.as_ref().is_none_or(|found| here < *found) {
                    found = Some(here);
                }
            }
        }
        let Some(found) = found else { return };
        self.stage.threads = self.stage.threads.max(count);
        self.working_at_once = self.working_at_once.max(working);
        self.looked_seconds = self.since.elapsed().as_secs_f64();
        self.stage.lifetime_seconds = self.looked_seconds;
        self.stage.is_hidden |= found == Doing::Hidden;
        self.count();
        let here = match found {
            Doing::Asking | Doing::Hidden if pipes.is_full => Doing::Blocked,
            Doing::Asking | Doing::Hidden if pipes.is_empty => Doing::Starved,
            Doing::Hidden | Doing::Inside => Doing::Working,
            found => found,
        };
        let was_input_over = std::mem::replace(&mut self.was_input_over, pipes.is_input_over);
        let before = self.last.replace(here.clone());
        if pipes.is_input_over && !was_input_over {
            // The end of the input was noticed at once, so that the time before it is of another
            // kind than what is found now.
            self.add(seconds, before.unwrap_or(here));
            return;
        }
        if pipes.is_input_over && !matches!(here, Doing::Blocked | Doing::Starved) {
            self.stage.tail_seconds += seconds;
        }
        self.add(seconds, here);
    }

    fn opened(&self, process: u32, file: u64) -> Option<Opened> {
        match opened(process, file)? {
            Opened::Pipe if self.inner.contains(&(process, file)) => Some(Opened::InnerPipe),
            opened => Some(opened),
        }
    }

    fn works_in(&mut self, process: u32, seconds: f64) {
        let Some(name) = name(process) else { return };
        if self.worked.len() < NAMES_MAX || self.worked.contains_key(&name) {
            *self.worked.entry(name).or_default() += seconds;
        }
    }

    /// Reads the kernel's counters. Children that were waited for are in their parent's.
    fn count(&mut self) {
        let mut counted = Counted::default();
        let all = &mut counted.bytes;
        let mut moving = 0;
        for &process in &self.processes {
            let Some(times) = ProcessTimes::of(process) else { continue };
            counted.used_seconds += times.with_children_seconds();
            counted.system_seconds += times.system_seconds();
            let Some(bytes) = ProcessBytes::of(process) else {
                if !times.has_ended && Process::of(process).is_some() {
                    self.uncounted_because = Some(NOT_READABLE);
                }
                continue;
            };
            moving += usize::from(bytes.read_bytes.max(bytes.written_bytes) >= MOVING_BYTES);
            all.read_bytes += bytes.read_bytes;
            all.written_bytes += bytes.written_bytes;
            all.read_calls += bytes.read_calls;
            all.write_calls += bytes.write_calls;
        }
        if moving > 1 {
            self.uncounted_because = Some(SEVERAL);
        }
        let known = *self.before.get_or_insert(counted);
        let (all, before) = (counted.bytes, known.bytes);
        let stage = &mut self.stage;
        let used_seconds = counted.used_seconds - known.used_seconds;
        stage.processor_seconds = stage.processor_seconds.max(used_seconds);
        let system_seconds = counted.system_seconds - known.system_seconds;
        stage.system_seconds = stage.system_seconds.max(system_seconds);
        // The counts of a process that ended between two reads are gone: totals never shrink.
        let most = |now: u64, before: u64, known: u64| now.saturating_sub(before).max(known);
        let bytes_in = stage.bytes_in.unwrap_or(0);
        let bytes_out = stage.bytes_out.unwrap_or(0);
        stage.bytes_in = Some(most(all.read_bytes, before.read_bytes, bytes_in));
        stage.bytes_out = Some(most(all.written_bytes, before.written_bytes, bytes_out));
        self.calls.0 = most(all.read_calls, before.read_calls, self.calls.0);
        self.calls.1 = most(all.write_calls, before.write_calls, self.calls.1);
    }

    fn add(&mut self, seconds: f64, doing: Doing) {
        let stage = &mut self.stage;
        let (kind, waits_for) = match doing.clone() {
            Doing::Working | Doing::Hidden | Doing::Inside => (&mut stage.working_seconds, None),
            Doing::Asking | Doing::Sleeping => {
                stage.clock_seconds += seconds;
                let what = if doing == Doing::Sleeping { CLOCK } else { CLOCK_OR_FILE };
                (&mut stage.other_seconds, Some(what.to_owned()))
            }
            Doing::Blocked => (&mut stage.blocked_seconds, None),
            Doing::Starved => (&mut stage.starved_seconds, None),
            Doing::Reading(what) => (&mut stage.device_seconds, Some(what)),
            Doing::Writing(what) => {
                stage.device_write_seconds += seconds;
                (&mut stage.device_seconds, Some(what))
            }
            Doing::Flushing(what) => {
                stage.device_write_seconds += seconds;
                stage.flush_seconds += seconds;
                (&mut stage.device_seconds, Some(what))
            }
            Doing::Slept => (&mut stage.other_seconds, Some(CLOCK.to_owned())),
            Doing::Other(what) => (&mut stage.other_seconds, Some(what.to_owned())),
        };
        *kind += seconds;
        if let Some(what) = waits_for
            && (self.waits.len() < NAMES_MAX || self.waits.contains_key(&what))
        {
            *self.waits.entry(what).or_default() += seconds;
        }
    }

    /// The program's name and what it did most, as a share of its time so far.
    pub(super) fn mostly(&self) -> (String, &'static str, f64) {
        let stage = &self.stage;
        let kinds = [
            ("working", stage.working_seconds),
            ("starved", stage.starved_seconds),
            ("blocked", stage.blocked_seconds),
            ("device", stage.device_seconds),
            ("other", stage.other_seconds),
        ];
        let all: f64 = kinds.iter().map(|(_, seconds)| seconds).sum();
        let most = kinds.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(kinds[0]);
        (stage.program().to_owned(), most.0, most.1 / all.max(f64::MIN_POSITIVE))
    }

    /// The result: samples, corrected by the kernel's counters.
    pub(super) fn finish(&mut self) -> Stage {
        let mut stage = std::mem::take(&mut self.stage);
        let of = |value: fn(&Schedule) -> u64| {
            let since = |(thread, now): (&u32, &Schedule)| {
                let before = self.schedule_before.get(thread).map_or(0, value);
                value(now).saturating_sub(before) as f64 / 1e9
            };
            self.schedule.iter().map(since).sum::<f64>()
        };
        // The counters of its threads end with the last sample. After that the stage is assumed to
        // have gone on as before.
        let longer = if self.looked_seconds > 0.0 {
            (stage.lifetime_seconds / self.looked_seconds).max(1.0)
        } else {
            1.0
        };
        let ran = longer * of(|schedule| schedule.ran_ns);
        let waited = longer * of(|schedule| schedule.waited_ns);
        let each = self.schedule.iter().map(|(thread, now)| {
            let before = self.schedule_before.get(thread).copied().unwrap_or_default();
            let ns = now.ran_ns.saturating_sub(before.ran_ns)
                + now.waited_ns.saturating_sub(before.waited_ns);
            longer * ns as f64 / 1e9
        });
        stage.busiest_thread_seconds = each.reduce(f64::max).filter(|_| stage.threads > 1);
        let throttled = self.throttled.map_or(0.0, |(first, last)| (last - first).max(0.0));
        if stage.threads <= 1 {
            // A thread that a quota holds back looks as if it ran. It was held back for no longer
            // than it looked so and did not run.
            stage.throttled_seconds = throttled.min((stage.working_seconds - ran).max(0.0));
        } else {
            stage.throttled_seconds = throttled.min(stage.working_seconds);
        }
        stage.fit();
        // A shell and the programs that it starts one after the other work like one thread.
        let is_one_at_a_time = self.working_at_once <= 1 && !stage.is_hidden;
        if is_one_at_a_time && stage.throttled_seconds < THROTTLED_SHARE * stage.lifetime_seconds {
            // A child that ended between two samples is in the counters of its parent.
            stage.works_for(ran.max(stage.processor_seconds) + waited);
        }
        stage.core_wait_seconds = waited.min(stage.working_seconds);
        stage.tail_seconds = (stage.tail_seconds + self.end_seconds).min(stage.busy_seconds());
        if let Some(why) = self.uncounted_because {
            stage.does_not_count(why);
        }
        let most = std::mem::take(&mut self.worked).into_iter();
        let most = most.max_by(|a, b| a.1.total_cmp(&b.1));
        stage.works_most =
            most.filter(|(_, it)| *it >= stage.working_seconds / 2.0).map(|(name, _)| name);
        stage.write_calls = self.calls.1;
        let mean = |bytes: Option<u64>, calls: u64| {
            bytes.filter(|_| calls > 0).map(|bytes| bytes as f64 / calls as f64)
        };
        stage.read_bytes_mean = mean(stage.bytes_in, self.calls.0);
        stage.write_bytes_mean = mean(stage.bytes_out, self.calls.1);
        let waits = std::mem::take(&mut self.waits).into_iter();
        stage.waits_for = waits.map(|(what, seconds)| Wait { what, seconds }).collect();
        stage.waits_for.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        stage.waits_for.truncate(WAITS_TOLD);
        stage
    }
}

impl Stage {
    pub(super) fn does_not_count(&mut self, because: &'static str) {
        (self.bytes_in, self.bytes_out) = (None, None);
        (self.read_bytes_mean, self.write_bytes_mean) = (None, None);
        self.bytes_unknown_because = Some(because.into());
    }

    /// Sets the working time of a stage with one thread to the kernel's count. Samples alone are
    /// wrong by a third at times, because the sampler's timer also wakes the sampled programs. They
    /// count short waits between calls as work too often; sleeps are sampled at their length.
    fn works_for(&mut self, seconds: f64) {
        let seconds = seconds.min(self.lifetime_seconds);
        let waiting = self.waiting_seconds();
        let short =
            self.starved_seconds + self.blocked_seconds + self.device_seconds - self.flush_seconds;
        let surplus = self.working_seconds - seconds;
        if surplus > 0.0 && short > 0.0 {
            let factor = (short + surplus) / short;
            let device = self.device_seconds - self.flush_seconds;
            let write = (self.device_write_seconds - self.flush_seconds).max(0.0);
            self.starved_seconds *= factor;
            self.blocked_seconds *= factor;
            self.device_seconds += device * (factor - 1.0);
            self.device_write_seconds += write * (factor - 1.0);
        } else if waiting > 0.0 {
            self.scale_waits((self.lifetime_seconds - seconds) / waiting);
        } else {
            // No sample found it waiting: all of its time was work.
            return;
        }
        self.working_seconds = seconds;
    }

    /// All time that was not work.
    fn waiting_seconds(&self) -> f64 {
        self.starved_seconds + self.blocked_seconds + self.device_seconds + self.other_seconds
    }

    /// Scales each kind of waiting, and its parts.
    fn scale_waits(&mut self, factor: f64) {
        let kinds = [
            &mut self.starved_seconds,
            &mut self.blocked_seconds,
            &mut self.device_seconds,
            &mut self.device_write_seconds,
            &mut self.flush_seconds,
            &mut self.other_seconds,
            &mut self.clock_seconds,
        ];
        kinds.into_iter().for_each(|kind| *kind *= factor);
    }

    /// Makes the kinds of time add up to its lifetime: samples miss the time before the first and
    /// after the last of them.
    fn fit(&mut self) {
        let seen = self.busy_seconds() + self.starved_seconds + self.blocked_seconds;
        if seen <= 0.0 {
            self.other_seconds = self.lifetime_seconds;
            return;
        }
        let factor = self.lifetime_seconds / seen;
        self.working_seconds *= factor;
        self.tail_seconds *= factor;
        self.scale_waits(factor);
    }
}

/// The kind of an open file of a process.
fn opened(process: u32, file: u64) -> Option<Opened> {
    let path = threads::open_file(process, file)?;
    let shown = path.to_string_lossy();
    if shown.starts_with("pipe:[") {
        return Some(Opened::Pipe);
    }
    if shown.starts_with("socket:[") {
        return Some(Opened::Else("a socket"));
    }
    if !shown.starts_with('/') {
        return Some(Opened::Else("the kernel"));
    }
    if shown.starts_with("/dev/tty") || shown.starts_with("/dev/pts/") {
        return Some(Opened::Else("a terminal"));
    }
    let kind = fs::metadata(format!("/proc/{process}/fd/{file}")).ok().map(|it| it.file_type());
    if kind.is_some_and(|kind| kind.is_fifo()) {
        return Some(Opened::Pipe);
    }
    Some(Opened::File(shown.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_does_most_is_told_on_the_way() {
        let own = Process::of(std::process::id()).unwrap();
        let mut followed = Followed::new(own, Found::Running);
        followed.stage.arguments = vec!["/bin/gzip".to_owned()];
        (followed.stage.working_seconds, followed.stage.starved_seconds) = (3.0, 1.0);
        let (program, what, share) = followed.mostly();
        assert_eq!((program.as_str(), what), ("gzip", "working"));
        assert!((share - 0.75).abs() < 1e-9);
    }

    #[test]
    fn what_the_kernel_counted_of_one_thread_corrects_the_looks() {
        let mut stage = Stage {
            lifetime_seconds: 10.0,
            working_seconds: 3.0,
            starved_seconds: 1.0,
            device_seconds: 1.0,
            device_write_seconds: 0.5,
            ..Stage::default()
        };
        stage.fit();
        assert!((stage.working_seconds - 6.0).abs() < 1e-9, "{stage:?}");
        stage.works_for(9.0);
        assert!((stage.working_seconds - 9.0).abs() < 1e-9, "{stage:?}");
        assert!((stage.starved_seconds - 0.5).abs() < 1e-9, "{stage:?}");
        assert!((stage.device_write_seconds - 0.25).abs() < 1e-9, "{stage:?}");
        // If samples count too much work, a sleep keeps its length.
        let mut bursts = Stage {
            lifetime_seconds: 10.0,
            working_seconds: 3.0,
            blocked_seconds: 1.0,
            device_seconds: 2.0,
            flush_seconds: 1.0,
            other_seconds: 4.0,
            clock_seconds: 4.0,
            ..Stage::default()
        };
        bursts.works_for(1.0);
        let waits = [bursts.blocked_seconds, bursts.device_seconds, bursts.other_seconds];
        assert_eq!((bursts.working_seconds, waits), (1.0, [2.0, 3.0, 4.0]), "{bursts:?}");
        // A stage without a sampled wait may have waited between two samples, for unknown reasons.
        let mut busy = Stage { lifetime_seconds: 2.0, working_seconds: 2.0, ..Stage::default() };
        busy.works_for(1.0);
        assert!((busy.working_seconds - 2.0).abs() < 1e-9, "{busy:?}");
        // Its kinds of time add up also after rounding.
        let mut rounded = Stage { lifetime_seconds: 2.0 + 1e-12, ..busy };
        rounded.works_for(1.0);
        let sum = rounded.working_seconds + rounded.waiting_seconds();
        assert!((sum - rounded.lifetime_seconds).abs() < 1e-9, "{rounded:?}");
    }
}
