//! A backup: writes files into an archive, on a disk, in a pipe or on tapes.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive::chunk::Compression;
use archive::index::About;
use archive::label::MediumName;
use base::escape::{escape, escape_path};
use base::finding::Certainty;
use device::tape::DriveCompression;
use device::target::Existing;
use flow::cancel::Cancel;
use flow::monitor::{Harm, Level, Monitor, Notice};
use flow::run::RunReport;
use model::tape::generation::Generation;
use runs::backup::{BackupError, BackupOptions, Refill, Shrinking};
use runs::destination::Destination;
use runs::streaming::{TapeSummary, WrittenMedium};
use runs::summary::RunSummary;
use runs::verdict::{RunState, Verdict, no_file};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapeset::{
    BlockLayout, DrivePace, Media, MediaLog, START_FILL_PERCENT, TapeOptions, TapeReport,
};
use tree::{Attributes, FileSystems};

use crate::Answer;
use crate::change::{self, SharedChanger};
use crate::compression_by_name;
use crate::failure::Failure;
use crate::interrupted::{left_at, with_left};
use crate::outcome::{Outcome, certainty};
use crate::run::{
    EngineChoice, ReadOrderChoice, RunMonitor, RunObserver, TargetSettings, bytes, destination,
};
use crate::sets::{
    self, ChangedListAnswer, FolderLock, Hold, ListUsed, NewSet, NewTapeSet, SetSettings,
    WrittenSetAnswer,
};
use crate::tape_end::{self, Then, check_drive};
use crate::tape_memory::{self, Copies};
use crate::tape_sets::{Copy, Log, TapeSets};
use crate::virtual_drive::VirtualDrive;

/// What to back up, where to, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackupRequest {
    /// Files and folders.
    pub sources: Vec<PathBuf>,
    /// Where the archive goes; `-` is standard output. A folder gets a set of a chain.
    pub to: PathBuf,
    /// `zstd`, `gzip`, each with `:LEVEL` or without, or `none`; `None`: the name of the target
    /// decides.
    #[serde(default)]
    pub compress: Option<String>,
    /// Threads that compress; `None`: one for each core.
    #[serde(default)]
    pub compress_threads: Option<NonZero<usize>>,
    /// Threads that read small files; `None`: as many as keep a disk busy.
    #[serde(default)]
    pub read_threads: Option<NonZero<usize>>,
    /// In which order files are read.
    #[serde(default)]
    pub read_order: ReadOrderChoice,
    /// Bytes of files that may be read ahead in another order than that of names; `None`: an eighth
    /// of the memory that is free.
    #[serde(default)]
    pub read_window_bytes: Option<u64>,
    /// Globs of files and folders to leave out.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Whether other file systems are not entered.
    #[serde(default)]
    pub one_file_system: bool,
    /// Whether extended attributes and ACLs are left out.
    #[serde(default)]
    pub no_xattrs: bool,
    /// How the target is written.
    #[serde(default)]
    pub target: TargetSettings,
    /// Whether an archive may be replaced by one with less than half of its members or bytes.
    #[serde(default)]
    pub force: bool,
    /// Which set of a chain it is to be, where the target is a folder.
    #[serde(default)]
    pub set: SetSettings,
    /// What only tapes need.
    #[serde(default)]
    pub tape: TapeTargetSettings,
    /// How files are read and written.
    #[serde(default)]
    pub engine: EngineChoice,
    /// A new file that gets the record of the run.
    #[serde(default)]
    pub record: Option<PathBuf>,
}

/// How a set is written to tapes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TapeTargetSettings {
    /// Bytes of the archive between two filemarks; `None`: enough that filemarks take less than 1 %
    /// of the time.
    pub segment_bytes: Option<u64>,
    /// Block size of the drive.
    pub block_mode: TapeBlockMode,
    /// Switches the drive's compression on or off.
    pub drive_compression: Option<bool>,
    /// Whether the data on later volumes are written over, too; [`TargetSettings::overwrite`] is
    /// only for the medium in the drive at the start.
    pub overwrite_volumes: bool,
    /// Shell command that loads another volume into the drive.
    pub change_command: Option<String>,
    /// What the medium in the drive at the start is called.
    pub volume_name: Option<String>,
    /// Whether the medium is ejected at the end.
    pub eject: bool,
}

/// How blocks are laid out on tape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TapeBlockMode {
    /// Each write is a block.
    #[default]
    Variable,
    /// Every block has the block size of the target.
    Fixed,
}

