//! The real fio on small files; what is refused before it is started.

use base::failures::with_causes;

use super::DiskError;
use super::*;
use experiment::plan::Stop;
use experiment::record::{Factor, Level, Role};

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

/// A job on the path that is given beside it.
fn given(path: &Path) -> JobRequest<'_> {
    JobRequest { path: Some(path), sets: &[] }
}

/// What the runs take is said before the first one, and the budget where it is too short for them.
#[test]
fn the_time_of_runs_is_forecast() {
    let stop =
        |repeats_min, budget_seconds| Stop { repeats_min, budget_seconds, ..Stop::default() };
    let one = 10.0 + FIO_START_SECONDS;
    let said = foretold(4, 10.0, &stop(3, 600.0)).unwrap();
    let all = base::format::duration(12.0 * one);
    assert!(said.starts_with(&format!("3 repeats of 4 combinations take {all} or more")), "{said}");
    assert!(said.ends_with(" each"), "{said}");
    let said = foretold(4, 10.0, &stop(5, 60.0)).unwrap();
    assert!(said.ends_with("; the budget of 1 min 00 s is over before (--budget)"), "{said}");
    // A length and no time: nothing is known before the first run.
    assert_eq!(foretold(4, 0.0, &stop(3, 600.0)), None);
    assert_eq!(foretold(0, 10.0, &stop(3, 600.0)), None);
}

/// The real fio on a small file.
#[test]
fn fio_runs_what_a_cell_says() {
    testkit::require!(Fio);
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
    testkit::require!(Fio);
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
    assert!(matches!(refused, Err(DiskError::HoldsData { .. })));
}

/// A folder used to be refused for loads on one file.
#[test]
fn loads_on_a_folder_run_on_a_file_without_a_name() {
    testkit::require!(Fio);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("mine"), "data").unwrap();
    let names = || std::fs::read_dir(directory.path()).unwrap().count();
    for load in ["randread", "randrw", "write"] {
        let levels = [("load", text(load)), ("cache", text("buffered"))];
        let plan = plan(directory.path(), &levels);
        let mut executor = DiskExecutor::new(&plan, None, Permission::KeepData, None).unwrap();
        let said = executor.foretell(&plan.cells(), &Stop::default());
        assert!(said.iter().any(|line| line.contains("is a folder: the loads run")), "{said:?}");
        for _ in 0..2 {
            let run = executor.execute(&plan.cells()[0], &Cancel::new()).unwrap();
            assert_eq!(run.bytes, 4 << 20, "{load}");
            assert_eq!(names(), 1, "the file has no name, so a kill leaves nothing");
        }
        executor.finish().unwrap();
    }
    assert_eq!(std::fs::read(directory.path().join("mine")).unwrap(), b"data");
    let huge = Plan { length_bytes: 1 << 60, ..plan(directory.path(), &[]) };
    let refused = DiskExecutor::new(&huge, None, Permission::KeepData, None);
    assert!(matches!(refused, Err(DiskError::Room { .. })));
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
    let done = UserJob::read(file.path(), given(&path))
        .and_then(|job| DiskExecutor::new(&plan, Some(job), Permission::KeepData, None))
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
    testkit::require!(Fio);
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
    testkit::require!(Fio);
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
    testkit::require!(Fio);
    let check = |options: &str, expected: &str| {
        let error = run_job("data", &format!("[a]\nrw=read\nbs=4k\n{options}\n")).unwrap_err();
        assert!(error.contains(expected), "{options}: {error}");
    };
    check("size=2m", "has 1048576 bytes, but the job reads to byte 2097152");
    check("size=1m\noffset=4k", "reads to byte 1052672");
    check("size=101%", "reads to byte 1059061");
    for line in [
        "unlink=1",
        "unlink_each_loop=1",
        "opendir=FOLDER",
        "exec_prerun=rm FOLDER/other",
        "include FOLDER/other",
        "read_iolog=FOLDER/other",
        "create_only=1",
        "exec_postrun=rm FOLDER/other",
        "ioengine=filedelete",
        "ioengine=external:FOLDER/other",
    ] {
        check(line, "is refused: ");
    }
    check("uncreate=1", "is not among the options that a job may have here");
    check("filesize=2m", "reads to byte 2097152");
    check("filename_format=FOLDER/other", "has more in it than letters");
    check("filename=FOLDER/other\n[b]\nrw=read\nfilename=FOLDER/x", "no section works on ");
    check("filename=FOLDER/data:FOLDER/missing", "missing is empty or does not exist");
    check("filename=FOLDER/data:FOLDER/none/x", "none/x: No such file or directory");
    check("filename=FOLDER/data\n[b]\nrw=write\nfilename=FOLDER/other", "other holds data");
    check("directory=FOLDER\nfilename=data:other\nrw=write", "data holds data");
    check("filename=FOLDER/data:FOLDER", "is neither a file nor a block device");
    check("directory=FOLDER\nsize=1m", "no section works on ");
    check("rw=write", "holds data, which the run would destroy");
    check("[b]\nrw=trim", "holds data, which the run would destroy");
    check("size=${NO_SUCH_SIZE}", "needs NO_SUCH_SIZE in the environment");
    for name in ["a\\b", "a\\:b", "a\nb", "data ", "data\t", "a#b", "a;b", "a$jobname"] {
        let error = run_job(name, "[a]\nrw=read\n").unwrap_err();
        assert!(error.contains("fio would use another file"), "{error}");
    }
}

