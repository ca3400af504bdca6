//! Block size with tar and dd on LTO-5 and LTO-7.
//!
//! tar and dd are one thread that reads a block and writes it. Free parameters are the time of a
//! command and the rate of the source; everything about the drive is as in the table of
//! generations.

use std::sync::LazyLock;

use model::program::{Copy, Ratio, coalesced, copy};
use model::tape::TapeModel;
use model::tape::generation::Generation;
use model::tape::parameters::{Known, TapeParameters};
use serde::Deserialize;

use super::fit::{Range, fit};
use super::{Role, Row, TOLERANCE, show};

#[derive(Deserialize)]
struct Published {
    series: Vec<Series>,
    conclusions: Conclusions,
}

#[derive(Clone, Deserialize)]
struct Series {
    device: String,
    tool: String,
    data: String,
    bytes: Option<u64>,
    bytes_approx: Option<u64>,
    rows: Vec<Measured>,
}

#[derive(Clone, Copy, Deserialize)]
struct Measured {
    block_bytes: u64,
    seconds: f64,
}

#[derive(Deserialize)]
struct Conclusions {
    incompressible_knee_bytes: u64,
    compressible_still_rising_at_bytes: u64,
    speedup_tar_lto5: f64,
    speedup_tar_lto7: f64,
}

/// gzip reaches 5.5:1 on the database file with a window of 32 KiB; a drive, whose window is 1 KiB,
/// reaches less. No row depends on it as long as it is over 1.6, because the tape is not the limit
/// then.
const DATABASE_RATIO: f64 = 2.5;
/// The image is as incompressible as the files.
const NO_RATIO: f64 = 1.0;
/// Data of one step of the simulation at least.
const STEP_BYTES: u64 = 1 << 20;

/// Rows of the image and of the database that are fitted.
const IMAGE_FITTED: [u64; 2] = [512, 32768];
const DATABASE_FITTED: [u64; 3] = [32768, 131_072, 524_288];

/// The fits take seconds, and several tests need them.
static IMAGE_HOST: LazyLock<Host> = LazyLock::new(|| fit_host(&series(2), NO_RATIO, &IMAGE_FITTED));
static DATABASE_HOST: LazyLock<Host> =
    LazyLock::new(|| fit_host(&series(3), DATABASE_RATIO, &DATABASE_FITTED));

const OVERHEAD_NS: Range = Range { from: 1e3, to: 1e6 };
const SOURCE_RATE: Range = Range { from: 5e7, to: 5e9 };

/// What is fitted.
#[derive(Clone, Copy, Debug)]
struct Host {
    overhead_ns: f64,
    source_bytes_per_second: f64,
}

fn published() -> Published {
    toml::from_str(include_str!("tape-block-size.toml")).unwrap()
}

fn series(number: usize) -> Series {
    published().series[number].clone()
}

impl Series {
    fn total_bytes(&self) -> u64 {
        self.bytes.or(self.bytes_approx).unwrap()
    }

    fn drive(&self) -> TapeParameters {
        TapeParameters::of(Generation::of_product(&self.device).unwrap())
    }

    fn row(&self, block_bytes: u64) -> Measured {
        *self.rows.iter().find(|row| row.block_bytes == block_bytes).unwrap()
    }

    fn title(&self) -> String {
        format!("{}, {}, {}", self.tool, self.device, self.data)
    }
}

/// Seconds and back-hitches of a run in the model.
fn model(
    series: &Series,
    drive: TapeParameters,
    host: Host,
    block_bytes: u64,
    ratio: f64,
) -> (f64, u64) {
    let overhead = Known::fitted(host.overhead_ns as u64);
    let drive = TapeParameters { command_overhead_ns: overhead, ..drive };
    let (drive, step_bytes) = coalesced(&drive, block_bytes, STEP_BYTES.div_ceil(block_bytes));
    let mut tape = TapeModel::new(drive);
    let program = Copy {
        block_bytes: step_bytes,
        source_bytes_per_second: host.source_bytes_per_second as u64,
        ratio: Ratio::of(ratio),
    };
    let run = copy(&mut tape, program, series.total_bytes());
    (run.elapsed_ns as f64 / 1e9, tape.counters().back_hitches)
}

fn fit_host(series: &Series, ratio: f64, fitted: &[u64]) -> Host {
    let [overhead_ns, source_bytes_per_second] =
        fit([OVERHEAD_NS, SOURCE_RATE], |[overhead, rate]| {
            let host = Host { overhead_ns: overhead, source_bytes_per_second: rate };
            let off = fitted.iter().map(|block_bytes| {
                let (seconds, _) = model(series, series.drive(), host, *block_bytes, ratio);
                (seconds / series.row(*block_bytes).seconds).ln().powi(2)
            });
            off.sum()
        });
    Host { overhead_ns, source_bytes_per_second }
}

