//! Texts whose truth is known, and from which something false was concluded once.

use super::*;

/// `mt status` of a drive with an LTO-6 medium.
const LTO_6: &str = "# mt -f /dev/nst0 status\nSCSI 2 tape drive:\n\
                     File number=0, block number=0, partition=0.\n\
                     Tape block size 0 bytes. Density code 0x5a (LTO-6).\n\
                     Soft error count since last status=0\n\
                     General status bits on (41010000):\n BOT ONLINE IM_REP_EN\n";

const LOWEST: &str = "less than the lowest speed";

fn dd(options: &str, seconds: f64) -> String {
    format!(
        "# dd {options}\n40000+0 records in\n40000+0 records out\n\
         10485760000 bytes (10 GB, 9.8 GiB) copied, {seconds} s, 1 MB/s\n"
    )
}

fn slow() -> String {
    dd("if=/srv/a.img of=/dev/nst0 bs=256k", 397.4)
}

fn says(text: &str, part: &str) -> bool {
    shown(text).iter().any(|it| it.1.line().contains(part))
}

fn asks_for(text: &str, part: &str) -> bool {
    let found = conclude(&read(text).pieces);
    found.missing.iter().any(|it| it.command.contains(part))
}

#[test]
fn another_medium_has_another_lowest_speed() {
    let stops = |between: &str| says(&[LTO_6, between, &slow()].concat(), LOWEST);
    for same in ["", "# mt -f /dev/nst0 rewind\n", "# mtx -f /dev/sg3 status\n", "# mt rew\n"] {
        assert!(stops(same), "{same}");
    }
    // Another drive, and a command that only runs on another machine.
    for other in ["# mt -f /dev/nst1 offline\n", "# ssh backup2 uptime\n", "# ssh b2\n# exit\n"] {
        assert!(stops(other), "{other}");
    }
    for change in [
        "# mtx -f /dev/sg3 unload 3 0\n# mtx -f /dev/sg3 load 5 0\n",
        "# mt -f /dev/nst0 offline\n(put in the LTO-5 tape)\n",
        "# sudo mt -f /dev/st0 eject\n",
        "# mt -f /dev/nst0 rewind && mt -f /dev/nst0 rewoffl\n",
        "# mt load\n",
        "# sudo -n mt -f /dev/nst0 offline\n",
        "# sudo -u root mt -f /dev/nst0 offline\n",
        "# ssh -p 22 root@backup2.example.com\n",
        "# for slot in 1 2; do mtx -f /dev/sg3 load $slot; done\n",
    ] {
        assert!(!stops(change), "{change}");
    }
    // A setting is no medium.
    assert!(stops("# mt -f /dev/nst0 compression 0\n"));
}

#[test]
fn a_drive_that_was_set_otherwise_is_not_compared() {
    let [small, large] = ["64k", "256k"].map(|size| format!("if=a of=/dev/nst0 bs={size}"));
    let [other, same] = [large.replace("if=a", "if=b"), large.replace("nst0", "st0")];
    let compared = |text: &str| !shown(text).is_empty();
    assert!(compared(&[dd(&small, 80.0), dd(&large, 40.0)].concat()));
    assert!(compared(&[dd(&small, 80.0), dd(&same, 40.0)].concat()), "one drive");
    for change in ["mt -f /dev/nst0 compression 1", "mtx -f /dev/sg3 load 5 0", "mt setblk 0"] {
        let change = format!("# {change}\n");
        assert!(!compared(&[&dd(&small, 80.0), &change[..], &dd(&large, 40.0)].concat()));
        assert!(!compared(&[&dd(&large, 80.0), &change[..], &dd(&other, 40.0)].concat()));
    }
    let fixed = LTO_6.replace("size 0", "size 512");
    assert!(says(&fixed, "setblk 0"));
    assert!(!says(&[&fixed, "# mt -f /dev/nst0 setblk 0\n"].concat(), "fixed blocks"));
    let unbuffered = LTO_6.replace("41010000", "41000000");
    assert!(says(&unbuffered, "drvbuffer 1"));
    assert!(!says(&[&unbuffered, "# mt -f /dev/nst0 drvbuffer 1\n"].concat(), "drvbuffer 1"));
}

