//! Reading an archive: the pipeline that list, restore and verify share.
//!
//! ```text
//! read (several reads in flight) --> ring --> [decompress in parallel --> ring] --> MemberStream
//! ```
//!
//! The blocks are parsed where they are and passed on as leases. Everything is bounded by the two
//! rings and one chunk for each thread of `decompress`. Damage does not end the stream: what cannot
//! be read or decompressed is a gap ([`flow::gaps`]), and [`members::MemberStream`] resynchronises.
//!
//! A listing of a plain archive with random access skips the content: it goes from header to header
//! in the file ([`headers`]).

mod at_hand;
pub(crate) mod block_check;
pub(crate) mod cross_check;
mod cursor;
mod damage;
mod decompress;
pub(crate) mod excerpt;
mod failure;
mod frame_watch;
mod headers;
mod input;
mod landmarks;
pub(crate) mod late_check;
pub(crate) mod members;
pub(crate) mod placement;
pub(crate) mod ranges;
pub(crate) mod section;
mod settings;
mod source;
mod start;
mod summary;
mod table_watch;
mod then_index;

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Scope;

use archive::chunk::{Coding, StreamFormat};
use archive::decode::{DecodeLimits, Decoder};
use archive::index::ChunkRecord;
use archive::stream::{Archive, Stored, StoredOffset};
use base::failures::lock;
use device::source::Source;
use flow::account::{Account, Stage};
use flow::backend::Choice;
use flow::cancel::{Cancel, Stopped};
use flow::crew::{Crew, Failure, cores};
use flow::gaps::Gaps;
use flow::monitor::{Level, Monitor, Notice};
use flow::ring::{Consumer, Producer, RingOptions, ring};
use flow::run::{Endpoint, StageKind};
use flow::source::{ReadError, read_stream};
use tapeset::{OpenTape, TapeEnd, TapeIndex, TapeReadFailure, TapeShared};

use cursor::{CheckedSupply, Cursor, KeepingSupply, RingSupply, Supply};
use decompress::{Decompress, FirstLoss};
use excerpt::{Excerpt, ExcerptSupply};
use input::is_plain_file;
use landmarks::Landmarks;
use members::{AfterEnd, MemberStream, Promise};
use source::SourceReader;
use then_index::ThenIndex;

use crate::expected;
use crate::past_cache::PastCache;

pub(crate) use cursor::Slice;
pub use damage::{Damage, DamageKind};
pub use failure::ReadFailure;
pub(crate) use frame_watch::{ChunkHeaders, Outside};
pub use input::IndexNeed;
pub(crate) use settings::{Contents, ReadSettings};
pub(crate) use {input::Input, summary::ReadSummary, table_watch::TableState};

/// Bytes of a block of the reading rings. Independent of the block size of the archive, which
/// matters to tapes only: a read from tape returns one tape block, whatever its size.
const BLOCK_BYTES: usize = 1 << 20;
/// Least number of blocks of a ring. A batch of small files on its way to a worker holds two, a
/// worker that waits for more holds another, and a chunk that goes into the ring needs up to four.
const RING_BLOCKS_MIN: usize = 8;
/// Most bytes that members in transit to workers use beside their content, which is in the ring:
/// names, attributes, sparse maps. A larger member goes alone.
pub(crate) const MEMBERS_BYTES_MAX: usize = 16 << 20;
/// Zeros that tar writes by default behind a member at most: the end mark, which begins in the last
/// unit of a record of 10 KiB, and the record after it.
const RECORD_ZEROS_BYTES_MAX: u64 = 512 + 10240;
/// Reads in flight at first, through the page cache: enough to keep a disk busy, few enough for two
/// cores.
const READS_IN_FLIGHT: usize = 4;
/// The same past the page cache, where there is no read-ahead.
const DIRECT_READS_IN_FLIGHT: usize = 8;

/// A decoder that does not resolve names in ACLs.
pub(crate) fn plain_decoder() -> Decoder {
    Decoder::new(DecodeLimits::default())
}

