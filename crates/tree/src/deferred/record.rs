//! The record of one deferred directory, as bytes.
//!
//! ```text
//! length of all of it, length of the path: u32 each
//! device, inode, born: u64 each; flags: u8
//! uid, gid: u32; mode: u16; seconds: i64, nanoseconds: u32
//! the path
//! for each ACL that is there (access, default): length: u32, value
//! for each attribute: length of name and of value: u32 each, name, value
//! ```
//!
//! This process wrote the bytes itself; nothing here comes from outside.

use archive::member::Timestamp;

use super::made::Made;
use crate::folder::Inheritance;
use crate::metadata::{ArchivedOwner, Extra, Metadata};

/// A directory that waits.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) path: Vec<u8>,
    pub(super) metadata: Metadata,
    pub(super) made: Made,
}

const INHERITS_ACL: u8 = 1;
const HAS_UID: u8 = 2;
const HAS_GID: u8 = 4;
const HAS_EXTRA: u8 = 8;
const HAS_ACL_ACCESS: u8 = 16;
const HAS_ACL_DEFAULT: u8 = 32;

/// Bytes in front of the path.
const HEAD_BYTES: usize = 4 + 4 + 3 * 8 + 1 + 4 + 4 + 2 + 8 + 4;

impl Record {
    /// Appends one to others.
    pub(super) fn append(to: &mut Vec<u8>, path: &[u8], metadata: &Metadata, made: Made) {
        let begin = to.len();
        let owner = metadata.archived_owner;
        let extra = metadata.extra.as_deref();
        let acls = extra
            .map_or([None, None], |extra| [extra.acl_access.as_ref(), extra.acl_default.as_ref()]);
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        let flags = bit(made.inheritance == Inheritance::Acl, INHERITS_ACL)
            | bit(owner.uid.is_some(), HAS_UID)
            | bit(owner.gid.is_some(), HAS_GID)
            | bit(extra.is_some(), HAS_EXTRA)
            | bit(acls[0].is_some(), HAS_ACL_ACCESS)
            | bit(acls[1].is_some(), HAS_ACL_DEFAULT);
        put_length(to, 0);
        put_length(to, path.len());
        for number in [made.device, made.inode, made.born] {
            to.extend(number.to_ne_bytes());
        }
        to.push(flags);
        to.extend(owner.uid.unwrap_or(0).to_ne_bytes());
        to.extend(owner.gid.unwrap_or(0).to_ne_bytes());
        to.extend((metadata.mode as u16).to_ne_bytes());
        to.extend(metadata.modified.seconds.to_ne_bytes());
        to.extend(metadata.modified.nanoseconds.to_ne_bytes());
        to.extend(path);
        for acl in acls.into_iter().flatten() {
            put_length(to, acl.len());
            to.extend(acl);
        }
        for (name, value) in extra.map_or(&[][..], |extra| &extra.privileged) {
            put_length(to, name.len());
            put_length(to, value.len());
            to.extend(name);
            to.extend(value);
        }
        let length = (to.len() - begin) as u32;
        to[begin..begin + 4].copy_from_slice(&length.to_ne_bytes());
    }

    /// The bytes of the first record, if it is complete.
    pub(super) fn whole(bytes: &[u8]) -> Option<&[u8]> {
        let length = u32::from_ne_bytes(*bytes.first_chunk()?);
        bytes.get(..length as usize)
    }

    /// The path in a record.
    pub(super) fn path_of(record: &[u8]) -> &[u8] {
        let length = Reader(&record[4..]).length();
        &record[HEAD_BYTES..HEAD_BYTES + length]
    }

    /// The first record in the output of [`Record::append`].
    pub(super) fn parse(bytes: &[u8]) -> Record {
        let mut from = Reader(Record::whole(bytes).unwrap_or_default());
        let _ = from.length();
        let path_bytes = from.length();
        let (device, inode, born) = (from.u64(), from.u64(), from.u64());
        let [flags] = from.array();
        let (uid, gid) = (u32::from_ne_bytes(from.array()), u32::from_ne_bytes(from.array()));
        let mode = u16::from_ne_bytes(from.array()).into();
        let seconds = i64::from_ne_bytes(from.array());
        let nanoseconds = u32::from_ne_bytes(from.array());
        let path = from.bytes(path_bytes).to_vec();
        let has = |bit| flags & bit != 0;
        let mut acl = |bit| {
            has(bit).then(|| {
                let length = from.length();
                from.bytes(length).to_vec()
            })
        };
        let (acl_access, acl_default) = (acl(HAS_ACL_ACCESS), acl(HAS_ACL_DEFAULT));
        let mut privileged = Vec::new();
        while !from.0.is_empty() {
            let (name, value) = (from.length(), from.length());
            privileged.push((from.bytes(name).to_vec(), from.bytes(value).to_vec()));
        }
        let inheritance = if has(INHERITS_ACL) { Inheritance::Acl } else { Inheritance::Nothing };
        let extra = Extra { xattrs: Vec::new(), privileged, acl_access, acl_default };
        Record {
            path,
            metadata: Metadata {
                archived_owner: ArchivedOwner {
                    uid: has(HAS_UID).then_some(uid),
                    gid: has(HAS_GID).then_some(gid),
                },
                mode,
                lost_bits: false,
                modified: Timestamp { seconds, nanoseconds },
                extra: has(HAS_EXTRA).then(|| Box::new(extra)),
            },
            made: Made { device, inode, born, inheritance },
        }
    }
}

fn put_length(to: &mut Vec<u8>, length: usize) {
    to.extend((length as u32).to_ne_bytes());
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (array, rest) = self.0.split_first_chunk().expect("a record is whole");
        self.0 = rest;
        *array
    }

    fn length(&mut self) -> usize {
        u32::from_ne_bytes(self.array()) as usize
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.array())
    }
}
