//! Encodes members to bytes: everything of a tar archive except the content of the files.
//!
//! If every value fits, this writes a plain ustar header. Other values go into one pax extended
//! header before it, so that readers without pax still find a valid ustar archive. Nearly every
//! file has a sub-second modification time and therefore such a header, which makes this the hot
//! path of small files: one pass, and no allocation except for the growth of the output.
//!
//! The layout is drawn in `docs/format.md`. The caller adds the content, its padding and the
//! blocks.

use crate::acl;
use crate::header::{
    self, CHECKSUM, DEVICE_MAJOR, DEVICE_MINOR, GID, GROUP, LINKNAME, MAGIC, MAGIC_USTAR, MODE,
    MTIME, NAME, OCTAL_7_MAX, OCTAL_11_MAX, PREFIX, SIZE, TYPEFLAG, UID, UNIT_BYTES, USER, Unit,
};
use crate::malformed::Malformed;
use crate::member::{Member, MemberKind, Timestamp};
use crate::pax::{self, Record};
use crate::sparse;
use crate::xattr;

/// Most bytes of records in one extended header; also a decoder's default limit.
pub const EXTENDED_BYTES_MAX: u64 = 16 << 20;

/// Most bytes of extended records of a directory with a listing: libarchive 3.6 and Go refuse an
/// archive from 1 MiB on.
pub const LISTED_BYTES_MAX: u64 = 900_000;

/// Whether a directory's listing is in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    Written,
    /// It would take more than [`LISTED_BYTES_MAX`].
    TooLong,
}

