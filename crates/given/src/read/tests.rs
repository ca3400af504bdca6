//! Each kind of line, whole, wrapped and cut. What people pasted is in `tests/published.rs`.

mod formats;

use super::*;
use crate::piece::{Copied, ProcessorTime, Requests, SummaryLine, Timed};

fn only(text: &str) -> What {
    let found = read(&format!("{text}\n"));
    assert!(found.refused.is_empty(), "{:?}", found.refused);
    assert_eq!(found.pieces.len(), 1, "{:?}", found.pieces);
    found.pieces[0].what.clone()
}

const COLUMNS: &str = "Device r/s rMB/s rrqm/s %rrqm r_await rareq-sz w/s wMB/s wrqm/s %wrqm \
                       w_await wareq-sz d/s dMB/s drqm/s %drqm d_await dareq-sz f/s f_await \
                       aqu-sz %util";
const ROW: &str = "sde 3818,73 217,37 24002,17 86,27 7,55 58,29 2577,87 217,57 25273,80 90,74 \
                   6,97 86,43 0,00 0,00 0,00 0,00 0,00 0,00 0,40 6,25 46,82 100,00";

#[test]
fn a_row_is_read_by_its_columns() {
    let found = read(&format!("{COLUMNS}\n..\n{ROW}\n"));
    let What::Device(row) = &found.pieces[1].what else { panic!("{:?}", found.pieces) };
    let expected = Requests {
        per_second: 3818.73,
        bytes_per_second: 217.37 * 1024.0 * 1024.0,
        merged_percent: 86.27,
    };
    assert_eq!((row.device.as_str(), row.reads), ("sde", expected));
    assert_eq!((row.in_flight, row.busy_percent), (Some(46.82), 100.0));
    assert_eq!((found.pieces[1].lines, found.passed_lines), ((3, 3), 1));
}

#[test]
fn older_columns_have_other_units() {
    let text = "Device: rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await svctm %util\n\
                sda 0.00 2.00 10.00 2.00 80.00 16.00 16.0 1.5 3.0 1.0 12.5\n";
    let found = read(text);
    let What::Device(row) = &found.pieces[1].what else { panic!("{found:?}") };
    assert_eq!((row.reads.bytes_per_second, row.writes.merged_percent), (81_920.0, 50.0));
    assert_eq!((row.in_flight, row.busy_percent), (Some(1.5), 12.5));
    let sectors = text.replace("kB/s", "sec/s");
    let found = read(&sectors);
    let What::Device(row) = &found.pieces[1].what else { panic!("{found:?}") };
    assert_eq!(row.reads.bytes_per_second, 40_960.0);
}

#[test]
fn a_row_that_is_not_whole_is_refused_with_its_line() {
    let cut = &ROW[..60];
    let refused = |text: &str| {
        let found = read(text);
        let rows = found.pieces.iter().filter(|it| matches!(it.what, What::Device(_))).count();
        let first = found.refused.into_iter().next().expect("it is refused");
        (rows, first.line, first.why)
    };
    let (rows, line, why) = refused(&format!("{COLUMNS}\n{cut}\n"));
    assert_eq!((rows, line), (0, 2));
    assert!(why.contains("of 22 columns"), "{why}");
    // The row behind it is read, and nothing of the two is mixed.
    let (rows, line, _) = refused(&format!("{COLUMNS}\n{cut}\n{ROW}\n"));
    assert_eq!((rows, line), (1, 2));
    let (rows, line, why) = refused(ROW);
    assert_eq!((rows, line), (0, 1));
    assert!(why.contains("begins with Device"), "{why}");
    assert_eq!(refused(&format!("{COLUMNS}\n{ROW} 7\n")).0, 0);
}

#[test]
fn what_a_mail_wraps_and_quotes_is_whole_again() {
    let plain = read(&format!("{COLUMNS}\n{ROW}\n"));
    let mut mail = String::from("Hi,\n\nthis is what I see:\n\n");
    for line in [COLUMNS, ROW] {
        let mut columns = 0;
        mail.push_str("> > ");
        for word in line.split(' ') {
            if columns + word.len() > 70 {
                mail.push_str("\r\n> > ");
                columns = 0;
            }
            mail.push_str(word);
            mail.push(' ');
            columns += word.len() + 1;
        }
        mail.push_str("\r\n");
    }
    let found = read(&mail);
    assert_eq!(found.refused, []);
    let whats = |read: &Read| read.pieces.iter().map(|it| it.what.clone()).collect::<Vec<_>>();
    assert_eq!(whats(&found), whats(&plain));
}

#[test]
fn times_of_every_shell() {
    let elapsed = Timed { elapsed: 309.125, ..Timed::default() };
    let bash = "\nreal\t5m9.125s\nuser\t0m1.0s\nsys\t0m2.0s\n";
    let times = [ProcessorTime::User(1.0), ProcessorTime::System(2.0)].map(What::ProcessorTime);
    let found: Vec<What> = read(bash).pieces.into_iter().map(|it| it.what).collect();
    assert_eq!((&found[0], &found[1..]), (&What::Timed(elapsed), &times[..]));
    assert_eq!(only("real 5m9,125s"), What::Timed(elapsed));
    let csh = Timed { elapsed: 422.18, user: Some(375.4), system: Some(39.38) };
    assert_eq!(only("375.40user 39.38system 7:02.18elapsed 98%CPU"), What::Timed(csh));
    assert_eq!(read("375.40user 39.38system 7:02.1").refused[0].line, 1);
    assert_eq!(read("the real problem").pieces, []);
}

