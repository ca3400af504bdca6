//! Sharded sets of random trees, with ranks lost at random steps.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::thread;

use archive::chunk::Compression;
use flow::cancel::Cancel;
use many::clock::OwnClock;
use many::communicator::Communicator;
use many::conduct::{Moved, attend, quit};
use many::journal::{JOURNAL, Journal, Line};
use many::local::Local;
use many::message::Message;
use many::name::Name;
use many::ranks::Ranks;
use many::set::{Progress, SetAnswer, SetRead, SetRequest, Tell, back_up, read_set, work};
use many::shards::{Reading, ShardOptions};
use many::units::Mounts;
use proptest::prelude::*;
use testkit::samples::Random;

struct Mute;

impl Tell for Mute {
    fn say(&self, _: &str) {}
    fn progress(&self, _: Progress) {}
}

fn ranks(by: Local) -> Ranks {
    let hosts = (0..by.size()).map(|rank| format!("host{rank}")).collect();
    Ranks { by: Rc::new(by), clock: Rc::new(OwnClock::default()), hosts }
}

fn options(folder: &Path) -> ShardOptions {
    ShardOptions {
        folder: folder.to_owned(),
        compression: Compression::None,
        mounts: Mounts::Enter,
        threads: None,
    }
}

/// Runs `lead` on rank 0 and attends on all others. `lost` is a rank and the call at which it goes.
fn job<T: Send>(
    size: usize,
    lost: Option<(usize, u64)>,
    options: &ShardOptions,
    lead: impl FnOnce(&Ranks) -> T + Send,
) -> T {
    let mut group: Vec<Local> = Local::group(size);
    if let Some((rank, calls)) = lost {
        let going = group.remove(rank % size).lost_after(calls);
        group.insert(rank % size, going);
    }
    let mut group = group.into_iter();
    let first = group.next().unwrap();
    thread::scope(|scope| {
        for by in group {
            scope.spawn(move || {
                let ranks = ranks(by);
                let host = ranks.hosts[ranks.by.rank()].clone();
                let own = |order: Message, moved: &Moved, cancel: &Cancel| {
                    work(order, options, &host, moved, cancel)
                };
                // A rank that is lost, or that loses the others, ends with an error.
                let _ = attend(&ranks, &own, &Cancel::new());
            });
        }
        let ranks = ranks(first);
        let result = lead(&ranks);
        let _ = quit(&ranks);
        result
    })
}

fn backed_up(
    source: &Path,
    into: &Path,
    size: usize,
    lost: Option<(usize, u64)>,
) -> Result<SetAnswer, String> {
    let options = options(into);
    let request = SetRequest {
        sources: vec![Name::from(source.as_os_str())],
        options: options.clone(),
        shard_bytes: 2 << 20,
        at_once: usize::MAX,
    };
    job(size, lost, &options, |ranks| {
        back_up(ranks, &request, &Mute, &Cancel::new()).map_err(|error| error.to_string())
    })
}

fn read(from: &Path, size: usize, reading: &Reading) -> Result<SetRead, String> {
    let options = options(from);
    job(size, None, &options, |ranks| {
        read_set(ranks, &options, reading, usize::MAX, &Mute, &Cancel::new())
            .map_err(|error| error.to_string())
    })
}

/// A tree with links, holes, odd names, empty folders and old times.
fn make(root: &Path, seed: u64) {
    let mut random = Random::numbered(seed);
    let mut folders = vec![root.to_owned()];
    let mut files: Vec<PathBuf> = Vec::new();
    for at in 0..12 {
        let holder = folders[random.below(folders.len() as u64) as usize].clone();
        let folder =
            holder.join(["plain", "with space", "ü\n", "-x"][at % 4].to_owned() + &at.to_string());
        fs::create_dir(&folder).unwrap();
        folders.push(folder);
    }
    for at in 0..60 {
        let holder = &folders[random.below(folders.len() as u64) as usize];
        let path = holder.join(format!("file {at}"));
        match random.below(8) {
            0 if !files.is_empty() => {
                let of = &files[random.below(files.len() as u64) as usize];
                fs::hard_link(of, &path).unwrap();
            }
            1 => symlink("../elsewhere", &path).unwrap(),
            2 => {
                let file = fs::File::create(&path).unwrap();
                file.set_len(1 << 20).unwrap();
                std::os::unix::fs::FileExt::write_all_at(&file, b"end", (1 << 20) - 3).unwrap();
                files.push(path);
            }
            _ => {
                let bytes = vec![at as u8; random.below(300_000) as usize];
                fs::write(&path, bytes).unwrap();
                files.push(path);
            }
        }
    }
    for (at, path) in files.iter().chain(folders.iter().rev()).enumerate() {
        let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000 + at as u64);
        fs::File::open(path).unwrap().set_modified(old).unwrap();
        let mode = if path.is_dir() { 0o755 } else { [0o644, 0o600, 0o4755][at % 3] };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// Everything below a folder: kind, mode, times, content, and which names are one file.
fn seen(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut first: BTreeMap<u64, PathBuf> = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let status = fs::symlink_metadata(&path).unwrap();
        let name = path.strip_prefix(root).unwrap().to_owned();
        let mut told = format!("{:o} {} {}", status.mode(), status.mtime(), status.mtime_nsec());
        if status.is_dir() {
            let mut names: Vec<PathBuf> =
                fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()).collect();
            names.sort();
            waiting.extend(names.into_iter().rev());
        } else if status.is_symlink() {
            told = format!("link {:?}", fs::read_link(&path).unwrap());
        } else {
            let of = first.entry(status.ino()).or_insert_with(|| name.clone());
            let content = fs::read(&path).unwrap();
            let sum: u64 = content.iter().map(|byte| u64::from(*byte)).sum();
            told += &format!(" {} {sum} of {}", content.len(), of.display());
        }
        found.insert(name, told);
    }
    found
}

