//! Conclusions from a few lines; those from what people pasted are in `tests/published.rs`.

mod misleading;

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
    let job = |block: &str| {
        format!("[global]\nioengine=libaio\ndirect=1\nbs={block}\niodepth=8\n[a]\nnumjobs=4\n\n")
    };
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

/// The lines of rsync 3.2 and of borg 1.2. A rate of what was sent is not that of the disk.
#[test]
fn what_a_job_went_through_is_not_what_was_new() {
    let rsync = "# rsync -a --stats /srv/ /mnt/nas/srv/\n\n\
        Number of files: 131,730 (reg: 120,000, dir: 11,730)\n\
        Number of created files: 12 (reg: 12)\n\
        Number of deleted files: 0\n\
        Number of regular files transferred: 12\n\
        Total file size: 50,000,000,000 bytes\n\
        Total transferred file size: 24,000,000 bytes\n\
        Literal data: 24,000,000 bytes\n\
        Matched data: 0 bytes\n\
        File list size: 2,621,421\n\
        File list generation time: 0.001 seconds\n\
        File list transfer time: 0.000 seconds\n\
        Total bytes sent: 30,000,000\n\
        Total bytes received: 50,000\n\n\
        sent 30,000,000 bytes  received 50,000 bytes  200,333.33 bytes/sec\n\
        total size is 50,000,000,000  speedup is 1,663.89\n";
    let of = |text: &str| {
        let all = shown(text);
        all.into_iter().filter(|it| it.0 == "given.covered").map(|it| it.1.what).collect::<Vec<_>>()
    };
    let of_rsync = "rsync went through 50.0 GB in 120 000 files in 2 min 30 s; of that 24.0 MB are \
                    in files that were new or had changed";
    assert_eq!(of(rsync), [of_rsync]);
    // A first copy with -z: less goes over the wire, and all was new.
    let first = rsync.replace("file size: 24,000,000", "file size: 50,000,000,000");
    assert_eq!(of(&first), Vec::<String>::new());
    let borg = "Archive name: srv-2026\n\
        Duration: 1 minutes 40.00 seconds\n\
        Number of files: 127\n\
        Utilization of max. archive size: 0%\n\
        ------------------------------------------------------------------------------\n\
        Original size      Compressed size    Deduplicated size\n\
        This archive:               41.70 GB             20.15 GB            254.05 MB\n\
        All archives:              417.00 GB            201.50 GB             21.00 GB\n";
    let of_borg = "borg went through 41.7 GB in 127 files in 1 min 40 s; of what it stores of that \
                   1 % was new";
    assert_eq!(of(borg), [of_borg]);
    // A first archive is new though it is smaller than its files.
    assert!(of(&borg.replace("254.05 MB", "19.80 GB")).is_empty());
    // Two jobs are not mixed.
    let (head, tail) = rsync.split_at(rsync.find("Literal data").unwrap());
    assert_eq!(of(&[head, borg].concat()), [of_borg]);
    assert_eq!(of(&[head, tail].concat()), [of_rsync]);
    assert!(of(&[head, "# rsync -a --stats /a/ /b/\n", tail].concat()).is_empty());
    assert!(of(&[head, borg, tail].concat()).iter().all(|it| it == of_borg));
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
    let summary = "Total Size... 50.00 GB\nRun Time... 0:08:20\n";
    let rate = "Rate: 50000.0 KB/s\n";
    assert_eq!(rules_of(&[summary, rate].concat()), ["given.other-rate"]);
    let report = "FD Bytes Written: 6,000,000,000 (6.000 GB)\n";
    assert_eq!(rules_of(&[summary, report, rate].concat()), Vec::<String>::new(), "of another job");
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

/// Each of these texts was misread once.
#[test]
fn results_are_of_the_command_that_was_run() {
    let dd = |size: &str| format!("# dd if=a of=/dev/nst0 bs={size}\n");
    let end =
        |seconds: u32| format!("4000000000 bytes (4.0 GB, 3.7 GiB) copied, {seconds} s, 1 MB/s\n");
    let slow = [dd("16k"), end(100)].concat();
    // A loop, several commands in a line, a comment with an apostrophe, a machine of somebody else.
    for text in [
        format!("{slow}{}# mt rewind; dd if=a of=/dev/nst0 bs=1M\n{}", dd("64k"), end(20)),
        format!(
            "{slow}{}dd: writing: Device busy\n# for b in 1M; do x; done\n{}",
            dd("64k"),
            end(20)
        ),
        format!("{slow}me@other:~# dd if=a of=/dev/nst0 bs=64k\n{}", end(20)),
        format!("{slow}# please try\n{}> {}", dd("1M"), end(20)),
        format!("{slow}# dd if=a of=/dev/nst0 bs=64k oflag=direct\n{}", end(20)),
        // Two ends of one size: the second is of a command that was not sent.
        format!("{slow}{}{}{}", dd("64k"), end(20), end(10)),
    ] {
        assert_eq!(shown(&text), [], "{text}");
    }
    let lets = "# let's try more\n";
    let found = shown(&[&slow, lets, &dd("64k"), &end(20), lets, &dd("1M"), &end(20)].concat());
    assert!(found[0].1.what.starts_with("blocks of 64 KiB are enough"), "{found:?}");
    // dd shows how far it is.
    let progress = "1000000000 bytes (1.0 GB, 954 MiB) copied, 2 s, 500 MB/s\r";
    let found = shown(&[&slow, &dd("64k"), progress, &end(20)].concat());
    assert!(found[0].1.what.contains("200 MB/s"), "{found:?}");
    for options in ["-b 128", "-b128", "--blocking-factor=128"] {
        let tar = |options: &str, minutes: u32| {
            format!("# time tar {options} -cf /dev/nst0 x\nreal {minutes}m0.0s\n")
        };
        let found = shown(&[tar("", 2), tar(options, 1)].concat());
        assert!(found[0].1.what.starts_with("blocks of 64 KiB were the fastest"), "{options}");
    }
}

#[test]
fn jobs_of_several_sections_and_groups_say_nothing_of_one() {
    let file = "[global]\nioengine=libaio\n[a]\nbs=1m\niodepth=4\n[b]\nbs=4k\nnumjobs=8\n";
    assert_eq!(shown(file), []);
    let found = shown("[a]\nioengine=libaio\ndirect=1\nbs=4k\niodepth=64\n");
    assert_eq!(found[0].1.what, "the job has 64 requests of 4 KiB in flight at most");
    let found = shown("[a]\nbs=4k\niodepth=64\nnumjobs=4\n");
    assert_eq!(found[0].1.what, "the job has 4 requests of 4 KiB in flight at most");
    let job = |name: &str, sizes: &str| {
        format!("{name}: (g=0): rw=write, bs={sizes}, ioengine=libaio, iodepth=4\n")
    };
    let started = "Starting 9 processes\n";
    let two = "(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B";
    assert_eq!(shown(&[&job("a", two), &job("b", two), started].concat()), []);
    let other = "(R) 4096B-4096B, (W) 1024KiB-1024KiB, (T) 4096B-4096B";
    let found = shown(&[&job("a", other), started].concat());
    assert!(found[0].1.what.contains("of 1 MiB"), "{found:?}");
    let range = "(R) 4096B-4096B, (W) 4096B-1024KiB, (T) 4096B-4096B";
    let found = shown(&[&job("a", range), started].concat());
    assert!(found[0].1.what.contains("36 requests in flight"), "{found:?}");
}

#[test]
fn summaries_that_may_be_of_something_else_are_not_judged() {
    let rest = "Run Time... 0:10:00\nSpeed: 10 MB/s\n";
    for size in ["Block Size: 64 kB", "Total Size: 1,234 GB", "Total Size: 1 TB\nData read: 6 GB"] {
        assert_eq!(shown(&format!("{size}\n{rest}")), [], "{size}");
    }
    assert_eq!(shown("Total Size: 9 GB\nDuration: 01:56\nSpeed: 1 MB/s\n"), [], "hours or minutes");
    let later = "Total Size: 9 GB\nSpeed: 1 MB/s\nRun Time... 0:10:00\n";
    assert_eq!(shown(&later.repeat(2)), [], "the time of one and the size of the next");
}

#[test]
fn calls_that_overlap_are_not_one_at_a_time() {
    let submit = "io_submit(0x7f, 1, [{}]) = 1\n";
    let wait = "io_getevents(0x7f, 1, 8, [{}], NULL) = 1\n";
    assert_eq!(shown(&[submit, wait].concat().repeat(9))[0].0, "given.one-at-a-time");
    assert_eq!(shown(&[&submit.repeat(8)[..], wait, submit, wait].concat()), []);
    let enter = |wait: u32| format!("io_uring_enter(4, 1, {wait}, 0, NULL, 8) = 1\n").repeat(12);
    assert_eq!((shown(&enter(0)).len(), shown(&enter(1)).len()), (0, 1));
    let read = |pid: u32| format!("[pid {pid}] pread64(3, \"\"..., 4096, 0) = 4096\n");
    assert_eq!(
        (shown(&read(1).repeat(5)).len(), shown(&[read(1), read(2)].concat()).len()),
        (1, 0)
    );
    let cut = "[pid 2] pread64(3,  <unfinished ...>\n";
    assert_eq!(shown(&[&read(1), cut, &read(1)].concat()), []);
    // The sync of another process, and of another file.
    let write = |pid: u32| format!("[pid {pid}] write(5</a>, \"\"..., 512) = 512\n");
    let sync = |pid: u32, file: u32| format!("[pid {pid}] fdatasync({file}</b>) = 0\n");
    let rules = |text: String| shown(&text).into_iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(rules([write(1), sync(1, 5)].concat().repeat(3)), ["given.sync-each"]);
    assert_eq!(rules([write(1), sync(2, 5)].concat().repeat(3)), ["given.one-at-a-time"]);
    assert_eq!(rules([write(1), sync(1, 6)].concat().repeat(3)), ["given.one-at-a-time"]);
}

#[test]
fn settings_count_from_where_they_stand() {
    let table = "Device r/s rkB/s rrqm/s w/s wkB/s wrqm/s aqu-sz %util\n\
                 sda 0.0 0.0 0.0 9000.0 36000.0 0.0 1.0 50.0\n";
    let set = |value: u32| format!("# echo {value} > /sys/block/sda/queue/nomerges\n");
    let rules = |text: String| shown(&text).into_iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(rules(format!("{}{table}", set(2))), ["given.merging-off"]);
    assert_eq!(rules(format!("{}{}{table}", set(2), set(0))), Vec::<String>::new());
    assert_eq!(rules(format!("{table}{}", set(2))), Vec::<String>::new());
    // Two people's disks, and the report of `-y`, which has none of the time since the start.
    let busy = table.replace("1.0 50.0", "60.0 100.0");
    let found = shown(&format!("{busy}\nBob has this:\n\n{}", busy.replace("60.0", "4.0")));
    let found: Vec<&str> = found.iter().map(|it| it.1.what.as_str()).collect();
    assert!(found[0].contains("has 60.0") && found[1].contains("has 4.0"), "{found:?}");
    let idle = table.replace("36000.0", "36.0");
    let found = shown(&format!("# iostat -xky 30\n{busy}{idle}"));
    assert!(found[0].1.what.contains("60.0"), "{found:?}");
}

/// Of a second look, with other truths.
#[test]
fn what_is_cut_or_of_somebody_else_is_not_taken() {
    let end =
        |seconds: u32| format!("4000000000 bytes (4.0 GB, 3.7 GiB) copied, {seconds} s, 1 MB/s\n");
    let dd = |options: &str| format!("$ dd if=a of=/dev/nst0{options}\n");
    // Options in the next line, and prompts that are not known.
    for second in ["$ dd if=a of=/dev/nst0\nbs=64k\n", "what I did then:\ndd bs=1M ...\n"] {
        assert_eq!(shown(&[dd(" bs=4k"), end(90), second.to_owned(), end(9)].concat()), []);
    }
    let more = "4100000000 bytes (4.1 GB, 3.8 GiB) copied, 9 s, 1 MB/s\n";
    let text = [&dd(" bs=64k"), &end(90), "(same with bs=1M)\n", more].concat();
    assert_eq!(shown(&[&dd(" bs=4k"), &end(95), &text[..]].concat()), []);
    for prompt in ["bash-5.1$ ", "/ # ", "$ LC_ALL=C ", "(env) me@host:~$ ", "mac:~ joe$ "] {
        let text = [dd(" bs=4k"), end(90), dd(" bs=64k").replace("$ ", prompt), end(9)].concat();
        let found = shown(&text.replace(
            "$ dd if=a of=/dev/nst0 bs=4k",
            &format!("{prompt}dd if=a of=/dev/nst0 bs=4k"),
        ));
        assert!(found[0].1.what.starts_with("blocks of 64 KiB"), "{prompt}: {found:?}");
    }
    let table = "Device r/s rkB/s rrqm/s w/s wkB/s wrqm/s aqu-sz %util\n\
                 sda 0.0 0.0 0.0 9000.0 36000.0 0.0 32.0 100.0\n";
    let set = |prompt: &str, how: &str| format!("{prompt} echo 2 {how}\n");
    let path = "/sys/block/sda/queue/nomerges";
    let is_off = |text: &str| shown(text).iter().any(|it| it.0 == "given.merging-off");
    let denied = format!("-bash: {path}: Permission denied\n");
    assert!(is_off(&[&set("#", &format!("> {path}")), table].concat()));
    assert!(is_off(&[&set("$", &format!("| sudo tee {path}")), "2\n", table].concat()));
    assert!(!is_off(&[&set("$", &format!("> {path}")), &denied, table].concat()));
    let theirs = set("a@db:~#", &format!("> {path}"));
    assert!(!is_off(&[&theirs, "b@nas:~# iostat -xk\n", table].concat()));
    // Three people's disks.
    let others = [table, "[code]\n", &table.replace("32.0", "8.0"), "[/code]\n"].concat();
    let found = shown(&format!("alice:\n{others}"));
    assert_eq!(found.iter().filter(|it| it.0 == "given.in-flight").count(), 2, "{found:?}");
}

#[test]
fn values_that_are_not_sure_are_not_replaced_by_defaults() {
    for value in ["iodepth=${QD}", "numjobs=${N}", "bssplit=4k/10:64k/90", "bs=4k,64k"] {
        let text = format!("[global]\nioengine=libaio\nbs=4k\niodepth=4\n[a]\n{value}\n");
        assert_eq!(shown(&text), [], "{value}");
    }
    // Results of a job that was not sent.
    let job =
        "a: (g=0): rw=read, bs=(R) 4096B-4096B, (W) 4096B-4096B, ioengine=libaio, iodepth=4\n";
    let rate = "read: IOPS=9000, BW=35.2MiB/s (36.9MB/s)(352MiB/10001msec)\n\
                lat (usec): min=1, max=9, avg=400.00, stdev=1.0\n";
    let found = shown(&[job, "Starting 1 process\n", "$ fio b.fio\n", rate].concat());
    assert_eq!(found[0].1.what, "the job has 4 requests of 4 KiB in flight at most");
    // A day and two hours; and a size that cannot be read is not the one before.
    let of =
        |size: &str, time: &str| format!("Total Size: {size}\nDuration: {time}\nSpeed: 100 MB/s\n");
    assert_eq!(shown(&of("9.378 TB", "1.02:03:04")), []);
    let first = of("60.00 GB", "0:10:00");
    assert_eq!(shown(&[first, of("1,204 GB", "3:20:40")].concat()), []);
}

fn rules_of(text: &str) -> Vec<String> {
    shown(text).into_iter().map(|it| it.0).collect()
}

const STATUS: &str = "# mt -f /dev/nst0 status\nSCSI 2 tape drive:\n\
                      Tape block size 0 bytes. Density code 0x5a (no translation).\n\
                      General status bits on (41010000):\n";

#[test]
fn a_drive_that_is_set_as_it_should_be_is_not_blamed() {
    assert_eq!(rules_of(STATUS), ["given.tape-speed"]);
    assert_eq!(rules_of(&STATUS.repeat(3)), ["given.tape-speed"]);
    // Of no medium, block size and density mean nothing.
    let empty = STATUS.replace("41010000", "50000").replace("size 0", "size 512");
    assert_eq!(rules_of(&empty.replace("0x5a", "0x0")), ["given.no-tape"]);
    let large = STATUS.replace("size 0", "size 262144");
    let found = shown(&large);
    assert_eq!((found[0].0.as_str(), &found[0].1.command), ("given.fixed-blocks", &None));
    let other = STATUS.replace("0x5a", "0x25");
    assert_eq!(rules_of(&other), Vec::<String>::new(), "no LTO");
}

#[test]
fn a_tape_stops_only_below_the_lowest_speed_of_its_own_medium() {
    let end =
        |seconds: u32| format!("4000000000 bytes (4.0 GB, 3.7 GiB) copied, {seconds} s, 1 MB/s\n");
    let dd = |prompt: &str, target: &str| format!("{prompt} dd if=a of={target} bs=1M\n");
    let is_below = |text: String| rules_of(&text).iter().any(|it| it == "given.below-lowest");
    assert!(is_below([STATUS, &dd("#", "/dev/nst0"), &end(200)].concat()));
    assert!(!is_below([STATUS, &dd("#", "/dev/nst0"), &end(61)].concat()), "66 MB/s");
    let short = end(20).replace("4000000000", "100000000");
    assert!(!is_below([STATUS, &dd("#", "/dev/nst0"), &short].concat()), "all in its buffer");
    assert!(!is_below([STATUS, &dd("#", "/dev/nst1"), &end(200)].concat()), "another drive");
    assert!(!is_below([STATUS, &dd("me@nas:~#", "/dev/nst0"), &end(200)].concat()));
    assert!(!is_below([&dd("#", "/dev/nst0"), &end(100), STATUS].concat()), "of before");
    let tar = |rate: &str| {
        format!(
            "{STATUS}# tar --totals -cf /dev/nst0 /srv\n\
             Total bytes written: 10737418240 (10GiB, {rate}MiB/s)\n"
        )
    };
    assert!(is_below(tar("20")) && !is_below(tar("50")));
    assert!(!is_below(tar("20").replace("-cf", "-xf")), "tar reads");
}

#[test]
fn btape_is_compared_only_with_itself() {
    let test = |data: &str, block: u32, rate: &str| {
        format!(
            "btape.c:1 Test with {data} data, should\n\
             btape.c:2 Begin writing 3 files of 3.221 GB with blocks of {block} bytes.\n\
             btape.c:3 Wrote 1 EOF to \"Drive-0\" (/dev/nst0)\n\
             btape.c:4 Total Volume bytes=9.664 GB. Total Write rate = {rate} MB/s\n"
        )
    };
    let pair = |zeros: &str, random: &str, block: u32| {
        rules_of(&[test("zero", 65_536, zeros), test("random", block, random)].concat())
    };
    assert_eq!(pair("300.0", "100.0", 65_536), ["given.zeros"]);
    assert_eq!(pair("101.0", "100.0", 65_536), ["given.zeros"]);
    // In between either may be: the host, or data that are mixed before each write.
    assert_eq!(pair("125.0", "100.0", 65_536), Vec::<String>::new());
    assert_eq!(pair("300.0", "100.0", 131_072), Vec::<String>::new(), "other blocks");
    let sizes = [test("random", 65_536, "100.0"), test("random", 131_072, "101.0")].concat();
    let found = shown(&sizes);
    assert_eq!(found[0].1.what, "blocks of 64 KiB are enough for random data: 100 MB/s");
    let status = |rate: &str| rules_of(&[STATUS, &test("random", 65_536, rate)].concat());
    assert_eq!(status("155.0"), ["given.at-highest", "given.tape-speed"]);
    assert_eq!(status("100.0"), ["given.tape-speed"]);
    // No line says which data these are.
    let nameless = test("zero", 65_536, "300.0").split_once('\n').unwrap().1.to_owned();
    assert_eq!(rules_of(&nameless), Vec::<String>::new());
}

#[test]
fn devices_are_stacked_only_where_every_row_is_there() {
    let header = "NAME      MAJ:MIN RM   SIZE RO TYPE  MOUNTPOINT\n";
    let disk = "sda         8:0    0   1.8T  0 disk\n";
    let raid = "└─md0       9:0    0   1.8T  0 raid1\n";
    let volume = "  └─vg-a  253:0    0   1.8T  0 lvm   /a\n";
    assert_eq!(rules_of(&[header, disk, raid, volume].concat()), ["given.layers"]);
    assert_eq!(rules_of(&[header, disk, volume].concat()), Vec::<String>::new());
    let plain = "└─sda1      8:1    0   1.8T  0 part  /a\n";
    assert_eq!(rules_of(&[header, disk, plain].concat()), Vec::<String>::new());
}

#[test]
fn several_jobs_of_json_say_nothing_of_one() {
    let entry = |name: &str| {
        format!(
            r#"{{"jobname": "{name}",
            "job options": {{"bs": "8k", "iodepth": "4", "direct": "1", "ioengine": "libaio"}},
            "read": {{"iops": 100.0, "bw_bytes": 819200, "lat_ns": {{"mean": 1000000.0}}}},
            "write": {{"iops": 0.0, "bw_bytes": 0, "lat_ns": {{"mean": 0.0}}}}}}"#
        )
    };
    let text = |jobs: String| format!("{{\"fio version\": \"fio-3.33\", \"jobs\": [{jobs}]}}\n");
    assert_eq!(rules_of(&text(entry("a"))), ["given.offered"]);
    let two = [entry("a"), entry("b")].join(",\n");
    assert_eq!(rules_of(&text(two)), Vec::<String>::new());
}

#[test]
fn a_report_of_a_job_needs_its_time_and_bytes() {
    let report = "Elapsed time:           10 mins\n\
                  FD Bytes Written:       6,000,000,000 (6.000 GB)\n\
                  Software Compression:   None\n";
    assert_eq!(shown(report)[0].1.what, "the job moved 10.0 MB/s");
    let [time, rest] = report.split_once('\n').map(|(a, b)| [a, b]).unwrap();
    assert_eq!((rules_of(rest), rules_of(&format!("{time}\n"))), (vec![], vec![]));
    // The time of one, and the bytes of two.
    assert_eq!(rules_of(&[report, rest].concat()), Vec::<String>::new());
}
