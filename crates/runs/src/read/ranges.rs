//! The ranges of an archive that hold the selected members: the plan of a partial restore.
//!
//! The index knows where each member starts and ends, so a selection becomes a list of ranges of
//! the archive (before compression). Each starts at a header and ends after the padding of a
//! content. The medium decides how they are read: a file reads whole blocks or chunks around them
//! (`excerpt`), a tape goes to them.
//!
//! A hard link is another name of an earlier member. If a link is selected and that member is not,
//! the plan has the member's range anyway. [`StandIns`] has the name under which the content is
//! restored: the first selected link stands in for the member.

use std::collections::HashMap;
use std::io;
use std::ops::Range;

use archive::header::padding_bytes;
use archive::index::{FileRecord, IndexError, IndexSection, RecordKind};
use archive::stream::ArchiveOffset;

use crate::selection::{Selection, normal};

/// Most ranges of a plan. Beyond that, the closest ranges are merged.
const RANGES_MAX: usize = 1 << 16;
/// Most bytes of paths kept for stand-ins. Further links are restored if their target is.
const STAND_IN_BYTES_MAX: usize = 16 << 20;

/// What to read, and under which names some of it is restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Ranges of the archive before compression, ascending, separated, not empty.
    pub ranges: Vec<Range<ArchiveOffset>>,
    /// Unselected members that are restored under the name of a link to them.
    pub stand_ins: StandIns,
}

/// The first selected link to each unselected member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StandIns {
    link_of: HashMap<Vec<u8>, Vec<u8>>,
    bytes: usize,
}

impl StandIns {
    /// The path, without `.` and surplus slashes, at which the content of `member` is restored.
    pub fn link_of(&self, member: &[u8]) -> Option<&[u8]> {
        if self.link_of.is_empty() {
            return None;
        }
        self.link_of.get(&normal(member)).map(|link| &**link)
    }

    fn is_empty(&self) -> bool {
        self.link_of.is_empty()
    }

    fn add(&mut self, member: &[u8], link: &[u8]) {
        let (member, link) = (normal(member), normal(link));
        let bytes = member.len() + link.len();
        if self.bytes + bytes > STAND_IN_BYTES_MAX || self.link_of.contains_key(&member) {
            return;
        }
        self.bytes += bytes;
        self.link_of.insert(member, link);
    }
}

/// The ranges that hold the selection. `open` starts reading the `files` section of the index from
/// its front; it is called once or twice. Ranges up to `bridge_bytes` apart are merged, since
/// reading on costs less there than seeking; whole members are between them.
///
/// # Errors
/// What is wrong with the index; then everything has to be read.
pub(crate) fn plan<Records>(
    mut open: impl FnMut() -> io::Result<Records>,
    selection: &Selection,
    bridge_bytes: u64,
) -> Result<Plan, IndexError>
where
    Records: Iterator<Item = Result<FileRecord, IndexError>>,
{
    let mut ranges = Ranges::new(bridge_bytes);
    let mut stand_ins = StandIns::default();
    for record in open().map_err(unreadable)? {
        let record = record?;
        if !selection.covers(&record.path) {
            continue;
        }
        ranges.push(range_of(&record));
        if let RecordKind::HardLink { target } = &record.kind
            && !selection.covers(target)
        {
            stand_ins.add(target, &record.path);
        }
    }
    if stand_ins.is_empty() {
        return Ok(Plan { ranges: ranges.list, stand_ins });
    }
    // The target of a link precedes it, so its place is found in a second pass.
    let mut ranges = Ranges::new(bridge_bytes);
    for record in open().map_err(unreadable)? {
        let record = record?;
        if selection.covers(&record.path) || stand_ins.link_of(&record.path).is_some() {
            ranges.push(range_of(&record));
        }
    }
    Ok(Plan { ranges: ranges.list, stand_ins })
}

fn unreadable(source: io::Error) -> IndexError {
    IndexError::Read { section: IndexSection::Files, source }
}

/// From the first unit of the header to the end of the content's padding.
fn range_of(record: &FileRecord) -> Range<ArchiveOffset> {
    let stored_bytes = match record.kind {
        RecordKind::File { stored_bytes, .. } => stored_bytes,
        _ => 0,
    };
    let end_bytes = record
        .content_offset_bytes
        .saturating_add(stored_bytes)
        .saturating_add(padding_bytes(stored_bytes));
    record.header_offset_bytes..end_bytes
}

/// Ascending ranges that are merged.
struct Ranges {
    list: Vec<Range<ArchiveOffset>>,
    bridge_bytes: u64,
}

impl Ranges {
    fn new(bridge_bytes: u64) -> Ranges {
        Ranges { list: Vec::new(), bridge_bytes }
    }

    fn push(&mut self, range: Range<ArchiveOffset>) {
        if !self.extend_last(&range) {
            self.list.push(range);
        }
        while self.list.len() > RANGES_MAX {
            self.bridge_bytes = self.bridge_bytes.max(512).saturating_mul(2);
            for range in std::mem::take(&mut self.list) {
                if !self.extend_last(&range) {
                    self.list.push(range);
                }
            }
        }
    }

