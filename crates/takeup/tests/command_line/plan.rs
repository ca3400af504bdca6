//! `takeup plan`: its output, document and chart, and its measurement of a path.

use std::fs;
use std::path::Path;

use crate::{document, run, shown, small_tree};

const SLOW: [&str; 9] =
    ["plan", "--drive", "lto8", "--source-rate", "60MB", "--size", "1TB", "--compression", "none"];

/// Nothing in it depends on the machine, so the snapshot has every number.
#[test]
fn a_slow_source_and_its_alternatives() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &SLOW);
    insta::assert_snapshot!("plan_slow", shown(&output, directory.path()));
    let fast = [
        "plan",
        "--drive",
        "lto9",
        "--drive",
        "lto7",
        "--source-disk",
        "array:12",
        "--size",
        "40TB",
        "--files",
        "3000000",
        "--cores",
        "64",
        "--read-window",
        "4G",
        "--parameters",
    ];
    let output = run(directory.path(), &fast);
    insta::assert_snapshot!("plan_fast", shown(&output, directory.path()));
}

/// Capacity and speeds are those of the medium, even if the drive can do more.
#[test]
fn older_media_in_a_newer_drive() {
    let directory = tempfile::tempdir().unwrap();
    let load = ["--source-rate", "400MB", "--size", "10TB", "--compression", "none", "--json"];
    let planned = |drive: &str, more: &[&str]| {
        document(directory.path(), &[&["plan", "--drive", drive], more, &load[..]].concat())
    };
    let own = planned("lto8", &[]);
    assert_eq!((&own["medium"], &own["plan"]["volumes"]), (&"LTO-8".into(), &1.into()));
    let type_m = planned("lto8", &["--medium", "lto7m"]);
    assert_eq!(type_m["medium"], "LTO-7 Type M");
    assert_eq!(type_m["plan"]["volumes"], 2, "9 TB each");
    let seconds = |plan: &serde_json::Value| plan["plan"]["seconds"].as_f64().unwrap();
    assert!(seconds(&type_m) > seconds(&own) * 1.15, "{type_m}");
    let older = planned("lto7", &["--medium-generation", "LTO-6"]);
    assert_eq!(older["plan"]["volumes"], 5, "2.5 TB each");
    let refused = |drive: &str, medium: &str| {
        let arguments = ["plan", "--drive", drive, "--medium", medium];
        let output = run(directory.path(), &[&arguments[..], &load[..6]].concat());
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let text = refused("lto9", "lto7");
    assert!(text.contains("an LTO-9 drive does not take LTO-7 media: it writes LTO-8"), "{text}");
    let text = refused("lto6", "lto4");
    assert!(text.contains("an LTO-6 drive only reads LTO-4 media"), "{text}");
}

#[test]
fn the_document_holds_the_plan_and_its_parameters() {
    let directory = tempfile::tempdir().unwrap();
    let mut arguments = SLOW.to_vec();
    arguments.extend(["--json", "--set", "back_hitch_ns=3000000000"]);
    let document = document(directory.path(), &arguments);
    assert_eq!(document["command"], "plan");
    assert_eq!(document["plan"]["limit"], "source");
    assert_eq!(document["plan"]["volumes"], 1);
    assert!(document["plan"]["back_hitches"].as_u64().unwrap() > 100);
    let parameters = document["parameters"].as_array().unwrap();
    let back_hitch = parameters.iter().find(|row| row["name"] == "back_hitch_ns").unwrap();
    assert_eq!(
        (&back_hitch["value"], &back_hitch["origin"]),
        (&3_000_000_000u64.into(), &"given".into())
    );
    let speeds = parameters.iter().find(|row| row["name"] == "speeds_bytes_per_second").unwrap();
    assert_eq!(
        (speeds["value"].as_array().unwrap().len(), &speeds["origin"]),
        (12, &"maker".into())
    );
    let names: Vec<_> = document["alternatives"].as_array().unwrap().iter().collect();
    assert!(names.iter().any(|one| one["name"] == "staged to disk first"));
    let best = document["best"]["with_settings"].as_str().unwrap();
    assert!(best.ends_with("of memory, fill first"), "{best}");
}

/// An LTO-3 drive of HP can slow down to 30 MB/s, where IBM's must stop; without a maker both are
/// reported.
#[test]
fn makers_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let told = |drive: &str| {
        let common = ["--source-rate", "30MB", "--size", "1TB", "--compression", "none"];
        let arguments = [&["plan", "--json", "--drive", drive][..], &common].concat();
        let document = document(directory.path(), &arguments);
        let stops = document["plan"]["back_hitches"].as_u64().unwrap();
        let of = |one: &serde_json::Value| {
            (one["maker"].as_str().unwrap().to_owned(), one["back_hitches"].as_u64().unwrap() > 0)
        };
        let makers: Vec<_> = document["makers"].as_array().unwrap().iter().map(of).collect();
        (document["maker"].as_str().map(str::to_owned), stops > 0, makers)
    };
    let both = vec![("IBM".to_owned(), true), ("HP".to_owned(), false)];
    assert_eq!(told("lto3"), (None, true, both));
    assert_eq!(told("ibm-lto3"), (Some("IBM".to_owned()), true, Vec::new()));
    assert_eq!(told("HP LTO-3"), (Some("HP".to_owned()), false, Vec::new()));
    assert_eq!(told("lto8").2, []);
}

