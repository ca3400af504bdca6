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

/// A loop device over a file of nothing, with a scheduler that can merge; `None` where there is
/// no such thing.
struct Loop {
    path: PathBuf,
    _file: tempfile::NamedTempFile,
}

impl Loop {
    fn attach(bytes: u64) -> Result<Loop, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(bytes).unwrap();
        let output = std::process::Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file.path())
            .output()
            .map_err(|error| format!("losetup: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        let device = Loop { path, _file: file };
        std::fs::write(device.queue("scheduler"), "mq-deadline")
            .map_err(|error| format!("no mq-deadline: {error}"))?;
        Ok(device)
    }

    fn queue(&self, setting: &str) -> PathBuf {
        let name = self.path.file_name().unwrap();
        Path::new("/sys/block").join(name).join("queue").join(setting)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = std::process::Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}

/// What the kernel makes of three loads, by its own counters: requests that lie side by side and
/// wait are merged, those at random places arrive as they are, and large ones are split.
#[test]
#[allow(clippy::print_stderr)]
fn the_counters_show_what_was_merged_and_split() {
    let device = match Loop::attach(8 << 30) {
        Ok(device) => device,
        Err(why) => return eprintln!("left out: no loop device with a scheduler: {why}"),
    };
    let measures = |load: &str, block_bytes: u64, depth: u64| {
        let levels = [
            ("load", text(load)),
            ("engine", text("libaio")),
            ("block_bytes", Level::Number(block_bytes)),
            ("depth", Level::Number(depth)),
        ];
        let plan = Plan { run_seconds: 0.3, length_bytes: 8 << 30, ..plan(&device.path, &levels) };
        let mut executor = DiskExecutor::new(&plan, None, Permission::Destructive)?;
        Ok(executor.execute(&plan.cells()[0], &Cancel::new()).unwrap().measures)
    };
    // More in flight than the device takes at once (128), so that some wait in the scheduler.
    let sequential = match measures("read", 8192, 1024) {
        Ok(measures) => measures,
        Err(DiskError::NoFio) => return eprintln!("left out: no fio"),
        Err(error) => panic!("{error}"),
    };
    assert!(sequential["device_merged_percent"] > 1.0, "{sequential:?}");
    assert!(sequential["device_request_bytes"] > 8192.0 * 1.01, "{sequential:?}");
    let mixed = measures("randrw", 8192, 32).unwrap();
    for direction in ["device_read_", "device_write_"] {
        assert_eq!(mixed[&format!("{direction}merged_percent")], 0.0, "{mixed:?}");
        assert_eq!(mixed[&format!("{direction}request_bytes")], 8192.0, "{mixed:?}");
    }
    let text = std::fs::read_to_string(device.queue("max_sectors_kb")).unwrap();
    let split_bytes = text.trim().parse::<f64>().unwrap() * 1024.0;
    assert!(split_bytes < (8 << 20) as f64);
    let large = measures("read", 8 << 20, 2).unwrap();
    let request_bytes = large["device_request_bytes"];
    // Eight MiB need not be a multiple of the limit, so the last part may be smaller.
    let parts = ((8 << 20) as f64 / split_bytes).ceil();
    assert!(request_bytes <= split_bytes, "{large:?}");
    assert!(request_bytes >= (8 << 20) as f64 / parts * 0.99, "{large:?}");
}
