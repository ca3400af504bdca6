//! Members from the stream of blocks, in whatever state the archive is.
//!
//! The decoder knows what a unit means; this module knows where it is, passes the content on as
//! leases, and resynchronises after damage: leading garbage, headers with a wrong checksum, and
//! gaps are reported, and reading continues at the next header, at any alignment. After the end of
//! an archive there may be another one (concatenation), the index of the set, or unrelated bytes.
//!
//! A header inside the content of a lost member (an archive in the archive) cannot be distinguished
//! from a header of the archive itself. Every tar reader has that limit, so after damage the
//! members that follow are passed on, after the report of the damage.

mod index_watch;
mod search;

use std::collections::VecDeque;
use std::sync::Arc;

use archive::decode::{DecodeLimits, Decoder, Event, Note, Skipped};
use archive::header::{self, UNIT_BYTES};
use archive::index;
use archive::malformed::Malformed;
use archive::member::Member;
use archive::stream::{Archive, ArchiveOffset};
use flow::account::Account;
use flow::cancel::Stopped;

use super::block_check::KeptChecksums;
use super::cursor::{Cursor, NextUnit, Slice};
use super::damage::{Damage, DamageKind, InMember};
use super::landmarks::Landmarks;
use archive::index::{begins_index, names_index};
use flow::gaps::Gap;
use index_watch::IndexWatch;
pub(crate) use index_watch::Promise;

/// Longest garbage before the first header that is searched.
const LEADING_GARBAGE_BYTES_MAX: u64 = 1 << 30;

/// A member and its position. Its content follows through [`MemberStream::next_piece`].
#[derive(Debug)]
pub(crate) struct Found {
    pub member: Box<Member>,
    pub notes: Vec<Note>,
    pub header_offset_bytes: ArchiveOffset,
    pub content_offset_bytes: ArchiveOffset,
    /// Stored bytes: the data runs only, if the file is sparse.
    pub stored_bytes: u64,
}

/// The next item of an archive.
#[derive(Debug)]
pub(crate) enum Item {
    /// An object.
    Member(Found),
    /// A section of the index; its content follows like that of a member.
    IndexSection { path: Vec<u8> },
    /// Damage. It belongs to the previous member if its content was not read to the end.
    Damage(Damage),
    /// Another archive starts after the end of the previous one.
    NextArchive { offset_bytes: ArchiveOffset },
    /// Something that is reported but not extracted.
    Passed { what: String },
    /// The end of a segment of a set on tape: the zeros that follow may be more than the ring
    /// holds, so no blocks of it may be kept now.
    EndOfSegment,
}

/// A piece of content.
#[derive(Debug)]
pub(crate) enum ContentPiece {
    /// The next bytes.
    Data(Slice),
    /// This many next bytes are missing.
    Missing { bytes: u64 },
}

/// What may follow the end of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterEnd {
    /// Anything: other archives and the index.
    Anything,
    /// The index of this archive only: other data after it on a device are older.
    IndexOnly,
    /// The next segment of the same set, or its index, whatever it looks like.
    Segments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the first header.
    Start,
    /// Between members.
    Inside,
    /// After an end-of-archive mark.
    AfterEnd,
    /// Nothing follows.
    Done,
}

/// The members of an archive.
pub(crate) struct MemberStream<'a> {
    cursor: Cursor<'a>,
    decoder: Decoder,
    make_decoder: fn() -> Decoder,
    after_end: AfterEnd,
    place: Place,
    watch: IndexWatch,
    /// Keeps checksums for an index that comes later.
    kept: Option<Arc<KeptChecksums>>,
    content_left_bytes: u64,
    padding_left_bytes: u64,
    /// Path of the current member.
    path: Vec<u8>,
    header_start_bytes: Option<ArchiveOffset>,
    /// Expected headers, if there is an index.
    landmarks: Option<Landmarks<'a>>,
    waiting: VecDeque<Item>,
    saw_header: bool,
    saw_end: bool,
    saw_member: bool,
    is_cut_in_header: bool,
    /// A member came, and neither damage nor an end mark after it.
    in_order: bool,
}

