//! The findings: what limits, what to type, what it brings, and what comes then.

mod target;

use base::finding::{Certainty, Finding, Rule, Unit};
use base::format::{binary_size, counted, duration, percent, rate};
use base::rounding::Rounding;
use experiment::judgement::quoted;

use crate::amount::Amount;
use crate::chain::{Chain, FILES_AT_ONCE, Reading, Target, WhyUnknown, Work};
use crate::change::Change;
use crate::program::Compressor;
use crate::rank::{Limit, Ranking, Rates, Step};
use crate::rules;
use crate::source::{Found, Tree};
use crate::station::{Station, name, stations};

/// From this share of the time on the disks of the source were not ours alone.
const BUSY: f64 = 0.1;
/// Processors of others that are told.
const OTHERS_CORES: f64 = 0.5;
/// From this share on the trials' files lay in memory.
const CACHED: f64 = 0.5;
/// From this share on small files, or large ones, are a part of the reading that is told.
const PART: f64 = 0.15;
/// From this ratio on a higher rate of the source is told.
const MORE: f64 = 1.1;
/// A core that takes more by less takes about as much.
const FASTER: f64 = 1.1;
/// Output that is larger by less is about as large.
const MORE_OUTPUT: f64 = 0.01;
/// Stops of the tape that are told.
const STOPS_PER_HOUR: f64 = 2.0;

impl Ranking {
    /// What was found, the limit first.
    pub fn findings(&self, chain: &Chain, found: Option<&Found>) -> Vec<Finding> {
        let first = self.first.filter(|_| is_known(chain)).map(|first| {
            let found = limit(chain, first, "", &self.now);
            match first.station {
                Station::LargeFiles => found.because("no change of this line is known to help it"),
                _ => found,
            }
        });
        let place = |at: usize| match (at, &first) {
            (0, None) => Place::First,
            (0, Some(_)) => Place::Beside,
            _ => Place::Then,
        };
        let steps = self.steps.iter().enumerate().map(|(at, step)| told(step, place(at)));
        let steps: Vec<Finding> = steps.collect();
        let mut findings: Vec<Finding> = first.into_iter().chain(steps).collect();
        // Where nothing of the source was tried, it may be the limit.
        if chain.source.stream.is_some() || chain.source.small.is_some() {
            findings.extend(self.last.map(|last| self.at_last(last)));
            findings.extend(self.alike());
        } else {
            let what = format!("how fast {} is read is not known", chain.source.shown);
            findings.push(
                Finding::new(&rules::NOT_KNOWN, Certainty::Unknown, what).because(
                    "it has too few data to try, or they could not be read past the cache",
                ),
            );
        }
        findings.extend(same_disk(chain));
        findings.extend(unknown(chain));
        let hours = chain.source.bytes() as f64 / self.now.bytes.typical.max(1.0) / 3600.0;
        let is_seen = !chain.source.is_whole || self.now.stops_per_hour * hours >= 1.0;
        if self.now.stops_per_hour >= STOPS_PER_HOUR && is_seen {
            findings.push(self.stops());
        }
        findings.extend(found.into_iter().flat_map(about_trials));
        findings
    }

    /// What limits when nothing is left to change.
    fn at_last(&self, last: Limit) -> Finding {
        let chain = &self.end;
        let is_open = chain.links.iter().any(|link| matches!(link.work, Work::Unknown(_)));
        let then = match (is_open, self.steps.is_empty()) {
            (true, _) => "of what is known, ",
            (false, true) => "",
            (false, false) => "then ",
        };
        let reached = self.steps.last().map_or(self.now, |step| step.after);
        limit(chain, last, then, &reached)
    }

    /// The rules of the steps, in their order.
    pub fn step_rules(&self) -> Vec<&'static Rule> {
        self.steps.iter().map(|step| rule_of(step)).collect()
    }

    /// Two stations that are alike: no single change helps.
    fn alike(&self) -> Option<Finding> {
        let Limit { alike, .. } = self.last?;
        let other = name(&self.end, alike?);
        let what =
            format!("{other} gives about as much: a change of one of the two alone brings little");
        Some(Finding::new(&rules::ALIKE, Certainty::Inferred, what))
    }

    fn stops(&self) -> Finding {
        let per_hour = self.now.stops_per_hour;
        let every = duration(3600.0 / per_hour);
        Finding::new(
            &rules::STOPS,
            Certainty::Inferred,
            format!("the tape stops about every {every}: it gets less than its lowest speed"),
        )
        .with_number("stops_per_hour", per_hour, Unit::Count)
    }
}

