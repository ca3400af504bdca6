//! `docs/first-backup.md` is true: each command on the page is typed, in its order, and prints what
//! the page says but for times, sizes and identities.

use std::path::Path;

use testkit::typed_page::Reader;

#[test]
fn a_new_user_follows_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/first-backup.md");
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_string_lossy().into_owned();
    let program = Path::new(env!("CARGO_BIN_EXE_takeup")).parent().unwrap().display();
    let variables = [
        ("XDG_STATE_HOME", ".local/state"),
        ("XDG_CONFIG_HOME", ".config"),
        ("TAKEUP_UNITS_DIR", ".config/systemd/user"),
    ];
    let variable = |(name, place): (&str, &str)| (name.to_owned(), format!("{home}/{place}"));
    let reader = Reader {
        path: format!("{program}:/usr/bin:/bin"),
        environment: variables.into_iter().map(variable).collect(),
        reads_as: vec![
            (home.clone(), "/home/eva".to_owned()),
            // As root the page is an ordinary user's.
            ("systemctl ".to_owned(), "systemctl --user ".to_owned()),
            ("--user --user".to_owned(), "--user".to_owned()),
            (home[1..].to_owned(), "home/eva".to_owned()),
        ],
        home: folder.path().to_owned(),
    };
    assert!(reader.follow(&page, None) >= 10, "the page has its commands");
}
