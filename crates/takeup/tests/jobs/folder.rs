//! The sets of a folder, listed and read back.

use crate::{Place, archive, damage};

#[test]
fn sets_are_listed_with_what_is_known_of_them() {
    let place = Place::new("");
    place.job(&[], 0);
    place.write(1, "changed");
    let middle = place.job(&[], 0);
    place.write(2, "changed");
    place.job(&[], 0);
    let said = place.text(&["list", "sets"], 0);
    assert!(said.starts_with("job homes\n    1 "), "{said}");
    assert_eq!(said.lines().count(), 4);
    place.text(&["verify", "sets/", "--set", "1"], 0);
    let listed = place.json(&["list", "sets/"], 0);
    assert_eq!(listed["command"], "list");
    assert_eq!(listed["sets"][0]["sound"], true);
    assert!(listed["sets"][1]["verified"].is_null());
    assert_eq!(listed["sets"][2]["chain"].as_array().unwrap().len(), 3);
    std::fs::remove_file(archive(&middle)).unwrap();
    let said = place.text(&["list", "sets/"], 2);
    assert!(said.contains("CANNOT BE RESTORED"), "{said}");
    assert!(said.contains("which is not in the folder"), "{said}");
    std::fs::create_dir(place.path("empty")).unwrap();
    let said = place.text(&["list", "empty"], 1);
    assert!(said.contains("empty has no set of backups"), "{said}");
}

#[test]
fn all_archives_of_a_folder_are_read_back() {
    let place = Place::new("");
    let full = place.job(&[], 0);
    place.write(1, "changed");
    place.job(&[], 0);
    let said = place.text(&["verify", "sets/"], 0);
    assert!(said.starts_with("all sound: 2 archives, "), "{said}");
    let answer = place.json(&["verify", "sets/"], 0);
    assert_eq!((&answer["sound"], &answer["command"]), (&true.into(), &"verify".into()));
    for (command, option) in [
        ("verify", "--cached"),
        ("list", "--check"),
        ("list", "-0"),
        ("list", "--ring=1M"),
        ("list", "--threads=2"),
    ] {
        let said = place.text(&[command, "sets/", option], 1);
        assert!(said.contains("is not for a folder of sets"), "{said}");
    }
    // That there is no memory for a ring says nothing of the archives.
    let said = place.text(&["verify", "sets/", "--ring", "100000T"], 1);
    assert!(said.starts_with("NOT READ: 2 of 2 archives, "), "{said}");
    let answer = place.json(&["verify", "sets/", "--ring", "100000T"], 1);
    let (sound, unread) = (&answer["sound"], &answer["archives"][1]["unread"]);
    assert_eq!((sound, unread), (&false.into(), &true.into()));
    let listed = place.json(&["list", "sets/"], 0);
    assert_eq!(listed["sets"][1]["sound"], true, "{listed}");
    damage(&archive(&full));
    let said = place.text(&["verify", "sets/"], 1);
    assert!(said.contains("DAMAGED: 1 of 2 archives"), "{said}");
    std::fs::remove_file(archive(&full)).unwrap();
    let said = place.text(&["verify", "sets/"], 1);
    assert!(said.starts_with("LOST: not all that was there can be read; 1 archive"), "{said}");
    assert!(said.contains("needs the set homes-"), "{said}");
}