/// Whether all of a chain was tried or told.
fn is_known(chain: &Chain) -> bool {
    let source = &chain.source;
    let is_tried = source.stream.is_some() || source.small.is_some();
    is_tried && !chain.links.iter().any(|link| matches!(link.work, Work::Unknown(_)))
}

/// What limits a chain, which reaches this rate.
fn limit(chain: &Chain, Limit { station, .. }: Limit, then: &str, reached: &Rates) -> Finding {
    let own = stations(chain).into_iter().find(|it| it.station == station);
    let own = own.and_then(|it| it.now).map_or(reached.bytes, |own| own);
    let source = &chain.source.shown;
    let mut finding = match station {
        Station::LargeFiles => Finding::new(
            &rules::SOURCE,
            own.certainty,
            format!(
                "{then}{source} itself is the limit: its large files give {}",
                large_rate(chain).map_or(range(&own), |own| range(&own))
            ),
        )
        .because(match chain.source.reading {
            Reading::ManyAtOnce => "that is with many requests at once".to_owned(),
            Reading::OneByOne => of_more(chain),
        }),
        Station::SmallFiles => small_files(chain, then),
        Station::Program(at) => program(chain, at, then, &own),
        Station::Target => target::limit(chain, then, &own, reached),
    };
    if matches!(station, Station::LargeFiles | Station::SmallFiles) {
        finding.caveat = parts_of_reading(chain);
    }
    finding
}

/// What more under way would give, for files that are read one after the other.
fn of_more(chain: &Chain) -> String {
    match &chain.source.stream {
        Some(stream) if stream.most.typical > MORE * stream.now.typical => format!(
            "more at once gives up to {}, which the rest of this chain does not take",
            rate(stream.most.typical)
        ),
        Some(stream) if !stream.windows.is_empty() => {
            "neither more read-ahead nor many requests at once gave more".to_owned()
        }
        _ => "what more at once would give could not be tried".to_owned(),
    }
}

/// How much of the reading is for small files, where both kinds take their part.
fn parts_of_reading(chain: &Chain) -> Option<String> {
    let seconds = |kind: Station| {
        let own = stations(chain).into_iter().find(|it| it.station == kind)?;
        Some(1.0 / own.now?.typical)
    };
    let (large, small) = (seconds(Station::LargeFiles)?, seconds(Station::SmallFiles)?);
    let share = small / (large + small);
    (PART..=1.0 - PART).contains(&share).then(|| {
        let (small, large) = (percent(share), percent(1.0 - share));
        format!("reading takes {small} of its time for small files and {large} for large ones")
    })
}

/// What large files are read with.
fn large_rate(chain: &Chain) -> Option<Amount> {
    let stream = chain.source.stream.as_ref()?;
    Some(match chain.source.reading {
        Reading::OneByOne => stream.now,
        Reading::ManyAtOnce => stream.most,
    })
}

/// 270 MB/s (250 to 290)
fn range(amount: &Amount) -> String {
    if amount.low == amount.high {
        return rate(amount.typical);
    }
    format!("{} ({} to {})", rate(amount.typical), rate(amount.low), rate(amount.high))
}

fn times(gain: f64) -> String {
    Rounding::digits(2).number(gain)
}

/// Where a change stands among the findings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// What it changes is the limit.
    First,
    /// Something else is, which it does not touch.
    Beside,
    /// It comes behind other changes.
    Then,
}

fn rule_of(step: &Step) -> &'static Rule {
    let chain = &step.changed.chain;
    match step.changed.change {
        Change::ReadAhead { .. } => &rules::READ_AHEAD,
        Change::TakeupBackup if is_of_small_files(chain) => &rules::SMALL_FILES,
        Change::TakeupBackup => &rules::AT_ONCE,
        Change::Blocks { .. } => &rules::BLOCKS,
        Change::Buffer => &rules::TURNS,
        Change::AllCores { .. } | Change::FastestLevel { .. } | Change::OwnCompression { .. } => {
            &rules::COMPRESSOR
        }
        Change::WithoutRate { .. } => &rules::PACE,
    }
}

