//! A disk that is removed during a watch, and another one that replaces it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use watch::intervals::{CounterState, Interval, IntervalMaker};
use watch::live::{WatchedDevices, WatchedMachine};

/// A loop device with its own number, removed completely when this is dropped.
struct Plugged {
    number: u32,
    is_in: bool,
}

/// `LOOP_CTL_REMOVE` of linux/loop.h. udev may have a new disk open for a moment.
const REMOVE: &str = "
import errno, fcntl, os, sys, time
control = os.open('/dev/loop-control', os.O_RDWR)
for _ in range(600):
    try:
        fcntl.ioctl(control, 0x4C81, int(sys.argv[1]))
        break
    except OSError as error:
        if error.errno == errno.ENODEV:
            break
        time.sleep(0.1)
else:
    sys.exit('it is in use')
";

impl Plugged {
    fn over(directory: &Path, number: u32) -> Plugged {
        let file = directory.join("disk");
        fs::File::create(&file).unwrap().set_len(8 << 20).unwrap();
        let disk = Plugged { number, is_in: true };
        let attached = Command::new("losetup").arg(disk.path()).arg(&file).output().unwrap();
        assert!(attached.status.success(), "{attached:?}");
        disk
    }

    fn path(&self) -> String {
        format!("/dev/loop{}", self.number)
    }

    fn pull(&mut self) -> bool {
        self.is_in = false;
        let detached = Command::new("losetup").args(["--detach", &self.path()]).status();
        let number = self.number.to_string();
        let removed = Command::new("python3").args(["-c", REMOVE, &number]).status();
        [detached, removed].iter().all(|it| it.as_ref().is_ok_and(|it| it.success()))
    }
}

impl Drop for Plugged {
    fn drop(&mut self) {
        if self.is_in {
            self.pull();
        }
    }
}

#[test]
fn a_disk_that_is_pulled_out_is_gone_and_the_next_one_is_another() {
    testkit::require!(LoopDevices, Python3);
    let directory = tempfile::tempdir().unwrap();
    let number = 1000 + std::process::id() % 30_000;
    let name = format!("loop{number}");
    let mut machine = WatchedMachine::new(WatchedDevices::Named([name.clone()].into()));
    let mut watch = IntervalMaker::default();
    let mut look =
        || -> Option<Interval> { watch.next(machine.reading(Duration::from_millis(50)).unwrap()) };
    let mut disk = Plugged::over(directory.path(), number);
    assert!(look().is_none());
    let there = look().unwrap();
    assert_eq!(
        (there.devices[0].name.as_str(), there.devices[0].state),
        (&*name, CounterState::Counted)
    );
    assert!(disk.pull());
    let gone = look().unwrap();
    assert_eq!((gone.vanished.as_slice(), gone.devices.len()), (&[name][..], 0));
    // It is reported once.
    assert!(look().unwrap().vanished.is_empty());
    let next = Plugged::over(directory.path(), number);
    assert_eq!(fs::read(next.path()).unwrap().len(), 8 << 20);
    let came = look().unwrap();
    assert_eq!(came.devices[0].state, CounterState::Appeared);
    // From its first request on.
    assert!(came.devices[0].counted.read.bytes() >= 8 << 20, "{:?}", came.devices[0].counted);
}
