//! Random trees: whatever the names, kinds, sizes, links and times, GNU tar and bsdtar give the
//! same tree back.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use archive::chunk::Compression;
use flow::backend::Engine;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::Config;
use runs::sweep::ReadOrder;
use rustix::fs::FileType;
use tempfile::tempdir;
use testkit::samples::noise;

use crate::harness::{options, run_clean};
use crate::index::check_archive;
use crate::snapshot::{assert_same, snapshot};
use crate::tools::{bsd_extract, gnu_extract};
use crate::trees::{mknod, set_modified, text, write_sparse};

#[derive(Clone, Debug)]
enum What {
    Directory,
    File(usize),
    Sparse {
        runs: Vec<(u64, usize)>,
        end: u64,
    },
    Symbolic(Vec<u8>),
    /// Another name of one of the files so far.
    Hard(usize),
    Fifo,
}

#[derive(Clone, Debug)]
struct Node {
    parent: usize,
    name: Vec<u8>,
    what: What,
    mode: u32,
    modified: (i64, i64),
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_filter("no part of a name", |byte| ![0, b'/'].contains(byte));
    let any_bytes = vec(byte, 1..40);
    let long = (200usize..255).prop_map(|length| vec![b'l'; length]);
    let name = prop_oneof![6 => any_bytes, 1 => long, 3 => "[a-z]{1,8}".prop_map(String::into)];
    name.prop_filter("stands for a directory", |name| *name != b"." && *name != b"..")
}

fn what() -> impl Strategy<Value = What> {
    let around_units = (0usize..40, 0usize..3)
        .prop_map(|(units, off)| What::File((units * 512 + off).saturating_sub(1)));
    let runs = vec((0u64..64, 1usize..20_000), 0..6).prop_map(|runs| {
        let runs: Vec<_> = runs.into_iter().map(|(at, length)| (at * 32_768, length)).collect();
        let end = runs.iter().map(|(at, length)| at + *length as u64).max().unwrap_or(0);
        What::Sparse { end: end + 100_000, runs }
    });
    prop_oneof![
        3 => Just(What::Directory),
        6 => around_units,
        2 => (0usize..400_000).prop_map(What::File),
        2 => runs,
        2 => vec(1u8..=255, 1..300).prop_map(What::Symbolic),
        2 => (0usize..1000).prop_map(What::Hard),
        1 => Just(What::Fifo),
    ]
}

fn node() -> impl Strategy<Value = Node> {
    let modified = (1i64..1_700_000_000, 0i64..1_000_000_000);
    (0usize..1000, name(), what(), 0u32..0o10000, modified).prop_map(
        |(parent, name, what, mode, modified)| Node { parent, name, what, mode, modified },
    )
}

fn make(root: &Path, nodes: &[Node]) {
    let mut directories = vec![root.to_path_buf()];
    let mut files: Vec<PathBuf> = Vec::new();
    let mut made = Vec::new();
    for (seed, node) in nodes.iter().enumerate() {
        let parent = &directories[node.parent % directories.len()];
        let path = parent.join(OsStr::from_bytes(&node.name));
        if path.symlink_metadata().is_ok() || path.as_os_str().len() > 3500 {
            continue;
        }
        match &node.what {
            What::Directory => {
                std::fs::create_dir(&path).unwrap();
                directories.push(path.clone());
            }
            What::File(size) => {
                std::fs::write(&path, text(seed as u64, *size)).unwrap();
                files.push(path.clone());
            }
            What::Sparse { runs, end } => {
                write_sparse(&path, *end, runs);
                files.push(path.clone());
            }
            What::Symbolic(target) => symlink(OsStr::from_bytes(target), &path).unwrap(),
            What::Hard(number) => match files.get(number % files.len().max(1)) {
                Some(file) => std::fs::hard_link(file, &path).unwrap(),
                None => continue,
            },
            What::Fifo => mknod(&path, FileType::Fifo, 0),
        }
        made.push((path, node));
    }
    for (path, node) in made.iter().rev() {
        if !matches!(node.what, What::Symbolic(_)) {
            let readable = if testkit::fully!(Root) { 0 } else { 0o700 };
            let mode = PermissionsExt::from_mode(node.mode | readable);
            std::fs::set_permissions(path, mode).unwrap();
        }
    }
    // Children first: making them has touched their directories.
    for (path, node) in made.iter().rev() {
        set_modified(path, node.modified.0, node.modified.1);
    }
}

