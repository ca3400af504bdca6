//! What would be lost with old sets, and their end.

use serde_json::Value;

use crate::Place;

/// A full set and three that count on each other, then another full one; a file of its own each
/// day.
fn five_days() -> Place {
    let place = Place::new("");
    for day in 1..=5 {
        place.write(1, &format!("day {day}"));
        let more: &[&str] = if day == 5 { &["--full"] } else { &[] };
        place.job(more, 0);
    }
    place
}

fn fates(answer: &Value) -> Vec<(u64, bool, Option<u64>)> {
    let sets = answer["sets"].as_array().unwrap();
    let fate = |set: &Value| {
        let stays = !set["kept"].as_array().unwrap().is_empty();
        (set["number"].as_u64().unwrap(), stays, set["lost_versions"].as_u64())
    };
    sets.iter().map(fate).collect()
}

#[test]
fn nothing_goes_without_yes_and_what_goes_is_told() {
    let place = five_days();
    let rule = ["catalog", "forget", "sets/", "--keep-last", "1"];
    let would = place.json(&rule, 0);
    assert_eq!(would["applied"], false);
    // Of each day that goes, the version of the one file that it alone has.
    let goes = |number| (number, false, Some(1));
    assert_eq!(fates(&would), [goes(1), goes(2), goes(3), goes(4), (5, true, None)]);
    assert!(would["sets"][0]["lost_names"][0].as_str().unwrap().ends_with("home/1.txt"));
    let said = place.text(&[&rule[..], &["--dry-run"]].concat(), 0);
    assert!(said.starts_with("4 sets of 5 would go"), "{said}");
    assert!(said.contains("goes: 1 version of a file is lost with it"), "{said}");
    assert_eq!(place.archives().len(), 5);
    let gone = place.json(&[&rule[..], &["--yes"]].concat(), 0);
    assert_eq!(gone["applied"], true);
    assert_eq!(place.archives().len(), 1);
    place.text(&["restore", "sets/", "--into", "back"], 0);
    let again = place.text(&rule, 0);
    assert!(again.starts_with("nothing goes: homes has one set"), "{again}");
}

#[test]
fn what_a_kept_set_needs_is_kept() {
    let place = five_days();
    let would = place.json(&["catalog", "forget", "sets/", "--keep-last", "2"], 0);
    let kept: Vec<bool> = fates(&would).iter().map(|fate| fate.1).collect();
    assert_eq!(kept, [true; 5]);
    assert_eq!(would["sets"][0]["kept"][0], "set 4 needs it");
}

#[test]
fn a_set_that_is_needed_does_not_go() {
    let place = five_days();
    let said = place.text(&["catalog", "forget", "sets/", "--set", "2", "--yes"], 1);
    assert!(said.contains("level2") && said.contains("needs") && said.contains("level1"), "{said}");
    assert_eq!(place.archives().len(), 5);
    let gone = place.json(&["catalog", "forget", "sets/", "--set", "4", "--yes"], 0);
    assert_eq!(fates(&gone)[3], (4, false, Some(1)));
    assert_eq!(place.archives().len(), 4);
    for set in ["1", "2", "3", "5"] {
        place.text(&["restore", "sets/", "--set", set, "--into", set], 0);
    }
    let said = place.text(&["catalog", "forget", "sets/", "--set", "4"], 1);
    assert!(said.contains("there is no set number 4"), "{said}");
}

#[test]
fn a_rule_has_to_be_said() {
    let place = five_days();
    let said = place.text(&["catalog", "forget", "sets/"], 1);
    assert!(said.contains("--keep-last"), "{said}");
    let said = place.text(&["catalog", "forget", "sets/", "--keep-daily", "0", "--yes"], 1);
    assert!(said.contains("nothing says which sets are kept or go"), "{said}");
    let both = ["catalog", "forget", "sets/", "--keep-last", "1", "--set", "1"];
    place.text(&both, 1);
    assert_eq!(place.archives().len(), 5);
}

/// What is gone already is told where the rest cannot go: in the text, in JSON, and by a job.
#[test]
fn a_removal_that_fails_on_its_way_says_what_is_gone() {
    testkit::require!(Root, Attributes);
    let place = five_days();
    let stuck = place.archives().into_iter().find(|path| name(path).contains("-level1-")).unwrap();
    let immutable = |switch: &str| {
        let done = std::process::Command::new("chattr").arg(switch).arg(&stuck).status();
        assert!(done.unwrap().success());
    };
    immutable("+i");
    let rule = ["catalog", "forget", "sets/", "--keep-last", "1", "--yes"];
    let failed = place.json(&rule, 1);
    let left: Vec<String> = place.archives().iter().map(|it| name(it)).collect();
    immutable("-i");
    let gone = failed["removed"].as_array().unwrap().iter();
    let gone: Vec<&str> = gone.map(|it| it["archive"].as_str().unwrap()).collect();
    assert_eq!((gone.len(), left.len()), (2, 3), "{failed}");
    assert!(gone.iter().all(|it| !left.contains(&(*it).to_owned())), "{failed}");
    assert_eq!(failed["applied"], false);
    let why = failed["error"].as_str().unwrap();
    assert!(why.contains("cannot remove") && why.contains(&name(&stuck)), "{failed}");
    place.json(&rule, 0);
    assert_eq!(place.archives().len(), 1);
}

fn name(path: &std::path::Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}
