//! Compares the columns with the real `iostat`, with the same counters over the same time: no digit
//! may differ.
//!
//! `iostat` runs in its own mount namespace, in which `/sys/block`, the source of its counters, is
//! a folder of this test, and `/proc/uptime` a file. It reads them on SIGALRM, which the test
//! sends. So nothing here depends on timing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use machine::counters::disk::{Direction, DiskCounters, DiskRow, rows};
use serde_json::Value;
use watch::columns::{Columns, IostatObject};

use crate::loop_device::Loop;

/// Timeout, far above any normal duration.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(1);

/// A running `iostat` that reads the counters of the test.
struct Iostat {
    child: Child,
    lines: Receiver<String>,
    block: PathBuf,
    uptime: PathBuf,
    devices: usize,
}

impl Iostat {
    /// Starts it over these rows.
    fn start(directory: &Path, rows: &[DiskRow], hundredths: u64) -> Iostat {
        let (block, uptime) = (directory.join("block"), directory.join("uptime"));
        for row in rows {
            fs::create_dir_all(block.join(&row.name)).unwrap();
        }
        write(&block, &uptime, rows, hundredths);
        let script = "mount --bind \"$1\" /sys/block && mount --bind \"$2\" /proc/uptime \
                      && exec iostat -d -x -y -o JSON 3600 100000";
        let mut child = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
            .args([&block, &uptime])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let iostat = Iostat { child, lines, block, uptime, devices: rows.len() };
        iostat.wait_for_pause();
        iostat
    }

    /// Waits until `iostat` waits for its alarm: it sleeps nowhere else, because its output is
    /// always read.
    fn wait_for_pause(&self) {
        let began = Instant::now();
        let mut asleep = 0;
        while asleep < 3 {
            assert!(began.elapsed() < PATIENCE, "iostat does not wait for its alarm");
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
            asleep = if stat.contains("(iostat) S ") { asleep + 1 } else { 0 };
            sleep(STEP);
        }
    }

    /// Its output for these rows against the previous ones, in their order.
    fn next(&self, rows: &[DiskRow], hundredths: u64) -> Vec<Value> {
        write(&self.block, &self.uptime, rows, hundredths);
        let process = self.child.id().to_string();
        let rung = Command::new("kill").args(["-ALRM", &process]).status().unwrap();
        assert!(rung.success());
        let mut printed: Vec<Value> = Vec::new();
        while printed.len() < self.devices {
            let line = self.lines.recv_timeout(PATIENCE).expect("iostat prints all devices");
            if let Some(object) = line.trim().strip_prefix("{\"disk_device\"") {
                let object = object.trim_end_matches(',');
                printed.push(serde_json::from_str(&format!("{{\"disk_device\"{object}")).unwrap());
            }
        }
        self.wait_for_pause();
        // `iostat` prints them in the order of the folder.
        let place = |it: &Value| rows.iter().position(|row| it["disk_device"] == row.name.as_str());
        printed.sort_by_key(place);
        printed
    }
}

