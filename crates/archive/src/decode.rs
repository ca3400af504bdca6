//! Decodes bytes to members: the caller feeds it header units in order and gets an event for each.
//!
//! It does no I/O and sees no content: after a member the caller consumes the stored bytes and
//! their padding itself, as fast as it likes, and continues with the next header unit. Extended
//! headers, long names and sparse maps are collected inside, within [`DecodeLimits`].
//!
//! It reads v7, ustar, pax, GNU, star and Solaris headers. For any bytes it returns an event or a
//! typed error and continues with the next unit: an archive is worth reading behind a damaged
//! place. Not here: joining the parts of a multi-volume member.

mod event;
mod fields;
mod overrides;

pub use event::{DecodeError, DecodeLimits, Event, GLOBAL_RECORD_BYTES, Note, Skipped};

use std::collections::BTreeMap;

use crate::acl::{NameLookup, NoNames};
use crate::header::{self, Layout, UNIT_BYTES, Unit};
use crate::malformed::Malformed;
use crate::member::{Extent, Member, MemberKind};
use crate::pax::Records;
use crate::sparse::{self, MapReader};
use overrides::{Overrides, SparseFormat};

/// Decodes a stream of header units; see the module's text.
pub struct Decoder {
    limits: DecodeLimits,
    names: Box<dyn NameLookup + Send>,
    state: State,
    pending: Pending,
    globals: Globals,
    /// From `GNU.volume.offset` and `GNU.volume.filename`: the next file is a continuation.
    volume: Option<Volume>,
    /// An extended header came before: this is a pax archive, and hard links may have content.
    pax: bool,
    zero_units: u8,
}

/// The records of global headers that change members, the latest of each keyword.
#[derive(Default)]
struct Globals {
    /// With the number of the record: if two different keywords set the same value, the later
    /// record counts.
    records: BTreeMap<Vec<u8>, (u64, Vec<u8>)>,
    bytes: u64,
    number: u64,
    /// The overrides of all records, computed for the first member that needs them.
    overrides: Option<(Overrides, Vec<Note>)>,
}

impl Globals {
    fn set(&mut self, keyword: &[u8], value: &[u8], limit_bytes: u64) -> Result<(), DecodeError> {
        let cost = |value: &[u8]| (keyword.len() + value.len()) as u64 + GLOBAL_RECORD_BYTES;
        let old = self.records.get(keyword).map_or(0, |(_, old)| cost(old));
        let bytes = self.bytes - old + cost(value);
        if bytes > limit_bytes {
            return Err(DecodeError::ExtendedTooLarge { bytes, limit_bytes });
        }
        self.bytes = bytes;
        self.number += 1;
        self.overrides = None;
        self.records.insert(keyword.to_vec(), (self.number, value.to_vec()));
        Ok(())
    }

    /// The initial overrides of the next member.
    fn overrides(
        &mut self,
        limits: &DecodeLimits,
        notes: &mut Vec<Note>,
    ) -> Result<Overrides, DecodeError> {
        if let Some((overrides, told)) = &self.overrides {
            notes.extend_from_slice(told);
            return Ok(overrides.clone());
        }
        let mut records: Vec<_> = self.records.iter().collect();
        records.sort_by_key(|(_, (number, _))| *number);
        let (mut overrides, mut told) = (Overrides::default(), Vec::new());
        for (keyword, (_, value)) in records {
            overrides.apply(keyword, value, limits, &mut told)?;
        }
        notes.extend_from_slice(&told);
        self.overrides = Some((overrides.clone(), told));
        Ok(overrides)
    }
}

/// The data of a continuation volume's global header.
#[derive(Default)]
struct Volume {
    offset_bytes: u64,
    path: Option<Vec<u8>>,
}

enum State {
    Header,
    Payload {
        what: Payload,
        left_bytes: u64,
        data: Vec<u8>,
    },
    /// Extension headers of old GNU and star sparse files.
    OldSparse(Box<PartialFile>),
    /// A map of format 1.0 at the front of the content.
    Map(Box<PartialFile>, MapReader),
    Discard {
        left_units: u64,
    },
}

