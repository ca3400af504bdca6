//! The page in a real browser, headless: no console message, all figures there, the script works.
//! The tests need Chromium.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{captured_record, small_experiment, succeeds, watch_record};

/// The page's elements after its script has run, and the console output.
fn opened(page: &Path) -> (String, String) {
    opened_with(page, "--window-size=1280,900")
}

fn opened_with(page: &Path, window: &str) -> (String, String) {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", window])
        .args(["--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let console = String::from_utf8_lossy(&output.stderr);
    let console: Vec<&str> = console.lines().filter(|line| line.contains("CONSOLE")).collect();
    (String::from_utf8_lossy(&output.stdout).into_owned(), console.join("\n"))
}

/// The width of a page in a narrow window, the width of the window, and the page's elements.
fn narrow(page: &Path) -> (String, String, String) {
    let written = fs::read_to_string(page).unwrap();
    // The page reports its own width.
    let told = "<script>const root = document.documentElement;\
                document.title = `${root.scrollWidth} of ${root.clientWidth}`</script></body>";
    let telling = page.with_file_name("telling.html");
    fs::write(&telling, written.replace("</body>", told)).unwrap();
    let (document, console) = opened_with(&telling, "--window-size=500,900");
    assert_eq!(console, "");
    let title = document.split("<title>").nth(1).unwrap().split('<').next().unwrap();
    let (width, room) = title.split_once(" of ").unwrap();
    (width.to_owned(), room.to_owned(), document)
}

#[test]
fn the_page_opens_without_a_word_on_the_console() {
    testkit::require!(Chromium);
    let directory = tempfile::tempdir().unwrap();
    let arguments = small_experiment(directory.path());
    succeeds(directory.path(), &arguments);
    let file = "takeup-bench-read.ndjson";
    succeeds(directory.path(), &["report", file, "--html", "page.html", "-q"]);
    let page = directory.path().join("page.html");
    let written = fs::read_to_string(&page).unwrap();
    let (document, console) = opened(&page);
    assert_eq!(console, "");
    let figures = written.matches("<svg class=\"fig\"").count();
    assert!(figures >= 3);
    assert_eq!(document.matches("<svg class=\"fig\"").count(), figures);
    // Two engines with two block sizes each, drawn by each of the two factors.
    assert!(document.matches("class=\"value\"").count() >= 8);
    // The script has replaced the browser's own texts.
    assert!(written.contains("<title>engine"), "{written}");
    assert!(!document.contains("<title>engine"));
    assert!(document.contains("<caption>All runs</caption>"));
}

/// Two experiments side by side: a row for each combination, drawn against the band.
#[test]
fn a_comparison_has_a_page() {
    testkit::require!(Chromium);
    let directory = tempfile::tempdir().unwrap();
    let arguments = small_experiment(directory.path());
    for output in ["a.ndjson", "b.ndjson"] {
        succeeds(directory.path(), &[&arguments[..], &["-o", output]].concat());
    }
    succeeds(directory.path(), &["compare", "a.ndjson", "b.ndjson", "--html", "page.html"]);
    let page = directory.path().join("page.html");
    let written = fs::read_to_string(&page).unwrap();
    assert!(written.contains("<dt>A: host</dt>") && written.contains("<dt>B: date</dt>"));
    assert_eq!(written.matches("class=\"band\"").count(), 1);
    let (document, console) = opened(&page);
    assert_eq!(console, "");
    assert_eq!(document.matches("class=\"value\"").count(), 4);
    assert!(document.contains("<caption>Combination by combination</caption>"));
}

/// A design with four factors: an overview, small multiples, and no overflow of the width.
#[test]
fn the_page_of_a_whole_design_fits_a_narrow_window() {
    testkit::require!(Chromium);
    let directory = tempfile::tempdir().unwrap();
    let design = ["--data", "zeros,random", "--framing", "raw,bacula", "--length", "1M,2M"];
    let size = ["--block-size", "64k,128k,256k", "--repeats", "2", "--repeats-max", "2"];
    let target = ["bench", "tape", "target", "--output", "runs.ndjson", "--quiet"];
    succeeds(directory.path(), &[&target[..], &design, &size].concat());
    succeeds(directory.path(), &["report", "runs.ndjson", "--html", "page.html", "-q"]);
    let page = directory.path().join("page.html");
    let written = fs::read_to_string(&page).unwrap();
    assert!(written.contains("<h2>Overview</h2>") && written.contains("<h2>Effects</h2>"));
    let (width, room, document) = narrow(&page);
    // The overview, four panels of data and framing, and latencies.
    assert!(document.matches("<svg class=\"fig\"").count() >= 6);
    assert_eq!(width, room, "the page is wider than its window");
}

/// A record of a watch: figures and sentences of each device, and no overflow of the width.
#[test]
fn the_page_of_a_watch_fits_a_narrow_window() {
    testkit::require!(Chromium);
    let directory = tempfile::tempdir().unwrap();
    let load = watch_record::Load::default();
    fs::write(directory.path().join("night"), watch_record::text(&load)).unwrap();
    succeeds(directory.path(), &["report", "night", "-o", "page.html", "-q"]);
    let page = directory.path().join("page.html");
    let (document, console) = opened(&page);
    assert_eq!(console, "");
    // The findings of two devices with their times, and five series of each.
    assert_eq!(document.matches("<svg class=\"fig\"").count(), 12);
    // Each twice, because of a pause: one on the disk; on the volume also the disks of its numbers.
    assert_eq!(document.matches("class=\"value\"").count(), 6);
    let (width, room, _) = narrow(&page);
    assert_eq!(width, room, "the page is wider than its window");
}

/// A capture and its disk: calls above, the disk below, and no overflow of the width.
#[test]
fn the_page_of_a_capture_fits_a_narrow_window() {
    testkit::require!(Chromium);
    let directory = tempfile::tempdir().unwrap();
    let record = captured_record::captured().to_lines();
    fs::write(directory.path().join("shop"), record).unwrap();
    succeeds(directory.path(), &["report", "shop", "-o", "page.html", "-q"]);
    let page = directory.path().join("page.html");
    let (document, console) = opened(&page);
    assert_eq!(console, "");
    // Two of times, four of calls, four of the disk and one in its section, four of files.
    assert_eq!(document.matches("<svg class=\"fig\"").count(), 15);
    let (width, room, _) = narrow(&page);
    assert_eq!(width, room, "the page is wider than its window");
}

/// Shows that the tests above can fail.
#[test]
fn a_page_that_complains_is_noticed() {
    testkit::require!(Chromium);
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("bad.html");
    fs::write(&page, "<!doctype html><script>nowhere.at()</script>").unwrap();
    let (_, console) = opened(&page);
    assert!(console.contains("nowhere"), "{console}");
}