#[test]
fn what_fits_a_buffer_does_not_stop_a_tape() {
    let tar = |totals: &str| {
        let text = format!("{LTO_6}# tar --totals -cf /dev/nst0 /srv\nTotal bytes written: ");
        says(&format!("{text}{totals}\n"), LOWEST)
    };
    assert!(!tar("31457280 (30MiB, 900KiB/s)"));
    assert!(!tar("10485760 (10MiB, 24KiB/s)"));
    assert!(tar("10485760000 (9.8GiB, 30MiB/s)"));
    // Half of what is compressed.
    let page = "# sg_logs -p 0x1b /dev/nst0\nData compression page  (ssc-4) [0x1b]\n  \
                Write compression ratio x100: 600\n";
    assert!(!says(&[LTO_6, page, &dd("if=a of=/dev/nst0 bs=1M", 60.0)].concat(), LOWEST));
    // A person brings the next tape.
    let many = |options: &str, question: &str| {
        let totals = "Total bytes written: 10485760000000 (9.6TiB, 30MiB/s)\n";
        let text = format!("# tar --totals {options} /dev/nst0 /srv\n{question}{totals}");
        says(&[LTO_6, &text].concat(), LOWEST)
    };
    assert!(many("-cf", ""));
    assert!(!many("-cMf", ""));
    assert!(!many("--multi-volume -cf", ""));
    assert!(!many("-cf", "Prepare volume #2 for '/dev/nst0' and hit return: \n"));
}

fn btape(data: &str, drive: &str, block: u32, rate: &str) -> String {
    format!(
        "btape: btape.c:1078-0 Test with {data} data and bacula block structure.\n\
         btape: btape.c:956-0 Begin writing 3 files of 3.221 GB with blocks of {block} bytes.\n\
         {drive}btape: btape.c:383-0 Total Volume bytes=9.664 GB. Total Write rate = {rate} MB/s\n"
    )
}

fn filemark(number: u32) -> String {
    format!("btape: btape.c:604-0 Wrote 1 EOF to \"D{number}\" (/dev/nst{number})\n")
}

#[test]
fn btape_of_one_drive_is_not_compared_with_another() {
    let [first, second] = [filemark(0), filemark(1)];
    let two = |between: &str, drive: &str| {
        let zeros = btape("zero", &first, 262_144, "300.0");
        let random = btape("random", drive, 262_144, "118.0");
        let small = btape("zero", drive, 64_512, "118.0");
        let pair = rules_of(&[&zeros, between, &random].concat());
        (pair, rules_of(&[&zeros, between, &small].concat()))
    };
    let none = Vec::<String>::new;
    let both = (vec!["given.zeros".to_owned()], vec!["given.block-size".to_owned()]);
    assert_eq!(two("", &first), both);
    assert_eq!(two("", ""), both, "only one is named");
    assert_eq!(two("", &second), (none(), none()));
    assert_eq!(two("root@b:~# btape -c bacula-sd.conf /dev/nst0\n", &first), (none(), none()));
    assert_eq!(two("# mt -f /dev/nst0 compression 0\n", &first), (none(), none()));
    assert_eq!(two("# btape -c bacula-sd.conf /dev/nst1\n", ""), (none(), none()));
    assert_eq!(two("# btape -c bacula-sd.conf /dev/nst0\n", &first), both);
}

