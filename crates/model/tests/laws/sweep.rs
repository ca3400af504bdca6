//! What holds for any tree that is read from a disk with heads.

use model::disk::{DiskChanges, DiskParameters};
use model::sweep::{FetchLimits, FilesOnDisk};
use proptest::prelude::*;

fn limits(window_bytes: u64) -> FetchLimits {
    FetchLimits {
        window_bytes,
        window_files: 32 << 10,
        fetched_bytes_max: (window_bytes / 64).clamp(256 << 10, 8 << 20),
        several_bytes_max: 8 << 20,
    }
}

fn disk(number: usize, capacity_bytes: u64) -> DiskParameters {
    let disks = [DiskParameters::sata7200(), DiskParameters::sas15k(), DiskParameters::array(4)];
    let changes = DiskChanges { capacity_bytes: Some(capacity_bytes), ..DiskChanges::default() };
    disks[number].clone().with(&changes)
}

/// Places are drawn (3.5 % in what was seen), and large windows are played by a part of their files
/// (7 %): two times may differ by that much the wrong way.
const DRAWN: f64 = 1.10;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No tree is faster than all disks at their outer edge, or than their link.
    #[test]
    fn no_tree_is_faster_than_the_platters(
        number in 0usize..3, files in 1u64..200_000, file_bytes in 1u64..20 << 20,
        window in 24u32..33, spread in 0u32..40,
    ) {
        let disk = disk(number, 1 << 38);
        let tree = FilesOnDisk { files, file_bytes, spread_bytes: 1 << spread };
        let most = (disk.server_bytes_per_second * disk.servers as u64)
            .min(disk.link_bytes_per_second) as f64;
        let least_ns = files as f64 * file_bytes as f64 / most * 1e9;
        let limits = limits(1 << window);
        for ns in [tree.read_ns(&disk, &limits), tree.by_name_ns(&disk, &limits)] {
            prop_assert!(ns as f64 >= least_ns, "{ns} {least_ns}");
        }
        prop_assert!(tree.stream_ns(&disk) as f64 >= least_ns * 0.999);
    }

    #[test]
    fn more_memory_is_never_slower_and_more_files_never_faster(
        number in 0usize..3, files in 64u64..100_000, file_bytes in 1u64..250_000,
        window in 24u32..32,
    ) {
        let disk = disk(number, 1 << 38);
        let tree = FilesOnDisk { files, file_bytes, spread_bytes: 0 };
        let ns = tree.read_ns(&disk, &limits(1 << window)) as f64;
        let larger_ns = tree.read_ns(&disk, &limits(2 << window)) as f64;
        prop_assert!(larger_ns <= ns * DRAWN, "{ns} {larger_ns}");
        let twice = FilesOnDisk { files: 2 * files, ..tree };
        prop_assert!(twice.read_ns(&disk, &limits(1 << window)) as f64 >= ns);
    }

    /// A window that holds the tree makes nearly a stream of it, if nothing lies between its files.
    #[test]
    fn a_tree_that_fits_is_read_in_one_way(
        number in 0usize..3, files in 4000u64..20_000, file_bytes in 4096u64..100_000,
    ) {
        let disk = disk(number, 1 << 38);
        let tree = FilesOnDisk { files, file_bytes, spread_bytes: 0 };
        let [swept, by_name] =
            [tree.read_ns(&disk, &limits(4 << 30)), tree.by_name_ns(&disk, &limits(4 << 30))];
        prop_assert!(by_name as f64 > 1.5 * swept as f64, "{by_name} {swept}");
    }
}

#[test]
fn few_files_and_large_ones_are_not_fetched() {
    let tree = FilesOnDisk { files: 1000, file_bytes: 1_000_000, spread_bytes: 0 };
    assert!(tree.is_fetched(&limits(1 << 30)));
    assert!(!tree.is_fetched(&limits(12 << 20)), "larger than a part of the window");
    assert!(!FilesOnDisk { files: 15, ..tree }.is_fetched(&limits(1 << 30)), "no look");
    assert!(!FilesOnDisk { file_bytes: 9 << 20, ..tree }.is_fetched(&limits(1 << 30)));
    assert_eq!(tree.window_files(&limits(100 << 20)), 104);
}
