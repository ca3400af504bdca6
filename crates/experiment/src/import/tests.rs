//! Tables that can be imported, and the errors for the others.

use super::*;
use crate::judgement::{JudgementOptions as Judging, judge};

fn size(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix('k').unwrap_or(text);
    let factor = if text.ends_with('k') { 1024 } else { 1 };
    number.parse().map(|number: u64| number * factor).map_err(|_| "no size".to_owned())
}

fn imported(text: &str) -> Experiment {
    import(text, &ImportOptions::default(), size).unwrap()
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let error = import(text, &ImportOptions::default(), size).unwrap_err().to_string();
    assert_eq!(error, expected);
}

const TABLE: &str = "\
# somebody's drive, in May
block_bytes,Tool,bytes,seconds,mb_s,repeat,measure.back_hitches,note
64k,tar,10000000,0.1,100,1,2,warm
1024k,\"dd, twice\",10000000,0.05,150,1,0,
64k,tar,10000000,0.11,,2,3,
";

#[test]
fn rows_become_runs_and_columns_factors() {
    let experiment = imported(TABLE);
    let names: Vec<&str> =
        experiment.header.factors.iter().map(|factor| &factor.name[..]).collect();
    assert_eq!(names, ["block_bytes", "tool"]);
    assert_eq!(
        experiment.header.factors[0].levels,
        [Level::Number(64 << 10), Level::Number(1 << 20)]
    );
    let [first, second, third] = &experiment.runs[..] else { panic!("{experiment:#?}") };
    assert_eq!(first.bytes_per_second(), Some(1e8));
    assert_eq!(first.notes, ["warm"]);
    assert_eq!(second.cell["tool"], Level::Text("dd, twice".into()));
    // All three are given, so the printed rate can be checked against the other two.
    assert_eq!(second.printed_bytes_per_second, Some(150e6));
    assert_eq!((third.repeat, third.order, third.measures["back_hitches"]), (2, 3, 3.0));
    let judgement = judge(&experiment.header.factors, &experiment.runs, &Judging::default());
    let told = |text: &str| judgement.sentences.iter().any(|one| one.text.contains(text));
    assert!(told("150 MB/s was printed, but size / time is 200 MB/s"), "{judgement:#?}");
}

#[test]
fn two_of_three_are_enough_and_repeats_are_counted() {
    let runs = imported("depth,mb_s,seconds\n1,50,2\n1,60,2\n8,90,2\n").runs;
    assert_eq!(runs.iter().map(|run| run.repeat).collect::<Vec<_>>(), [1, 2, 1]);
    assert_eq!((runs[0].bytes, runs[0].seconds), (100_000_000, 2.0));
    let options = ImportOptions { bytes: Some(1 << 20), ..ImportOptions::default() };
    let runs = import("depth,seconds\n1,2\n", &options, size).unwrap().runs;
    assert_eq!((runs[0].bytes, runs[0].seconds), (1 << 20, 2.0));
    // As a spreadsheet writes it with decimal commas.
    let runs = imported("\u{feff}depth;seconds;mib_s\r\n4;2,5;10\r\n").runs;
    assert_eq!((runs[0].bytes, runs[0].seconds), (25 << 20, 2.5));
    let failed = imported("depth,bytes,seconds,error\n1,100,1,\n2,,,no medium\n").runs;
    assert_eq!(failed[1].error.as_deref(), Some("no medium"));
    assert_eq!(failed[1].bytes_per_second(), None);
}

#[test]
fn loads_and_what_is_in_force_are_told_apart() {
    let options = ImportOptions {
        loads: vec!["device".into()],
        present: vec![("block_bytes".into(), "64k".into())],
        ..ImportOptions::default()
    };
    let table = "device,block_bytes,bytes,seconds\nLTO-5,10k,1000,1\nLTO-5,64k,1000,2\n";
    let factors = import(table, &options, size).unwrap().header.factors;
    assert_eq!(factors[0].role, Role::Load);
    assert_eq!(factors[1].present, Some(Level::Number(64 << 10)));
    let other = ImportOptions { loads: vec!["devise".into()], ..ImportOptions::default() };
    let error = import(table, &other, size).unwrap_err().to_string();
    let there_are = "there are device and block_bytes; did you mean device?";
    assert_eq!(error, format!("no varied column devise: {there_are}"));
    let present = vec![("block_bytes".into(), "128k".into())];
    let other = ImportOptions { present, ..ImportOptions::default() };
    let error = import(table, &other, size).unwrap_err().to_string();
    assert_eq!(error, "no row has block_bytes 128k: there are 10 KiB and 64 KiB");
}

/// Repeated rows are found however far apart they are; and an unclosed quote costs only one pass
/// over the lines.
#[test]
fn long_tables_are_read_once() {
    let rows = |repeats: std::ops::Range<u64>| {
        repeats.map(|repeat| format!("1,5,1,{repeat}\n")).collect::<String>()
    };
    let twice = format!("depth,bytes,seconds,repeat\n{}1,5,1,1\n", rows(1..2001));
    refused(&twice, "line 2002: repeat 1 of this combination is already in the table");
    let open = format!("depth,bytes,seconds,repeat\n1,5,1,\"\n{}", rows(1..200_000));
    refused(&open, "line 2: a quote is opened and never closed");
}

#[test]
fn what_cannot_be_understood_is_said_with_its_place() {
    refused("", "the table is empty: its first line must name the columns");
    refused("depth,bytes,seconds\n", "the table has no rows");
    let why = "two of bytes, seconds and a rate (mb_s) are needed, or --bytes with one of them";
    let columns = "the columns are depth, seconds";
    refused("depth,seconds\n1,2\n", &format!("line 1: {why}; {columns}"));
    let columns = "the columns are depth, byts, secs; did you mean bytes instead of byts, seconds \
                   instead of secs?";
    refused("depth,byts,secs\n1,2,3\n", &format!("line 1: {why}; {columns}"));
    let none = "line 1: no column says what was varied; the columns are bytes, seconds";
    refused("bytes,seconds\n1,2\n", none);
    let twice = "line 2, column 3 (depth): this column is given twice";
    refused("# x\ndepth,bytes,depth\n", twice);
    refused(
        "depth,bytes,seconds\n1,5,0.1\n2,5,abc\n",
        "line 3, column 3 (seconds): \"abc\" is not a number",
    );
    refused("depth,bytes,seconds\n1,5,0\n", "line 2, column 3 (seconds): \"0\" is not above 0");
    refused(
        "block_bytes,mb_s,seconds\n64q,5,1\n",
        "line 2, column 1 (block_bytes): \"64q\": no size",
    );
    let named = "the first line names 3 columns: depth, bytes, seconds";
    refused("depth,bytes,seconds\n1,5\n", &format!("line 2: 2 fields, but {named}"));
    refused("depth,bytes,seconds\n1,\"5,1\n", "line 2: a quote is opened and never closed");
    refused(
        "depth,bytes,seconds\n1,,1\n",
        "line 2: two of bytes, seconds and a rate are needed, or an error",
    );
    refused(
        "depth,bytes,seconds,repeat\n1,5,1,1\n1,5,1,1\n",
        "line 3: repeat 1 of this combination is already in the table",
    );
}

proptest::proptest! {
    /// Any text gives a result or an error, never a panic.
    #[test]
    fn any_text_is_taken_or_refused(
        text in "(depth|mb_s|bytes|seconds|[0-9]{1,3}|[,;\t\"#\r\n]|é| ){0,60}"
    ) {
        let _ = import(&text, &ImportOptions::default(), size);
    }
}
