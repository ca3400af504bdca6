//! What is printed can be read again as what it was.

use capture::operation::{
    Asked, Engine, FileKind, FileOperation, OpenedFile, Recording as _, Unknown,
};
use capture::profile::{ProfileLimits, Profiler};
use capture::record::{Captured, Heading};

use super::*;
use crate::capture::CaptureEnd;

fn captured() -> Captured {
    let mut profiler = Profiler::new(ProfileLimits::default());
    let file = OpenedFile {
        path: Ok("/srv/data".to_owned()),
        kind: FileKind::Regular,
        deleted: false,
        direct: Ok(false),
        synchronous: Ok(false),
        append: Ok(false),
        size_bytes: Ok(1 << 30),
    };
    profiler.file(0, &file);
    for number in 0..20 {
        profiler.operation(&FileOperation {
            start_ns: number * 1_000_000,
            duration_ns: Ok(100_000),
            process: 1,
            thread: 1,
            file: 0,
            engine: Engine::Pvsync2,
            asked: if number % 2 == 0 { Asked::Read } else { Asked::Write },
            offset_bytes: Err(Unknown::OffsetOfRing),
            asked_bytes: Ok(4096),
            done_bytes: Ok(4096),
            synchronous: false,
            in_flight: Ok(1),
            error: 0,
        });
    }
    let subject = "dd".to_owned();
    let heading = Heading { subject, events: 40, began_unix_seconds: 1.5e9, ..Heading::default() };
    Captured { heading, profile: profiler.profile(), ..Captured::default() }
}

fn again(lines: Option<u64>) -> CaptureAnswer {
    let (job, failures, end) = (MadeJob::default(), Vec::new(), CaptureEnd::Done);
    let calls = CapturedCalls { captured: captured(), lines, job, failures, end };
    let answer = CaptureDone::Calls(Box::new(calls)).answer();
    let printed = crate::document(&answer);
    let read: CaptureAnswer = serde_json::from_value(printed.clone()).unwrap();
    assert_eq!(read, answer);
    assert_eq!(crate::document(&read), printed);
    let files = printed["files"].as_array().unwrap();
    assert!(files[0]["unknown"]["sequential_share"].is_string(), "{printed:#}");
    read
}

#[test]
fn a_recording_is_read_again() {
    assert!(matches!(again(None), CaptureAnswer::Recorded(_)));
}

#[test]
fn an_import_is_read_again() {
    assert!(matches!(again(Some(7)), CaptureAnswer::Imported(_)));
}