/// The same arguments give the same bytes; a source below the lowest speed shows its stops.
#[test]
fn no_source_is_faster_than_the_cores_that_hash_it() {
    let arguments = ["plan", "--drive", "lto9", "--count", "24", "--compression", "none"];
    let arguments = [&arguments[..], &["--source-rate", "20GB", "--size", "50TB"]].concat();
    let directory = tempfile::tempdir().unwrap();
    let bound = |cores: &str| {
        let all = [&arguments[..], &["--cores", cores, "--json"]].concat();
        let source = &document(directory.path(), &all)["source"];
        (source["bytes_per_second"].as_u64().unwrap(), source["bounded_by_cores"].as_u64())
    };
    let (one, two, many) = (bound("1"), bound("2"), bound("64"));
    assert_eq!((one.1, two.1, many), (Some(1), Some(2), (20_000_000_000, None)));
    assert!((one.0 * 2).abs_diff(two.0) <= 1, "{one:?} {two:?}");
    let one_core = [&arguments[..], &["--cores", "1"]].concat();
    let document = document(directory.path(), &[&one_core[..], &["--json"]].concat());
    let two = document["alternatives"].as_array().unwrap().iter();
    let two = two.into_iter().find(|way| way["name"] == "two such sources at once").unwrap();
    let seconds = |plan: &serde_json::Value| plan["seconds"].as_f64().unwrap();
    assert_eq!(seconds(&two["plan"]), seconds(&document["plan"]), "the cores are the same");
    let output = run(directory.path(), &one_core);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("/s, limited to what 1 core can read and hash (--cores), to "), "{text}");
}

#[test]
fn a_chart_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let draw = |name: &str| {
        let mut arguments = SLOW.to_vec();
        arguments.extend(["--quiet", "--chart", name]);
        let output = run(directory.path(), &arguments);
        assert_eq!(
            shown(&output, directory.path()),
            "exit code 0\n--- standard output\n--- standard error\n"
        );
        fs::read_to_string(directory.path().join(name)).unwrap()
    };
    let (one, two) = (draw("one.svg"), draw("two.svg"));
    assert_eq!(one, two);
    assert!(one.starts_with("<svg ") && one.contains("this source: 60 MB/s"));
    // Two figures with two lines each, and their legends.
    assert_eq!(one.matches("class=\"line s").count(), 8);
}

/// With a time window: whether the plan fits, which ways do, and what would be needed.
#[test]
fn a_plan_is_held_against_the_time_that_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
        let plan = ["plan", "--drive", "lto8", "--source-rate", "60MB", "--size", "2TB"];
        [&plan[..], &["--compression", "none"], more].concat()
    }
    let output = run(path, &with(&["--window", "8h"]));
    insta::assert_snapshot!("plan_window", shown(&output, path));
    let asked = |window: &str| {
        let output = run(path, &with(&["--window", window, "--json"]));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), document)
    };
    for (window, code, fits) in [("8h", 2, false), ("10h", 0, true)] {
        let (exit_code, document) = asked(window);
        let told = &document["window"];
        assert_eq!((exit_code, told["fits"].as_bool()), (Some(code), Some(fits)), "{told}");
        let seconds = told["seconds"].as_f64().unwrap();
        let left = seconds - document["plan"]["seconds"].as_f64().unwrap();
        assert_eq!(told["seconds_left"].as_f64(), Some(left));
        let ways = document["alternatives"].as_array().unwrap().iter();
        let fitting = ways.filter(|way| way["plan"]["seconds"].as_f64().unwrap() <= seconds);
        let names: Vec<_> = fitting.map(|way| way["name"].clone()).collect();
        assert_eq!(told["alternatives_that_fit"], serde_json::Value::from(names));
        // The setting that is reported as needed does fit when it is typed.
        let rate = told["needs"]["source_bytes_per_second"].as_u64().unwrap().to_string();
        let again = ["--source-rate", &rate, "--window", window, "--quiet"];
        let plan =
            [&["plan", "--drive", "lto8", "--size", "2TB", "--compression", "none"], &again[..]];
        assert_eq!(run(path, &plan.concat()).status.code(), Some(0), "{rate}");
    }
    assert_eq!(document(path, &with(&["--json"]))["window"], serde_json::Value::Null);
    let refused = shown(&run(path, &with(&["--window", "8d"])), path);
    assert!(refused.contains("a time is a number with its unit: us, ms, s, m or h"), "{refused}");
}