fn rows(series: &Series, host: Host, ratio: f64, fitted: &[u64]) -> Vec<Row> {
    let row = |measured: &Measured| {
        let (model_s, stops) = model(series, series.drive(), host, measured.block_bytes, ratio);
        let is_fitted = fitted.contains(&measured.block_bytes);
        Row {
            name: format!("{} B", measured.block_bytes),
            role: if is_fitted { Role::Fitted } else { Role::Predicted },
            measured_s: measured.seconds,
            model_s,
            note: if stops == 0 { String::new() } else { format!("{stops} back-hitches") },
        }
    };
    series.rows.iter().map(row).collect()
}

fn host_line(host: Host) -> String {
    let (overhead_us, rate) = (host.overhead_ns / 1e3, host.source_bytes_per_second / 1e6);
    format!("fitted: {overhead_us:.1} us for a command, the source reads at {rate:.0} MB/s")
}

/// Prints a series, and returns its rows.
fn check(number: usize, ratio: f64, host: Host, fitted: &[u64]) -> Vec<Row> {
    let series = series(number);
    let rows = rows(&series, host, ratio, fitted);
    show(&series.title(), &[host_line(host)], &rows);
    rows
}

/// tar has two rows. The smaller block gives the time of a command, with the source as fast as dd's
/// image; the larger is predicted.
fn check_tar(number: usize, speedup: f64) {
    let series = series(number);
    let image = *IMAGE_HOST;
    let fitted = [10240];
    let [overhead_ns] = fit([OVERHEAD_NS], |[overhead_ns]| {
        let host = Host { overhead_ns, ..image };
        let (seconds, _) = model(&series, series.drive(), host, 10240, NO_RATIO);
        (seconds / series.row(10240).seconds).ln().powi(2)
    });
    let host = Host { overhead_ns, ..image };
    let rows = rows(&series, host, NO_RATIO, &fitted);
    show(&series.title(), &[host_line(host)], &rows);
    assert!(rows.iter().all(Row::fits), "{rows:?}");
    let predicted = rows[0].model_s / rows[1].model_s;
    assert!((predicted / speedup - 1.0).abs() < TOLERANCE, "speed-up {predicted}");
}

#[test]
fn tar_on_lto5() {
    check_tar(0, published().conclusions.speedup_tar_lto5);
}

#[test]
fn tar_on_lto7() {
    check_tar(1, published().conclusions.speedup_tar_lto7);
}

/// The smallest block size that is within 3 % of the best.
fn knee_bytes(series: &Series, host: Host, ratio: f64) -> u64 {
    let sizes: Vec<u64> = (14..=21).map(|shift| 1 << shift).collect();
    let seconds = |size: u64| model(series, series.drive(), host, size, ratio).0;
    let best = sizes.iter().map(|size| seconds(*size)).fold(f64::INFINITY, f64::min);
    *sizes.iter().find(|size| seconds(**size) <= best * 1.03).unwrap()
}

/// 16 KiB is the row that does not fit; the tests below narrow down its cause.
#[test]
fn dd_of_an_image_on_lto7() {
    let host = *IMAGE_HOST;
    let rows = check(2, NO_RATIO, host, &IMAGE_FITTED);
    let misfits: Vec<_> = rows.iter().filter(|row| !row.fits()).collect();
    assert_eq!(misfits.len(), 1, "{misfits:?}");
    assert_eq!(misfits[0].name, "16384 B");
    let knee = knee_bytes(&series(2), host, NO_RATIO);
    assert_eq!(knee, published().conclusions.incompressible_knee_bytes);
}

#[test]
fn dd_of_a_database_on_lto7() {
    let host = *DATABASE_HOST;
    let rows = check(3, DATABASE_RATIO, host, &DATABASE_FITTED);
    let misfits: Vec<_> = rows.iter().filter(|row| !row.fits()).collect();
    assert_eq!(misfits.len(), 1, "{misfits:?}");
    assert_eq!(misfits[0].name, "16384 B");
    let series = series(3);
    let rising = published().conclusions.compressible_still_rising_at_bytes;
    let seconds = |size| model(&series, series.drive(), host, size, DATABASE_RATIO).0;
    assert!(seconds(rising) < seconds(rising / 2) * 0.99);
    assert!(knee_bytes(&series, host, DATABASE_RATIO) > 131_072);
}

/// The drive with this much buffer, which holds the host for the whole of each stop.
fn held(mut drive: TapeParameters, buffer_bytes: f64) -> TapeParameters {
    drive.run_up_ns = drive.back_hitch_ns;
    drive.back_hitch_ns = Known::given(0);
    drive.buffer_bytes = Known::fitted(buffer_bytes as u64);
    drive
}

