//! The sink that writes a set: labels, blocks, filemarks, and from one volume to the next.
//!
//! Blocks of the stored stream arrive in order. Blocks that may be needed again (from the start of
//! a chunk whose end may not fit on the volume) stay on loan from the ring until the chunk is whole
//! on one medium. The writing thread makes every blocking call, one block a call; while the drive
//! streams, it gets no other command.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use archive::chunk::Compression;
use archive::index::ExtentRecord;
use archive::label::{Continuation, HostName, Label, LabelKind};
use archive::stream::StoredOffset;
use base::failures::lock;
use device::tape::{DriveCompression, Filemark, TapeWrite};
use flow::account::{Account, ThreadState};
use flow::monitor::{Level, Monitor, Notice, Pause};
use flow::restart::Restart;
use flow::ring::Block;
use flow::sink::Sink;
use model::tape::generation::Generation;

use super::TapeDestination;
use super::another::{Loaded, Wanted, another_volume, first_volume};
use super::early::{self, Cut, FullMedium};
use super::error::{Safe, TapeSetError};
use super::left::IndexCopy;
use super::passing::{Stream, start_of};
use super::plan::{SetIdentity, SetPlan};
use super::report::TapeReport;
use super::unfit::UsedMedium;
use super::volume::Volume;
use crate::change::ChangeError;
use crate::directory;
use crate::options::{self, Compressed, DrivePace, segment_bytes};
use crate::read::{LabelledFile, Spot};
use crate::segments::Segments;

/// Writes one set.
pub struct TapeSink<'a> {
    target: &'a TapeDestination,
    monitor: &'a dyn Monitor,
    plan: SetPlan,
    segments: Arc<Segments>,
    identity: SetIdentity,
    host: Option<HostName>,
    /// When the first label was written.
    started: Option<Instant>,
    volume: Option<Volume>,
    used: Vec<UsedMedium>,
    stream: Stream,
    /// Number of the current segment, or of the next one.
    segment: u32,
    /// Parts of that segment so far.
    parts: u32,
    part: Option<Part>,
    index_copy: IndexCopy,
    extents: Vec<ExtentRecord>,
    safe: Safe,
    /// The last medium that was full.
    full: Option<FullMedium>,
    /// Why there is no other medium; what comes from then on is dropped.
    ends_early: Option<TapeSetError>,
    /// The same for those who read ahead of the writer.
    is_ending: Arc<AtomicBool>,
    /// The drive has reported an error: what is not known to be on the medium may be lost.
    is_in_doubt: bool,
    report: TapeReport,
}

/// The part of a segment that is being written.
struct Part {
    stream_bytes: StoredOffset,
    label_bytes: u32,
    file_number: u32,
    label_block: Option<u64>,
}

