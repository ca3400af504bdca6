//! Real races: threads write, cut, rename and remove files while they are read. The content of the
//! archive is not predictable, but it is an archive, and the run ends.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use archive::chunk::Compression;
use flow::cancel::Cancel;
use tempfile::tempdir;
use testkit::samples::Random;

use crate::harness::{Recorder, Watchdog, options, run};
use crate::index::check_archive;
use crate::trees::text;

/// Changes some file or folder. Errors happen when two of these changes meet.
fn disturb(root: &Path, random: &mut Random) {
    let folder = root.join(random.below(8).to_string());
    let file = folder.join(random.below(30).to_string());
    match random.below(8) {
        0 | 1 => {
            let opened = OpenOptions::new().write(true).open(&file);
            let _ = opened.and_then(|opened| opened.set_len(random.below(4 << 20)));
        }
        2 => drop(fs::write(&file, text(1, random.below(300_000) as usize))),
        3 => drop(fs::remove_file(&file)),
        4 => {
            let _ = fs::remove_file(&file);
            let _ = std::os::unix::fs::symlink("elsewhere", &file);
        }
        5 => {
            let _ = fs::remove_file(&file);
            let _ = fs::create_dir(&file).and_then(|()| fs::remove_dir(&file));
        }
        6 => drop(fs::hard_link(&file, folder.join("link"))),
        _ => {
            let away = root.join("away");
            let _ = fs::rename(&folder, &away).and_then(|()| fs::rename(&away, &folder));
        }
    }
}

#[test]
fn whatever_happens_meanwhile_the_archive_is_valid() {
    let folder = tempdir().unwrap();
    let tree = folder.path().join("tree");
    for number in 0..8 {
        let sub = tree.join(number.to_string());
        fs::create_dir_all(&sub).unwrap();
        for number in 0..30u64 {
            fs::write(sub.join(number.to_string()), text(number, (number * 9973) as usize))
                .unwrap();
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 1..3 {
            let (tree, stop) = (&tree, &stop);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                while !stop.load(Ordering::Relaxed) {
                    disturb(tree, &mut random);
                }
            });
        }
        // Whatever fails below, the disturbers have to end.
        let result = std::panic::catch_unwind(|| {
            for round in 0..12 {
                let target = folder.path().join(format!("archive-{round}"));
                let mut wanted = options(&[&tree], &target);
                wanted.ring_bytes = if round % 2 == 0 { 4 << 20 } else { 64 << 20 };
                wanted.block_bytes = 64 << 10;
                check_archive(&run(&wanted), Compression::None);
                fs::remove_file(&target).unwrap();
            }
        });
        stop.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn a_cancel_at_any_moment_leaves_nothing() {
    let folder = tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..200u64 {
        fs::write(tree.join(number.to_string()), text(number, 50_000)).unwrap();
    }
    let target = folder.path().join("archive");
    for round in 0..40u64 {
        let _watchdog = Watchdog::new(format!("cancel, round {round}"));
        let cancel = Cancel::new();
        let mut wanted = options(&[&tree], &target);
        wanted.compression = match round % 2 {
            0 => Compression::None,
            _ => Compression::Zstd { level: 1 },
        };
        wanted.ring_bytes = 64 << 20;
        let result = std::thread::scope(|scope| {
            let later = cancel.clone();
            scope.spawn(move || {
                std::thread::sleep(std::time::Duration::from_micros(round * 1500));
                later.cancel();
            });
            runs::backup::backup(&wanted, &Recorder::default(), &cancel)
        });
        match result {
            Ok(_) => fs::remove_file(&target).unwrap(),
            Err(error) => assert_eq!(error.to_string(), "cancelled"),
        }
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "only the tree is left: {left:?}");
    }
}
