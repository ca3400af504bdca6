//! A part of an archive, read back and compared with the checksums of its blocks.
//!
//! No member is parsed: a block has its checksum whatever is in it, so a part may begin and end
//! inside of a file. The end of the archive is read with every part. The index is read with the
//! part that has the end; what a whole verification adds to that are the hashes of contents, which
//! cover the same bytes, and the seek table of zstd.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use archive::index::{
    ChunkRecord, ExtentRecord, FileRecord, IndexReader, IndexSection, Record, WarningRecord,
};
use base::failures::with_causes;
use catalogue::IndexFile;
use flow::account::{Account, Stage};
use flow::backend::Engine;
use flow::cancel::Cancel;
use flow::crew::Crew;
use flow::monitor::{Harm, Monitor};
use flow::run::StageKind;
use tapeset::Need;

use super::error::VerifyError;
use super::freshness::{self, PageCache};
use crate::origin::Origin;
use crate::read::block_check::BlockCheck;
use crate::read::excerpt::Excerpt;
use crate::read::members::{Item, MemberStream};
use crate::read::{
    Contents, IndexNeed, Input, ReadFailure, ReadSettings, plain_decoder, read_archive,
};
use crate::warnings::Warnings;

/// Which part of an archive is verified.
#[derive(Clone, Debug)]
pub struct PartOptions {
    /// A file with an archive that has an index.
    pub from: Origin,
    /// Bytes of the archive, before compression; blocks that are partly in it are read whole.
    pub part: Range<u64>,
    /// Back end of bulk input.
    pub engine: Engine,
    /// Memory of the rings together.
    pub ring_bytes: usize,
}

/// What was found in a part of an archive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartReport {
    /// Blocks whose checksums were compared.
    pub blocks: u64,
    /// Bytes that were read of the file.
    pub read_bytes: u64,
    pub seconds: f64,
    /// What is wrong, the first of it; the archive is sound where this is empty.
    pub damaged: Vec<String>,
}

/// Verifies a part of an archive.
///
/// # Errors
/// When the archive cannot be read, or has no index with its checksums. Damage is in the report.
pub fn verify_part(
    options: &PartOptions,
    monitor: &dyn Monitor,
    cancel: &Cancel,
) -> Result<PartReport, VerifyError> {
    let start = Instant::now();
    let warnings = Warnings::new(monitor);
    let input = Input::open(&options.from, Need::Everything, monitor, cancel)?;
    freshness::prepare(&input, PageCache::Dropped);
    let no_index = || ReadFailure::NoIndex { name: options.from.name().to_string_lossy().into() };
    let index = input.require_known_index(&options.from)?;
    let check = Arc::new(BlockCheck::of(index).ok_or_else(no_index)?);
    let excerpt = Excerpt::of_blocks(&check.index, &options.part).ok_or_else(no_index)?;
    let settings = ReadSettings {
        engine: options.engine,
        way: PageCache::Dropped.into(),
        ring_bytes: options.ring_bytes,
        threads: None,
        make_decoder: plain_decoder,
        contents: Contents::Wanted,
        check: Some(Arc::clone(&check)),
        keep: None,
        index: IndexNeed::AsTheArchiveSays,
        excerpt: Some(&excerpt),
        chunks: None,
    };
    let parse = Stage::new(StageKind::Parse);
    monitor.stages(&[&parse]);
    let mut report = PartReport::default();
    let crew = Crew::new(cancel);
    let body = |stream: &mut MemberStream<'_>, account: &mut Account| {
        let mut damaged = Vec::new();
        while let Some(item) = stream.next(account)? {
            if let Item::Damage(damage) = item {
                damaged.push(damage.to_string());
            }
        }
        Ok::<_, VerifyError>(damaged)
    };
    let (damaged, summary) =
        read_archive::<_, VerifyError>(input, &settings, &parse, monitor, &crew, body)?;
    report.damaged = damaged;
    report.read_bytes = summary.source_bytes;
    conclude(&check, &options.part, &mut report);
    for what in &report.damaged {
        warnings.warn(Harm::Damage, b"", what.clone());
    }
    report.seconds = start.elapsed().as_secs_f64();
    Ok(base::interruptible::check_shortage().map(|()| report)?)
}

/// Adds what the checksums say, and of the last part the index.
fn conclude(check: &BlockCheck, part: &Range<u64>, report: &mut PartReport) {
    let trailer = &check.index.trailer;
    let block_bytes = u64::from(trailer.block_bytes).max(1);
    let (blocks, differing_count, differing) = check.outcome();
    report.blocks = blocks;
    for block in differing {
        let at = block * block_bytes;
        report
            .damaged
            .push(format!("the checksum of the {block_bytes} bytes at byte {at} does not hold"));
    }
    let end = part.end.min(trailer.archive_bytes);
    let wanted = end.div_ceil(block_bytes).saturating_sub(part.start / block_bytes);
    if blocks < wanted && differing_count == 0 {
        report.damaged.push(format!("only {blocks} of {wanted} blocks could be read"));
    }
    if part.end >= trailer.archive_bytes {
        report.damaged.extend(index_damage(&check.index));
    }
}

/// What is wrong in an index, by the checksums of its sections. Those of blocks were read before.
fn index_damage(index: &IndexFile) -> Option<String> {
    let in_sections = section_damage::<FileRecord>(index, IndexSection::Files)
        .or_else(|| section_damage::<ChunkRecord>(index, IndexSection::Chunks))
        .or_else(|| section_damage::<WarningRecord>(index, IndexSection::Warnings))
        .or_else(|| section_damage::<ExtentRecord>(index, IndexSection::Extents));
    in_sections.or_else(|| match index.tree_holds() {
        Ok(Some(false)) => Some("the checksum of the index's tree does not hold".to_owned()),
        Ok(_) => None,
        Err(error) => Some(with_causes(&error)),
    })
}

fn section_damage<T: Record>(index: &IndexFile, section: IndexSection) -> Option<String> {
    let reader = match index.section(section) {
        Ok(reader) => reader,
        Err(error) => return Some(format!("the index cannot be read: {}", with_causes(&error))),
    };
    let mut records = IndexReader::<T, _>::new(reader);
    loop {
        match records.next_record() {
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(error) => return Some(with_causes(&error)),
        }
    }
}