/// Logs are not written, mounted devices stay protected, files are neither made longer nor laid out
/// anew: what is left out or passed on changes no file that a job only reads.
#[test]
fn what_is_not_refused_leaves_files_as_they_were() {
    testkit::require!(Fio);
    for line in [
        "write_bw_log=FOLDER/other",
        "write_iolog=FOLDER/other",
        "write_lat_log\nlog_avg_msec=10\nper_job_logs=0",
        "overwrite=1",
        "allow_mounted_write=1",
        "allow_file_create=1",
        "create_on_open=1",
        "fallocate=truncate",
        "gtod_reduce=1",
        "pre_read=1",
        "fill_device=1",
        "verify_dump=1\nverify_state_save=1",
        "zonemode=strided\nzonesize=64k\nzonerange=64k\nzoneskip=64k",
        "latency_target=500000\nlatency_window=100000\nlatency_percentile=99",
        "steadystate=iops:10%\nss_dur=30s",
        "flow=1\nthread=0\nname=x\nunlink=0",
    ] {
        let run = run_job("data", &format!("[a]\nrw=read\nbs=4k\n{line}\n"));
        assert!(run.is_ok_and(|run| run.bytes > 0), "{line}");
    }
    let named = ["a.log", "_bw.", "_lat.", ".state", ".fio"];
    let here = names_in(Path::new("."));
    let made = here.iter().find(|name| named.iter().any(|part| name.contains(part)));
    assert_eq!(made, None, "nothing is written to the working folder");
}

/// Blocks are read back and checked, and fio leaves nothing of it in the working folder, in which
/// it keeps how far it came unless it is told not to.
#[test]
fn a_job_verifies_what_it_wrote_itself() {
    testkit::require!(Fio);
    let job = "[a]\nrw=randwrite\nbs=4k\nsize=512k\nfilename=FOLDER/made\nverify=crc32c\n\
               verify_state_save=1\nverify_fatal=1\n";
    let (folder, run) = run_named(job, None, Permission::KeepData);
    let run = run.unwrap();
    assert_eq!(run.bytes, 2 * (512 << 10), "written and read: {run:?}");
    assert_eq!(names_in(folder.path()), ["a.0.0", "other"]);
    let here = names_in(Path::new("."));
    assert!(!here.iter().any(|name| name.ends_with(".state")), "{here:?}");
}