/// Reads `input` and runs `body` over its members, on this thread, whose account belongs to
/// `stage`.
pub(crate) fn read_archive<R, E>(
    input: Input,
    settings: &ReadSettings<'_>,
    stage: &Arc<Stage>,
    monitor: &dyn Monitor,
    crew: &Crew<'_, E>,
    body: impl FnOnce(&mut MemberStream<'_>, &mut Account) -> Result<R, E>,
) -> Result<(R, ReadSummary), E>
where
    E: Failure + From<ReadFailure>,
{
    let pipeline = Pipeline::new(&input, settings, monitor, crew)?;
    let result = match input {
        Input::File(source) if settings.contents == Contents::NotWanted && pipeline.plain_file => {
            monitor.expect(expected::of_headers(source.length_bytes.unwrap_or(0)));
            crew.scope(stage.kind(), |_| pipeline.skim(&source, stage, body))
        }
        input => {
            if let Some(expected) = expected::of_archive(&input, settings.excerpt) {
                monitor.expect(expected);
            }
            pipeline.run(input, stage, body)
        }
    };
    crew.outcome(result)
}

/// What the threads of a run share.
struct Pipeline<'a, E> {
    /// Name of the source.
    name: String,
    settings: &'a ReadSettings<'a>,
    choice: Choice,
    crew: &'a Crew<'a, E>,
    cancel: &'a Cancel,
    endpoint: Endpoint,
    /// Not compressed, and read at any offset.
    plain_file: bool,
    /// A set on tape that is not compressed.
    plain_set: bool,
    /// Bytes of a block of the ring behind the source.
    source_block_bytes: usize,
    after_end: AfterEnd,
    read: Arc<Stage>,
    decompress: Arc<Stage>,
    /// Gaps of the source, and those after decompression.
    source_gaps: Gaps<Stored>,
    archive_gaps: Gaps<Archive>,
    stop: AtomicBool,
    ring_bytes: AtomicU64,
    trailing_bytes: AtomicU64,
    /// Whether the whole source was read past the page cache.
    past_cache: AtomicBool,
    outside: Mutex<Outside>,
    /// What could not be decompressed first.
    first_loss: Mutex<Option<FirstLoss>>,
    /// The index of a set on tape, once known.
    tape_index: Mutex<Option<TapeIndex>>,
    tape_end: Mutex<Option<TapeEnd>>,
}