/// The end of a backup.
#[derive(Debug)]
pub struct BackupDone {
    /// The target: as requested, or the archive in the requested folder.
    pub to: PathBuf,
    pub summary: RunSummary,
    /// The set of a chain.
    pub set: Option<About>,
    /// What only a tape adds.
    pub tape: Option<TapeSummary>,
    /// Objects that could not be read, and folders that could not be listed.
    pub unread: u64,
    /// The list of changes, if one was named.
    pub list: Option<ListUsed>,
}

/// The end of a backup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackupAnswer {
    #[serde(flatten)]
    pub run: RunSummary,
    /// The archive that was written into a folder of sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// The set of a chain; only where the target is a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<WrittenSetAnswer>,
    /// The list of changes, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_from: Option<ChangedListAnswer>,
    /// The set on tape; only where the target is a tape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tape: Option<TapeSummary>,
}

impl Answer for BackupAnswer {
    const COMMAND: &'static str = "backup";
}

impl BackupDone {
    /// As an answer.
    pub fn answer(&self) -> BackupAnswer {
        BackupAnswer {
            run: self.summary.clone(),
            archive: self
                .set
                .as_ref()
                .filter(|_| self.tape.is_none())
                .map(|_| escape_path(&self.to)),
            set: self.set.as_ref().map(WrittenSetAnswer::from),
            changed_from: self.list.as_ref().map(ChangedListAnswer::from),
            tape: self.tape.clone(),
        }
    }

    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        self.summary.verdict.state.into()
    }
}

/// Backs up. `changer` gets other volumes where the request has no command for that.
///
/// # Errors
/// When the target cannot be written, or the options do not fit each other. What was left out is a
/// warning.
pub fn backup(
    request: &BackupRequest,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<BackupDone, Failure> {
    let done = backup_for(request, &Caller::default(), observer, cancel, changer)?;
    if sets::is_folder_target(&request.to) {
        crate::catalog::after_backup(&request.to, observer);
    } else if done.set.is_some()
        && let Ok(tape_sets) = TapeSets::of_this_user()
    {
        crate::catalog::after_backup(tape_sets.folder(), observer);
    }
    Ok(done)
}

/// What the caller of a backup has done and knows.
#[derive(Default)]
pub(crate) struct Caller<'a> {
    /// It has locked the place of the sets.
    pub(crate) held: Option<&'a FolderLock>,
    /// Media whose sets nobody needs any more.
    pub(crate) freed: Vec<[u8; 16]>,
}

/// Backs up for a caller who has the lock already.
pub(crate) fn backup_for(
    request: &BackupRequest,
    caller: &Caller<'_>,
    observer: &dyn RunObserver,
    cancel: &Cancel,
    changer: SharedChanger,
) -> Result<BackupDone, Failure> {
    let tape_options = tape_options(&request.tape, &request.to)?;
    let changer = change::chosen(request.tape.change_command.as_deref(), changer, cancel);
    let asked = request.compress.as_deref().map(str::parse).transpose();
    let asked = asked.map_err(|error| Failure::new(&error, None))?;
    let hold = caller.held.map_or(Hold::Take, Hold::Held);
    let set = new_set(request, asked, hold, cancel, &RunMonitor::new(observer))?;
    let path = &set.as_ref().map_or_else(|| request.to.clone(), |set| set.path.clone());
    let log = media_log(set.as_ref());
    let freed = caller.freed.clone();
    let media = Media { freed, log: log.clone().map(|log| log as Arc<dyn MediaLog>) };
    let of_chain = set.as_ref().and_then(|set| set.tape.as_ref()?.copy.as_ref());
    let memory = tape_memory::of_this_user(match of_chain {
        Some(_) => Copies::OutsideOfChains,
        None => Copies::All,
    });
    let to = destination(path, tape_options, media, memory, changer);
    let chosen = compression_by_name::choose(asked, &to)?;
    let mut options = options(request, to, chosen.compression)?;
    options.set = set.as_ref().map(|set| set.options.clone());
    let on_tape = set.as_ref().and_then(|set| set.tape.as_ref());
    options.index_copy = on_tape.and_then(|tape| Some(tape.copy.as_ref()?.copy.clone()));
    let folder = std::path::absolute(path).ok();
    let folder = folder.as_deref().and_then(Path::parent).filter(|_| path.as_os_str() != "-");
    let source = request.sources.first().map(PathBuf::as_path);
    let mut monitor = RunMonitor::new(observer)
        .recording(request.record.as_deref(), Some(path))?
        .watching(source, folder);
    if let Some(text) = chosen.contradiction {
        let object = path.as_os_str().as_encoded_bytes().to_vec();
        monitor.notice(Notice { level: Level::Note, object, text });
    }
    let report = runs::backup::backup(&options, &monitor, cancel).map_err(|error| {
        let _ = tape_end::end(path, Then::KeepMedium, &monitor);
        if let (Some(set), Some(log)) = (&options.set, &log) {
            log.abandons(set.about.set);
        }
        stopped(error, path, cancel)
    })?;
    let (list, on_tape) = set.map_or((None, None), |set| (set.list, set.tape));
    for text in not_noted(on_tape, log.as_deref(), path) {
        let object = path.as_os_str().as_encoded_bytes().to_vec();
        monitor.notice(Notice { level: Level::Warning(Harm::Beside), object, text });
    }
    let list = list.map(|list| list.done(report.list, &monitor));
    let reported = tape_end::end(path, request.tape.eject.into(), &monitor);
    let tape = report.tape.as_ref().map(|tape| tape_summary(&report.run, tape));
    let has_others = report.set.as_ref().is_some_and(|set| set.unchanged > 0);
    let summary = monitor.summarise(report.run, |summary| {
        let verdict = std::mem::take(&mut summary.verdict);
        summary.verdict = if has_others {
            // Nothing may have changed: earlier sets have everything.
            Some(verdict).filter(|it| it.state != RunState::Empty).unwrap_or_default()
        } else {
            of_no_file(request, &summary.run, &report.excluded, verdict)
        };
        summary.findings.extend(tape.as_ref().and_then(|tape| tape.finding.clone()));
        summary.findings.extend(reported.iter().cloned());
    });
    let kinds = [Harm::Unread, Harm::Unlisted, Harm::NoRoom];
    let unread = kinds.into_iter().map(|harm| monitor.harmed(harm)).sum();
    Ok(BackupDone { to: path.clone(), summary, set: report.set, tape, unread, list })
}