    fn extend_last(&mut self, range: &Range<ArchiveOffset>) -> bool {
        let Some(last) = self.list.last_mut() else { return false };
        if range.start > last.end.saturating_add(self.bridge_bytes) {
            return false;
        }
        last.end = last.end.max(range.end);
        true
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
mod tests {
    use super::*;
    use archive::index::FileLayout;
    use archive::member::Timestamp;

    fn record(path: &str, kind: RecordKind, header: u64, content: u64) -> FileRecord {
        FileRecord {
            path: path.into(),
            kind,
            header_offset_bytes: ArchiveOffset::new(header),
            content_offset_bytes: ArchiveOffset::new(content),
            mode: 0o644,
            uid: 0,
            gid: 0,
            modified: Timestamp::default(),
            changed: Timestamp::default(),
        }
    }

    fn file(path: &str, header: u64, bytes: u64) -> FileRecord {
        let (size_bytes, stored_bytes) = (bytes, bytes);
        let layout = FileLayout::Whole;
        let kind = RecordKind::File { size_bytes, stored_bytes, layout, content_hash: None };
        record(path, kind, header, header + 512)
    }

    fn link(path: &str, target: &str, header: u64) -> FileRecord {
        record(path, RecordKind::HardLink { target: target.into() }, header, header + 512)
    }

    fn planned(records: &[FileRecord], paths: &[&str], bridge_bytes: u64) -> Plan {
        let selection = Selection::new(paths.iter().map(|path| path.as_bytes().to_vec()));
        let open = || Ok(records.iter().cloned().map(Ok));
        plan(open, &selection, bridge_bytes).unwrap()
    }

    fn sample() -> Vec<FileRecord> {
        vec![
            record("a", RecordKind::Directory, 0, 512),
            file("a/one", 512, 100),
            file("a/two", 1536, 1024),
            record("b", RecordKind::Directory, 3072, 3584),
            file("b/three", 3584, 0),
            link("b/four", "a/two", 4096),
            link("b/five", "./a/two", 4608),
        ]
    }

    #[test]
    fn ranges_hold_headers_contents_and_padding() {
        assert_eq!(planned(&sample(), &["a/one"], 0).ranges, [512..1536].map(ArchiveOffset::range));
        assert_eq!(planned(&sample(), &["a"], 0).ranges, [0..3072].map(ArchiveOffset::range));
        assert_eq!(
            planned(&sample(), &["a/one", "b/three"], 0).ranges,
            [512..1536, 3584..4096].map(ArchiveOffset::range)
        );
        assert_eq!(
            planned(&sample(), &["a/one", "b/three"], 2048).ranges,
            [512..4096].map(ArchiveOffset::range)
        );
        assert_eq!(planned(&sample(), &["c"], 0), Plan::default());
    }

    #[test]
    fn the_first_selected_link_stands_in_for_what_it_names() {
        let plan = planned(&sample(), &["b/five"], 0);
        assert_eq!(plan.ranges, [1536..3072, 4608..5120].map(ArchiveOffset::range));
        assert_eq!(plan.stand_ins.link_of(b"./a/two"), Some(&b"b/five"[..]));
        let plan = planned(&sample(), &["b"], 0);
        assert_eq!(plan.stand_ins.link_of(b"a/two"), Some(&b"b/four"[..]));
        let plan = planned(&sample(), &["b", "a/two"], 0);
        assert_eq!(plan.stand_ins.link_of(b"a/two"), None);
    }

    /// A disk with heads then passes over the archive once.
    #[test]
    fn ranges_ascend_in_whatever_order_paths_are_given() {
        let paths = ["b/five", "a/one", "a/two", "b/three", "b/four"];
        for first in 0..paths.len() {
            for last in (0..paths.len()).filter(|last| *last != first) {
                let (forth, back) = ([paths[first], paths[last]], [paths[last], paths[first]]);
                let plan = planned(&sample(), &forth, 0);
                assert_eq!(plan, planned(&sample(), &back, 0), "{forth:?}");
                let is_apart = |pair: &[Range<ArchiveOffset>]| pair[0].end < pair[1].start;
                assert!(plan.ranges.windows(2).all(is_apart), "{forth:?}: {:?}", plan.ranges);
            }
        }
    }

    #[test]
    fn there_are_never_more_ranges_than_the_limit_and_none_is_lost() {
        let records: Vec<_> = (0..200_000u64)
            .map(|number| file(&format!("{}/{number}", number % 2), number * 1024, 100))
            .collect();
        let plan = planned(&records, &["1"], 0);
        assert!(plan.ranges.len() <= RANGES_MAX);
        for record in records.iter().filter(|record| record.path.starts_with(b"1/")) {
            let range = range_of(record);
            let at = plan.ranges.partition_point(|have| have.end < range.end);
            assert!(plan.ranges[at].start <= range.start, "{range:?} is in no range");
        }
    }
}
