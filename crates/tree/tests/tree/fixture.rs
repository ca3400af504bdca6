//! A naive reader of a tree (recursion over paths, everything read), and a plain backup and restore
//! with this crate. They are independent of each other.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive::member::{Extent, Member, MemberKind};
use tree::*;

/// Everything about one object that a restore must restore.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    pub kind: char,
    pub mode: u32,
    pub owner: (u32, u32),
    pub modified: (i64, i64),
    pub device: u64,
    /// Content or link target.
    pub bytes: Vec<u8>,
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// The first path of the same file.
    pub first_name: Vec<u8>,
}

pub type Snapshot = BTreeMap<Vec<u8>, Look>;

pub fn snapshot(root: &Path) -> Snapshot {
    let mut objects = BTreeMap::new();
    let mut first_names = HashMap::new();
    look(root, b".".to_vec(), &mut objects, &mut first_names);
    objects
}

fn look(
    path: &Path,
    name: Vec<u8>,
    objects: &mut Snapshot,
    first_names: &mut HashMap<(u64, u64), Vec<u8>>,
) {
    let metadata = fs::symlink_metadata(path).unwrap();
    let is = metadata.file_type();
    let (kind, bytes) = if is.is_dir() {
        ('d', Vec::new())
    } else if is.is_symlink() {
        ('l', fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec())
    } else if is.is_fifo() {
        ('p', Vec::new())
    } else if is.is_char_device() {
        ('c', Vec::new())
    } else if is.is_block_device() {
        ('b', Vec::new())
    } else {
        assert!(is.is_file(), "{path:?}");
        ('f', fs::read(path).unwrap())
    };
    let identity = (metadata.dev(), metadata.ino());
    let first_name = first_names.entry(identity).or_insert_with(|| name.clone()).clone();
    objects.insert(
        name.clone(),
        Look {
            kind,
            mode: if kind == 'l' { 0o777 } else { metadata.mode() & 0o7777 },
            owner: (metadata.uid(), metadata.gid()),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            device: if matches!(kind, 'c' | 'b') { metadata.rdev() } else { 0 },
            bytes,
            attributes: attributes(path),
            first_name,
        },
    );
    if kind == 'd' {
        let mut children: Vec<_> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap()).collect();
        children.sort_by_key(|entry| entry.file_name());
        for child in children {
            let below = match &name[..] {
                b"." => child.file_name().as_bytes().to_vec(),
                above => [above, b"/", child.file_name().as_bytes()].concat(),
            };
            look(&child.path(), below, objects, first_names);
        }
    }
}

fn attributes(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut list = vec![0; 65536];
    let length = rustix::fs::llistxattr(path, &mut list[..]).unwrap_or(0);
    let mut found: Vec<_> = list[..length]
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0; 65536];
            let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
            (name.to_vec(), value[..length].to_vec())
        })
        .collect();
    found.sort();
    found
}

/// One archived object with its content, as the archive would hold it.
#[derive(Clone, Debug)]
pub struct Archived {
    pub member: Member,
    pub content: Vec<u8>,
    /// The place of each data run.
    pub runs: Vec<Extent>,
}

/// Walks everything into one list.
pub fn walk(sources: &[PathBuf], options: ScanOptions) -> (Vec<Entry>, Vec<ScanProblem>) {
    let mut scan = Scan::start(sources, options).unwrap();
    let (mut entries, mut problems, mut items) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let progress = scan.next_batch(&mut items);
        assert!(items.len() <= BATCH_ITEMS_MAX + 1);
        for item in items.drain(..) {
            match item {
                Item::Entry(entry) => entries.push(entry),
                Item::Folder(folder) => {
                    entries.push(folder.entry);
                    if let FolderContents::Listed(listed) = &folder.contents {
                        let objects = 0..listed.first_directory();
                        entries.extend(objects.map(|index| Entry::of(listed, index)));
                    }
                }
                Item::Problem(problem) => problems.push(*problem),
            }
        }
        match progress {
            Progress::More => {}
            Progress::End => return (entries, problems),
            Progress::Stopped => panic!("nobody stopped it"),
        }
    }
}

pub fn paths(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| String::from_utf8(entry.path()).unwrap()).collect()
}

pub fn capturer() -> Capturer {
    Capturer::new(CaptureOptions::default(), Arc::new(Accounts::load()))
}

pub fn object(capture: Capture) -> Captured {
    match capture {
        Capture::Object(captured) => captured,
        Capture::Skipped(skip) => panic!("not captured: {skip:?}"),
    }
}

