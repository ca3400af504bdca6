//! The name of an archive decides its compression, as with `tar -a`.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::{run, shown, small_tree};

fn backup(path: &Path, arguments: &[&str]) -> Output {
    run(path, &[&["backup", "--overwrite"][..], arguments].concat())
}

/// The kind of a file, by its first bytes.
fn kind(path: &Path) -> &'static str {
    match &fs::read(path).unwrap()[..4] {
        [0x28, 0xb5, 0x2f, 0xfd] => "zstd",
        [0x1f, 0x8b, ..] => "gzip",
        _ => "tar",
    }
}

#[test]
fn a_name_is_what_it_says() {
    let directory = small_tree();
    let path = directory.path();
    let cases = [
        ("a.tar.zst", "zstd"),
        ("a.tzst", "zstd"),
        ("a.zst", "zstd"),
        ("a.tar.gz", "gzip"),
        ("a.tgz", "gzip"),
        ("a.gz", "gzip"),
        ("a.tar", "tar"),
        ("a", "tar"),
    ];
    for (name, expected) in cases {
        let output = backup(path, &["tree", "--to", name]);
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output, path));
        assert_eq!(kind(&path.join(name)), expected, "{name}");
        assert!(run(path, &["verify", name]).status.success());
    }
}

#[test]
fn what_is_asked_for_goes_before_the_name_which_is_told() {
    let directory = small_tree();
    let path = directory.path();
    let cases = [
        (
            ["--compress", "none"],
            "a.tar.zst",
            "tar",
            "the name says zstd, the archive is plain tar",
        ),
        (["--compress", "gzip"], "a.tar.zst", "gzip", "the name says zstd, the archive is gzip"),
        (["-c", "zstd"], "a.tar.xz", "zstd", "the name says xz, the archive is zstd"),
    ];
    for (asked, name, expected, told) in cases {
        let output = backup(path, &[&["tree", "--to", name][..], &asked].concat());
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output, path));
        assert_eq!(kind(&path.join(name)), expected, "{name}");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(errors, format!("takeup: note: {name}: {told}\n"));
    }
    let plain = backup(path, &["tree", "--to", "b.tar", "-c", "zstd:1"]);
    assert_eq!((kind(&path.join("b.tar")), &*plain.stderr), ("zstd", &b""[..]));
    let agreed = backup(path, &["tree", "--to", "b.tar.zst", "--compress=zstd:2"]);
    assert_eq!((agreed.status.code(), &*agreed.stderr), (Some(0), &b""[..]));
}

#[test]
fn a_name_that_is_not_written_here_is_refused() {
    let directory = small_tree();
    let path = directory.path();
    for name in ["a.tar.xz", "a.tbz2", "a.tar.lz4", "a.zip"] {
        let output = backup(path, &["tree", "--to", name]);
        assert_eq!(output.status.code(), Some(1), "{}", shown(&output, path));
        let errors = String::from_utf8(output.stderr).unwrap();
        let start = format!("takeup: {name}: takeup cannot write ");
        assert!(errors.starts_with(&start) && errors.contains("hint: "), "{errors}");
        assert!(!path.join(name).exists());
    }
}

#[test]
fn a_method_that_is_left_out_takes_no_source_for_it() {
    let directory = small_tree();
    let path = directory.path();
    for arguments in [
        &["--compress", "tree", "--to", "x"][..],
        &["tree", "--compress", "--to", "x"],
        &["tree", "--to", "x", "--compress"],
        &["-c", "tree", "--to", "x"],
        &["-c", path.join("tree").to_str().unwrap(), "--to", "x"],
    ] {
        let output = backup(path, arguments);
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output, path));
        assert_eq!(kind(&path.join("x")), "zstd", "{arguments:?}");
    }
    let unknown = backup(path, &["tree", "--to", "x", "--compress", "lzma"]);
    let errors = String::from_utf8(unknown.stderr).unwrap();
    assert!(errors.contains("unknown compression"), "{errors}");
}
