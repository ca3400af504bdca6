//! A job whose sets go to tape: which media it writes over, what comes back after each kind of
//! loss, and which media a restore asks for.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::drive::Drive;
use crate::{Place, TICK};

/// Cartridges of the site.
const MEDIA: u32 = 5;

/// A place with a drive and a changer of small cartridges.
struct Site {
    place: Place,
    drive: Drive,
}

impl Site {
    /// With this behind the begin of the job.
    fn new(more: &str, options: &[&str]) -> Site {
        let site = Site { place: Place::new(""), drive: Drive::with(options) };
        let (home, tape) = (site.place.path("home"), site.drive.tape());
        let changer = site.changer(MEDIA);
        let text = format!(
            "[jobs.homes]\nsources = ['{}']\nto = '{}'\nchange-command = '{changer}'\n{more}",
            home.display(),
            tape.display(),
        );
        fs::write(site.place.path("takeup.toml"), text).unwrap();
        for number in 1..=MEDIA {
            site.load(number);
        }
        site.load(1);
        site
    }

    fn cartridge(&self, number: u32) -> PathBuf {
        self.drive.folder().join(format!("m{number}"))
    }

    fn load(&self, number: u32) {
        let cartridge = self.cartridge(number);
        let drive = self.drive.path();
        let new: &[&str] = if cartridge.exists() { &[] } else { &["--new"] };
        let arguments = ["sim", "load", drive.to_str().unwrap(), cartridge.to_str().unwrap()];
        self.place.text(&[&arguments[..], new].concat(), 0);
    }

    /// Loads so many cartridges one after the other, and knows nothing of what is on them.
    fn changer(&self, media: u32) -> String {
        let script = self.drive.folder().join("next");
        let (folder, drive) = (self.drive.folder().display(), self.drive.path());
        let text = format!(
            "#!/bin/sh -e\nnumber=$(cat {folder}/number)\n\
             number=$((number % {media} + 1))\necho $number >{folder}/number\n\
             [ -e {folder}/m$number ] || exec {0} $TAKEUP_ATTEMPT\n\
             {takeup} sim load {drive} {folder}/m$number\n\
             echo $TAKEUP_ACTION m$number >>{folder}/asked\n",
            script.display(),
            takeup = env!("CARGO_BIN_EXE_takeup"),
            drive = drive.display(),
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(self.drive.folder().join("number"), "1").unwrap();
        script.to_str().unwrap().to_owned()
    }

    /// Restores a set; what came back, and the exit code.
    fn restore(&self, set: &str, into: &str, more: &[&str]) -> (Contents, Option<i32>, String) {
        let (tape, changer) = (self.drive.tape(), self.drive.folder().join("next"));
        let (tape, changer) = (tape.to_str().unwrap(), changer.to_str().unwrap());
        let which: &[&str] = if set.is_empty() { &["--job", "homes"] } else { &["--set", set] };
        let arguments = ["restore", tape, "--into", into, "--change-command", changer];
        let output = self.place.run(&[&arguments[..], which, more].concat());
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let home = self.place.path(into).join(self.place.path("home").strip_prefix("/").unwrap());
        (contents(&home), output.status.code(), text)
    }

    /// Which cartridge begins with the label of a medium.
    fn cartridge_of(&self, medium: &str) -> u32 {
        let has = |number: &u32| {
            let bytes = fs::read(self.cartridge(*number)).unwrap();
            let label = format!("medium={medium}");
            bytes.windows(label.len()).any(|window| window == label.as_bytes())
        };
        (1..=MEDIA).find(has).unwrap()
    }
}

type Contents = BTreeMap<String, Vec<u8>>;

fn contents(folder: &Path) -> Contents {
    let Ok(names) = fs::read_dir(folder) else { return Contents::new() };
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    names.map(entry).collect()
}

fn noise(seed: u32, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes()).finalize_xof().fill(&mut content);
    content
}

/// A day of the month.
struct Day {
    was: Contents,
    set: String,
    chain: Vec<String>,
}

