//! Blocks as others read them: tar by GNU tar and bsdtar, Bacula's by a reader of their own.

use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;
use crate::payload::Data;
use crate::payload::tree::{TreeOptions, survey};

fn layout(file_blocks: u64, files: u64) -> Layout {
    Layout { file_blocks, blocks: file_blocks.saturating_mul(files) }
}

/// All blocks, as who writes them would have them.
fn all_blocks(mut framer: Framer) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let mut filled = vec![1; framer.block_bytes];
        let follows = framer.block(&mut filled).unwrap();
        let at = all.len();
        all.resize(at + filled.len(), 2);
        framer.framing.seal(&filled, &mut all[at..]);
        if follows == Follows::Nothing {
            return all;
        }
    }
}

/// One file of made data.
fn written(framing: Framing, block_bytes: usize, blocks: usize, data: &Data) -> Vec<u8> {
    let payload = Payload::open(data, 4).unwrap();
    let layout = layout(blocks as u64, 1);
    let all = all_blocks(Framer::new(framing, block_bytes, payload, layout).unwrap());
    assert_eq!(all.len(), block_bytes * blocks);
    all
}

/// What the data would be without a frame.
fn plain(bytes: usize, data: &Data) -> Vec<u8> {
    let mut buffer = vec![1; bytes];
    Payload::open(data, 4).unwrap().fill(&mut buffer).unwrap();
    buffer
}

#[test]
fn raw_blocks_are_the_data() {
    assert_eq!(written(Framing::Raw, 1000, 3, &Data::Random), plain(3000, &Data::Random));
}

#[test]
fn tar_blocks_are_read_by_tar() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("blocks.tar");
    let block_bytes = 64 << 10;
    std::fs::write(&path, written(Framing::Tar, block_bytes, 5, &Data::Random)).unwrap();
    for program in ["tar", "bsdtar"] {
        let output = Command::new(program).arg("-xOf").arg(&path).stdin(Stdio::null()).output();
        let output = output.unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{program}: {output:?}");
        let content_bytes = 5 * (block_bytes - 512) - 1024;
        assert!(output.stdout == plain(content_bytes, &Data::Random), "{program}");
    }
    let listed = Command::new("tar").arg("-tf").arg(&path).output().unwrap();
    let names = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(names.lines().count(), 5);
    assert_eq!(names.lines().last(), Some("takeup-bench/000000000004"));
}

fn word(block: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(block[at..at + 4].try_into().unwrap())
}

