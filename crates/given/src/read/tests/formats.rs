//! Every number of each format, and what is cut of it. Whole outputs are in `tests/printed`.

use super::super::*;
use super::only;
use crate::piece::{
    CoveredLine, DeviceRow, DirectionRate, Director, DiskReport, Framing, Interval, Job, JobReport,
    Layer, Moved, Mover, Outcome, ProcessorTime, Program, ProgramTimed, Requests, Switch,
    TapeStatus, TapeTest, TestData, Timed,
};

/// Of a line that was cut at any of these ends nothing is read, and it is named.
fn assert_refused(lines: &[&str]) {
    for line in lines {
        let found = read(&format!("{line}\nand so on\n"));
        assert_eq!((found.pieces.len(), found.refused.len()), (0, 1), "{line}: {found:?}");
    }
}

#[test]
fn the_status_of_a_tape_drive() {
    let status = |text: &str| match only(text) {
        What::TapeStatus(status) => status,
        other => panic!("{other:?}"),
    };
    assert_eq!(status("SCSI 2 tape drive:"), TapeStatus::Drive);
    let position = TapeStatus::Position { file: 3, block: -1 };
    assert_eq!(status("File number=3, block number=-1, partition=0."), position);
    assert_eq!(status("File number=3, block number=-1."), position);
    let mode = TapeStatus::Mode { block_bytes: 65_536, density: 0x5a };
    assert_eq!(status("Tape block size 65536 bytes. Density code 0x5a (no translation)."), mode);
    assert_eq!(
        status("drive status = 1509949440"),
        TapeStatus::Mode { block_bytes: 0, density: 0x5a }
    );
    assert_eq!(status("Soft error count since last status=12"), TapeStatus::SoftErrors(12));
    let bits = "General status bits on (41010000):";
    assert_eq!(status(&format!("{bits}\n BOT ONLINE IM_REP_EN")), TapeStatus::Bits(0x4101_0000));
    assert_refused(&[
        "File number=3, block numb",
        "File number=3, block number=12",
        "Tape block size 655",
        "Tape block size 65536 bytes. Density code 0x5",
        "General status bits on (4101",
        "Soft error count since last status=",
    ]);
    assert_eq!(read("the best tape drive: ours\nEOF\n").pieces, []);
}

#[test]
fn what_tapeinfo_and_sg_logs_say() {
    let status = |text: &str| match only(text) {
        What::TapeStatus(status) => status,
        other => panic!("{other:?}"),
    };
    assert_eq!(status("BlockSize: 262144"), TapeStatus::BlockSize(262_144));
    assert_eq!(status("Density Code: 0x5e"), TapeStatus::Density(0x5e));
    assert_eq!(status("BufferedMode: no"), TapeStatus::Buffer(Switch::Off));
    assert_eq!(status("DataCompEnabled: yes"), TapeStatus::Compression(Switch::On));
    assert_eq!(status("  Data compression enabled: 0x0"), TapeStatus::Compression(Switch::Off));
    assert_eq!(status("  Write compression ratio x100: 250"), TapeStatus::WriteRatio(2.5));
    let alert = |name: &str| TapeStatus::Alert(name.to_owned());
    let of_info = "TapeAlert[21]: Clean Periodic: at the next opportunity";
    assert_eq!(status(of_info), alert("Clean Periodic"));
    let page = "Tape alert page (ssc-3) [0x2e]\n  Read warning: 0\n  Hard error: 1\n";
    assert_eq!(status(page), alert("Hard error"));
    assert_eq!(read("  Hard error: 1\n").pieces, []);
    // What comes below the page is none of its flags, with a blank line in front or without.
    for between in ["", "\n"] {
        let below = format!("{page}{between}online: 1\nBufferedMode: no\n  Hard error: 1\n");
        let found: Vec<What> = read(&below).pieces.into_iter().map(|it| it.what).collect();
        let buffer = TapeStatus::Buffer(Switch::Off);
        assert_eq!(found, [alert("Hard error"), buffer].map(What::TapeStatus), "{below}");
    }
    assert_eq!(status("Ready: no"), TapeStatus::NotReady);
    assert_eq!(read("Ready: yes\nReady: none\n").pieces, []);
    assert_eq!(read("BlockSize: 0\n  Write compression ratio x100: 0\n").pieces, []);
    assert_refused(&["BufferedMode: n", "DataCompEnabled: ye", "Density Code: 0x", "BlockSize: x"]);
}