/// Extracts all shards with plain tar, in the order of their names.
fn extracted(shards: &Path, into: &Path) {
    let mut files: Vec<PathBuf> = fs::read_dir(shards)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(".tar"))
        .collect();
    files.sort();
    for file in files {
        let status = Command::new("tar").arg("xpf").arg(file).arg("-C").arg(into).status().unwrap();
        assert!(status.success());
    }
}

fn below(root: &Path, source: &Path) -> PathBuf {
    root.join(source.strip_prefix("/").unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    /// Whichever rank is lost at whichever step: what is sealed stays and is written once, a later
    /// run does the rest, and the tree comes back through plain tar and through Takeup.
    #[test]
    fn a_lost_rank_costs_only_what_it_had_in_hand(
        seed in any::<u64>(), size in 1usize..5,
        losses in prop::collection::vec((0usize..5, 0u64..400), 0..4),
    ) {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let (source, shards) = (at("source"), at("shards"));
        fs::create_dir(&source).unwrap();
        make(&source, seed);
        let before = seen(&source);
        for loss in &losses {
            let _ = backed_up(&source, &shards, size, Some(*loss));
            let Ok(Some(state)) = Journal::read(&shards) else { continue };
            for sealed in state.sealed.values() {
                many::shards::check(sealed, &shards).unwrap();
            }
        }
        let sealed = Journal::read(&shards).unwrap().map_or(0, |it| it.sealed.len() as u64);
        let answer = backed_up(&source, &shards, size, None).unwrap();
        // The last shard is written again if others are missing.
        prop_assert!(answer.kept_shards == sealed || answer.kept_shards + 1 == sealed);
        let text = fs::read_to_string(shards.join(JOURNAL)).unwrap();
        let mut times = BTreeMap::new();
        for line in text.lines() {
            if let Line::Sealed(sealed) = serde_json::from_str(line).unwrap() {
                *times.entry(sealed.shard).or_insert(0) += 1;
            }
        }
        times.pop_last();
        prop_assert!(times.values().all(|count| *count == 1), "{times:?}");
        prop_assert_eq!(&seen(&source), &before);
        for name in ["by tar", "by takeup"] {
            fs::create_dir(at(name)).unwrap();
        }
        extracted(&shards, &at("by tar"));
        prop_assert_eq!(&seen(&below(&at("by tar"), &source)), &before);
        let verified = read(&shards, size, &Reading::Verify).unwrap();
        prop_assert_eq!((verified.damaged.len(), verified.answer.warnings), (0, 0));
        let into = Reading::Restore { into: at("by takeup"), replaces: false };
        let restored = read(&shards, size, &into).unwrap();
        prop_assert_eq!((&restored.damaged, &restored.answer.first_warnings), (&vec![], &vec![]));
        prop_assert_eq!(&seen(&below(&at("by takeup"), &source)), &before);
    }
}

#[test]
fn damage_of_a_shard_is_found_and_the_shard_written_anew() {
    let home = tempfile::tempdir().unwrap();
    let (source, shards) = (home.path().join("source"), home.path().join("shards"));
    fs::create_dir(&source).unwrap();
    make(&source, 7);
    let first = backed_up(&source, &shards, 3, None).unwrap();
    assert!(first.shards > 3, "{first:?}");
    let path = shards.join("shard-000002.tar");
    let mut bytes = fs::read(&path).unwrap();
    bytes[5000] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let read_back = read(&shards, 3, &Reading::Verify).unwrap();
    assert!(read_back.answer.warnings > 0, "{read_back:?}");
    fs::remove_file(&path).unwrap();
    let read_back = read(&shards, 3, &Reading::Verify).unwrap();
    assert!(read_back.damaged[0].contains("shard-000002.tar"), "{:?}", read_back.damaged);
    let second = backed_up(&source, &shards, 3, None).unwrap();
    assert_eq!(second.kept_shards, first.shards - 2);
    assert_eq!(read(&shards, 2, &Reading::Verify).unwrap().answer.warnings, 0);
}

#[test]
fn what_is_not_this_backup_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("source")).unwrap();
    fs::write(at("source").join("file"), "content").unwrap();
    let error = read(&at("source"), 1, &Reading::Verify).unwrap_err();
    assert!(error.contains("no set of shards"), "{error}");
    backed_up(&at("source"), &at("shards"), 1, None).unwrap();
    fs::create_dir(at("other")).unwrap();
    let error = backed_up(&at("other"), &at("shards"), 1, None).unwrap_err();
    assert!(error.contains("has the shards of another backup"), "{error}");
    let error = backed_up(&at("missing"), &at("new"), 2, None).unwrap_err();
    assert!(error.contains("missing") && !at("new").exists(), "{error}");
}