impl Drop for Iostat {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Overwrites the uptime in place, because the file itself is mounted, not its name.
fn write(block: &Path, uptime: &Path, rows: &[DiskRow], hundredths: u64) {
    for row in rows {
        // The file has the row without number and name.
        let row_text = row.to_string();
        let counters = row_text.splitn(4, ' ').nth(3).unwrap();
        fs::write(block.join(&row.name).join("stat"), format!("{counters}\n")).unwrap();
    }
    let (seconds, rest) = (hundredths / 100, hundredths % 100);
    fs::write(uptime, format!("{seconds}.{rest:02} 0.00\n")).unwrap();
}

fn ours(row: &DiskRow, before: &DiskRow, hundredths: u64) -> Value {
    let counted = row.counters.since_the_same(before.counters).unwrap();
    let columns = Columns::of(&counted, hundredths as f64 / 100.0);
    serde_json::to_value(IostatObject::of(&row.name, &columns)).unwrap()
}

/// A load that ends with the test.
struct Load(Child);

impl Load {
    /// Reads, writes, fsyncs and discards, of many sizes.
    fn start(directory: &Path, device: &str) -> Load {
        let all = ["--name=mixed", "--rw=randrw", "--bsrange=4k-256k", "--fsync=8", "--iodepth=4"];
        let discards = ["--name=trim", "--rw=randtrim", "--bs=64k", "--rate_iops=200"];
        let common = [
            "--ioengine=libaio",
            "--direct=1",
            "--time_based",
            "--runtime=600",
            "--group_reporting",
        ];
        let child = Command::new("fio")
            .current_dir(directory)
            .arg(format!("--filename={device}"))
            .args(common)
            .args(all)
            .args(discards)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        Load(child.unwrap())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // fio ends its jobs on SIGINT; a kill would leave them running.
        let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

fn row_of(name: &str) -> DiskRow {
    let text = fs::read("/proc/diskstats").unwrap();
    rows(&text).unwrap().into_iter().find(|row| row.name == name).unwrap()
}

fn uptime_hundredths() -> u64 {
    let text = fs::read_to_string("/proc/uptime").unwrap();
    let (seconds, rest) = text.split_whitespace().next().unwrap().split_once('.').unwrap();
    seconds.parse::<u64>().unwrap() * 100 + rest.parse::<u64>().unwrap()
}

#[test]
fn a_hundred_intervals_of_a_live_load_are_printed_as_iostat_prints_them() {
    testkit::require!(Root, Mounts, LoopDevices, Fio, Iostat);
    let directory = tempfile::tempdir().unwrap();
    let disk = Loop::over(directory.path());
    let name = disk.name();
    let load = Load::start(directory.path(), disk.path());
    let began = Instant::now();
    while row_of(name).counters.discard.requests == 0 {
        assert!(began.elapsed() < PATIENCE, "the load never began");
        sleep(STEP);
    }
    let (mut before, mut at) = (row_of(name), uptime_hundredths());
    let iostat = Iostat::start(directory.path(), std::slice::from_ref(&before), at);
    let first = before.clone();
    for interval in 0..100 {
        while uptime_hundredths() < at + 4 {
            sleep(STEP);
        }
        let (now, row) = (uptime_hundredths(), row_of(name));
        let printed = iostat.next(std::slice::from_ref(&row), now);
        assert_eq!(printed, [ours(&row, &before, now - at)], "interval {interval}");
        (before, at) = (row, now);
    }
    drop(load);
    // Every kind of request occurred.
    let counted = before.counters.since(first.counters);
    let all = [counted.read, counted.write, counted.discard, counted.flush];
    assert!(all.iter().all(|direction| direction.requests > 0), "{counted:?}");
}

/// Counters of any size, beyond any load of a test.
#[test]
fn counters_of_any_size_are_printed_as_iostat_prints_them() {
    testkit::require!(Root, Mounts, Iostat);
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    // Of all lengths, from 0 to some quintillions.
    let mut number = |bits_max: u32| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = ((seed >> 40) as u32) % (bits_max + 1);
        (seed >> 8) & ((1u64 << bits) - 1)
    };
    let mut direction = || Direction {
        requests: number(40),
        merges: number(40),
        sectors: number(45),
        time_ms: number(31) as u32,
    };
    let mut counters = || {
        let whole = direction();
        DiskCounters {
            read: direction(),
            write: direction(),
            discard: direction(),
            flush: Direction { merges: 0, sectors: 0, ..direction() },
            busy_ms: whole.time_ms,
            weighted_ms: (whole.requests & 0x7fff_ffff) as u32,
        }
    };
    let row = |name: String, counters| DiskRow { number: (8, 0), name, counters, in_flight: 0 };
    let before: Vec<DiskRow> =
        (0..60).map(|number| row(format!("made{number}"), counters())).collect();
    let directory = tempfile::tempdir().unwrap();
    let iostat = Iostat::start(directory.path(), &before, 1_000_000);
    let mut last = before;
    for (hundredths, at) in [(137, 1_000_137), (1, 1_000_138), (360_000, 1_360_138)] {
        let now: Vec<DiskRow> = last
            .iter()
            .map(|row| DiskRow { counters: row.counters.plus(counters()), ..row.clone() })
            .collect();
        let printed = iostat.next(&now, at);
        assert_eq!(printed.len(), now.len());
        for ((row, before), printed) in now.iter().zip(&last).zip(printed) {
            assert_eq!(printed, ours(row, before, hundredths), "{row} after {before}");
        }
        last = now;
    }
}

/// Times that wrap after 32 bits, which on a busy disk takes less than a day.
#[test]
fn times_that_wrap_are_differences_in_both() {
    testkit::require!(Root, Mounts, Iostat);
    let name = "made";
    let row = |time_ms: u32| {
        let direction = |sectors| Direction { requests: 10, merges: 0, sectors, time_ms };
        let counters = DiskCounters {
            read: direction(80),
            write: direction(80),
            discard: direction(80),
            flush: direction(0),
            busy_ms: time_ms,
            weighted_ms: time_ms,
        };
        DiskRow { number: (8, 0), name: name.to_owned(), counters, in_flight: 0 }
    };
    let before = row(u32::MAX - 99);
    let mut after = row(400);
    for direction in [
        &mut after.counters.read,
        &mut after.counters.write,
        &mut after.counters.discard,
        &mut after.counters.flush,
    ] {
        direction.requests = 60;
    }
    let directory = tempfile::tempdir().unwrap();
    let iostat = Iostat::start(directory.path(), std::slice::from_ref(&before), 1000);
    let printed = iostat.next(std::slice::from_ref(&after), 1100).remove(0);
    assert_eq!(printed, ours(&after, &before, 100));
    assert_eq!((&printed["r_await"], &printed["util"]), (&Value::from(10.0), &Value::from(50.0)));
}
