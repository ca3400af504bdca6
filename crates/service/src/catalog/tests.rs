//! What of an index comes into the catalogue.

use super::*;

fn paths(paths: &[&str]) -> Vec<Vec<u8>> {
    let record = |path: &&str| {
        Ok::<_, ()>(FileRecord {
            path: path.as_bytes().to_vec(),
            kind: archive::index::RecordKind::Directory,
            header_offset_bytes: archive::stream::ArchiveOffset::START,
            content_offset_bytes: archive::stream::ArchiveOffset::START,
            mode: 0,
            uid: 0,
            gid: 0,
            modified: archive::member::Timestamp { seconds: 0, nanoseconds: 0 },
            changed: archive::member::Timestamp { seconds: 0, nanoseconds: 0 },
        })
    };
    sources(paths.iter().map(record)).unwrap()
}

#[test]
fn the_sources_of_a_set_lie_below_no_other_path() {
    let found = paths(&["home/eva", "home/eva/a", "home/eva/a/b", "home/evan", "srv", "srv/a"]);
    assert_eq!(found, [&b"home/eva"[..], b"home/evan", b"srv"]);
    assert!(paths(&[]).is_empty());
}
