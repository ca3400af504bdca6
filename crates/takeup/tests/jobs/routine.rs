//! Runs of a job over several days, and what `status` makes of them.

use crate::{Place, archive, damage};

#[test]
fn a_job_goes_on_incrementally_until_a_full_set_is_due() {
    let place = Place::new("full-every = '1 hour'\n");
    let first = place.job(&[], 0);
    assert_eq!(first["result"], "done");
    assert_eq!(first["backup"]["set"]["level"], 0);
    place.write(1, "changed");
    let second = place.job(&[], 0);
    assert_eq!(second["backup"]["set"]["level"], 1);
    assert_eq!(second["backup"]["set"]["job"], "homes");
    let full = place.job(&["--full"], 0);
    assert_eq!(full["backup"]["set"]["level"], 0);
    // A tenth of the period is the slack of timers.
    place.configure("full-every = '1 second'\n");
    std::thread::sleep(std::time::Duration::from_secs(2));
    let due = place.job(&[], 0);
    assert_eq!(due["backup"]["set"]["level"], 0);
}

#[test]
fn success_is_what_can_be_restored() {
    let place = Place::new("");
    let none = place.status(2);
    assert_eq!((&none["overdue"], &none["sets"]), (&true.into(), &0.into()));
    let full = place.job(&[], 0);
    place.write(1, "changed");
    place.job(&[], 0);
    let fine = place.status(0);
    assert_eq!((&fine["overdue"], &fine["sets"]), (&false.into(), &2.into()));
    assert!(fine["last_verified_success_seconds"].is_null(), "{fine}");
    assert_eq!(fine["last_result"], "done");
    // With the full set both days are gone, whatever the journal says.
    std::fs::remove_file(archive(&full)).unwrap();
    let lost = place.status(2);
    assert_eq!((&lost["overdue"], &lost["sets"]), (&true.into(), &0.into()));
    assert!(lost["last_success_seconds"].is_null(), "{lost}");
    let said = place.text(&["status", "--config", "takeup.toml"], 2);
    assert!(said.contains("PROBLEM: there is no set that can be restored"), "{said}");
    assert!(said.contains("which is not in the folder"), "{said}");
    assert!(said.contains("run it: takeup run homes --config takeup.toml\n"), "{said}");
    let named = place.path("it's mine.toml");
    std::fs::rename(place.path("takeup.toml"), &named).unwrap();
    let said = place.text(&["status", "--config", "it's mine.toml"], 2);
    let typed = r"run it: takeup run homes --config 'it'\''s mine.toml'";
    assert!(said.contains(typed), "{said}");
}

#[test]
fn verified_is_what_was_read_back() {
    let place = Place::new("verify.after = 'checksums'\n");
    let first = place.job(&[], 0);
    assert_eq!(first["verified"][0]["sound"], true);
    let fine = place.status(0);
    assert_eq!(fine["last_success_seconds"], fine["last_verified_success_seconds"]);
    // An incremental set counts when its whole chain was read.
    place.configure("");
    place.write(1, "changed");
    place.job(&[], 0);
    let later = place.status(0);
    assert_eq!(later["last_verified_success_seconds"], fine["last_success_seconds"]);
    place.text(&["verify", "sets/", "--job", "homes"], 0);
    let all = place.status(0);
    assert_eq!(all["last_verified_success_seconds"], all["last_success_seconds"]);
    // What is damaged is no success any more, once somebody has looked.
    damage(&archive(&first));
    place.text(&["verify", "sets/"], 1);
    let damaged = place.status(2);
    assert!(damaged["last_verified_success_seconds"].is_null(), "{damaged}");
    assert!(damaged["problems"].to_string().contains("was found to be damaged"), "{damaged}");
}

#[test]
fn a_promise_reads_what_was_not_read_for_long() {
    let place = Place::new("verify.within = '1 second'\n");
    let first = place.job(&[], 0);
    assert_eq!(first["verified"].as_array().unwrap().len(), 1, "late before the next run");
    place.write(1, "changed");
    std::thread::sleep(std::time::Duration::from_millis(2100));
    let behind = place.status(2);
    assert_eq!(behind["unread"], 1);
    let second = place.job(&[], 0);
    assert_eq!(second["verified"].as_array().unwrap().len(), 2);
    // A long promise reads a little each time, the longest unread first, and goes round.
    place.configure("verify.within = '10 days'\n");
    std::thread::sleep(std::time::Duration::from_millis(2100));
    let third = place.job(&[], 0);
    let read = third["verified"].as_array().unwrap();
    assert_eq!(read.len(), 1, "{read:?}");
    assert_eq!(read[0]["set"], first["backup"]["set"]["set"]);
    place.status(0);
}

