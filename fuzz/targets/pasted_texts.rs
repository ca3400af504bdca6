//! `fuzzing::pasted_texts` for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::within_budget(
    fuzzing::pasted_texts::check,
    input
));
