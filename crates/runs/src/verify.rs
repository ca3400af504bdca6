//! The `verify` run: reads every byte of an archive back, and compares it with the live files.
//!
//! ```text
//! read --> ring --> [decompress --> ring] --> parse --> check (several workers)
//! ```
//!
//! What is checked, whatever there is to check it with: the structure of the archive, the checksums
//! of the compression, and, when the archive carries its index, the checksum of every block, the
//! content hash of every file, and the index's own checksums. A file that the index knows and the
//! archive does not give is named.
//!
//! Against a directory every member is compared with the live object of its path, content included.
//! What differs is sorted by whether the live object was touched since the backup: *changed* is
//! what a backup is for, *differs although it did not change* is what nobody did.

mod elsewhere;
mod freshness;
mod hit;
mod large;
mod live;
mod order;
mod seen;
mod workers;

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use archive::index::FileRecord;
use flow::account::{Account, Stage};
use flow::backend::Engine;
use flow::cancel::{Cancel, Stopped};
use flow::crew::{Crew, Failure, StageFailure};
use flow::monitor::{Harm, Monitor};
use flow::run::{Command, Endpoint, RunReport, StageKind};
use tree::{Attributes, CompareOwners, Difference};

use crate::origin::Origin;
use crate::read::block_check::{BlockCheck, KeptChecksums};
use crate::read::members::MemberStream;
use crate::read::{
    ChunkHeaders, Contents, Damage, IndexNeed, Input, Outside, ReadFailure, ReadSettings,
    ReadSummary, TableState, plain_decoder, read_archive,
};
use crate::warnings::Warnings;
use tapeset::{Need, TapeReading};

pub use freshness::{PageCache, ReadFrom};
pub use hit::Hit;
use order::{IndexFromEnd, Verifier};
use workers::Workers;

/// Most entries of each list in a [`VerifyReport`]; the totals count on.
pub const LISTED_MAX: usize = 10_000;
/// Most bytes of text in each of the lists: a path may have a megabyte.
pub const LISTED_BYTES_MAX: usize = 4 << 20;

/// What to verify and how.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// Where the archive is.
    pub from: Origin,
    /// Directory that the paths of the archive start in, when it is to be compared with.
    pub against: Option<PathBuf>,
    /// Whether what the page cache holds of the archive is as good as the disk.
    pub cache: PageCache,
    /// Whether attributes and ACLs are compared.
    pub attributes: Attributes,
    /// Whether owners are compared.
    pub owners: CompareOwners,
    /// Whether an archive that does not speak of an index must have one all the same.
    pub index: IndexNeed,
    /// Threads that check; as many as there are cores when `None`, four for each against a
    /// directory, whose files are waited for.
    pub threads: Option<NonZero<usize>>,
    /// Back end of bulk input.
    pub engine: Engine,
    /// Memory of the rings together.
    pub ring_bytes: usize,
}

impl Default for VerifyOptions {
    fn default() -> VerifyOptions {
        VerifyOptions {
            from: "-".into(),
            against: None,
            cache: PageCache::Dropped,
            attributes: Attributes::Read,
            owners: CompareOwners::Compare,
            index: IndexNeed::default(),
            threads: None,
            engine: Engine::Auto,
            ring_bytes: 64 << 20,
        }
    }
}

/// Some entries and the number of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounded<T> {
    /// The first [`LISTED_MAX`], or fewer of [`LISTED_BYTES_MAX`].
    pub items: Vec<T>,
    /// How many there are in all.
    pub total: u64,
    text_bytes: usize,
}

/// What has text in it that an archive may make long.
pub(crate) trait Textual {
    /// How long.
    fn text_bytes(&self) -> usize;
}

impl Textual for Vec<u8> {
    fn text_bytes(&self) -> usize {
        self.len()
    }
}

impl Textual for Problem {
    fn text_bytes(&self) -> usize {
        self.path.len() + self.what.len()
    }
}

impl Textual for Differing {
    fn text_bytes(&self) -> usize {
        self.path.len() + self.differences.iter().map(difference_bytes).sum::<usize>()
    }
}

fn difference_bytes(difference: &Difference) -> usize {
    let name = match difference {
        Difference::LinkTarget { live } => live.len(),
        Difference::Attribute { name, .. } => name.len(),
        _ => 0,
    };
    size_of::<Difference>() + name
}

impl<T> Default for Bounded<T> {
    fn default() -> Bounded<T> {
        Bounded { items: Vec::new(), total: 0, text_bytes: 0 }
    }
}

impl<T> Bounded<T> {
    pub(crate) fn push(&mut self, item: T)
    where
        T: Textual,
    {
        self.total += 1;
        self.text_bytes = self.text_bytes.saturating_add(item.text_bytes());
        if self.items.len() < LISTED_MAX && self.text_bytes <= LISTED_BYTES_MAX {
            self.items.push(item);
        }
    }
}

