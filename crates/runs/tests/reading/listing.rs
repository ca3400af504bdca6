//! Lists against GNU tar's.

use std::process::Command;

use runs::list::{ListOptions, ListWay};
use runs::selection::{NotFound, Selection};

use crate::harness::{Harness, list_paths, list_with, shell};

fn gnu_list(harness: &Harness, archive: &str) -> Vec<String> {
    let output = Command::new("tar")
        .args(["--quoting-style=literal", "-tf", archive, "--null"])
        .current_dir(harness.folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // The one name with a newline is two lines here.
    text.replace("and \n newline", "and @ newline")
        .lines()
        .map(|line| line.trim_end_matches('/').replace("and @ newline", "and \n newline"))
        .collect()
}

#[test]
fn a_list_has_the_names_that_gnu_tar_lists() {
    let harness = Harness::new();
    harness.tree("tree");
    for format in ["gnu", "posix"] {
        shell(&format!("tar --format={format} -cf a.tar tree"), harness.folder.path());
        shell("zstd -qf a.tar -o a.tar.zst && gzip -kf a.tar", harness.folder.path());
        let expected = gnu_list(&harness, "a.tar");
        for archive in ["a.tar", "a.tar.zst", "a.tar.gz"] {
            let (paths, report, kept) = list_paths(&harness.path(archive));
            assert_eq!(paths, expected, "{archive}");
            assert_eq!(kept.warnings(), Vec::<String>::new());
            assert_eq!(report.way, ListWay::Headers);
        }
    }
}

#[test]
fn contents_of_a_plain_archive_are_jumped_over() {
    let harness = Harness::new();
    shell(
        "mkdir t && truncate -s 200M t/a && echo x > t/b && tar cf a.tar --no-recursion t t/a t/b",
        harness.folder.path(),
    );
    let (paths, report, _) = list_paths(&harness.path("a.tar"));
    assert_eq!(paths, ["t", "t/a", "t/b"]);
    assert!(report.run.target_bytes < 2 << 20, "{}", report.run.target_bytes);
}

#[test]
fn a_list_is_of_what_was_asked_for() {
    let harness = Harness::new();
    harness.tree("tree");
    shell("tar -cf a.tar tree", harness.folder.path());
    let options = ListOptions {
        from: harness.path("a.tar").into(),
        selection: Selection::new([b"tree/folder2".to_vec(), b"nowhere".to_vec()]),
        ..Default::default()
    };
    let (paths, report, _) = list_with(options);
    assert_eq!(paths.len(), 21);
    assert!(paths.iter().all(|path| path.starts_with("tree/folder2")));
    let path = b"nowhere".to_vec();
    assert_eq!(report.not_found, [NotFound { path, near: None }]);
}

#[test]
fn archives_one_behind_the_other_are_one_list() {
    let harness = Harness::new();
    let folder = harness.folder.path();
    shell("echo a > a && echo b > b && tar cf a.tar a && tar cf b.tar b", folder);
    shell("cat a.tar b.tar > c.tar && gzip -c a.tar > c.gz && gzip -c b.tar >> c.gz", folder);
    for archive in ["c.tar", "c.gz"] {
        let (paths, _, kept) = list_paths(&harness.path(archive));
        assert_eq!(paths, ["a", "b"], "{archive}");
        assert_eq!(kept.warnings(), Vec::<String>::new());
        assert_eq!(kept.notes(), [": another archive follows at byte 10240"]);
    }
}