#[test]
fn what_replaces_others_has_to_be_good() {
    let place = Place::new("");
    place.job(&["--full"], 0);
    let kept = place.archives();
    // The run that is verified reads a target that gives other bytes than it took: here the archive
    // is damaged by a command between the backup and its verification.
    let hook = "for set in sets/*; do sed -i 's/file 3/file 4/' $set; done";
    place.configure(&format!(
        "keep.last = 1\nverify.after = 'checksums'\nhooks.after-backup = \"{hook}\"\n"
    ));
    let bad = place.job(&["--full"], 1);
    assert_eq!(bad["result"], "failed");
    assert_eq!(bad["verified"][0]["sound"], false);
    assert_eq!(bad["forgotten"].as_array().unwrap().len(), 0);
    assert!(kept.iter().all(|path| path.exists()), "the older set stays");
    let said = place.text(&["status", "--config", "takeup.toml"], 2);
    assert!(said.contains("PROBLEM: the last run failed"), "{said}");
}

#[test]
fn a_rule_removes_what_it_does_not_keep() {
    let place = Place::new("keep.last = 2\n");
    let mut removed = 0;
    for day in 0..5 {
        place.write(1, &format!("day {day}"));
        let answer = place.job(&["--full"], 0);
        removed += answer["forgotten"].as_array().unwrap().len();
    }
    assert_eq!((removed, place.archives().len()), (3, 2));
    assert_eq!(place.status(0)["sets"], 2);
}

#[test]
fn quotas_are_told_and_kept() {
    let place = Place::new("quota.set = '1k'\nquota.kept = '1M'\n");
    let warned = place.job(&[], 2);
    assert_eq!(warned["result"], "warned");
    let said = warned["warnings"].to_string();
    assert!(said.contains("the quota of a set is 1.02 kB; most of it in "), "{said}");
    assert!(said.contains("/home/ (3.50 kB)"), "{said}");
    place.configure("quota = { kept = '2k', exceeded = 'refuse' }\n");
    let refused = place.job(&[], 1);
    assert!(refused["error"].as_str().unwrap().contains("its quota is 2.05 kB"), "{refused}");
    assert_eq!(place.archives().len(), 1);
    let said = place.status(2);
    assert!(said["problems"].to_string().contains("their quota is 2.05 kB"), "{said}");
}

#[test]
fn a_source_that_is_empty_is_refused_and_told() {
    let place = Place::new("");
    place.job(&[], 0);
    for number in 0..5 {
        std::fs::remove_file(place.path(&format!("home/{number}.txt"))).unwrap();
    }
    let refused = place.job(&[], 1);
    assert!(refused["error"].as_str().unwrap().contains("is empty, and was not"), "{refused}");
    let said = place.status(2);
    assert!(said["problems"][0].as_str().unwrap().starts_with("the last run failed"), "{said}");
    assert!(!said["last_success_seconds"].is_null());
    place.job(&["--source-may-change"], 0);
    place.status(0);
}

#[test]
fn a_journal_that_cannot_be_written_costs_a_warning() {
    let place = Place::new("");
    place.job(&[], 0);
    std::fs::remove_dir_all(place.path("state")).unwrap();
    std::fs::write(place.path("state"), "a file in the place of the folder").unwrap();
    let warned = place.job(&[], 2);
    assert!(warned["warnings"].to_string().contains("journal"), "{warned}");
    assert_eq!(place.archives().len(), 2);
    // Without it nobody knows whether an empty folder is the right one.
    std::fs::rename(place.path("sets"), place.path("gone")).unwrap();
    let said = place.text(&["run", "homes", "--config", "takeup.toml"], 1);
    assert!(said.contains("nobody knows whether it had one"), "{said}");
}

#[test]
fn what_is_wrong_in_the_file_has_its_place() {
    let place = Place::new("compres = 'zstd'\n");
    for command in [&["check-config"][..], &["run", "homes"], &["status"], &["units", "homes"]] {
        let said = place.text(&[command, &["--config", "takeup.toml"]].concat(), 1);
        assert!(said.contains("takeup.toml:4:1: unknown field `compres`"), "{said}");
        assert!(said.contains("hint: `takeup check-config --help`"), "{said}");
    }
    place.configure("");
    let said = place.text(&["run", "home", "--config", "takeup.toml"], 1);
    assert!(said.contains("has no job home; its jobs are homes"), "{said}");
    std::fs::remove_dir_all(place.path("home")).unwrap();
    let said = place.text(&["check-config", "--config", "takeup.toml"], 2);
    assert!(said.contains("PROBLEM: the source"), "{said}");
    let said = place.text(&["check-config", "--config", "missing.toml"], 1);
    assert!(said.contains("`takeup check-config --help` shows one to begin with"), "{said}");
}

