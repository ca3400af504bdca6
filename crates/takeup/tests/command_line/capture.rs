//! `takeup capture` of programs with known operations: fio counts its own.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::disk::{DiskChanges, DiskParameters};
use serde_json::Value;
use service::capture::CaptureAnswer;
use sim::mount::disk::{Access, Backing, Clock, DISK_NAME, DiskMount, DiskSettings, LoopChoice};
use sim::speed_up::SpeedUp;
use tempfile::TempDir;

use crate::answers::check;
use crate::{document, run, shown, takeup};

/// The only file whose path has this end.
fn file_of<'a>(document: &'a Value, end: &str) -> &'a Value {
    let files = document["files"].as_array().unwrap();
    let is_it = |file: &&Value| file["path"].as_str().is_some_and(|path| path.ends_with(end));
    files.iter().find(is_it).unwrap_or_else(|| panic!("no {end} in {document:#}"))
}

const SLOW_ENGINE: &str = "io_uring";

/// A disk of 4 MiB that answers each request after 5 ms, until it is dropped.
struct SlowDisk {
    place: TempDir,
    mount: Option<DiskMount>,
    _backing: TempDir,
}

impl SlowDisk {
    fn new() -> SlowDisk {
        let [place, inside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let changes = DiskChanges {
            service_ns: Some(5_000_000),
            servers: Some(64),
            ..DiskChanges::default()
        };
        let file = inside.path().join("backing");
        let settings = DiskSettings {
            name: "sas15k".to_owned(),
            parameters: DiskParameters::sas15k().with(&changes),
            backing: Backing::open(&file, Some(4 << 20), Access::ReadWrite).unwrap(),
            clock: Clock::Times(SpeedUp::ONE),
            loop_device: LoopChoice::None,
        };
        let mount = DiskMount::new(settings, place.path()).unwrap();
        SlowDisk { place, mount: Some(mount), _backing: inside }
    }

    fn path(&self) -> PathBuf {
        self.place.path().join(DISK_NAME)
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        if let Some(mount) = self.mount.take() {
            let _ = mount.unmounter().unmount();
            let _ = mount.wait();
        }
    }
}

/// A job of fio: its engine, its other options, its block size and depth, and whether the depth can
/// be seen.
const JOBS: [(&str, &str, u64, Option<f64>); 6] = [
    ("psync", "--direct=1 --rw=randrw --rwmixread=70", 8192, Some(1.0)),
    ("sync", "--rw=write --fdatasync=8", 4096, Some(1.0)),
    ("pvsync2", "--rw=randread", 16384, Some(1.0)),
    ("libaio", "--direct=1 --iodepth=8 --rw=randrw --rwmixread=30", 16384, Some(8.0)),
    // On a disk of 5 ms: a fast one answers before the ring is full.
    (SLOW_ENGINE, "--direct=1 --iodepth=16 --rw=randread", 4096, Some(16.0)),
    ("io_uring", "--iodepth=16 --rw=randread --invalidate=0", 4096, None),
];

/// Engine, counts, block size and depth match the job; the counts are exactly those of fio.
#[test]
fn what_fio_does_comes_back() {
    testkit::require!(Tracefs, Fio, IoUring, Fuse);
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let slow = SlowDisk::new();
    fs::write(at.join("data"), vec![7; 4 << 20]).unwrap();
    for (engine, options, block, depth) in JOBS {
        let block_option = format!("--bs={block}");
        let engine_option = format!("--ioengine={engine}");
        let path =
            if engine == SLOW_ENGINE && depth.is_some() { slow.path() } else { at.join("data") };
        let file_option = format!("--filename={}", path.display());
        let mut arguments = vec!["capture", "--json", "--", "fio", "--name=job", &file_option];
        arguments.extend([
            "--size=4m",
            "--output-format=json",
            "--output=said",
            "--fallocate=none",
        ]);
        // Keeps the file open for a while.
        arguments.extend(["--runtime=60", "--thinktime=300ms", "--thinktime_blocks=200"]);
        arguments.extend([block_option.as_str(), engine_option.as_str()]);
        arguments.extend(options.split(' '));
        let recorded = document(at, &arguments);
        let said: Value = serde_json::from_slice(&fs::read(at.join("said")).unwrap()).unwrap();
        let said = &said["jobs"][0];
        let file = file_of(&recorded, path.to_str().unwrap());
        let what = format!("{engine} {options}: {file:#}");
        assert_eq!(recorded["lost_events"], 0, "{what}");
        assert_eq!(file["engine"], engine, "{what}");
        assert_eq!(file["reads"], said["read"]["total_ios"], "{what}");
        assert_eq!(file["writes"], said["write"]["total_ios"], "{what}");
        assert_eq!(file["block_bytes"], block, "{what}");
        assert_eq!(file["direct"], options.contains("direct=1"), "{what}");
        // Whether buffered requests wait depends on the page cache.
        if let Some(depth) = depth {
            let found = file["depth"].as_f64().unwrap();
            assert!((found / depth - 1.0).abs() <= 0.05, "{what}");
        }
        if engine == "sync" {
            assert_eq!(file["sync"]["call"], "fdatasync", "{what}");
            assert!(file["sequential_share"].as_f64().unwrap() > 0.95, "{what}");
        }
    }
}

#[test]
fn a_program_that_ends_at_once_is_recorded() {
    testkit::require!(Tracefs);
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &["capture", "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output, directory.path()));
    assert!(String::from_utf8_lossy(&output.stdout).contains(" recorded"));
}

#[test]
fn how_the_command_fails_is_told() {
    testkit::require!(Tracefs);
    let directory = tempfile::tempdir().unwrap();
    let check = |command: &[&str], expected: &str| {
        let arguments = [&["capture", "--"], command].concat();
        let output = run(directory.path(), &arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    check(&["no-such-program"], "the command ended with status 127: command not found");
    check(&["sh", "-c", "exit 3"], "the command ended with status 3");
    check(&["sh", "-c", "kill -9 $$"], "the command ended with signal 9");
}

#[test]
fn what_is_no_process_is_told() {
    testkit::require!(Root);
    let directory = tempfile::tempdir().unwrap();
    let check = |pid: &str, expected: &str| {
        let output = run(directory.path(), &["capture", "--pid", pid]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with(&format!("takeup: {expected}")), "{said}");
    };
    check("4194305", "there is no process 4194305\nhint: ");
    // The parent of all kernel threads, where they are visible.
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
        check("2", "process 2 is a kernel thread");
    }
    // A test runs in a separate thread.
    let own = rustix::thread::gettid().as_raw_nonzero().get();
    let process = std::process::id();
    check(&own.to_string(), &format!("{own} is a thread of process {process}"));
}

/// Inside, its processes have other numbers; the capture uses those of the machine.
#[test]
fn a_container_is_seen_from_outside() {
    testkit::require!(Tracefs);
    let directory = tempfile::tempdir().unwrap();
    // The file stays open long enough to look up its name on a busy machine, too.
    let line = "{ head -c 5000000 /dev/zero; sleep 1; } > written";
    let inside = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", line];
    let recorded =
        document(directory.path(), &[&["capture", "--json", "--"], &inside[..]].concat());
    let file = file_of(&recorded, "/written");
    assert_eq!((&file["engine"], &file["written_bytes"]), (&"sync".into(), &5_000_000.into()));
    assert!(file["sequential_share"].as_f64().unwrap() > 0.95, "{file:#}");
}

#[test]
fn what_is_lost_is_counted() {
    testkit::require!(Tracefs);
    let directory = tempfile::tempdir().unwrap();
    let load = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=300000", "status=none"];
    let small = ["capture", "--json", "--buffer", "8k", "--"];
    let recorded = document(directory.path(), &[&small[..], &load[..]].concat());
    let number = |name: &str| recorded[name].as_u64().unwrap();
    // Two calls for each byte, two events for each call, and the other calls of dd.
    let all = number("lost_events") + number("events");
    assert!(number("lost_events") > 0 && (1_200_000..1_210_000).contains(&all), "{all}");
}

/// As many calls as four processes can make: none is missing, whatever becomes of the processes,
/// and the cost of recording is reported.
#[test]
fn as_many_calls_as_can_be_are_read_or_counted() {
    testkit::require!(Tracefs);
    const CALLS: u64 = 50_000;
    let directory = tempfile::tempdir().unwrap();
    let load = format!(
        "for each in 1 2 3 4; do dd if=/dev/zero of=/dev/null bs=1 count={CALLS} status=none & \
         done; wait"
    );
    let recorded = document(directory.path(), &["capture", "--json", "--", "sh", "-c", &load]);
    let number = |name: &str| recorded[name].as_u64().unwrap();
    // A read and a write of each, two events for each call, and their other calls.
    let all = number("events") + number("lost_events");
    assert!((16 * CALLS..16 * CALLS + 20_000).contains(&all), "{all}");
    if number("lost_events") == 0 {
        let zero = file_of(&recorded, "/dev/zero");
        assert_eq!((&zero["reads"], &zero["threads"]), (&(4 * CALLS).into(), &4.into()));
    } else {
        assert_eq!(recorded["findings"][0]["rule"], "capture.lost");
    }
    let rules: Vec<_> =
        recorded["findings"].as_array().unwrap().iter().map(|it| &it["rule"]).collect();
    let rate = all as f64 / recorded["seconds"].as_f64().unwrap();
    let cost = &recorded["cost"];
    // A busy machine makes fewer calls per second, so that the cost does not matter.
    if rate > 110_000.0 {
        assert!(rules.contains(&&Value::from("capture.cost")), "{rules:?}");
        assert!(cost["event_seconds"].as_f64().unwrap() < 1e-3, "{cost}");
        assert!(cost["recorder_seconds"].as_f64().unwrap() >= 0.0, "{cost}");
    }
}

/// Fetched pages are visible; how much of them was used is not. A program's own code is mapped too,
/// and does not count as one of its files.
#[test]
fn pages_of_a_mapped_file_are_seen_as_far_as_they_can_be() {
    testkit::require!(Tracefs, Fio);
    if !Path::new("/sys/kernel/tracing/events/filemap/mm_filemap_fault").exists() {
        testkit::does_not_apply!("this kernel does not tell of faults of mapped files");
    }
    // Pages in memory need not be fetched.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = directory.path();
    let data = File::create(at.join("data")).unwrap();
    data.write_all_at(&vec![7; 4 << 20], 0).unwrap();
    // Pages that are not on the disk stay in memory.
    data.sync_all().unwrap();
    let recorded = document(
        at,
        &[
            "capture",
            "--json",
            "--",
            "fio",
            "--name=job",
            "--filename=data",
            "--size=4m",
            "--bs=4k",
            "--rw=randread",
            "--ioengine=mmap",
            "--output=said",
        ],
    );
    let file = file_of(&recorded, "/data");
    let what = format!("{file:#}");
    assert_eq!(file["engine"], "mmap", "{what}");
    // Mapping a page also maps up to 15 neighbours that are in memory.
    let reads = file["engines"]["mmap"].as_u64().unwrap();
    assert!((64..=1024).contains(&reads), "{what}");
    for name in ["read_bytes", "block_bytes", "sequential_share", "depth"] {
        assert!(file[name].is_null() && file["unknown"][name].is_string(), "{name}: {what}");
    }
    let is_library = |file: &&Value| {
        let path = file["path"].as_str().unwrap_or_default();
        path.contains(".so") && file["engines"].get("mmap").is_some()
    };
    assert_eq!(recorded["files"].as_array().unwrap().iter().find(is_library), None);
}

/// A ring whose requests a kernel thread takes: all of them are visible. fio lets such a ring name
/// its file by a number, so the file is unknown.
#[test]
fn requests_that_the_kernel_takes_are_seen() {
    testkit::require!(Tracefs, Fio, IoUring);
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("data"), vec![7; 4 << 20]).unwrap();
    let recorded = document(
        directory.path(),
        &[
            "capture",
            "--json",
            "--",
            "fio",
            "--name=job",
            "--filename=data",
            "--size=4m",
            "--bs=4k",
            "--rw=randread",
            "--ioengine=io_uring",
            "--sqthread_poll=1",
            "--iodepth=8",
            "--output=said",
        ],
    );
    let files = recorded["files"].as_array().unwrap();
    let ring = files.iter().find(|file| file["engine"] == "io_uring").unwrap();
    assert_eq!((&ring["reads"], &ring["block_bytes"]), (&1024.into(), &4096.into()), "{ring:#}");
    assert!(ring["path"].is_null(), "{ring:#}");
    let why = ring["unknown"]["path"].as_str().unwrap();
    assert!(why.contains("registered file"), "{why}");
}

/// Threads that come and go, far more than there could be descriptors.
#[test]
fn five_hundred_threads_take_no_descriptors() {
    testkit::require!(Tracefs);
    const THREADS: u32 = 500;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shared");
    fs::write(&path, [7; 512]).unwrap();
    let file = Arc::new(File::open(&path).unwrap());
    let done = Arc::new(AtomicBool::new(false));
    let work = |file: Arc<File>, done: Arc<AtomicBool>| {
        move || {
            while !done.load(Ordering::Relaxed) {
                file.read_exact_at(&mut [0; 512], 0).unwrap();
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|_| std::thread::spawn(work(Arc::clone(&file), Arc::clone(&done))))
        .collect();
    let own = std::process::id().to_string();
    let mut capture = takeup();
    capture.args(["capture", "--json", "--for", "3s", "--pid", &own]);
    // To a file, since no reader runs at the same time.
    let printed = directory.path().join("printed");
    capture.stdout(File::create(&printed).unwrap()).stderr(Stdio::piped());
    let mut child = capture.spawn().unwrap();
    let open = format!("/proc/{}/fd", child.id());
    let mut descriptors = 0;
    while child.try_wait().unwrap().is_none() {
        let now = fs::read_dir(Path::new(&open)).map_or(0, Iterator::count);
        descriptors = descriptors.max(now);
        std::thread::sleep(Duration::from_millis(20));
    }
    done.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let recorded: Value = serde_json::from_slice(&fs::read(printed).unwrap()).unwrap();
    let shared = file_of(&recorded, "/shared");
    assert_eq!((&shared["threads"], &shared["engine"]), (&THREADS.into(), &"psync".into()));
    // Two for each processor, and a few more.
    let processors = std::thread::available_parallelism().unwrap().get();
    assert!(descriptors > 4 && descriptors < 30 + 2 * processors, "{descriptors}");
}

/// A recording of strace is shown like a capture; a file that is not a recording is refused.
#[test]
fn a_recording_of_strace_is_imported() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capture/src/import/samples");
    fs::copy(samples.join("strace_threads.txt"), at.join("trace")).unwrap();
    let said = run(at, &["capture", "--import", "trace"]);
    assert_eq!(said.status.code(), Some(0), "{}", shown(&said, at));
    let text = String::from_utf8_lossy(&said.stdout);
    for expected in
        ["22 operations of 1 file", "/srv/sample/zz", "fdatasync / 1", "4 KiB at a time"]
    {
        assert!(text.contains(expected), "{text}");
    }
    let document = document(at, &["capture", "--json", "--import", "trace"]);
    let answer: CaptureAnswer = check(&document);
    assert!(matches!(answer, CaptureAnswer::Imported(_)), "{answer:?}");
    let file = file_of(&document, "/zz");
    assert_eq!((&file["engine"], &file["writes"]), (&"psync".into(), &12.into()));
    assert_eq!(document["findings"][1]["rule"], "capture.synced");
    fs::write(at.join("wrong"), "hello\n").unwrap();
    let said = run(at, &["capture", "--import", "wrong"]);
    assert_eq!(said.status.code(), Some(1), "{}", shown(&said, at));
    assert!(String::from_utf8_lossy(&said.stderr).contains("wrong: line 1: no time at its start"));
}

/// Most of these files are closed before anybody can look up their names.
#[test]
fn a_copy_of_many_small_files_is_counted_as_a_whole() {
    testkit::require!(Tracefs);
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::create_dir(at.join("tree")).unwrap();
    for number in 0..300 {
        fs::write(at.join(format!("tree/{number}")), [7; 1000]).unwrap();
    }
    let recorded = document(at, &["capture", "--json", "--", "cp", "-r", "tree", "copy"]);
    let files = recorded["files"].as_array().unwrap();
    let written: u64 = files.iter().filter_map(|file| file["written_bytes"].as_u64()).sum();
    assert_eq!((written, &recorded["lost_events"]), (300_000, &0.into()), "{recorded}");
}

/// A separate mount of tracefs.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new() -> Mounted {
        let folder = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tracefs", "none"])
            .arg(folder.path())
            .status()
            .unwrap();
        assert!(mounted.success());
        Mounted(folder)
    }

    fn instances_of(&self, process: u32) -> usize {
        let name = format!("takeup-{process}-");
        let all = fs::read_dir(self.0.path().join("instances")).unwrap().flatten();
        all.filter(|it| it.file_name().to_string_lossy().starts_with(&name)).count()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0.path()).status();
    }
}

