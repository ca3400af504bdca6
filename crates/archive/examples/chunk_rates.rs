//! Rates and sizes of chunked compression on one file: the measurement behind
//! `docs/design/compression.md`, so that it can be repeated.
//!
//! Each variant compresses the whole file chunk by chunk in one thread. The variants take turns for
//! the given number of rounds, so that a disturbance affects all of them alike. The median of the
//! processor time (not the wall time) is printed, which other work on the machine hardly changes.
//! Processor time is that of this thread, in ns. The output is a table without a judgement: compare
//! it yourself with the size of `zstd -3` or `pigz`.
//!
//! ```text
//! cargo run --release -p archive --example chunk_rates -- FILE ROUNDS VARIANT...
//!     VARIANT   zstd:3                what the product does at level 3
//!               gzip:6:256k           the same for gzip, with another chunk size
//!               raw:3:4M,hlog=16      the library's own level with single parameters changed:
//!                                     wlog clog hlog slog mml tlen strat ldm sum
//!               deflate:5:1M          libdeflate's own level
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use archive::chunk::{ChunkCompressor, Compression};
use machine::counters::processor::thread_ns;
use zstd::zstd_safe::{CCtx, CParameter, Strategy, compress_bound};

/// Compresses one chunk and returns the length of the output.
type CompressChunk = Box<dyn FnMut(&[u8]) -> usize>;

struct Variant {
    name: String,
    chunk_bytes: usize,
    compress: CompressChunk,
    cpu_ns: Vec<u64>,
    output_bytes: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, rounds, variants @ ..] = arguments.as_slice() else {
        println!("usage: chunk_rates FILE ROUNDS VARIANT...");
        return;
    };
    let data = std::fs::read(file).unwrap();
    let rounds: usize = rounds.parse().unwrap();
    let mut variants: Vec<Variant> = variants.iter().map(|text| parse(text)).collect();
    for _ in 0..rounds {
        for variant in &mut variants {
            run(variant, &data);
        }
    }
    println!("{:>8} {:>8} {:>12} {:>7}  variant", "MB/s", "spread", "bytes", "ratio");
    for variant in &mut variants {
        variant.cpu_ns.sort_unstable();
        let ns = &variant.cpu_ns;
        let rate = |ns: u64| data.len() as f64 * 1000.0 / ns as f64;
        println!(
            "{:8.1} {:7.1}% {:12} {:7.3}  {}",
            rate(ns[ns.len() / 2]),
            100.0 * (ns[ns.len() - 1] - ns[0]) as f64 / ns[ns.len() / 2] as f64,
            variant.output_bytes,
            data.len() as f64 / variant.output_bytes as f64,
            variant.name
        );
    }
}

fn run(variant: &mut Variant, data: &[u8]) {
    let start = thread_ns();
    let compress = &mut variant.compress;
    variant.output_bytes = data.chunks(variant.chunk_bytes).map(compress).sum();
    variant.cpu_ns.push(thread_ns() - start);
}

fn parse(text: &str) -> Variant {
    let mut words = text.split(',');
    let mut head = words.next().unwrap().split(':');
    let (family, level) = (head.next().unwrap(), head.next().unwrap().parse::<i32>().unwrap());
    let chunk_bytes = head.next().map(size);
    let product = match family {
        "zstd" => Compression::Zstd { level },
        "gzip" => Compression::Gzip { level },
        _ => Compression::None,
    };
    let chunk_bytes = chunk_bytes.unwrap_or(product.chunk_bytes());
    let compress = match family {
        "zstd" | "gzip" => as_product(product),
        "raw" => raw_zstd(level, words.map(|word| word.split_once('=').unwrap())),
        "deflate" => raw_deflate(level),
        other => panic!("unknown family {other}"),
    };
    Variant { name: text.to_owned(), chunk_bytes, compress, cpu_ns: Vec::new(), output_bytes: 0 }
}

fn as_product(compression: Compression) -> CompressChunk {
    let mut compressor = ChunkCompressor::new(compression).unwrap();
    let mut out = Vec::new();
    Box::new(move |chunk| {
        compressor.compress(chunk, &mut out).unwrap();
        out.len()
    })
}

fn size(text: &str) -> usize {
    match text.split_at(text.len() - 1) {
        (number, "k") => number.parse::<usize>().unwrap() << 10,
        (number, "M") => number.parse::<usize>().unwrap() << 20,
        _ => text.parse().unwrap(),
    }
}

fn raw_zstd<'a>(level: i32, words: impl Iterator<Item = (&'a str, &'a str)>) -> CompressChunk {
    let mut context = CCtx::create();
    let mut set = |parameter| context.set_parameter(parameter).unwrap();
    set(CParameter::CompressionLevel(level));
    set(CParameter::ChecksumFlag(true));
    for (name, value) in words {
        let number = || value.parse::<u32>().unwrap();
        set(match name {
            "wlog" => CParameter::WindowLog(number()),
            "clog" => CParameter::ChainLog(number()),
            "hlog" => CParameter::HashLog(number()),
            "slog" => CParameter::SearchLog(number()),
            "mml" => CParameter::MinMatch(number()),
            "tlen" => CParameter::TargetLength(number()),
            "ldm" => CParameter::EnableLongDistanceMatching(value == "1"),
            "sum" => CParameter::ChecksumFlag(value == "1"),
            "strat" => CParameter::Strategy(match value {
                "fast" => Strategy::ZSTD_fast,
                "dfast" => Strategy::ZSTD_dfast,
                "greedy" => Strategy::ZSTD_greedy,
                "lazy" => Strategy::ZSTD_lazy,
                other => panic!("unknown strategy {other}"),
            }),
            other => panic!("unknown parameter {other}"),
        });
    }
    let mut out = Vec::new();
    Box::new(move |chunk| {
        out.clear();
        out.reserve(compress_bound(chunk.len()));
        context.compress2(&mut out, chunk).unwrap()
    })
}

fn raw_deflate(level: i32) -> CompressChunk {
    let level = libdeflater::CompressionLvl::new(level).unwrap();
    let mut compressor = libdeflater::Compressor::new(level);
    let mut out = Vec::new();
    Box::new(move |chunk| {
        out.resize(compressor.gzip_compress_bound(chunk.len()), 0);
        compressor.gzip_compress(chunk, &mut out).unwrap()
    })
}