#[test]
fn rates_of_fio_2() {
    let line = "  read : io=7884.0KB, bw=864925B/s, iops=211, runt=  9334msec";
    let rate = |bytes_per_second, per_second, is_read| {
        What::Direction(DirectionRate { is_read, per_second, bytes_per_second })
    };
    assert_eq!(only(line), rate(864_925.0, 211.0, true));
    let large = "  write: io=803081MB, bw=6692.5MB/s, iops=1713.5K, runt=120001msec";
    assert_eq!(only(large), rate(6692.5 * 1_048_576.0, 1_713_500.0, false));
    let older = "  read : io=3073.3MB, bw=12040KB/s, iops=3009 , runt=261382msec";
    assert_eq!(only(older), rate(12_328_960.0, 3009.0, true));
    assert_refused(&[&line[..30], &line[..45], &line[..58]]);
}

#[test]
fn lines_of_btape() {
    let test = |text: &str| match only(text) {
        What::TapeTest(test) => test,
        other => panic!("{other:?}"),
    };
    let random = "btape.c:1090 Test with random data, should give the minimum throughput.";
    assert_eq!(test(random), TapeTest::Data(TestData::Random));
    let begin = "btape: btape.cc:956-0 Begin writing 3 files of 1.073 GB with raw blocks of 64512 \
                 bytes.";
    let expected = TapeTest::Begin {
        files: 3,
        file_bytes: 1.073e9,
        block_bytes: 64_512,
        framing: Framing::Raw,
    };
    assert_eq!(test(begin), expected);
    let file = "btape.c:406 Volume bytes=3.221 GB. Write rate = 44.128 MB/s";
    let expected = TapeTest::File { bytes: 3.221e9, bytes_per_second: 44.128e6 };
    assert_eq!(test(file), expected);
    let total = "btape.c:383 Total Volume bytes=9.664 GB. Total Write rate = 812 B/s";
    let expected = TapeTest::Total { bytes: 9.664e9, bytes_per_second: 812.0 };
    assert_eq!(test(total), expected);
    let filemark = "btape.c:604 Wrote 1 EOF to \"Drive-0\" (/dev/nst0)";
    assert_eq!(test(filemark), TapeTest::Drive("/dev/nst0".to_owned()));
    assert_refused(&[&filemark[..38], &filemark[..44]]);
    assert_refused(&[&begin[..60], &begin[..84], &file[..30], &file[..54], &total[..60]]);
    assert_eq!(read("Volume bytes=3.221 GB. Write rate = 44.128 MB/s\n").pieces, []);
}

#[test]
fn statistics_of_programs_that_store_what_is_new() {
    let covered = |line: CoveredLine| What::Covered(line);
    let files = only("Number of files: 1,234 (reg: 1,000, dir: 234)");
    assert_eq!(files, covered(CoveredLine::Files(1000)));
    assert_eq!(only("Number of files: 127\n"), covered(CoveredLine::Files(127)));
    assert_eq!(only("Total file size: 5,000,000 bytes"), covered(CoveredLine::Bytes(5e6)));
    let changed = only("Total transferred file size: 1.000 bytes");
    assert_eq!(changed, covered(CoveredLine::ChangedBytes(1e3)));
    let duration = only("Duration: 1 hours 2 minutes 3.50 seconds");
    assert_eq!(duration, covered(CoveredLine::Seconds(3723.5)));
    let archive = "This archive:                4.17 MB              4.50 MB            254.05 kB";
    let (bytes, compressed_bytes, new_bytes) = (4.17e6, 4.5e6, 254_050.0);
    let expected = CoveredLine::Archive { bytes, compressed_bytes, new_bytes };
    assert_eq!(only(archive), covered(expected));
    let binary = only("This archive:   4.00 MiB   3.00 MiB   1.00 KiB");
    let (bytes, compressed_bytes, new_bytes) = (4.0 * 1_048_576.0, 3.0 * 1_048_576.0, 1024.0);
    assert_eq!(binary, covered(CoveredLine::Archive { bytes, compressed_bytes, new_bytes }));
    assert_refused(&[
        "Number of files: 1,23",
        "Total file size: 5.00G bytes",
        "Total file size: 5,000,000 by",
        &archive[..60],
        &archive[..74],
    ]);
    // Of other programs.
    for other in ["Duration: 0:17:10", "Duration: 1 hours 2 minutes 3.50 sec"] {
        assert!(!matches!(read(other).pieces.first().map(|it| &it.what), Some(What::Covered(_))));
    }
}

