//! Known loads on a real device, and the rules that must explain each.
//!
//! The tests assert only what follows from the load, independent of the speed of the device: the
//! shape of the requests, and the absence of impossible findings.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use watch::intervals::{DeviceInterval, IntervalMaker};
use watch::live::{WatchedDevices, WatchedMachine};

use crate::loop_device::Loop;

struct Known {
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    fio: &'static [&'static str],
    speaks: &'static [&'static str],
    silent: &'static [&'static str],
}

const SHAPES: [&str; 7] = [
    "device.merged",
    "device.write-back",
    "device.merging-off",
    "device.read-ahead-window",
    "device.split",
    "device.not-merged",
    "device.as-made",
];

const LOADS: &[Known] = &[
    Known {
        name: "random reads of 4 KiB, eight at once",
        settings: &[("scheduler", "none")],
        fio: &["--rw=randread", "--bs=4k", "--direct=1", "--iodepth=8", "--number_ios=8000"],
        speaks: &["device.not-merged"],
        silent: &["device.queue-full", "device.queue-in-host", "device.flushes"],
    },
    Known {
        name: "random writes of 16 KiB, one at a time",
        settings: &[("scheduler", "none")],
        fio: &["--rw=randwrite", "--bs=16k", "--direct=1", "--iodepth=1", "--number_ios=2000"],
        speaks: &["device.not-merged"],
        silent: &["device.queue-full", "device.queue-in-host"],
    },
    Known {
        name: "reads and writes of 8 KiB",
        settings: &[("scheduler", "mq-deadline"), ("nomerges", "0")],
        fio: &["--rw=randrw", "--bs=8k", "--direct=1", "--iodepth=8", "--number_ios=8000"],
        speaks: &["device.not-merged"],
        silent: &["device.merging-off"],
    },
    Known {
        name: "direct reads of 256 KiB",
        settings: &[("scheduler", "none"), ("max_sectors_kb", "1280"), ("read_ahead_kb", "1024")],
        fio: &["--rw=read", "--bs=256k", "--direct=1", "--iodepth=2", "--loops=3"],
        speaks: &["device.as-made"],
        silent: &[],
    },
    Known {
        name: "direct reads of 4 MiB, split at 256 KiB",
        settings: &[("scheduler", "none"), ("max_sectors_kb", "256"), ("read_ahead_kb", "4096")],
        fio: &["--rw=randread", "--bs=4M", "--direct=1", "--iodepth=4", "--number_ios=60"],
        speaks: &["device.split"],
        silent: &[],
    },
    Known {
        name: "direct reads of 4 MiB, split at as many pages as a request may have",
        settings: &[("scheduler", "none"), ("max_sectors_kb", "1280"), ("read_ahead_kb", "128")],
        fio: &["--rw=randread", "--bs=4M", "--direct=1", "--iodepth=4", "--number_ios=60"],
        speaks: &["device.split"],
        silent: &[],
    },
    Known {
        name: "direct writes of 1 MiB, split at 512 KiB",
        settings: &[("scheduler", "none"), ("max_sectors_kb", "512")],
        fio: &["--rw=write", "--bs=1M", "--direct=1", "--iodepth=1", "--loops=3"],
        speaks: &["device.split"],
        silent: &[],
    },
    Known {
        name: "a file read through the page cache, with a window of 128 KiB",
        settings: &[("scheduler", "none"), ("max_sectors_kb", "1280"), ("read_ahead_kb", "128")],
        fio: &["--rw=read", "--bs=16k", "--ioengine=psync", "--fadvise_hint=0"],
        speaks: &["device.read-ahead-window"],
        silent: &[],
    },
    Known {
        name: "the same by a program that says it reads sequentially",
        settings: &[("scheduler", "none"), ("max_sectors_kb", "1280"), ("read_ahead_kb", "128")],
        fio: &["--rw=read", "--bs=16k", "--ioengine=psync", "--fadvise_hint=sequential"],
        speaks: &["device.read-ahead-window"],
        silent: &[],
    },
    Known {
        name: "sequential reads handed in sixteen at once",
        settings: &[("scheduler", "mq-deadline"), ("nomerges", "0"), ("max_sectors_kb", "1280")],
        fio: &[
            "--rw=read",
            "--bs=4k",
            "--direct=1",
            "--iodepth=16",
            "--iodepth_batch_submit=16",
            "--iodepth_batch_complete_min=16",
        ],
        speaks: &["device.merged"],
        silent: &[],
    },
    Known {
        name: "writes through the page cache",
        settings: &[("scheduler", "mq-deadline"), ("nomerges", "0"), ("max_sectors_kb", "1280")],
        fio: &["--rw=write", "--bs=64k", "--ioengine=psync", "--end_fsync=1"],
        speaks: &["device.write-back"],
        silent: &[],
    },
    Known {
        name: "the same with nothing joined",
        settings: &[("scheduler", "mq-deadline"), ("nomerges", "2"), ("max_sectors_kb", "1280")],
        fio: &["--rw=write", "--bs=64k", "--ioengine=psync", "--end_fsync=1"],
        speaks: &["device.merging-off"],
        silent: &[],
    },
    Known {
        name: "each write made safe, as a database's log",
        settings: &[("scheduler", "none"), ("write_cache", "write back")],
        fio: &[
            "--rw=write",
            "--bs=8k",
            "--direct=1",
            "--ioengine=psync",
            "--fdatasync=1",
            "--number_ios=600",
        ],
        speaks: &["device.not-merged", "device.flushes"],
        silent: &["device.discards"],
    },
    Known {
        name: "discards",
        settings: &[("scheduler", "none")],
        fio: &["--rw=randtrim", "--bs=64k", "--direct=1", "--iodepth=4", "--number_ios=1000"],
        speaks: &["device.discards"],
        silent: &SHAPES,
    },
    Known {
        name: "random reads of 512 bytes",
        settings: &[("scheduler", "none")],
        fio: &["--rw=randread", "--bs=512", "--direct=1", "--iodepth=4", "--number_ios=8000"],
        speaks: &["device.not-merged"],
        silent: &["device.split"],
    },
    Known {
        name: "random writes of 4 KiB, thirty-two at once",
        settings: &[("scheduler", "mq-deadline"), ("nomerges", "0")],
        fio: &["--rw=randwrite", "--bs=4k", "--direct=1", "--iodepth=32", "--number_ios=4000"],
        speaks: &["device.not-merged"],
        silent: &["device.flushes"],
    },
    Known {
        name: "reads of a file here and there, read-ahead told to stay out",
        settings: &[("scheduler", "none"), ("read_ahead_kb", "128")],
        fio: &[
            "--rw=randread",
            "--bs=4k",
            "--ioengine=psync",
            "--fadvise_hint=random",
            "--io_size=8M",
        ],
        speaks: &["device.not-merged"],
        silent: &[],
    },
    Known {
        name: "direct reads of 80 KiB, one at a time",
        settings: &[("scheduler", "none"), ("max_sectors_kb", "1280"), ("read_ahead_kb", "128")],
        fio: &["--rw=randread", "--bs=80k", "--direct=1", "--iodepth=1", "--number_ios=1000"],
        speaks: &["device.as-made"],
        silent: &["device.queue-full"],
    },
    Known {
        name: "direct writes as large as the read-ahead, which is none of theirs",
        settings: &[("scheduler", "none"), ("max_sectors_kb", "1280"), ("read_ahead_kb", "128")],
        fio: &["--rw=write", "--bs=128k", "--direct=1", "--iodepth=2"],
        speaks: &["device.as-made"],
        silent: &[],
    },
    Known {
        name: "a file read with a window of 256 KiB",
        settings: &[("scheduler", "none"), ("max_sectors_kb", "1280"), ("read_ahead_kb", "256")],
        fio: &["--rw=read", "--bs=4k", "--ioengine=psync", "--fadvise_hint=0"],
        speaks: &["device.read-ahead-window"],
        silent: &[],
    },
    Known {
        name: "sequential writes handed in sixteen at once",
        settings: &[("scheduler", "mq-deadline"), ("nomerges", "0"), ("max_sectors_kb", "1280")],
        fio: &[
            "--rw=write",
            "--bs=8k",
            "--direct=1",
            "--iodepth=16",
            "--iodepth_batch_submit=16",
            "--iodepth_batch_complete_min=16",
        ],
        speaks: &["device.merged"],
        silent: &[],
    },
    Known {
        name: "sequential reads handed in sixteen at once with nothing joined",
        settings: &[("scheduler", "mq-deadline"), ("nomerges", "2"), ("max_sectors_kb", "1280")],
        fio: &[
            "--rw=read",
            "--bs=4k",
            "--direct=1",
            "--iodepth=16",
            "--iodepth_batch_submit=16",
            "--iodepth_batch_complete_min=16",
        ],
        speaks: &["device.merging-off"],
        silent: &[],
    },
    Known {
        name: "random pages written through the page cache",
        settings: &[("scheduler", "mq-deadline"), ("nomerges", "0")],
        fio: &["--rw=randwrite", "--bs=4k", "--ioengine=psync", "--io_size=4M", "--end_fsync=1"],
        speaks: &["device.not-merged"],
        silent: &["device.flushes"],
    },
    Known {
        name: "random writes, each made safe",
        settings: &[("scheduler", "none"), ("write_cache", "write back")],
        fio: &[
            "--rw=randwrite",
            "--bs=4k",
            "--direct=1",
            "--ioengine=psync",
            "--fsync=1",
            "--number_ios=600",
        ],
        speaks: &["device.not-merged", "device.flushes"],
        silent: &[],
    },
    Known {
        name: "writes that are each on the medium when they return (O_DSYNC)",
        settings: &[("scheduler", "none"), ("write_cache", "write back")],
        fio: &[
            "--rw=write",
            "--bs=16k",
            "--direct=1",
            "--ioengine=psync",
            "--sync=dsync",
            "--number_ios=600",
        ],
        speaks: &["device.not-merged", "device.flushes"],
        silent: &[],
    },
    Known {
        name: "large discards one after the other",
        settings: &[("scheduler", "none")],
        fio: &["--rw=trim", "--bs=1M", "--direct=1", "--iodepth=1"],
        speaks: &["device.discards"],
        silent: &SHAPES,
    },
];