impl<'a> TapeSink<'a> {
    /// Checks the medium in the drive and makes it ready for the set.
    ///
    /// # Errors
    /// When the medium may not be written to, the drive does not accept blocks of this size, or it
    /// is empty and nobody puts a medium in. Nothing was written then.
    pub fn begin(
        target: &'a TapeDestination,
        monitor: &'a dyn Monitor,
        plan: SetPlan,
    ) -> Result<TapeSink<'a>, TapeSetError> {
        let begun = Instant::now();
        let SetPlan { block_bytes, compression, .. } = plan;
        let device = target.drive.name().to_owned();
        let identity = plan.identity.map_or_else(outside_of_chains, Ok)?;
        let set = identity.set;
        let Loaded { mut volume, asked_seconds } = first_volume(target, monitor, &plan, set)?;
        let generation =
            volume.tape.status().ok().and_then(|status| Generation::of_density(status.density));
        // Makers stream at different speeds; without a known maker the table's speed counts.
        let product = volume.tape.inquiry().map(|names| names.product).unwrap_or_default();
        let generation = generation.map(|known| known.in_drive(&product));
        let pace = target.options.pace.or_else(|| generation.map(DrivePace::from));
        let segment_bytes = target
            .options
            .segment_bytes
            .unwrap_or_else(|| segment_bytes(pace, block_bytes, compression));
        let segments = Segments::new(segment_bytes, block_bytes, compression);
        let report = TapeReport {
            device,
            segment_bytes,
            set: archive::label::hex(&set),
            generation,
            block_bytes: block_bytes as u64,
            file_number: volume.file_number,
            ready_seconds: begun.elapsed().as_secs_f64() - asked_seconds,
            asked_seconds,
            label_seconds: volume.label_seconds,
            ..TapeReport::default()
        };
        Ok(TapeSink {
            target,
            monitor,
            plan,
            segments: Arc::new(segments),
            identity,
            host: HostName::new(rustix::system::uname().nodename().to_bytes()),
            started: None,
            used: Vec::new(),
            volume: Some(volume),
            stream: Stream::new(LabelKind::Data, compression),
            segment: 1,
            parts: 0,
            part: None,
            index_copy: IndexCopy::default(),
            extents: Vec::new(),
            safe: Safe { set, volumes: 1, ..Safe::default() },
            full: None,
            ends_early: None,
            is_ending: Arc::default(),
            is_in_doubt: false,
            report,
        })
    }

    /// Writes the held blocks to the medium, on as many volumes as needed.
    fn drain(&mut self, account: &mut Account) -> Result<(), TapeSetError> {
        while let Some((block, from)) = self.stream.next() {
            if self.ends_early.is_some() {
                self.stream.held.clear();
                return Ok(());
            }
            if self.part.is_none() {
                self.begin_part(account)?;
                continue;
            }
            let Some(volume) = &mut self.volume else {
                self.next_volume(account)?;
                continue;
            };
            debug_assert_eq!(
                from, 0,
                "behind a label the blocks of the ring are those of the tape"
            );
            match volume.write(&block)? {
                TapeWrite::Whole => volume.took_new |= self.stream.advance(&block),
                TapeWrite::EndOfMedium(_) => self.end_volume(LabelState::Whole, account)?,
            }
        }
        self.stream.let_go(&self.segments);
        Ok(())
    }

    /// Writes a label, and the rest of the block that it shares with the stream.
    fn begin_part(&mut self, account: &mut Account) -> Result<(), TapeSetError> {
        self.started.get_or_insert_with(Instant::now);
        let Some(volume) = &mut self.volume else { return self.next_volume(account) };
        let SetIdentity { set, begun_seconds, chain } = self.identity;
        let mut label = Label {
            set,
            kind: self.stream.kind,
            segment: self.segment,
            part: self.parts + 1,
            volume: volume.number,
            medium: volume.medium,
            stream_bytes: self.stream.position_bytes,
            block_bytes: self.plan.block_bytes as u32,
            length_bytes: 0,
            compression: self.plan.compression,
            previous: volume.previous,
            time_seconds: begun_seconds,
            host: self.host,
            medium_name: volume.name,
            chain,
        };
        let continuation = match &self.stream.members {
            Some(members) if self.parts > 0 => members.continuation(),
            _ => Continuation::None,
        };
        let directory = directory::has_directory(&label).then(|| volume.sets.directory());
        let mut bytes = label.encode_with(continuation, directory.as_deref())?;
        let label_bytes = bytes.len();
        if !label_bytes.is_multiple_of(self.plan.block_bytes)
            && let Some((block, from)) = self.stream.next()
        {
            bytes.extend_from_slice(&block[from..]);
        }
        if let Some(log) = &self.target.media.log {
            volume.tell_once(set, log.as_ref());
        }
        let part = Part {
            stream_bytes: self.stream.position_bytes,
            label_bytes: label_bytes as u32,
            file_number: volume.file_number,
            label_block: volume.object_number,
        };
        for (number, block) in bytes.chunks(self.plan.block_bytes).enumerate() {
            if let TapeWrite::EndOfMedium(_) = volume.write(block)? {
                let state = if number == 0 { LabelState::Absent } else { LabelState::Cut };
                return self.end_volume(state, account);
            }
        }
        self.parts += 1;
        let (file, absolute) = (part.file_number, part.label_block);
        volume.sets.has_label(LabelledFile { spot: Spot { file, block: 0, absolute }, label });
        self.part = Some(part);
        volume.holds_part = true;
        volume.took_new |= self.stream.advance(&bytes[label_bytes..]);
        Ok(())
    }

    /// Closes the current segment.
    fn close_segment(&mut self, filemark: Filemark) -> Result<(), TapeSetError> {
        let Some(volume) = &mut self.volume else { return Ok(()) };
        volume.write_filemark(filemark)?;
        volume.took_new = true;
        self.close_part();
        self.segment += 1;
        self.parts = 0;
        self.report.segments += 1;
        Ok(())
    }

    /// Records the location of the part that was just closed.
    fn close_part(&mut self) {
        let (Some(part), Some(volume)) = (self.part.take(), &self.volume) else { return };
        if self.stream.kind == LabelKind::Index {
            return;
        }
        self.extents.push(ExtentRecord {
            set: self.identity.set,
            segment: self.segment,
            part: self.parts,
            volume: volume.number,
            medium: volume.medium,
            stream_offset_bytes: part.stream_bytes,
            stream_bytes: self.stream.position_bytes - part.stream_bytes,
            label_block: part.label_block,
            label_bytes: part.label_bytes,
            file_number: part.file_number,
        });
    }

    /// The medium is full: closes its data, and changes the volume.
    fn end_volume(&mut self, label: LabelState, account: &mut Account) -> Result<(), TapeSetError> {
        let Some(volume) = &mut self.volume else { return self.next_volume(account) };
        match label {
            LabelState::Absent => volume.tape.synchronise()?,
            LabelState::Cut | LabelState::Whole => {
                volume.write_filemark(Filemark::Synchronising)?;
            }
        }
        let (number, is_too_small) = (volume.number, volume.from_beginning && !volume.took_new);
        let name = volume.name;
        let volume_number = volume.holds_part.then_some(number);
        self.used.push(UsedMedium { medium: volume.medium, volume: volume_number });
        self.close_part();
        self.safe.segments = self.segment - 1;
        if is_too_small {
            let needed = match self.stream.members {
                Some(_) => "a block",
                None => "a chunk of compressed data",
            };
            let device = self.target.drive.name().to_owned();
            return Err(TapeSetError::VolumeTooSmall { device, volume: number, needed });
        }
        self.stream.position_bytes = self.stream.restart_bytes(&self.segments);
        let named = name.map(|name| format!(" ({name})")).unwrap_or_default();
        let goes_on = format!("segment {} continues on the next", self.segment);
        let text = format!("volume {number}{named} is full, {goes_on}");
        self.tell(Level::Note, text);
        if let Some(volume) = &mut self.volume {
            volume.note_left(&self.target.memory);
            self.full = Some(FullMedium::of(volume));
        }
        self.close_volume();
        self.next_volume(account)
    }

    /// Changes to the next volume.
    fn next_volume(&mut self, account: &mut Account) -> Result<(), TapeSetError> {
        let started = Instant::now();
        self.monitor.pause(Some(Pause::Changing));
        let changed = account.during(ThreadState::Apart, || self.change_volume());
        self.monitor.pause(None);
        self.report.change_seconds += started.elapsed().as_secs_f64();
        match changed {
            Err(error) if self.can_end_early(&error) => {
                self.ends_early = Some(error);
                self.is_ending.store(true, Ordering::Release);
                Ok(())
            }
            changed => changed,
        }
    }

    /// Whether the set can be cut, where there is no other medium.
    fn can_end_early(&self, error: &TapeSetError) -> bool {
        let nobody = match error {
            TapeSetError::Change { source, .. } => !matches!(source, ChangeError::Stopped(_)),
            TapeSetError::NoVolume { .. } => true,
            _ => false,
        };
        nobody && self.stream.kind == LabelKind::Data && self.cut_for(0).is_some()
    }

    /// Where the set is cut, if it ends early, so that an index of so many bytes has room.
    pub fn cut_for(&self, index_bytes: u64) -> Option<Cut> {
        let medium = self.full.as_ref()?.medium;
        let end = self.extents.iter().map(ExtentRecord::stream_end_bytes).max()?;
        let compression = self.target.options.drive_compression;
        early::place(&self.extents, &medium, end, index_bytes, compression)
    }

    /// Bytes for which the medium has room, as it is, if nothing is compressed and there will be no
    /// other: nobody is there to change it. `None` where somebody may be, or the capacity is not
    /// known.
    pub fn room_bytes(&self) -> Option<u64> {
        if !lock(&self.target.changer).is_nobody() {
            return None;
        }
        let usual = || self.report.generation.map(|generation| generation.capacity_bytes);
        let capacity_bytes = self.target.options.capacity_bytes.or_else(usual)?;
        let written = self.volume.as_ref()?.object_number?;
        Some(capacity_bytes.saturating_sub(written.saturating_mul(self.plan.block_bytes as u64)))
    }

    /// Set when what follows will be dropped.
    pub fn is_ending(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_ending)
    }

    /// Why the set ends early, if it does. The caller cuts it, or gives it up with this error.
    pub fn ends_early(&mut self) -> Option<TapeSetError> {
        self.ends_early.take()
    }

    /// Cuts the set: the medium is ready for the index.
    ///
    /// # Errors
    /// When the medium is no longer in the drive, or the place cannot be reached. The set stays as
    /// it was then.
    pub fn cut(&mut self, cut: &Cut) -> Result<(), TapeSetError> {
        let Some(full) = &self.full else { return Ok(()) };
        let volume = early::reopen(self.target, &self.plan, self.identity.set, full, cut)?;
        self.extents.retain(|extent| extent.segment < cut.segment);
        self.report.segments = cut.segment - 1;
        (self.segment, self.parts, self.part) = (cut.segment, 0, None);
        self.safe.segments = cut.segment - 1;
        self.report.media.pop();
        self.volume = Some(volume);
        Ok(())
    }

    fn change_volume(&mut self) -> Result<(), TapeSetError> {
        let number = self.used.iter().filter_map(|used| used.volume).next_back().unwrap_or(0) + 1;
        let wanted = Wanted { set: self.identity.set, number, used: &self.used };
        let next = another_volume(self.target, self.monitor, &self.plan, &wanted, None)?;
        self.safe.volumes = number;
        self.volume = Some(next.volume);
        Ok(())
    }

    /// Closes the drive and keeps its counts.
    fn close_volume(&mut self) {
        let Some(mut volume) = self.volume.take() else { return };
        self.report.volumes = volume.number;
        if volume.holds_part {
            self.report.media.push(volume.named());
        }
        self.report.blocks += volume.blocks;
        self.report.filemarks += volume.filemarks;
        if let Some(write_ns) = volume.write_ns() {
            *self.report.drive_write_ns.get_or_insert(0) += write_ns;
        }
    }

    fn tell(&self, level: Level, text: String) {
        let object = self.target.drive.name().as_bytes().to_vec();
        self.monitor.notice(Notice { level, object, text });
    }

    fn take(&mut self, block: Block, account: &mut Account) -> Result<(), TapeSetError> {
        if self.ends_early.is_some() {
            return Ok(());
        }
        if self.stream.kind == LabelKind::Data && self.segments.take_end(start_of(&block)) {
            self.close_segment(Filemark::Immediate)?;
        }
        if self.stream.kind == LabelKind::Index {
            self.index_copy.append(&block);
        }
        self.stream.held.push_back(block);
        self.drain(account)
    }

    /// Ends the stream: closes its last segment.
    fn end_stream(&mut self, account: &mut Account) -> Result<(), TapeSetError> {
        self.stream.held.clear();
        if self.part.is_none() || self.ends_early.is_some() {
            return Ok(());
        }
        match self.stream.kind {
            LabelKind::Data => {
                let _ = self.segments.take_end(self.stream.position_bytes);
                self.close_segment(Filemark::Immediate)
            }
            LabelKind::Index => {
                let started = Instant::now();
                self.monitor.pause(Some(Pause::Flushing));
                account
                    .during(ThreadState::Apart, || self.close_segment(Filemark::Synchronising))?;
                self.monitor.pause(None);
                self.report.synchronise_seconds = started.elapsed().as_secs_f64();
                self.safe.segments = self.segment - 1;
                let seconds = self.started.map(|started| started.elapsed().as_secs_f64());
                self.report.seconds = seconds.unwrap_or_default();
                if let Some(volume) = &mut self.volume {
                    volume.note_left(&self.target.memory);
                }
                self.index_copy.keep(self.identity.set, &self.target.memory);
                self.close_volume();
                Ok(())
            }
        }
    }

    /// Where segments of the set end.
    pub fn segments(&self) -> Arc<Segments> {
        Arc::clone(&self.segments)
    }

    /// Ends the data; the index follows. Returns the locations of the parts.
    pub fn begin_index(&mut self) -> Vec<ExtentRecord> {
        self.stream = Stream::new(LabelKind::Index, self.plan.compression);
        self.index_copy = IndexCopy::begin(&self.target.memory);
        std::mem::take(&mut self.extents)
    }

    /// When the writer starts again after a ring of this many blocks ran empty.
    pub fn restart(&self, capacity_blocks: usize) -> Restart {
        let switched_off = self.target.options.drive_compression == Some(DriveCompression::Off);
        let compressed = if switched_off || self.plan.compression != Compression::None {
            Compressed::NotByDrive
        } else {
            Compressed::PerhapsByDrive
        };
        let block_bytes = self.plan.block_bytes;
        let usual = || self.report.generation.map(DrivePace::from);
        let pace = self.target.options.pace.or_else(usual);
        options::restart(pace, compressed, capacity_blocks, block_bytes)
    }

    /// The result, after the end of the index.
    pub fn into_report(mut self) -> TapeReport {
        self.close_volume();
        self.report
    }

    fn keep_in_mind(&mut self, error: &TapeSetError) {
        self.is_in_doubt |= matches!(error, TapeSetError::Tape(_));
    }

    /// Ends a set that was not completed: closes the data on the medium, and returns what of it is
    /// safe. After an error of the drive nothing more is written, see [`Volume::let_be`].
    pub fn abandon(mut self) -> Safe {
        if self.started.is_none() {
            self.safe.volumes = 0;
        }
        let Some(volume) = &mut self.volume else { return self.safe };
        if self.is_in_doubt {
            volume.let_be();
            return self.safe;
        }
        let closed = match self.part {
            Some(_) => volume.write_filemark(Filemark::Synchronising),
            None => volume.tape.synchronise(),
        };
        if closed.is_ok() {
            self.safe.segments = self.segment - 1;
        }
        self.safe
    }
}

/// The identity of a set that is of no chain.
fn outside_of_chains() -> Result<SetIdentity, TapeSetError> {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(SetIdentity { set: super::random_id()?, begun_seconds: time.as_secs(), chain: None })
}

/// How much of a label is on a full medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LabelState {
    /// Nothing: the medium ends with a filemark.
    Absent,
    /// Some of its blocks.
    Cut,
    Whole,
}

impl Sink for TapeSink<'_> {
    type Error = TapeSetError;

    fn write(&mut self, block: Block, account: &mut Account) -> Result<(), TapeSetError> {
        self.take(block, account).inspect_err(|error| self.keep_in_mind(error))
    }

    fn settle(&mut self) -> Result<(), TapeSetError> {
        Ok(())
    }

    fn finish(&mut self, account: &mut Account) -> Result<(), TapeSetError> {
        self.end_stream(account).inspect_err(|error| self.keep_in_mind(error))
    }
}
