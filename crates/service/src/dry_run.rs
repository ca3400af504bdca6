//! What a backup would store, and why, before it does.

mod sample;
mod tape;

use std::path::{Path, PathBuf};

use archive::chunk::Compression;
use base::escape::{escape, escape_path};
use flow::cancel::Cancel;
use flow::monitor::Silent;
use runs::backup::{DryRun, StoredContent};
use runs::destination::Destination;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Answer;
use crate::backup::{BackupRequest, new_set, options};
use crate::change::NoChanger;
use crate::compression_by_name;
use crate::failure::Failure;
use crate::journal;
use crate::outcome::Outcome;
use crate::run::{RunMonitor, RunObserver, destination};
use crate::sets::{self, ChangedListAnswer, Hold, ListUsed, WrittenSetAnswer};

pub use sample::{CompressedShare, SampledContents};
pub use tape::TapesAnswer;

use sample::Stretches;

/// Whether contents are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// Nothing is read but names and states.
    #[default]
    Nothing,
    /// Stretches of what would be stored are read, and compressed.
    Stretches,
}

/// What a backup would store.
#[derive(Debug)]
pub struct DryRunDone {
    /// The archive that would be written.
    pub to: PathBuf,
    /// Whether it would be a set of a chain.
    pub is_set: bool,
    /// The list of changes, if one was named.
    pub list: Option<ListUsed>,
    pub found: DryRun,
    /// How far the contents compress, if they were sampled.
    pub sampled: Option<SampledContents>,
    /// What it would take of a tape drive; `None` where the target is none that is known.
    pub tapes: Option<TapesAnswer>,
}

impl DryRunDone {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        let has_missed = self.list.as_ref().is_some_and(|list| list.report.missed > 0);
        if self.found.problems > 0 || has_missed { Outcome::Warned } else { Outcome::Done }
    }

    /// As an answer.
    pub fn answer(&self) -> DryRunAnswer {
        let found = &self.found;
        let folder = |it: &runs::backup::StoredFolder| FolderBytesAnswer {
            path: escape(&it.path),
            bytes: it.bytes,
        };
        let file = |it: &runs::backup::StoredFile| LargeFileAnswer {
            path: escape(&it.path),
            bytes: it.bytes,
            reason: it.reason.name().to_owned(),
        };
        DryRunAnswer {
            archive: escape_path(&self.to),
            set: WrittenSetAnswer::from(&found.about),
            changed_from: self.list.as_ref().map(ChangedListAnswer::from),
            files: found.files,
            bytes: found.bytes,
            hole_bytes: found.hole_bytes,
            links: found.links,
            unlisted: found.problems,
            folders: found.folders.iter().map(folder).collect(),
            largest: found.largest.iter().map(file).collect(),
            sampled: self.sampled.as_ref().map(|it| SampledAnswer::of(it, found.bytes)),
            tapes: self.tapes.clone(),
        }
    }
}

/// What a backup would store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DryRunAnswer {
    /// The archive that would be written; each run gives a set another name.
    pub archive: String,
    /// The set, and the objects that would be stored by reason. An archive outside of a chain is
    /// told as a full set.
    pub set: WrittenSetAnswer,
    /// The list of changes, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_from: Option<ChangedListAnswer>,
    /// Files with a content, each once whatever names it has.
    pub files: u64,
    /// Their bytes, without holes, before compression.
    pub bytes: u64,
    /// Bytes of holes, which are not stored.
    pub hole_bytes: u64,
    /// Further names of files.
    pub links: u64,
    /// Folders that could not be listed.
    pub unlisted: u64,
    /// The folders with most of the bytes.
    pub folders: Vec<FolderBytesAnswer>,
    /// The largest files that would be stored.
    pub largest: Vec<LargeFileAnswer>,
    /// How far the contents compress; null where they were not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SampledAnswer>,
    /// What it would take of a tape drive and its tapes; null where the target is none, or one of
    /// which nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tapes: Option<TapesAnswer>,
}

/// How far the contents compress, by stretches of them that were drawn at random.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledAnswer {
    /// Stretches that were read.
    pub stretches: u64,
    pub read_bytes: u64,
    /// Files that could not be read.
    pub unread: u64,
    /// By the compression of the run; null without one.
    pub compressed: Option<CompressedAnswer>,
    /// In a drive that compresses, as LTO drives do; null where the target is no tape drive, or the
    /// run compresses.
    pub in_drive: Option<CompressedAnswer>,
}

/// Bytes after compression: an estimate, and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompressedAnswer {
    /// Bytes after compression for each byte before it.
    pub share: f64,
    pub bytes: u64,
    /// The lower end of the interval.
    pub low_bytes: u64,
    /// The upper end of the interval.
    pub high_bytes: u64,
}

