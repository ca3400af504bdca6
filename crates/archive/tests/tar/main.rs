//! Tests tar archives against themselves, GNU tar, bsdtar and Python, and with hostile bytes.

mod damage;
mod global_limit;
mod header_fixtures;
mod limits;
mod others_read_by_us;
mod ours_read_by_others;
mod read_all;
mod released;
mod round_trip;
mod tools;
