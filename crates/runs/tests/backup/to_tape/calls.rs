//! Which calls a run makes, and from where: a drive that streams must not be asked anything, and a
//! call that cannot be interrupted must not hold up the rest.

use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use archive::chunk::Compression;
use device::tape::raw::MtOperation;
use device::tape::{Access, OpenError, Tape, TapeDrive};
use flow::cancel::Cancel;
use runs::backup::backup;
use sim::tape::{Call, OnClose, OpenDirection, OpenMode, Readiness, VirtualDrive, WatchedTape};
use tapeset::TapeOptions;

use super::{Operator, library, on_tape, tape_options, tree};
use crate::harness::{Recorder, Watchdog};

type Calls = Arc<Mutex<Vec<(Call, ThreadId)>>>;

/// A drive that records its calls.
struct WatchedDrive {
    drive: VirtualDrive,
    calls: Calls,
}

impl TapeDrive for WatchedDrive {
    fn name(&self) -> &str {
        self.drive.name()
    }

    fn open(&self, access: Access) -> Result<Tape, OpenError> {
        let direction = match access {
            Access::Write => OpenDirection::ReadWrite,
            Access::Read | Access::Look => OpenDirection::Read,
        };
        let (readiness, on_close) = (Readiness::Needed, OnClose::Stay);
        let tape = self.drive.open_raw(OpenMode { direction, readiness, on_close }).unwrap();
        let calls = self.calls.clone();
        let note = move |call| calls.lock().unwrap().push((call, std::thread::current().id()));
        Ok(Tape::new(Box::new(WatchedTape::new(tape, note)), self.name()))
    }
}

#[test]
fn a_drive_that_streams_is_not_asked_anything() {
    let library = library(&[64 << 20], 1 << 20);
    let calls = Calls::default();
    let drive = WatchedDrive { drive: library.drive().clone(), calls: calls.clone() };
    let tree = tree(5, 40, 200_000);
    let options = tape_options(tree.path(), 64 << 10, Compression::None);
    let tape = TapeOptions { segment_bytes: Some(1 << 20), ..TapeOptions::default() };
    let _watchdog = Watchdog::new("backup to a watched tape".to_owned());
    let options = on_tape(&options, &tape, drive, Operator::of(&library));
    backup(&options, &Recorder::default(), &Cancel::new()).unwrap();

    let calls = calls.lock().unwrap();
    let first = calls.iter().position(|call| call.0 == Call::Write).unwrap();
    let last = calls.iter().rposition(|call| call.0 == Call::Write).unwrap();
    let immediate = Call::Operate(MtOperation::WriteFilemarksImmediate);
    let between = &calls[first..=last];
    let others: Vec<_> =
        between.iter().filter(|call| call.0 != Call::Write && call.0 != immediate).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(between.iter().filter(|call| call.0 == immediate).count() >= 3, "several segments");
    // The last filemark waits for the medium, and nothing was reported as good before it.
    let behind = calls.get(last + 1).map(|call| call.0);
    assert_eq!(behind, Some(Call::Operate(MtOperation::WriteFilemarks)));

    // Dedicated threads write, one after the other: first data, then the index.
    let own = std::thread::current().id();
    assert!(between.iter().all(|call| call.1 != own), "the run itself would be held up");
    let mut writers: Vec<ThreadId> = between.iter().map(|call| call.1).collect();
    writers.dedup();
    assert!(writers.len() <= 2, "{writers:?}");
}