/// A change, as a finding.
fn told(step: &Step, place: Place) -> Finding {
    let chain = &step.changed.chain;
    let (what, why, change) = limit_of(step, place);
    let what = match place {
        Place::First => what,
        Place::Beside => format!("what can be changed brings less: {what}"),
        Place::Then => format!("then {what}"),
    };
    let gain = step.gain();
    let mut finding = Finding::new(rule_of(step), Certainty::Inferred, what)
        .because(why)
        .with_number("bytes_per_second", step.before.bytes.typical, Unit::BytesPerSecond)
        .with_number("with_the_change", step.after.bytes.typical, Unit::BytesPerSecond)
        .with_number("gain", gain.typical, Unit::Ratio)
        .with_number("gain_low", gain.low, Unit::Ratio)
        .with_number("gain_high", gain.high, Unit::Ratio);
    finding.gain = Some(format!(
        "{change}: {} in the place of {}, {} times as fast ({} to {})",
        range(&step.after.bytes),
        rate(step.before.bytes.typical),
        times(gain.typical),
        times(gain.low),
        times(gain.high),
    ));
    if let (Change::Blocks { bytes, .. }, Target::Tape(_)) = (&step.changed.change, &chain.target) {
        let units = bytes / 512;
        finding.caveat =
            Some(format!("what is written so is read back with blocks as large: tar -b {units}"));
    }
    if let Change::FastestLevel { larger, .. } | Change::OwnCompression { larger, .. } =
        step.changed.change
    {
        finding.caveat = Some(format!("its output becomes {}", size_words(larger)));
    }
    if let Some(command) = &step.changed.command {
        finding = finding.with_command(command.clone());
        if let Some(undo) = step.changed.undo {
            finding.action = Some(format!("{command}; undo: {undo}"));
        }
    }
    finding
}

fn is_of_small_files(chain: &Chain) -> bool {
    let source = &chain.source;
    let large = source.stream.as_ref().map_or(0.0, |it| source.large_bytes as f64 / it.now.typical);
    let small = source.small.map_or(0.0, |it| it.one_by_one.typical * source.small_files as f64);
    small > large
}

/// What a change says of the limit, why, and what the change is called.
fn limit_of(step: &Step, place: Place) -> (String, String, String) {
    let chain = &step.changed.chain;
    let source = &chain.source.shown;
    let (is, are) = match place {
        Place::Beside => ("takes a part of the time", "take a part of the time"),
        Place::First | Place::Then => ("is the limit", "are the limit"),
    };
    match &step.changed.change {
        Change::ReadAhead { bytes } => (
            format!("the read-ahead of {source} {is}"),
            "a program that reads one file after the other has only that much under way".to_owned(),
            format!("with {}", binary_size(*bytes)),
        ),
        Change::TakeupBackup if is_of_small_files(chain) => (
            format!("the small files of {source} {are}"),
            format!("{}, are read one after the other", small_words(chain, Reading::OneByOne)),
            format!("{FILES_AT_ONCE} at once"),
        ),
        Change::TakeupBackup => (
            format!("{source} is read in one place at a time, which {is}"),
            "its disk gives more with several requests at once".to_owned(),
            "with many requests at once".to_owned(),
        ),
        Change::Blocks { bytes, is_read_faster } => {
            of_blocks(chain, *bytes, is_read_faster.then_some(source))
        }
        Change::Buffer => (
            format!("reading and writing take turns, which {is}"),
            "a program of one thread does one of them at a time".to_owned(),
            "with a buffer".to_owned(),
        ),
        Change::FastestLevel { link, level, faster, .. } => {
            let shown = compressor(chain, *link);
            (
                format!("{shown} {is}"),
                format!("with {level} it takes {} times as much of these data", times(*faster)),
                format!("{shown} {level}"),
            )
        }
        Change::OwnCompression { instead_of, before, own, .. } => (
            format!("{instead_of} {is}"),
            own_because(*before, *own),
            format!(
                "the same format by takeup backup on {}",
                counted(chain.cores(), "core", "cores")
            ),
        ),
        Change::AllCores { link, instead } => {
            let shown = compressor(chain, *link);
            (
                format!("{shown} {is}"),
                "it uses one core".to_owned(),
                format!("{instead} on {} cores", chain.cores()),
            )
        }
        Change::WithoutRate { link } => {
            let shown = chain.links.get(*link).map_or("a program", |it| it.shown.as_str());
            (
                format!("{shown} {is}"),
                "it holds the rate of its options".to_owned(),
                "without it".to_owned(),
            )
        }
    }
}