/// Who writes down what becomes of media. Outside of chains, only where there is an account of
/// them.
fn media_log(set: Option<&NewSet>) -> Option<Arc<Log>> {
    if let Some(set) = set {
        return set.tape.as_ref().map(|tape| Arc::clone(&tape.log));
    }
    let tape_sets = TapeSets::of_this_user().ok()?;
    tape_sets.exists().then(|| tape_sets.log(None))
}

/// Keeps what is to be known of a complete set on tape. Returns what could not be kept.
fn not_noted(tape: Option<NewTapeSet>, log: Option<&Log>, drive: &Path) -> Vec<String> {
    let mut not_noted = Vec::new();
    if let Some(Err(failure)) = log.map(Log::outcome) {
        let why = failure.message();
        not_noted.push(format!("what became of the media was not written down: {why}"));
    }
    let of_chain = tape.is_some();
    let copy = tape.and_then(|tape| tape.copy);
    if let Some(Err(failure)) = copy.map(Copy::keep) {
        not_noted.push(Copy::not_kept(&failure, drive));
    }
    if of_chain && let Ok(tape_sets) = TapeSets::of_this_user() {
        tape_sets.remove_written_over();
    }
    not_noted
}

/// The set of a chain, if the target is a folder, or a tape that gets one.
pub(crate) fn new_set(
    request: &BackupRequest,
    compression: Option<Compression>,
    hold: Hold<'_>,
    cancel: &Cancel,
    monitor: &dyn Monitor,
) -> Result<Option<NewSet>, Failure> {
    let to = &request.to;
    if sets::is_folder_target(to) {
        let compression = compression.unwrap_or(Compression::None);
        return NewSet::plan(request, compression, hold, monitor).map(Some);
    }
    if request.set == SetSettings::default() {
        return Ok(None);
    }
    if let Some(drive) = device::tape::find(to) {
        return NewSet::plan_on_tape(request, Arc::new(drive), hold, cancel, monitor).map(Some);
    }
    let message = format!("{} is no folder of sets", escape_path(to));
    let hint = "sets of a chain go to a tape or into a folder: end its name with /";
    Err(Failure::of(message, Some(hint)))
}

/// The failure; where the user has stopped the run, with what is left. The hint of an unfinished
/// set on tape says that already.
fn stopped(error: BackupError, to: &Path, cancel: &Cancel) -> Failure {
    let is_unfinished = matches!(error, BackupError::Unfinished(_));
    let failure = Failure::from(error);
    if is_unfinished {
        return failure;
    }
    with_left(failure, cancel, || match device::tape::find(to) {
        Some(_) => format!("nothing was written to {}", escape_path(to)),
        None => left_at(to),
    })
}

