//! The sets of a medium as lines of text: in the label of each index, and where they are noted.
//!
//! ```text
//! first FILE OBJECT LABEL       a set: the first label of it on the medium,
//! last FILE OBJECT LABEL        and the last one
//! more                          further sets are in front of these
//! ```
//!
//! Newest first. OBJECT is the number of blocks and filemarks in front, `-` where it is not known;
//! LABEL the text of the label with its checksum.

use std::fmt::Write as _;

use archive::label::{DIRECTORY_BYTES_MAX, Label, LabelKind, find_directory};

use crate::read::{LabelledFile, SetHere, Spot};

/// Line behind which sets are left out.
const MORE: &str = "more\n";

/// What a directory says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// Newest first.
    pub sets: Vec<SetHere>,
    /// Whether these are all.
    pub is_whole: bool,
}

impl Directory {
    /// As text of at most `bytes_max`: if it is not enough, the oldest are left out.
    pub fn text(&self, bytes_max: usize) -> String {
        let mut text = String::new();
        let mut is_whole = self.is_whole;
        for set in &self.sets {
            let before = text.len();
            push_line(&mut text, "first", &set.first);
            push_line(&mut text, "last", &set.last);
            if text.len() + MORE.len() > bytes_max {
                text.truncate(before);
                is_whole = false;
                break;
            }
        }
        if !is_whole {
            text.push_str(MORE);
        }
        text
    }

    /// From a text. `None` if anything in it is wrong, or contradicts itself: sets of one medium
    /// follow each other.
    pub fn of_text(text: &str) -> Option<Directory> {
        let mut directory = Directory { sets: Vec::new(), is_whole: true };
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if !directory.is_whole {
                return None;
            }
            if line == MORE.trim_end() {
                directory.is_whole = false;
                continue;
            }
            let first = file(line.strip_prefix("first ")?)?;
            let last = file(lines.next()?.strip_prefix("last ")?)?;
            let (followed, first_file) = (!directory.sets.is_empty(), first.spot.file);
            directory.sets.push(SetHere { first, last, followed, first_file });
        }
        directory.is_possible().then_some(directory)
    }

    /// Whether the sets can be on one medium, one behind the other.
    fn is_possible(&self) -> bool {
        let can_be = |set: &SetHere| {
            let (first, last) = (&set.first, &set.last);
            first.spot.file <= last.spot.file
                && first.label.set == last.label.set
                && first.label.medium == last.label.medium
        };
        let follow = |pair: &[SetHere]| {
            pair[1].last.spot.file < pair[0].first.spot.file
                && pair[1].last.label.medium == pair[0].last.label.medium
        };
        self.sets.iter().all(can_be) && self.sets.windows(2).all(follow)
    }
}

fn push_line(text: &mut String, word: &str, file: &LabelledFile) {
    let object = file.spot.absolute.map_or_else(|| "-".to_owned(), |object| object.to_string());
    writeln!(text, "{word} {} {object} {}", file.spot.file, file.label.text())
        .expect("a string takes any text");
}

fn file(text: &str) -> Option<LabelledFile> {
    let mut parts = text.splitn(3, ' ');
    let file = parts.next()?.parse().ok()?;
    let absolute = match parts.next()? {
        "-" => None,
        object => Some(object.parse().ok()?),
    };
    let label = Label::of_text(parts.next()?).ok()?;
    Some(LabelledFile { spot: Spot { file, block: 0, absolute }, label })
}

/// Whether a label gets a directory: that of an index.
pub(crate) fn has_directory(label: &Label) -> bool {
    label.kind == LabelKind::Index
}

/// Whether a label that was read may have one: it is no longer than it would be with the longest.
fn may_be_in(label: &Label) -> bool {
    let block_bytes = label.block_bytes as usize;
    has_directory(label) && label.length_bytes as usize <= 2 * DIRECTORY_BYTES_MAX + block_bytes
}

