//! The autoloader of docs/tape.md, word for word, with `mtx` on tgtd's medium changer.

/// Only tgtd's target has a changer.
mod on_tgtd_drive {
    use std::path::Path;

    use tempfile::TempDir;

    use crate::trees::{assert_same, tree};
    use crate::{backup, cartridge, restore, shell};

    /// A changer with an arm, the drive and six slots, of which the first four have cartridges of 2
    /// MiB; `next-tape` is the script of the documentation. Prints the changer's device.
    const SET_UP: &str = r#"
        changer() { tgtadm --lld iscsi --mode logicalunit --tid 1 --lun 2 "$@"; }
        mkdir tapes
        for number in 1 2 3 4; do
            tgtimg --op new --device-type tape --barcode "LOADED$number" --size 2 --type data \
                --thin-provisioning --file "tapes/LOADED$number" >/dev/null
        done
        dd if=/dev/zero of=changer bs=1k count=1 status=none
        changer --op new --device-type changer --backing-store "$PWD/changer"
        set_up() { changer --op update --params "$1"; }
        set_up "media_home=$PWD/tapes"
        set_up element_type=1,start_address=1,quantity=1
        set_up element_type=4,start_address=500,quantity=1
        set_up element_type=4,address=500,tid=1,lun=1
        set_up element_type=2,start_address=1000,quantity=6
        for number in 1 2 3 4; do
            set_up "element_type=2,address=$((999 + number)),barcode=LOADED$number,sides=1"
        done
        set_up element_type=3,start_address=2000,quantity=1
        for host in /sys/class/scsi_host/host*/scan; do echo "- - -" >"$host"; done
        tries=100
        until grep -qsx 8 /sys/class/scsi_generic/*/device/type; do
            tries=$((tries - 1)); [ "$tries" -gt 0 ]; busybox usleep 100000
        done
        found=$(grep -lx 8 /sys/class/scsi_generic/*/device/type)
        found=${found%/device/type}
        sed -i "s|^changer=/dev/sg3 |changer=/dev/${found##*/} |" next-tape
        grep -q "^changer=/dev/${found##*/} " next-tape
        chmod +x next-tape
    "#;

    const TAKE_DOWN: &str = r#"
        tgtadm --lld iscsi --mode logicalunit --op delete --tid 1 --lun 2
    "#;

    /// The script between the fences of docs/tape.md.
    fn documented() -> &'static str {
        let page = include_str!("../../../../docs/tape.md");
        let begin = page.find("#!/bin/sh -e\n# next-tape").expect("the page has the script");
        let script = &page[begin..];
        &script[..script.find("```").expect("the fence ends")]
    }

    fn autoloader() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("next-tape"), documented()).unwrap();
        cartridge(&["eject"]);
        shell(folder.path(), SET_UP).with_code(0);
        folder
    }

    fn loaded(folder: &Path) -> String {
        let script = "changer=$(sed -n 's/^changer=\\([^ ]*\\) .*/\\1/p' next-tape)
                      mtx -f \"$changer\" status | sed -n 's/^Data Transfer Element 0:Full.*= //p'";
        shell(folder, script).with_code(0).output.trim_end().to_owned()
    }

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn the_documented_script_changes_volumes() {
        let folder = autoloader();
        let next = folder.path().join("next-tape");
        let next = next.to_str().unwrap();
        // By hand, as a user who tries the script; and the first volume for the backup.
        let first = format!("TAKEUP_DEVICE=$TAPE TAKEUP_VOLUME=1 TAKEUP_ATTEMPT=1 {next}");
        shell(folder.path(), &first).with_code(0);
        assert_eq!(loaded(folder.path()), "LOADED1");
        let tree = tree(31, 24, 180_000);
        let options = ["--change-command", next, "--block-size", "64k", "--json"];
        let done = backup(&tree.path(), &options).with_code(0).json();
        assert_eq!(done["tape"]["volumes"], 3, "{done:#}");
        assert_eq!(loaded(folder.path()), "LOADED3");
        // The reader requests the first volume by itself.
        let into = tempfile::tempdir().unwrap();
        restore(into.path(), &["--change-command", next]).with_code(0);
        assert_same(&tree.path(), &tree.restored(into.path()));
        // For a slot that does not exist the script fails, and the run reports it.
        let wanted = format!("TAKEUP_DEVICE=$TAPE TAKEUP_VOLUME=6 TAKEUP_ATTEMPT=1 {next}");
        assert_ne!(shell(folder.path(), &wanted).code, Some(0));
        shell(folder.path(), TAKE_DOWN).with_code(0);
        crate::fresh("behind", 16);
    }
}
