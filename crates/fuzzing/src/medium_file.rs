//! Any bytes behind the head of a medium file, and as records whose checksums hold: lengths, frames
//! and numbers that nobody would have written. Whatever is found has to be read or refused, and
//! to be the same when the file is opened again.

use std::path::{Path, PathBuf};

use sim::tape::{Cartridge, CartridgeSettings, Object};
use twox_hash::XxHash3_64;

const HEAD_BYTES: usize = 4096;
const MAGIC: &[u8; 4] = b"OREC";
/// No more is read of the objects of an input.
const READ_BYTES: usize = 32 << 20;

/// Checks one input.
pub fn check(input: &[u8]) {
    let Some((&version, rest)) = input.split_first() else { return };
    let version = u32::from(version % 3) + 1;
    check_records(version, rest);
    check_records(version, &records(rest));
}

/// Records out of the input: kind, lengths and the block of each are the input's, checksums hold.
fn records(mut input: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut number = 0_u64;
    while let Some((fields, rest)) = input.split_at_checked(12) {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| fields[at + byte]));
        let (length, native, stored) = (word(0), word(4), word(8));
        let here = if stored == 0 { length } else { stored };
        let here = if length == u32::MAX { 0 } else { here as usize };
        let (block, rest) = rest.split_at(here.min(rest.len()));
        let begin = file.len();
        file.extend_from_slice(MAGIC);
        for field in [length, native, stored] {
            file.extend_from_slice(&field.to_le_bytes());
        }
        file.extend_from_slice(&number.to_le_bytes());
        file.extend_from_slice(&XxHash3_64::oneshot(block).to_le_bytes());
        let own = XxHash3_64::oneshot(&file[begin..]);
        file.extend_from_slice(&own.to_le_bytes());
        file.extend_from_slice(block);
        file.resize(file.len().next_multiple_of(8), 0);
        (input, number) = (rest, number + 1);
    }
    file
}

fn check_records(version: u32, records: &[u8]) {
    let mut file = vec![0; HEAD_BYTES];
    file[..8].copy_from_slice(b"TKUPMEDM");
    file[8..12].copy_from_slice(&version.to_le_bytes());
    file[16..24].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let checksum = XxHash3_64::oneshot(&file[..HEAD_BYTES - 8]);
    file[HEAD_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
    file.extend_from_slice(records);
    let path = PathBuf::from(format!("/dev/shm/takeup-fuzz-medium-{}", std::process::id()));
    std::fs::write(&path, &file).expect("there is room in /dev/shm");
    let first = found(&path);
    let length = std::fs::metadata(&path).expect("it is there").len();
    assert!(length <= file.len() as u64);
    assert_eq!(found(&path), first, "opened again");
    std::fs::remove_file(&path).expect("it is there");
}

/// What was found: native bytes, number of objects, and for those that were read their checksums,
/// or none from the first on that cannot be read.
type Found = (u64, u64, Vec<Option<u64>>);

fn found(path: &Path) -> Option<Found> {
    let cartridge = Cartridge::in_file(path, CartridgeSettings::default()).ok()?;
    let (mut checksums, mut bytes) = (Vec::new(), 0);
    for number in 0..cartridge.len() {
        // A frame of 512 bytes may stand for the largest block: not all of them, not all at once.
        if bytes >= READ_BYTES {
            break;
        }
        let read = cartridge.object(number).ok().map(|object| match object {
            Object::Block(block) => {
                bytes += block.len();
                XxHash3_64::oneshot(&block)
            }
            Object::Filemark => 0,
        });
        checksums.push(read);
        if read.is_none() {
            break;
        }
    }
    Some((cartridge.used_bytes(), cartridge.len(), checksums))
}