#[test]
fn zeros_as_slow_as_random_data_show_another_limit() {
    let info = |compression: &str| {
        format!(
            "# tapeinfo -f /dev/nst0\nReady: yes\nBufferedMode: yes\nDensity Code: 0x5a\n\
             BlockSize: 0\nDataCompEnabled: {compression}\n"
        )
    };
    let drive = filemark(0);
    let pair = |random: &str| {
        let zeros = btape("zero", &drive, 262_144, "150.0");
        [zeros, btape("random", &drive, 262_144, random)].concat()
    };
    let on = [info("yes"), pair("149.0")].concat();
    assert!(says(&on, "though the drive compresses"), "{:?}", shown(&on));
    assert!(!says(&on, "/dev/nst0 is the limit") && !asks_for(&on, "tapeinfo"));
    let off = [info("no"), pair("149.0")].concat();
    assert!(says(&off, "compression of the drive is off") && says(&off, "is the limit"));
    assert!(!says(&off, "makes that more") && !asks_for(&off, "tapeinfo"));
    assert!(asks_for(&pair("149.0"), "tapeinfo -f /dev/nst0"));
    // Slower than a tape can be.
    let status = LTO_6.replace("0x5a", "0x5c");
    let caveat = |random: &str| {
        let text = [
            &status,
            &btape("zero", &drive, 262_144, "480.0"),
            &btape("random", &drive, 262_144, random),
        ];
        let found = shown(&text.map(String::as_str).concat());
        let zeros = found.into_iter().find(|it| it.0 == "given.zeros").unwrap();
        zeros.1.caveat.unwrap()
    };
    assert!(caveat("45.0").contains("cannot be as slow"), "{}", caveat("45.0"));
    assert!(caveat("250.0").contains("what the tape takes"), "{}", caveat("250.0"));
}

#[test]
fn the_last_program_of_a_pipeline_writes_to_the_tape() {
    let stops = |line: &str, result: &str| {
        says(&format!("{LTO_6}# {line}\n{result}\n"), "less than the lowest speed")
    };
    let copied = "10485760000 bytes (10 GB, 9.8 GiB) copied, 397.4 s, 26.4 MB/s";
    assert!(stops("tar cf - /srv | dd of=/dev/nst0 bs=256k", copied));
    assert!(stops("tar cf - /srv | dd bs=256k > /dev/nst0", copied));
    assert!(stops("dd if=/srv/a of=/dev/st0 bs=64k", copied), "the same drive");
    // Its bytes are not those of the tape.
    assert!(!stops("dd if=/dev/sda bs=1M | gzip > /dev/nst0", copied));
    assert!(!stops("dd if=/dev/sda bs=1M | dd of=/dev/nst0", copied));
    let pv = " 9.77GiB 0:06:37 [25.2MiB/s] [   <=>      ]";
    assert!(stops("tar cf - /srv | pv -L 25m > /dev/nst0", pv));
    assert!(stops("tar cf - /srv | pv | mbuffer -m 1G -o /dev/nst0", pv));
    let both = format!("{LTO_6}# tar cf - /srv | pv | dd of=/dev/nst0\n{pv}\n{copied}\n");
    assert_eq!(rules_of(&both).iter().filter(|it| *it == "given.below-lowest").count(), 1);
    assert!(!stops("pv /srv/a | zstd > /dev/nst0", pv));
    let totals = "Total bytes written: 10485760000 (9.8GiB, 25MiB/s)";
    assert!(stops("tar cf - --totals /srv | dd of=/dev/nst0 bs=64k", totals));
    let found = shown(&format!("{LTO_6}# tar --totals -cf /dev/nst0 /srv\n{totals}\n"));
    let rates = found.iter().filter(|it| it.1.line().contains("26.2 MB/s")).count();
    assert_eq!(rates, 2, "one rate of one line: {found:?}");
}

