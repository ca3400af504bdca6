//! `takeup sim disk`: reads return what was written, through every access path, and the disk goes
//! away cleanly, however it ends.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::FallocateFlags;
use serde_json::Value;
use service::sim::disk::SimDiskAnswer;
use tempfile::TempDir;
use testkit::samples::Random;

use crate::drive::{LIMIT, run, takeup, unmount};

const MIB: usize = 1 << 20;

/// `takeup sim disk` on a folder of its own, until it is dropped.
pub struct Disk {
    folder: TempDir,
    program: Child,
    told: Value,
}

impl Disk {
    /// A disk of 8 MiB. It needs FUSE, and loop devices when that is wanted.
    fn with(options: &[&str]) -> Disk {
        let folder = tempfile::tempdir().unwrap();
        let backing = folder.path().join("backing");
        Disk::on(folder, &backing, &[&["--size", "8M"], options].concat())
    }

    pub fn on(folder: TempDir, backing: &Path, options: &[&str]) -> Disk {
        let mountpoint = folder.path().join("disk");
        fs::create_dir_all(&mountpoint).unwrap();
        let mut program = takeup()
            .args(["sim", "disk", "--json", "--backing"])
            .arg(backing)
            .args(options)
            .arg(&mountpoint)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if let Ok(told) = serde_json::from_str::<Value>(&line) {
            // What it printed is its answer, as the schema has it.
            let answer: SimDiskAnswer = serde_json::from_value(told.clone()).unwrap();
            assert_eq!(service::document(&answer), told);
            return Disk { folder, program, told };
        }
        program.wait().unwrap();
        let mut text = String::new();
        program.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        panic!("no disk: {text}");
    }

    /// The JSON line that it printed when it was ready.
    pub fn document(&self) -> &Value {
        &self.told
    }

    pub fn told(&self, name: &str) -> PathBuf {
        PathBuf::from(self.told[name].as_str().unwrap())
    }