impl<'a> MemberStream<'a> {
    pub fn new(cursor: Cursor<'a>, after_end: AfterEnd) -> MemberStream<'a> {
        let make_decoder: fn() -> Decoder = || Decoder::new(DecodeLimits::default());
        MemberStream {
            cursor,
            decoder: make_decoder(),
            make_decoder,
            after_end,
            place: Place::Start,
            watch: IndexWatch::new(Promise::None { zeros_bytes_max: u64::MAX }),
            kept: None,
            content_left_bytes: 0,
            padding_left_bytes: 0,
            path: Vec::new(),
            header_start_bytes: None,
            landmarks: None,
            waiting: VecDeque::new(),
            saw_header: false,
            saw_end: false,
            saw_member: false,
            is_cut_in_header: false,
            in_order: false,
        }
    }

    /// Uses an index of the archive to resynchronise after damage.
    pub fn with_landmarks(mut self, landmarks: Option<Landmarks<'a>>) -> MemberStream<'a> {
        self.landmarks = landmarks;
        self
    }

    /// Skips the check that this is an archive, since its index says so.
    pub fn begin_inside(mut self) -> MemberStream<'a> {
        self.place = Place::Inside;
        // Nothing is read after the last range, and the index led here.
        self.watch = IndexWatch::new(Promise::None { zeros_bytes_max: u64::MAX });
        self
    }

    /// Sets what must follow the archive, if that is known in advance.
    pub fn with_promise(mut self, promise: Promise) -> MemberStream<'a> {
        self.watch = IndexWatch::new(promise);
        self
    }