/// Why a member cannot be put into an archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A path or link target is empty.
    #[error("the {what} is empty")]
    Empty {
        /// Which text.
        what: &'static str,
    },
    /// A NUL byte, at which tar ends the text.
    #[error("the {what} contains a NUL byte")]
    Nul {
        /// Which text.
        what: &'static str,
    },
    /// The keyword of a global record would end at its own equals sign.
    #[error("a keyword contains an equals sign")]
    Keyword,
    /// The path of a non-directory ends in a slash, which would make it a directory.
    #[error("the path ends in a slash but is not a directory")]
    TrailingSlash,
    /// A billion nanoseconds or more.
    #[error("invalid time: {nanoseconds} nanoseconds are a second or more")]
    Nanoseconds { nanoseconds: u32 },
    /// A time before the earliest second of 64 bits, which pax readers cannot take.
    #[error("the modification time is out of range")]
    Time,
    /// More bytes than tar can count.
    #[error("a size of {size_bytes} bytes is out of range")]
    Size { size_bytes: u64 },
    /// An ACL not in the kernel's form.
    #[error("ACL: {0}")]
    Acl(#[source] Malformed),
    /// A map that does not fit the file, or has too many runs.
    #[error("sparse file: {0}")]
    Sparse(#[source] Malformed),
    /// Names and attributes need more than [`EXTENDED_BYTES_MAX`].
    #[error("names and attributes too long: {bytes} bytes exceed the limit")]
    ExtendedTooLarge {
        /// Size of the extended header.
        bytes: u64,
    },
}

/// Appends everything before the content of `member`: extended header, ustar header, sparse map.
///
/// `Member::content_bytes` bytes of content follow, then [`header::padding_bytes`] NULs. `mode` is
/// cut to its low 12 bits. `size_bytes` and `sparse` of kinds other than `File` are ignored. On an
/// error `out` is unchanged.
///
/// # Errors
/// See [`EncodeError`]: each is a value that no reader could restore.
pub fn encode_member(member: &Member, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    encode_plan(&Plan::new(member)?, out)
}

/// Like [`encode_member`], for a directory with the names in it: GNU tar's `GNU.dumpdir` record, by
/// which `tar --listed-incremental=/dev/null -x` removes what is not among them. `listing` holds
/// for each name a letter (`Y` stored in this archive, `N` not, `D` a directory), the name and a
/// NUL, and one more NUL at its end. The names must be in the order of their bytes: GNU tar
/// searches them by bisection and removes what it does not find.
///
/// # Errors
/// As [`encode_member`].
pub fn encode_directory(
    member: &Member,
    listing: &[u8],
    out: &mut Vec<u8>,
) -> Result<Listing, EncodeError> {
    let mut plan = Plan::new(member)?;
    plan.listing = Some(listing);
    let mut records_bytes = 0;
    plan.visit_records(&mut |record| records_bytes += record.bytes() as u64);
    let listed = if records_bytes <= LISTED_BYTES_MAX {
        Listing::Written
    } else {
        plan.listing = None;
        Listing::TooLong
    };
    encode_plan(&plan, out).map(|()| listed)
}

fn encode_plan(plan: &Plan<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let member = plan.member;
    let start = out.len();
    out.reserve(3 * UNIT_BYTES);
    out.extend_from_slice(&TEMPLATE);
    let records = out.len();
    plan.visit_records(&mut |record| record.push(out));
    let records_bytes = out.len() - records;
    if records_bytes as u64 > EXTENDED_BYTES_MAX {
        out.truncate(start);
        return Err(EncodeError::ExtendedTooLarge { bytes: records_bytes as u64 });
    }
    if records_bytes == 0 {
        fill_header(plan, unit_at(out, start));
    } else {
        out.resize(records + records_bytes.next_multiple_of(UNIT_BYTES), 0);
        fill_extended_header(b'x', base_name(&member.path), records_bytes, unit_at(out, start));
        let at = out.len();
        out.extend_from_slice(&TEMPLATE);
        fill_header(plan, unit_at(out, at));
    }
    if let Some(extents) = plan.sparse() {
        sparse::push_map(extents, member.size_bytes, out);
    }
    Ok(())
}

/// Exact number of bytes that [`encode_member`] appends.
///
/// # Errors
/// As [`encode_member`].
pub fn encoded_bytes(member: &Member) -> Result<u64, EncodeError> {
    let plan = Plan::new(member)?;
    let mut records_bytes = 0;
    plan.visit_records(&mut |record| records_bytes += record.bytes() as u64);
    if records_bytes > EXTENDED_BYTES_MAX {
        return Err(EncodeError::ExtendedTooLarge { bytes: records_bytes });
    }
    let unit = UNIT_BYTES as u64;
    let extended = if records_bytes == 0 { 0 } else { unit + records_bytes.next_multiple_of(unit) };
    Ok(extended + unit + plan.map_bytes)
}

/// Appends the end-of-archive mark: two units of zeros.
pub fn encode_end_of_archive(out: &mut Vec<u8>) {
    out.resize(out.len() + 2 * UNIT_BYTES, 0);
}

/// Appends a pax global header with `records` in the order given; its name is for people.
///
/// # Errors
/// `Nul`, `Empty` or `Keyword` for a keyword that no reader could restore, `ExtendedTooLarge`.
pub fn encode_global_header(
    name: &str,
    records: &[Record<'_>],
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let mut bytes = 0;
    for (keyword, value) in records {
        check_text("keyword", keyword)?;
        if keyword.contains(&b'=') {
            return Err(EncodeError::Keyword);
        }
        bytes += pax::record_bytes(keyword.len(), value.len());
    }
    if bytes as u64 > EXTENDED_BYTES_MAX {
        return Err(EncodeError::ExtendedTooLarge { bytes: bytes as u64 });
    }
    let start = out.len();
    out.extend_from_slice(&TEMPLATE);
    fill_extended_header(b'g', name.as_bytes(), bytes, unit_at(out, start));
    for (keyword, value) in records {
        pax::push_record(keyword, value, out);
    }
    let end = start + UNIT_BYTES + bytes.next_multiple_of(UNIT_BYTES);
    out.resize(end, 0);
    Ok(())
}

/// Appends a header of type `V`: GNU tar's name of a volume, which readers skip.
pub(crate) fn encode_volume_name(name: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&TEMPLATE);
    let unit = unit_at(out, start);
    put_text(&mut unit[NAME], name);
    unit[TYPEFLAG] = b'V';
    put_checksum(unit);
}

/// A header with the fields that all headers share.
const TEMPLATE: Unit = {
    let mut unit = [0; UNIT_BYTES];
    let mut at = 0;
    while at < MAGIC_USTAR.len() {
        unit[MAGIC.start + at] = MAGIC_USTAR[at];
        at += 1;
    }
    let fields = [
        (MODE, 7),
        (UID, 7),
        (GID, 7),
        (SIZE, 11),
        (MTIME, 11),
        (DEVICE_MAJOR, 7),
        (DEVICE_MINOR, 7),
    ];
    let mut field = 0;
    while field < fields.len() {
        let mut digit = 0;
        while digit < fields[field].1 {
            unit[fields[field].0.start + digit] = b'0';
            digit += 1;
        }
        field += 1;
    }
    unit
};

fn unit_at(out: &mut [u8], at: usize) -> &mut Unit {
    (&mut out[at..at + UNIT_BYTES]).try_into().expect("a range of one unit")
}

/// Header fields for the path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placement {
    /// All of it fits the name field.
    Name,
    /// Prefix and name, split at the slash at this offset.
    Split(usize),
    /// A `path` record.
    Record,
    /// A `GNU.sparse.name` record.
    SparseName,
}