#[test]
fn last_lines_of_programs() {
    let moved = |mover, bytes, seconds, bytes_per_second| {
        let label = String::new();
        What::Moved(Moved { mover, label, bytes, seconds, bytes_per_second })
    };
    let tar = "Total bytes written: 10240 (10KiB, 2.5MiB/s)";
    assert_eq!(only(tar), moved(Mover::Tar, 10_240.0, None, Some(2_621_440.0)));
    assert_eq!(only(&tar.replace('.', ",")), only(tar));
    let no_time = "Total bytes written: 10240 (10KiB, ?/s)";
    assert_eq!(only(no_time), moved(Mover::Tar, 10_240.0, None, None));
    let pv = " 1.50GiB 0:01:10 [ 199MiB/s] [=====>     ] 40% ETA 0:01:00";
    let gib = f64::from(1 << 30);
    let expected = moved(Mover::Pv, 1.5 * gib, Some(70.0), Some(199.0 * 1_048_576.0));
    assert_eq!(only(pv), expected);
    let What::Moved(named) = only(&format!("in: {}", pv.trim())) else { panic!() };
    assert_eq!((named.label.as_str(), named.bytes), ("in", 1.5 * gib));
    assert_eq!(only("Prepare volume #2 for '/dev/nst0' and hit return: "), What::NextVolume);
    let restic = "processed 1234 files, 5.500 GiB in 1:02:03";
    assert_eq!(only(restic), moved(Mover::Restic, 5.5 * gib, Some(3723.0), None));
    let rsync = "sent 1,234,567 bytes  received 433 bytes  12,345.67 bytes/sec";
    assert_eq!(only(rsync), moved(Mover::Rsync, 1_235_000.0, None, Some(12_345.67)));
    assert_refused(&[
        "Total bytes written: 10240 (10KiB, 2.5M",
        "1.50GiB 0:01:10 [ 199MiB",
        "1.50GB 0:01:10 [ 199MB/s]",
        "processed 1234 files, 5.500 GiB in 1:0",
        "sent 1,234,567 bytes  received 433 bytes  12,345.6",
        "sent 1.23M bytes  received 433 bytes  12.35K bytes/sec",
    ]);
    assert_eq!(read("Total bytes written: many\nsent 3 mails, received 4 bytes\n").pieces, []);
}

#[test]
fn rows_of_sar() {
    let report = |text: &str| match only(text) {
        What::DiskReport(report) => report,
        other => panic!("{other:?}"),
    };
    let header = "05:43:15 PM DEV tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util\n";
    let row = "05:43:16 PM dev8-16 199.50 1024.00 512.00 0.00 7.50 2.25 1.18 97.90";
    let expected = DiskReport {
        device: "dev8-16".to_owned(),
        requests_per_second: 199.5,
        read_bytes_per_second: 1_048_576.0,
        written_bytes_per_second: 524_288.0,
        request_bytes: 7680.0,
        in_flight: 2.25,
        busy_percent: 97.9,
        interval: Interval::One,
    };
    assert_eq!(report(&[header, row].concat()), expected);
    let commas = [header, &row.replace('.', ",")].concat();
    assert_eq!(report(&commas), expected);
    let average = row.replace("05:43:16 PM", "Average:");
    let expected = DiskReport { interval: Interval::Average, ..expected };
    assert_eq!(report(&[header, &average].concat()), expected);
    let old = "17:45:01 DEV tps rd_sec/s wr_sec/s avgrq-sz avgqu-sz await svctm %util\n\
               17:45:02 sdb 199.50 2048.00 1024.00 15.00 2.25 1.18 0.50 97.90";
    let expected = DiskReport { device: "sdb".to_owned(), interval: Interval::One, ..expected };
    assert_eq!(report(old), expected);
    let pretty = "17:45:01 tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util DEV\n\
                  17:45:02 199.50 1024.00 512.00 0.00 7.50 2.25 1.18 97.90 sdb";
    assert_eq!(report(pretty), expected);
    for cut in [&row[..20], &row[..45], &row[..62]] {
        let found = read(&format!("{header}{cut}\n{row}\n"));
        assert_eq!((found.pieces.len(), found.refused.len()), (1, 1), "{cut}: {found:?}");
    }
    // Another table has as many columns.
    let other = "17:45:01 IFACE rxpck/s txpck/s rxkB/s txkB/s rxcmp/s txcmp/s rxmcst/s %ifutil\n";
    let found = read(&[header, other, &row.replace("dev8-16", "eth0"), "\n"].concat());
    assert_eq!((found.pieces.len(), found.refused.len()), (0, 0), "{found:?}");
}