    /// Reports where archives begin and end to the holder of their checksums.
    pub fn with_kept(mut self, kept: Option<Arc<KeptChecksums>>) -> MemberStream<'a> {
        self.kept = kept;
        self
    }

    /// Uses decoders made by `make_decoder` from here on.
    pub fn with_decoder(mut self, make_decoder: fn() -> Decoder) -> MemberStream<'a> {
        self.decoder = make_decoder();
        self.make_decoder = make_decoder;
        self
    }

    /// Whether any header proves that the source is a tar archive.
    pub fn is_archive(&self) -> bool {
        self.saw_header || self.saw_end
    }

    /// Whether the source ends inside a header.
    pub fn is_cut_in_header(&self) -> bool {
        self.is_cut_in_header
    }

    /// Offset of the next byte of the archive.
    pub fn position_bytes(&self) -> ArchiveOffset {
        self.cursor.position_bytes()
    }

    /// Bytes of the archive so far, without jumps.
    pub fn passed_bytes(&self) -> u64 {
        self.cursor.passed_bytes()
    }

    /// Whether the next step would wait for the source.
    pub fn would_wait(&self) -> bool {
        self.cursor.would_wait()
    }

    /// Passes the rest.
    pub fn drain(&mut self, account: &mut Account) -> Result<(), Stopped> {
        self.place = Place::Done;
        self.cursor.drain(account)
    }

    /// The next item; unread content is skipped. `None` at the end.
    pub fn next(&mut self, account: &mut Account) -> Result<Option<Item>, Stopped> {
        self.pass_over_content(account)?;
        loop {
            if let Some(item) = self.waiting.pop_front() {
                return Ok(Some(item));
            }
            if self.place == Place::Done {
                self.conclude();
                return Ok(self.waiting.pop_front());
            }
            self.pass_over_padding(account)?;
            self.step(account)?;
            if self.waiting.is_empty() {
                // Content of an unreported item is skipped.
                self.pass_over_content(account)?;
            }
        }
    }

    /// The next piece of the content of the member (or section) last returned; `None` at its end.
    pub fn next_piece(&mut self, account: &mut Account) -> Result<Option<ContentPiece>, Stopped> {
        if self.content_left_bytes == 0 {
            return Ok(None);
        }
        let expected_bytes = self.cursor.position_bytes();
        let here = self.cursor.rest(account)?.len() as u64;
        let here = here.min(self.content_left_bytes);
        let position_bytes = self.cursor.position_bytes();
        if position_bytes != expected_bytes {
            // Jumps happen only at the ends of members.
            let bytes = self.content_left_bytes;
            let why = "its header is not as long as the index says".to_owned();
            self.report(expected_bytes, bytes, DamageKind::Lost { why }, InMember::Yes);
            return Ok(Some(self.cut_content()));
        }
        if let Some(gap) = self.cursor.gap_within(here).cloned() {
            let before_bytes = gap.start_bytes.saturating_since(position_bytes);
            if before_bytes > 0 {
                return Ok(Some(self.take_data(before_bytes, account)?));
            }
            return self.lose_content(&gap, account).map(Some);
        }
        if here == 0 {
            self.report(position_bytes, 0, DamageKind::Truncated, InMember::Yes);
            self.place = Place::Done;
            return Ok(Some(self.cut_content()));
        }
        Ok(Some(self.take_data(here, account)?))
    }

    /// The content of a small member, to its end or to the first missing bytes, whose number is
    /// returned; 0 if it is complete. `before_waiting` passes on what the caller holds back, which
    /// would keep blocks of the ring.
    pub fn collect(
        &mut self,
        account: &mut Account,
        mut before_waiting: impl FnMut(&mut Account) -> Result<(), Stopped>,
    ) -> Result<(Vec<Slice>, u64), Stopped> {
        let mut content = Vec::new();
        while self.content_left_bytes > 0 {
            if self.would_wait() {
                before_waiting(account)?;
            }
            match self.next_piece(account)? {
                Some(ContentPiece::Data(slice)) => content.push(slice),
                Some(ContentPiece::Missing { bytes }) => return Ok((content, bytes)),
                None => break,
            }
        }
        Ok((content, 0))
    }

    fn cut_content(&mut self) -> ContentPiece {
        self.padding_left_bytes = 0;
        ContentPiece::Missing { bytes: std::mem::take(&mut self.content_left_bytes) }
    }

    fn take_data(&mut self, bytes: u64, account: &mut Account) -> Result<ContentPiece, Stopped> {
        let slice = self.cursor.take(bytes, account)?;
        self.content_left_bytes -= slice.len() as u64;
        if self.watch.inside {
            self.watch.see(&slice);
        }
        Ok(ContentPiece::Data(slice))
    }

    fn lose_content(
        &mut self,
        gap: &Gap<Archive>,
        account: &mut Account,
    ) -> Result<ContentPiece, Stopped> {
        let kind = DamageKind::Lost { why: gap.why.clone() };
        if gap.length_bytes == 0 {
            self.landmarks = None;
            // A seam: how much is missing is not known.
            return Ok(self.cut_content());
        }
        let position_bytes = self.cursor.position_bytes();
        let bytes = (gap.end_bytes() - position_bytes).min(self.content_left_bytes);
        self.report(position_bytes, bytes, kind, InMember::Yes);
        self.cursor.pass_over(bytes, account)?;
        self.cursor.leave_gap();
        self.content_left_bytes -= bytes;
        Ok(ContentPiece::Missing { bytes })
    }

    fn pass_over_content(&mut self, account: &mut Account) -> Result<(), Stopped> {
        while self.content_left_bytes > 0 {
            self.content_left_bytes -= self.cursor.jump(self.content_left_bytes);
            self.next_piece(account)?;
        }
        Ok(())
    }

    fn report(&mut self, at: ArchiveOffset, length: u64, kind: DamageKind, in_member: InMember) {
        let mut damage = Damage::new(at, length, kind);
        if in_member == InMember::Yes {
            damage.path.clone_from(&self.path);
        }
        self.waiting.push_back(Item::Damage(damage));
    }

    fn pass_over_padding(&mut self, account: &mut Account) -> Result<(), Stopped> {
        let mut left_bytes = std::mem::take(&mut self.padding_left_bytes);
        if !self.watch.inside {
            self.cursor.pass_over(left_bytes, account)?;
            return Ok(());
        }
        // No checksum covers the padding of the index, but its value is known.
        let mut zero = true;
        while left_bytes > 0 {
            let slice = self.cursor.take(left_bytes, account)?;
            if slice.is_empty() {
                break;
            }
            left_bytes -= slice.len() as u64;
            self.watch.see(&slice);
            zero &= slice.iter().all(|byte| *byte == 0);
        }
        if !zero {
            let why = "its padding is not zero".to_owned();
            let at = self.cursor.position_bytes();
            self.report(at, 0, DamageKind::Index { why }, InMember::No);
        }
        Ok(())
    }

    /// Reads one unit and acts on it.
    fn step(&mut self, account: &mut Account) -> Result<(), Stopped> {
        let unit_start_bytes = self.cursor.position_bytes();
        let unit = match self.cursor.next_unit(account)? {
            NextUnit::Unit(unit) => unit,
            NextUnit::Gap(gap) => return self.lose_header(gap, account),
            NextUnit::End(left) => {
                self.saw_header |= self.place == Place::Start && header::may_begin_header(&left);
                self.end_of_stream(left.len());
                return Ok(());
            }
        };
        let zero = unit.iter().all(|byte| *byte == 0);
        if self.place == Place::AfterEnd {
            if zero {
                self.watch.zero_unit();
                return Ok(());
            }
            if self.after_end == AfterEnd::IndexOnly && !begins_index(&unit) {
                self.place = Place::Done;
                return Ok(());
            }
        }
        if self.header_start_bytes.is_none() && self.is_leftover(&unit) {
            self.pass_over_leftover(&unit, unit_start_bytes);
            return Ok(());
        }
        let start_bytes = *self.header_start_bytes.get_or_insert(unit_start_bytes);
        self.watch_unit(&unit, unit_start_bytes, start_bytes);
        match self.decoder.push(&unit) {
            Ok(Event::EndOfArchive) if self.is_member_expected(start_bytes) => {
                let why = "the index has members there";
                return self.resynchronise(start_bytes, why, account);
            }
            Ok(Event::More) => {
                self.enter_archive(start_bytes, &unit);
                return Ok(());
            }
            Ok(Event::NotAHeader { why }) => {
                self.header_start_bytes = None;
                return self.not_a_header(unit, why, account);
            }
            Ok(event) => {
                self.enter_archive(start_bytes, &unit);
                self.take_event(event, start_bytes);
            }
            Err(error) => {
                self.enter_archive(start_bytes, &unit);
                let kind = DamageKind::Header { why: error.to_string() };
                self.report(start_bytes, 0, kind, InMember::No);
            }
        }
        self.header_start_bytes = None;
        Ok(())
    }

    /// A valid header: this is an archive.
    fn enter_archive(&mut self, offset_bytes: ArchiveOffset, unit: &header::Unit) {
        let is_next = self.place == Place::AfterEnd && self.after_end != AfterEnd::Segments;
        if is_next && !begins_index(unit) {
            self.begin_next(offset_bytes);
        }
        if unit[0] != 0 {
            self.saw_header = true;
        }
        self.place = Place::Inside;
    }

    fn take_event(&mut self, event: Event, header_offset_bytes: ArchiveOffset) {
        let content_offset_bytes = self.cursor.position_bytes();
        match event {
            Event::Member { member, stored_bytes, notes } => {
                self.expect_content(&member.path, stored_bytes);
                if self.watch.inside && !self.watch.take_member(&member.path) {
                    let path = String::from_utf8_lossy(&member.path);
                    let why =
                        format!("{path} is not the member expected at byte {header_offset_bytes}");
                    self.report(header_offset_bytes, 0, DamageKind::Index { why }, InMember::No);
                }
                self.waiting.push_back(if self.watch.inside {
                    Item::IndexSection { path: member.path }
                } else {
                    (self.saw_member, self.in_order) = (true, true);
                    Item::Member(Found {
                        member,
                        notes,
                        header_offset_bytes,
                        content_offset_bytes,
                        stored_bytes,
                    })
                });
            }
            Event::GlobalHeader { records } => {
                let versions = self.watch_comments(&records);
                if let Some(version) = versions
                    && version != u32::from(index::INDEX_VERSION)
                {
                    // There is no earlier one.
                    let kind = DamageKind::Later { version: Some(version) };
                    self.report(header_offset_bytes, 0, kind, InMember::No);
                }
            }
            Event::Skip { stored_bytes, why } => {
                self.pass_over_skipped(stored_bytes, why, header_offset_bytes);
            }
            Event::EndOfArchive => {
                self.place = Place::AfterEnd;
                self.saw_end = true;
                if self.after_end == AfterEnd::Segments {
                    self.waiting.push_back(Item::EndOfSegment);
                }
                self.in_order = false;
                if self.watch.inside {
                    self.end_index(header_offset_bytes);
                } else {
                    self.watch.end_of_archive(header_offset_bytes - UNIT_BYTES as u64);
                }
            }
            Event::More | Event::ZeroUnit | Event::NotAHeader { .. } => {}
        }
    }

    fn expect_content(&mut self, path: &[u8], stored_bytes: u64) {
        self.path.clear();
        self.path.extend_from_slice(path);
        self.content_left_bytes = stored_bytes;
        self.padding_left_bytes = header::padding_bytes(stored_bytes);
    }

    fn pass_over_skipped(&mut self, stored_bytes: u64, why: Skipped, offset_bytes: ArchiveOffset) {
        let what = match why {
            Skipped::VolumeLabel(label) => {
                format!("volume label {}", String::from_utf8_lossy(&label))
            }
            Skipped::Continuation { member, .. } => {
                self.saw_member = true;
                self.expect_content(&member.path, stored_bytes);
                self.report(offset_bytes, stored_bytes, DamageKind::Continuation, InMember::Yes);
                return;
            }
            Skipped::SolarisAcl => "ACLs in Solaris format are not restored".to_owned(),
            Skipped::OldNames => "a list of old names (GNU) is ignored".to_owned(),
            Skipped::EmptyPath => "a member without a name".to_owned(),
        };
        self.expect_content(b"", stored_bytes);
        self.waiting.push_back(Item::Passed { what });
    }

    fn not_a_header(
        &mut self,
        unit: header::Unit,
        why: Malformed,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        let is_over = self.place == Place::AfterEnd && self.after_end != AfterEnd::Segments;
        if is_over && self.saw_header {
            self.pass_over_trailing(&unit, account)?;
            self.place = Place::Done;
            return Ok(());
        }
        // No header starts at this unit; one may start inside it.
        self.cursor.unread(unit[1..].to_vec());
        let mut start_bytes = self.cursor.position_bytes() - 1;
        if !self.saw_header {
            // Zeros alone, as before an image of a disk, are no archive yet.
            self.place = Place::Start;
            start_bytes = ArchiveOffset::START;
        }
        self.resynchronise(start_bytes, &why.to_string(), account)
    }

    /// Goes to the end of unrelated data after an archive. An index with a damaged header is
    /// recognised by the names of its sections.
    fn pass_over_trailing(
        &mut self,
        unit: &header::Unit,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        let offset_bytes = self.cursor.position_bytes() - UNIT_BYTES as u64;
        let mut length_bytes = UNIT_BYTES as u64;
        let mut holds_index = names_index(unit);
        loop {
            let rest = self.cursor.rest(account)?;
            if rest.is_empty() {
                break;
            }
            let here = rest.len();
            holds_index |= names_index(rest);
            self.cursor.advance(here);
            length_bytes += here as u64;
        }
        if holds_index {
            let why = format!("no header where it starts, at byte {offset_bytes}");
            self.report(offset_bytes, length_bytes, DamageKind::Index { why }, InMember::No);
        } else {
            self.report(offset_bytes, length_bytes, DamageKind::Trailing, InMember::No);
        }
        Ok(())
    }

    /// A gap in place of a header, or one in padding, which does no harm.
    fn lose_header(&mut self, gap: Gap<Archive>, account: &mut Account) -> Result<(), Stopped> {
        if gap.length_bytes == 0 {
            self.landmarks = None;
        }
        let kind = DamageKind::Lost { why: gap.why.clone() };
        let position_bytes = self.cursor.position_bytes();
        let harmless = gap.length_bytes > 0 && gap.end_bytes() <= position_bytes;
        let start_bytes = gap.start_bytes.max(position_bytes);
        let length_bytes = gap.end_bytes().saturating_since(start_bytes);
        self.report(start_bytes, length_bytes, kind, InMember::No);
        self.cursor.pass_over(gap.end_bytes().saturating_since(position_bytes), account)?;
        self.cursor.leave_gap();
        if harmless || matches!(self.place, Place::AfterEnd | Place::Done) {
            return Ok(());
        }
        self.decoder = (self.make_decoder)();
        self.header_start_bytes = None;
        let from_bytes = self.cursor.position_bytes();
        self.resynchronise(from_bytes, "their header is missing", account)
    }

    fn end_of_stream(&mut self, left_bytes: usize) {
        let at = self.cursor.position_bytes();
        if self.place == Place::AfterEnd {
            if left_bytes > 0 {
                let start_bytes = at - left_bytes as u64;
                self.report(start_bytes, left_bytes as u64, DamageKind::Trailing, InMember::No);
            }
        } else if self.saw_header {
            let whole = left_bytes == 0 && self.decoder.finish().is_ok();
            let kind = if whole { DamageKind::NoEndMark } else { DamageKind::Truncated };
            self.is_cut_in_header = !whole;
            self.report(at, 0, kind, InMember::No);
        }
        self.place = Place::Done;
    }
}