/// Decisions about one member, made once for header and records.
struct Plan<'a> {
    member: &'a Member,
    placement: Placement,
    /// Whether the path gets the slash of a directory.
    slash: bool,
    link: &'a [u8],
    map_bytes: u64,
    /// Content and map together: the header's size field.
    stored_bytes: u64,
    devices: (u64, u64),
    /// The names in a directory.
    listing: Option<&'a [u8]>,
}

impl<'a> Plan<'a> {
    fn new(member: &'a Member) -> Result<Self, EncodeError> {
        check_text("path", &member.path)?;
        check_nul("user name", &member.user)?;
        check_nul("group name", &member.group)?;
        let Timestamp { seconds, nanoseconds } = member.modified;
        if nanoseconds >= 1_000_000_000 {
            return Err(EncodeError::Nanoseconds { nanoseconds });
        }
        if seconds == i64::MIN {
            return Err(EncodeError::Time);
        }
        for binary in [&member.acl_access, &member.acl_default].into_iter().flatten() {
            acl::text_bytes(binary).map_err(EncodeError::Acl)?;
        }
        for (name, _) in &member.xattrs {
            check_text("attribute name", name)?;
        }
        let ends_in_slash = member.path.last() == Some(&b'/');
        if ends_in_slash && member.kind != MemberKind::Directory {
            return Err(EncodeError::TrailingSlash);
        }
        let slash = member.kind == MemberKind::Directory && !ends_in_slash;
        let link: &[u8] = match &member.kind {
            MemberKind::SymbolicLink { target } | MemberKind::HardLink { target } => {
                check_text("link target", target)?;
                target
            }
            _ => b"",
        };
        let mut plan = Self {
            member,
            placement: placement(&member.path, slash),
            slash,
            link,
            map_bytes: 0,
            stored_bytes: member.content_bytes(),
            devices: match member.kind {
                MemberKind::CharacterDevice { major, minor }
                | MemberKind::BlockDevice { major, minor } => (u64::from(major), u64::from(minor)),
                _ => (0, 0),
            },
            listing: None,
        };
        plan.check_sizes()?;
        Ok(plan)
    }

