//! How large the files of a section are, what was in them before, and how much of them it does.

use base::format::count;

use super::super::profile::Class;
use super::blocks::fio_size;
use super::group::FileGroup;
use super::numbers::{bytes, whole};
use super::part::{Part, SectionLines};
use super::scale::Scale;
use super::spread::Load;

/// What a file of a job may have, and a request in it: more than any disk and any call.
const FILE_BYTES_MAX: u64 = 1 << 50;
const BLOCK_BYTES_MAX: u64 = 1 << 40;

/// The unit of a file's size.
fn padded_block(block: u64) -> u64 {
    block.clamp(512, BLOCK_BYTES_MAX).next_multiple_of(4096)
}

/// A section as far as it matters for where its requests go.
pub fn load(group: &FileGroup, part: Part, scale: &Scale, file_bytes: u64) -> Load {
    let sizes = [(&group.read_sizes, part.reads(group)), (&group.write_sizes, part.writes(group))];
    let used = || sizes.iter().filter(|(_, calls)| *calls > 0);
    let all = || used().flat_map(|(sizes, _)| sizes.iter());
    let calls: u64 = all().map(|(_, calls)| calls).sum();
    let bytes: f64 = all().map(|(bytes, calls)| *bytes as f64 * *calls as f64).sum();
    let smallest = all().map(|(bytes, _)| *bytes).filter(|it| *it > 0).min();
    let block_bytes = smallest.or(group.block_bytes).unwrap_or(4096).max(512);
    let mean = if calls > 0 { bytes / calls as f64 } else { block_bytes as f64 };
    let operations = part.reads(group) + part.writes(group);
    Load {
        operations: whole(operations as f64 * scale.share * scale.slice)
            .div_ceil(group.names.len().max(1) as u64),
        file_bytes,
        block_bytes,
        mean_bytes: mean.max(block_bytes as f64),
        is_one_size: all().all(|(bytes, _)| *bytes == block_bytes),
    }
}

/// How large a file of a group is, where that comes from, and whether it was there before.
pub fn size_of(group: &FileGroup, share: f64) -> (u64, String, Before) {
    /// Smallest file that is worth making.
    const BYTES_MIN: u64 = 64 << 10;
    let files = group.names.len().max(1) as u64;
    // One file stands for all of them where they are synced.
    let stands_for = (group.paths.len() as u64).div_ceil(files).max(1);
    let largest = group.read_sizes.iter().chain(&group.write_sizes).map(|(bytes, _)| *bytes).max();
    let block = largest.or(group.block_bytes).unwrap_or(4096).max(512);
    let moved = group.moved_bytes();
    let fresh = moved as f64 * (1.0 - group.reuse.unwrap_or(0.0)) / group.paths.len().max(1) as f64;
    // An import has the numbers that a file of others says; no disk has so many bytes.
    let unit = padded_block(block);
    let padded = |bytes: u64| bytes.clamp(BYTES_MIN, FILE_BYTES_MAX).next_multiple_of(unit);
    let before = Before::of(group, fresh);
    let moved_each = moved as f64 / group.paths.len().max(1) as f64;
    let asked = whole(moved as f64 * share / files as f64);
    match group.size_bytes {
        Some(size) if group.device => {
            let cut = size.min(moved.saturating_mul(4)).max(64 << 20);
            let origin = format!("a part of the device, which has {}", bytes(size));
            (padded(cut), origin, Before::There)
        }
        // What was moved more than once is no larger for that.
        Some(size) if before == Before::There || moved_each > size as f64 * 1.1 => {
            let size = size.saturating_mul(stands_for);
            (padded(size), format!("{} in the capture", bytes(size)), before)
        }
        _ if moved > 0 => {
            let origin = format!("{} were moved in each", bytes(moved / group.paths.len() as u64));
            (padded(asked), origin, before)
        }
        Some(size) => (padded(size), format!("{} in the capture", bytes(size)), before),
        None => (
            padded(block.saturating_mul(1024)),
            "size unknown: 1024 blocks are an assumption".into(),
            before,
        ),
    }
}

/// Whether what is written was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It had room for what was written: its size does not change.
    There,
    /// It grew while it was written.
    Grew,
    /// Not known.
    Unknown,
}

impl Before {
    /// `fresh` is how many bytes were moved in a file for the first time.
    fn of(group: &FileGroup, fresh: f64) -> Before {
        if group.append == Some(true) {
            return Before::Grew;
        }
        match group.size_bytes {
            // A block at the end may have been cut.
            Some(size) if size as f64 > fresh * 1.05 + 65536.0 => Before::There,
            Some(_) if group.writes == 0 => Before::There,
            Some(_) if group.written_bytes.is_some() => Before::Grew,
            _ => Before::Unknown,
        }
    }
}

/// The size of the files and what is done with it; returns the bytes that they take.
pub fn size(
    group: &FileGroup,
    part: Part,
    scale: &Scale,
    block: u64,
    jobs: u64,
    lines: &mut SectionLines,
) -> u64 {
    let (size, origin, before) = size_of(group, scale.share);
    let files = group.names.len().max(1) as u64;
    let unit = padded_block(block);
    let least = unit * 4;
    let cut = (whole((size as f64 * scale.size_share).floor()) / unit * unit).max(least);
    let (size, origin) =
        if cut < size { (cut, format!("{origin}; cut by a limit")) } else { (size, origin) };
    lines.add(format!("filesize={}", fio_size(size)), origin);
    if files > 1 {
        lines.add(format!("nrfiles={files}"), "each of that size");
    }
    let operations = part.reads(group) + part.writes(group);
    let own = whole(operations as f64 * scale.share * scale.slice).div_ceil(jobs).max(1);
    let each = if jobs > 1 { format!(", by {jobs} jobs") } else { String::new() };
    let origin = if scale.share < 1.0 {
        format!("{} were captured{each}; cut by a limit", count(operations))
    } else {
        format!("{} were captured{each}", count(operations))
    };
    lines.add(format!("number_ios={own}"), origin);
    let most = own.saturating_mul(block).max(size.saturating_mul(files)).max(unit);
    lines.add(format!("io_size={}", fio_size(most)), "more than number_ios needs, which ends it");
    if part.writes(group) > 0 {
        written(group, before, cut < size, lines);
    }
    size.saturating_mul(files)
}

/// What was there before a write.
fn written(group: &FileGroup, before: Before, is_cut: bool, lines: &mut SectionLines) {
    match before {
        Before::There => lines.add("overwrite=1", "the file was as large as this before"),
        Before::Grew if group.append == Some(true) && !is_cut => {
            lines.add("file_append=1", "opened to append; the job's file begins empty");
            lines.add("fallocate=none", "it grows as the job writes");
        }
        Before::Grew => lines.add("fallocate=none", "the file grew as the program wrote"),
        Before::Unknown => {
            let placed = matches!(group.class, Class::WriteAheadLog | Class::Data);
            let why = group.reason("size_bytes");
            let value = placed.then(|| "overwrite=1".to_owned());
            let taken = if placed { "an existing file" } else { "a growing file" };
            lines.assume(value, "the size before", why, taken);
        }
    }
}