#[test]
fn compression_of_the_drive_counts() {
    let info = "# tapeinfo -f /dev/nst0\nReady: yes\nBufferedMode: yes\nDensity Code: 0x5a\n\
                BlockSize: 0\nDataCompEnabled: no\n";
    let fast = dd("if=/srv/a.img of=/dev/nst0 bs=256k", 66.0);
    let limit = "the tape in /dev/nst0 is the limit";
    assert!(says(&[LTO_6, info, &fast].concat(), limit));
    assert!(!says(&[LTO_6, info, "# mt compression 1\n", &fast].concat(), limit));
    assert!(!says(&[LTO_6, &fast].concat(), limit));
    assert!(!says(&[LTO_6, info].concat(), "makes that more"));
    let page = |enabled: &str| {
        format!(
            "# sg_logs -p 0x1b /dev/nst0\nData compression page  (ssc-4) [0x1b]\n  \
             Write compression ratio x100: 250\n  Data compression enabled: {enabled}\n"
        )
    };
    let at_60 = dd("if=/srv/a.img of=/dev/nst0 bs=256k", 174.7);
    let on_tape = "60.0 MB/s are 24.0 MB/s on the tape, which is less than the lowest speed";
    assert!(says(&[LTO_6, &page("0x1"), &at_60].concat(), on_tape));
    assert!(!says(&[LTO_6, &page("0x0"), &at_60].concat(), "lowest speed of"));
    assert!(!says(&[LTO_6, &page("0x1"), "# mtx load 1\n", &at_60].concat(), "lowest speed of"));
    assert!(says(&page("0x0"), "is off") && !says(&page("0x0"), "compressed what"));
}

#[test]
fn a_density_without_a_tape_means_nothing() {
    let info =
        |ready: &str| format!("# tapeinfo -f /dev/sg1\nReady: {ready}\nDensity Code: 0x5a\n");
    assert_eq!(rules_of(&info("yes")), ["given.tape-speed"]);
    assert_eq!(rules_of(&info("no")), ["given.no-tape"]);
    assert_eq!(rules_of("Ready: no\n"), Vec::<String>::new(), "of something else");
    // DLT1 and LTO-1.
    assert_eq!(rules_of(&LTO_6.replace("0x5a", "0x40")), Vec::<String>::new());
}

#[test]
fn libaio_through_the_page_cache_has_one_request_in_flight() {
    let result = |command: &str| {
        format!(
            "$ fio --name=a --rw=read --bs=128k --ioengine=libaio --iodepth=32{command}\n\
             a: (g=0): rw=read, bs=(R) 128KiB-128KiB, (W) 128KiB-128KiB, (T) 128KiB-128KiB, \
             ioengine=libaio, iodepth=32\nfio-3.33\nStarting 1 process\n\
             read: IOPS=1365, BW=171MiB/s (179MB/s)(10.0GiB/60000msec)\n\
             lat (usec): min=100, max=91000, avg=23430.10, stdev=3000.00\n"
        )
    };
    let all = "all of its 32 requests";
    assert!(says(&result(""), "about 1 request in flight, not 32"));
    assert!(says(&result(""), "direct=1") && !says(&result(""), all));
    assert!(says(&result(" --direct=1"), all));
    assert!(says(&result(" --direct=0"), "about 1 request"));
    // What the file of the job says is not known, or is in the text.
    assert!(shown(&result(" a.fio"))[0].1.caveat.as_ref().unwrap().contains("direct=1"));
    let file = "[a]\nioengine=libaio\nbs=128k\niodepth=32\n";
    assert!(says(file, "about 1 request in flight, not 32"));
    assert!(says(&format!("{file}direct=1\n"), "32 requests of 128 KiB in flight at most"));
    assert!(says(&[file, "\n", &result(" a.fio")].concat(), "about 1 request"));
    assert!(!says(&[file, "direct=1\n\n", &result(" a.fio")].concat(), "about 1 request"));
    let other = file.replace("libaio", "io_uring");
    assert!(says(&other, "32 requests of 128 KiB in flight at most"));
}