/// CRC-32 (IEEE 802.3), bit by bit as its polynomial says.
fn crc(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for &byte in bytes {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}

/// Data of the records of a block, all of which is checked.
fn records(block: &[u8], number: u32) -> Vec<u8> {
    assert_eq!(word(block, 0), crc(&block[4..]));
    assert_eq!(word(block, 4) as usize, block.len());
    assert_eq!(word(block, 8), number);
    assert_eq!(&block[12..16], b"BB02");
    let (mut at, mut data) = (24, Vec::new());
    while at < block.len() {
        assert!((word(block, at), word(block, at + 4)) == (1, 2), "a record of file data");
        let bytes = word(block, at + 8) as usize;
        assert!((1..=64 << 10).contains(&bytes));
        data.extend_from_slice(&block[at + 12..][..bytes]);
        at += 12 + bytes;
    }
    assert_eq!(at, block.len());
    data
}

#[test]
fn sums_are_those_of_the_polynomial() {
    assert_eq!(crc::crc32(b"123456789"), 0xcbf4_3926);
    let data = plain(4099, &Data::Random);
    assert_eq!(crc::crc32(&data), crc(&data));
}

#[test]
fn bacula_blocks_have_its_structure() {
    for block_bytes in [37, 512, 65536, 65536 + 36, 65536 + 37, 65536 + 48, 65536 + 49, 1 << 20] {
        let all = written(Framing::Bacula, block_bytes, 3, &Data::Random);
        let blocks = all.chunks(block_bytes).zip(0..);
        let data: Vec<u8> = blocks.flat_map(|(block, number)| records(block, number)).collect();
        assert!(data == plain(data.len(), &Data::Random), "{block_bytes}");
    }
}

/// A folder with files of these lengths, no two of them alike, and what else there may be.
fn tree_of(lengths: &[usize]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("b/deeper");
    std::fs::create_dir_all(&below).unwrap();
    for (number, &bytes) in lengths.iter().enumerate() {
        let place = if number % 2 == 0 { folder.path() } else { &below };
        let mut content = vec![0; bytes];
        Payload::open(&Data::Random, number as u64).unwrap().fill(&mut content).unwrap();
        std::fs::write(place.join(format!("{}{number}", "n".repeat(number * 40 + 1))), content)
            .unwrap();
    }
    std::os::unix::fs::symlink("b", folder.path().join("link")).unwrap();
    folder
}

const LENGTHS: [usize; 6] = [0, 1, 511, 70_000, 512, 5000];

fn of_tree(
    framing: Framing,
    block_bytes: usize,
    path: &std::path::Path,
    read_block_bytes: Option<usize>,
    layout: Layout,
) -> Framer {
    let options = TreeOptions { wanted: framing.wanted(), read_block_bytes, output: None };
    let tree = Tree::open(path, options).unwrap();
    Framer::of_tree(framing, block_bytes, tree, layout).unwrap()
}

/// The contents of all files in the order of a walk by names.
fn contents(path: &std::path::Path) -> Vec<u8> {
    let mut names: Vec<_> = std::fs::read_dir(path).unwrap().map(|it| it.unwrap().path()).collect();
    names.sort();
    let content = |path: &std::path::PathBuf| match std::fs::symlink_metadata(path).unwrap() {
        it if it.is_dir() => contents(path),
        it if it.is_file() => std::fs::read(path).unwrap(),
        _ => Vec::new(),
    };
    names.iter().flat_map(content).collect()
}

/// Extracts an archive and holds it against the tree.
fn extract_and_compare(archive: &[u8], path: &std::path::Path) {
    let into = tempfile::tempdir().unwrap();
    let file = into.path().join("archive.tar");
    std::fs::write(&file, archive).unwrap();
    let extract =
        Command::new("tar").arg("-xf").arg(&file).arg("-C").arg(into.path()).output().unwrap();
    assert!(extract.status.success() && extract.stderr.is_empty(), "{extract:?}");
    let same = Command::new("diff")
        .args(["-r", "--no-dereference"])
        .arg(into.path().join(path.strip_prefix("/").unwrap()))
        .arg(path)
        .output()
        .unwrap();
    assert!(same.status.success(), "{same:?}");
}

#[test]
fn a_tree_comes_back_from_its_archive() {
    let folder = tree_of(&LENGTHS);
    for block_bytes in [2048, 10_240, 1 << 20] {
        for read_block_bytes in [None, Some(512), Some(1000), Some(1 << 20)] {
            let layout = layout(1 << 20, 1);
            let framer =
                of_tree(Framing::Tar, block_bytes, folder.path(), read_block_bytes, layout);
            let all = all_blocks(framer);
            assert!(all.len().is_multiple_of(block_bytes) && all.len() < (1 << 20) + block_bytes);
            extract_and_compare(&all, folder.path());
        }
    }
}

#[test]
fn a_tree_that_filemarks_cut_is_all_there_once() {
    let folder = tree_of(&LENGTHS);
    let (block_bytes, file_blocks) = (2048, 9);
    let framer = of_tree(Framing::Tar, block_bytes, folder.path(), None, layout(file_blocks, 100));
    let all = all_blocks(framer);
    let files: Vec<&[u8]> = all.chunks(block_bytes * file_blocks as usize).collect();
    assert!(files.len() > 4, "{}", files.len());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mut joined = Vec::new();
    for file in files {
        std::fs::write(&path, file).unwrap();
        let output = Command::new("tar").arg("-xOf").arg(&path).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        joined.extend(output.stdout);
    }
    assert!(joined == contents(folder.path()));
    // The run that is shorter than the tree ends with an archive, too.
    let short = of_tree(Framing::Tar, block_bytes, folder.path(), None, layout(3, 2));
    let short = all_blocks(short);
    assert_eq!(short.len(), 6 * block_bytes);
    assert!(short[3 * block_bytes - 1024..3 * block_bytes].iter().all(|&byte| byte == 0));
}

#[test]
fn a_tree_is_its_contents_where_nothing_stands_around() {
    let folder = tree_of(&LENGTHS);
    let expected = contents(folder.path());
    for (block_bytes, read_block_bytes) in [(1000, None), (1000, Some(777)), (expected.len(), None)]
    {
        let layout = layout(1 << 20, 1);
        let framer = of_tree(Framing::Raw, block_bytes, folder.path(), read_block_bytes, layout);
        let all = all_blocks(framer);
        assert_eq!(all.len(), expected.len().next_multiple_of(block_bytes));
        assert!(
            all[..expected.len()] == expected && all[expected.len()..].iter().all(|&it| it == 0)
        );
    }
}

#[test]
fn a_tree_in_baculas_blocks() {
    let folder = tree_of(&LENGTHS);
    for block_bytes in [512, 2048, 64_512] {
        let framer = of_tree(Framing::Bacula, block_bytes, folder.path(), None, layout(1 << 20, 1));
        let (mut names, mut data) = (Vec::new(), Vec::new());
        let mut last = 0;
        for (number, block) in all_blocks(framer).chunks(block_bytes).enumerate() {
            let used = word(block, 4) as usize;
            assert_eq!(word(block, 0), crc(&block[4..used]));
            assert_eq!((word(block, 8) as usize, &block[12..16]), (number, &b"BB02"[..]));
            assert!(block[used..].iter().all(|&byte| byte == 0));
            let mut at = 24;
            while at < used {
                let [index, stream, bytes] = [0, 4, 8].map(|field| word(block, at + field));
                let record = &block[at + 12..][..bytes as usize];
                match stream {
                    1 => {
                        last += 1;
                        names.push(record.to_vec());
                    }
                    _ => data.extend_from_slice(record),
                }
                assert_eq!(index, last, "records of a file follow its attributes");
                at += 12 + bytes as usize;
            }
            assert_eq!(at, used);
        }
        assert!(data == contents(folder.path()));
        assert_eq!(names.len(), LENGTHS.iter().filter(|&&bytes| bytes > 0).count());
    }
}

#[test]
fn a_tree_is_looked_at_before_it_is_read() {
    let folder = tree_of(&LENGTHS);
    let content = survey(folder.path(), None).unwrap();
    assert_eq!((content.files, content.bytes), (5, 76_024));
    // Two folders, the tree itself, six files and a link.
    assert_eq!(content.objects, 10);
    // What is written to is no part of what is written.
    let output = ::tree::identity_of_path(&folder.path().join("n0")).unwrap();
    let without = survey(folder.path(), Some(output)).unwrap();
    assert_eq!((without.objects, without.bytes), (9, content.bytes));
    let empty = tree_of(&[0, 0]);
    let error = survey(empty.path(), None).unwrap_err().to_string();
    assert!(error.ends_with("all files in it are empty"), "{error}");
    let error = survey(std::path::Path::new("/nowhere"), None).unwrap_err().to_string();
    assert!(error.contains("/nowhere"), "{error}");
}

#[test]
fn blocks_without_room_are_refused() {
    let check = |framing: Framing, bytes: usize, expected: &str| {
        let payload = Payload::open(&Data::Zeros, 1).unwrap();
        let made = Framer::new(framing, bytes, payload, layout(1, 1));
        let error = made.unwrap_err().to_string();
        assert_eq!(error, format!("a block of {bytes} bytes: {expected}"));
    };
    check(Framing::Raw, 0, "there is nothing in it");
    check(Framing::Tar, 1536, "tar takes multiples of 512 from 2048 on");
    check(Framing::Tar, 65537, "tar takes multiples of 512 from 2048 on");
    check(Framing::Bacula, 36, "Bacula's headers take 36 bytes, and a size has 32 bits");
    assert_eq!("tar".parse::<Framing>().unwrap(), Framing::Tar);
    assert!("cpio".parse::<Framing>().unwrap_err().to_string().contains("raw, tar or bacula"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn records_fill_blocks_of_any_size(block_bytes in 37usize..300_000) {
        let all = written(Framing::Bacula, block_bytes, 1, &Data::Zeros);
        prop_assert!(records(&all, 0).len() < block_bytes);
    }
}
