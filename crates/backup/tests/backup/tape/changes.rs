//! Changes of volume: whose time they are.

use std::time::Duration;

use archive::chunk::Compression;
use backup::backup::backup_to_tape;
use backup::tape::{ChangeError, TapeOptions, VolumeChanger, VolumeRequest};
use flow::cancel::Cancel;

use super::{Operator, library, tape_options, tree};
use crate::harness::Recorder;

/// Whoever changes volumes may take hours: the writer has not worked meanwhile.
#[test]
fn the_time_of_a_change_is_no_work_of_the_writer() {
    struct Slow(Operator);
    impl VolumeChanger for Slow {
        fn change(&mut self, request: &VolumeRequest) -> Result<(), ChangeError> {
            std::thread::sleep(Duration::from_millis(200));
            self.0.change(request)
        }
    }
    let tree = tree(3, 30, 60_000);
    let library = library(&[600 << 10; 8], 100 << 10);
    let options = tape_options(tree.path(), 64 << 10, Compression::None);
    let mut slow = Slow(Operator { library: library.clone(), requests: Vec::new() });
    let (recorder, cancel) = (Recorder::default(), Cancel::new());
    let tape = TapeOptions::default();
    let report =
        backup_to_tape(&options, &tape, library.drive(), &mut slow, &recorder, &cancel).unwrap();
    let changes = slow.0.requests.len();
    assert!(changes >= 2);
    let writer = report.stages.last().unwrap();
    let tape = report.tape.as_ref().unwrap();
    assert_eq!(writer.name, "write");
    assert!(tape.change_seconds >= 0.2 * changes as f64, "{tape:?}");
    assert!(writer.blocked_seconds >= tape.change_seconds, "{writer:?}");
    let others = tape.change_seconds + report.synchronise_seconds;
    assert!(writer.working_seconds <= report.seconds - others, "{writer:?} of {report:?}");
    assert!(writer.occupied_seconds <= report.seconds - others, "{writer:?} of {report:?}");
}
