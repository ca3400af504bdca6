//! Any bytes as a compressed stream: boundaries, chunks and streams have to agree with each other;
//! and as the end of a stream, with a seek table or a stored member.

use archive::chunk::seek_table::{SeekTableBuilder, SeekTableLookup, parse_seek_table};
use archive::chunk::{
    Boundary, BoundaryFinder, ChunkDecompressor, ChunkError, Coding, Input, StreamDecoder,
    StreamFormat, StreamState, gzip_member,
};
use archive::stream::StoredOffset;

const LIMIT_BYTES: usize = 1 << 16;

/// Checks one input.
pub fn check(input: &[u8]) {
    StreamFormat::detect(input);
    for coding in [Coding::Gzip, Coding::Zstd] {
        read(coding, input);
    }
    gzip_member::find_stored_member(input, input.len().saturating_sub(41));
    if let Ok(SeekTableLookup::Found(table)) = parse_seek_table(input) {
        let mut builder = SeekTableBuilder::new();
        for frame in &table.frames {
            builder
                .push(frame.compressed_bytes.into(), frame.content_bytes.into(), frame.checksum)
                .expect("what was read can be written");
        }
        // Two bits of the descriptor have no meaning, and an empty table no checksums.
        let written = builder.encode();
        assert_eq!(written.len(), table.table_bytes);
        let again = parse_seek_table(&written).expect("what was written can be read");
        assert_eq!(again, SeekTableLookup::Found(table));
    }
}

fn read(coding: Coding, stream: &[u8]) {
    let mut finder = BoundaryFinder::new(coding, LIMIT_BYTES);
    let mut decompressor = ChunkDecompressor::new();
    let mut content = Vec::new();
    let mut rest = stream;
    while let Ok(boundary) = finder.examine(rest, Input::Ended) {
        let passed_bytes = match boundary {
            Boundary::Chunk { compressed_bytes, content_bytes_max } => {
                let (chunk, offset_bytes) = (&rest[..compressed_bytes], finder.offset_bytes());
                let whole = decompressor
                    .decompress(coding, chunk, offset_bytes, content_bytes_max, &mut content)
                    .is_ok();
                assert!(!whole || content.len() <= content_bytes_max);
                if whole {
                    check_stream(coding, chunk, &content);
                }
                compressed_bytes
            }
            Boundary::Skippable { compressed_bytes } => compressed_bytes as usize,
            Boundary::Stream => {
                stream_one(coding, rest);
                return;
            }
            Boundary::NeedMore { .. } => panic!("the input has ended"),
            Boundary::Trailing | Boundary::End => return,
        };
        assert!(passed_bytes > 0);
        let Some(after) = rest.get(passed_bytes..) else { return };
        rest = after;
        finder.advance(passed_bytes as u64);
    }
}

/// What is accepted as a chunk gives the same content as a stream, or is refused there for a reason
/// that only streams have.
fn check_stream(coding: Coding, chunk: &[u8], content: &[u8]) {
    let streamed = stream_one(coding, chunk);
    match streamed.end {
        End::Complete => assert_eq!(streamed.content, content),
        // Only a stream needs a window.
        End::Refused(ChunkError::WindowTooLarge { .. }) => {}
        // See `ChunkDecompressor`: symbols that are reserved are no error there.
        End::Refused(ChunkError::Damaged { coding: Coding::Gzip, reason, .. })
            if reason == "deflate data makes no sense" =>
        {
            assert!(content.starts_with(&streamed.content));
        }
        End::Refused(error) => panic!("refused as a stream: {error}"),
        End::CutOff => panic!("a whole chunk does not end as a stream"),
    }
}

struct Streamed {
    content: Vec<u8>,
    end: End,
}

enum End {
    Complete,
    Refused(ChunkError),
    /// Cut off, or longer than a limit.
    CutOff,
}

/// One frame or member, through slices of odd sizes.
fn stream_one(coding: Coding, mut rest: &[u8]) -> Streamed {
    let mut decoder = StreamDecoder::new(coding, StoredOffset::START, 1 << 20);
    let mut content = Vec::new();
    let mut out = [0; 4099];
    loop {
        let step = match decoder.push(&rest[..rest.len().min(1021)], &mut out) {
            Ok(step) => step,
            Err(error) => return Streamed { content, end: End::Refused(error) },
        };
        rest = &rest[step.consumed_bytes..];
        content.extend_from_slice(&out[..step.produced_bytes]);
        if step.state == StreamState::FrameEnded {
            return Streamed { content, end: End::Complete };
        }
        let used_up = rest.is_empty() && step.produced_bytes < out.len();
        if used_up || content.len() > 1 << 20 {
            return Streamed { content, end: End::CutOff };
        }
    }
}