    /// The data runs of a sparse regular file.
    fn sparse(&self) -> Option<&'a [crate::member::Extent]> {
        match &self.member.kind {
            MemberKind::File => self.member.sparse.as_deref(),
            _ => None,
        }
    }

    fn check_sizes(&mut self) -> Result<(), EncodeError> {
        let size_bytes = self.member.size_bytes;
        // Readers keep sizes in signed 64 bits and round them up to whole units.
        if self.member.kind == MemberKind::File && size_bytes > i64::MAX as u64 - (1 << 32) {
            return Err(EncodeError::Size { size_bytes });
        }
        if let Some(extents) = self.sparse() {
            if extents.len() > sparse::EXTENTS_MAX {
                let error = Malformed::MapTooMany { limit: sparse::EXTENTS_MAX };
                return Err(EncodeError::Sparse(error));
            }
            self.stored_bytes =
                sparse::check_extents(extents, size_bytes).map_err(EncodeError::Sparse)?;
            sparse::check_whole_units(extents).map_err(EncodeError::Sparse)?;
            self.map_bytes = sparse::map_bytes(extents, size_bytes);
            self.stored_bytes += self.map_bytes;
            self.placement = Placement::SparseName;
        }
        Ok(())
    }

    /// Passes the records that the member needs to `visit`, in the order in which they are written.
    fn visit_records(&self, visit: &mut impl FnMut(PaxRecord<'_>)) {
        let member = self.member;
        let mut record =
            |keyword: &'static str, value| visit(PaxRecord { keyword, name: b"", value });
        let path = Value::Path { path: &member.path, slash: self.slash };
        let path_in_record = matches!(self.placement, Placement::Record | Placement::SparseName);
        let link_in_record = self.link.len() > LINKNAME.len();
        // libarchive treats records as UTF-8 and complains about others; this keyword prevents
        // that. GNU tar accepts any bytes with or without it, and prints that it ignores the
        // keyword.
        if (path_in_record && !is_utf8(&member.path))
            || (link_in_record && !is_utf8(self.link))
            || (member.user.len() >= USER.len() && !is_utf8(&member.user))
            || (member.group.len() >= GROUP.len() && !is_utf8(&member.group))
        {
            record("hdrcharset", Value::Bytes(b"BINARY"));
        }
        if self.placement == Placement::Record {
            record("path", path);
        }
        if link_in_record {
            record("linkpath", Value::Bytes(self.link));
        }
        let numbers = [
            ("size", self.stored_bytes, OCTAL_11_MAX),
            ("uid", member.uid, OCTAL_7_MAX),
            ("gid", member.gid, OCTAL_7_MAX),
            ("SCHILY.devmajor", self.devices.0, OCTAL_7_MAX),
            ("SCHILY.devminor", self.devices.1, OCTAL_7_MAX),
        ];
        for (keyword, value, field_max) in numbers {
            if value > field_max {
                record(keyword, Value::Number(value));
            }
        }
        if member.user.len() >= USER.len() {
            record("uname", Value::Bytes(&member.user));
        }
        if member.group.len() >= GROUP.len() {
            record("gname", Value::Bytes(&member.group));
        }
        if mtime_field(member.modified).is_none() {
            record("mtime", Value::Time(member.modified));
        }
        if self.placement == Placement::SparseName {
            record("GNU.sparse.major", Value::Number(1));
            record("GNU.sparse.minor", Value::Number(0));
            record("GNU.sparse.name", path);
            record("GNU.sparse.realsize", Value::Number(member.size_bytes));
        }
        if let Some(listing) = self.listing {
            record("GNU.dumpdir", Value::Bytes(listing));
        }
        if let Some(binary) = &member.acl_access {
            record("SCHILY.acl.access", Value::Acl(binary));
        }
        if let Some(binary) = &member.acl_default {
            record("SCHILY.acl.default", Value::Acl(binary));
        }
        for (name, value) in &member.xattrs {
            visit(PaxRecord { keyword: "SCHILY.xattr.", name, value: Value::Bytes(value) });
        }
    }
}

fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
}

