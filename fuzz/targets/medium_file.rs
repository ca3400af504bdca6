//! `fuzzing::medium_file` for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::within_budget(
    fuzzing::medium_file::check,
    input
));
