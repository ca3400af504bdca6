//! Chains of sets on several cartridges, by a job that writes over what it does not keep.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::volumes::rack;
use crate::{Said, device, takeup};

/// What a folder holds.
type Contents = BTreeMap<String, Vec<u8>>;

struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    /// A source, four cartridges, and a job that keeps the last two sets.
    fn new(name: &str) -> Site {
        rack(name, 12);
        let site = Site { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(site.path("home")).unwrap();
        let changer = format!(
            "n=$(cat {0}); n=$((n % 4 + 1)); echo $n >{0}; cartridge load {name}$n",
            site.path("number").display()
        );
        fs::write(site.path("number"), "1").unwrap();
        let text = format!(
            "[jobs.homes]\nsources = ['{}']\nto = '{}'\nkeep.last = 2\n\
             verify.after = 'checksums'\nchange-command = '''{changer}'''\n",
            site.path("home").display(),
            device(),
        );
        fs::write(site.path("takeup.toml"), text).unwrap();
        fs::write(site.path("next"), changer).unwrap();
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Said {
        let mut command = takeup(arguments);
        command.env("XDG_STATE_HOME", self.path("state"));
        Said::from(command.output().unwrap())
    }

    fn job(&self, more: &[&str]) -> Value {
        let config = self.path("takeup.toml");
        let arguments = ["run", "homes", "--config", config.to_str().unwrap(), "--json"];
        self.run(&[&arguments[..], more].concat()).with_code(0).json()
    }

    fn restore(&self, more: &[&str], into: &str) -> Contents {
        let (device, folder) = (device(), self.path(into));
        let changer = format!("sh {}", self.path("next").display());
        let arguments = ["restore", &device, "--into", folder.to_str().unwrap(), "--no-sync"];
        let changer = ["--change-command", &changer];
        self.run(&[&arguments[..], &changer, more].concat()).with_code(0);
        contents(&folder.join(self.path("home").strip_prefix("/").unwrap()))
    }
}

fn contents(folder: &Path) -> Contents {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    fs::read_dir(folder).unwrap().map(entry).collect()
}

#[test]
#[ignore = "runs in the lab: cargo xtask lab"]
fn a_chain_goes_over_cartridges_and_back() {
    let site = Site::new("chain");
    let home = site.path("home");
    let mut days: Vec<(Contents, String)> = Vec::new();
    for run in 0..15_usize {
        let mut random = testkit::samples::Random::numbered(run as u64 + 1);
        let content: Vec<u8> = (0..150_000).map(|_| random.index(256) as u8).collect();
        fs::write(home.join(format!("new-{}", run % 4)), content).unwrap();
        let _ = fs::remove_file(home.join(format!("new-{}", (run + 2) % 4)));
        // Longer than a clock of a file system stands still.
        std::thread::sleep(Duration::from_millis(120));
        let full: &[&str] = if run % 3 == 0 { &["--full"] } else { &[] };
        let done = site.job(full);
        let set = &done["backup"]["set"];
        assert_eq!(set["level"], run % 3, "run {run}: {set:#}");
        assert_eq!(done["verified"][0]["sound"], true, "{done:#}");
        days.push((contents(&home), set["set"].as_str().unwrap().to_owned()));
    }
    let account = fs::read_to_string(site.path("state/takeup/tape-sets/media.jsonl")).unwrap();
    assert!(account.contains("\"written_over\""), "four cartridges were enough: {account}");
    for (number, (was, set)) in days.iter().enumerate().rev().take(2) {
        assert_eq!(site.restore(&["--set", set], &format!("out{number}")), *was, "{number}");
    }
    // Nothing is known any more, and the last cartridge is in the drive.
    let (was, set) = days.last().unwrap();
    fs::remove_dir_all(site.path("state")).unwrap();
    let sets = |site: &Site| site.run(&["list", &device(), "--sets"]).output;
    for _ in 0..4 {
        if sets(&site).contains(&set[..12]) {
            break;
        }
        let next = format!("sh {}", site.path("next").display());
        crate::shell(site.folder.path(), &next).with_code(0);
    }
    assert_eq!(site.restore(&[], "last"), *was);
}
