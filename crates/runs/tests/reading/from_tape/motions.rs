//! How far the tape is wound for the data that are read from it.

use std::sync::{Arc, Mutex};

use sim::tape::AccessOrders;
use sim::tape::pace::{Act, Compression, Pace};

use super::harness::TapeHarness;

/// How far the tape was wound each time, of a drive that takes no time.
pub struct Ways(Arc<Mutex<Vec<i64>>>);

impl Ways {
    /// From now on, for the drive of a harness, whose tape is at its beginning.
    pub fn watch(harness: &TapeHarness) -> Ways {
        let drive = harness.library.drive();
        let seen = Arc::<Mutex<Vec<i64>>>::default();
        drive.set_pace(Box::new(Watch { here: 0, seen: Arc::clone(&seen) }));
        Ways(seen)
    }

    /// Those since the last time that led somewhere.
    pub fn take(&self) -> Vec<i64> {
        let mut ways = std::mem::take(&mut *self.0.lock().unwrap());
        ways.retain(|way| *way != 0);
        ways
    }
}

/// The pace that notes them.
struct Watch {
    here: u64,
    seen: Arc<Mutex<Vec<i64>>>,
}

impl Pace for Watch {
    fn native_bytes(&mut self, block: &[u8], _: Compression) -> u32 {
        block.len() as u32
    }

    fn take(&mut self, act: Act) {
        match act {
            Act::Write { native_bytes, .. } | Act::Read { native_bytes, .. } => {
                self.here += native_bytes;
            }
            Act::Locate(place) => {
                self.seen.lock().unwrap().push(place as i64 - self.here as i64);
                self.here = place;
            }
            Act::Load(_) | Act::Unload => self.here = 0,
            Act::Filemark | Act::Synchronise => {}
        }
    }
}

/// A restore of one file goes to the end, where the index is, and from there to the file: the tape
/// is not wound back to its beginning to count filemarks on.
#[test]
fn one_file_is_found_by_way_of_the_end() {
    for compression in ["none", "zstd:3"] {
        let harness = TapeHarness::new(1, 64 << 20);
        harness.small_tree(300, 90_000);
        let seen = Ways::watch(&harness);
        let report = harness.write(&harness.plain.path("t"), compression, 1 << 20);
        let whole = report.run.target_bytes as i64;
        harness.library.load(0);
        seen.take();
        let path = harness.in_archive("t/folder0/file150");
        let (report, kept) = harness.try_restore("out", &[&path]);
        assert_eq!(kept.warnings(), Vec::<String>::new());
        assert_eq!(report.unwrap().run.files, 1);
        let ways = seen.take();
        let long: Vec<i64> = ways.iter().copied().filter(|way| way.abs() > whole / 20).collect();
        assert!(
            matches!(long[..], [to_end, to_file] if to_end > 0 && to_file < 0),
            "{compression}: {ways:?} of {whole}"
        );
        // And a little way, from the end to the index.
        assert!(ways.iter().filter(|way| **way != 0).count() <= 3, "{compression}: {ways:?}");
    }
}

/// A drive that sorts places knows better than any model where they lie on the tape.
#[test]
fn places_are_visited_in_the_order_that_the_drive_recommends() {
    for offered in [AccessOrders::Unknown, AccessOrders::Offered] {
        let harness = TapeHarness::new(1, 64 << 20);
        let files = harness.small_tree(300, 90_000);
        let report = harness.write(&harness.plain.path("t"), "none", 1 << 20);
        let whole = report.run.target_bytes as i64;
        harness.library.load(0);
        harness.library.drive().change_settings(|settings| settings.access_orders = offered);
        let seen = Ways::watch(&harness);
        let names = ["t/folder0/file021", "t/folder0/file111", "t/folder0/file201"];
        let paths = names.map(|name| harness.in_archive(name));
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let (report, kept) = harness.try_restore("out", &paths);
        assert_eq!(kept.warnings(), Vec::<String>::new());
        assert_eq!(report.unwrap().run.files, 3);
        let restored = harness.restored("out");
        assert!(restored.iter().all(|(path, content)| files[path] == *content), "{offered:?}");
        assert_eq!(restored.len(), 3);
        let long: Vec<bool> =
            seen.take().iter().filter(|way| way.abs() > whole / 20).map(|way| *way > 0).collect();
        // To the index at the end, to the first file, and on; or from the end back, file by file:
        // this drive takes the nearest.
        let expected: &[bool] = match offered {
            AccessOrders::Unknown => &[true, false],
            AccessOrders::Offered => &[true, false, false, false],
        };
        assert_eq!(long, expected, "{offered:?}");
    }
}