/// The verdict with the reason why the archive may hold no file.
fn of_no_file(
    request: &BackupRequest,
    run: &RunReport,
    excluded: &[String],
    verdict: Verdict,
) -> Verdict {
    let link = || {
        let is_empty = verdict.state == RunState::Empty;
        request.sources.iter().filter(|_| is_empty).find_map(|path| only_a_link(path))
    };
    all_left_out(run, excluded).or_else(link).unwrap_or(verdict)
}

/// The verdict on an archive that only holds a link to the folder that was meant.
fn only_a_link(source: &Path) -> Option<Verdict> {
    let is_link = source.symlink_metadata().is_ok_and(|it| it.is_symlink());
    if !is_link || !source.is_dir() {
        return None;
    }
    let shown = escape_path(source);
    let text = format!(
        "INCOMPLETE: the archive holds no file: {shown} is a symbolic link; {shown}/ backs up the \
         folder behind it"
    );
    Some(Verdict { state: RunState::Incomplete, text })
}

/// The verdict on an archive without a file because of `--exclude`, which is likely a mistake.
fn all_left_out(run: &RunReport, excluded: &[String]) -> Option<Verdict> {
    if run.files > 0 || excluded.is_empty() {
        return None;
    }
    let globs: Vec<String> = excluded.iter().map(|glob| escape(glob.as_bytes())).collect();
    let text = format!(
        "INCOMPLETE: the archive holds {}: --exclude {} left out everything",
        no_file(run),
        globs.join(" ")
    );
    Some(Verdict { state: RunState::Incomplete, text })
}

pub(crate) fn options(
    request: &BackupRequest,
    to: Destination,
    compression: Compression,
) -> Result<BackupOptions, Failure> {
    let target = &request.target;
    let is_tape = to.is_tape();
    let mut options = BackupOptions {
        sources: request.sources.clone(),
        parts: Vec::new(),
        target: to,
        existing: target.existing(),
        shrinking: if request.force { Shrinking::Allow } else { Shrinking::Refuse },
        mode: target.mode()?,
        compression,
        compress_threads: request.compress_threads.map(NonZero::get),
        read_threads: request.read_threads.map(NonZero::get),
        read_order: request.read_order.into(),
        read_window_bytes: request.read_window_bytes.map(bytes),
        block_bytes: target.block_bytes(),
        ring_bytes: target.ring_bytes(least_ring_bytes(compression)),
        start_fill_percent: target.start_fill_percent.unwrap_or(0),
        refill: Refill::AsAtTheStart,
        excludes: request.exclude.clone(),
        file_systems: if request.one_file_system { FileSystems::One } else { FileSystems::All },
        attributes: if request.no_xattrs { Attributes::Ignore } else { Attributes::Read },
        engine: request.engine.into(),
        rate_limit_bytes_per_second: target.rate_limit_bytes_per_second,
        set: None,
        index_copy: None,
    };
    if is_tape {
        pace_for_tape(&mut options, target);
    }
    Ok(options)
}

fn tape_options(settings: &TapeTargetSettings, to: &Path) -> Result<TapeOptions, Failure> {
    if settings.eject {
        check_drive("--eject", to)?;
    }
    Ok(TapeOptions {
        medium_name: settings.volume_name.as_ref().map(|name| medium_name(name, to)).transpose()?,
        segment_bytes: settings.segment_bytes,
        layout: match settings.block_mode {
            TapeBlockMode::Variable => BlockLayout::Variable,
            TapeBlockMode::Fixed => BlockLayout::Fixed,
        },
        drive_compression: settings
            .drive_compression
            .map(|on| if on { DriveCompression::On } else { DriveCompression::Off }),
        later_volumes: if settings.overwrite_volumes { Existing::Replace } else { Existing::Keep },
        pace: to.to_str().and_then(pace_of_virtual_drive),
        capacity_bytes: to.to_str().and_then(capacity_of_virtual_drive),
    })
}

/// The name of a medium, as it was typed.
fn medium_name(name: &str, to: &Path) -> Result<MediumName, Failure> {
    check_drive("--volume-name", to)?;
    MediumName::new(name).ok_or_else(|| {
        let hint = "use up to 32 letters, digits and signs, as of a bar code, without blanks";
        let name = base::escape::escape(name.as_bytes());
        Failure::of(format!("--volume-name: {name:?} is no name of a medium"), Some(hint))
    })
}

/// Native capacity of the media of a virtual drive, as it is set.
fn capacity_of_virtual_drive(device: &str) -> Option<u64> {
    let (parameters, _) = VirtualDrive::parameters_of_tape(device)?;
    Some(parameters.capacity_bytes.value)
}

