//! The cost of compression for a virtual drive: the estimate of how data compress, from all bytes
//! and from samples as in a real-time drive, and a medium file with unpacked and packed blocks.
//!
//! `cargo run --release -p sim --example compressibility_rate [FILE...]`; data are zeros, noise,
//! words, and the first 128 MiB of each FILE. The medium file is in `/dev/shm`.
#![allow(clippy::print_stdout)]

use std::fs::File;
use std::io::Read;

use device::tape::raw::RawTape;
use model::compressibility::Compressibility;
use sim::tape::pace::Compression;
use sim::tape::real_time::Sampled;
use sim::tape::{
    Cartridge, CartridgeSettings, OnClose, OpenDirection, OpenMode, Readiness, VirtualDrive,
};

const BYTES: usize = 128 << 20;

fn main() {
    let noise = testkit::samples::noise(0, BYTES);
    let words = b"the quick brown fox jumps over the lazy dog and then it rests a while ";
    let text: Vec<u8> = noise
        .iter()
        .flat_map(|byte| {
            let from = usize::from(*byte) % (words.len() - 6);
            words[from..from + 6].iter().copied()
        })
        .take(BYTES)
        .collect();
    let mut samples =
        vec![("zeros".into(), vec![0; BYTES]), ("noise".into(), noise), ("words".into(), text)];
    for path in std::env::args().skip(1) {
        let mut data = Vec::new();
        let file = File::open(&path).expect("the file can be opened");
        file.take(BYTES as u64).read_to_end(&mut data).expect("it can be read");
        samples.push((path, data));
    }
    for (name, data) in &samples {
        let mut whole = Compressibility::new();
        let (native, rate) = pass(data, |block| whole.add(block));
        let mut sampled = Sampled::new();
        let (estimate, sampled_rate) = pass(data, |block| u64::from(sampled.add(block)));
        let bytes = data.len() as f64;
        println!(
            "{name}: ratio {:.3} at {rate:.0} MB/s; sampled {:.3} at {sampled_rate:.0} MB/s",
            bytes / native as f64,
            bytes / estimate as f64,
        );
        for compression in [Compression::Off, Compression::On] {
            let (file_bytes, rate, read_rate) = through_a_medium_file(data, compression);
            println!(
                "    medium file, compression {compression:?}: {:.3} of the data, written at \
                 {rate:.0} MB/s, read at {read_rate:.0} MB/s",
                file_bytes as f64 / bytes
            );
        }
    }
}

/// Bytes of the medium file, and MB/s in and out.
fn through_a_medium_file(data: &[u8], compression: Compression) -> (u64, f64, f64) {
    let folder = tempfile::tempdir_in("/dev/shm").expect("there is room in /dev/shm");
    let path = folder.path().join("medium");
    let settings = CartridgeSettings { capacity_bytes: 1 << 40, ..CartridgeSettings::default() };
    let cartridge = Cartridge::in_file(&path, settings).expect("a medium file can be made");
    let drive = VirtualDrive::loaded(cartridge);
    drive.set_compression(compression);
    let mode = OpenMode {
        direction: OpenDirection::ReadWrite,
        readiness: Readiness::Needed,
        on_close: OnClose::Rewind,
    };
    let mut tape = drive.open_raw(mode).expect("the drive is free");
    let mut moved = 0;
    let (_, rate) = pass(data, |block| {
        moved += tape.write(block).expect("there is room");
        0
    });
    tape.close().expect("it gets to the medium");
    let mut tape = drive.open_raw(mode).expect("the drive is free");
    let mut buffer = vec![0; 1 << 20];
    let (_, read_rate) = pass(data, |_| {
        moved -= tape.read(&mut buffer).expect("it is there");
        0
    });
    assert_eq!(moved, 0);
    (path.metadata().expect("it is there").len(), rate, read_rate)
}

/// The sum of what `add` answers, and MB for each second of processor time, which other programs
/// change less than the time on the clock.
fn pass(data: &[u8], mut add: impl FnMut(&[u8]) -> u64) -> (u64, f64) {
    let begin = processor_seconds();
    let native = data.chunks(1 << 20).map(&mut add).sum();
    (native, data.len() as f64 / (processor_seconds() - begin) / 1e6)
}

fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
