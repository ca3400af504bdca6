//! Tar archives against themselves, against GNU tar, bsdtar and Python, and against hostile bytes.

mod read_all;
mod round_trip;
