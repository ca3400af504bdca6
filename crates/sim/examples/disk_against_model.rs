//! The virtual disk in real time against its model. As root, with fio:
//!
//! ```text
//! cargo run --release -p sim --example disk_against_model -- FOLDER BACKING [SECONDS [PART...]]
//! ```
//!
//! A part is `stream` or a preset; without one it is all of them.
//!
//! First one stream, read with `dd bs=256k` from a disk that takes 5.5 ms for each request: direct,
//! through the loop device with its `read_ahead_kb`, and through the folder's own read-ahead. Then
//! random reads by fio at growing depth on presets, whose heads have all their way on the image.
//! Every cell runs three times, the middle one
//! counts. BACKING is best in memory (`/dev/shm/disk`); it is made, 2 GiB, and removed.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::fs::{self, File};
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use model::disk::{DiskChanges, DiskParameters, time_of_reads};
use model::read_ahead::{Policy, Reader, sequential_bytes_per_second};
use rustix::fs::Advice;
use sim::mount::disk::{
    Access, Backing, CACHED_NAME, Clock, DISK_NAME, DiskMount, DiskSettings, LoopChoice,
};
use sim::speed_up::SpeedUp;

const SIZE_BYTES: u64 = 2 << 30;
const RUNS: usize = 3;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("FOLDER"));
    let backing = PathBuf::from(arguments.next().expect("BACKING"));
    let seconds: f64 = arguments.next().map_or(2.0, |text| text.parse().unwrap());
    let mut parts: Vec<String> = arguments.collect();
    if parts.is_empty() {
        parts = ["stream", "sas15k", "sata7200", "array:8", "ssd-sata", "nvme"]
            .map(str::to_owned)
            .to_vec();
    }
    let bench = Bench { folder, backing, seconds };
    bench.fill();
    if parts.iter().any(|part| part == "stream") {
        bench.one_stream();
    }
    parts.retain(|part| part != "stream");
    bench.depths(&parts);
    fs::remove_file(&bench.backing).unwrap();
}

struct Bench {
    folder: PathBuf,
    backing: PathBuf,
    seconds: f64,
}

impl Bench {
    /// Pages that are there, since a hole costs other time than data.
    fn fill(&self) {
        let _ = fs::remove_file(&self.backing);
        let of = format!("of={}", self.backing.display());
        let count = format!("count={}", SIZE_BYTES >> 20);
        let made = Command::new("dd").args(["if=/dev/zero", &of, "bs=1M", &count]).output();
        assert!(made.unwrap().status.success());
    }

    /// A disk while `act` looks at it.
    fn with<T>(
        &self,
        parameters: &DiskParameters,
        clock: Clock,
        act: impl FnOnce(&Path, &Path) -> T,
    ) -> T {
        let settings = DiskSettings {
            name: "measured".to_owned(),
            parameters: parameters.clone(),
            backing: Backing::open(&self.backing, None, Access::ReadWrite).unwrap(),
            clock,
            loop_device: LoopChoice::Attach,
        };
        let mount = DiskMount::new(settings, &self.folder).unwrap();
        let device = mount.loop_path().unwrap().to_owned();
        let result = act(&self.folder, &device);
        mount.unmounter().unmount().unwrap();
        mount.wait().unwrap();
        result
    }

    fn one_stream(&self) {
        let changes = DiskChanges {
            service_ns: Some(5_500_000),
            servers: Some(64),
            bytes_per_second: Some(600_000_000),
            ..DiskChanges::default()
        };
        let disk = DiskParameters::sas15k().with(&changes);
        // The rate of the path when the disk takes no time, with both copies.
        let path_rate = self.with(&disk, Clock::None, |_, device| {
            self.set_read_ahead(&queue_setting(device), 4096);
            // Whatever else the machine does can only make it slower.
            self.rates(device, 1e9, &[])[RUNS - 1]
        });
        println!("path without the disk: {:.0} MB/s\n", path_rate / 1e6);
        println!("| one stream, 256 KiB | predicted MB/s | measured | off |");
        println!("|---|---:|---:|---:|");
        self.with(&disk, Clock::Times(SpeedUp::ONE), |folder, device| {
            let reader = Reader { read_bytes: 256 << 10, copy_bytes_per_second: path_rate as u64 };
            let row = |name: String, policy: Policy, parameters: &DiskParameters, path: &Path| {
                let predicted = sequential_bytes_per_second(parameters, policy, reader) as f64;
                let flags: &[&str] = if policy == Policy::Direct { &["iflag=direct"] } else { &[] };
                let measured = self.rate(path, predicted, flags);
                print_row(&name, predicted / 1e6, measured / 1e6, 1);
            };
            row("direct, file".to_owned(), Policy::Direct, &disk, &folder.join(DISK_NAME));
            row("direct, loop device".to_owned(), Policy::Direct, &disk, device);
            for kib in [0, 128, 256, 512, 1024, 2048, 4096, 8192] {
                self.set_read_ahead(&queue_setting(device), kib);
                let policy = Policy::Linux { window_bytes: kib << 10 };
                row(format!("loop device, read-ahead {kib} KiB"), policy, &disk, device);
            }
            let cached = folder.join(CACHED_NAME);
            // Without a block device there is no `max_sectors_kb`; the backing device's own limit
            // for reads above the window is 128 KiB.
            let folder_disk = DiskParameters { request_bytes_max: 128 << 10, ..disk.clone() };
            for kib in [128, 512, 1024, 4096] {
                self.set_read_ahead(&folder_setting(folder), kib);
                let policy = Policy::Linux { window_bytes: kib << 10 };
                row(format!("file `cached`, read-ahead {kib} KiB"), policy, &folder_disk, &cached);
            }
        });
    }