/// What larger blocks say of the limit, and of the `source` that is read faster in them.
fn of_blocks(chain: &Chain, bytes: u64, source: Option<&String>) -> (String, String, String) {
    let (what, why) = match source {
        Some(source) => (
            format!("the pieces in which {source} is read and written are too small"),
            "a read that is larger than the read-ahead goes to the disk as a whole, and each write \
             costs a fixed time beside its bytes",
        ),
        None => (
            format!("writes to {} are too small", chain.target.shown()),
            "each write costs a fixed time beside its bytes",
        ),
    };
    (what, why.to_owned(), format!("blocks of {}", binary_size(bytes)))
}

/// Why the compression of `takeup backup` is faster, by what a core takes with each.
fn own_because(before: f64, own: f64) -> String {
    if own <= FASTER * before {
        return "takeup backup compresses on all cores".to_owned();
    }
    let (before, own) = (rate(before), rate(own));
    format!("a core takes {before} of these data with it, and {own} with takeup backup")
}

fn compressor(chain: &Chain, at: usize) -> &str {
    chain.links.get(at).map_or("the compressor", |it| it.shown.as_str())
}

/// 12 % larger
fn size_words(larger: f64) -> String {
    match larger - 1.0 {
        more if more >= MORE_OUTPUT => format!("{} larger", percent(more)),
        more if more <= -MORE_OUTPUT => format!("{} smaller", percent(-more)),
        _ => "about as large".to_owned(),
    }
}

/// A compressor of another format, tried on the same data, beside that of the line: bytes for each
/// second of a processor, and how much smaller it makes them.
pub fn other_format(words: &str, tried: &Compressor, present: &Compressor) -> Finding {
    let size = size_words(present.ratio / tried.ratio.max(0.01));
    let faster = times(tried.rate.typical / present.rate.typical.max(1.0));
    let what = format!(
        "{words} is another format, takes {faster} times as much of these data in one core, and \
         makes output that is {size}"
    );
    Finding::new(&rules::COMPRESSOR, Certainty::Measured, what)
}

/// That a line reads none of its files, and the line that does.
pub fn not_read(line: &str) -> Finding {
    let what = "GNU tar reads no file where its archive is /dev/null, and its time says nothing";
    let finding = Finding::new(&rules::NOT_READ, Certainty::Told, what)
        .because("the numbers below are those of reading them");
    match crate::line::to_nowhere(line) {
        Some(line) => finding.with_command(line),
        None => finding,
    }
}

/// 49,260 small files, 0.9 ms each
fn small_words(chain: &Chain, reading: Reading) -> String {
    let each = chain.source.small.map_or(0.0, |it| match reading {
        Reading::OneByOne => it.one_by_one.typical,
        Reading::ManyAtOnce => it.at_once.typical,
    });
    let files = base::format::counted(chain.source.small_files, "small file", "small files");
    format!("{files}, {} ms each", times(each * 1e3))
}

fn small_files(chain: &Chain, then: &str) -> Finding {
    let source = &chain.source.shown;
    let words = small_words(chain, chain.source.reading);
    let what = format!("{then}the small files of {source} are the limit: {words}");
    Finding::new(&rules::SMALL_FILES, Certainty::Measured, what)
}

/// With fewer processors than this, more threads may bring nothing.
const PART_OF_TWO: f64 = 1.75;

fn program(chain: &Chain, at: usize, then: &str, own: &Amount) -> Finding {
    let Some(link) = chain.links.get(at) else {
        return Finding::new(&rules::PROGRAM, Certainty::Unknown, "a program is the limit");
    };
    let shown = &link.shown;
    match link.work {
        Work::Compresses { threads, .. } => {
            let cores = chain.cores();
            let what = format!("{then}{shown} is the limit: it takes {}", range(own));
            let why = if cores < 2 {
                "there is no second core free for it".to_owned()
            } else if threads > 1.0 {
                format!("it uses all {cores} cores that others leave")
            } else if chain.processors < PART_OF_TWO {
                "others leave only a part of a second core for it".to_owned()
            } else {
                "no change of this line is known that gives it more cores".to_owned()
            };
            Finding::new(&rules::COMPRESSOR, own.certainty, what).because(why)
        }
        Work::Holds { bytes_per_second } => {
            let what = format!("{then}{shown} is the limit: it holds {}", rate(bytes_per_second));
            Finding::new(&rules::PACE, Certainty::Told, what)
        }
        Work::Passes | Work::Unknown(_) => {
            let what = format!("{then}{shown} is the limit");
            Finding::new(&rules::PROGRAM, Certainty::Inferred, what)
        }
    }
}

