//! tar and gzip to a tape of 1999, with no, one and two dd between them.
//!
//! Processor and elapsed times without a tape are given. The time of a back-hitch is fitted on the
//! run that writes to the tape directly. The runs with dd are predicted. Facts that the report
//! lacks are assumed, see [`ASSUMED`]: the ratio of gzip, that files of two kinds alternate, and a
//! DDS-2 drive. Other plausible values (220 to 300 MB on the tape, changes every 4 to 32 MiB, a
//! buffer of 0.5 to 1 MiB) keep the order of the runs and give 13 to 41 % instead of the published
//! 28.

use model::pipeline::{Output, Program, Surroundings, run};
use model::program::Ratio;
use model::tape::TapeModel;
use model::tape::generation::Generation;
use model::tape::parameters::{Known, TapeParameters};
use serde::Deserialize;

use super::fit::{Range, fit};
use super::{Role, Row, show};

#[derive(Deserialize)]
struct Published {
    block_bytes: u64,
    runs: Vec<Measured>,
    conclusions: Conclusions,
}

#[derive(Deserialize)]
struct Measured {
    pipeline: String,
    user_s: f64,
    system_s: f64,
    elapsed_s: f64,
}

#[derive(Deserialize)]
struct Conclusions {
    tape_overhead_cut_percent: f64,
    bound_s: f64,
}

struct Assumed {
    input_bytes: u64,
    /// Input of one kind of files before the other kind follows.
    period_bytes: u64,
    /// gzip's output for 1,000 bytes of each kind.
    permille: [u64; 2],
    /// DDS-2, by its makers' data.
    drive_bytes_per_second: u64,
    drive_buffer_bytes: u64,
    /// Linux 2.2 and its contemporaries.
    pipe_bytes: u64,
    /// gzip's own (`OUTBUFSIZ`).
    gzip_write_bytes: u64,
    /// Each dd copies everything twice.
    dd_seconds: f64,
}

const ASSUMED: Assumed = Assumed {
    input_bytes: 780_000_000,
    period_bytes: 16 << 20,
    permille: [183, 483],
    drive_bytes_per_second: 510_000,
    drive_buffer_bytes: 512 << 10,
    pipe_bytes: 4096,
    gzip_write_bytes: 16384,
    dd_seconds: 4.0,
};
/// tar's part of the processor time; the rest is gzip's.
const TAR_SECONDS: f64 = 40.0;

fn published() -> Published {
    toml::from_str(include_str!("double-buffer.toml")).unwrap()
}

fn programs(published: &Published, dds: usize, permille: [u64; 2]) -> Vec<Program> {
    let bare = &published.runs[0];
    let processor_s = bare.user_s + bare.system_s;
    let ns_per_mib = |seconds: f64, bytes: u64| (seconds * 1e9 * 1048576.0 / bytes as f64) as u64;
    let input = ASSUMED.input_bytes;
    let tar = Program {
        input_bytes: 0,
        read_bytes: 10240,
        write_bytes: 10240,
        processor_ns_per_mib: ns_per_mib(TAR_SECONDS, input),
        wait_ns_per_mib: ns_per_mib(bare.elapsed_s - processor_s, input),
        output: Output::Same,
    };
    let gzip = Program {
        input_bytes: ASSUMED.pipe_bytes,
        read_bytes: 32768,
        write_bytes: ASSUMED.gzip_write_bytes,
        processor_ns_per_mib: ns_per_mib(processor_s - TAR_SECONDS, input),
        wait_ns_per_mib: 0,
        output: Output::Alternating { period_bytes: ASSUMED.period_bytes, permille },
    };
    let dd = Program {
        input_bytes: ASSUMED.pipe_bytes,
        read_bytes: ASSUMED.pipe_bytes,
        write_bytes: published.block_bytes,
        processor_ns_per_mib: ns_per_mib(ASSUMED.dd_seconds, input / 3),
        wait_ns_per_mib: 0,
        output: Output::Same,
    };
    let mut programs = vec![tar, gzip];
    programs.extend(std::iter::repeat_n(dd, dds));
    programs
}

fn drive(back_hitch_s: f64) -> TapeModel {
    let back_hitch = Known::fitted((back_hitch_s * 1e9) as u64);
    let mut parameters = TapeParameters::of(&Generation::all()[0]);
    parameters.speeds_bytes_per_second = vec![ASSUMED.drive_bytes_per_second];
    parameters.buffer_bytes = Known::given(ASSUMED.drive_buffer_bytes);
    parameters.back_hitch_ns = back_hitch;
    parameters.synchronise_ns = back_hitch;
    parameters.host_bytes_per_second = Known::given(5_000_000);
    parameters.command_overhead_ns = Known::given(1_000_000);
    parameters.wraps = Known::given(1);
    TapeModel::new(parameters)
}

/// Seconds and back-hitches.
fn seconds(published: &Published, dds: usize, back_hitch_s: f64, permille: [u64; 2]) -> (f64, u64) {
    let mut tape = drive(back_hitch_s);
    let around = Surroundings { processors: 1, drive_ratio: Ratio::NONE };
    let programs = programs(published, dds, permille);
    let run = run(&programs, around, Some(&mut tape), ASSUMED.input_bytes).unwrap();
    (run.elapsed_ns as f64 / 1e9, tape.counters().back_hitches)
}

fn fitted_back_hitch_s(published: &Published, permille: [u64; 2]) -> f64 {
    let [back_hitch_s] = fit([Range { from: 0.5, to: 5.0 }], |[back_hitch_s]| {
        let (model_s, _) = seconds(published, 0, back_hitch_s, permille);
        (model_s / published.runs[1].elapsed_s).ln().powi(2)
    });
    back_hitch_s
}

#[test]
fn one_dd_is_worse_than_none_and_two_are_better() {
    let published = published();
    let back_hitch_s = fitted_back_hitch_s(&published, ASSUMED.permille);
    let around = Surroundings { processors: 1, drive_ratio: Ratio::NONE };
    let bare = programs(&published, 0, ASSUMED.permille);
    let null = run(&bare, around, None, ASSUMED.input_bytes).unwrap();
    let mut rows = vec![Row {
        name: published.runs[0].pipeline.clone(),
        role: Role::Fitted,
        measured_s: published.runs[0].elapsed_s,
        model_s: null.elapsed_ns as f64 / 1e9,
        note: String::new(),
    }];
    for dds in 0..=2 {
        let measured = &published.runs[dds + 1];
        let (model_s, stops) = seconds(&published, dds, back_hitch_s, ASSUMED.permille);
        rows.push(Row {
            name: measured.pipeline.clone(),
            role: if dds == 0 { Role::Fitted } else { Role::Predicted },
            measured_s: measured.elapsed_s,
            model_s,
            note: format!("{stops} back-hitches"),
        });
    }
    let [direct, one, two] = [1, 2, 3].map(|row: usize| rows[row].model_s);
    let cut =
        |direct: f64, two: f64| 100.0 * (direct - two) / (direct - published.conclusions.bound_s);
    let lines = [
        format!("fitted: {back_hitch_s:.2} s for a back-hitch"),
        format!(
            "cut of the tape's overhead by two dd: {:.0} %, published {:.0} %",
            cut(direct, two),
            published.conclusions.tape_overhead_cut_percent
        ),
    ];
    show("double buffering with dd", &lines, &rows);
    assert!(rows.iter().all(Row::fits), "{rows:?}");
    assert!(two < direct && direct < one);
    let off = cut(direct, two) - published.conclusions.tape_overhead_cut_percent;
    assert!(off.abs() < 8.0, "{off} points");
}
