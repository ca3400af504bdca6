//! Reads a whole archive in memory like a caller of the decoder.

use archive::decode::{DecodeError, DecodeLimits, Decoder, Event, Note, Skipped};
use archive::header::{UNIT_BYTES, padding_bytes};
use archive::malformed::Malformed;
use archive::member::{Extent, Member};

/// The contents of an archive in memory, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    Member { member: Box<Member>, content: Vec<u8>, notes: Vec<Note> },
    Global(Vec<(Vec<u8>, Vec<u8>)>),
    Skip { why: Skipped, content: Vec<u8> },
    Garbage(Malformed),
    Error(DecodeError),
    End,
}

/// Everything that `decoder` returns for `archive`, with a final error if it ends early.
pub fn read_with(mut decoder: Decoder, archive: &[u8]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(unit) = archive.get(at..at + UNIT_BYTES) {
        at += UNIT_BYTES;
        let event = match decoder.push(unit.try_into().expect("a whole unit")) {
            Ok(event) => event,
            Err(error) => {
                items.push(Item::Error(error));
                continue;
            }
        };
        match event {
            Event::More | Event::ZeroUnit => {}
            Event::Member { member, stored_bytes, notes } => {
                let content = take(archive, &mut at, stored_bytes);
                items.push(Item::Member { member, content, notes });
            }
            Event::Skip { stored_bytes, why } => {
                let content = take(archive, &mut at, stored_bytes);
                items.push(Item::Skip { why, content });
            }
            Event::GlobalHeader { records } => items.push(Item::Global(records)),
            Event::EndOfArchive => items.push(Item::End),
            Event::NotAHeader { why } => items.push(Item::Garbage(why)),
        }
    }
    if let Err(error) = decoder.finish() {
        items.push(Item::Error(error));
    }
    items
}

/// Like [`read_with`], with the default limits.
pub fn read(archive: &[u8]) -> Vec<Item> {
    read_with(Decoder::new(DecodeLimits::default()), archive)
}

/// The members of an archive with nothing else and without notes, with their content.
pub fn members(archive: &[u8]) -> Vec<(Member, Vec<u8>)> {
    let mut members = Vec::new();
    for item in read(archive) {
        match item {
            Item::Member { member, content, notes } => {
                assert_eq!(notes, [], "{}", String::from_utf8_lossy(&member.path));
                members.push((*member, content));
            }
            Item::End => {}
            other => panic!("not a member: {other:?}"),
        }
    }
    members
}

/// The file of a member, with holes filled with zeros.
pub fn expand(member: &Member, content: &[u8]) -> Vec<u8> {
    let Some(extents) = &member.sparse else {
        return content.to_vec();
    };
    let mut file = vec![0; member.size_bytes as usize];
    let mut at = 0;
    for Extent { offset_bytes, length_bytes } in extents {
        let (offset, length) = (*offset_bytes as usize, *length_bytes as usize);
        file[offset..offset + length].copy_from_slice(&content[at..at + length]);
        at += length;
    }
    assert_eq!(at, content.len());
    file
}

fn take(archive: &[u8], at: &mut usize, stored_bytes: u64) -> Vec<u8> {
    let rest = &archive[(*at).min(archive.len())..];
    let length = usize::try_from(stored_bytes).expect("a 64-bit machine").min(rest.len());
    *at = at.saturating_add((stored_bytes + padding_bytes(stored_bytes)) as usize);
    rest[..length].to_vec()
}
