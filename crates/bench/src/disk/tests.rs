//! The real fio on small files; what is refused before it is started.

use super::*;
use crate::plan::Stop;
use crate::record::{Factor, Level, Role};

fn plan(path: &Path, levels: &[(&str, Level)]) -> Plan {
    let factor = |(name, level): &(&str, Level)| Factor {
        name: (*name).to_owned(),
        levels: vec![level.clone()],
        role: Role::Setting,
        present: None,
    };
    Plan {
        kind: "disk".into(),
        title: String::new(),
        paths: vec![path.display().to_string()],
        length_bytes: 4 << 20,
        seed: 1,
        stop: Stop::default(),
        random_reads: 0,
        run_seconds: 0.0,
        factors: levels.iter().map(factor).collect(),
    }
}

fn text(text: &str) -> Level {
    Level::Text(text.to_owned())
}

/// The real fio on a small file; without fio there is nothing to test.
#[test]
fn fio_runs_what_a_cell_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a:b.img");
    std::fs::write(&path, vec![7u8; 4 << 20]).unwrap();
    let levels = [
        ("load", text("read")),
        ("cache", text("buffered")),
        ("block_bytes", Level::Number(65536)),
    ];
    let plan = plan(&path, &levels);
    let mut executor = match DiskExecutor::new(&plan, None, Permission::KeepData) {
        Ok(executor) => executor,
        Err(DiskError::NoFio) => return,
        Err(error) => panic!("{error}"),
    };
    let run = executor.execute(&plan.cells()[0], &Cancel::new()).unwrap();
    assert_eq!(run.bytes, 4 << 20);
    assert_eq!(run.latency.unwrap().count(), 64);
    assert!(run.environment["fio"].starts_with("fio-"));
    executor.finish().unwrap();
    assert!(path.exists(), "what was there before stays");
}

#[test]
fn a_file_that_fio_made_is_removed_and_one_with_data_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new.img");
    let levels = [("load", text("randwrite")), ("cache", text("buffered"))];
    let plan = plan(&path, &levels);
    let mut executor = match DiskExecutor::new(&plan, None, Permission::KeepData) {
        Ok(executor) => executor,
        Err(DiskError::NoFio) => return,
        Err(error) => panic!("{error}"),
    };
    let run = executor.execute(&plan.cells()[0], &Cancel::new()).unwrap();
    assert_eq!(run.bytes, 4 << 20);
    executor.finish().unwrap();
    assert!(!path.exists());
    std::fs::write(&path, "data").unwrap();
    let refused = DiskExecutor::new(&plan, None, Permission::KeepData);
    assert!(matches!(refused, Err(DiskError::Safety(SafetyError::HoldsData { .. }))));
}

#[test]
fn a_job_may_not_reach_further_than_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let job = directory.path().join("job.fio");
    let path = directory.path().join("x");
    let check = |text: &str, expected: &str| {
        std::fs::write(&job, text).unwrap();
        let error = job_access(&job, &path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("[a]\nfilename=/dev/sdx\n", "it names /dev/sdx");
    check("[a]\ndirectory=/srv\n", "reaches further");
    std::fs::write(&job, format!("[a]\nrw=randwrite\nfilename={}\n", path.display())).unwrap();
    assert_eq!(job_access(&job, &path).unwrap(), Access::Writes);
}

#[test]
fn loads_that_fio_would_not_do_are_said() {
    let check = |name: &str, level: Level, expected: &str| {
        let cell = Cell::from([(name.to_owned(), level)]);
        let error = Load::from_cell(&cell).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    check("engine", text("mmap"), "known are sync, psync");
    check("load", text("swim"), "known are read");
    check("depth", Level::Number(0), "1 to 4096");
    check("read_percent", Level::Number(101), "0 to 100");
    let load = Load::from_cell(&Cell::new()).unwrap();
    assert!(load.is_sensible() && !load.writes());
    let waiting = Cell::from([("depth".to_owned(), Level::Number(2))]);
    assert!(!Load::from_cell(&waiting).unwrap().is_sensible());
    check("pages", text("large"), "known are huge and small");
}
