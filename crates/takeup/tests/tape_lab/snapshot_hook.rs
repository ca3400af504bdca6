//! A job that reads a snapshot of a logical volume, by `contrib/hooks/lvm`, with the kernel's own
//! snapshots in the lab's guest. It needs no tape, so it runs with one of the drives.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{LVM_ONLY_OF, Said, shell, takeup};

/// A volume with ext4 at `on`, and a job that reads its snapshot.
struct Site(tempfile::TempDir);

impl Site {
    fn new() -> Site {
        let site = Site(tempfile::tempdir().unwrap());
        site.shell(&format!(
            "{LVM_ONLY_OF} modprobe ext4; modprobe dm_snapshot; mkdir on sets; \
             truncate -s 96M disk; losetup --find --show disk >disks; \
             lvm_only_of $(cat disks); lvm vgcreate --quiet snapgroup $(cat disks) >&2; \
             lvm lvcreate --quiet -y -Zn -n home -L 40M snapgroup >&2; \
             mkfs.ext4 -q /dev/snapgroup/home; mount /dev/snapgroup/home on"
        ));
        let hook = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/hooks/lvm");
        let hook = |what: &str| {
            let (lvm, point) = (site.at("lvm"), site.at("snapshot"));
            format!(
                "LVM_SYSTEM_DIR={} {} {what} snapgroup/home {}",
                lvm.display(),
                hook.display(),
                point.display()
            )
        };
        // What is written between the snapshot and the backup is not in it.
        let meanwhile =
            format!("echo later >{0}/a; echo new >{0}/b; sync", site.at("on").display());
        let text = format!(
            "[jobs.home]\nsources = ['{}']\nto = '{}/'\n[jobs.home.hooks]\n\
             before = '{}; eval \"${{MEANWHILE:-{meanwhile}}}\"'\nafter-backup = '{}'\n",
            site.at("snapshot").display(),
            site.at("sets").display(),
            hook("start"),
            hook("stop"),
        );
        fs::write(site.at("takeup.toml"), text).unwrap();
        site
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn shell(&self, script: &str) {
        shell(self.0.path(), script).with_code(0);
    }

    fn job(&self, meanwhile: Option<&str>) -> Said {
        let config = self.at("takeup.toml");
        let mut command = takeup(&["run", "home", "--config", config.to_str().unwrap()]);
        command.env("XDG_STATE_HOME", self.at("state"));
        if let Some(meanwhile) = meanwhile {
            command.env("MEANWHILE", meanwhile);
        }
        Said::from(command.output().unwrap())
    }

    /// Whether nothing is left of a snapshot.
    fn check_is_removed(&self) {
        self.shell("! mountpoint -q snapshot; ! LVM_SYSTEM_DIR=$PWD/lvm lvm lvs -a | grep takeup-");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let end = "umount snapshot; umount on; LVM_SYSTEM_DIR=$PWD/lvm lvm vgchange -q -an \
                   snapgroup; losetup --detach $(cat disks)";
        let _ = shell(self.0.path(), &format!("set +e; {end}"));
    }
}

mod on_sim_drive {
    use super::*;

    #[test]
    #[ignore = "runs in the lab: cargo xtask lab"]
    fn a_job_reads_a_snapshot_of_a_volume() {
        let site = Site::new();
        fs::write(site.at("on/a"), "first").unwrap();
        site.job(None).with_code(0);
        site.check_is_removed();
        assert_eq!(fs::read(site.at("on/a")).unwrap(), b"later\n");
        let restored = |into: &str| {
            let (sets, into) = (site.at("sets"), site.at(into));
            let arguments = ["restore", sets.to_str().unwrap(), "--into", into.to_str().unwrap()];
            Said::from(takeup(&arguments).output().unwrap()).with_code(0);
            // The archive has the path of the mount point.
            into.join(site.at("snapshot").strip_prefix("/").unwrap())
        };
        let first = restored("one");
        assert_eq!(fs::read(first.join("a")).unwrap(), b"first");
        assert!(!first.join("b").exists(), "it came after the snapshot");
        // The next set counts on the first, though the snapshot is another device.
        let second = site.job(Some("true")).with_code(0);
        assert!(second.output.contains("set 2: level 1, "), "{}", second.output);
        let second = restored("two");
        assert_eq!(fs::read(second.join("a")).unwrap(), b"later\n");
        assert_eq!(fs::read(second.join("b")).unwrap(), b"new\n");
        // More is written than the snapshot has room for.
        let flood =
            format!("dd if=/dev/zero of={}/c bs=1M count=20 conv=fsync", site.at("on").display());
        let full = site.job(Some(&flood));
        assert_ne!(full.code, Some(0), "{}", full.errors);
        assert!(full.errors.contains("do not use this set"), "{}", full.errors);
        site.check_is_removed();
    }
}
