//! Sections of one file, beside and behind each other.

use super::*;
use crate::operation::SyncCall;

/// fio repeats the syncs of a deep ring as often as it likes (3.33); one at a time each request has
/// one.
#[test]
fn more_syncs_of_a_ring_than_writes_are_a_section_of_both_beside_the_rest() {
    let sync = Sync { call: SyncCall::Ring.name(), calls: 400, ..Sync::default() };
    let (reads, writes) = (700, 300);
    let ring =
        FileProfile { engine: Engine::IoUring, depth: Some(8.0), reads, writes, sync, ..table(1) };
    let text = job(vec![ring]).text();
    let number = |lines: &[String], name: &str| -> u64 {
        let value = lines.iter().find_map(|line| line.strip_prefix(name));
        value.unwrap_or_else(|| panic!("no {name}: {text}")).parse().unwrap()
    };
    let (queued, synced) = (options(&text, "data-writes"), options(&text, "data-syncs"));
    assert_eq!(number(&queued, "number_ios="), 600, "{text}");
    assert_eq!(number(&synced, "number_ios="), 400, "{text}");
    assert_eq!(number(&queued, "rwmixread="), number(&synced, "rwmixread="), "{text}");
    assert_eq!(number(&synced, "fsync="), 1, "{text}");
    assert!(!queued.iter().any(|line| line.starts_with("fsync")), "{text}");
    // One and a half of the rest for each of them.
    assert_eq!([number(&queued, "flow="), number(&synced, "flow=")], [12, 8], "{text}");
}

/// Side by side a section of reads and one of writes have twice the depth.
#[test]
fn sections_of_one_file_that_does_not_pause_come_one_after_the_other() {
    let sync = Sync {
        call: "fsync",
        calls: 300,
        operations_between: Some(1.0),
        seconds: None,
        ..Sync::default()
    };
    let text = job(vec![FileProfile { sync, ..table(1) }]).text();
    let writes = options(&text, "data-writes");
    assert!(writes.contains(&"wait_for=data-reads".to_owned()), "{text}");
}