/// The pace of a virtual drive comes from its settings and its `--speed-up`. The run is paced by
/// the same lowest speed by which it is judged.
fn pace_of_virtual_drive(device: &str) -> Option<DrivePace> {
    let drive = VirtualDrive::of_tape(device)?;
    let VirtualDrive { lowest_bytes_per_second, buffer_bytes, .. } = drive;
    // The time of a filemark shrinks by the same factor, so the length of segments depends on
    // neither.
    let highest_bytes_per_second = (drive.highest_bytes_per_second as f64 / drive.speed_up) as u64;
    Some(DrivePace { lowest_bytes_per_second, buffer_bytes, highest_bytes_per_second })
}

/// A tape must not stop often: a large ring gives few long stops instead of many short ones.
fn pace_for_tape(options: &mut BackupOptions, target: &TargetSettings) {
    let default = tapeset::ring_bytes(options.ring_bytes);
    options.ring_bytes = target.ring_bytes.map_or(default, bytes);
    options.start_fill_percent = target.start_fill_percent.unwrap_or(START_FILL_PERCENT);
    if target.start_fill_percent.is_none() {
        options.refill = Refill::AsTheTargetNeeds;
    }
}

fn tape_summary(run: &RunReport, tape: &TapeReport) -> TapeSummary {
    let mut summary = summary_of_generation(run, tape);
    if let Some(drive) = VirtualDrive::of_tape(&tape.device) {
        summary.drive_buffer_bytes = Some(drive.buffer_bytes);
        summary.lowest_bytes_per_second = Some(drive.lowest_bytes_per_second);
        summary.lowest_certainty = Some(drive.certainty());
        summary.certainty = Some(Certainty::Told);
    }
    summary.judged()
}

fn summary_of_generation(run: &RunReport, tape: &TapeReport) -> TapeSummary {
    let waited_seconds = tape.synchronise_seconds + tape.change_seconds;
    TapeSummary {
        device: tape.device.clone(),
        set: tape.set.clone(),
        generation: tape.generation.map(|generation| generation.name.into()),
        lowest_bytes_per_second: tape.generation.map(Generation::lowest_speed),
        drive_buffer_bytes: tape.generation.map(|generation| generation.buffer_bytes),
        lowest_certainty: tape.generation.map(|it| it.speed_certainty.to_string()),
        certainty: tape.generation.map(|it| certainty(it.speed_certainty)),
        block_bytes: tape.block_bytes,
        segment_bytes: tape.segment_bytes,
        file_number: tape.file_number,
        volumes: tape.volumes,
        media: tape.media.iter().map(WrittenMedium::from).collect(),
        segments: tape.segments,
        blocks: tape.blocks,
        bytes: tape.blocks * tape.block_bytes,
        filemarks: tape.filemarks,
        write_seconds: tape.drive_write_ns.map(|ns| ns as f64 / 1e9),
        synchronise_seconds: tape.synchronise_seconds,
        change_seconds: tape.change_seconds + tape.asked_seconds,
        streaming_seconds: (tape.seconds - waited_seconds).max(0.0),
        ring_ran_empty: run.times_ran_empty,
        ready_seconds: tape.ready_seconds,
        label_seconds: tape.label_seconds,
        ..TapeSummary::default()
    }
}

/// Three quarters of the ring are for chunks that wait for the compressors: four chunks at least.
fn least_ring_bytes(compression: Compression) -> usize {
    match compression {
        Compression::None => 0,
        _ => compression.chunk_bytes() * 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_drive_is_paced_by_what_it_was_set_to() {
        let folder = tempfile::tempdir().unwrap();
        let tape = folder.path().join("nst0");
        let pace = || pace_of_virtual_drive(tape.to_str().unwrap());
        assert_eq!(pace(), None, "no drive of ours");
        let text = testkit::samples::DRIVE_STATUS;
        let mut status: serde_json::Value = serde_json::from_str(text).unwrap();
        status["time"]["speed_up"] = 2.5.into();
        status["time"]["lowest_bytes_per_second"] = 20_000_000.into();
        status["time"]["highest_bytes_per_second"] = 90_000_000.into();
        status["time"]["buffer_bytes"] = 5_000_000.into();
        std::fs::write(folder.path().join("status"), status.to_string()).unwrap();
        let (lowest_bytes_per_second, buffer_bytes) = (50_000_000, 5_000_000);
        // Not sped up, like the time of a filemark.
        let highest_bytes_per_second = 90_000_000;
        let set = DrivePace { lowest_bytes_per_second, buffer_bytes, highest_bytes_per_second };
        assert_eq!(pace(), Some(set));
    }
}
