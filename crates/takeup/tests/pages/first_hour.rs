//! `docs/first-hour.md` is true: each door is walked by a reader who has nothing, and every command
//! prints what the page says but for times, sizes and identities.

use std::path::Path;
use std::process::Command;

use testkit::typed_page::Reader;

/// A reader with an empty home.
struct Newcomer {
    folder: tempfile::TempDir,
}

impl Newcomer {
    fn walk(&self, door: &str) {
        let home = self.folder.path();
        let shown = home.display().to_string();
        let program = Path::new(env!("CARGO_BIN_EXE_takeup")).parent().unwrap().display();
        let variable = |(name, place): (&str, &str)| (name.to_owned(), format!("{shown}/{place}"));
        let places = [
            ("XDG_STATE_HOME", ".local/state"),
            ("XDG_CONFIG_HOME", ".config"),
            ("TAKEUP_STATE_DIR", ".local/state"),
            ("TAKEUP_RUN_DIR", ".run"),
        ];
        let reader = Reader {
            home: home.to_owned(),
            path: format!("{program}:/usr/sbin:/usr/bin:/sbin:/bin"),
            environment: places.into_iter().map(variable).collect(),
            reads_as: vec![(shown, "/home/eva".to_owned())],
        };
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/first-hour.md");
        assert!(reader.follow(&page, Some(door)) >= 3, "the door has its commands");
    }
}

/// What a door that was left early has mounted is unmounted, so that its programs end.
impl Drop for Newcomer {
    fn drop(&mut self) {
        let postmaster = self.folder.path().join("db/data/postmaster.pid");
        if let Some(pid) = std::fs::read_to_string(postmaster).ok().as_deref().and_then(first) {
            let _ = Command::new("kill").args(["-QUIT", pid]).status();
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        for mounted in ["srv", "db", "drive", "play"] {
            let place = self.folder.path().join(mounted);
            let _ = Command::new("umount").arg("--lazy").arg(place).output();
        }
    }
}

fn first(text: &str) -> Option<&str> {
    text.lines().next()
}

fn newcomer() -> Newcomer {
    Newcomer { folder: tempfile::tempdir().unwrap() }
}

#[test]
fn a_tape_drive() {
    testkit::require!(Fuse, GnuTar, MtSt);
    newcomer().walk("I have a tape drive");
}

#[test]
fn a_slow_backup() {
    testkit::require!(Fuse, LoopDevices, Root, Ext4, GnuTar, KernelSettings);
    newcomer().walk("My backup is slow");
}

#[test]
fn a_slow_database() {
    testkit::require!(Fuse, LoopDevices, Root, Ext4, Postgresql, Tracefs);
    newcomer().walk("My database is slow");
}

#[test]
fn hardware_that_is_planned() {
    newcomer().walk("I plan hardware");
}
