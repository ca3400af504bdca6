//! Recognises the coding of a stream by its first bytes.

use super::error::Coding;
use super::zstd_frame;

/// How a stream is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFormat {
    /// Nothing known: a plain tar archive, or not an archive at all (the tar decoder finds out).
    Plain,
    /// A coding that Takeup reads.
    Compressed(Coding),
    /// A format that another program opens.
    Other(OtherFormat),
}

/// A format that is recognised but not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherFormat {
    /// Its usual name.
    pub name: &'static str,
    /// The command that turns standard input into the archive on standard output.
    pub command: &'static str,
}

impl std::fmt::Display for OtherFormat {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

const fn other(name: &'static str, command: &'static str) -> OtherFormat {
    OtherFormat { name, command }
}

/// Magic numbers at the start of a stream, after each format's own documentation.
const OTHERS: &[(&[u8], OtherFormat)] = &[
    (b"\xfd7zXZ\0", other("xz", "xz -dc")),
    (b"BZh", other("bzip2", "bzip2 -dc")),
    (b"\x04\x22\x4d\x18", other("lz4", "lz4 -dc")),
    (b"\x02\x21\x4c\x18", other("lz4 (legacy)", "lz4 -dc")),
    (b"\x1f\x9d", other("compress (.Z)", "gzip -dc")),
    (b"\x1f\xa0", other("compress -H (lzh)", "gzip -dc")),
    (b"\x1f\x1e", other("pack (.z)", "gzip -dc")),
    (b"LZIP", other("lzip", "lzip -dc")),
    (b"\x89LZO\0\r\n\x1a\n", other("lzop", "lzop -dc")),
    (b"LRZI", other("lrzip", "lrzip -d -o -")),
    (b"\x5d\0\0", other("lzma", "xz --format=lzma -dc")),
    (b"\x22\xb5\x2f\xfd", other("zstd before 0.8", "zstd -dc")),
    (b"\x23\xb5\x2f\xfd", other("zstd before 0.8", "zstd -dc")),
    (b"\x24\xb5\x2f\xfd", other("zstd before 0.8", "zstd -dc")),
    (b"\x25\xb5\x2f\xfd", other("zstd before 0.8", "zstd -dc")),
    (b"\x26\xb5\x2f\xfd", other("zstd before 0.8", "zstd -dc")),
    (b"\x27\xb5\x2f\xfd", other("zstd before 0.8", "zstd -dc")),
];

impl StreamFormat {
    /// Bytes of a stream that are enough for `detect`; fewer are fine if the stream is shorter.
    pub const PREFIX_BYTES: usize = 512;

    /// Recognises the format of the stream that starts with `prefix`. A header with tar's checksum
    /// takes precedence over magic numbers: a member may be named `BZh`.
    pub fn detect(prefix: &[u8]) -> StreamFormat {
        if has_tar_checksum(prefix) {
            return StreamFormat::Plain;
        }
        if prefix.starts_with(&[0x1f, 0x8b]) {
            return StreamFormat::Compressed(Coding::Gzip);
        }
        let magic = prefix.first_chunk::<4>().copied().unwrap_or_default();
        if zstd_frame::is_magic(magic) || zstd_frame::is_skippable_magic(magic) {
            return StreamFormat::Compressed(Coding::Zstd);
        }
        let found = OTHERS.iter().find(|(magic, _)| prefix.starts_with(magic));
        found.map_or(StreamFormat::Plain, |&(_, other)| StreamFormat::Other(other))
    }
}

/// Whether the prefix starts with a tar header: the checksum field holds, in octal, the sum of the
/// header's bytes, with the field itself counted as blanks.
fn has_tar_checksum(prefix: &[u8]) -> bool {
    let Some(header) = prefix.first_chunk::<512>() else { return false };
    let field = &header[148..156];
    let sum = header.iter().map(|&byte| u32::from(byte)).sum::<u32>()
        - field.iter().map(|&byte| u32::from(byte)).sum::<u32>()
        + 8 * u32::from(b' ');
    let digits = field.iter().skip_while(|&&byte| byte == b' ' || byte == 0);
    let digits = digits.take_while(|byte| (b'0'..=b'7').contains(byte));
    let (count, value) = digits
        .fold((0, 0u32), |(count, value), &digit| (count + 1, value * 8 + u32::from(digit - b'0')));
    count > 0 && value == sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(prefix: &[u8], expected: StreamFormat) {
        assert_eq!(StreamFormat::detect(prefix), expected);
    }

    #[test]
    fn magic_numbers_are_told_apart() {
        check(b"", StreamFormat::Plain);
        check(&[0; 512], StreamFormat::Plain);
        check(&[0x1f, 0x8b, 8, 0], StreamFormat::Compressed(Coding::Gzip));
        check(&[0x28, 0xb5, 0x2f, 0xfd], StreamFormat::Compressed(Coding::Zstd));
        check(&[0x5e, 0x2a, 0x4d, 0x18, 0, 0, 0, 0], StreamFormat::Compressed(Coding::Zstd));
        for (magic, other) in OTHERS {
            check(magic, StreamFormat::Other(*other));
        }
    }

    #[test]
    fn a_tar_header_comes_before_a_magic_number() {
        let mut header = [0u8; 512];
        header[..8].copy_from_slice(b"BZh/file");
        let sum = header.iter().map(|&byte| u32::from(byte)).sum::<u32>() + 8 * 32;
        check(&header, StreamFormat::Other(OTHERS[1].1));
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        check(&header, StreamFormat::Plain);
    }
}
