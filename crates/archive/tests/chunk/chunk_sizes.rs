//! The chunk size of each level, which is part of the format: `docs/format.md` has the table.

use archive::chunk::{CHUNK_BYTES_MAX, Compression, GZIP_LEVELS, ZSTD_LEVELS};

const MIB: usize = 1 << 20;

#[test]
fn a_level_has_the_chunk_size_that_the_format_gives_it() {
    for level in ZSTD_LEVELS {
        let expected = match level {
            ..=12 => 8 * MIB,
            13..=19 => 32 * MIB,
            20.. => 64 * MIB,
        };
        assert_eq!(Compression::Zstd { level }.chunk_bytes(), expected, "zstd:{level}");
    }
    for level in GZIP_LEVELS {
        assert_eq!(Compression::Gzip { level }.chunk_bytes(), MIB, "gzip:{level}");
    }
    assert_eq!(Compression::None.chunk_bytes(), MIB);
    assert_eq!(CHUNK_BYTES_MAX, 64 * MIB);
}
