//! The real fio on small files; what is refused before it is started.

use failures::with_causes;

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
        commands: None,
        factors: levels.iter().map(factor).collect(),
    }
}

fn text(text: &str) -> Level {
    Level::Text(text.to_owned())
}

/// The real fio on a small file.
#[test]
fn fio_runs_what_a_cell_says() {
    needs::require!(Fio);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a:b.img");
    std::fs::write(&path, vec![7u8; 4 << 20]).unwrap();
    let levels = [
        ("load", text("read")),
        ("cache", text("buffered")),
        ("block_bytes", Level::Number(65536)),
    ];
    let plan = plan(&path, &levels);
    let mut executor = DiskExecutor::new(&plan, None, Permission::KeepData, None).unwrap();
    let run = executor.execute(&plan.cells()[0], &Cancel::new()).unwrap();
    assert_eq!(run.bytes, 4 << 20);
    assert_eq!(run.latency.unwrap().count(), 64);
    assert!(run.environment["fio"].starts_with("fio-"));
    executor.finish().unwrap();
    assert!(path.exists(), "what was there before stays");
}

#[test]
fn a_file_that_fio_made_is_removed_and_one_with_data_is_kept() {
    needs::require!(Fio);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new.img");
    let levels = [("load", text("randwrite")), ("cache", text("buffered"))];
    let plan = plan(&path, &levels);
    let mut executor = DiskExecutor::new(&plan, None, Permission::KeepData, None).unwrap();
    let run = executor.execute(&plan.cells()[0], &Cancel::new()).unwrap();
    assert_eq!(run.bytes, 4 << 20);
    executor.finish().unwrap();
    assert!(!path.exists());
    std::fs::write(&path, "data").unwrap();
    let refused = DiskExecutor::new(&plan, None, Permission::KeepData, None);
    assert!(matches!(refused, Err(DiskError::Safety(SafetyError::HoldsData { .. }))));
}

#[test]
fn a_job_may_not_reach_further_than_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let job = directory.path().join("job.fio");
    let path = directory.path().join("x");
    let check = |text: &str, expected: &str| {
        std::fs::write(&job, text).unwrap();
        let error = with_causes(&read_job(&job, &path).unwrap_err());
        assert!(error.contains(expected), "{error}");
    };
    check("[a]\nfilename=/dev/sdx\n", "it names /dev/sdx");
    check("[a]\ndirectory=/srv\n", "is not among the options");
    std::fs::write(&job, format!("[a]\nrw=randwrite\nfilename={}\n", path.display())).unwrap();
    assert!(read_job(&job, &path).unwrap().writes);
}

/// Runs a job as `bench disk --job` does, on a file of 1 MiB in a folder with another one; says
/// what was refused, or what fio said. Whatever comes of it, both files are as they were.
fn run_job(name: &str, job: &str) -> Result<RunRecord, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    let content: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    std::fs::write(&path, &content).unwrap();
    std::fs::write(directory.path().join("other"), "precious").unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let job = job.replace("FOLDER", &directory.path().display().to_string());
    std::fs::write(file.path(), &job).unwrap();
    let plan = plan(&path, &[]);
    let done = DiskExecutor::new(&plan, Some(file.path()), Permission::KeepData, None)
        .and_then(|mut executor| {
            let run = executor.execute(&Cell::new(), &Cancel::new());
            executor.finish().unwrap();
            run
        })
        .map_err(|error| with_causes(&error));
    assert!(std::fs::read(&path).unwrap() == content, "{job}: {done:?}");
    assert_eq!(std::fs::read(directory.path().join("other")).unwrap(), b"precious");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "{job}: {done:?}");
    done
}

#[test]
fn a_job_that_reads_leaves_the_file_as_it_was() {
    needs::require!(Fio);
    let read = "[a]\nrw=randread\nbs=4k\nioengine=psync\n";
    for name in ["data", "a:b", "a:other", " blank", "-", "percent%d"] {
        let run = run_job(name, read).unwrap();
        assert_eq!(run.bytes, 1 << 20, "{name}");
    }
    let two = "[global]\nrw=read\nbs=64k\nsize=512k\n[a]\n[b]\nstonewall\noffset=512k\n";
    assert_eq!(run_job("data", two).unwrap().bytes, 1 << 20);
    // More to do than there is: fio begins again, and makes nothing longer.
    let more = run_job("data", &format!("{read}io_size=4m\n")).unwrap();
    assert_eq!(more.bytes, 4 << 20);
    let named = run_job("data", &format!("{read}filename=FOLDER/data\n")).unwrap();
    assert_eq!(named.bytes, 1 << 20);
}

/// Each section has its own numbers, and those that run in turn take their times one after the
/// other.
#[test]
fn sections_of_a_job_are_told_apart() {
    needs::require!(Fio);
    let two = "[global]\nrw=read\nbs=64k\nsize=256k\ngroup_reporting\nnumjobs=2\n[a]\n[b]\n\
               stonewall\nbs=4k\noffset=512k\n";
    let run = run_job("data", two).unwrap();
    let told: Vec<(&str, u64, u64)> =
        run.operations.iter().map(|one| (&one.section[..], one.bytes, one.requests)).collect();
    assert_eq!(told, [("a", 512 << 10, 8), ("b", 512 << 10, 128)]);
    let seconds: f64 = run.operations.iter().map(|one| one.seconds).sum();
    assert!((run.seconds - seconds).abs() < 1e-9, "{run:?}");
}

