//! What a recorded call costs: `pread` of one byte of a file in the page cache, in turn with nobody
//! recording, with somebody else recorded, and recorded; the last two with the two sets of buffers
//! of a capture, and with one.
//!
//! `cargo run --release -p capture --example cost [ROUNDS]`, as root.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use capture::trace::{Recorder, RecorderOptions, TraceError, Tracefs, WantedEvent};

const CALLS: u32 = 200_000;
const EVENTS: &[WantedEvent] = &[
    WantedEvent::new("syscalls", "sys_enter_pread64", &["fd", "count", "pos"]),
    WantedEvent::new("syscalls", "sys_exit_pread64", &["ret"]),
    // Never called here: a capture has two sets of buffers, and each call passes both. Those in
    // front of these have one.
    WantedEvent::new("syscalls", "sys_enter_close", &["fd"]).urgent(),
    WantedEvent::new("syscalls", "sys_exit_close", &["ret"]).urgent(),
];

/// How many of them need one set of buffers.
const IN_ONE_SET: usize = 2;

/// ns for each call.
fn measure(file: &File) -> f64 {
    let mut byte = [0];
    let begun = Instant::now();
    for _ in 0..CALLS {
        // A file of one byte: the answer is the same each time.
        let _ = file.read_at(&mut byte, 0);
    }
    begun.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// The same while some threads are recorded and somebody reads what is recorded.
fn recorded(
    tracefs: &Tracefs,
    events: &[WantedEvent],
    threads: &[u32],
    file: &File,
) -> Result<(f64, u64), TraceError> {
    let options = RecorderOptions { events, everywhere: &[], threads, buffer_bytes: 64 << 20 };
    let mut recorder = Recorder::new(tracefs, &options)?;
    recorder.start()?;
    let done = &AtomicBool::new(false);
    let ns = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                recorder.look_ahead(&mut |_| {})?;
                recorder.read(usize::MAX, &mut |_| {})?;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            recorder.stop()?;
            recorder.look_ahead_at_rest(&mut |_| {})?;
            recorder.read_rest(usize::MAX, &mut |_| {})?;
            recorder.lost()
        });
        let ns = measure(file);
        done.store(true, Ordering::Relaxed);
        reader.join().map(|lost| lost.map(|lost| (ns, lost)))
    });
    ns.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(9), |it| it.parse())?;
    let mut file = tempfile::tempfile()?;
    file.write_all(&[1])?;
    let tracefs = Tracefs::open()?;
    let own = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get())?;
    let mut all = [const { Vec::new() }; 5];
    let mut lost = 0;
    for _ in 0..rounds.max(1) {
        all[0].push(measure(&file));
        // The first process does no such calls in the time that this takes.
        for (at, events, thread) in [
            (1, EVENTS, 1),
            (2, EVENTS, own),
            (3, &EVENTS[..IN_ONE_SET], 1),
            (4, &EVENTS[..IN_ONE_SET], own),
        ] {
            let (ns, lost_now) = recorded(&tracefs, events, &[thread], &file)?;
            all[at].push(ns);
            lost += lost_now;
        }
    }
    let mut out = std::io::stdout();
    let names = [
        "nobody recorded",
        "another recorded",
        "recorded",
        "another recorded, in one set",
        "recorded, in one set",
    ];
    for (name, values) in names.iter().zip(&mut all) {
        let middle = median(values);
        let (low, high) = (values[0], values[values.len() - 1]);
        writeln!(out, "{name:<28} {middle:>5.0} ns for each call ({low:.0} to {high:.0})")?;
    }
    writeln!(out, "{lost} events lost")?;
    Ok(())
}