#[test]
fn lines_of_a_job_report() {
    let line = |text: &str| match only(text) {
        What::JobReport(line) => line,
        other => panic!("{other:?}"),
    };
    assert_eq!(line("  Elapsed time:   1 hour 34 mins 41 secs"), JobReport::Elapsed(5681.0));
    let bytes = "  FD Bytes Written:       198,836,224 (198.8 MB)";
    assert_eq!(line(bytes), JobReport::ClientBytes(198_836_224));
    assert_eq!(line(&bytes.replace("FD", "SD")), JobReport::StoredBytes(198_836_224));
    assert_eq!(line("  Rate:                   7101.5 KB/s"), JobReport::Rate(7_101_500.0));
    assert_eq!(line("  Software Compression:   None"), JobReport::Uncompressed);
    assert_eq!(line("  Software Compression:   42.5 % (gzip)"), JobReport::Compressed(0.425));
    assert_eq!(line("  Software Compression:   62.5% 2.6:1"), JobReport::Compressed(0.625));
    let head = "12-Mar 02:10 dir JobId 4711: Bareos bareos-dir 23.0.1 (10Mar24):";
    assert_eq!(line(head), JobReport::Director { director: Director::Bareos, version: 23 });
    assert_eq!(line("  JobId:                  4711"), JobReport::Job);
    let ended = |text: &str| line(&format!("  Termination:            {text}"));
    assert_eq!(ended("Backup OK -- with warnings"), JobReport::Ended(Outcome::BackedUp));
    assert_eq!(ended("*** Backup Error ***"), JobReport::Ended(Outcome::Failed));
    assert_eq!(ended("Backup Canceled"), JobReport::Ended(Outcome::Canceled));
    assert_eq!(ended("Restore OK"), JobReport::Ended(Outcome::Other));
    let spool = "12-Mar 03:10 sd JobId 7: Despooling elapsed time = 00:17:20, Transfer rate = \
                 1.5 G Bytes/second";
    let (job, seconds, bytes_per_second) = (Some(7), 1040.0, 1.5e9);
    assert_eq!(line(spool), JobReport::Despooled { job, seconds, bytes_per_second });
    assert_refused(&[&spool[..70], &spool[..88], &spool[..spool.len() - 3]]);
    assert_refused(&[
        "  Elapsed time:   28 se",
        "  Elapsed time:   1 hour 3",
        "  Elapsed time:   1 hour 34 mi",
        "  FD Bytes Written:       198,836",
        "  FD Bytes Written:       198,836,224 (198.",
        "  SD Bytes Written:       8,836,224 (198.8 MB)",
        "  Software Compression:   42.5",
        "  Software Compression:   Non",
    ]);
    let wrapped = read("  Elapsed time:   1 hour 34 mins\n41 secs\n");
    assert_eq!((wrapped.pieces.len(), wrapped.refused.len()), (0, 1));
    assert_eq!(read("  Elapsed time:   1 hour 34 mins").pieces, [], "the text may be cut");
}

#[test]
fn times_of_time_v_and_of_zsh() {
    let user = "\tUser time (seconds): 400.25";
    assert_eq!(only(user), What::ProcessorTime(ProcessorTime::User(400.25)));
    let system = "\tSystem time (seconds): 8.75";
    assert_eq!(only(system), What::ProcessorTime(ProcessorTime::System(8.75)));
    assert_eq!(read("\tUser time (seconds): 40\n").pieces, [], "it was cut");
    let verbose = "\tElapsed (wall clock) time (h:mm:ss or m:ss): 1:23.50";
    assert_eq!(only(verbose), What::Timed(Timed { elapsed: 83.5, ..Timed::default() }));
    let zsh = "tar cf - /srv  1.25s user 4.50s system 17% cpu 33.25 total";
    let expected = |elapsed| {
        let timed = Timed { elapsed, user: Some(1.25), system: Some(4.5) };
        What::ProgramTimed(ProgramTimed { line: "tar cf - /srv".to_owned(), timed })
    };
    assert_eq!(only(zsh), expected(33.25));
    assert_eq!(only(&zsh.replace("33.25", "33,25")), expected(33.25));
    assert_eq!(only(&zsh.replace("33.25", "1:02:03")), expected(3723.0));
    assert_refused(&[
        "Elapsed (wall clock) time (h:mm:ss or m:ss): 1",
        "tar cf - /srv  1.25s user 4.50s system 17% cpu",
        "tar cf - /srv  1.25s user 4.50s system 17% cpu 33.25",
    ]);
}

