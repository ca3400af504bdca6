//! Conclusions from a few lines; those from what people pasted are in `tests/published.rs`.

use super::*;
use crate::read::read;

fn shown(text: &str) -> Vec<(String, Finding)> {
    let found = conclude(&read(text).pieces);
    found.conclusions.into_iter().map(|it| (it.finding.rule.to_string(), it.finding)).collect()
}

#[test]
fn a_size_is_enough_only_against_others() {
    let run = |size: &str, seconds: &str| {
        format!(
            "# dd if=a of=/dev/nst0 bs={size}\n\
             1000000000 bytes (1.0 GB, 954 MiB) copied, {seconds} s, 1 MB/s\n"
        )
    };
    assert_eq!(shown(&run("64k", "10.0")), []);
    let found = shown(&[run("16k", "40.0"), run("64k", "10.2"), run("1M", "10.0")].concat());
    assert_eq!(found[0].1.what, "blocks of 64 KiB are enough for a: 98.0 MB/s");
    // Still rising at the end of what was tried.
    let found = shown(&[run("16k", "40.0"), run("64k", "20.0"), run("1M", "10.0")].concat());
    assert!(found[0].1.what.starts_with("blocks of 1 MiB were the fastest"), "{found:?}");
    assert!(found[0].1.caveat.as_ref().unwrap().contains("larger blocks were not tried"));
    // Smaller is as fast: nothing is to be changed.
    let found = shown(&[run("16k", "10.0"), run("64k", "10.1")].concat());
    assert_eq!(found[0].1.action, None, "{found:?}");
    // Another drive in between.
    let other = "# tapeinfo -f /dev/nst0\nMaxBlock: 1048576\n";
    assert_eq!(shown(&[&run("16k", "40.0"), other, &run("64k", "10.0")].concat()), []);
}

#[test]
fn a_job_of_other_requests_says_nothing_of_a_table() {
    let columns = "Device r/s rkB/s rrqm/s w/s wkB/s wrqm/s aqu-sz %util\n";
    let job = |block: &str| format!("[global]\nbs={block}\niodepth=8\n[a]\nnumjobs=4\n\n");
    let row = "sda 1000.0 8000.0 0.0 0.0 0.0 0.0 31.9 100.0\n";
    let found = shown(&format!("{}{columns}{row}", job("8k")));
    let rules: Vec<&str> = found.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(rules, ["given.as-made", "given.in-flight"]);
    assert!(found[1].1.what.contains("32 in flight are all"), "{found:?}");
    let found = shown(&format!("{}{columns}{row}", job("64k")));
    let rules: Vec<&str> = found.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(rules, ["given.in-flight", "given.offered"]);
    assert!(found[0].1.what.contains("31.9 requests in flight"), "{found:?}");
    // An idle device has no depth that means anything.
    let idle = row.replace("100.0", "20.0");
    assert_eq!(shown(&format!("{columns}{idle}")), []);
}

#[test]
fn a_rate_may_be_of_either_unit() {
    let of = |rate: &str| {
        shown(&format!(
            "Total Size... 50.00 GB\nRun Time... 0:08:20\nBackup Speed... {rate} MB/s\n"
        ))
    };
    assert_eq!((of("100.0"), of("102.4")), (vec![], vec![]));
    assert_eq!(of("222.9")[0].0, "given.other-rate");
}

#[test]
fn a_write_that_is_not_synced_is_not_called_so() {
    let write = "pwrite64(3, \"\"..., 8192, 0) = 8192\n";
    let sync = "fdatasync(3) = 0\n";
    let found = shown(&[write, sync, write, sync].concat());
    assert_eq!(found[0].0, "given.sync-each");
    let found = shown(&[write, write, sync].concat());
    assert!(found.iter().all(|it| it.0 != "given.sync-each"), "{found:?}");
    let other = "fdatasync(4) = 0\n";
    assert!(shown(&[write, other].concat()).iter().all(|it| it.0 != "given.sync-each"));
}

/// Many hours of backups merge well; that says nothing of now.
#[test]
fn the_first_report_of_iostat_is_not_of_now() {
    let columns = "Device r/s rkB/s rrqm/s w/s wkB/s wrqm/s aqu-sz %util\n";
    let since_start = "sda 0.0 0.0 0.0 100.0 40000.0 900.0 0.1 5.0\n";
    let now = "sda 0.0 0.0 0.0 1000.0 4000.0 0.0 0.1 50.0\n";
    let found = shown(&[columns, since_start].concat());
    assert_eq!(found[0].0, "given.merged");
    assert!(found[0].1.caveat.as_ref().unwrap().contains("since the machine was started"));
    assert_eq!(shown(&[columns, since_start, columns, now, columns, now].concat()), []);
    let later = shown(&["# iostat -xk 1\n", columns, now, since_start, since_start].concat());
    assert_eq!((later.len(), &later[0].1.caveat), (1, &None));
}

/// A program reads libraries before it works.
#[test]
fn few_calls_among_many_are_not_mentioned() {
    let many = "write(1, \"\"..., 65536) = 65536\n".repeat(40);
    let found = shown(&format!("pread64(3, \"\"..., 784, 64) = 784\n{many}read(0, \"\", 9) = 0\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.what.starts_with("requests of 64 KiB one at a time, by sync"), "{found:?}");
}