/// Assumptions behind the rate of a disk are reported, and can be set.
#[test]
fn how_the_disk_is_read_is_said_and_chosen() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let plan = ["plan", "--drive", "lto9", "--source-disk", "array:12", "--size", "1TB"];
    let text = shown(&run(path, &plan), path);
    let said = "in one stream, 1 MiB at a time, with a read-ahead of 128 KiB (--read-block-size";
    assert!(text.contains(said), "{text}");
    let rate = |more: &[&str]| {
        let found = document(path, &[&plan[..], more, &["--json"]].concat());
        found["source"]["bytes_per_second"].as_u64().unwrap()
    };
    let usual = rate(&[]);
    assert_eq!(rate(&["--read-block-size", "1M", "--read-ahead", "128k"]), usual);
    assert!(rate(&["--read-block-size", "64k"]) < usual);
    assert!(rate(&["--read-ahead", "4M"]) > usual);
    let check = |arguments: &[&str], part: &str| {
        let output =
            run(path, &[&["plan", "--drive", "lto9", "--size", "1TB"], arguments].concat());
        let text = shown(&output, path);
        assert!(output.status.code() == Some(1) && text.contains(part), "{text}");
    };
    check(&["--source-rate", "60MB", "--read-ahead", "1M"], "need a source disk");
    check(&["--source-disk", "nvme", "--read-block-size", "1T"], "must be at most 67.1 MB");
}