/// A sparse file whose map is not complete yet.
struct PartialFile {
    member: Box<Member>,
    stored_bytes: u64,
    extents: Vec<Extent>,
    notes: Vec<Note>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Payload {
    Extended,
    Global,
    LongName,
    LongLink,
}

/// The data of earlier headers for the next member.
#[derive(Default)]
struct Pending {
    long_name: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
    overrides: Option<Overrides>,
    extended_bytes: u64,
    notes: Vec<Note>,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.long_name.is_none() && self.long_link.is_none() && self.extended_bytes == 0
    }
}

impl Decoder {
    /// A decoder at the start of an archive that leaves names in ACLs unresolved.
    #[must_use]
    pub fn new(limits: DecodeLimits) -> Self {
        Self::with_names(limits, Box::new(NoNames))
    }

    /// A decoder that looks up ids with `names` if an ACL has only names.
    #[must_use]
    pub fn with_names(limits: DecodeLimits, names: Box<dyn NameLookup + Send>) -> Self {
        Self {
            limits,
            names,
            state: State::Header,
            pending: Pending::default(),
            globals: Globals::default(),
            volume: None,
            pax: false,
            zero_units: 0,
        }
    }

    /// Takes the next unit.
    ///
    /// # Errors
    /// See [`DecodeError`]; the caller may still push the next unit.
    pub fn push(&mut self, unit: &Unit) -> Result<Event, DecodeError> {
        match std::mem::replace(&mut self.state, State::Header) {
            State::Header => self.push_header(unit),
            State::Payload { what, left_bytes, mut data } => {
                let taken = left_bytes.min(UNIT_BYTES as u64);
                data.extend_from_slice(&unit[..taken as usize]);
                let left_bytes = left_bytes - taken;
                if left_bytes == 0 {
                    return self.finish_payload(what, &data);
                }
                self.state = State::Payload { what, left_bytes, data };
                Ok(Event::More)
            }
            State::OldSparse(mut partial) => {
                let extended = fields::read_sparse_extension(unit, &mut partial.extents);
                self.advance_old_sparse(partial, extended)
            }
            State::Map(partial, map) => self.push_map(partial, map, unit),
            State::Discard { left_units } => {
                self.discard(left_units - 1);
                Ok(Event::More)
            }
        }
    }