/// The findings about a disk from before to after a load.
fn seen(disk: &Loop, load: impl FnOnce()) -> DeviceInterval {
    let mut machine = WatchedMachine::new(WatchedDevices::Named([disk.name().to_owned()].into()));
    let mut watch = IntervalMaker::default();
    let mut reading = || machine.reading(Duration::from_millis(1)).unwrap();
    assert!(watch.next(reading()).is_none());
    load();
    watch.next(reading()).unwrap().devices.remove(0)
}

fn fio(directory: &Path, disk: &Loop, arguments: &[&str]) {
    let common = ["--name=known", "--ioengine=libaio", "--randseed=7", "--size=64M"];
    let output = Command::new("fio")
        .current_dir(directory)
        .args(common)
        .arg(format!("--filename={}", disk.path()))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn loads_of_known_kind_get_the_right_line() {
    testkit::require!(Fio, MqDeadline, KernelSettings);
    assert!(LOADS.len() >= 25);
    for known in LOADS {
        let directory = tempfile::tempdir().unwrap();
        let mut disk = Loop::over(directory.path());
        for (setting, value) in known.settings {
            disk.set(setting, value);
        }
        let device = seen(&disk, || fio(directory.path(), &disk, known.fio));
        let ids: Vec<&str> = device.findings.iter().map(|finding| &*finding.rule).collect();
        let about = format!("{}: {ids:?} of {:?}", known.name, device.columns);
        for rule in known.speaks {
            assert!(ids.contains(rule), "no {rule}: {about}");
        }
        // Exactly one shape of its requests, unless the case names another one too.
        let others = SHAPES.iter().filter(|shape| !known.speaks.contains(shape));
        for rule in known.silent.iter().chain(others) {
            assert!(!ids.contains(rule), "{rule}: {about}");
        }
    }
}

#[test]
fn an_idle_device_is_not_spoken_of() {
    testkit::require!(LoopDevices);
    let directory = tempfile::tempdir().unwrap();
    let disk = Loop::over(directory.path());
    // Wait until udev has finished with the new disk.
    let settled = (0..100).any(|_| {
        let device = seen(&disk, || std::thread::sleep(Duration::from_millis(100)));
        let found = device.findings.len();
        assert!(device.is_busy() || found == 0, "{:?}", device.findings);
        !device.is_busy()
    });
    assert!(settled, "it never became idle");
}