fn check_text(what: &'static str, text: &[u8]) -> Result<(), EncodeError> {
    if text.is_empty() {
        return Err(EncodeError::Empty { what });
    }
    check_nul(what, text)
}

fn check_nul(what: &'static str, text: &[u8]) -> Result<(), EncodeError> {
    if text.contains(&0) { Err(EncodeError::Nul { what }) } else { Ok(()) }
}

fn placement(path: &[u8], slash: bool) -> Placement {
    let length = path.len() + usize::from(slash);
    if length <= NAME.len() {
        return Placement::Name;
    }
    // The leftmost slash whose right side fits the name field; neither side may be empty.
    let from = (length - NAME.len() - 1).max(1);
    let to = path.len().saturating_sub(1).min(PREFIX.len() + 1);
    match path.get(from..to).and_then(|range| range.iter().position(|byte| *byte == b'/')) {
        Some(at) => Placement::Split(from + at),
        None => Placement::Record,
    }
}

/// The time for the header's own field, if that is exact.
fn mtime_field(modified: Timestamp) -> Option<u64> {
    let seconds = u64::try_from(modified.seconds).ok()?;
    (modified.nanoseconds == 0 && seconds <= OCTAL_11_MAX).then_some(seconds)
}

/// One record to be written, its value not yet as text.
struct PaxRecord<'a> {
    keyword: &'static str,
    /// The part behind the keyword: the name of an extended attribute.
    name: &'a [u8],
    value: Value<'a>,
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Bytes(&'a [u8]),
    Path { path: &'a [u8], slash: bool },
    Number(u64),
    Time(Timestamp),
    Acl(&'a [u8]),
}

impl PaxRecord<'_> {
    /// Length of the whole record.
    fn bytes(&self) -> usize {
        let value_bytes = match self.value {
            Value::Bytes(bytes) => bytes.len(),
            Value::Path { path, slash } => path.len() + usize::from(slash),
            Value::Number(number) => pax::decimal_bytes(number),
            Value::Time(time) => pax::time_bytes(time),
            Value::Acl(binary) => acl::text_bytes(binary).expect("checked when planned"),
        };
        pax::record_bytes(self.keyword.len() + xattr::keyword_bytes(self.name), value_bytes)
    }

    fn push(&self, out: &mut Vec<u8>) {
        pax::push_decimal(self.bytes() as u64, out);
        out.push(b' ');
        out.extend_from_slice(self.keyword.as_bytes());
        xattr::push_keyword(self.name, out);
        out.push(b'=');
        match self.value {
            Value::Bytes(bytes) => out.extend_from_slice(bytes),
            Value::Path { path, slash } => {
                out.extend_from_slice(path);
                out.extend_from_slice(if slash { b"/" } else { b"" });
            }
            Value::Number(number) => pax::push_decimal(number, out),
            Value::Time(time) => pax::push_time(time, out),
            Value::Acl(binary) => acl::push_text(binary, out),
        }
        out.push(b'\n');
    }
}

/// Fills the ustar header of a member into a copy of the template.
fn fill_header(plan: &Plan<'_>, unit: &mut Unit) {
    let member = plan.member;
    fill_path(plan, unit);
    header::put_octal(&mut unit[MODE], u64::from(member.mode & 0o7777));
    let fitting = |value, field_max| if value <= field_max { value } else { 0 };
    header::put_octal(&mut unit[UID], fitting(member.uid, OCTAL_7_MAX));
    header::put_octal(&mut unit[GID], fitting(member.gid, OCTAL_7_MAX));
    header::put_octal(&mut unit[SIZE], fitting(plan.stored_bytes, OCTAL_11_MAX));
    // With a `mtime` record the field still holds the second, for readers without pax.
    let seconds = u64::try_from(member.modified.seconds).unwrap_or(0);
    header::put_octal(&mut unit[MTIME], fitting(seconds, OCTAL_11_MAX));
    unit[TYPEFLAG] = match member.kind {
        MemberKind::File => b'0',
        MemberKind::HardLink { .. } => b'1',
        MemberKind::SymbolicLink { .. } => b'2',
        MemberKind::CharacterDevice { .. } => b'3',
        MemberKind::BlockDevice { .. } => b'4',
        MemberKind::Directory => b'5',
        MemberKind::Fifo => b'6',
    };
    put_text(&mut unit[LINKNAME], plan.link);
    // POSIX requires a NUL behind these; longer ones are in records.
    put_text(&mut unit[USER.start..USER.end - 1], &member.user);
    put_text(&mut unit[GROUP.start..GROUP.end - 1], &member.group);
    if plan.devices != (0, 0) {
        header::put_octal(&mut unit[DEVICE_MAJOR], fitting(plan.devices.0, OCTAL_7_MAX));
        header::put_octal(&mut unit[DEVICE_MINOR], fitting(plan.devices.1, OCTAL_7_MAX));
    }
    put_checksum(unit);
}

fn fill_path(plan: &Plan<'_>, unit: &mut Unit) {
    let path = &plan.member.path;
    match plan.placement {
        Placement::Name => {
            put_text(&mut unit[NAME], path);
            if plan.slash && path.len() < NAME.len() {
                unit[NAME.start + path.len()] = b'/';
            }
        }
        // As much as fits, for readers without pax; a slash at its end would mark a directory.
        Placement::Record => {
            let shown = &path[..path.len().min(NAME.len())];
            put_text(&mut unit[NAME], if plan.slash { shown } else { trim_slashes(shown) });
        }
        Placement::Split(at) => {
            put_text(&mut unit[PREFIX], &path[..at]);
            let name = &path[at + 1..];
            put_text(&mut unit[NAME], name);
            if plan.slash {
                unit[NAME.start + name.len()] = b'/';
            }
        }
        // GNU tar's name for such members, with 0 in place of its process id: readers that do not
        // know sparse files then extract map and data under a recognisable name.
        Placement::SparseName => {
            let marker = b"GNUSparseFile.0/";
            let (directory, base) = path.split_at(path.len() - base_name(path).len());
            let fits = directory.len() + marker.len() + base.len() <= NAME.len();
            let directory = if fits { directory } else { b"" };
            let base_at = NAME.start + directory.len() + marker.len();
            put_text(&mut unit[NAME], directory);
            unit[directory.len()..base_at].copy_from_slice(marker);
            put_text(&mut unit[base_at..NAME.end], base);
        }
    }
}

/// Fills the header of an extended (`x`) or global (`g`) header into a copy of the template.
fn fill_extended_header(typeflag: u8, base: &[u8], records_bytes: usize, unit: &mut Unit) {
    put_text(&mut unit[NAME], &[b"PaxHeaders/", base].concat());
    header::put_octal(&mut unit[MODE], 0o644);
    header::put_octal(&mut unit[SIZE], records_bytes as u64);
    unit[TYPEFLAG] = typeflag;
    put_checksum(unit);
}

/// The last component of a path, without trailing slashes.
fn base_name(path: &[u8]) -> &[u8] {
    let path = trim_slashes(path);
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => &path[slash + 1..],
        None => path,
    }
}

fn trim_slashes(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    &path[..end]
}

/// As much of `text` as fits; the rest of the field contains NULs already.
fn put_text(field: &mut [u8], text: &[u8]) {
    let length = text.len().min(field.len());
    field[..length].copy_from_slice(&text[..length]);
}

/// Six octal digits, NUL, space: the form that all writers use.
fn put_checksum(unit: &mut Unit) {
    let sum = header::checksum(unit);
    header::put_octal(&mut unit[CHECKSUM.start..CHECKSUM.end - 1], u64::from(sum));
    unit[CHECKSUM.end - 1] = b' ';
}
