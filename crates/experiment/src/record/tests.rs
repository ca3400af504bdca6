//! Tests of the records.

use super::*;

pub(super) fn header() -> Header {
    let levels = vec![Level::Number(65536), Level::Text("default".into())];
    let factor =
        Factor { name: "read_ahead_bytes".into(), levels, role: Role::Setting, present: None };
    Header {
        format: FORMAT,
        kind: "read".into(),
        title: "t".into(),
        value: Value::Rate,
        factors: vec![factor],
        plan: serde_json::json!({ "paths": ["/x"] }),
        seed: 7,
        started_unix_seconds: 1,
    }
}

#[test]
fn an_experiment_survives_a_torn_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.ndjson");
    let run = RunRecord { bytes: 10, seconds: 2.0, repeat: 1, ..RunRecord::default() };
    let mut file = RunFile::create(&path, &header()).unwrap();
    file.push(&run).unwrap();
    assert!(RunFile::create(&path, &header()).is_err());
    let whole = std::fs::read(&path).unwrap();
    for cut in 0..20 {
        let mut bytes = whole.clone();
        bytes.extend_from_slice(&whole[whole.len() - 30..whole.len() - 1 - cut]);
        std::fs::write(&path, &bytes).unwrap();
        let found = load(&path).unwrap();
        assert_eq!((found.runs.len(), found.torn_bytes), (1, 29 - cut as u64));
        let (file, begun) = RunFile::begun(&path).unwrap().unwrap();
        assert_eq!(begun.torn_bytes, found.torn_bytes);
        file.go_on(&begun).unwrap().push(&run).unwrap();
        let found = load(&path).unwrap();
        assert_eq!((found.runs, found.torn_bytes), (vec![run.clone(), run.clone()], 0));
    }
}

#[test]
fn what_is_no_experiment_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let check = |text: &str, expected: &str| {
        std::fs::write(&path, text).unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("", "line 1: not a line of an experiment: the file is empty");
    check("{\"run\":{}}\n", "a run before its experiment");
    check("hello\n", "line 1");
    let line = serde_json::to_string(&Line::Experiment(header())).unwrap();
    check(&line.replace("\"format\":1", "\"format\":9"), "the file is empty");
    check(&(line.replace("\"format\":1", "\"format\":9") + "\n"), "format 9, this version");
    check(&format!("{line}\n{line}\n"), "line 2: not a line of an experiment: a second");
}

#[test]
fn what_is_too_large_is_refused_before_it_is_judged() {
    let run = |cell: u64, repeat: u64| {
        let cell = [("depth".to_owned(), Level::Number(cell))].into();
        run_line(&RunRecord { cell, repeat, bytes: 1, seconds: 1.0, ..RunRecord::default() })
    };
    let refused = |runs: &mut dyn Iterator<Item = Vec<u8>>| {
        let bytes: Vec<u8> = [header_line(&header())].into_iter().chain(runs).flatten().collect();
        read(&bytes[..], Path::new("x")).map_err(|error| error.to_string())
    };
    let error = refused(&mut (0..=250_000).map(|at| run(at % 2, at / 2))).unwrap_err();
    assert_eq!(error, "x: too large to judge: more than 250000 runs");
    let error = refused(&mut (0..3000).map(|at| run(at, at))).unwrap_err();
    assert!(error.contains("3000 combinations and 3000 repeats"), "{error}");
    assert!(refused(&mut (0..3000).map(|at| run(at, at / 1500))).is_ok());
}

#[test]
fn levels_as_people_read_them() {
    let shown = |bytes| Level::Number(bytes).shown("block_bytes");
    assert_eq!([512, 10240, 65536, 1 << 20].map(shown), ["512 B", "10 KiB", "64 KiB", "1 MiB"]);
    assert_eq!(Level::Number(4096).shown("depth"), "4096");
}