#[test]
fn the_end_of_dd() {
    let text = "20742144+0 records in\n20742144+0 records out\n10619977728 bytes (11 GB, 9.9 GiB) \
                copied, 154.909 s, 68.6 MB/s\n";
    let expected = Copied { bytes: 10_619_977_728, seconds: 154.909 };
    assert_eq!(only(text), What::Copied(expected));
    let comma = "10619977728 Bytes (11 GB, 9,9 GiB) kopiert, 154,909 s, 68,6 MB/s";
    assert_eq!(read(comma).pieces, [], "another language");
    assert_eq!(only(&text.replace('.', ",")), What::Copied(expected));
    let wrapped = "10619977728 bytes (11 GB, 9.9 GiB)\ncopied, 154.909 s, 68.6\nMB/s\n";
    assert_eq!(only(wrapped), What::Copied(expected));
    let cut = read("10619977728 bytes (11 GB, 9.9 GiB) copied, 154.9\n");
    assert_eq!((cut.pieces.len(), cut.refused[0].line), (0, 1));
}

#[test]
fn what_was_typed_is_behind_a_prompt() {
    let line = |text: &str| match &read(text).pieces[..] {
        [Piece { what: What::Command(command), .. }] => Some(command.stages.clone()),
        _ => None,
    };
    let tar = Some(vec!["tar cf /dev/nst0 /srv".to_owned()]);
    for prompt in ["# ", "$ ", "root@host:~# ", "[root@host ~]# ", "me@host:/tmp$ time "] {
        assert_eq!(line(&format!("{prompt}tar cf /dev/nst0 /srv")), tar, "{prompt}");
    }
    let stages = ["tar cf - /srv", "gzip -c >/dev/null"].map(str::to_owned).to_vec();
    assert_eq!(line("% time sh -c 'tar cf - /srv | gzip -c >/dev/null'"), Some(stages));
    assert_eq!(line("50 % of the time"), None);
    assert_eq!(line("# 3. what follows"), None);
}

#[test]
fn settings_are_read_and_set() {
    let found = read("# cat /sys/block/sde/queue/max_sectors_kb\n1280\n");
    let What::Setting(setting) = &found.pieces[1].what else { panic!("{found:?}") };
    assert_eq!((setting.name.as_str(), setting.value.as_str()), ("max_sectors_kb", "1280"));
    let What::Setting(setting) = only("# echo 2 > /sys/block/sde/queue/nomerges") else { panic!() };
    assert_eq!((setting.device.as_str(), setting.is_set), ("sde", true));
}

#[test]
fn calls_with_and_without_times() {
    let call = |text: &str| match only(text) {
        What::Call(call) => (call.name, call.file, call.result),
        other => panic!("{other:?}"),
    };
    let expected = ("pwrite64".to_owned(), Some(15), 8192);
    let line = r#"pwrite64(15, "\20, \"(\1) = 3"..., 8192, 10633216) = 8192"#;
    for mark in ["", "[pid 421830] ", "12:00:01.123456 ", "4711  12:00:01 ", "4711 1700000000.1 "] {
        assert_eq!(call(&format!("{mark}{line}")), expected, "{mark}");
        assert_eq!(call(&format!("{mark}{line} <0.000123>")), expected, "{mark}");
    }
    assert_eq!(read("[{events=EPOLLIN, data={u32=15}}], 1, -1) = 1").pieces, []);
    assert_eq!(read("poll([{fd=43, events=POLLIN}], 1, 28800000 <unfinished ...>").pieces, []);
}

#[test]
fn lines_of_a_summary() {
    let rate = only("Backup Speed... 71.99 MB/s");
    let What::Summary(SummaryLine::Rate { bytes_per_second, .. }) = rate else {
        panic!("{rate:?}")
    };
    assert_eq!(bytes_per_second, 71.99e6);
    assert_eq!(only("Run Time... 0:17:10"), What::Summary(SummaryLine::Seconds(1030.0)));
    assert_eq!(read("Objects Total... 1\nTotal Size... many").pieces, []);
}

#[test]
fn a_number_at_the_end_of_a_text_may_be_cut() {
    let limit = "MaxBlock: 16777215";
    assert_eq!(only(limit), What::BlockLimits { bytes_max: 16_777_215 });
    for end in 11..=limit.len() {
        let found = read(&limit[..end]);
        assert_eq!((found.pieces.len(), found.refused.len()), (0, 1), "{}", &limit[..end]);
    }
    assert_eq!(read("real 5m9.125s").pieces.len(), 1, "its unit is there");
}

#[test]
fn lines_that_are_refused_have_a_limit() {
    let columns = "Device r/s rkB/s w/s wkB/s %util\n";
    let found = read(&(columns.to_owned() + &"sda 1.0 2.0\n".repeat(REFUSED_MAX + 500)));
    assert_eq!(found.refused.len(), REFUSED_MAX + 1);
    assert!(found.refused[REFUSED_MAX].why.contains("are not listed"));
}