impl SampledAnswer {
    /// What the stretches say of so many bytes.
    fn of(sampled: &SampledContents, all_bytes: u64) -> SampledAnswer {
        let of = |it: CompressedShare| CompressedAnswer::of(it, all_bytes);
        SampledAnswer {
            stretches: sampled.stretches,
            read_bytes: sampled.read_bytes,
            unread: sampled.unread,
            compressed: sampled.compressed.map(of),
            in_drive: sampled.in_drive.map(of),
        }
    }
}

impl CompressedAnswer {
    /// What is left of so many bytes.
    pub fn of(share: CompressedShare, all_bytes: u64) -> CompressedAnswer {
        let left = |share: f64| (all_bytes as f64 * share) as u64;
        CompressedAnswer {
            share: share.share,
            bytes: left(share.share),
            low_bytes: left(share.low),
            high_bytes: left(share.high),
        }
    }
}

/// A folder and the bytes that would be stored of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderBytesAnswer {
    /// As the archive has it, escaped.
    pub path: String,
    pub bytes: u64,
}

/// A file that would be stored, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LargeFileAnswer {
    /// As the archive has it, escaped.
    pub path: String,
    pub bytes: u64,
    /// As in `set.stored`.
    pub reason: String,
}

impl Answer for DryRunAnswer {
    const COMMAND: &'static str = "backup dry-run";

    fn command(&self) -> &str {
        "backup"
    }
}

/// Says what a backup would store. Nothing is written, and no content is read unless it is to be
/// sampled.
///
/// # Errors
/// When a source cannot be found, the folder of sets cannot be read, a run that does not
/// compress is to be sampled, or the run was stopped.
pub fn dry_run(
    request: &BackupRequest,
    sampling: Sampling,
    observer: &dyn RunObserver,
    cancel: &Cancel,
) -> Result<DryRunDone, Failure> {
    let monitor = RunMonitor::new(observer);
    let compression = compression(request)?;
    let is_tape = journal::is_tape_drive(&request.to);
    if sampling == Sampling::Stretches && compression == Compression::None && !is_tape {
        let hint = "add --compress zstd, or name a tape drive with --to";
        return Err(Failure::of("--sample: the run would not compress", Some(hint)));
    }
    let set = new_set(request, None, Hold::None, cancel, &monitor)?;
    let (to, wanted, list) = match set {
        Some(set) => (set.path, Some(set.options), set.list),
        None => (request.to.clone(), None, None),
    };
    let is_set = wanted.is_some();
    let wanted = wanted.map_or_else(|| sets::alone(request), Ok)?;
    // Where it would go plays no part.
    let options = options(request, target("-".as_ref()), Compression::None)?;
    let found = runs::backup::dry_run(&options, &wanted, &mut |_| (), &monitor, cancel)?;
    let sampled = match sampling {
        Sampling::Nothing => None,
        Sampling::Stretches => {
            // A second walk: the first says how much there is, and has warned of what is wrong.
            let mut stretches = Stretches::of(found.bytes, compression);
            let mut each = |content: StoredContent<'_>| stretches.pass(content);
            runs::backup::dry_run(&options, &wanted, &mut each, &Silent, cancel)?;
            Some(stretches.finish())
        }
    };
    let sampled = sampled.map(|sampled| SampledContents {
        in_drive: sampled.in_drive.filter(|_| is_tape && compression == Compression::None),
        ..sampled
    });
    let list = list.map(|list| list.done(found.list.clone(), &monitor));
    let is_drive_off = request.tape.drive_compression == Some(false);
    let share = sampled.as_ref().and_then(|it| match compression {
        Compression::None => it.in_drive.filter(|_| !is_drive_off),
        _ => it.compressed,
    });
    // A drive writes what it cannot compress as it is.
    let ratio = share.map(|it| (1.0 / it.share).max(1.0));
    let tapes = tape::tapes(request, found.bytes, found.files, ratio);
    Ok(DryRunDone { to, is_set, list, found, sampled, tapes })
}

/// How the run would compress: as asked, else as the name of the archive says.
fn compression(request: &BackupRequest) -> Result<Compression, Failure> {
    let asked = request.compress.as_deref().map(str::parse).transpose();
    let asked = asked.map_err(|error| Failure::new(&error, None))?;
    Ok(compression_by_name::choose(asked, &target(&request.to))?.compression)
}

fn target(path: &Path) -> Destination {
    let (media, memory) = Default::default();
    destination(path, Default::default(), media, memory, NoChanger::shared())
}