#[test]
fn a_target_that_is_not_there_is_refused() {
    let place = Place::new("hooks.before = 'echo frozen >>log'\n");
    let first = place.job(&[], 0);
    let name = archive(&first).file_name().unwrap().to_str().unwrap().to_owned();
    // As a disk that is not mounted: the folder is empty, or the one above it is.
    std::fs::rename(place.path("sets"), place.path("unplugged")).unwrap();
    for made in [false, true] {
        if made {
            std::fs::create_dir(place.path("sets")).unwrap();
        }
        let said = place.text(&["run", "homes", "--config", "takeup.toml"], 1);
        assert!(said.contains(&format!("has no set of homes, and had {name}")), "{said}");
        assert!(said.contains("--target-may-change"), "{said}");
        assert_eq!(place.path("sets").exists(), made);
    }
    assert_eq!(std::fs::read_to_string(place.path("log")).unwrap(), "frozen\n");
    place.job(&["--target-may-change"], 0);
}

#[test]
fn a_rule_leaves_other_jobs_alone() {
    let place = Place::new("keep.last = 1\n");
    place.job(&["--full"], 0);
    let since = place.archives()[0].file_name().unwrap().to_str().unwrap().to_owned();
    let other = ["backup", "home", "--to", "sets/", "--job", "other", "--source-may-change"];
    let home = place.path("home");
    let mut other = other.map(str::to_owned).to_vec();
    other[1] = home.display().to_string();
    other.extend(["--since".to_owned(), since]);
    let other: Vec<&str> = other.iter().map(String::as_str).collect();
    let written = place.json(&other, 0);
    assert_eq!(written["set"]["level"], 1, "{written}");
    place.write(1, "changed");
    let ran = place.job(&["--full"], 0);
    assert_eq!(ran["forgotten"].as_array().unwrap().len(), 0, "the other job needs it");
    place.text(&["restore", "sets/", "--job", "other", "--into", "back"], 0);
    let told = ["catalog", "forget", "sets/", "--job", "homes", "--keep-last", "1"];
    let told = place.json(&told, 0);
    assert_eq!(told["sets"][0]["kept"][0], "set 1 of other needs it");
    let set = written["set"]["set"].as_str().unwrap();
    let said = place.text(&["catalog", "forget", "sets/", "--job", "homes", "--set", set], 1);
    assert!(said.contains("is of the job other"), "{said}");
    let said = place.text(&["catalog", "forget", "nowhere/", "--keep-last", "1", "--yes"], 1);
    assert!(said.contains("nowhere/") && !place.path("nowhere").exists(), "{said}");
}

/// The file in the help of `check-config` can be read as it stands there.
#[test]
fn the_file_in_the_help_is_right() {
    let place = Place::new("");
    let help = place.text(&["check-config", "--help"], 0);
    let (_, rest) = help.split_once("only sources and to are needed:\n").unwrap();
    let (file, _) = rest.split_once("\n\nExit codes").unwrap();
    std::fs::write(place.path("takeup.toml"), file).unwrap();
    let told = place.json(&["check-config", "--config", "takeup.toml"], 2);
    assert_eq!(told["jobs"][0]["job"], "homes", "only what it names is not there: {told}");
}

/// A command of the job writes the list; each second set looks everywhere.
#[test]
fn a_job_with_a_list_of_changes() {
    let place = Place::new("");
    let list = place.path("list");
    let more = format!(
        "changed-from = '{0}'\naudit-every = 2\n[jobs.homes.hooks]\n\
         before = \"printf '%s\\\\0' {1}/1.txt > {0}\"\n",
        list.display(),
        place.path("home").display()
    );
    place.configure(&more);
    let full = place.job(&[], 0);
    assert!(full["backup"]["changed_from"].is_null(), "{full}");
    place.write(1, "in the list");
    std::thread::sleep(crate::TICK);
    let second = place.job(&[], 0);
    let changed = &second["backup"]["changed_from"];
    assert_eq!((&changed["looked"], &changed["paths"]), (&"list".into(), &1.into()), "{second}");
    std::fs::create_dir(place.path("home/folder")).unwrap();
    std::fs::write(place.path("home/folder/file"), "as it was").unwrap();
    std::thread::sleep(crate::TICK);
    place.job(&["--full"], 0);
    place.job(&[], 0);
    std::fs::write(place.path("home/folder/file"), "not in the list").unwrap();
    std::thread::sleep(crate::TICK);
    let audit = place.job(&[], 2);
    let changed = &audit["backup"]["changed_from"];
    assert_eq!((&changed["looked"], &changed["missed"]), (&"audit".into(), &1.into()), "{audit}");
    let said = place.text(&["status", "--config", "takeup.toml"], 2);
    assert!(said.contains("the list of changes missed 1 change: "), "{said}");
    // A list that is not there is no empty list.
    place.configure(&format!("changed-from = '{}'\n", place.path("none").display()));
    let failed = place.job(&[], 1);
    assert!(failed["error"].as_str().unwrap().contains("cannot read the list"), "{failed}");
}