#[test]
fn a_job_that_would_change_files_is_refused_before_fio_is_started() {
    needs::require!(Fio);
    let check = |options: &str, expected: &str| {
        let error = run_job("data", &format!("[a]\nrw=read\nbs=4k\n{options}\n")).unwrap_err();
        assert!(error.contains(expected), "{options}: {error}");
    };
    check("size=2m", "has 1048576 bytes, and the job reads up to byte 2097152");
    check("size=1m\noffset=4k", "reads up to byte 1052672");
    check("size=101%", "reads up to byte 1059061");
    for line in [
        "unlink=1",
        "unlink_each_loop=1",
        "opendir=FOLDER",
        "directory=FOLDER",
        "filename_format=FOLDER/other",
        "filesize=2m",
        "nrfiles=2",
        "exec_prerun=rm FOLDER/other",
        "include FOLDER/other",
        "write_bw_log=FOLDER/other",
        "create_only=1",
        "overwrite=1",
        "allow_mounted_write=1",
        "fallocate=keep",
        "verify=crc32c",
    ] {
        check(line, "is not among the options that a job may have here");
    }
    check("filename=FOLDER/other", "name that as PATH");
    check("filename=FOLDER/data:FOLDER/other", "name that as PATH");
    check("ioengine=filedelete", "is none of the engines");
    check("rw=write", "holds data, which the run would destroy");
    check("[b]\nrw=trim", "holds data, which the run would destroy");
    check("size=${SIZE}", "is no size");
    for name in ["a\\b", "a\\:b", "a\nb", "data ", "data\t"] {
        let error = run_job(name, "[a]\nrw=read\n").unwrap_err();
        assert!(error.contains("has a backslash, a control character or a blank"), "{error}");
    }
}

/// What is refused above because of a list is refused by fio as well, where it knows how.
#[test]
fn fio_itself_is_told_to_write_nothing() {
    needs::require!(Fio);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    let job = directory.path().join("job");
    std::fs::write(&job, "[a]\nrw=read\nbs=4k\n").unwrap();
    let plan = plan(&path, &[]);
    let mut executor = DiskExecutor::new(&plan, Some(&job), Permission::KeepData, None).unwrap();
    // As if the list had a hole.
    executor.job.as_mut().unwrap().text = "[a]\nrw=write\nbs=4k\nsize=2m\n".to_owned();
    assert!(executor.execute(&Cell::new(), &Cancel::new()).is_err());
    executor.job.as_mut().unwrap().text = "[a]\nrw=read\nbs=4k\nsize=2m\n".to_owned();
    let _ = executor.execute(&Cell::new(), &Cancel::new());
    assert!(std::fs::read(&path).unwrap() == vec![7; 1 << 20]);
}

#[test]
fn loads_that_fio_would_not_do_are_said() {
    let check = |name: &str, level: Level, expected: &str| {
        let cell = Cell::from([(name.to_owned(), level)]);
        let error = Load::from_cell(&cell).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
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

/// A loop device over a file of nothing, with a scheduler that can merge.
struct Loop {
    path: PathBuf,
    _file: tempfile::NamedTempFile,
}

impl Loop {
    fn attach(bytes: u64) -> Loop {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(bytes).unwrap();
        let output = std::process::Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        let device = Loop { path, _file: file };
        std::fs::write(device.queue("scheduler"), "mq-deadline").unwrap();
        device
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
fn the_counters_show_what_was_merged_and_split() {
    needs::require!(Fio, MqDeadline);
    let device = Loop::attach(8 << 30);
    let measures = |load: &str, block_bytes: u64, depth: u64| {
        let levels = [
            ("load", text(load)),
            ("engine", text("libaio")),
            ("block_bytes", Level::Number(block_bytes)),
            ("depth", Level::Number(depth)),
        ];
        let plan = Plan { run_seconds: 0.3, length_bytes: 8 << 30, ..plan(&device.path, &levels) };
        let mut executor = DiskExecutor::new(&plan, None, Permission::Destructive, None).unwrap();
        executor.execute(&plan.cells()[0], &Cancel::new()).unwrap().measures
    };
    // More in flight than the device takes at once (128), so that some wait in the scheduler.
    let sequential = measures("read", 8192, 1024);
    assert!(sequential["device_merged_percent"] > 1.0, "{sequential:?}");
    assert!(sequential["device_request_bytes"] > 8192.0 * 1.01, "{sequential:?}");
    let mixed = measures("randrw", 8192, 32);
    for direction in ["device_read_", "device_write_"] {
        assert_eq!(mixed[&format!("{direction}merged_percent")], 0.0, "{mixed:?}");
        assert_eq!(mixed[&format!("{direction}request_bytes")], 8192.0, "{mixed:?}");
    }
    let text = std::fs::read_to_string(device.queue("max_sectors_kb")).unwrap();
    let split_bytes = text.trim().parse::<f64>().unwrap() * 1024.0;
    assert!(split_bytes < (8 << 20) as f64);
    let large = measures("read", 8 << 20, 2);
    let request_bytes = large["device_request_bytes"];
    // Eight MiB need not be a multiple of the limit, so the last part may be smaller.
    let parts = ((8 << 20) as f64 / split_bytes).ceil();
    assert!(request_bytes <= split_bytes, "{large:?}");
    assert!(request_bytes >= (8 << 20) as f64 / parts * 0.99, "{large:?}");
}