    fn rate(&self, path: &Path, expected: f64, flags: &[&str]) -> f64 {
        self.rates(path, expected, flags)[RUNS / 2]
    }

    /// Bytes per second of dd, the slowest run first, over about as long as is wanted at the
    /// expected rate.
    fn rates(&self, path: &Path, expected: f64, flags: &[&str]) -> Vec<f64> {
        let wanted = (expected * self.seconds) as u64;
        let blocks = (wanted.min(SIZE_BYTES) >> 18).max(4);
        let mut rates: Vec<f64> = (0..RUNS)
            .map(|_| {
                let file = File::open(path).unwrap();
                rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
                drop(file);
                let began = Instant::now();
                let done = Command::new("dd")
                    .args([format!("if={}", path.display()), format!("count={blocks}")])
                    .args(["of=/dev/null", "bs=256k", "status=none"])
                    .args(flags)
                    .status();
                assert!(done.unwrap().success());
                (blocks << 18) as f64 / began.elapsed().as_secs_f64()
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        rates
    }

    fn set_read_ahead(&self, setting: &Path, kib: u64) {
        fs::write(setting, kib.to_string()).unwrap();
    }

    fn depths(&self, presets: &[String]) {
        println!("\n| random reads of 8 KiB | predicted per second | measured | off |");
        println!("|---|---:|---:|---:|");
        for preset in presets {
            let changes =
                DiskChanges { capacity_bytes: Some(SIZE_BYTES), ..DiskChanges::default() };
            let disk = DiskParameters::named(preset).unwrap().with(&changes);
            self.with(&disk, Clock::Times(SpeedUp::ONE), |folder, device| {
                for depth in [1, 2, 4, 8, 16, 32, 64] {
                    let predicted = closed_loop(&disk, depth);
                    for (name, path) in
                        [("file", &folder.join(DISK_NAME)), ("loop device", &device.to_owned())]
                    {
                        let name = format!("{preset}, {name}, depth {depth}");
                        print_row(&name, predicted, self.random_reads(path, depth), 0);
                    }
                }
            });
        }
    }

    fn random_reads(&self, path: &Path, depth: usize) -> f64 {
        let mut rates: Vec<f64> = (0..RUNS)
            .map(|_| {
                let told = Command::new("fio")
                    .args(["--name=depth", "--rw=randread", "--bs=8k", "--direct=1"])
                    .args(["--ioengine=libaio", "--time_based", "--output-format=json"])
                    .args(["--norandommap", "--readonly", "--allow_file_create=0"])
                    .arg(format!("--filename={}", path.display()))
                    .arg(format!("--iodepth={depth}"))
                    .arg(format!("--runtime={}", self.seconds.ceil()))
                    .arg(format!("--size={SIZE_BYTES}"))
                    .output()
                    .unwrap();
                assert!(told.status.success(), "{told:?}");
                let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
                told["jobs"][0]["read"]["iops"].as_f64().unwrap()
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        rates[RUNS / 2]
    }
}

fn queue_setting(device: &Path) -> PathBuf {
    Path::new("/sys/block").join(device.file_name().unwrap()).join("queue/read_ahead_kb")
}

fn folder_setting(folder: &Path) -> PathBuf {
    let device = fs::metadata(folder).unwrap().st_dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    PathBuf::from(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"))
}

fn print_row(name: &str, predicted: f64, measured: f64, digits: usize) {
    let off = 100.0 * (measured / predicted - 1.0);
    println!("| {name} | {predicted:.digits$} | {measured:.digits$} | {off:+.1} % |");
}

/// Requests per second with this many always in flight, at random places.
fn closed_loop(disk: &DiskParameters, depth: usize) -> f64 {
    const REQUESTS: usize = 20_000;
    const BLOCKS: u64 = SIZE_BYTES >> 13;
    let mut random = testkit::samples::Random::numbered(0);
    let reads: Vec<_> = (0..REQUESTS).map(|_| (random.below(BLOCKS) << 13, 8192)).collect();
    REQUESTS as f64 * 1e9 / time_of_reads(disk, &reads, depth) as f64
}