/// Something with a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path in the archive, or below the directory compared with; empty for the archive as a whole.
    pub path: Vec<u8>,
    /// What is wrong: a lowercase fragment.
    pub what: String,
}

/// A live object that is not as archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    /// Path in the archive.
    pub path: Vec<u8>,
    /// In what the metadata differ.
    pub differences: Vec<Difference>,
    /// First byte of the content that differs, when both have the same length.
    pub content_differs_at_bytes: Option<u64>,
}

/// What there was to check with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Whether the archive carries an index, and it was read whole.
    pub index: bool,
    /// Files that the index knows.
    pub files: u64,
    /// Files whose content was held against a hash of the index.
    pub content_hashes: u64,
    /// Blocks held against a checksum of the index; `None` where that cannot be done: where it
    /// comes behind the blocks (a pipe) and those are not of the usual size.
    pub blocks: Option<u64>,
    /// Members compared with live objects.
    pub compared: u64,
}

/// The end of a verification.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// The numbers.
    pub run: RunReport,
    /// What the tape has to tell, if it was one.
    pub tape: Option<TapeReading>,
    /// Warnings given to the monitor: damage, what differs, is missing or could not be compared.
    pub warnings: u64,
    /// What there was to check with.
    pub checked: Checked,
    /// Where the archive was read from.
    pub read_from: ReadFrom,
    /// What is wrong with the archive, by check: one flaw may be found by several.
    pub damaged: Bounded<Problem>,
    /// The members that it hit.
    pub hit: Hit,
    /// Live objects that changed since the backup.
    pub changed: Bounded<Differing>,
    /// Live objects that differ although neither size nor times say that anybody touched them.
    pub differs: Bounded<Differing>,
    /// Members without a live object.
    pub missing: Bounded<Vec<u8>>,
    /// Live objects that are not in the archive, in directories that are. Below an extra directory
    /// nothing is listed.
    pub extra: Bounded<Vec<u8>>,
    /// Members that could not be compared.
    pub not_compared: Bounded<Problem>,
    /// Set where next to nothing of the archive is below the directory compared with.
    pub elsewhere: Option<Elsewhere>,
}

/// The directory compared with has next to nothing of the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// The one that was probably meant, where one above or right below it has what is missing.
    pub probably: Option<PathBuf>,
}

impl VerifyReport {
    /// Whether the archive itself is sound.
    pub fn is_sound(&self) -> bool {
        self.damaged.total == 0
    }

    /// Records damage and warns of it.
    fn damage(&mut self, damage: &Damage, warnings: &Warnings<'_>) {
        if damage.is_certain() {
            let path = damage.path.clone();
            self.hit.path(&path, hit::Object::File);
            self.damaged.push(Problem { path, what: damage.to_string() });
        }
        warnings.damage(damage);
    }

    /// Records what is wrong with the compressed form of an archive of ours.
    fn outside(&mut self, summary: &ReadSummary, from_end: IndexFromEnd, warnings: &Warnings<'_>) {
        let Outside { table, headers } = summary.outside;
        let has_table = summary.compression == "zstd" && summary.endpoint != Endpoint::Tape;
        if has_table && table != TableState::Holds {
            let why = "the seek table behind the last frame is missing, or not that of the frames";
            self.damage(&Damage::of_index(why.to_owned()), warnings);
        }
        // Where the archive is not alone in its source the members of others are no damage; nor is
        // it known to be alone where other damage was met.
        let is_alone = from_end == IndexFromEnd::Expected && self.damaged.total == 0;
        if let (ChunkHeaders::Changed(at), true) = (headers, is_alone) {
            self.damage(&Damage::of_chunk_header(at), warnings);
        }
    }

    /// Records what is wrong with a member that the index knows.
    fn problem_of(&mut self, record: &FileRecord, what: String, warnings: &Warnings<'_>) {
        self.hit.record(record);
        self.problem(&record.path, what, warnings);
    }

    fn problem(&mut self, path: &[u8], what: String, warnings: &Warnings<'_>) {
        warnings.warn(Harm::Damage, path, what.clone());
        self.damaged.push(Problem { path: path.to_vec(), what });
    }
}

/// Whether an archive has the compressed form that it was written in. Who has compressed it anew,
/// or decompressed it, has changed nothing that matters.
fn is_as_written(written: archive::chunk::Compression, summary: &ReadSummary) -> bool {
    let packed_anew =
        summary.compression == "gzip" && summary.outside.headers == ChunkHeaders::Foreign;
    !packed_anew && written.to_string().starts_with(summary.compression)
}