/// Sections without files beside others: what they name is not touched, and whatever they write is
/// no reason to ask for a permission.
#[test]
fn sections_without_files_touch_none() {
    testkit::require!(Fio);
    let job = "[null]\nioengine=null\nrw=write\nsize=1m\nbs=64k\nfilename=FOLDER/other\n\
               [cpu]\nioengine=cpuio\ncpuload=5\ntime_based\nruntime=1\n\
               [a]\nrw=read\nbs=64k\nfilename=FOLDER/a.0.0\n";
    let (folder, run) = run_named(job, None, Permission::KeepData);
    assert_eq!(run.unwrap().bytes, 2 << 20);
    for (name, byte) in [("a.0.0", 7), ("other", 8)] {
        assert!(std::fs::read(folder.path().join(name)).unwrap() == vec![byte; 1 << 20], "{name}");
    }
    let alone = "[null]\nioengine=null\nrw=randwrite\nsize=1m\nbs=64k\n";
    let (folder, run) = run_named(alone, None, Permission::KeepData);
    assert_eq!(run.unwrap().bytes, 1 << 20);
    assert_eq!(names_in(folder.path()), ["a.0.0", "other"]);
    assert!(!Path::new("null.0.0").exists());
}

/// The job of an account works on the file that is given, at the size that is given.
#[test]
fn another_file_and_size_take_the_place_of_those_of_a_job() {
    testkit::require!(Fio);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("mine");
    let file = directory.path().join("job.fio");
    let job = "[global]\nioengine=psync\nbs=8k\nreadwrite=randrw\nsize=40g\nper_job_logs=0\n\
               end_fsync=1\n[test1-subtest1]\nfilename=/mnt/no-such/fio.img\nnumjobs=4\n";
    std::fs::write(&file, job).unwrap();
    let sets = ["size=256k".to_owned()];
    let job = UserJob::read(&file, JobRequest { path: Some(&path), sets: &sets }).unwrap();
    assert_eq!(job.replaced(), Some(Path::new("/mnt/no-such/fio.img")));
    assert_eq!(job.paths(), std::slice::from_ref(&path));
    let plan = plan(&path, &[]);
    let mut executor = DiskExecutor::new(&plan, Some(job), Permission::KeepData, None).unwrap();
    let run = executor.execute(&Cell::new(), &Cancel::new()).unwrap();
    executor.finish().unwrap();
    assert_eq!(run.bytes, 4 * (256 << 10));
    assert_eq!(names_in(directory.path()), ["job.fio"]);
    // What the job names is still protected where nothing takes its place.
    std::fs::write(&path, "data").unwrap();
    let job = UserJob::read(&file, JobRequest { path: Some(&path), sets: &sets }).unwrap();
    let refused = DiskExecutor::new(&plan, Some(job), Permission::KeepData, None);
    assert!(matches!(refused, Err(DiskError::HoldsData { .. })));
}

