//! The backup run: a tree goes into an archive.
//!
//! ```text
//! scan -> read (many) -> RING -> hash -> [compress (many) -> RING] -> write -> target
//! ```
//!
//! The scan returns entries in archive order. The readers put headers and contents into the ring at
//! their places. The hash stage sees the archive pass and collects the index, and the writer writes
//! it to the target. The index follows the end of the archive, as an archive of its own, through
//! the same writer. The target gets its name last, after it is synchronised.

mod cached;
mod changed;
mod compressor;
mod decide;
mod descriptors;
mod draft;
mod dry_run;
mod early;
mod entries;
mod error;
mod groups;
mod hasher;
mod index;
mod link_table;
mod options;
mod pace;
mod parts;
mod passed;
mod placed;
mod previous;
mod reader;
mod relink;
mod replaced;
mod room;
mod run;
mod sizes;
mod stream;
mod window;
mod work;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use archive::chunk::Compression;
use archive::index::About;
use archive::label::{JobText, LabelledSet};
use base::failures::lock;
use base::format::size;
use device::target::{Existing, Target};
use flow::backend::Choice;
use flow::cancel::Cancel;
use flow::crew::{Crew, cores};
use flow::monitor::{Harm, Level, Monitor, Notice};
use flow::run::{Command, Endpoint, RunReport};
use flow::steps::StreamSteps;
use tapeset::{SetIdentity, SetPlan, TapeSink};
use tree::Scan;

use crate::destination::{Completed, Destination, Output, open_target};
use crate::expected;
use crate::report::BackupReport;
use crate::sweep::ReadOrder;
pub use changed::{ChangedList, ListUse, Unfollowable, with_doubts};
use descriptors::InHand;
pub use dry_run::{DryRun, StoredContent, StoredFile, StoredFolder, dry_run, most_stored};
pub use error::{BackupError, Unfinished};
pub use options::{BackupOptions, IndexCopy, Refill, SetOptions};
use replaced::check_size;
pub use replaced::{ArchiveSize, Shrinking};
use room::Room;
use run::{Done, Run, Stages};
use sizes::{Layout, RingSizes};
pub use window::ReadWindow;

/// Writes in flight to a file or block device.
const WRITE_DEPTH: usize = 4;

/// Backs up to a path, or to a tape on as many volumes as needed. Returns the result; warnings go
/// to the monitor.
///
/// # Errors
/// See [`BackupError`]; for a tape `Unfinished` once it is ready for the set.
pub fn backup(
    options: &BackupOptions,
    monitor: &dyn Monitor,
    cancel: &Cancel,
) -> Result<BackupReport, BackupError> {
    let started = Instant::now();
    let prepared = Prepared::new(options, monitor)?;
    let (mut output, before) = open_output(options, &prepared.engine, monitor, cancel)?;
    if monitor.wants_forecast()
        && let Some(expected) = expected::of_backup(options, before)
    {
        monitor.expect(expected);
    }
    warn_of_the_end(options, &output, monitor);
    let (run, scan) = prepared.into_run(options, monitor, cancel, &output);
    let result = run.archive(scan, &mut output);
    let done = match run.outcome(result) {
        Ok(done) => done,
        Err(error) => {
            return Err(match output.abandon() {
                Some(safe) => BackupError::Unfinished(Box::new(Unfinished { error, safe })),
                None => error,
            });
        }
    };
    if let Some(before) = before {
        check_size(options.target.name(), before, done.size())?;
    }
    let target = output.endpoint();
    let Completed { not_kept, synchronise_seconds, tape } = output.complete()?;
    if let Some(text) = not_kept {
        let object = options.target.name().as_encoded_bytes().to_vec();
        monitor.notice(Notice { level: Level::Warning(Harm::Beside), object, text });
    }
    let seconds = started.elapsed().as_secs_f64();
    let excluded = run.excludes.used().map(str::to_owned).collect();
    let mut run = RunReport { seconds, synchronise_seconds, target, ..run.report(&done) };
    if let Some(tape) = &tape {
        run.change_seconds = tape.change_seconds + tape.asked_seconds;
        run.ready_seconds = tape.ready_seconds;
        run.label_seconds = tape.label_seconds;
        run.target_bytes = tape.blocks * tape.block_bytes;
    }
    Ok(BackupReport { run, excluded, tape, set: done.set, list: done.list })
}

