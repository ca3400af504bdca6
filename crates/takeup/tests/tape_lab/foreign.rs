//! Tapes that Takeup did not write.

use crate::trees::{Tree, assert_same, tree};
use crate::{fresh, list, restore, rewind, shell};

/// A shell script writes the tree `tree` to a blank tape; then takeup lists and restores it.
fn foreign(name: &str, write: &str) {
    let tree = small_tree();
    fresh(name, 32);
    shell(tree.folder(), write).with_code(0);
    rewind();
    let listed = list(&[]).with_code(0);
    assert!(listed.output.contains("tree/folder3/file 0003"), "{}", listed.output);
    rewind();
    let into = tempfile::tempdir().unwrap();
    restore(into.path(), &[]).with_code(0);
    assert_same(&tree.path(), &into.path().join("tree"));
}

fn small_tree() -> Tree {
    tree(60, 14, 60_000)
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn gnu_tar_with_any_blocking_factor() {
    // 512 B to 1 MiB, all of which tgtd's drive supports.
    for factor in ["1", "20", "128", "512", "2048"] {
        foreign("blocking", &format!("tar -b {factor} -cf $TAPE tree"));
    }
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn gnu_tar_compressed() {
    foreign("gzip", "tar -b 20 -czf - tree | dd of=$TAPE bs=10k iflag=fullblock status=none");
    foreign("program", "tar -b 128 -I 'zstd -q' -cf $TAPE tree");
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn bsdtar() {
    foreign("bsdtar", "bsdtar -b 64 -cf $TAPE tree");
    foreign("bsdtar", "bsdtar -b 126 --format=gnutar -czf $TAPE tree");
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_file_behind_others() {
    let tree = small_tree();
    fresh("files", 32);
    let write = "mkdir other; echo other >other/file
                 tar -b 20 -cf $TAPE other; tar -b 512 -cf $TAPE tree; tar -b 1 -cf $TAPE other";
    shell(tree.folder(), write).with_code(0);
    let into = tempfile::tempdir().unwrap();
    restore(into.path(), &["--file", "1"]).with_code(0);
    assert_same(&tree.path(), &into.path().join("tree"));
    assert!(!into.path().join("other").exists());
}

mod on_sim_drive {
    use super::*;

    // The last block is short. tgtd's drive returns half of a block correctly if the buffer is
    // larger than the block and smaller than two of them (docs/lab.md).
    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn a_short_block_of_compressed_data() {
        let write = "tar -cf - tree | zstd -q | dd of=$TAPE bs=256k iflag=fullblock status=none";
        foreign("zstd", write);
    }

    // tgtd's drive reports a block with another size than the fixed one as a corrupted medium.
    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn fixed_mode_that_somebody_left_behind() {
        foreign("fixed", "tar -b 20 -cf $TAPE tree; mt setblk 512");
        foreign("fixed", "mt setblk 10240; tar -b 20 -cf $TAPE tree; mt setblk 1024");
        foreign("fixed", "mt setblk 512; tar -b 128 -cf $TAPE tree; mt setblk 0");
        shell(std::path::Path::new("/"), "mt setblk 0").with_code(0);
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn blocks_of_eight_mebibytes() {
        foreign("huge", "tar -b 16384 -cf $TAPE tree");
    }
}
