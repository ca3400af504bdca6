//! `fuzzing::trace_pages` for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::within_budget(
    fuzzing::trace_pages::check,
    input
));
