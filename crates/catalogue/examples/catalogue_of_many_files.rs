//! How large the catalogue of a tree becomes, how long it takes to fill and to ask:
//! `cargo run --release -p catalogue --example catalogue_of_many_files -- 10000000 FOLDER`.
//!
//! The tree is made up: folders of 40 files, a hundred folders in each above them, a third of the
//! names once only and the others drawn from 50,000. Three sets: the first one, one in which
//! nothing changed, and one in which every thousandth file changed. It prints bytes and seconds,
//! and how long questions take with the file in the page cache.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::path::Path;
use std::time::Instant;

use archive::index::{FileLayout, FileRecord, RecordKind};
use archive::member::Timestamp;
use archive::stream::ArchiveOffset;
use catalogue::{Catalogue, CatalogueError, SetDescription};

/// Files of a folder.
const FILES: u64 = 40;
/// Names that several files have.
const SHARED_NAMES: u64 = 50_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let files: u64 = arguments.next().unwrap_or_default().parse().unwrap_or(100_000);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let path = Path::new(&folder).join("catalogue-of-many-files.sqlite");
    let sets = ["first", "unchanged", "0.1 % changed"];
    let begun = Instant::now();
    Catalogue::rebuild(&path, |catalogue| add(catalogue, files, 0)).unwrap();
    tell(sets[0], begun, &path, files);
    for (number, name) in (1..).zip(&sets[1..]) {
        let begun = Instant::now();
        let mut catalogue = Catalogue::open_or_create(&path).unwrap();
        add(&mut catalogue, files, number).unwrap();
        drop(catalogue);
        tell(name, begun, &path, files);
    }
    let catalogue = Catalogue::open(&path).unwrap();
    let some = record(files / 2, 0);
    let some = String::from_utf8(some.path).unwrap();
    let name = some.rsplit('/').next().unwrap().to_owned();
    for (what, glob) in [
        ("path", some.clone()),
        ("name", name.clone()),
        ("glob of an end", format!("*{}", &name[1..])),
        ("glob of a part", format!("*{}*", &name[3..])),
        ("glob of a class", format!("[a-z]*{}", &name[2..])),
        ("glob of a start", "u0123*".to_owned()),
        ("glob of a path", format!("t/a00/b0*/**/{name}")),
    ] {
        let mut best = f64::INFINITY;
        let mut total = 0;
        for _ in 0..5 {
            let begun = Instant::now();
            total = catalogue.find(&glob, 1000).unwrap().unwrap().total;
            best = best.min(begun.elapsed().as_secs_f64());
        }
        println!("{what:32} {:8.2} ms  {total} found", best * 1e3);
    }
    for (set, name) in catalogue.sets().unwrap().iter().zip(sets) {
        let folder = folder_of(files / 2);
        let mut best = f64::INFINITY;
        let mut entries = 0;
        for _ in 0..5 {
            let begun = Instant::now();
            entries = catalogue.folder(set, &folder).unwrap().unwrap().len();
            best = best.min(begun.elapsed().as_secs_f64());
        }
        println!("a folder in the set: {name:11} {:8.2} ms  {entries} objects", best * 1e3);
    }
    std::fs::remove_file(&path).unwrap();
}

fn tell(set: &str, begun: Instant, path: &Path, files: u64) {
    let bytes = path.metadata().unwrap().len();
    println!(
        "{set:14} {:6.1} s  {:6.2} GB  {} bytes a file",
        begun.elapsed().as_secs_f64(),
        bytes as f64 / 1e9,
        bytes / files
    );
}

fn add(catalogue: &mut Catalogue, files: u64, set: u64) -> Result<(), CatalogueError> {
    let description = SetDescription {
        content: [set as u8; 32],
        time_seconds: 1_790_000_000 + set as i64 * 86_400,
        order_seconds: 1_790_000_000 + set as i64 * 86_400,
        place: format!("/backups/{set}.tar").into(),
        compression: "none".to_owned(),
        archive_bytes: files * 1024,
        sources: vec![b"t".to_vec()],
    };
    let top = std::iter::once(folder_record(b"t".to_vec()));
    let below = (0..files).flat_map(|file| folders_at(file).chain([record(file, set)]));
    catalogue.add(&description, top.chain(below).map(Ok::<_, CatalogueError>))?;
    Ok(())
}

/// The folders that begin with a file: each has a hundred below it, the innermost its files.
fn folders_at(file: u64) -> impl Iterator<Item = FileRecord> {
    let folder = file / FILES;
    let levels = [(1_000_000, 5), (10_000, 9), (100, 13), (1, 17)];
    let begins = file.is_multiple_of(FILES);
    let of = move |(every, bytes): (u64, usize)| {
        let is_first = begins && folder.is_multiple_of(every);
        is_first.then(|| folder_record(folder_of(file)[..bytes].to_vec()))
    };
    levels.into_iter().filter_map(of)
}

fn folder_of(file: u64) -> Vec<u8> {
    let folder = file / FILES;
    let [a, b, c] = [folder / 1_000_000, folder / 10_000 % 100, folder / 100 % 100];
    format!("t/a{a:02}/b{b:02}/c{c:02}/d{:02}", folder % 100).into_bytes()
}

fn folder_record(path: Vec<u8>) -> FileRecord {
    FileRecord { path, kind: RecordKind::Directory, ..record(0, 0) }
}

fn record(file: u64, set: u64) -> FileRecord {
    let changed = if set == 2 && file.is_multiple_of(1000) { 1 } else { 0 };
    // A number that looks like none in a row, for sizes, times and names.
    let mixed = (file + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let name = match file % 3 {
        0 => format!("u{mixed:011}.{:02}", mixed % 100),
        _ => format!("shared-{:05}.{:02}", mixed % SHARED_NAMES, mixed % 100),
    };
    let mut path = folder_of(file);
    path.extend_from_slice(format!("/{name}").as_bytes());
    let size_bytes = mixed % 100_000;
    let mut hash = [0; 32];
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = (mixed >> (at % 5 * 8)) as u8 ^ at as u8;
    }
    FileRecord {
        path,
        kind: RecordKind::File {
            size_bytes,
            stored_bytes: size_bytes,
            layout: FileLayout::Whole,
            content_hash: Some(hash),
        },
        header_offset_bytes: ArchiveOffset::new(file * 8192),
        content_offset_bytes: ArchiveOffset::new(file * 8192 + 1024),
        mode: 0o644,
        uid: 1000 + file % 7,
        gid: 1000,
        modified: Timestamp {
            seconds: 1_700_000_000 + (mixed % 50_000_000) as i64 + changed,
            nanoseconds: (mixed % 1_000_000_000) as u32,
        },
        changed: Timestamp { seconds: 1_700_000_000, nanoseconds: 0 },
    }
}
