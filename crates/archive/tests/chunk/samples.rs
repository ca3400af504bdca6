//! Data to compress, compressed streams, and the programs that make and read them.

use std::io::Write;
use std::process::{Command, Stdio};

use archive::chunk::{
    Boundary, BoundaryFinder, ChunkCompressor, ChunkDecompressor, ChunkError, Coding, Compression,
    Input, StreamDecoder, StreamState,
};
use archive::stream::StoredOffset;

/// Numbered lines with some noise, then noise alone, then zeros: `length_bytes` of them.
pub fn mixed(length_bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = SplitMix(seed);
    let mut out = Vec::with_capacity(length_bytes + 64);
    while out.len() < length_bytes / 2 {
        let number = random.next() as u32;
        writeln!(out, "line {number} says {} times nothing", number % 7).expect("to memory");
    }
    while out.len() < length_bytes / 4 * 3 {
        out.extend_from_slice(&random.next().to_le_bytes());
    }
    out.resize(length_bytes, 0);
    out
}

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

pub fn coding_of(compression: Compression) -> Coding {
    match compression {
        Compression::Zstd { .. } => Coding::Zstd,
        Compression::Gzip { .. } => Coding::Gzip,
        Compression::None => panic!("nothing to decode"),
    }
}

/// `data` compressed in chunks of `chunk_bytes`: the chunks one after the other.
pub fn compress(compression: Compression, data: &[u8], chunk_bytes: usize) -> Vec<Vec<u8>> {
    let mut compressor = ChunkCompressor::new(compression).expect("a valid level");
    let compress = |piece: &[u8]| {
        let mut chunk = Vec::new();
        compressor.compress(piece, &mut chunk).expect("compresses");
        chunk
    };
    data.chunks(chunk_bytes).map(compress).collect()
}

/// What reading a stream found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    pub content: Vec<u8>,
    /// Number of chunks whose end was found in advance, and of those that were streamed.
    pub chunks: usize,
    pub streamed: usize,
    /// Offset of the first bytes that are not a frame.
    pub trailing_offset_bytes: Option<u64>,
}

/// Reads a whole stream as a reader should: by chunks if their ends are known, otherwise through
/// the stream decoder.
pub fn decode(coding: Coding, stream: &[u8], limit_bytes: usize) -> Result<Decoded, ChunkError> {
    let mut finder = BoundaryFinder::new(coding, limit_bytes);
    let mut decompressor = ChunkDecompressor::new();
    let mut decoded = Decoded::default();
    let mut content = Vec::new();
    let mut at = 0;
    let mut visible_bytes = 0;
    loop {
        // The prefix grows only as far as requested.
        let prefix = &stream[at..stream.len().min(at + visible_bytes)];
        let all_visible = at + prefix.len() == stream.len();
        let input = if all_visible { Input::Ended } else { Input::MoreMayFollow };
        match finder.examine(prefix, input)? {
            Boundary::NeedMore { prefix_bytes } => {
                assert!(prefix_bytes > prefix.len() && prefix_bytes <= limit_bytes);
                visible_bytes = prefix_bytes;
            }
            Boundary::Chunk { compressed_bytes, content_bytes_max } => {
                let chunk = &prefix[..compressed_bytes];
                let offset_bytes = finder.offset_bytes();
                decompressor.decompress(
                    coding,
                    chunk,
                    offset_bytes,
                    content_bytes_max,
                    &mut content,
                )?;
                decoded.content.extend_from_slice(&content);
                decoded.chunks += 1;
                at += compressed_bytes;
                finder.advance(compressed_bytes as u64);
            }
            Boundary::Skippable { compressed_bytes } => {
                let end = at as u64 + compressed_bytes;
                if end > stream.len() as u64 {
                    let (offset_bytes, end_bytes) = (at as u64, stream.len() as u64);
                    return Err(ChunkError::Truncated {
                        coding,
                        offset_bytes: StoredOffset::new(offset_bytes),
                        end_bytes: StoredOffset::new(end_bytes),
                    });
                }
                at = end as usize;
                finder.advance(compressed_bytes);
            }
            Boundary::Stream => {
                let rest = &stream[at..];
                let consumed = stream_one(coding, rest, at as u64, 1 << 14, &mut decoded.content)?;
                decoded.streamed += 1;
                at += consumed;
                finder.advance(consumed as u64);
            }
            Boundary::Trailing => {
                decoded.trailing_offset_bytes = Some(finder.offset_bytes().bytes());
                return Ok(decoded);
            }
            Boundary::End => return Ok(decoded),
        }
    }
}

/// Streams one frame or member in slices of `slice_bytes`. Returns the number of compressed bytes.
pub fn stream_one(
    coding: Coding,
    stream: &[u8],
    offset_bytes: u64,
    slice_bytes: usize,
    content: &mut Vec<u8>,
) -> Result<usize, ChunkError> {
    let mut decoder = StreamDecoder::new(
        coding,
        StoredOffset::new(offset_bytes),
        StreamDecoder::WINDOW_BYTES_DEFAULT,
    );
    let mut out = vec![0; slice_bytes + slice_bytes / 3];
    let mut at = 0;
    loop {
        let input = &stream[at..stream.len().min(at + slice_bytes)];
        let step = decoder.push(input, &mut out)?;
        at += step.consumed_bytes;
        content.extend_from_slice(&out[..step.produced_bytes]);
        assert_eq!(decoder.offset_bytes(), StoredOffset::new(offset_bytes + at as u64));
        if step.state == StreamState::FrameEnded {
            decoder.finish()?;
            return Ok(at);
        }
        if at == stream.len() && step.produced_bytes < out.len() {
            decoder.finish()?;
            panic!("the decoder is between frames and did not say so");
        }
    }
}

/// Runs a program with `input` on standard input and returns its standard output. It has to succeed
/// and to print nothing on standard error.
pub fn pipe_through(program: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("this test needs the program {program}: {error}"));
    let mut stdin = child.stdin.take().expect("a pipe was asked for");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().expect("the program ends")
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{program} {arguments:?}: {errors}");
    output.stdout
}
