//! What changed between two sets, told from their indexes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::{TICK, answer, backup, text};

#[test]
fn what_changed_between_two_days_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir_all(here.join("tree/a/b")).unwrap();
    for name in ["a/same", "a/grows", "a/b/goes", "a/mode", "turns"] {
        fs::write(here.join("tree").join(name), name).unwrap();
    }
    std::thread::sleep(TICK);
    backup(here, &[]);
    fs::write(here.join("tree/a/grows"), "longer than before").unwrap();
    fs::remove_dir_all(here.join("tree/a/b")).unwrap();
    fs::set_permissions(here.join("tree/a/mode"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(here.join("tree/turns")).unwrap();
    fs::create_dir(here.join("tree/turns")).unwrap();
    fs::write(here.join("tree/turns/new"), "new").unwrap();
    std::thread::sleep(TICK);
    backup(here, &["-i"]);
    backup(here, &[]);
    for after in ["2", "3"] {
        let told = answer(here, &["catalog", "diff", "sets/", "1", after]);
        let mut seen: Vec<String> = told["objects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| format!("{} {} {}", it["kind"], it["path"], it["what"]).replace('"', ""))
            .collect();
        seen.sort();
        let expected = [
            "added tree/turns []",
            "added tree/turns/new []",
            "changed tree/a/grows [size,mtime]",
            "changed tree/a/mode [mode]",
            "removed tree/a/b []",
            "removed tree/a/b/goes []",
            "removed tree/turns []",
        ];
        assert_eq!(seen, expected, "{after}");
        assert_eq!((&told["added"]["bytes"], &told["removed"]["objects"]), (&3.into(), &3.into()));
    }
    let same = text(here, &["catalog", "diff", "sets/", "2"], 0);
    assert!(same.starts_with("0 objects added (0 B), 0 objects gone (0 B), 0 objects"), "{same}");
    let most = text(here, &["catalog", "diff", "sets/", "1", "--most", "2"], 0);
    assert!(most.ends_with("2 of 7 objects: --most lists more\n"), "{most}");
    text(here, &["catalog", "diff", "sets/", "9"], 1);
}