/// A disk that is read and written at once.
fn same_disk(chain: &Chain) -> Option<Finding> {
    let Target::Disk { shown, is_of_source: true, .. } = &chain.target else { return None };
    let what = format!("{} and {shown} are on one disk", chain.source.shown);
    Some(
        Finding::new(&rules::SAME_DISK, Certainty::Assumed, what)
            .because(
                "reading and writing are taken to share its time, as on a disk with heads; one \
                 without may do both at once",
            )
            .with_action("write to another disk"),
    )
}

/// What no trial touched.
fn unknown(chain: &Chain) -> Vec<Finding> {
    let mut findings = Vec::new();
    for link in &chain.links {
        let Work::Unknown(why) = &link.work else { continue };
        let what = format!("what {} gives or takes is not known", link.shown);
        findings.push(
            Finding::new(&rules::NOT_KNOWN, Certainty::Unknown, what)
                .because(format!("{why}, so it may be the limit itself"))
                .with_action("--run runs the line as it is, to its end, and looks at its programs"),
        );
    }
    if let Target::Unknown { shown, why } = &chain.target {
        let what = format!("what {shown} takes is not known");
        let finding =
            Finding::new(&rules::NOT_KNOWN, Certainty::Unknown, what).because(why.to_string());
        findings.push(match why {
            WhyUnknown::NotWritten | WhyUnknown::SameDisk => {
                finding.with_action("add --write-test to write some data beside it for a moment")
            }
            WhyUnknown::Elsewhere | WhyUnknown::Device | WhyUnknown::NoDrive => finding,
        });
    }
    findings
}

/// What of the source was not looked at, though the programs may read it.
fn not_seen(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let not_known = |what| Finding::new(&rules::NOT_KNOWN, Certainty::Unknown, what);
    if let Some(first) = tree.other_file_systems.first() {
        let kept = tree.other_file_systems.iter().map(|path| path.display().to_string());
        let more = tree.other_file_systems_count - tree.other_file_systems.len() as u64;
        let shown: Vec<String> = kept.chain((more > 0).then(|| format!("{more} more"))).collect();
        let what = match &shown[..] {
            [one] => format!("{one} is another file system, and was not looked at"),
            all => format!("{} are other file systems, and were not looked at", all.join(", ")),
        };
        let action = format!("takeup diagnose {} looks there", quoted(&first.to_string_lossy()));
        findings.push(not_known(what).with_action(action));
    }
    if tree.problems > 0 {
        let objects = counted(tree.problems, "file or folder", "files and folders");
        let what = format!("{objects} of the source could not be looked at");
        findings.push(not_known(what).with_action("run it as the user who runs the backup"));
    }
    findings
}

fn about_trials(found: &Found) -> Vec<Finding> {
    let mut findings = Vec::new();
    let busy = found.busy_before;
    if busy >= BUSY {
        let what = format!(
            "others kept the disks of the source busy for {} of the time before the trials",
            percent(busy)
        );
        findings.push(
            Finding::new(&rules::OTHERS, Certainty::Measured, what)
                .because("these numbers hold while they do"),
        );
    }
    if found.others_cores >= OTHERS_CORES {
        let cores = times(found.others_cores);
        let what = format!("others used {cores} processors during the trials");
        findings.push(
            Finding::new(&rules::OTHERS, Certainty::Measured, what)
                .because("these numbers hold while they do"),
        );
    }
    if found.cached_share >= CACHED {
        let what = format!(
            "{} of what was tried lay in memory, and was read from the disk instead",
            percent(found.cached_share)
        );
        findings.push(
            Finding::new(&rules::CACHED, Certainty::Measured, what)
                .because("a run that finds it there is faster than these numbers"),
        );
    }
    findings.extend(not_seen(&found.tree));
    for unknown in &found.unknown {
        let what = format!("not known is {unknown}");
        findings.push(Finding::new(&rules::NOT_KNOWN, Certainty::Unknown, what));
    }
    findings
}
