//! The `verify` run: reads every byte of an archive, and compares it with the live files.
//!
//! ```text
//! read --> ring --> [decompress --> ring] --> parse --> check (several workers)
//! ```
//!
//! What is checked, as far as the archive has it: the structure of the archive, the checksums of
//! the compression, and with an index the checksum of every block, the content hash of every file,
//! and the index's own checksums. A file that is in the index but not in the archive is named.
//!
//! Against a directory every member is compared with the live object of its path, content included.
//! Differences are sorted by whether the live object was touched since the backup: *changed* is
//! what a backup is for, *differs although it did not change* must not happen.

mod ahead;
mod elsewhere;
mod error;
mod findings;
mod freshness;
mod hit;
mod large;
mod lists;
mod live;
mod options;
mod order;
mod part;
mod seen;
mod workers;

use std::sync::Arc;
use std::time::Instant;

use flow::account::{Account, Stage};
use flow::cancel::Cancel;
use flow::crew::Crew;
use flow::monitor::Monitor;
use flow::run::{Command, Endpoint, StageKind};

use crate::read::block_check::{BlockCheck, KeptChecksums};
use crate::read::members::MemberStream;
use crate::read::{
    ChunkHeaders, Contents, Damage, IndexNeed, Input, ReadSettings, ReadSummary, plain_decoder,
    read_archive,
};
use crate::warnings::Warnings;
use ahead::{Ahead, Arrivals, Fetched};
use tapeset::Need;

pub use error::VerifyError;
use findings::report_blocks;
pub use findings::{Checked, Elsewhere, VerifyReport};
pub use freshness::{PageCache, ReadFrom};
pub use hit::Hit;
pub(crate) use lists::Textual;
pub use lists::{Bounded, Differing, LISTED_BYTES_MAX, LISTED_MAX, Problem};
pub use options::{ExtraFiles, VerifyOptions};
use order::{IndexFromEnd, Verifier};
pub use part::{PartOptions, PartReport, verify_part};
use workers::Workers;

impl Textual for Vec<u8> {
    fn text_bytes(&self) -> usize {
        self.len()
    }
}

/// Whether an archive still has its original compressed form. Recompressing or decompressing it is
/// no damage.
fn is_as_written(written: archive::chunk::Compression, summary: &ReadSummary) -> bool {
    let packed_anew =
        summary.compression == "gzip" && summary.outside.headers == ChunkHeaders::Foreign;
    !packed_anew && written.to_string().starts_with(summary.compression)
}

/// Verifies an archive.
///
/// # Errors
/// See [`VerifyError`]. Damage and differences are in the report; they are no errors.
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
    let index = check.as_deref().map(|check| &check.index);
    let fetched = Fetched::for_run(&options, workers.len(), cancel);
    let ahead = index.and_then(|index| Ahead::new(&options, index, &fetched, monitor, cancel));
    let body = |stream: &mut MemberStream<'_>, account: &mut Account| {
        let arrivals = ahead.as_ref().map(Arrivals::new);
        let mut verifier = Verifier::new(&workers, keep.as_deref(), arrivals, &warnings);
        workers.run(ahead.as_ref(), || verifier.dispatch(stream, account))?;
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
    tape_damage(&mut summary, &mut report, &warnings);
    let run = &mut report.run;
    report.tape = summary.enter(run, Command::Verify, Endpoint::Check, &warnings);
    report.run.disk_order = ahead.as_ref().and_then(|ahead| ahead.sweep.done());
    report.run.stages.extend([parse.report(), stage.report()]);
    if let Some(check) = &check {
        conclude_blocks(check, &mut report, &warnings);
    } else if from_end == IndexFromEnd::Expected && endpoint == Endpoint::File && as_written {
        let why = "it cannot be found from the end of the file".to_owned();
        report.damage(&Damage::of_index(why), &warnings);
    }
    if let Some(against) = &options.against {
        if options.extra == ExtraFiles::Named {
            live::find_extra(against, &workers, &mut report, &warnings, cancel)?;
        }
        report.elsewhere = elsewhere::look(against, &report);
    }
    report.run.seconds = start.elapsed().as_secs_f64();
    report.warnings = warnings.count();
    Ok(base::interruptible::check_shortage().map(|()| report)?)
}

fn tape_damage(summary: &mut ReadSummary, report: &mut VerifyReport, warnings: &Warnings<'_>) {
    let damage = summary.tape.iter_mut().flat_map(|tape| tape.damage.drain(..));
    damage.for_each(|what| report.problem(b"", what, warnings));
}

/// The job of the workers.
fn kind_of_checking(options: &VerifyOptions) -> StageKind {
    if options.against.is_some() { StageKind::Compare } else { StageKind::Hash }
}

fn conclude_blocks(check: &BlockCheck, report: &mut VerifyReport, warnings: &Warnings<'_>) {
    let (blocks, differing_count, differing) = check.outcome();
    report.checked.blocks = Some(blocks);
    report_blocks(check.index.trailer.block_bytes, &differing, differing_count, report, warnings);
}