#[test]
fn job_reports_say_how_a_job_ended() {
    let report = |head: &str, size: &str, compression: &str, end: &str| {
        format!(
            "{head}  JobId:                  4711\n  Elapsed time:           1 hour 5 mins\n  \
             FD Bytes Written:       {size}\n  Rate:                   40000.0 KB/s\n  \
             Software Compression:   {compression}\n  Termination:            {end}\n"
        )
    };
    let size = "156,000,000,000 (156.0 GB)";
    let bacula = "12-Mar 02:10 bk-dir JobId 4711: Bacula bk-dir 11.0.6 (10Mar22):\n";
    let bareos = bacula.replace("Bacula bk-dir 11", "Bareos bareos-dir 23");
    let compressed = |head: &str| report(head, size, "61.9% 2.6:1", "Backup OK");
    assert!(says(&compressed(bacula), "40.0 MB/s after compression, and read about 105 MB/s"));
    assert!(says(&compressed(bacula), "in one thread"));
    assert!(says(&compressed(&bareos), "Maximum Workers Per Job"));
    assert!(says(&compressed(&bareos.replace("23.", "22.")), "in one thread"));
    assert!(!says(&compressed(""), "thread"));
    let ended = |end: &str| rules_of(&report(bacula, size, "None", end));
    assert_eq!(ended("Backup OK"), ["given.moved"]);
    assert_eq!(ended("*** Backup Error ***"), ["given.job-failed"]);
    assert_eq!(ended("Backup Canceled"), ["given.job-failed"]);
    let small = report(bacula, "2,345,678 (2.345 MB)", "None", "Backup OK");
    assert_eq!(rules_of(&small), Vec::<String>::new());
    // A report without its time, below one of a job that restored.
    let restored = "  JobId:                  4712\n  Elapsed time:           5 mins\n  \
                    Bytes Restored:         156,000,000,000 (156.0 GB)\n  \
                    Termination:            Restore OK\n";
    let timeless = report("", size, "None", "Backup OK").replace("Elapsed time", "Elapsed");
    assert_eq!(rules_of(&[restored, &timeless].concat()), Vec::<String>::new());
    let spool = |time: &str| {
        format!(
            "12-Mar 03:10 bk-sd JobId 4711: Despooling elapsed time = {time}, Transfer rate = \
             150.0 M Bytes/second\n"
        )
    };
    let found = shown(&[spool("00:10:00"), spool("00:07:20")].concat());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.line().contains("at 150 MB/s: 2 spools, 156 GB in 17 min 20 s"));
}

#[test]
fn times_of_bash_and_time_v_are_those_of_a_program() {
    let bash = |user: &str| format!("\nreal\t7m2.100s\nuser\t{user}\nsys\t0m8.720s\n");
    let gzip = "$ time gzip -c big.img > /dev/null\n";
    let busy = "gzip keeps a processor busy: 6 min 49 s of processor time in 7 min 02 s";
    assert!(says(&[gzip, &bash("6m40.310s")].concat(), busy));
    assert!(!says(&[gzip, &bash("3m40.310s")].concat(), "busy"));
    let verbose = "\tCommand being timed: \"gzip -c big.img\"\n\tUser time (seconds): 400.31\n\
                   \tSystem time (seconds): 8.72\n\tPercent of CPU this job got: 97%\n\
                   \tElapsed (wall clock) time (h:mm:ss or m:ss): 7:02.10\n\
                   \tMaximum resident set size (kbytes): 3200\n";
    assert!(says(&["$ /usr/bin/time -v gzip -c big.img > /dev/null\n", verbose].concat(), busy));
    let pipeline = "$ time tar cf - /srv | gzip > /dev/null\n";
    let found = shown(&[pipeline, &bash("6m40.310s")].concat());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.line().contains("one of its programs most likely keeps a processor busy"));
    assert!(says(&[pipeline, &bash("36m40.310s")].concat(), "keeps 5.2 processors busy"));
}

#[test]
fn tar_does_not_read_for_the_null_device() {
    let totals = "Total bytes written: 10485760000 (9.8GiB, 11GiB/s)\n";
    let of = |line: &str| shown(&format!("$ {line}\n{totals}"))[0].1.line();
    for line in ["tar cf /dev/null --totals /srv", "tar cf - --totals /srv > /dev/null"] {
        assert!(of(line).contains("read none of the 10.5 GB"), "{}", of(line));
    }
    for line in ["tar cf - --totals /srv | cat > /dev/null", "tar cf /mnt/a --totals /srv"] {
        assert!(of(line).contains("moved 10.5 GB"), "{}", of(line));
    }
    let pv = "  in: 1.50GiB 0:01:10 [ 199MiB/s] [ <=> ]\n";
    assert!(says(pv, "pv of `in` moved"));
}