/// Cases of each property; `TAKEUP_LONG=1` makes many.
fn cases() -> u32 {
    if std::env::var_os("TAKEUP_LONG").is_some() { 500 } else { 24 }
}

/// Objects whose headers alone are larger than a reservation of a small ring.
fn large_headers(tree: &Path) {
    let value = noise(3, 2500);
    for name in ["folder", "file", "full"] {
        let path = tree.join(name);
        match name {
            "folder" => std::fs::create_dir(&path).unwrap(),
            "file" => std::fs::write(&path, b"").unwrap(),
            _ => std::fs::write(&path, b"full").unwrap(),
        }
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::lsetxattr(&path, "user.large", &value, flags)
            .expect("the folder for temporary files has extended attributes");
    }
    std::fs::hard_link(tree.join("full"), tree.join("l".repeat(250))).unwrap();
    symlink("t".repeat(4000), tree.join("link")).unwrap();
    mknod(&tree.join("p".repeat(255)), FileType::Fifo, 0);
    write_sparse(&tree.join("hole"), 1 << 20, &[]);
    let many: Vec<_> = (0..200).map(|run| (run * 8192, 100)).collect();
    write_sparse(&tree.join("holes"), 2 << 20, &many);
}

proptest! {
    #![proptest_config(Config { cases: cases(), failure_persistence: None, ..Config::default() })]

    #[test]
    fn random_trees_come_back(
        nodes in vec(node(), 0..60),
        compression in prop_oneof![
            Just(Compression::None),
            Just(Compression::Zstd { level: 1 }),
            Just(Compression::Gzip { level: 1 }),
        ],
        block_units in 1usize..200,
        read_threads in 1usize..9,
        engine in prop_oneof![Just(Engine::Auto), Just(Engine::Threads)],
        read_order in prop_oneof![
            Just(ReadOrder::Auto),
            Just(ReadOrder::Physical),
            Just(ReadOrder::Inode),
        ],
        use_bsdtar in any::<bool>(),
    ) {
        let folder = tempdir().unwrap();
        let tree = folder.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        make(&tree, &nodes);
        let target = folder.path().join("archive");
        let mut wanted = options(&[&tree], &target);
        wanted.compression = compression;
        wanted.block_bytes = block_units * 512;
        wanted.read_threads = Some(read_threads);
        wanted.engine = engine;
        wanted.read_order = read_order;
        let finished = run_clean(&wanted);
        let into = folder.path().join("into");
        let mut expected = snapshot(&tree);
        let name = tree.strip_prefix("/").unwrap();
        if use_bsdtar {
            bsd_extract(&target, &into);
        } else {
            gnu_extract(&target, &into);
        }
        let mut actual = snapshot(&into.join(name));
        if use_bsdtar {
            // Whether libarchive makes holes depends on its version.
            forget_holes(&mut expected);
            forget_holes(&mut actual);
        }
        assert_same(&expected, &actual, &format!("{wanted:?}"));
        check_archive(&finished, compression);
    }

    #[test]
    fn any_ring_gives_the_same_archive(
        sizes in vec(0usize..60_000, 1..20),
        block_units in 1usize..40,
        blocks in 4usize..20,
        engine in prop_oneof![Just(Engine::Auto), Just(Engine::Threads)],
        start_fill_percent in 0u8..=100,
    ) {
        let folder = tempdir().unwrap();
        let tree = folder.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        for (number, size) in sizes.iter().enumerate() {
            std::fs::write(tree.join(number.to_string()), noise(number as u64, *size)).unwrap();
        }
        large_headers(&tree);
        let mut wanted = options(&[&tree], &folder.path().join("large"));
        wanted.block_bytes = block_units * 512;
        let finished = run_clean(&wanted);
        check_archive(&finished, Compression::None);
        let expected = finished.bytes();
        wanted.ring_bytes = blocks * wanted.block_bytes;
        wanted.engine = engine;
        wanted.start_fill_percent = start_fill_percent;
        wanted.target = folder.path().join("small").into();
        prop_assert!(run_clean(&wanted).bytes() == expected);
    }
}

fn forget_holes(tree: &mut crate::snapshot::Snapshot) {
    for object in tree.values_mut() {
        if let crate::snapshot::Kind::File { has_holes, .. } = &mut object.kind {
            *has_holes = false;
        }
    }
}
