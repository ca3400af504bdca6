//! What was seen as an answer.

use capture::operation::{OpenedFile, Recording as _, Unknown};
use capture::profile::{ProfileLimits, Profiler};
use capture::sampled::Sampled;

use super::*;
use crate::capture::{CallsAnswer, CaptureAnswer};

/// The document of samples.
fn document(sampled: Sampled, why: &str) -> Value {
    let why = why.to_owned();
    let samples = CapturedSamples { sampled, why, failed: None, is_stopped: false };
    let answer = CaptureAnswer::Sampled(Box::new(SampledAnswer::of(&samples)));
    let document = serde_json::to_value(&answer).unwrap();
    assert_eq!(serde_json::from_value::<CaptureAnswer>(document.clone()).unwrap(), answer);
    document
}

fn opened() -> OpenedFile {
    OpenedFile {
        path: Ok("/a".to_owned()),
        kind: FileKind::Regular,
        deleted: false,
        direct: Ok(false),
        synchronous: Ok(false),
        append: Ok(false),
        size_bytes: Ok(1000),
    }
}

fn file(path: &str, position: Position) -> SampledFile {
    SampledFile {
        path: path.to_owned(),
        class: None,
        kind: FileKind::Regular,
        reads: true,
        writes: false,
        direct: Some(false),
        synchronous: Some(false),
        append: Some(false),
        size_bytes: Some(1 << 30),
        grown_bytes: Some(0),
        position: Some(position),
        processes: 1,
    }
}

fn none() -> Sampled {
    Sampled {
        seconds: 1.0,
        looks: 51,
        processes: 1,
        totals: Totals::default(),
        files: Vec::new(),
        files_left_out: 0,
        has_rings: false,
        refused: 0,
    }
}

#[test]
fn what_was_opened_in_two_ways_has_a_reason() {
    let position = Position { forward_bytes: 0, forward: 0, backward: 0 };
    let sampled =
        Sampled { files: vec![SampledFile { direct: None, ..file("/a", position) }], ..none() };
    let document = document(sampled, "why");
    let file = &document["files"][0];
    assert_eq!(file["direct"], Value::Null);
    assert!(file["unknown"]["direct"].as_str().unwrap().contains("with and without"));
}

/// Whatever a recording has, this has too, or `null` with a reason.
#[test]
fn every_field_of_a_recording_is_there_or_has_a_reason() {
    let mut profiler = Profiler::new(ProfileLimits::default());
    profiler.file(0, &opened());
    let operation = capture::operation::FileOperation {
        start_ns: 0,
        duration_ns: Ok(1),
        process: 1,
        thread: 1,
        file: 0,
        engine: capture::operation::Engine::Sync,
        asked: capture::operation::Asked::Read,
        offset_bytes: Err(Unknown::Position),
        asked_bytes: Ok(10),
        done_bytes: Ok(10),
        synchronous: false,
        in_flight: Ok(1),
        error: 0,
    };
    profiler.operation(&operation);
    let profile = profiler.profile();
    let recorded = serde_json::to_value(CallsAnswer::of(&profile)).unwrap();
    let files = vec![file("/a", Position { forward_bytes: 7, forward: 1, backward: 0 })];
    let sampled = document(Sampled { files, ..none() }, "why");
    let check = |recorded: &Value, sampled: &Value| {
        for name in recorded.as_object().unwrap().keys() {
            let value = sampled.get(name).unwrap_or_else(|| panic!("no {name}"));
            let has_reason = sampled["unknown"][name.as_str()].is_string();
            assert!(value.is_null() == has_reason, "{name}: {value}");
        }
    };
    check(&recorded, &sampled);
    check(&recorded["files"][0], &sampled["files"][0]);
    assert_eq!(sampled["files"][0]["calls"], Value::Null);
    assert_eq!(sampled["lost_events"], Value::Null);
}