#[test]
fn devices_below_each_other() {
    let header = "NAME         MAJ:MIN RM   SIZE RO TYPE  MOUNTPOINTS\n";
    let layer = |name: &str, depth, kind: &str, mounted_at: &str| {
        let (name, kind) = (name.to_owned(), kind.to_owned());
        What::Layer(Layer { name, depth, kind, mounted_at: mounted_at.to_owned() })
    };
    let row = |text: &str| only(&format!("{header}{text}"));
    assert_eq!(row("sda            8:0    0   1.8T  0 disk"), layer("sda", 0, "disk", ""));
    let part = "├─sda1         8:1    0   512M  0 part  /boot/efi";
    assert_eq!(row(part), layer("sda1", 1, "part", "/boot/efi"));
    let spaces = part.replace("/boot/efi", "/srv/old data");
    assert_eq!(row(&spaces), layer("sda1", 1, "part", "/srv/old data"));
    assert_eq!(row(&format!("{spaces}   my old one")), layer("sda1", 1, "part", "/srv/old data"));
    let raid = "  └─md0        9:0    0   1.8T  0 raid1";
    assert_eq!(row(raid), layer("md0", 2, "raid1", ""));
    assert_eq!(row("| `-vg-srv   253:0    0   1T  0 lvm /srv"), layer("vg-srv", 2, "lvm", "/srv"));
    let other = "NAME ROTA SCHED TYPE\nsda 1 none disk\n";
    assert_eq!(read(other).pieces, [], "SCHED may be empty");
    let found = read(&format!("{header}├─sda1         8:1    0   512M\n"));
    assert_eq!((found.pieces.len(), found.refused.len()), (0, 1), "{found:?}");
    let wrapped = read(&format!("{header}├─sda1   8:1    0   512M  0 part\n/boot/efi\n"));
    assert_eq!((wrapped.pieces.len(), wrapped.refused.len()), (0, 1), "{wrapped:?}");
}

fn pieces_of(text: &str) -> (Program, Vec<What>) {
    match only(text) {
        What::Document { program, pieces } => (program, pieces),
        other => panic!("{other:?}"),
    }
}

#[test]
fn json_of_iostat() {
    let text = r#"{"sysstat": {"hosts": [{"statistics": [
        {"disk": [{"disk_device": "sda", "r/s": 1.5, "w/s": 5.5, "rMB/s": 2.0, "wMB/s": 4.0,
         "rrqm": 25.0, "wrqm": 50.0, "aqu-sz": 7.75, "util": 99.5}]}]}]}}"#;
    let row = DeviceRow {
        device: "sda".to_owned(),
        reads: Requests { per_second: 1.5, bytes_per_second: 2_097_152.0, merged_percent: 25.0 },
        writes: Requests { per_second: 5.5, bytes_per_second: 4_194_304.0, merged_percent: 50.0 },
        in_flight: Some(7.75),
        busy_percent: 99.5,
    };
    let expected = (Program::Iostat, vec![What::Columns, What::Device(Box::new(row))]);
    assert_eq!(pieces_of(text), expected);
    let kib =
        text.replace("rMB/s\": 2.0", "rkB/s\": 2048.0").replace("wMB/s\": 4.0", "wkB/s\": 4096.0");
    assert_eq!(pieces_of(&kib), expected);
    assert_eq!(pieces_of(&text.replace('\n', " ")), expected, "in one line");
    for end in [30, 60, 150, text.len() - 1] {
        let found = read(&format!("{}\n", &text[..end]));
        assert_eq!(found.pieces, [], "{end}");
        assert_eq!(found.refused[0].line, 1, "{end}");
    }
    for lacking in ["\"util\"", "\"w/s\"", "\"rMB/s\"", "\"aqu-sz\"", "\"wrqm\""] {
        let found = read(&format!("{}\n", text.replace(lacking, "\"x\"")));
        assert_eq!((found.pieces.len(), found.refused.len()), (0, 1), "{lacking}");
    }
    assert_eq!(read("{\"a\": 1}\n{\n").refused, [], "of another program");
}