/// Is there one cause for both rows? 16 KiB was the first of the sensible sizes in both series, so
/// both may have been read from a disk and not from memory, and have met the same held drive. The
/// rate of that disk and the buffer are two parameters for two rows, and still do not reach them. A
/// disk that is slow enough to bring the image under the lowest step makes the row of the database
/// 11 % too long without a single stop, and stops that cost the image half of its time cost the
/// database more.
#[test]
fn no_common_cause_for_16_kib() {
    let (image, database) = (series(2), series(3));
    let off = |[disk, buffer]: [f64; 2]| {
        let row = |series: &Series, host: Host, ratio| {
            let byte_s = 1.0 / host.source_bytes_per_second + 1.0 / disk;
            let host = Host { source_bytes_per_second: 1.0 / byte_s, ..host };
            let drive = held(series.drive(), buffer);
            model(series, drive, host, 16384, ratio).0 / series.row(16384).seconds
        };
        [row(&image, *IMAGE_HOST, NO_RATIO), row(&database, *DATABASE_HOST, DATABASE_RATIO)]
    };
    let ranges = [Range { from: 5e7, to: 2e9 }, Range { from: 1e7, to: 8e8 }];
    let best = fit(ranges, |place| off(place).iter().map(|off| off.ln().powi(2)).sum());
    let [image_off, database_off] = off(best).map(|off| (off - 1.0) * 100.0);
    println!(
        "one disk and one drive for both rows of 16 KiB: at best {:.0} MB/s and {:.0} MB, which \
         is {image_off:+.0} % for the image and {database_off:+.0} % for the database\n",
        best[0] / 1e6,
        best[1] / 1e6
    );
    assert!(image_off.abs().max(database_off.abs()) > TOLERANCE * 100.0);
}

/// Why 16 KiB does not fit, in numbers. The same drive accepted blocks of 10 KiB from tar in a
/// third of the time, so a command of 16 KiB does not take that long. A rate below the lowest step
/// makes a drive stop, but a stop of 2.5 s does not hold the host as long as the buffer has room.
/// So the question is: if the drive held the host for the whole of each stop, after how many bytes
/// would it have to stop to lose the time that was lost, and how would that change the other rows?
#[test]
fn what_16_kib_would_need() {
    let database = series(3);
    let host = *DATABASE_HOST;
    let measured_s = database.row(16384).seconds;
    let held = |buffer: f64| held(database.drive(), buffer);
    let range = Range { from: 2e7, to: 1e9 };
    let [buffer] = fit([range], |[buffer]| {
        let (seconds, _) = model(&database, held(buffer), host, 16384, DATABASE_RATIO);
        (seconds / measured_s).ln().powi(2)
    });
    let row = |measured: &Measured| {
        let (model_s, stops) =
            model(&database, held(buffer), host, measured.block_bytes, DATABASE_RATIO);
        Row {
            name: format!("{} B", measured.block_bytes),
            role: if measured.block_bytes == 16384 { Role::Fitted } else { Role::Predicted },
            measured_s: measured.seconds,
            model_s,
            note: format!("{stops} back-hitches"),
        }
    };
    let rows: Vec<Row> = database.rows.iter().map(row).collect();
    let line = format!(
        "what if: the drive holds the host through each stop and restarts on {:.0} MB",
        buffer / 1e6
    );
    show("the database file once more", &[line], &rows);
    // With one more parameter the row fits without harm to the others: only at 16 KiB is the native
    // rate below the lowest step.
    assert!(rows.iter().all(Row::fits), "{rows:?}");
    assert!(rows[1..].iter().all(|row| row.note == "0 back-hitches"), "{rows:?}");
    // The image does not compress: at 16 KiB its rate is above the lowest step, and no drive stops.
    let image = series(2);
    let host = *IMAGE_HOST;
    let (seconds, stops) = model(&image, held(buffer), host, 16384, NO_RATIO);
    let rate = image.total_bytes() as f64 / seconds;
    assert!(rate > image.drive().lowest_bytes_per_second() as f64 && stops == 0, "{rate} {stops}");
    // The host rate with which that drive would produce the row.
    let [overhead_ns] = fit([OVERHEAD_NS], |[overhead_ns]| {
        let slower = Host { overhead_ns, ..host };
        let (seconds, _) = model(&image, held(buffer), slower, 16384, NO_RATIO);
        (seconds / image.row(16384).seconds).ln().powi(2)
    });
    let host_bytes_per_second = image.drive().host_bytes_per_second.value as f64;
    let byte_ns = 1e9 / host.source_bytes_per_second + 1e9 / host_bytes_per_second;
    let slower_rate = 16384.0 * 1e3 / (overhead_ns + 16384.0 * byte_ns);
    println!("the image at 16 KiB: {slower_rate:.0} MB/s of the host would do on the held drive\n");
    assert!(slower_rate * 1e6 < image.drive().lowest_bytes_per_second() as f64);
}
