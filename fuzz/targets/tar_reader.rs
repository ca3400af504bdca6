//! `fuzzing::tar_reader` for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::within_budget(
    fuzzing::tar_reader::check,
    input
));
