//! `cargo run -p bench --example slow_disk -- DIRECTORY [MILLISECONDS [GIB]]`: a file in DIRECTORY
//! whose reads take 5.5 ms each, until standard input ends. For trying `takeup bench read`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod disk;

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let place = PathBuf::from(arguments.next().unwrap());
    let milliseconds: f64 = arguments.next().map_or(5.5, |text| text.parse().unwrap());
    let gib: u64 = arguments.next().map_or(4, |text| text.parse().unwrap());
    let session = disk::mount(&place, gib << 30, Duration::from_secs_f64(milliseconds / 1e3));
    let session = session.unwrap();
    println!("{}", place.join(disk::NAME).display());
    let _ = std::io::stdin().read(&mut [0]);
    session.umount_and_join().unwrap();
}