#[test]
fn a_device_on_several_disks_is_said_once() {
    let disk = |name: &str| {
        format!(
            "{name}      8:0    0   3.6T  0 disk\n\
             └─{name}1   8:1    0   3.6T  0 part\n  \
             └─md0    9:0    0   7.3T  0 raid5\n    \
             └─vg   253:0    0     7T  0 lvm   /srv\n"
        )
    };
    let header = "NAME      MAJ:MIN RM   SIZE RO TYPE  MOUNTPOINTS\n";
    let found = shown(&[header, &disk("sda"), &disk("sdb"), &disk("sdc")].concat());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].1.what, "/srv lies on vg (lvm) on md0 (raid5) on sda, sdb and sdc");
}

#[test]
fn what_lies_below_has_the_rest_of_the_requests() {
    let job = "[a]\nioengine=libaio\ndirect=1\nrw=randread\nbs=4k\niodepth=8\nnumjobs=4\n\n";
    let columns = "# iostat -xy 10 1\nDevice r/s rkB/s rrqm/s w/s wkB/s wrqm/s aqu-sz %util\n";
    let row = |name: &str, rate: u32, in_flight: f64| {
        let kib = rate * 4;
        format!("{name} {rate}.0 {kib}.0 0.0 0.0 0.0 0.0 {in_flight} 100.0\n")
    };
    let disks = [row("sda", 500, 15.9), row("sdb", 500, 15.9)].concat();
    let raid = row("md0", 1000, 31.8);
    let unknown = "where the others are";
    assert!(says(&[job, columns, &disks].concat(), unknown));
    let all = [job, columns, &disks, &raid].concat();
    assert!(!says(&all, unknown) && says(&all, "32 in flight are all"), "{:?}", shown(&all));
}

/// The first device of a line is not that of all its commands.
#[test]
fn of_two_drives_in_a_line_none_is_named() {
    let both =
        LTO_6.replace("# mt", "# mt -f /dev/nst1 rewind && mt").replace("size 0", "size 512");
    let shown = shown(&both);
    assert!(!shown.is_empty());
    assert!(shown.iter().all(|it| !it.1.line().contains("nst1")), "{shown:?}");
}

#[test]
fn what_does_not_say_its_requests_has_not_all_of_them_in_flight() {
    let text = |options: &str| {
        format!(
            "{{\"fio version\": \"fio-3.33\", \"jobs\": [{{\"jobname\": \"a\", {options}\
             \"read\": {{\"io_bytes\": 419430400, \"bw_bytes\": 4194304, \"iops\": 1024.0, \
             \"total_ios\": 102400, \"lat_ns\": {{\"mean\": 976000.0}}}}, \
             \"write\": {{\"io_bytes\": 0, \"bw_bytes\": 0, \"iops\": 0.0, \"total_ios\": 0, \
             \"lat_ns\": {{\"mean\": 0.0}}}}}}]}}\n"
        )
    };
    let told = text("\"job options\": {\"rw\": \"randread\", \"bs\": \"4k\", \"iodepth\": \"1\"},");
    assert!(says(&told, "in flight"), "{:?}", shown(&told));
    assert!(!says(&text(""), "in flight"), "{:?}", shown(&text("")));
}

#[test]
fn what_stands_in_front_of_a_program_is_not_it() {
    let timed = |line: &str| {
        format!("% time {line}\n{line}  97.0s user 2.0s system 99% cpu 1:40.00 total\n")
    };
    assert!(says(&timed("sudo gzip big"), "gzip keeps a processor busy"));
    assert!(says(&timed("xz big"), "use xz -T0"));
    assert!(!says(&timed("xz -T0 big"), "use xz -T0"));
    // Unpacking has one thread in pigz, too, and a cipher may have its instructions already.
    assert!(says(&timed("gzip -9 big"), "use pigz"));
    for line in ["gzip -dc big.gz", "gzip --decompress big.gz", "openssl enc -aes-256-ctr"] {
        let timed = timed(line);
        assert!(says(&timed, "keeps a processor busy") && !says(&timed, "in its place"), "{line}");
    }
}