/// Backs a tree up into memory, with paths from its root.
pub fn backup(root: &Path) -> Vec<Archived> {
    let options = ScanOptions::default();
    let (entries, problems) = walk(&[root.to_path_buf()], options);
    assert!(problems.is_empty(), "{problems:?}");
    let (prefix, _) = archive_path(root);
    let mut capturer = capturer();
    let mut links = HardLinks::new();
    let mut all: Vec<Archived> = Vec::new();
    let mut used = None;
    for entry in &entries {
        let captured = object(capturer.capture(entry, used.take()).unwrap());
        assert!(captured.attributes_problem.is_none());
        assert!(captured.turned_from.is_none());
        let may_be_sparse = captured.may_be_sparse();
        let mut member = captured.member.clone();
        member.path = match captured.member.path.strip_prefix(&prefix[..]).unwrap() {
            b"" => b".".to_vec(),
            below => below[1..].to_vec(),
        };
        used = Some(captured.member);
        let (mut content, mut runs) = (Vec::new(), Vec::new());
        if let Some(generation) = captured.generation {
            let (identity, number) = (captured.identity, all.len() as u64);
            let link = links.note(identity, generation, captured.links, number).unwrap();
            if let Link::Again(first) = link {
                let target = all[first as usize].member.path.clone();
                member.kind = MemberKind::HardLink { target };
                member.size_bytes = 0;
            }
        }
        if let (MemberKind::File, Some(file)) = (&member.kind, captured.file) {
            let size_bytes = member.size_bytes;
            if may_be_sparse {
                member.sparse = sparse_map(&file, size_bytes).unwrap().map(|map| map.extents);
            }
            let whole = Extent { offset_bytes: 0, length_bytes: size_bytes };
            runs = member.sparse.clone().unwrap_or_else(|| vec![whole]);
            let file = fs::File::from(file);
            for run in &runs {
                let mut bytes = vec![0; run.length_bytes as usize];
                file.read_exact_at(&mut bytes, run.offset_bytes).unwrap();
                content.extend_from_slice(&bytes);
            }
            assert_eq!(recheck(&file, &captured.version).unwrap(), FileChange::None);
        }
        all.push(Archived { member, content, runs });
    }
    all
}

pub fn destination(into: &Path, options: DestinationOptions) -> Arc<Destination> {
    Destination::open(into, options, Arc::new(Accounts::load())).unwrap()
}

pub fn restore_one(worker: &mut Worker, archived: &Archived) -> Result<(), RestoreError> {
    let problems = if archived.member.kind == MemberKind::File {
        let Created::File(mut file) = worker.create_file(&archived.member)? else {
            return Ok(());
        };
        let mut from = 0;
        for run in &archived.runs {
            let to = from + run.length_bytes as usize;
            file.write_at(run.offset_bytes, &archived.content[from..to]).unwrap();
            from = to;
        }
        file.finish(&archived.member.path)?
    } else {
        worker.create(&archived.member)?
    };
    assert!(problems.is_empty(), "{problems:?}");
    Ok(())
}

/// Restores everything, files by two workers in turn.
pub fn restore(all: &[Archived], into: &Path, options: DestinationOptions) {
    let destination = destination(into, options);
    let mut workers = [destination.worker(), destination.worker()];
    for (number, archived) in all.iter().enumerate() {
        restore_one(&mut workers[number % 2], archived).unwrap();
    }
    destination.finish(|problem| panic!("{problem}: {}", problem.source));
}

pub fn file(path: &str, content: &[u8]) -> Archived {
    let whole = Extent { offset_bytes: 0, length_bytes: content.len() as u64 };
    let mut member = member(path, MemberKind::File);
    member.size_bytes = content.len() as u64;
    Archived { member, content: content.to_vec(), runs: vec![whole] }
}

pub fn other(path: &str, kind: MemberKind) -> Archived {
    Archived { member: member(path, kind), content: Vec::new(), runs: Vec::new() }
}

pub fn link(path: &str, target: &str) -> Archived {
    other(path, MemberKind::SymbolicLink { target: target.into() })
}

pub fn hard_link(path: &str, target: &str) -> Archived {
    other(path, MemberKind::HardLink { target: target.into() })
}

fn member(path: &str, kind: MemberKind) -> Member {
    let is_directory = kind == MemberKind::Directory;
    Member {
        path: path.as_bytes().to_vec(),
        kind,
        mode: if is_directory { 0o755 } else { 0o644 },
        uid: rustix::process::geteuid().as_raw().into(),
        gid: rustix::process::getegid().as_raw().into(),
        user: Vec::new(),
        group: Vec::new(),
        modified: archive::member::Timestamp { seconds: 1_000_000_000, nanoseconds: 5 },
        size_bytes: 0,
        sparse: None,
        xattrs: Vec::new(),
        acl_access: None,
        acl_default: None,
    }
}