    fn mountpoint(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn backing(&self) -> PathBuf {
        self.folder.path().join("backing")
    }

    fn open(&self, name: &str) -> File {
        OpenOptions::new().read(true).write(true).open(self.told(name)).unwrap()
    }

    pub fn status(&self) -> Value {
        serde_json::from_slice(&fs::read(self.told("status")).unwrap()).unwrap()
    }

    pub fn signal(&self, name: &str) {
        let id = self.program.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits for the end of the program; returns its exit code and output.
    fn wait(&mut self) -> (Option<i32>, String) {
        let code = until(|| self.program.try_wait().unwrap()).code();
        let mut text = String::new();
        self.program.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        (code, text)
    }

    /// Waits for the end, which must be without an error.
    fn ends(&mut self) {
        let (code, text) = self.wait();
        assert_eq!(code, Some(0), "{text}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        unmount(&self.mountpoint());
        // Killed while it gives the loop device back, it could not answer the requests that the
        // kernel waits for.
        let end = Instant::now() + LIMIT;
        while matches!(self.program.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.program.kill();
        let _ = self.program.wait();
        unmount(&self.mountpoint());
    }
}

/// Retries until there is a value.
fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "it does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a command that must not hang.
fn in_time<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(act()));
    receiver.recv_timeout(LIMIT).expect("it hangs")
}

fn loop_is_attached(device: &Path) -> bool {
    let name = device.file_name().unwrap();
    Path::new("/sys/block").join(name).join("loop/backing_file").exists()
}

/// The content of a plain file after the same calls.
fn random_operations(file: &File, size: usize, aligned: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut model = vec![0; size];
    let units = size / aligned;
    for _ in 0..200 {
        let from = random.index(units) * aligned;
        let length = ((random.index(64) + 1) * aligned).min(size - from);
        let range = from..from + length;
        match random.below(8) {
            0..=3 => {
                let bytes = random.bytes(length);
                file.write_all_at(&bytes, from as u64).unwrap();
                model[range].copy_from_slice(&bytes);
            }
            4 => {
                let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                base::interruptible::fallocate(file, punch, from as u64, length as u64).unwrap();
                model[range].fill(0);
            }
            5 => file.sync_data().unwrap(),
            _ => {
                let mut bytes = vec![1; length];
                file.read_exact_at(&mut bytes, from as u64).unwrap();
                assert!(bytes == model[range], "{length} bytes at {from}");
            }
        }
    }
    model
}

#[test]
fn bytes_are_those_of_a_plain_file() {
    testkit::require!(Fuse);
    for (name, aligned) in [("disk", 1), ("disk", 4096), ("cached", 1000)] {
        // Requests are split, so that pieces must be joined.
        let options = ["--preset", "array:3", "--max-request", "8k", "--speed-up", "1000"];
        let mut disk = Disk::with(&options);
        let model =
            random_operations(&disk.open(name), 8 * MIB, aligned, 0x2545_f491 + aligned as u64);
        assert!(fs::read(disk.told("disk")).unwrap() == model);
        assert!(fs::read(disk.told("cached")).unwrap() == model);
        unmount(&disk.mountpoint());
        disk.ends();
        assert!(fs::read(disk.backing()).unwrap() == model);
    }
}

#[test]
fn bytes_through_the_loop_device_are_those_of_a_plain_file() {
    testkit::require!(Fuse, LoopDevices);
    let mut disk = Disk::with(&["--loop", "--time", "none"]);
    let device = disk.told("loop");
    let file = disk.open("loop");
    let model = random_operations(&file, 8 * MIB, 4096, 77);
    file.sync_all().unwrap();
    drop(file);
    assert!(fs::read(disk.told("disk")).unwrap() == model);
    assert!(fs::read(disk.told("cached")).unwrap() == model, "opened after the writing");
    unmount(&disk.mountpoint());
    // A loop device does not keep the folder busy.
    disk.ends();
    assert!(!loop_is_attached(&device));
    assert!(fs::read(disk.backing()).unwrap() == model);
}

/// The kernel shows the file of the loop device by its path inside the disk, which from outside is
/// another file, or none.
#[test]
fn probe_says_what_the_file_of_its_loop_device_lies_on() {
    testkit::require!(Fuse, LoopDevices);
    let mut disk = Disk::with(&["--loop", "--time", "none"]);
    let device = disk.told("loop");
    let output = takeup().arg("probe").arg(&device).arg("--json").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let layers = document["layers"].as_array().unwrap();
    assert_eq!(layers[0]["kind"], "loop", "{document:#}");
    assert_eq!(layers[1]["kind"], "file-system", "{document:#}");
    let name = layers[1]["name"].as_str().unwrap();
    assert_eq!(Path::new(name), disk.mountpoint().canonicalize().unwrap(), "{document:#}");
    unmount(&disk.mountpoint());
    disk.ends();
}

/// A loop device keeps its queue settings from one file to the next. Its next user would measure
/// with these settings.
#[test]
fn a_loop_device_is_given_back_as_the_kernel_makes_it() {
    testkit::require!(Fuse, MqDeadline, KernelSettings);
    let mut disk = Disk::with(&["--loop", "--time", "none"]);
    let device = disk.told("loop");
    let queue = Path::new("/sys/block").join(device.file_name().unwrap()).join("queue");
    // Older kernels do not report their own choice.
    let takes_zero = fs::write(queue.join("max_sectors_kb"), "0").is_ok();
    let changed = [
        // Settings of an earlier user, or of a rotating disk, are gone.
        ("read_ahead_kb", "64"),
        ("scheduler", "mq-deadline"),
        ("nomerges", "2"),
        ("nr_requests", "64"),
        ("max_sectors_kb", "256"),
    ];
    let changed = &changed[..if takes_zero { 5 } else { 4 }];
    let settings = || {
        let text = |(name, _): &(&str, &str)| fs::read_to_string(queue.join(name)).unwrap();
        changed.iter().map(text).collect::<Vec<String>>()
    };
    let fresh = settings();
    assert!(fresh[1].contains("[none]") && fresh[2].trim() == "0", "{fresh:?}");
    // Read-ahead last: the size of requests may raise it.
    for (setting, value) in changed.iter().rev() {
        fs::write(queue.join(setting), value).unwrap();
    }
    assert!(settings().iter().zip(&fresh).all(|(now, before)| now != before));
    disk.signal("TERM");
    disk.ends();
    assert_eq!(settings(), fresh);
}

#[test]
fn many_threads_at_once() {
    testkit::require!(Fuse);
    let options = ["--preset", "ssd-sata", "--speed-up", "10"];
    let disk = Disk::with(&options);
    let file = disk.open("disk");
    std::thread::scope(|scope| {
        for number in 0..16_u8 {
            let file = &file;
            scope.spawn(move || {
                for round in 0..20 {
                    let bytes = vec![number ^ round; MIB / 32];
                    let at = u64::from(number) * (MIB as u64 / 2) + u64::from(round) * 1000;
                    file.write_all_at(&bytes, at).unwrap();
                    let mut back = vec![0; bytes.len()];
                    file.read_exact_at(&mut back, at).unwrap();
                    assert!(back == bytes);
                }
            });
        }
    });
    let status = disk.status();
    assert_eq!(status["reads"], 320);
    assert_eq!(status["writes"], 320);
    assert_eq!(status["written_bytes"], 320 * MIB / 32);
    assert_eq!(status["in_flight"], 0);
    assert!(status["depth_max"].as_u64().unwrap() > 1, "{status}");
}

#[test]
fn status_tells_what_the_disk_saw() {
    testkit::require!(Fuse);
    let options =
        ["--preset", "sas15k", "--max-request", "64k", "--speed-up", "100", "--parallel", "1"];
    let disk = Disk::with(&options);
    let file = disk.open("disk");
    let mut bytes = vec![0; 256 << 10];
    file.read_exact_at(&mut bytes, 0).unwrap();
    file.read_exact_at(&mut bytes, 256 << 10).unwrap();
    file.write_all_at(&bytes, 4 << 20).unwrap();
    file.sync_all().unwrap();
    let status = disk.status();
    assert_eq!(status["disk"], "sas15k");
    assert_eq!(status["requests"], 4);
    assert_eq!(status["read_bytes"], 512 << 10);
    assert_eq!(status["flushes"], 1);
    assert_eq!(status["trouble"], Value::Null);
    let time = &status["time"];
    assert_eq!(time["split_pieces"], 9, "each of three in four pieces");
    assert_eq!(time["seeks"], 2, "the second read goes on where the first one ended");
    assert!(time["busy_share"].as_f64().unwrap() > 0.0, "{time}");
    let mountpoint = disk.mountpoint();
    let path = mountpoint.to_str().unwrap();
    let told = run(&["sim", "status", path, "--json"]);
    let document: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!((&document["command"], &document["requests"]), (&"sim status".into(), &4.into()));
    let told = String::from_utf8(run(&["sim", "status", path]).stdout).unwrap();
    assert!(told.starts_with("sas15k disk, busy "), "{told}");
    assert!(told.contains("\nreads          2, 524 kB\n"), "{told}");
}

#[test]
fn a_disk_has_an_end_and_one_size() {
    testkit::require!(Fuse);
    let disk = Disk::with(&["--time", "none"]);
    let mut file = disk.open("disk");
    let end = file.seek(SeekFrom::End(0)).unwrap();
    assert_eq!(end, 8 * MIB as u64);
    assert_eq!(file.read(&mut [0; 10]).unwrap(), 0);
    let error = file.write(&[1; 10]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(file.write_at(&[1; 10], end - 4).unwrap(), 4);
    assert_eq!(file.set_len(end + 1).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    // As `dd of=` does.
    drop(OpenOptions::new().write(true).truncate(true).open(disk.told("disk")).unwrap());
    assert_eq!(fs::metadata(disk.told("disk")).unwrap().len(), end);
    assert_eq!(fs::read(disk.told("disk")).unwrap()[8 * MIB - 4..], [1; 4]);
}

#[test]
fn nobody_writes_to_a_disk_that_is_read_only() {
    testkit::require!(Fuse);
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("backing");
    fs::write(&backing, vec![3; MIB]).unwrap();
    let options: &[&str] = if testkit::fully!(LoopDevices) {
        &["--read-only", "--time", "none", "--loop"]
    } else {
        &["--read-only", "--time", "none"]
    };
    let disk = Disk::on(folder, &backing, options);
    for name in ["disk", "cached", "loop"] {
        if !disk.told[name].is_string() {
            continue;
        }
        assert!(fs::read(disk.told(name)).unwrap() == vec![3; MIB], "{name}");
        let opened = OpenOptions::new().write(true).open(disk.told(name));
        let failed = opened.and_then(|mut file| file.write(&[1]));
        assert!(failed.is_err(), "{name} was written");
    }
    assert!(fs::read(&backing).unwrap() == vec![3; MIB]);
}

#[test]
fn maps_are_possible() {
    testkit::require!(Fuse, Python3);
    let disk = Disk::with(&["--time", "none"]);
    disk.open("disk").write_all_at(b"mapped", 4096).unwrap();
    let script = "import mmap,sys\n\
                  for name in sys.argv[1:]:\n \
                  f=open(name,'rb'); m=mmap.mmap(f.fileno(),0,mmap.MAP_SHARED,mmap.PROT_READ)\n \
                  assert m[4096:4102]==b'mapped', name";
    let output = Command::new("python3")
        .args(["-c", script])
        .args([disk.told("disk"), disk.told("cached")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_full_backing_is_an_error_that_status_explains() {
    testkit::require!(Fuse, Mounts);
    let folder = tempfile::tempdir().unwrap();
    let small = folder.path().join("small");
    fs::create_dir(&small).unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=1M", "tmpfs"]).arg(&small).status();
    assert!(mounted.unwrap().success());
    let backing = small.join("backing");
    let mut disk = Disk::on(folder, &backing, &["--size", "8M", "--speed-up", "100"]);
    let file = disk.open("disk");
    file.write_all_at(&[5; 64 << 10], 0).unwrap();
    let error = file.write_all_at(&vec![6; 2 * MIB], MIB as u64).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EIO));
    let trouble = disk.status()["trouble"].as_str().unwrap().to_owned();
    assert!(trouble.contains("cannot write") && trouble.contains("No space"), "{trouble}");
    let mut back = vec![0; 64 << 10];
    file.read_exact_at(&mut back, 0).unwrap();
    assert!(back == [5; 64 << 10], "what was taken before is intact");
    drop(file);
    unmount(&disk.mountpoint());
    disk.ends();
    unmount(&small);
}

#[test]
fn killed_with_readers_and_unwritten_pages() {
    testkit::require!(Fuse, LoopDevices);
    let options = ["--loop", "--service-time", "100ms", "--parallel", "2"];
    let mut disk = Disk::with(&options);
    let device = disk.told("loop");
    // Dirty pages of the device, which no program has synced.
    OpenOptions::new().write(true).open(&device).unwrap().write_all(&[1; 4 * MIB]).unwrap();
    let path = disk.told("disk");
    let (sender, failed) = mpsc::channel();
    std::thread::spawn(move || {
        let mut file = File::open(&path).unwrap();
        let mut block = vec![0; 4096];
        let error = loop {
            match file.read(&mut block) {
                Ok(0) => drop(file.rewind()),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        let _ = sender.send(error);
    });
    until(|| (disk.status()["reads"].as_u64() > Some(8)).then_some(()));
    disk.signal("KILL");
    assert_eq!(disk.wait().0, None, "the end of the process does not wait for its own answers");
    let error = failed.recv_timeout(LIMIT).expect("the reader hangs");
    let raw = error.raw_os_error().unwrap();
    assert!([libc::ECONNABORTED, libc::ENOTCONN, libc::EIO].contains(&raw), "{error}");
    until(|| (!loop_is_attached(&device)).then_some(()));
    let folder = disk.mountpoint();
    let text = run(&[
        "sim",
        "disk",
        folder.to_str().unwrap(),
        "--backing",
        disk.backing().to_str().unwrap(),
    ]);
    let text = String::from_utf8(text.stderr).unwrap();
    assert!(text.contains("hint: run umount ") && text.contains(": a disk was killed"), "{text}");
}

#[test]
fn a_signal_ends_a_disk_that_is_in_use() {
    testkit::require!(Fuse);
    let mut disk = Disk::with(&["--service-time", "10s"]);
    let path = disk.told("disk");
    let reader = std::thread::spawn(move || {
        let mut file = File::open(&path).unwrap();
        let read = file.read(&mut [0; 4096]);
        std::thread::sleep(Duration::from_millis(100));
        (file, read)
    });
    until(|| (disk.status()["in_flight"] == 1).then_some(()));
    disk.signal("TERM");
    let (mut file, read) = in_time(move || reader.join().unwrap());
    assert_eq!(read.unwrap(), 4096, "a request that was taken is answered, at once");
    assert_eq!(disk.wait().0, Some(1), "who holds it is not waited for");
    assert_eq!(file.read(&mut [0; 4096]).unwrap_err().raw_os_error(), Some(libc::ENOTCONN));
}

#[test]
fn unmounted_under_a_file_system_it_serves_on() {
    testkit::require!(Fuse, LoopDevices);
    let mut disk = Disk::with(&["--loop", "--time", "none"]);
    let device = disk.told("loop");
    let users = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(&device)
        .unwrap();
    unmount(&disk.mountpoint());
    assert!(fs::read_dir(disk.mountpoint()).unwrap().next().is_none(), "the folder is free");
    // Pages of the device that are still cached prove nothing; synced data do.
    OpenOptions::new().write(true).open(&device).unwrap().write_all(b"later").unwrap();
    users.sync_all().unwrap();
    drop(users);
    // The device ends with its last user.
    disk.ends();
    assert_eq!(fs::read(disk.backing()).unwrap()[..5], *b"later");
    assert!(!loop_is_attached(&device));
}

#[test]
fn misuse_of_a_disk_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mountpoint = folder.path().to_str().unwrap();
    let backing = folder.path().join("backing");
    let said = |options: &[&str]| {
        let arguments = ["sim", "disk", mountpoint, "--backing", backing.to_str().unwrap()];
        let output = run(&[&arguments, options].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let text = said(&[]);
    assert!(text.contains("hint: add its size, for example --size 10G"), "{text}");
    let text = said(&["--preset", "floppy"]);
    assert!(text.contains("known are sas15k sata7200 ssd-sata nvme"), "{text}");
    let text = said(&["--service-time", "5"]);
    assert!(text.contains("a time needs its unit: 5s, 5m or 5h"), "{text}");
    fs::write(&backing, [0; 4096]).unwrap();
    let text = said(&["--size", "8M"]);
    assert!(text.contains("has 4096 bytes, not 8388608"), "{text}");
    fs::write(&backing, [0; 100]).unwrap();
    assert!(said(&[]).contains("is smaller than a sector"));
}

/// A mounted device must not change below its file system.
#[test]
fn a_mounted_device_is_no_backing() {
    testkit::require!(Fuse, LoopDevices, Ext4);
    let folder = tempfile::tempdir().unwrap();
    let shell = |script: &str| {
        let mut shell = Command::new("sh");
        let output = shell.args(["-ec", script]).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let device = shell(
        "truncate -s 8M image && mkfs.ext4 -q image && mkdir at disk && \
         losetup --find --show image",
    );
    shell(&format!("mount {device} at"));
    let disk = folder.path().join("disk");
    let disk = disk.to_str().unwrap();
    let arguments = ["sim", "disk", disk, "--backing", &device, "--time", "none"];
    let mut program = takeup().args(arguments).stderr(Stdio::piped()).spawn().unwrap();
    let mut text = String::new();
    BufReader::new(program.stderr.take().unwrap()).read_line(&mut text).unwrap();
    unmount(Path::new(disk));
    let code = program.wait().unwrap().code();
    // Reading is allowed.
    let looking = Disk::on(tempfile::tempdir().unwrap(), Path::new(&device), &["--read-only"]);
    drop(looking);
    shell("umount at");
    shell(&format!("losetup --detach {device}"));
    assert_eq!(code, Some(1), "{text}");
    assert_eq!(text, format!("takeup: {device} is mounted or in use\n"));
}

#[test]
fn one_disk_has_a_backing() {
    testkit::require!(Fuse);
    let disk = Disk::with(&["--time", "none"]);
    let other = tempfile::tempdir().unwrap();
    let output = takeup()
        .args(["sim", "disk", "--backing"])
        .arg(disk.backing())
        .arg(other.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("another virtual disk uses "), "{text}");
}

/// No file can be created in the folder, so that nothing can be replaced.
#[test]
fn a_file_that_cannot_be_replaced_says_so() {
    testkit::require!(Fuse);
    let disk = Disk::with(&["--time", "none"]);
    let source = disk.folder.path().join("source");
    fs::write(&source, vec![7; MIB]).unwrap();
    let (source, target) = (source.to_str().unwrap(), disk.told("disk"));
    let target = target.to_str().unwrap();
    let output = run(&["pipe", "--from", source, "--overwrite", "--to", target]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    let expected = format!("takeup: cannot create the temporary file that would replace {target}");
    assert!(text.starts_with(&expected), "{text}");
    assert!(text.contains("hint: use `--to - 1<> FILE` to write over the file"), "{text}");
    // The command that the hint proposes.
    let program = env!("CARGO_BIN_EXE_takeup");
    let script = format!("{program} pipe --from {source} --to - 1<> {target}");
    let status = Command::new("bash").args(["-c", &script]).status().unwrap();
    assert!(status.success());
    let mut start = vec![0; MIB];
    disk.open("disk").read_exact(&mut start).unwrap();
    assert!(start.iter().all(|byte| *byte == 7));
}