/// Says before anything is written that the only medium will be full before the end, as far as that
/// is known without walking the tree.
fn warn_of_the_end(options: &BackupOptions, output: &Output<'_>, monitor: &dyn Monitor) {
    let Some(room_bytes) = output.room_bytes() else { return };
    // What an incremental set stores is known at its end.
    let is_incremental = options.set.as_ref().is_some_and(|set| set.about.level > 0);
    let Some(expected) = expected::of_backup(options, None).filter(|_| !is_incremental) else {
        return;
    };
    if expected.amount > room_bytes {
        let (bytes, room) = (size(expected.amount), size(room_bytes));
        let text = format!(
            "up to {bytes} are to be stored, and the medium has room for {room} of data that do \
             not compress: without --change-command the set may end early"
        );
        let object = options.target.name().as_encoded_bytes().to_vec();
        monitor.notice(Notice { level: Level::Notable, object, text });
    }
}

/// Opens the target, and finds out what it would replace.
fn open_output<'a>(
    options: &'a BackupOptions,
    engine: &Choice,
    monitor: &'a dyn Monitor,
    cancel: &Cancel,
) -> Result<(Output<'a>, Option<ArchiveSize>), BackupError> {
    let path = match &options.target {
        Destination::Path(path) => path,
        Destination::Tape(tape) => {
            let BackupOptions { block_bytes, compression, existing, .. } = *options;
            let identity = options.set.as_ref().map(|set| identity(&set.about));
            let plan = SetPlan { block_bytes, compression, existing, identity };
            return Ok((Output::Set(Box::new(TapeSink::begin(tape, monitor, plan)?)), None));
        }
    };
    Target::check_storage(path)?;
    check_target_is_no_source(path, options)?;
    let before = match (options.existing, options.shrinking) {
        (Existing::Replace, Shrinking::Refuse) => ArchiveSize::of_file(path),
        _ => None,
    };
    let target = open_target(path, options.existing, options.mode, cancel)??;
    let output = Output::to_target(target, engine, WRITE_DEPTH, cancel);
    Ok((output.map_err(BackupError::Engine)?, before))
}

/// What labels on tape say of a set.
fn identity(about: &About) -> SetIdentity {
    let chain = JobText::new(&about.job).map(|job| LabelledSet {
        job,
        number: about.number,
        level: about.level,
        parent: about.parent().map(|parent| parent.set),
    });
    SetIdentity { set: about.set, begun_seconds: about.begun_seconds, chain }
}

/// What is created before the target is touched.
struct Prepared {
    sizes: RingSizes,
    engine: Choice,
    in_hand: InHand,
    scan: Scan,
    excludes: tree::Excludes,
    stop_scan: Arc<AtomicBool>,
}

impl Prepared {
    fn new(options: &BackupOptions, monitor: &dyn Monitor) -> Result<Prepared, BackupError> {
        let layout = if options.target.is_tape() { Layout::Segments } else { Layout::OneStream };
        let sizes = RingSizes::new(options, layout)?;
        let engine = Choice::new(options.engine).map_err(BackupError::Engine)?;
        detail(monitor, format!("bulk input and output: {}", engine.reason));
        let stop_scan = Arc::new(AtomicBool::new(false));
        let in_hand = InHand::for_run(options.read_threads, options.read_order, monitor);
        let excludes = tree::Excludes::new(&options.excludes)?;
        let scan_options = tree::ScanOptions {
            excludes: excludes.clone(),
            file_systems: options.file_systems,
            look: if options.set.is_some() { tree::Look::Status } else { tree::Look::Names },
            changed: options.set.as_ref().and_then(SetOptions::followed),
            parts: options.parts.clone().into(),
            look_ahead: in_hand.look_ahead,
            stop: Arc::clone(&stop_scan),
        };
        let scan = start_scan(options, scan_options, monitor)?;
        Ok(Prepared { sizes, engine, in_hand, scan, excludes, stop_scan })
    }

