//! Trial restores, and the history of runs.

use crate::{Place, archive, damage};

#[test]
fn some_files_come_back_and_are_compared() {
    let place = Place::new("");
    let full = place.job(&[], 0);
    place.write(1, "changed");
    place.job(&[], 0);
    let trial = ["run", "homes", "--trial", "--config", "takeup.toml"];
    let temporary = place.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let try_it = |code: i32| {
        let mut command = place.takeup();
        let output = command.args(trial).arg("--json").env("TMPDIR", &temporary).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "nothing is left");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let sound = try_it(0);
    // Of both archives of the chain: 4 files of 700 bytes, and the changed one.
    assert_eq!((&sound["files"], &sound["bytes"]), (&5.into(), &2807.into()));
    let said = place.text(&trial, 0);
    assert!(said.starts_with("came back as it was: 5 files, 2.81 kB"), "{said}");
    damage(&archive(&full));
    let damaged = try_it(1);
    assert!(damaged["wrong"].to_string().contains("home/3.txt"), "{damaged}");
    let journal = std::fs::read_to_string(place.path("state/takeup/journal.jsonl")).unwrap();
    assert_eq!(journal.matches("\"event\":\"tried\"").count(), 3);
}

#[test]
fn runs_are_listed_as_they_ended() {
    let place = Place::new("");
    let said = place.text(&["catalog", "jobs"], 1);
    assert!(said.contains("has no run"), "{said}");
    place.job(&[], 0);
    place.configure("hooks.before = 'exit 1'\n");
    place.job(&[], 1);
    let history = place.json(&["catalog", "jobs", "homes"], 0);
    let runs = history["jobs"][0]["runs"].as_array().unwrap();
    assert_eq!((&runs[0]["result"], &runs[1]["result"]), (&"done".into(), &"failed".into()));
    assert_eq!(runs[0]["files"], 5);
    let said = place.text(&["catalog", "jobs", "--most", "1"], 0);
    assert!(said.contains("failed") && said.lines().count() == 2, "{said}");
}
