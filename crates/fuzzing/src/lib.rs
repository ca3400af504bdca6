//! What has to hold for any bytes: the readers of what others may have written.
//!
//! Each target takes an input and panics if a promise is broken. libFuzzer searches for such inputs
//! (`fuzz/`, a workspace of its own, since its instrumentation must not reach the product's build);
//! the tests here check the corpus and changed inputs of it in the usual build.
//!
//! # Map
//!
//! - `archives`: headers and a caller of the decoder, for several targets
//! - `budget`: memory and processor time that an input may take
//! - [`capture_imports`]: recordings of strace, blkparse and fio
//! - [`chunk_reader`]: compressed streams
//! - [`drive_answers`]: what tape drives answer
//! - [`index_reader`]: the index of an archive
//! - [`job_files`]: job files of fio
//! - [`label_reader`]: labels on tape
//! - [`measurements`]: what fio printed and the kernel counts
//! - [`medium_file`]: files of virtual media
//! - [`pasted_texts`]: what people paste of other programs
//! - [`pax_records`]: records of extended headers
//! - [`run_records`]: files of runs
//! - [`sparse_map`]: maps of sparse files
//! - [`tar_reader`]: archives of any tar
//! - [`trace_pages`]: pages of the kernel's tracepoints
//! - [`watch_records`]: records of a watch

mod archives;
mod budget;
pub mod capture_imports;
pub mod chunk_reader;
pub mod drive_answers;
pub mod index_reader;
pub mod job_files;
pub mod label_reader;
pub mod measurements;
pub mod medium_file;
pub mod pasted_texts;
pub mod pax_records;
pub mod run_records;
pub mod sparse_map;
pub mod tar_reader;
pub mod trace_pages;
pub mod watch_records;

/// A reader with what it promises.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is that of its corpus below `fuzz/corpus/`, too.
    pub name: &'static str,
    /// Panics if a promise is broken.
    pub check: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "capture_imports", check: capture_imports::check },
    Target { name: "chunk_reader", check: chunk_reader::check },
    Target { name: "drive_answers", check: drive_answers::check },
    Target { name: "index_reader", check: index_reader::check },
    Target { name: "job_files", check: job_files::check },
    Target { name: "label_reader", check: label_reader::check },
    Target { name: "measurements", check: measurements::check },
    Target { name: "medium_file", check: medium_file::check },
    Target { name: "pasted_texts", check: pasted_texts::check },
    Target { name: "pax_records", check: pax_records::check },
    Target { name: "run_records", check: run_records::check },
    Target { name: "sparse_map", check: sparse_map::check },
    Target { name: "tar_reader", check: tar_reader::check },
    Target { name: "trace_pages", check: trace_pages::check },
    Target { name: "watch_records", check: watch_records::check },
];

/// Checks an input, which also panics if that takes too much memory or time.
pub fn within_budget(check: fn(&[u8]), input: &[u8]) {
    let _budget = budget::Budget::of(input);
    check(input);
}