/// Reads the rest of a label, of which `label_bytes` is the beginning, and says what it says of its
/// medium. `read` gives the next block, or `None` where there is none that can be read.
pub(crate) fn read_behind<E>(
    file: LabelledFile,
    label_bytes: &mut Vec<u8>,
    mut read: impl FnMut(&mut [u8]) -> Result<Option<usize>, E>,
) -> Result<Option<Directory>, E> {
    if !may_be_in(&file.label) {
        return Ok(None);
    }
    let mut block = vec![0; file.label.block_bytes as usize];
    while label_bytes.len() < file.label.length_bytes as usize {
        match read(&mut block)? {
            Some(bytes) => label_bytes.extend_from_slice(&block[..bytes]),
            None => return Ok(None),
        }
    }
    Ok(of_label(file, label_bytes))
}

/// What the bytes of a whole label say of its medium: its own set, and those in front of it. `None`
/// if it has no directory, or one that is not of this medium.
fn of_label(file: LabelledFile, label_bytes: &[u8]) -> Option<Directory> {
    let Directory { mut sets, is_whole } = Directory::of_text(find_directory(label_bytes)?)?;
    let is_own = |set: &SetHere| set.first.label.set == file.label.set;
    match sets.first_mut().filter(|set| is_own(set)) {
        Some(own) => own.last = file,
        // Its data are on other volumes.
        None => {
            let first_file = file.spot.file;
            sets.insert(0, SetHere { first: file, last: file, followed: false, first_file });
        }
    }
    for set in sets.iter_mut().skip(1) {
        set.followed = true;
    }
    let directory = Directory { sets, is_whole };
    directory.is_possible().then_some(directory)
}

#[cfg(test)]
mod tests {
    use archive::chunk::Compression;
    use archive::stream::StoredOffset;

    use super::*;

    fn set(number: u8, first: u32, last: u32) -> SetHere {
        let file = |file: u32, kind, segment| {
            let label = Label {
                set: [number; 16],
                kind,
                segment,
                part: 1,
                volume: 1,
                medium: [9; 16],
                stream_bytes: StoredOffset::START,
                block_bytes: 4096,
                length_bytes: 4096,
                compression: Compression::None,
                previous: first.checked_sub(1),
                time_seconds: 1_700_000_000 + u64::from(number),
                host: None,
                medium_name: None,
                chain: None,
            };
            let absolute = (number != 2).then_some(u64::from(file) * 100);
            LabelledFile { spot: Spot { file, block: 0, absolute }, label }
        };
        SetHere {
            first: file(first, LabelKind::Data, 1),
            last: file(last, LabelKind::Index, last - first + 1),
            followed: number < 3,
            first_file: first,
        }
    }

    fn three() -> Directory {
        Directory { sets: vec![set(3, 9, 12), set(2, 4, 8), set(1, 0, 3)], is_whole: true }
    }

    #[test]
    fn sets_come_back_from_their_lines() {
        let text = three().text(1 << 20);
        assert_eq!(Directory::of_text(&text), Some(three()));
        assert_eq!(Directory::of_text(""), Some(Directory { sets: Vec::new(), is_whole: true }));
        // The oldest are left out where there is no room.
        let short = three().text(text.len() - 1);
        let newer = Directory { sets: three().sets[..2].to_vec(), is_whole: false };
        assert_eq!(Directory::of_text(&short), Some(newer));
        assert_eq!(three().text(10), MORE);
    }

    #[test]
    fn what_cannot_be_on_one_medium_says_nothing() {
        let reversed = Directory { sets: three().sets.into_iter().rev().collect(), is_whole: true };
        let mut elsewhere = three();
        elsewhere.sets[1].last.label.medium = [8; 16];
        let mut mixed = three();
        mixed.sets[0].first.label.set = [1; 16];
        for wrong in [reversed, elsewhere, mixed] {
            assert_eq!(Directory::of_text(&wrong.text(1 << 20)), None);
        }
        let text = three().text(1 << 20);
        for wrong in [text.replace("segment=1 ", "segment=2 "), text.replacen("first", "erst", 1)] {
            assert_eq!(Directory::of_text(&wrong), None);
        }
        assert_eq!(Directory::of_text(&format!("{MORE}{text}")), None);
        let half = text.lines().take(3).collect::<Vec<_>>().join("\n");
        assert_eq!(Directory::of_text(&half), None);
    }
}