/// Waits for a condition; fails if it takes too long.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("not within a minute: {what}");
}

/// All processes, with their arguments.
fn processes() -> impl Iterator<Item = (u32, Vec<String>)> {
    machine::processes::numbers().map(|at| (at, machine::threads::arguments(at)))
}

/// A killed process cannot stop the kernel from recording.
#[test]
fn a_killed_capture_leaves_nothing_that_records() {
    testkit::require!(Tracefs);
    let mounted = Mounted::new();
    let directory = tempfile::tempdir().unwrap();
    let mut capture = takeup()
        .current_dir(directory.path())
        .args(["capture", "--for", "100s", "--", "sleep", "100"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let id = capture.id();
    wait_until("it records", || mounted.instances_of(id) > 0);
    capture.kill().unwrap();
    capture.wait().unwrap();
    wait_until("what it recorded with is gone", || mounted.instances_of(id) == 0);
}

/// A command waits, stopped, until the recording has begun; nobody else would wake it up.
#[test]
fn a_command_that_was_never_released_ends_with_a_killed_capture() {
    testkit::require!(Tracefs);
    let directory = tempfile::tempdir().unwrap();
    let mark = format!("held-{}", std::process::id());
    let mut capture = takeup()
        .current_dir(directory.path())
        .args(["capture", "--for", "100s", "--", "sleep", "100", &mark])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let id = capture.id();
    let with_mark = || processes().filter(|(at, words)| *at != id && words.contains(&mark));
    let is_shell = |(_, words): (u32, Vec<String>)| words[0] == "/bin/sh";
    wait_until("it holds the command", || with_mark().any(is_shell));
    capture.kill().unwrap();
    capture.wait().unwrap();
    wait_until("the command has ended", || with_mark().count() == 0);
}

/// It also cannot remove the folder in which it runs fio, or end fio.
#[test]
fn a_killed_validation_leaves_no_folder_and_no_fio() {
    testkit::require!(Tracefs, Fio);
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    // A pause of two seconds after each of 30 writes.
    let trace: String = (0..30)
        .map(|number| {
            let second = number * 2;
            format!(
                "1 {second}.000001 pwrite64(3</srv/x>, \"\"..., 4096, {number}) = 4096 <0.00001>\n"
            )
        })
        .collect();
    fs::write(at.join("trace"), trace).unwrap();
    let mut capture = takeup()
        .current_dir(at)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .args(["capture", "--import", "trace", "--validate"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let folders = || {
        let all = fs::read_dir(at).unwrap().flatten();
        all.map(|it| it.path()).filter(|it| it.is_dir()).collect::<Vec<_>>()
    };
    let fios = |folder: &Path| {
        let name = folder.to_str().unwrap();
        processes().filter(|(_, words)| words.iter().any(|it| it.contains(name))).count()
    };
    // From then on, even before it is released.
    wait_until("it starts fio", || folders().first().is_some_and(|it| fios(it) > 0));
    let folder = folders().remove(0);
    capture.kill().unwrap();
    capture.wait().unwrap();
    wait_until("its folder is gone", || folders().is_empty());
    wait_until("fio is gone", || fios(&folder) == 0);
}