/// Of brackets that are never closed each one would be looked for to the end.
#[test]
fn documents_that_do_not_end_take_no_time() {
    let text = "{\"sysstat\": [\n".repeat(200_000);
    let found = read(&text);
    assert_eq!((found.pieces.len(), found.refused.len()), (0, REFUSED_MAX + 1));
}

#[test]
fn json_of_fio() {
    let entry = r#"{"jobname": "a", "job options": {"rw": "randread", "bs": "8k", "numjobs": "2"},
        "read": {"iops": 10000.5, "bw_bytes": 81924096, "lat_ns": {"mean": 3150000.0}},
        "write": {"iops": 0.0, "bw_bytes": 0, "lat_ns": {"mean": 0.0}}}"#;
    let text = |entries: &str| {
        format!(
            "{{\n \"fio version\" : \"fio-3.33\",\n \"global options\" : {{\"ioengine\": \
             \"libaio\", \"iodepth\": \"4\"}},\n \"jobs\": [{entries}]}}"
        )
    };
    let job = Job {
        pattern: Some("randread".to_owned()),
        block_bytes: Some(8192),
        engine: Some("libaio".to_owned()),
        depth: Some(4),
        jobs: None,
        direct: Some(Switch::Off),
        is_unsure: false,
    };
    let rate =
        DirectionRate { is_read: true, per_second: 10_000.5, bytes_per_second: 81_924_096.0 };
    let (program, pieces) = pieces_of(&text(entry));
    let measured = [What::Direction(rate), What::MeanLatency(3_150_000.0 * 1e-9)];
    let expected = [vec![What::Job(job.clone()), What::Processes(2)], measured.to_vec()].concat();
    assert_eq!((program, pieces), (Program::Fio, expected));
    // An entry of each process.
    let (_, pieces) = pieces_of(&text(&format!("{entry}, {entry}")));
    assert_eq!(pieces[..2], [What::Job(job), What::Processes(2)]);
    assert_eq!(pieces[2..], [measured.clone(), measured].concat());
    let other = entry.replace("\"a\"", "\"b\"");
    let (_, pieces) = pieces_of(&text(&format!("{entry}, {other}")));
    assert!(matches!(pieces[..2], [What::Job(_), What::Job(_)]), "{pieces:?}");
    let (_, pieces) = pieces_of(&text(&entry.replace("8k", "4k,64k")));
    assert!(matches!(&pieces[0], What::Job(job) if job.is_unsure), "{pieces:?}");
    for option in [r#""direct": "1""#, r#""buffered": "0""#] {
        let (_, pieces) = pieces_of(&text(&entry.replace(r#""numjobs": "2""#, option)));
        let is_direct = |job: &Job| job.direct == Some(Switch::On);
        assert!(matches!(&pieces[0], What::Job(job) if is_direct(job)), "{pieces:?}");
    }
    for lacking in ["iops", "bw_bytes", "lat_ns", "mean", "write", "jobs"] {
        let found = read(&format!("{}\n", text(entry).replace(&format!("\"{lacking}\""), "\"x\"")));
        assert_eq!((found.pieces.len(), found.refused.len()), (0, 1), "{lacking}");
    }
}

#[test]
fn terse_output_of_fio() {
    let direction = |kib: u32, rate: u32, latency: &str| {
        let mut fields = vec!["0".to_owned(); 41];
        fields[1] = kib.to_string();
        fields[2] = rate.to_string();
        fields[34] = latency.to_owned();
        fields.join(";")
    };
    let [read_fields, written] = [direction(80_000, 10_000, "3150.5"), direction(0, 0, "0.0")];
    let text = format!("3;fio-3.33;a;0;0;{read_fields};{written};1.5%;2.5%");
    let rate = DirectionRate { is_read: true, per_second: 1e4, bytes_per_second: 81_920_000.0 };
    let (_, pieces) = pieces_of(&text);
    assert_eq!(pieces[1..], [What::Direction(rate), What::MeanLatency(3150.5 * 1e-6)]);
    let whole = text.len() - ";1.5%;2.5%".len();
    assert_refused(&[&text[..20], &text[..90], &text[..whole], &text[..whole - 4]]);
}