    fn into_run<'a>(
        self,
        options: &'a BackupOptions,
        monitor: &'a dyn Monitor,
        cancel: &'a Cancel,
        output: &Output<'_>,
    ) -> (Run<'a>, Scan) {
        let identity = |(device, inode)| tree::Identity { device, inode };
        let stages = Stages::new();
        stages.tell(monitor);
        let target = output.target();
        let run = Run {
            options,
            monitor,
            cancel,
            engine: self.engine,
            sizes: self.sizes,
            in_hand: self.in_hand,
            stop_scan: self.stop_scan,
            excludes: self.excludes,
            crew: Crew::new(cancel),
            disk_order: Mutex::default(),
            stages,
            replaced: target.and_then(Target::replaced).map(identity),
            output: target.and_then(Target::identity).map(identity),
            segments: output.segments(),
            room: Room::of(output),
        };
        (run, self.scan)
    }
}

impl Run<'_> {
    /// The end of a run: its error, if one stopped it.
    fn outcome(&self, result: Result<Done, BackupError>) -> Result<Done, BackupError> {
        self.stop_scan.store(true, Ordering::Relaxed);
        let done = self.crew.outcome(result)?;
        for glob in self.excludes.unused() {
            let (object, text) = (glob.as_bytes().to_vec(), "no path matched this glob".into());
            self.monitor.notice(Notice { level: Level::Note, object, text });
        }
        Ok(done)
    }

    /// The result, without what only the target knows.
    fn report(&self, done: &Done) -> RunReport {
        RunReport {
            command: Command::Backup,
            source: Endpoint::Tree,
            rate_limit_bytes_per_second: self.options.rate_limit_bytes_per_second,
            members: done.members,
            files: done.files,
            source_bytes: done.source_bytes,
            archive_bytes: done.archive_bytes,
            target_bytes: done.target_bytes,
            stages: self.stage_reports(),
            steps: Some(StreamSteps {
                read: Vec::new(),
                write: self.stages.write_steps(),
                ring_blocks: self.sizes.archive.blocks,
                block_bytes: self.options.block_bytes,
            }),
            times_ran_empty: done.times_ran_empty,
            ring_bytes: self.sizes.bytes(),
            engine: self.engine.name().into(),
            cores: cores(),
            compression: self.options.compression.to_string(),
            compressed_pieces: match self.options.compression {
                Compression::None => None,
                compression => Some(done.archive_bytes.div_ceil(compression.chunk_bytes() as u64)),
            },
            disk_order: *lock(&self.disk_order),
            is_by_name: self.options.read_order == ReadOrder::Name,
            ..RunReport::default()
        }
    }
}

fn start_scan(
    options: &BackupOptions,
    scan_options: tree::ScanOptions,
    monitor: &dyn Monitor,
) -> Result<Scan, BackupError> {
    let scan = Scan::start(&options.sources, scan_options)?;
    for stripped in scan.stripped() {
        let prefix = String::from_utf8_lossy(&stripped.prefix).into_owned();
        let source = stripped.source.display();
        detail(monitor, format!("{prefix:?} is left off the names of {source} in the archive"));
    }
    Ok(scan)
}

/// A target that is itself a source would be replaced by its own archive.
fn check_target_is_no_source(path: &OsStr, options: &BackupOptions) -> Result<(), BackupError> {
    if path == "-" {
        return Ok(());
    }
    let Ok(existing) = tree::identity_of_path(path.as_ref()) else { return Ok(()) };
    let same = |source: &PathBuf| tree::identity_of_path(source).is_ok_and(|it| it == existing);
    if options.sources.iter().any(same) {
        let target = options.target.shown();
        return Err(BackupError::TargetIsSource { target });
    }
    Ok(())
}

fn detail(monitor: &dyn Monitor, text: String) {
    monitor.notice(Notice { level: Level::Detail, object: Vec::new(), text });
}