/// Why an archive could not be verified to its end.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The archive cannot be read.
    #[error(transparent)]
    Read(#[from] ReadFailure),
    /// The directory to compare with cannot be opened.
    #[error("cannot open {}", path.display())]
    Against {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The temporary file for what was found fails.
    #[error("cannot keep what was found in a temporary file")]
    Spool(#[source] std::io::Error),
    /// A stage cannot be started, or broke down.
    #[error(transparent)]
    Stage(#[from] StageFailure),
    /// Files were left out because this process could not open any more.
    #[error(transparent)]
    Shortage(#[from] base::interruptible::Shortage),
    /// The run was stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Failure for VerifyError {
    fn is_echo(&self) -> bool {
        match self {
            VerifyError::Read(failure) => failure.is_echo(),
            error => matches!(error, VerifyError::Stopped(_)),
        }
    }
}

/// Verifies an archive.
///
/// # Errors
/// See [`VerifyError`]. Damage and differences are no errors: they are in the report.
pub fn verify(
    options: VerifyOptions,
    monitor: &dyn Monitor,
    cancel: &Cancel,
) -> Result<VerifyReport, VerifyError> {
    let start = Instant::now();
    let warnings = Warnings::new(monitor);
    let input = Input::open(&options.from, Need::Everything, monitor, cancel)?;
    let read_from = freshness::prepare(&input, options.cache);
    let check = input.index().and_then(BlockCheck::of).map(Arc::new);
    let chunks = input.chunks();
    if options.index == IndexNeed::Required {
        input.require_index()?;
    }
    let keep = check.is_none().then(Arc::<KeptChecksums>::default);
    let settings = ReadSettings {
        engine: options.engine,
        way: options.cache.into(),
        ring_bytes: options.ring_bytes,
        threads: options.threads,
        make_decoder: plain_decoder,
        contents: Contents::Wanted,
        check: check.clone(),
        keep: keep.clone(),
        index: options.index,
        excerpt: None,
        chunks: chunks.as_ref(),
    };
    let (parse, stage) = (Stage::new(StageKind::Parse), Stage::new(kind_of_checking(&options)));
    monitor.stages(&[&parse, &stage]);
    let crew = Crew::new(cancel);
    let workers = Workers::new(&options, &stage, &warnings, &crew)?;
    let body = |stream: &mut MemberStream<'_>, account: &mut Account| {
        let mut verifier = Verifier::new(&workers, keep.as_deref(), &warnings);
        workers.run(|| verifier.dispatch(stream, account))?;
        verifier.conclude()
    };
    let ((mut report, from_end, written), mut summary) =
        read_archive::<_, VerifyError>(input, &settings, &parse, monitor, &crew, body)?;
    let endpoint = summary.endpoint;
    report.read_from = if summary.past_cache { ReadFrom::Disk } else { read_from };
    let as_written = written.is_some_and(|was| is_as_written(was, &summary));
    if as_written && report.checked.index {
        report.outside(&summary, from_end, &warnings);
    }
    if let Some(tape) = &mut summary.tape {
        for what in tape.damage.drain(..) {
            report.problem(b"", what, &warnings);
        }
    }
    let run = &mut report.run;
    report.tape = summary.enter(run, Command::Verify, Endpoint::Check, &warnings);
    report.run.stages.extend([parse.report(), stage.report()]);
    if let Some(check) = &check {
        conclude_blocks(check, &mut report, &warnings);
    } else if from_end == IndexFromEnd::Expected && endpoint == Endpoint::File && as_written {
        let why = "it cannot be found from the end of the file".to_owned();
        report.damage(&Damage::of_index(why), &warnings);
    }
    if let Some(against) = &options.against {
        live::find_extra(against, &workers, &mut report, &warnings, cancel)?;
        report.elsewhere = elsewhere::look(against, &report);
    }
    report.run.seconds = start.elapsed().as_secs_f64();
    report.warnings = warnings.count();
    Ok(base::interruptible::check_shortage().map(|()| report)?)
}

/// What the workers do.
fn kind_of_checking(options: &VerifyOptions) -> StageKind {
    if options.against.is_some() { StageKind::Compare } else { StageKind::Hash }
}

fn conclude_blocks(check: &BlockCheck, report: &mut VerifyReport, warnings: &Warnings<'_>) {
    let (blocks, differing_count, differing) = check.outcome();
    report.checked.blocks = Some(blocks);
    report_blocks(check.index.trailer.block_bytes, &differing, differing_count, report, warnings);
}

fn report_blocks(
    block_bytes: u32,
    differing: &[u64],
    differing_count: u64,
    report: &mut VerifyReport,
    warnings: &Warnings<'_>,
) {
    report.hit.blocks(differing, block_bytes.into());
    for block in differing {
        let at = block * u64::from(block_bytes);
        let what = format!("the checksum of the {block_bytes} bytes at byte {at} does not hold");
        report.problem(b"", what, warnings);
    }
    report.damaged.total += differing_count.saturating_sub(differing.len() as u64);
}