/// What is refused above because of a list is refused by fio as well, where it knows how.
#[test]
fn fio_itself_is_told_to_write_nothing() {
    testkit::require!(Fio);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    let job = directory.path().join("job");
    std::fs::write(&job, "[a]\nrw=read\nbs=4k\n").unwrap();
    let plan = plan(&path, &[]);
    let job = UserJob::read(&job, given(&path)).unwrap();
    let mut executor = DiskExecutor::new(&plan, Some(job), Permission::KeepData, None).unwrap();
    // As if the list had a hole.
    let mut run = |pattern: &str| {
        let Work::Job(work) = &mut executor.work else { panic!("it is a job") };
        let name = path.display();
        work.text = format!("[a]\nrw={pattern}\nbs=4k\nsize=2m\nfilename={name}\n");
        executor.execute(&Cell::new(), &Cancel::new())
    };
    assert!(run("write").is_err());
    let _ = run("read");
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

/// Runs a job once that says by itself where its files are, in a folder with two of them.
fn run_named(
    job: &str,
    path: Option<&Path>,
    permission: Permission,
) -> (tempfile::TempDir, Result<RunRecord, String>) {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().canonicalize().unwrap();
    std::fs::write(folder.join("a.0.0"), vec![7; 1 << 20]).unwrap();
    std::fs::write(folder.join("other"), vec![8; 1 << 20]).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = job.replace("FOLDER", &folder.display().to_string());
    std::fs::write(file.path(), text).unwrap();
    let path = path.map(|path| folder.join(path));
    let run = UserJob::read(file.path(), JobRequest { path: path.as_deref(), sets: &[] })
        .and_then(|job| {
            let names = job.paths().iter().map(|path| path.display().to_string()).collect();
            let plan = Plan { paths: names, ..plan(&folder, &[]) };
            DiskExecutor::new(&plan, Some(job), permission, None)
        })
        .and_then(|mut executor| {
            // The second run finds what the first one has made.
            let first = executor.execute(&Cell::new(), &Cancel::new());
            let second = first.and_then(|_| executor.execute(&Cell::new(), &Cancel::new()));
            executor.finish().unwrap();
            second
        });
    (directory, run.map_err(|error| with_causes(&error)))
}

/// What is in the folder of `run_named`, by name.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> =
        entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Each file that a job names is looked at by itself: what it only reads needs no permission, what
/// it writes does, and what was not there is gone afterwards.
#[test]
fn every_file_of_a_job_is_one_that_was_looked_at() {
    testkit::require!(Fio);
    use Permission::{Destructive, KeepData};
    let both = "[global]\nbs=64k\n[a]\nrw=read\nfilename=FOLDER/a.0.0:FOLDER/other\n[b]\nrw=write\n\
                size=512k\nfilename=FOLDER/made\n";
    let (folder, run) = run_named(both, None, KeepData);
    let run = run.unwrap();
    let bytes: Vec<(&str, u64)> =
        run.operations.iter().map(|one| (&one.section[..], one.bytes)).collect();
    assert_eq!(bytes, [("a", 2 << 20), ("b", 512 << 10)]);
    assert_eq!(names_in(folder.path()), ["a.0.0", "other"]);
    // By two names it is one: what one section writes the other does not protect.
    let twice = "[a]\nrw=read\nfilename=FOLDER/other\n[b]\nrw=write\nfilename=FOLDER/./other\n";
    let (_, run) = run_named(twice, None, KeepData);
    assert!(run.unwrap_err().contains("other holds data"));
    let (folder, run) = run_named(&format!("{twice}bs=64k\n"), None, Destructive);
    assert_eq!(run.unwrap().bytes, 2 << 20);
    assert_ne!(std::fs::read(folder.path().join("other")).unwrap(), vec![8; 1 << 20]);
    assert_eq!(std::fs::read(folder.path().join("a.0.0")).unwrap(), vec![7; 1 << 20]);
}

/// fio takes a name from its working folder, puts `directory` before it, and makes one up where
/// there is none: `a.0.0`, which somebody has here.
#[test]
fn files_that_a_job_does_not_name_are_made_apart() {
    testkit::require!(Fio);
    use Permission::{Destructive, KeepData};
    let job = "[global]\nsize=384k\nbs=4k\nnumjobs=2\nnrfiles=3\ndirectory=FOLDER\n[a]\n\
               rw=randread\nopenfiles=1\nfile_service_type=sequential\n[b]\nrw=randwrite\n\
               stonewall\nfilename_format=$jobname-$jobnum-$filenum\n";
    for path in [None, Some("")] {
        // The folder of the job, or that of PATH.
        let job = if path.is_some() { job.replace("directory=FOLDER\n", "") } else { job.into() };
        let (folder, run) = run_named(&job, path.map(Path::new), Destructive);
        let run = run.unwrap();
        assert_eq!(run.bytes, (4 * 384) << 10, "{run:?}");
        assert_eq!(names_in(folder.path()), ["a.0.0", "other"]);
        for (name, byte) in [("a.0.0", 7), ("other", 8)] {
            let found = std::fs::read(folder.path().join(name)).unwrap();
            assert!(found == vec![byte; 1 << 20], "{name}");
        }
    }
    let check = |job: &str, path: Option<&str>, expected: &str| {
        let (folder, run) = run_named(job, path.map(Path::new), KeepData);
        let error = run.unwrap_err();
        assert!(error.contains(expected), "{job}: {error}");
        assert_eq!(names_in(folder.path()), ["a.0.0", "other"]);
    };
    check("[a]\nrw=read\nsize=1m\n", None, "section [a] names neither a file nor a folder");
    check("[a]\nrw=read\ndirectory=FOLDER\n", None, "section [a] has no size in bytes");
    check("[a]\nrw=read\nsize=1m\ndirectory=FOLDER/other\n", None, "is not a folder");
    check("[a]\nrw=read\nsize=900000t\ndirectory=FOLDER\n", None, "are free");
    check("[a]\nrw=write\nfilename=other\n", Some(""), "other holds data");
}

/// Files of our own: as many as asked for, each of its size; they are gone afterwards.
#[test]
fn many_files_are_made_and_read() {
    testkit::require!(Fio);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("takeup.0.0"), "precious").unwrap();
    let levels = |load: &str, bytes: u64| {
        [
            ("load", text(load)),
            ("files", Level::Number(40)),
            ("file_bytes", Level::Number(bytes)),
            ("cache", text("buffered")),
            ("jobs", Level::Number(2)),
            ("block_bytes", Level::Number(16384)),
        ]
    };
    for load in ["readfiles", "writefiles"] {
        let plan = Plan { run_seconds: 5.0, ..plan(directory.path(), &levels(load, 8192)) };
        let mut executor = DiskExecutor::new(&plan, None, Permission::KeepData, None).unwrap();
        for _ in 0..2 {
            let run = executor.execute(&plan.cells()[0], &Cancel::new()).unwrap();
            assert_eq!(run.bytes, 2 * 40 * 8192, "{run:?}");
            // As large as the request may be, each is one.
            assert_eq!(run.latency.as_ref().unwrap().count(), 2 * 40);
            assert!(run.measures["files_per_second"] > 0.0);
            let rate = run.measures["files_per_second"] * 8192.0 * run.seconds;
            assert!((rate / run.bytes as f64 - 1.0).abs() < 1e-9);
            assert_eq!(run.measures["written_file_bytes"], 8192.0);
        }
        assert_eq!(names_in(directory.path()).len(), 2);
        executor.finish().unwrap();
        assert_eq!(names_in(directory.path()), ["takeup.0.0"]);
        // Also where nobody finishes it.
        drop(DiskExecutor::new(&plan, None, Permission::KeepData, None).unwrap());
        assert_eq!(names_in(directory.path()), ["takeup.0.0"]);
    }
    let check = |path: &Path, levels: &[(&str, Level)], expected: &str| {
        let refused = DiskExecutor::new(&plan(path, levels), None, Permission::KeepData, None);
        let error = with_causes(&refused.unwrap_err());
        assert!(error.contains(expected), "{error}");
        assert_eq!(names_in(directory.path()), ["takeup.0.0"]);
    };
    let here = directory.path();
    check(here, &levels("readfiles", 20000), "no multiple of requests of ");
    check(here, &levels("writefiles", 1 << 40), "are free");
    check(&here.join("takeup.0.0"), &levels("readfiles", 8192), "is not a folder");
    let direct = [levels("readfiles", 1000).to_vec(), vec![("cache", text("direct"))]].concat();
    check(
        here,
        &direct[..3].iter().chain(&direct[4..]).cloned().collect::<Vec<_>>(),
        "multiple of 512",
    );
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
    testkit::require!(Fio, MqDeadline);
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