impl<'a, E: Failure + From<ReadFailure>> Pipeline<'a, E> {
    fn new(
        input: &Input,
        settings: &'a ReadSettings<'a>,
        monitor: &dyn Monitor,
        crew: &'a Crew<'a, E>,
    ) -> Result<Pipeline<'a, E>, ReadFailure> {
        let choice = Choice::new(settings.engine)
            .map_err(|source| ReadFailure::SetUp { what: "engine", source })?;
        let text = format!("engine {}: {}", choice.name(), choice.reason);
        monitor.notice(Notice { level: Level::Detail, object: Vec::new(), text });
        let (name, endpoint, plain_file, plain_set) = match input {
            Input::File(source) => {
                (source.name.clone(), Endpoint::of_file(&source.file), is_plain_file(source), false)
            }
            Input::Tape(tape) => (tape.device(), Endpoint::Tape, false, tape.is_plain_set()),
        };
        if let (Input::Tape(tape), Some(keep)) = (input, &settings.keep)
            && let Some(block_bytes) = tape.set_block_bytes()
        {
            keep.suppose(block_bytes);
        }
        let after_end = match input {
            Input::Tape(tape) if tape.is_set() => AfterEnd::Segments,
            _ if endpoint == Endpoint::BlockDevice => AfterEnd::IndexOnly,
            _ => AfterEnd::Anything,
        };
        let (read, decompress) = (Stage::new(StageKind::Read), Stage::new(StageKind::Decompress));
        monitor.stages(&[&read, &decompress]);
        Ok(Pipeline {
            name,
            settings,
            choice,
            crew,
            cancel: crew.cancel(),
            endpoint,
            plain_file,
            plain_set,
            source_block_bytes: match input {
                Input::File(_) => BLOCK_BYTES,
                Input::Tape(tape) => tape.ring_block_bytes(BLOCK_BYTES),
            },
            after_end,
            read,
            decompress,
            source_gaps: Gaps::default(),
            archive_gaps: Gaps::default(),
            stop: AtomicBool::new(false),
            ring_bytes: AtomicU64::new(0),
            trailing_bytes: AtomicU64::new(0),
            past_cache: AtomicBool::new(false),
            outside: Mutex::default(),
            first_loss: Mutex::default(),
            tape_index: Mutex::new(None),
            tape_end: Mutex::new(None),
        })
    }

    /// Goes from header to header, without threads and rings.
    fn skim<R>(
        self,
        source: &Source,
        stage: &Arc<Stage>,
        body: impl FnOnce(&mut MemberStream<'_>, &mut Account) -> Result<R, E>,
    ) -> Result<(R, ReadSummary), E> {
        let mut account = stage.open();
        let file = Arc::clone(&source.file);
        let length_bytes = source.length_bytes.unwrap_or(0);
        let gaps = self.gaps_of_plain();
        let supply = headers::HeaderSupply::new(file, length_bytes, gaps.clone(), self.cancel);
        let bytes_read = supply.bytes_read();
        let mut stream = self.stream(Box::new(supply), gaps);
        let result = body(&mut stream, &mut account)?;
        self.check_archive(&stream)?;
        let archive_bytes = stream.position_bytes().bytes();
        let mut summary = self.summary(archive_bytes, StreamFormat::Plain);
        summary.source_bytes = bytes_read.load(Ordering::Relaxed);
        summary.stages.clear();
        summary.engine = "pread";
        Ok((result, summary))
    }

    fn stream<'s>(&'s self, supply: Box<dyn Supply + 's>, gaps: Gaps<Archive>) -> MemberStream<'s> {
        // A set on tape has end marks between its segments.
        let is_tape = self.endpoint == Endpoint::Tape;
        let check = self.settings.check.as_ref().filter(|_| !is_tape);
        let own = match (self.after_end, is_tape) {
            (AfterEnd::Segments, _) => Promise::OfSegments,
            // A device is longer than its archive, and a tape record may have any length.
            (AfterEnd::IndexOnly, _) | (_, true) => Promise::None { zeros_bytes_max: u64::MAX },
            _ => Promise::None { zeros_bytes_max: RECORD_ZEROS_BYTES_MAX },
        };
        MemberStream::new(Cursor::new(supply, gaps), self.after_end)
            .with_landmarks(check.and_then(|check| Landmarks::of(&check.index)))
            .with_decoder(self.settings.make_decoder)
            .with_promise(own)
            .with_kept(self.settings.keep.clone())
    }

    /// The gaps of an uncompressed archive: those of its source.
    fn gaps_of_plain(&self) -> Gaps<Archive> {
        self.source_gaps.same_in()
    }

    fn check_archive(&self, stream: &MemberStream<'_>) -> Result<(), ReadFailure> {
        let name = || self.name.clone();
        if !stream.has_members()
            && !stream.has_index()
            && let Some(failure) = self.lost_from_the_start(stream)
        {
            return Err(failure);
        }
        if !stream.is_archive() {
            return Err(match self.after_end {
                AfterEnd::Segments => TapeReadFailure::NoData { device: name() }.into(),
                _ => ReadFailure::NotAnArchive { name: name() },
            });
        }
        if self.settings.index == IndexNeed::Required && !stream.has_index() {
            return Err(ReadFailure::NoIndex { name: name() });
        }
        if stream.has_members() || stream.has_index() {
            return Ok(());
        }
        let zeros_bytes = stream.position_bytes().bytes();
        Err(if stream.is_only_zeros() {
            ReadFailure::OnlyZeros { name: name(), zeros_bytes }
        } else {
            ReadFailure::NoMembers { name: name() }
        })
    }

    fn run<R>(
        self,
        input: Input,
        stage: &Arc<Stage>,
        body: impl FnOnce(&mut MemberStream<'_>, &mut Account) -> Result<R, E>,
    ) -> Result<(R, ReadSummary), E> {
        let (producer, consumer) = self.ring(self.source_block_bytes)?;
        let parsed = self.crew.scope(stage.kind(), |scope| {
            let reader = self.crew.spawn(scope, &self.read, |account| {
                match self.read_source(input, producer, account) {
                    // What a tape delivered before it failed is kept.
                    Err(failure @ ReadFailure::Tape(_)) => Ok(Err(failure)),
                    result => Ok(Ok(result?)),
                }
            })?;
            let mut account = stage.open();
            let result = self.parse(scope, consumer, &mut account, body);
            if result.is_err() {
                self.cancel.fail();
            }
            drop(account);
            match self.crew.join(reader) {
                // The source's own error explains why the stream ended.
                Ok(Err(failure)) if !failure.is_echo() => Err(failure.into()),
                _ => result,
            }
        });
        parsed.map(|(result, archive_bytes, format)| (result, self.summary(archive_bytes, format)))
    }

    fn parse<'scope, R>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        consumer: Consumer,
        account: &mut Account,
        body: impl FnOnce(&mut MemberStream<'_>, &mut Account) -> Result<R, E>,
    ) -> Result<(R, u64, StreamFormat), E> {
        let name = || self.name.clone();
        if let Some(excerpt) = self.settings.excerpt {
            return self.parse_excerpt(scope, excerpt, consumer, account, body);
        }
        if let Some((coding, chunks)) = self.settings.chunks {
            let supply = self.supply_chunks(scope, *coding, chunks, consumer)?;
            let format = StreamFormat::Compressed(*coding);
            return self.parse_all(supply, self.archive_gaps.clone(), format, account, body);
        }
        let first = consumer.next(account)?.filter(|block| !block.is_empty());
        let Some(first) = first else {
            return Err(match self.after_end {
                AfterEnd::Segments => ReadFailure::from(TapeReadFailure::NoData { device: name() }),
                _ => ReadFailure::Empty { name: name() },
            }
            .into());
        };
        let format = StreamFormat::detect(&first[..first.len().min(StreamFormat::PREFIX_BYTES)]);
        let (supply, gaps) = match format {
            StreamFormat::Plain => {
                (RingSupply { first: Some(first), consumer }, self.gaps_of_plain())
            }
            StreamFormat::Compressed(coding) => {
                let (producer, plain) = self.ring(BLOCK_BYTES)?;
                self.crew.spawn(scope, &self.decompress, move |account| {
                    self.decompress(coding, producer, account, |stage, account| {
                        stage.cut(first, &consumer, account)
                    })
                })?;
                (RingSupply { first: None, consumer: plain }, self.archive_gaps.clone())
            }
            StreamFormat::Other(format) => {
                return Err(ReadFailure::OtherCompression { name: name(), format }.into());
            }
        };
        self.parse_all(supply, gaps, format, account, body)
    }

    /// Reads all members.
    fn parse_all<R>(
        &self,
        supply: RingSupply,
        gaps: Gaps<Archive>,
        format: StreamFormat,
        account: &mut Account,
        body: impl FnOnce(&mut MemberStream<'_>, &mut Account) -> Result<R, E>,
    ) -> Result<(R, u64, StreamFormat), E> {
        let (check, keep) = (self.settings.check.clone(), self.settings.keep.clone());
        let supply: Box<dyn Supply> = match (check, keep) {
            (Some(check), _) => {
                Box::new(CheckedSupply { supply, check, position_bytes: Default::default() })
            }
            (None, Some(checksums)) => Box::new(KeepingSupply { supply, checksums }),
            (None, None) => Box::new(supply),
        };
        let supply = match self.after_end {
            AfterEnd::Segments => {
                let index = &self.tape_index;
                let kept = self.settings.keep.clone();
                Box::new(ThenIndex::new(supply, index, gaps.clone(), kept)) as Box<dyn Supply>
            }
            _ => supply,
        };
        let mut stream = self.stream(supply, gaps);
        let result = body(&mut stream, account)?;
        let archive_bytes = stream.position_bytes().bytes();
        self.stop.store(true, Ordering::Release);
        stream.drain(account)?;
        self.check_archive(&stream)?;
        Ok((result, archive_bytes, format))
    }

    /// Decompresses chunks whose places come from an index.
    fn supply_chunks<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        coding: Coding,
        chunks: &'scope [ChunkRecord],
        consumer: Consumer,
    ) -> Result<RingSupply, E> {
        let (producer, plain) = self.ring(BLOCK_BYTES)?;
        self.crew.spawn(scope, &self.decompress, move |account| {
            self.decompress(coding, producer, account, |stage, account| {
                stage.hand_out(chunks, &consumer, account)
            })
        })?;
        Ok(RingSupply { first: None, consumer: plain })
    }

    /// Like `parse`, for the parts that an index selected.
    fn parse_excerpt<'scope, R>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        excerpt: &'scope Excerpt,
        consumer: Consumer,
        account: &mut Account,
        body: impl FnOnce(&mut MemberStream<'_>, &mut Account) -> Result<R, E>,
    ) -> Result<(R, u64, StreamFormat), E> {
        let (supply, gaps, format) = match &excerpt.chunks {
            None => {
                (RingSupply { first: None, consumer }, self.gaps_of_plain(), StreamFormat::Plain)
            }
            Some((coding, chunks)) => {
                let supply = self.supply_chunks(scope, *coding, chunks, consumer)?;
                (supply, self.archive_gaps.clone(), StreamFormat::Compressed(*coding))
            }
        };
        let supply = ExcerptSupply::new(excerpt, supply, self.settings.check.clone());
        let mut stream = self.stream(Box::new(supply), gaps).begin_inside();
        let result = body(&mut stream, account)?;
        self.stop.store(true, Ordering::Release);
        stream.drain(account)?;
        Ok((result, stream.passed_bytes(), format))
    }

    /// A ring of half the memory: archives known to be plain need one ring only, and give it all of
    /// it.
    fn ring(&self, block_bytes: usize) -> Result<(Producer, Consumer), ReadFailure> {
        let rings = if self.plain_file || self.plain_set { 1 } else { 2 };
        let blocks = (self.settings.ring_bytes / block_bytes / rings).max(RING_BLOCKS_MIN);
        let options = RingOptions { block_bytes, blocks, consumers: 1 };
        let (producer, mut consumers) = ring(options, self.cancel.clone())
            .map_err(|source| ReadFailure::SetUp { what: "ring", source })?;
        self.ring_bytes.fetch_add(producer.capacity_bytes(), Ordering::Relaxed);
        Ok((producer, consumers.pop().expect("a ring with one consumer")))
    }

    fn read_source(
        &self,
        input: Input,
        producer: Producer,
        account: &mut Account,
    ) -> Result<(), ReadFailure> {
        let failed = |source| ReadFailure::Read { name: self.name.clone(), source };
        let source = match input {
            Input::File(source) => source,
            Input::Tape(tape) => return self.read_tape(tape, producer, account),
        };
        match source.length_bytes {
            Some(length_bytes) => {
                let ranges = match self.settings.excerpt {
                    Some(excerpt) => excerpt.source.clone(),
                    None => std::iter::once(StoredOffset::range(0..length_bytes)).collect(),
                };
                let past_cache =
                    PastCache::of_source(&source, &ranges, length_bytes, self.settings.way);
                let file = past_cache.file();
                let depth =
                    if past_cache.is_on() { DIRECT_READS_IN_FLIGHT } else { READS_IN_FLIGHT };
                let mut in_flight = self
                    .choice
                    .open_reads(depth, &file)
                    .map_err(|source| ReadFailure::SetUp { what: "engine", source })?;
                let reader = SourceReader {
                    file: &file,
                    past_cache,
                    ranges,
                    in_flight: &mut in_flight,
                    stop: &self.stop,
                    gaps: &self.source_gaps,
                    bad_steps: 0,
                };
                let past_cache = reader.read(producer, account).map_err(failed)?;
                self.past_cache.store(past_cache, Ordering::Relaxed);
            }
            None => {
                read_stream(&source.file, producer, account, self.cancel).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn read_tape(
        &self,
        tape: OpenTape,
        producer: Producer,
        account: &mut Account,
    ) -> Result<(), ReadFailure> {
        let shared =
            TapeShared { gaps: &self.source_gaps, stop: &self.stop, index: &self.tape_index };
        let ranges = self.settings.excerpt.map(|excerpt| &*excerpt.source);
        let (end, result) = tape.read(ranges, producer, &shared, account);
        *lock(&self.tape_end) = Some(end);
        result.map_err(|failure| match failure {
            TapeReadFailure::Stopped(stopped) => {
                let source = ReadError::Stopped(stopped);
                ReadFailure::Read { name: self.name.clone(), source }
            }
            failure => failure.into(),
        })
    }

    /// The `decompress` stage: this thread, which cuts, and workers.
    fn decompress(
        &self,
        coding: Coding,
        producer: Producer,
        account: &mut Account,
        cut: impl FnOnce(&Decompress, &mut Account) -> Result<(), Stopped>,
    ) -> Result<(), E> {
        let workers = self.settings.threads.map_or_else(cores, NonZero::get);
        let (gaps, stage) = (self.archive_gaps.clone(), Arc::clone(&self.decompress));
        let shared = Decompress::new(coding, producer, gaps, stage, workers, self.cancel);
        self.crew.scope(self.decompress.kind(), |scope| {
            for _ in 0..workers {
                let work = |account: &mut Account| Ok(shared.work(account)?);
                self.crew.spawn(scope, &self.decompress, work)?;
            }
            cut(&shared, account)?;
            shared.no_more_tasks();
            Ok(())
        })?;
        // A worker that failed leaves the stream without an end, so that it is not taken as
        // complete.
        self.cancel.check()?;
        // The archive is intact: it is read again in another way, from the start.
        if let Some((window_bytes, limit_bytes)) = shared.refused_window() {
            let name = self.name.clone();
            return Err(ReadFailure::Window { name, window_bytes, limit_bytes }.into());
        }
        self.trailing_bytes.store(shared.trailing_bytes(), Ordering::Relaxed);
        *lock(&self.outside) = shared.outside();
        *lock(&self.first_loss) = shared.first_loss();
        shared.finish();
        Ok(())
    }

    fn summary(&self, archive_bytes: u64, format: StreamFormat) -> ReadSummary {
        let mut stages = vec![self.read.report()];
        let compression = match format {
            StreamFormat::Compressed(coding) => {
                stages.push(self.decompress.report());
                match coding {
                    Coding::Zstd => "zstd",
                    Coding::Gzip => "gzip",
                }
            }
            _ => "none",
        };
        ReadSummary {
            endpoint: self.endpoint,
            engine: self.choice.name(),
            source_bytes: self.read.bytes(),
            archive_bytes,
            compression,
            ring_bytes: self.ring_bytes.load(Ordering::Relaxed),
            trailing_bytes: self.trailing_bytes.load(Ordering::Relaxed),
            past_cache: self.past_cache.load(Ordering::Relaxed),
            outside: *lock(&self.outside),
            stages,
            tape: lock(&self.tape_end).take(),
            lost: match format {
                StreamFormat::Compressed(_) => self.archive_gaps.remembered(),
                _ => self.gaps_of_plain().remembered(),
            },
        }
    }
}