    /// Call this at the end of the input, to check that the end is between members.
    ///
    /// # Errors
    /// `Truncated` inside a header, `Dangling` between an extended header and its member.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.state {
            State::Header if self.pending.is_empty() => Ok(()),
            State::Header => Err(DecodeError::Dangling),
            _ => Err(DecodeError::Truncated),
        }
    }

    fn discard(&mut self, left_units: u64) {
        self.state = if left_units == 0 { State::Header } else { State::Discard { left_units } };
    }

    /// Skips `bytes` of content of a failed header.
    fn discard_bytes(&mut self, bytes: u64) {
        self.discard(bytes.div_ceil(UNIT_BYTES as u64));
    }

    fn push_header(&mut self, unit: &Unit) -> Result<Event, DecodeError> {
        if unit[0] == 0 && unit.iter().all(|byte| *byte == 0) {
            return self.push_zero_unit();
        }
        self.zero_units = 0;
        if !header::checksum_holds(unit) {
            self.pending = Pending::default();
            return Ok(Event::NotAHeader { why: Malformed::HeaderChecksum });
        }
        let Some(size_bytes) = header::unsigned(&unit[header::SIZE]).filter(|s| size_is_sane(*s))
        else {
            self.pending = Pending::default();
            return Ok(Event::NotAHeader { why: Malformed::HeaderSize });
        };
        match unit[header::TYPEFLAG] {
            b'x' | b'X' => self.start_payload(Payload::Extended, size_bytes),
            b'g' => self.start_payload(Payload::Global, size_bytes),
            b'L' => self.start_payload(Payload::LongName, size_bytes),
            b'K' => self.start_payload(Payload::LongLink, size_bytes),
            b'V' => {
                let label = header::text(&unit[header::NAME]).to_vec();
                Ok(Event::Skip { stored_bytes: size_bytes, why: Skipped::VolumeLabel(label) })
            }
            b'A' if Layout::of(unit) != Layout::Gnu => {
                Ok(Event::Skip { stored_bytes: size_bytes, why: Skipped::SolarisAcl })
            }
            b'N' if Layout::of(unit) == Layout::Gnu => {
                Ok(Event::Skip { stored_bytes: size_bytes, why: Skipped::OldNames })
            }
            _ => self.push_member(unit, size_bytes),
        }
    }

    fn push_zero_unit(&mut self) -> Result<Event, DecodeError> {
        let dangling = !self.pending.is_empty();
        self.pending = Pending::default();
        self.zero_units += 1;
        if self.zero_units == 2 {
            self.zero_units = 0;
            self.globals = Globals::default();
            self.volume = None;
            self.pax = false;
            return Ok(Event::EndOfArchive);
        }
        if dangling { Err(DecodeError::Dangling) } else { Ok(Event::ZeroUnit) }
    }

    fn start_payload(&mut self, what: Payload, size_bytes: u64) -> Result<Event, DecodeError> {
        let (before, limit_bytes) = match what {
            Payload::Extended => (self.pending.extended_bytes, self.limits.extended_bytes_max),
            Payload::Global => (0, self.limits.extended_bytes_max),
            Payload::LongName | Payload::LongLink => (0, self.limits.long_name_bytes_max),
        };
        let bytes = size_bytes.saturating_add(before);
        if bytes > limit_bytes {
            self.lose_pending();
            self.discard_bytes(size_bytes);
            return Err(match what {
                Payload::Extended | Payload::Global => {
                    DecodeError::ExtendedTooLarge { bytes, limit_bytes }
                }
                _ => DecodeError::NameTooLong { bytes, limit_bytes },
            });
        }
        if size_bytes == 0 {
            return self.finish_payload(what, &[]);
        }
        // Grown as units arrive: the size in the header alone reserves nothing.
        self.state = State::Payload { what, left_bytes: size_bytes, data: Vec::new() };
        Ok(Event::More)
    }

    /// After an error in an extended header. The next member gets a note about it.
    fn lose_pending(&mut self) {
        self.pending = Pending { notes: vec![Note::ExtensionLost], ..Pending::default() };
    }

    fn finish_payload(&mut self, what: Payload, data: &[u8]) -> Result<Event, DecodeError> {
        match what {
            Payload::LongName => self.pending.long_name = Some(header::text(data).to_vec()),
            Payload::LongLink => self.pending.long_link = Some(header::text(data).to_vec()),
            Payload::Global => {
                self.pax = true;
                return self.finish_global(data);
            }
            Payload::Extended => {
                self.pax = true;
                if let Err(error) = self.apply_records(data) {
                    self.lose_pending();
                    return Err(error);
                }
                // At least one, so that a header without records still requires a member behind it.
                self.pending.extended_bytes += (data.len() as u64).max(1);
            }
        }
        Ok(Event::More)
    }

    fn finish_global(&mut self, data: &[u8]) -> Result<Event, DecodeError> {
        let records = Records::new(data).collect::<Result<Vec<_>, _>>()?;
        for (keyword, value) in records.iter().copied() {
            match keyword {
                b"GNU.volume.offset" => {
                    let offset_bytes = crate::pax::decimal(value)
                        .ok_or_else(|| DecodeError::Value { keyword: keyword.to_vec() })?;
                    self.volume.get_or_insert_default().offset_bytes = offset_bytes;
                }
                b"GNU.volume.filename" => {
                    self.volume.get_or_insert_default().path = Some(value.to_vec());
                }
                _ if Overrides::is_global(keyword) => {
                    // Refused here once, not at every member that it would change.
                    let mut notes = Vec::new();
                    Overrides::default().apply(keyword, value, &self.limits, &mut notes)?;
                    self.globals.set(keyword, value, self.limits.global_bytes_max)?;
                }
                _ => {}
            }
        }
        let owned = records.iter().map(|(keyword, value)| (keyword.to_vec(), value.to_vec()));
        Ok(Event::GlobalHeader { records: owned.collect() })
    }

    /// The overrides of the next member, which start from the global ones.
    fn overrides(&mut self) -> Result<&mut Overrides, DecodeError> {
        if self.pending.overrides.is_none() {
            let overrides = self.globals.overrides(&self.limits, &mut self.pending.notes)?;
            self.pending.overrides = Some(overrides);
        }
        Ok(self.pending.overrides.get_or_insert_default())
    }

    fn apply_records(&mut self, data: &[u8]) -> Result<(), DecodeError> {
        let limits = self.limits;
        let mut notes = Vec::new();
        let overrides = self.overrides()?;
        for record in Records::new(data) {
            let (keyword, value) = record?;
            overrides.apply(keyword, value, &limits, &mut notes)?;
        }
        self.pending.notes.append(&mut notes);
        Ok(())
    }

    fn push_member(&mut self, unit: &Unit, size_bytes: u64) -> Result<Event, DecodeError> {
        self.overrides()?;
        let Pending { long_name, long_link, overrides, mut notes, .. } =
            std::mem::take(&mut self.pending);
        let mut overrides = overrides.unwrap_or_default();
        let mut member = fields::member(unit, size_bytes, &mut notes);
        if let Some(path) = long_name {
            member.path = path;
        }
        if let (Some(link), MemberKind::SymbolicLink { target } | MemberKind::HardLink { target }) =
            (long_link, &mut member.kind)
        {
            *target = link;
        }
        let size_bytes = overrides.size_bytes.unwrap_or(size_bytes);
        overrides.apply_to(&mut member, &mut *self.names, &mut notes);
        fields::settle_path(&mut member, unit[header::TYPEFLAG]);
        let stored_bytes = self.stored_bytes(unit, &member.kind, size_bytes);
        member.size_bytes = if member.kind == MemberKind::File { stored_bytes } else { 0 };
        if member.path.is_empty() {
            return Ok(Event::Skip { stored_bytes, why: Skipped::EmptyPath });
        }
        if let Some(event) = self.continuation(unit, &mut member, stored_bytes) {
            return event;
        }
        let partial =
            PartialFile { member: Box::new(member), stored_bytes, extents: Vec::new(), notes };
        self.dispatch_member(unit, partial, overrides)
    }

    /// Bytes of content behind a header. For most kinds there are none, whatever the header says.
    fn stored_bytes(&self, unit: &Unit, kind: &MemberKind, size_bytes: u64) -> u64 {
        match (unit[header::TYPEFLAG], kind) {
            // A dump of the names in the directory (GNU incremental).
            (b'D', _) | (_, MemberKind::File) => size_bytes,
            // Before pax the size of a link was that of the file, which is not stored again. pax
            // allows content (POSIX.1-2017, pax, "ustar Header Block", typeflag 1).
            (_, MemberKind::HardLink { .. }) if self.pax && Layout::of(unit) != Layout::Gnu => {
                size_bytes
            }
            // A "file" whose name ends in a slash is a directory, but keeps its content.
            (b'0' | b'\0' | b'7', MemberKind::Directory) => size_bytes,
            _ => 0,
        }
    }

    /// The event for the rest of a file that began on another volume.
    fn continuation(
        &mut self,
        unit: &Unit,
        member: &mut Member,
        stored_bytes: u64,
    ) -> Option<Result<Event, DecodeError>> {
        let offset_bytes = if unit[header::TYPEFLAG] == b'M' {
            header::unsigned(&unit[header::GNU_OFFSET])
        } else if member.kind == MemberKind::File {
            let volume = self.volume.take()?;
            if let Some(path) = volume.path {
                member.path = path;
            }
            Some(volume.offset_bytes)
        } else {
            return None;
        };
        let total =
            offset_bytes.and_then(|offset| Some((offset, offset.checked_add(stored_bytes)?)));
        let Some((offset_bytes, total_bytes)) = total else {
            self.discard_bytes(stored_bytes);
            return Some(Err(DecodeError::Value { keyword: b"offset".to_vec() }));
        };
        let member = Box::new(member.clone());
        let why = Skipped::Continuation { member, offset_bytes, total_bytes };
        Some(Ok(Event::Skip { stored_bytes, why }))
    }

    /// Returns a member, or starts to read its sparse map.
    fn dispatch_member(
        &mut self,
        unit: &Unit,
        mut partial: PartialFile,
        mut overrides: Overrides,
    ) -> Result<Event, DecodeError> {
        let format = overrides.sparse_format();
        if partial.member.kind != MemberKind::File {
            return self.hand_out(partial);
        }
        match format {
            SparseFormat::None if unit[header::TYPEFLAG] == b'S' => {
                match fields::read_sparse_header(unit, &mut partial.extents) {
                    Some((size_bytes, extended)) => {
                        partial.member.size_bytes = overrides.real_size_bytes.unwrap_or(size_bytes);
                        self.advance_old_sparse(Box::new(partial), Some(extended))
                    }
                    None => self.fail_sparse(&partial, Malformed::MapNumber),
                }
            }
            SparseFormat::None => self.hand_out(partial),
            SparseFormat::Unknown { major, minor } => {
                self.fail_sparse(&partial, Malformed::MapVersion { major, minor })
            }
            SparseFormat::Records | SparseFormat::Map => {
                let Some(size_bytes) = overrides.real_size_bytes else {
                    return self.fail_sparse(&partial, Malformed::MapNoSize);
                };
                partial.member.size_bytes = size_bytes;
                if format == SparseFormat::Records {
                    partial.extents = std::mem::take(&mut overrides.extents);
                    return self.finish_sparse(partial);
                }
                // The entry that marks a final hole does not count as a run for the limit.
                let map = MapReader::new(self.limits.extents_max.saturating_add(1));
                if partial.stored_bytes == 0 {
                    return self.fail_sparse(&partial, Malformed::MapStored { stored_bytes: 0 });
                }
                self.state = State::Map(Box::new(partial), map);
                Ok(Event::More)
            }
        }
    }

    /// After a sparse header or extension of old GNU or star: `extended` is true if another one
    /// follows, `None` if it could not be read.
    fn advance_old_sparse(
        &mut self,
        partial: Box<PartialFile>,
        extended: Option<bool>,
    ) -> Result<Event, DecodeError> {
        let limit = self.limits.extents_max;
        match extended {
            None => self.fail_sparse(&partial, Malformed::MapNumber),
            Some(_) if partial.extents.len() > limit => {
                self.fail_sparse(&partial, Malformed::MapTooMany { limit })
            }
            Some(true) => {
                self.state = State::OldSparse(partial);
                Ok(Event::More)
            }
            Some(false) => self.finish_sparse(*partial),
        }
    }

    fn push_map(
        &mut self,
        mut partial: Box<PartialFile>,
        mut map: MapReader,
        unit: &Unit,
    ) -> Result<Event, DecodeError> {
        let done = map.push(unit);
        let used_bytes = map.units() * UNIT_BYTES as u64;
        let stored_bytes = partial.stored_bytes;
        // The padding of the content's last unit is not stored content, but that of the map is.
        let left_bytes = stored_bytes.checked_sub(used_bytes);
        match (done, left_bytes) {
            (Ok(true), Some(left_bytes)) => {
                partial.stored_bytes = left_bytes;
                partial.extents = map.into_extents();
                self.finish_sparse(*partial)
            }
            (Ok(false), Some(1..)) => {
                self.state = State::Map(partial, map);
                Ok(Event::More)
            }
            (done, left_bytes) => {
                partial.stored_bytes = left_bytes.unwrap_or(0);
                let source = match done {
                    Err(Malformed::MapTooMany { .. }) => {
                        Malformed::MapTooMany { limit: self.limits.extents_max }
                    }
                    Err(error) => error,
                    Ok(_) => Malformed::MapStored { stored_bytes },
                };
                self.fail_sparse(&partial, source)
            }
        }
    }

    fn finish_sparse(&mut self, mut partial: PartialFile) -> Result<Event, DecodeError> {
        let limit = self.limits.extents_max;
        let stored_bytes = partial.stored_bytes;
        partial.extents.retain(|extent| extent.length_bytes > 0);
        if partial.extents.len() > limit {
            return self.fail_sparse(&partial, Malformed::MapTooMany { limit });
        }
        match sparse::check_extents(&partial.extents, partial.member.size_bytes) {
            Ok(sum) if sum == stored_bytes => {
                partial.member.sparse = Some(std::mem::take(&mut partial.extents));
                self.hand_out(partial)
            }
            Ok(_) => self.fail_sparse(&partial, Malformed::MapStored { stored_bytes }),
            Err(source) => self.fail_sparse(&partial, source),
        }
    }

    fn hand_out(&mut self, partial: PartialFile) -> Result<Event, DecodeError> {
        let PartialFile { member, stored_bytes, notes, .. } = partial;
        Ok(Event::Member { member, stored_bytes, notes })
    }

    fn fail_sparse(
        &mut self,
        partial: &PartialFile,
        source: Malformed,
    ) -> Result<Event, DecodeError> {
        self.discard_bytes(partial.stored_bytes);
        Err(DecodeError::Sparse { path: partial.member.path.clone(), source })
    }
}

/// Whether a size can be rounded up to whole units and still be a file offset.
fn size_is_sane(size_bytes: u64) -> bool {
    size_bytes <= i64::MAX as u64 - UNIT_BYTES as u64
}
