//! Each stage is slowed in turn: the explanation must name it.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::fuse::{Fault, mount};
use crate::{run, takeup};

/// Name of the stage, and kind of the limit.
#[track_caller]
fn check(document: &[u8], bottleneck: &str, limits: &[&str]) {
    let document: Value = serde_json::from_slice(document).unwrap();
    let text = format!("{document:#}");
    assert_eq!(document["bottleneck"], bottleneck, "{text}");
    let limit = document["limit"].as_str().unwrap();
    assert!(limits.contains(&limit), "{text}");
    let explanation = document["explanation"].as_str().unwrap();
    assert!(explanation.contains(bottleneck), "{text}");
    let seconds = document["seconds"].as_f64().unwrap();
    let without = document["seconds_without_bottleneck"].as_f64().unwrap();
    assert!(without < seconds * 0.8, "{text}");
}

/// Reads what the run writes, a little at a time.
fn drain_slowly(child: &mut Child) {
    let mut output = child.stdout.take().unwrap();
    let mut buffer = vec![0; 1 << 18];
    loop {
        thread::sleep(Duration::from_millis(20));
        if output.read(&mut buffer).unwrap() == 0 {
            return;
        }
    }
}

/// Bytes that compress like text, so that high levels take time.
fn text_like(bytes: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = (state >> 52) as u16;
        text.extend_from_slice(format!("{:x} ", word ^ (word >> 3)).as_bytes());
    }
    text.truncate(bytes);
    text
}

fn tree_with(directory: &Path, bytes: usize) {
    fs::create_dir(directory.join("tree")).unwrap();
    for number in 0..8 {
        let path = directory.join(format!("tree/{number}"));
        fs::write(path, text_like(bytes / 8)).unwrap();
    }
}

#[test]
fn a_throttled_source() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = takeup()
        .current_dir(directory.path())
        .args(["pipe", "--to", "/dev/null", "--json", "--block-size", "64k"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for _ in 0..40 {
        input.write_all(&[7; 1 << 16]).unwrap();
        thread::sleep(Duration::from_millis(10));
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    check(&output.stdout, "read", &["source"]);
}

#[test]
fn a_throttled_tree() {
    testkit::require!(Fuse);
    let slow = Fault::Slow(Duration::from_millis(40));
    let names: Vec<String> = (0..16).map(|number| number.to_string()).collect();
    let files: Vec<_> = names.iter().map(|name| (&**name, 1 << 20, slow.clone())).collect();
    let tree = mount(&files);
    let directory = tempfile::tempdir().unwrap();
    let source = tree.path().to_str().unwrap();
    let output = run(directory.path(), &["backup", source, "--to", "x", "--json"]);
    check(&output.stdout, "read", &["stage", "few threads"]);
}

#[test]
fn a_slow_target() {
    let directory = tempfile::tempdir().unwrap();
    tree_with(directory.path(), 8 << 20);
    let fifo = directory.path().join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let child = takeup()
        .current_dir(directory.path())
        .args(["backup", "tree", "--to", "fifo", "--json", "--ring", "4M", "--block-size", "64k"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = fs::File::open(&fifo).unwrap();
    let mut buffer = vec![0; 1 << 18];
    while reader.read(&mut buffer).unwrap() > 0 {
        thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    check(&output.stdout, "write", &["stage"]);
}

#[test]
fn a_slow_reader_of_the_pipe() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("x"), vec![7; 8 << 20]).unwrap();
    let mut child = takeup()
        .current_dir(directory.path())
        .args(["pipe", "--from", "x", "--json", "--ring", "2M", "--block-size", "256k"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drain_slowly(&mut child);
    let output = child.wait_with_output().unwrap();
    check(&output.stderr, "write", &["stage"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("the reader of the pipe is slow"), "{text}");
}

#[test]
fn a_limit_of_the_user() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("x"), vec![7; 4 << 20]).unwrap();
    let output = takeup()
        .current_dir(directory.path())
        .args(["pipe", "--from", "x", "--to", "/dev/null", "--json", "--block-size", "64k"])
        .args(["--rate-limit", "5MB", "--ring", "1M"])
        .output()
        .unwrap();
    check(&output.stdout, "write", &["rate limit"]);
}

#[test]
fn an_expensive_level() {
    let directory = tempfile::tempdir().unwrap();
    tree_with(directory.path(), 6 << 20);
    let output = takeup()
        .current_dir(directory.path())
        .args(["backup", "tree", "--to", "x", "--compress", "zstd:19", "--json"])
        .output()
        .unwrap();
    // At this level the tree is one chunk, which a single thread compresses.
    check(&output.stdout, "compress", &["few threads", "stage", "processor"]);
}

#[test]
fn a_slow_reader_of_a_backup() {
    let directory = tempfile::tempdir().unwrap();
    tree_with(directory.path(), 8 << 20);
    let mut child = takeup()
        .current_dir(directory.path())
        .args(["backup", "tree", "--to", "-", "--json", "--ring", "4M", "--block-size", "64k"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drain_slowly(&mut child);
    let output = child.wait_with_output().unwrap();
    check(&output.stderr, "write", &["stage"]);
}

/// Bursts with pauses between them, a ring that holds a quarter of a burst, and a slow reader for
/// each part: with a larger ring the reader could go on during the pauses. How much of a pause
/// passed while the ring was full is unknown, so only a best case is predicted.
#[test]
fn a_ring_that_is_too_small_for_the_bursts() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = takeup()
        .current_dir(directory.path())
        .args(["pipe", "--json", "--ring", "1M", "--block-size", "256k"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let source = thread::spawn(move || {
        for _ in 0..6 {
            input.write_all(&vec![7; 4 << 20]).unwrap();
            thread::sleep(Duration::from_millis(400));
        }
    });
    drain_slowly(&mut child);
    source.join().unwrap();
    let output = child.wait_with_output().unwrap();
    let document: Value = serde_json::from_slice(&output.stderr).unwrap();
    let explanation = document["explanation"].as_str().unwrap();
    // The pauses take 2.4 s of about 2.8 s, whatever the ring is. Without them, the reader's 1.4 s
    // are left, so the source is the limit and the ring comes second.
    assert!(explanation.starts_with("the source was the limit"), "{document:#}");
    let ring = explanation.split("; ").find(|part| part.starts_with("with a ring of "));
    assert!(ring.is_some_and(|part| part.contains(" at best instead of ")), "{document:#}");
}
