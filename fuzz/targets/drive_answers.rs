//! `fuzzing::drive_answers` for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::within_budget(
    fuzzing::drive_answers::check,
    input
));
