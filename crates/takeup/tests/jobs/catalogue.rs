//! The catalogue after a run of a job.

use std::fs;

use serde_json::Value;

use crate::Place;

fn sets(place: &Place) -> Value {
    place.json(&["catalog", "sets"], 0)
}

/// Last of all: a command after the run finds no catalogue yet, and what retention has removed does
/// not come in.
#[test]
fn a_job_takes_its_sets_in_at_its_very_end() {
    let place = Place::new(
        "keep.last = 1\nfull-every = '1 h'
hooks.after = 'ls state/takeup | grep -c sqlite$ >>log || true'\n",
    );
    place.job(&[], 0);
    place.job(&["--full"], 0);
    assert_eq!(place.archives().len(), 1);
    assert_eq!(fs::read_to_string(place.path("log")).unwrap(), "0\n1\n");
    let known = sets(&place);
    assert_eq!((&known["caught_up"]["added"], &known["caught_up"]["left"]), (&0.into(), &0.into()));
    let places: Vec<&str> =
        known["sets"].as_array().unwrap().iter().map(|it| it["place"].as_str().unwrap()).collect();
    assert_eq!(places, [place.archives()[0].to_str().unwrap()]);
}

/// A catalogue that cannot be used is no failure of the job; the warning says what to type.
#[test]
fn a_job_with_a_catalogue_that_is_damaged_is_done_with_a_warning() {
    let place = Place::new("");
    place.job(&[], 0);
    let path = place.path("state/takeup/catalog.sqlite");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let done = place.job(&[], 2);
    assert_eq!(done["backup"]["set"]["number"], 2);
    let warnings = done["warnings"].to_string();
    assert!(warnings.contains("run `takeup catalog rebuild`"), "{warnings}");
    let said = place.text(&["catalog", "find", "1.txt"], 1);
    assert!(said.contains("is damaged"), "{said}");
    assert!(said.contains("hint: run `takeup catalog rebuild`: "), "{said}");
    assert_eq!(said.matches("hint").count(), 1, "told once: {said}");
    let rebuilt = place.text(&["catalog", "rebuild"], 0);
    assert!(rebuilt.contains(": 2 sets with "), "{rebuilt}");
    place.text(&["catalog", "find", "1.txt"], 0);
    let done = place.job(&[], 0);
    assert_eq!(done["warnings"], serde_json::json!([]));
}

/// What `catalog forget` removes leaves the catalogue, and the versions of the others stay right.
#[test]
fn what_is_forgotten_leaves_the_catalogue() {
    let place = Place::new("");
    for day in 1..=4 {
        place.write(1, &"day\n".repeat(day));
        place.job(&["--full"], 0);
    }
    let sizes = |answer: &Value| -> Vec<u64> {
        let versions = answer["files"][0]["versions"].as_array().unwrap();
        versions.iter().map(|version| version["size_bytes"].as_u64().unwrap()).collect()
    };
    let find = || place.json(&["catalog", "find", "1.txt"], 0);
    assert_eq!(sizes(&find()), [4, 8, 12, 16]);
    place.json(&["catalog", "forget", "sets/", "--set", "2", "--set", "1", "--yes"], 0);
    let found = find();
    assert_eq!(found["caught_up"]["left"], 2);
    assert_eq!(sizes(&found), [12, 16]);
    assert_eq!(find()["caught_up"]["left"], 0);
    assert_eq!(sets(&place)["sets"].as_array().unwrap().len(), 2);
    // The oldest of four that have it: the others have it still.
    let same = place.json(&["catalog", "find", "0.txt"], 0);
    assert_eq!(same["files"][0]["versions"][0]["sets"].as_array().unwrap().len(), 2);
}
