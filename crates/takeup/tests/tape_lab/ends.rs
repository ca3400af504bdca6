//! Runs that fail in the middle: blocks that the drive cannot read or write.

/// A drive that fails on request.
mod on_sim_drive {
    use crate::trees::{assert_same, intact_files, tree};
    use crate::{backup, cartridge, fresh, list, restore, verify};

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn a_read_error_costs_the_files_in_the_block_only() {
        for compress in ["none", "zstd"] {
            let tree = tree(80, 40, 100_000);
            fresh("scratched", 32);
            let options = ["--block-size", "64k", "--segment-size", "1M", "--compress", compress];
            backup(&tree.path(), &options).with_code(0);
            // A block in the middle of a segment; labels and filemarks shift it only a little.
            cartridge(&["faults", "scratched", "unreadable=21"]);
            let into = tempfile::tempdir().unwrap();
            let said = restore(into.path(), &[]).with_code(1);
            let intact = intact_files(&tree.path(), &tree.restored(into.path()));
            let lost = lost_of(&tree, &intact);
            // One block of 64 KiB, or one chunk of compressed files.
            let most = if compress == "none" { 3 } else { 25 };
            assert!(!lost.is_empty() && lost.len() <= most, "{compress}: lost {lost:?}");
            for name in &lost {
                assert!(said.errors.contains(name.as_str()), "{name} is not in {}", said.errors);
            }
            let verified = verify(&[]).with_code(1);
            assert!(verified.errors.contains(&lost[0]), "{}", verified.errors);
            // The index is on another block: the list is complete.
            list(&[]).with_code(0);
            cartridge(&["faults", "scratched"]);
            let into = tempfile::tempdir().unwrap();
            restore(into.path(), &[]).with_code(0);
            assert_same(&tree.path(), &tree.restored(into.path()));
        }
    }

    fn lost_of(tree: &crate::trees::Tree, intact: &[String]) -> Vec<String> {
        intact_files(&tree.path(), &tree.path())
            .into_iter()
            .filter(|name| !intact.contains(name))
            .collect()
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn a_write_error_ends_the_run() {
        let tree = tree(81, 20, 200_000);
        fresh("worn", 32);
        cartridge(&["faults", "worn", "unwritable=30"]);
        let options = ["--block-size", "64k", "--segment-size", "1M"];
        let said = backup(&tree.path(), &options).with_code(1);
        assert!(said.errors.contains("write error"), "in words: {}", said.errors);
        assert!(said.errors.contains("segment"), "what is safe: {}", said.errors);
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn what_the_drive_lost_is_noticed_before_success_is_printed() {
        let tree = tree(82, 20, 200_000);
        fresh("liar", 32);
        cartridge(&["faults", "liar", "lost-from=40"]);
        let options = ["--block-size", "64k", "--segment-size", "1M"];
        let said = backup(&tree.path(), &options).with_code(1);
        assert!(said.output.is_empty(), "no summary of a success: {}", said.output);
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn a_reset_in_the_middle_is_an_error() {
        let tree = tree(83, 20, 200_000);
        fresh("reset", 32);
        cartridge(&["faults", "reset", "reset-before=30"]);
        let options = ["--block-size", "64k", "--segment-size", "1M"];
        backup(&tree.path(), &options).with_code(1);
        // The drive can be used again, and the next set can be restored completely.
        backup(&tree.path(), &options).with_code(0);
        let into = tempfile::tempdir().unwrap();
        restore(into.path(), &[]).with_code(0);
        assert_same(&tree.path(), &tree.restored(into.path()));
    }
}