/// Runs the job so many times, with changes before each, a full set every seven.
fn month(site: &Site, runs: u32) -> Vec<Day> {
    let home = site.place.path("home");
    let mut days: Vec<Day> = Vec::new();
    for run in 0..runs {
        fs::write(home.join(format!("new-{}", run % 9)), noise(run, 300_000)).unwrap();
        fs::write(home.join("every-day"), noise(1000 + run, 50_000)).unwrap();
        let _ = fs::remove_file(home.join(format!("new-{}", (run + 5) % 9)));
        std::thread::sleep(TICK);
        let was = contents(&home);
        let full: &[&str] = if run % 7 == 0 { &["--full"] } else { &[] };
        let answer = site.place.job(full, 0);
        let set = &answer["backup"]["set"];
        let chain: Vec<String> = set["chain"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(chain.len() as u32, run % 7 + 1, "run {run}: {set:#}");
        days.push(Day { was, set: set["set"].as_str().unwrap().to_owned(), chain });
    }
    days
}

fn media(site: &Site) -> Vec<Value> {
    let account = site.place.path("state/takeup/tape-sets/media.jsonl");
    let text = fs::read_to_string(account).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_month_of_runs_over_five_tapes() {
    testkit::require!(Fuse);
    let is_long = std::env::var_os("TAKEUP_LONG").is_some();
    // A set takes 4 MiB: labels, data and index are a block each.
    let site = Site::new("keep.last = 4\n", &["--time", "none", "--capacity", "14M"]);
    let days = month(&site, if is_long { 62 } else { 20 });
    // Media were written over, so that five are enough, and every kept day comes back.
    let written_over = media(&site).iter().filter(|it| it["event"] == "written_over").count();
    assert!(written_over >= 1, "{:#?}", media(&site));
    for (number, day) in days.iter().enumerate().rev().take(4) {
        let (found, code, text) = site.restore(&day.set, &format!("out-{number}"), &[]);
        assert_eq!(code, Some(0), "day {number}: {text}");
        assert_eq!(found, day.was, "day {number}");
    }
    let status = site.place.status(0);
    assert_eq!(status["overdue"], false);
    let told = site.place.json(&["catalog", "media", "--config", "takeup.toml"], 0);
    let told = told["media"].as_array().unwrap();
    let kept = told.iter().filter(|medium| medium["free"] == false).count();
    assert!((1..=5).contains(&kept) && told.len() <= 5, "{told:#?}");
    // What is known here is lost: the tapes have it. The last one is in the drive.
    let last = days.last().unwrap();
    let chain = last.chain.len();
    fs::remove_dir_all(site.place.path("state")).unwrap();
    let mut tries = 0;
    let found = loop {
        // Whoever restores puts in the tape that was written last; here, one after the other.
        tries += 1;
        site.load(tries);
        let listed = site.place.run(&["list", site.drive.tape().to_str().unwrap(), "--sets"]);
        if String::from_utf8(listed.stdout).unwrap().contains(&last.set[..12]) {
            break site.restore("", "last", &[]);
        }
    };
    assert_eq!(found.1, Some(0), "{}", found.2);
    assert!(found.2.contains(&format!("from a chain of {chain} archives")), "{}", found.2);
    assert_eq!(found.0, last.was);
    // Whatever is not known is kept, so that the run needs a new tape; it goes on from that in the
    // drive.
    let drive = site.drive.path();
    let text = format!(
        "#!/bin/sh -e\n{} sim load {} {} --new\n",
        env!("CARGO_BIN_EXE_takeup"),
        drive.display(),
        site.cartridge(MEDIA + 1).display(),
    );
    fs::write(site.drive.folder().join("next"), text).unwrap();
    site.place.write(1, "after the loss");
    std::thread::sleep(TICK);
    let next = site.place.job(&[], 0);
    assert_eq!(next["backup"]["set"]["chain"].as_array().unwrap().len(), chain + 1, "{next:#}");
    // That set has the runs before it, which the journal had lost.
    let runs = site.place.json(&["catalog", "jobs"], 0)["jobs"][0]["runs"].as_array().map(Vec::len);
    assert_eq!(runs, Some((days.len() - 1).min(20) + 1), "those before the last set, and this one");
    // What the tapes hold is read again.
    site.changer(MEDIA + 1);
    for number in 1..=MEDIA + 1 {
        site.load(number);
        let tape = site.drive.tape();
        let read = ["catalog", "media", "--config", "takeup.toml", "--read"];
        site.place.text(&[&read[..], &[tape.to_str().unwrap()]].concat(), 0);
    }
    let told = site.place.json(&["catalog", "media", "--config", "takeup.toml"], 0);
    // Of a medium that was written over since, its sets do not say so.
    assert!(told["media"].as_array().unwrap().len() as u32 > MEDIA, "{told:#}");
    let set = next["backup"]["set"]["set"].as_str().unwrap();
    let (found, code, text) = site.restore(set, "next", &[]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(found, contents(&site.place.path("home")));
}

#[test]
fn a_lost_tape_and_a_damaged_one() {
    testkit::require!(Fuse);
    let site = Site::new("", &["--time", "none", "--capacity", "9M"]);
    // The file of a cartridge holds as they are only bytes that cannot be compressed.
    fs::write(site.place.path("home/stable"), noise(77, 100_000)).unwrap();
    let days = month(&site, 6);
    let last = days.last().unwrap();
    // The medium with the first set is lost: what later sets have comes back, the rest is named.
    let first = media(&site)[0]["medium"].as_str().unwrap().to_owned();
    let lost = site.cartridge_of(&first);
    let kept = fs::read(site.cartridge(lost)).unwrap();
    site.load(lost % MEDIA + 1);
    fs::remove_file(site.cartridge(lost)).unwrap();
    let (found, code, text) = site.restore(&last.set, "refused", &[]);
    assert_eq!((code, found.len()), (Some(1), 0), "{text}");
    assert!(text.contains("volume 1 of set "), "{text}");
    let (found, code, text) = site.restore(&last.set, "part", &["--partial"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("which cannot be read: volume 1 of set"), "{text}");
    assert!(found.contains_key("every-day") && found.len() < last.was.len(), "{text}");
    assert!(found.iter().all(|(name, content)| last.was.get(name) == Some(content)));
    // It is found again, and a block of it cannot be read: what is in it is named.
    let mut damaged = kept.clone();
    let needle = &last.was["stable"][50_000..52_000];
    let at = damaged.windows(needle.len()).position(|window| window == needle).unwrap();
    damaged[at + 1000] ^= 1;
    fs::write(site.cartridge(lost), damaged).unwrap();
    let (found, code, text) = site.restore(&last.set, "damaged", &[]);
    assert_ne!(code, Some(0), "{text}");
    assert!(text.contains("home/stable: lost"), "{text}");
    assert!(!found.contains_key("stable") && found.contains_key("every-day"), "{text}");
    assert!(found.iter().all(|(name, content)| last.was.get(name) == Some(content)));
    fs::write(site.cartridge(lost), kept).unwrap();
    let (found, code, text) = site.restore(&last.set, "whole", &[]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(found, last.was);
}

#[test]
fn the_planned_media_are_those_that_are_asked_for() {
    testkit::require!(Fuse);
    let options = ["--speed-up", "100", "--capacity", "9M", "--compression", "off"];
    let site = Site::new("", &options);
    let days = month(&site, 6);
    let last = days.last().unwrap();
    let tape = site.drive.tape();
    let plan = ["restore", tape.to_str().unwrap(), "--dry-run", "--set", &last.set, "--into", "x"];
    let plan = site.place.json(&plan, 0);
    let planned = plan["media"].as_array().unwrap();
    assert!(planned.len() >= 2 && plan["unknown"].as_array().unwrap().is_empty(), "{plan:#}");
    let cartridges: Vec<String> = planned
        .iter()
        .map(|step| format!("read m{}", site.cartridge_of(step["medium"].as_str().unwrap())))
        .collect();
    assert!(!site.place.path("x").exists(), "a plan restores nothing");
    // Each planned one is asked for, in this order, and no other is of use.
    fs::write(site.drive.folder().join("asked"), "").unwrap();
    let (found, code, text) = site.restore(&last.set, "out", &[]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(found, last.was);
    let asked = fs::read_to_string(site.drive.folder().join("asked")).unwrap();
    let mut of_use = asked.lines().filter(|line| cartridges.iter().any(|it| it == line));
    for cartridge in &cartridges {
        let next = of_use.next();
        // The first may have been in the drive.
        assert!(next == Some(cartridge) || *cartridge == cartridges[0], "{asked}: {cartridges:?}");
    }
    let said = site.place.text(
        &["restore", tape.to_str().unwrap(), "--dry-run", "--job", "homes", "--into", "x", "none"],
        1,
    );
    assert!(said.contains("none of the requested paths is in the set"), "{said}");
}

#[test]
fn a_set_on_tape_is_read_back_against_its_source() {
    testkit::require!(Fuse);
    let site = Site::new("verify.after = 'source'\n", &["--time", "none", "--capacity", "64M"]);
    for level in [0, 1] {
        let done = site.place.job(&[], 0);
        assert_eq!(done["backup"]["set"]["level"], level);
        let read = &done["verified"][0];
        assert_eq!(
            (&read["sound"], &read["source"]["changed"]),
            (&true.into(), &0.into()),
            "{read}"
        );
        site.place.write(1, "changed");
        std::thread::sleep(TICK);
    }
}

#[test]
fn the_tape_comes_out_after_it_was_read_back() {
    testkit::require!(Fuse);
    let more = "eject = true\nverify.after = 'checksums'\n";
    let site = Site::new(more, &["--time", "none", "--capacity", "14M"]);
    fs::write(site.place.path("home").join("file"), noise(1, 100_000)).unwrap();
    let answer = site.place.job(&[], 0);
    assert_eq!(answer["verified"][0]["sound"], true, "{answer:#}");
    let is_empty = || {
        let listed = site.place.run(&["list", site.drive.tape().to_str().unwrap(), "--sets"]);
        String::from_utf8(listed.stderr).unwrap().contains("no medium in the drive")
    };
    assert!(is_empty());
    // A run that writes nothing leaves it where it is.
    site.load(1);
    let text = fs::read_to_string(site.place.path("takeup.toml")).unwrap();
    fs::write(site.place.path("takeup.toml"), text + "hooks.before = 'false'\n").unwrap();
    site.place.job(&[], 1);
    assert!(!is_empty());
}
