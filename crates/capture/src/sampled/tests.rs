//! Looks that were made up, and one at a real process.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use super::members::{Member, Members};
use super::*;
use crate::live::files::{Access, Looked, OnExec};
use crate::operation::OpenedFile;

fn totals(bytes: u64) -> Totals {
    Totals { read_calls: bytes / 10, read_bytes: bytes, ..Totals::default() }
}

fn members(of: &[(u32, Option<u32>, u64)]) -> BTreeMap<u32, Member> {
    let member = |(pid, parent, bytes): &(u32, Option<u32>, u64)| {
        (*pid, Member { start_ticks: u64::from(*pid), parent: *parent, totals: totals(*bytes) })
    };
    of.iter().map(member).collect()
}

/// Whoever waits for a child gets its counts; of one that nobody of these waited for they are kept.
#[test]
fn no_count_is_lost_and_none_is_doubled() {
    let mut all = Members::default();
    all.take(members(&[(1, None, 1000), (2, Some(1), 500)]));
    assert_eq!(all.totals(), Totals::default());
    all.take(members(&[(1, None, 1000), (2, Some(1), 800), (3, Some(1), 70)]));
    assert_eq!(all.totals(), totals(370));
    // The second was waited for by the first, which read 20 more; the third by somebody else.
    all.take(members(&[(1, None, 1820)]));
    assert_eq!(all.totals().read_bytes, 300 + 20 + 70);
    assert_eq!(all.met, 3);
    all.take(BTreeMap::new());
    assert_eq!(all.totals().read_bytes, 390);
}

/// A number that another process has now is another process.
#[test]
fn a_number_that_comes_again_is_another_process() {
    let mut all = Members::default();
    all.take(members(&[(1, None, 1000)]));
    all.take(members(&[(1, None, 1000), (7, Some(1), 40)]));
    let mut again = members(&[(1, None, 1000), (7, Some(1), 5)]);
    again.get_mut(&7).unwrap().start_ticks = 99;
    all.take(again);
    assert_eq!(all.totals().read_bytes, 45);
}

fn looked(path: &str, position: u64, append: bool) -> Looked {
    Looked {
        file: OpenedFile {
            path: Ok(path.to_owned()),
            kind: FileKind::Regular,
            deleted: false,
            direct: Ok(false),
            synchronous: Ok(false),
            append: Ok(append),
            size_bytes: Ok(1000 + position),
        },
        device: 1,
        inode: path.len() as u64,
        position: Ok(position),
        access: Ok(Access { reads: !append, writes: append }),
        on_exec: OnExec::Closes,
        at_ns: 0,
    }
}

fn positions(looks: Vec<Vec<(u32, u32, Looked)>>) -> Vec<SampledFile> {
    let mut sampler = Sampler::begin(&[]);
    for look in looks {
        sampler.take(look.into_iter().map(|(pid, fd, it)| ((pid, fd), it)).collect());
    }
    sampler.finish().files
}

#[test]
fn positions_are_followed_from_look_to_look() {
    let looks = [10, 30, 20, 90].map(|at| vec![(1, 3, looked("/a", at, false))]);
    let files = positions(looks.into());
    let expected = Position { forward_bytes: 10 + 20 + 70, forward: 3, backward: 1 };
    assert_eq!((files.len(), files[0].position), (1, Some(expected)));
    assert_eq!((files[0].grown_bytes, files[0].size_bytes), (Some(80), Some(1090)));
    assert_eq!((files[0].reads, files[0].writes), (true, false));
}

/// A copy of a descriptor, inherited or made, is no other opening; what is appended begins at the
/// end.
#[test]
fn a_copy_moves_nothing_and_an_end_is_no_progress() {
    let of = |at| looked("/a", at, false);
    let files = positions(vec![
        vec![(1, 3, of(10))],
        vec![(1, 3, of(50)), (2, 0, of(52))],
        vec![(1, 3, of(60)), (2, 0, of(61))],
    ]);
    assert_eq!(files[0].forward_bytes(), 61);
    assert_eq!(files[0].processes, 2);
    let files = positions(vec![
        vec![(1, 3, looked("/b", 0, true))],
        vec![(1, 3, looked("/b", 5000, true))],
        vec![(1, 3, looked("/b", 5600, true))],
    ]);
    assert_eq!((files[0].forward_bytes(), files[0].grown_bytes), (600, Some(5600)));
    assert_eq!(files[0].append, Some(true));
}

#[test]
fn what_was_opened_in_two_ways_is_neither() {
    let mut direct = looked("/a", 0, false);
    direct.file.direct = Ok(true);
    let files = positions(vec![vec![(1, 3, looked("/a", 0, false)), (1, 4, direct)]]);
    assert_eq!((files[0].direct, files[0].synchronous), (None, Some(false)));
}

/// A real process and what it starts: its position is followed, its counts are exact once it was
/// waited for.
#[test]
fn a_real_process_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    std::fs::write(&path, vec![7; 300_000]).unwrap();
    // A line on its standard input lets it go on.
    let script = "read go; head -c 100000 <&3; read go; head -c 100000 <&3; read go";
    let shell = format!("exec 3<{}; {script}", path.display());
    let mut child = Command::new("sh")
        .args(["-c", &shell])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut sampler = Sampler::begin(&[child.id()]);
    let mut read = vec![0; 100_000];
    for _ in 0..2 {
        use std::io::{Read as _, Write as _};
        input.write_all(b"\n").unwrap();
        output.read_exact(&mut read).unwrap();
        sampler.look();
    }
    drop(input);
    let (sampled, status) = sampler.finish_with(child.id(), || child.wait().unwrap());
    // The third line never came.
    assert_eq!(status.code(), Some(1));
    let data = sampled.files.iter().find(|it| it.path.ends_with("/data")).unwrap();
    let position = data.position.unwrap();
    assert_eq!((position.forward_bytes, position.backward), (200_000, 0));
    assert_eq!((data.reads, data.writes, data.size_bytes), (true, false, Some(300_000)));
    assert_eq!(sampled.totals.written_bytes, 200_000);
    assert!(sampled.totals.read_bytes >= 200_000 && sampled.totals.write_calls >= 2, "{sampled:?}");
}