/// A forecast of files on a disk with heads knows the order in which a backup reads them; one of a
/// disk without heads is as it was.
#[test]
fn files_of_a_disk_with_heads_come_in_its_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let tree = ["--size", "1TB", "--files", "20000000", "--compression", "none"];
    let plan = |disk: &str, more: &[&str]| {
        let disk = ["plan", "--drive", "lto8", "--cores", "64", "--source-disk", disk];
        [&disk[..], &tree, more].concat().iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()
    };
    let answer = |disk: &str, more: &[&str]| {
        let typed = plan(disk, &[more, &["--json"]].concat());
        document(path, &typed.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let typed = plan("sata7200", &["--read-window", "1G"]);
    let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
    insta::assert_snapshot!("plan_heads", shown(&run(path, &typed), path));
    let heads = |more: &[&str]| answer("sata7200", more)["source"]["heads"].clone();
    let usual = heads(&["--read-window", "1G"]);
    assert_eq!((&usual["window_files"], &usual["file_bytes"]), (&20_629.into(), &50_000.into()));
    let seconds = |heads: &serde_json::Value| heads["seconds"].as_f64().unwrap();
    assert!(usual["by_name_seconds"].as_f64().unwrap() > seconds(&usual));
    assert!(seconds(&heads(&["--read-window", "64M"])) > seconds(&usual));
    let spread = ["--read-window", "1G", "--source-spread", "3TB"];
    assert!(seconds(&heads(&spread)) > seconds(&usual));
    // Flash: two random reads for each file.
    let flash = answer("ssd-sata", &["--read-window", "64M"]);
    assert!(flash["source"]["heads"].is_null());
    assert_eq!(flash["source"]["file_ns"], 2 * 775_000 / 8);
    let output = run(path, &["plan", "--drive", "lto9", "--size", "1TB", "--source-spread", "2TB"]);
    let text = shown(&output, path);
    assert!(text.contains("--source-capacity and --source-spread need a source disk"), "{text}");
    let flash = plan("ssd-sata", &["--source-spread", "2TB"]);
    let output = run(path, &flash.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(shown(&output, path).contains("need a disk with heads, and --files"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_path_is_measured() {
    let directory = small_tree();
    let path = directory.path();
    let noise: Vec<u8> =
        (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(path.join("tree/text"), "all work and no play\n".repeat(100_000)).unwrap();
    fs::write(path.join("tree/noise"), noise).unwrap();
    let found = document(path, &["plan", "--drive", "lto5", "tree", "--json"]);
    assert_eq!(found["source"]["size_bytes"], 100_013 + 2_100_000 + 3_000_000);
    assert_eq!(found["source"]["files"], 5);
    assert_eq!(found["measured"]["read_bytes"], found["source"]["size_bytes"]);
    assert!(found["measured"]["drive_ratio"].as_f64().unwrap() > 1.0);
    assert!(found["measured"]["software_ratio"].as_f64().unwrap() > 1.0);
    // Options override measured values.
    let given = ["plan", "--drive", "lto5", "tree", "--json", "--size", "1TB", "--ratio", "3"];
    let given = document(path, &given);
    assert_eq!(given["source"]["size_bytes"], 1_000_000_000_000u64);
    assert_eq!(given["compression"]["ratio"], 3.0);
    // A tree that is not read to its end is walked.
    let walked = ["plan", "--drive", "lto5", "tree", "--json", "--measure", "0"];
    let walked = document(path, &walked);
    assert_eq!(walked["source"]["files"], 5);
    assert!(walked["source"]["size_bytes"].as_u64().unwrap() >= 5_000_000);
}

#[test]
fn what_is_missing_or_wrong_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let check = |name: &str, arguments: &[&str]| {
        let output = run(path, &[&["plan"], arguments].concat());
        insta::assert_snapshot!(name, shown(&output, path));
    };
    check("plan_without_size", &["--drive", "lto8", "--source-rate", "60MB"]);
    check("plan_without_rate", &["--drive", "lto8", "--size", "1TB"]);
    let bare = ["--drive", "lto8", "--size", "1TB", "--source-rate", "40"];
    check("plan_rate_without_unit", &bare);
    check("plan_unknown_drive", &["--drive", "dlt", "--size", "1TB"]);
    check("plan_no_such_path", &["--drive", "lto8", "nowhere"]);
    let set = ["--drive", "lto8", "--size", "1TB", "--source-rate", "1MB", "--set", "colour=1"];
    check("plan_unknown_parameter", &set);
    let software =
        ["--drive", "lto8", "--size", "1TB", "--source-rate", "1MB", "--compression", "software"];
    check("plan_unknown_software", &software);
}

/// Errors are in plain words, whatever the type of the number.
#[test]
fn none_of_what_there_has_to_be_one_of_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for command in [
        &["plan", "--drive", "lto8", "--cores", "0"][..],
        &["plan", "--drive", "lto8", "--count", "0"],
        &["backup", "x", "--to", "y", "--read-threads", "0"],
        &["backup", "x", "--to", "y", "--compress-threads", "0"],
        &["verify", "x", "--threads", "0"],
    ] {
        let text = shown(&run(directory.path(), command), directory.path());
        assert!(text.contains("must be at least 1"), "{text}");
    }
    let wrong = ["plan", "--drive", "lto8", "--cores", "two"];
    let text = shown(&run(directory.path(), &wrong), directory.path());
    assert!(text.contains("must be a whole number, at least 1"), "{text}");
    let slow = ["sim", "tape", ".", "--speed-up", "0"];
    let text = shown(&run(directory.path(), &slow), directory.path());
    assert!(text.contains("a number from 0.001 to 1000000"), "{text}");
}

/// Values that no drive has give an answer or an error, not an endless loop.
#[test]
fn absurd_parameters_are_survived() {
    let directory = tempfile::tempdir().unwrap();
    for setting in [
        "back_hitch_ns=18446744073709551615",
        "buffer_bytes=0",
        "buffer_bytes=18446744073709551615",
        "capacity_bytes=0",
        "wraps=18446744073709551615",
        "host_bytes_per_second=0",
        "restart_fill_percent=0",
        "command_overhead_ns=18446744073709551615",
    ] {
        let mut arguments = SLOW.to_vec();
        arguments.extend(["--set", setting, "--json"]);
        let output = run(directory.path(), &arguments);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{setting}: {}", shown(&output, directory.path()));
    }
}

/// 17 MB at 255 MB/s are 67 ms; emptying the drive's buffer takes seconds.
#[test]
fn no_rate_is_the_limit_where_the_start_and_the_end_take_the_time() {
    let small = ["plan", "--drive", "lto6", "--source-rate", "255MB", "--size", "17MB"];
    let output = run(Path::new("/"), &small);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("limit: the start and the end: they take "), "{text}");
    let large = ["plan", "--drive", "lto6", "--source-rate", "100MB", "--size", "17GB"];
    let output = run(Path::new("/"), &large);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("limit: the source, at 100 MB/s"), "{text}");
    // Most of the time are stops of the tape.
    let buffer = ["--ring", "16MiB", "--set", "buffer_bytes=16000000"];
    let slow = ["plan", "--drive", "lto8", "--source-rate", "60MB", "--size", "2TB"];
    let output = run(Path::new("/"), &[&slow[..], &buffer].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("limit: the source, at 60.0 MB/s"), "{text}");
}
