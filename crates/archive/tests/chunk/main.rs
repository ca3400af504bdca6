//! Tests chunks and the index against models of themselves, against `zstd`, `gzip`, `pigz` and
//! `bsdtar`, and against damage at every byte.

mod boundaries;
mod chunk_sizes;
mod damage;
mod foreign;
mod index;
mod index_damage;
mod round_trip;
mod samples;
mod seek_table;
mod trailer;