/// A unit that is gone or cannot be read costs a warning, and not the backup.
#[test]
fn what_vanishes_between_the_plan_and_its_shard_is_a_warning() {
    let home = tempfile::tempdir().unwrap();
    let (source, shards) = (home.path().join("source"), home.path().join("shards"));
    fs::create_dir(&source).unwrap();
    make(&source, 3);
    // The plan is made, and the job is lost before anything is sealed.
    let planned = (1..200).find(|calls| {
        let _ = backed_up(&source, &shards, 1, Some((0, *calls)));
        Journal::read(&shards).is_ok_and(|state| state.is_some_and(|it| it.plan_is_whole))
    });
    assert!(planned.is_some());
    let state = Journal::read(&shards).unwrap().unwrap();
    // All of a shard, as a large folder that is removed.
    let is_whole = |unit: &&many::units::Unit| {
        unit.part == many::units::UnitPart::Whole && unit.path.to_path() != source
    };
    let shard = state.open_shards().find(|shard| shard.units.iter().any(|it| is_whole(&it)));
    let gone: Vec<_> = shard.unwrap().units.iter().filter(is_whole).collect();
    for unit in &gone {
        fs::remove_dir_all(unit.path.to_path()).unwrap();
    }
    let gone = gone[0];
    let answer = backed_up(&source, &shards, 2, None).unwrap();
    assert!(answer.warnings > 0, "{answer:?}");
    let name = gone.path.to_path().file_name().unwrap().to_string_lossy().into_owned();
    let told = format!("{:?}", answer.first_warnings);
    assert!(told.contains(name.trim_end_matches(char::is_numeric).trim()), "{told}");
}

#[test]
fn places_that_lie_in_each_other_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let source = home.path().join("source");
    fs::create_dir(&source).unwrap();
    make(&source, 4);
    let error = backed_up(&source, &source.join("shards"), 1, None).unwrap_err();
    assert!(error.contains("would lie in the source"), "{error}");
    assert!(!source.join("shards").exists());
    fs::create_dir(home.path().join("old")).unwrap();
    fs::write(home.path().join("old/shard-000009.tar"), "").unwrap();
    let error = backed_up(&source, &home.path().join("old"), 1, None).unwrap_err();
    assert!(error.contains("no journal"), "{error}");
}

/// Links in the last shard take the place of what this restore has made, and of nothing else.
#[test]
fn what_was_there_before_a_restore_stays() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let source = at("source");
    fs::create_dir(&source).unwrap();
    make(&source, 5);
    backed_up(&source, &at("shards"), 2, None).unwrap();
    let mine: Vec<PathBuf> = seen(&source)
        .into_keys()
        .filter(|name| fs::symlink_metadata(source.join(name)).unwrap().is_file())
        .map(|name| below(&at("into"), &source).join(name))
        .collect();
    for path in &mine {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "mine").unwrap();
    }
    let reading = Reading::Restore { into: at("into"), replaces: false };
    let restored = read(&at("shards"), 2, &reading).unwrap();
    assert!(restored.answer.warnings >= mine.len() as u64);
    assert!(mine.iter().all(|path| fs::read(path).unwrap() == b"mine"));
}
