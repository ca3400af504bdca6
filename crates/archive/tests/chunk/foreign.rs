//! Streams that other programs wrote.

use archive::chunk::{ChunkError, Coding, StreamDecoder};
use archive::stream::StoredOffset;

use crate::samples::{decode, mixed, pipe_through};

#[track_caller]
fn check(coding: Coding, stream: &[u8], expected: &[u8], chunks: usize, streamed: usize) {
    let decoded = decode(coding, stream, 8 << 20).expect("decodes");
    assert!(decoded.content == expected);
    assert_eq!((decoded.chunks, decoded.streamed), (chunks, streamed));
    assert_eq!(decoded.trailing_offset_bytes, None);
}

#[test]
fn one_frame_of_zstd_is_a_chunk_or_streamed() {
    let data = mixed(3 << 20, 10);
    for arguments in [&["-c", "-3"][..], &["-c", "-T2", "-19"], &["-c", "--no-check", "-1"]] {
        let stream = pipe_through("zstd", &[&["-q"], arguments].concat(), &data);
        check(Coding::Zstd, &stream, &data, 1, 0);
    }
    let large = mixed(20 << 20, 11);
    let stream = pipe_through("zstd", &["-qc", "-1"], &large);
    check(Coding::Zstd, &stream, &large, 0, 1);
    // Content size in the header: the walk does not even start.
    let size = format!("--stream-size={}", large.len());
    let stream = pipe_through("zstd", &["-qc", "-1", &size], &large);
    check(Coding::Zstd, &stream, &large, 0, 1);
}

#[test]
fn many_frames_of_zstd_are_chunks() {
    let data = mixed(3 << 20, 12);
    let frames = data.chunks(1 << 20).map(|piece| pipe_through("zstd", &["-qc"], piece));
    let stream = frames.collect::<Vec<_>>().concat();
    check(Coding::Zstd, &stream, &data, 3, 0);
    // pzstd puts a skippable frame in front of every frame.
    let stream = pipe_through("pzstd", &["-q", "-c", "-p", "2"], &data);
    let decoded = decode(Coding::Zstd, &stream, 8 << 20).expect("decodes");
    assert!(decoded.content == data && decoded.chunks >= 1 && decoded.streamed == 0);
}

#[test]
fn long_windows_have_a_limit() {
    let data = mixed(9 << 20, 13);
    let stream = pipe_through("zstd", &["-qc", "--long=27"], &data);
    check(Coding::Zstd, &stream, &data, 0, 1);
    let stream = pipe_through("zstd", &["-qc", "--ultra", "--long=30"], &data);
    assert_eq!(
        decode(Coding::Zstd, &stream, 8 << 20).expect_err("over the limit").to_string(),
        "zstd frame at byte 0 of the compressed archive needs 1073741824 bytes of memory and the \
         limit is 134217728"
    );
    let mut decoder = StreamDecoder::new(Coding::Zstd, StoredOffset::START, 1 << 30);
    let mut out = vec![0; data.len() + 1];
    let step = decoder.push(&stream, &mut out).expect("within the limit");
    assert!(step.produced_bytes > 0 && out[..step.produced_bytes] == data[..step.produced_bytes]);
}

#[test]
fn members_of_gzip_and_pigz_are_streamed() {
    let data = mixed(3 << 20, 14);
    for (program, arguments) in [("gzip", &["-c"][..]), ("gzip", &["-1c"]), ("pigz", &["-c"])] {
        let stream = pipe_through(program, arguments, &data);
        check(Coding::Gzip, &stream, &data, 0, 1);
        let twice = [&stream[..], &stream].concat();
        check(Coding::Gzip, &twice, &[&data[..], &data].concat(), 0, 2);
    }
}

#[test]
fn a_member_with_every_field_in_its_header_is_read() {
    let data = mixed(10_000, 15);
    let plain = pipe_through("gzip", &["-nc"], &data);
    assert_eq!(plain[3], 0, "no fields");
    // Text, header checksum, extra field, name, comment (RFC 1952, 2.3.1).
    let mut stream = vec![0x1f, 0x8b, 8, 0x1f, 1, 2, 3, 4, 0, 3, 5, 0];
    stream.extend_from_slice(b"abcdename\0comment\0\x12\x34");
    stream.extend_from_slice(&plain[10..]);
    check(Coding::Gzip, &stream, &data, 0, 1);
}

#[test]
fn what_needs_a_dictionary_says_so() {
    // Frame header with a dictionary id of one byte, single segment, content of one byte.
    let stream = [0x28, 0xb5, 0x2f, 0xfd, 0x21, 77, 1, 9, 0, 0, 5];
    let expected =
        ChunkError::DictionaryNeeded { offset_bytes: StoredOffset::START, dictionary_id: 77 };
    assert_eq!(decode(Coding::Zstd, &stream, 1 << 20), Err(expected.clone()));
    let mut decoder = StreamDecoder::new(Coding::Zstd, StoredOffset::START, 1 << 20);
    assert_eq!(decoder.push(&stream, &mut [0; 9]), Err(expected));
}
