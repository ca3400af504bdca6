//! The compression of an archive when `--compress` is not given: by the name of the target.

use std::ffi::OsStr;
use std::path::Path;

use archive::chunk::Compression;
use runs::destination::Destination;

use crate::failure::Failure;

/// The chosen compression.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// How the archive is compressed.
    pub(crate) compression: Compression,
    /// A sentence for when the name of the target stands for another compression.
    pub(crate) contradiction: Option<String>,
}

/// The compression that the end of a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// A method that Takeup writes.
    Known(&'static str),
    /// A method that Takeup does not write.
    Unknown(&'static str),
    /// No compression.
    Nothing,
}

/// Ends of names as in `tar -a`, and the compression that they stand for.
const ENDS: [(&str, Named); 19] = [
    (".zst", Named::Known("zstd")),
    (".tzst", Named::Known("zstd")),
    (".zstd", Named::Known("zstd")),
    (".gz", Named::Known("gzip")),
    (".tgz", Named::Known("gzip")),
    (".taz", Named::Known("gzip")),
    (".xz", Named::Unknown("xz")),
    (".txz", Named::Unknown("xz")),
    (".lzma", Named::Unknown("lzma")),
    (".tlz", Named::Unknown("lzma")),
    (".bz2", Named::Unknown("bzip2")),
    (".tbz", Named::Unknown("bzip2")),
    (".tbz2", Named::Unknown("bzip2")),
    (".lz4", Named::Unknown("lz4")),
    (".lzo", Named::Unknown("lzop")),
    (".lz", Named::Unknown("lzip")),
    (".br", Named::Unknown("brotli")),
    (".zip", Named::Unknown("zip")),
    (".7z", Named::Unknown("7z")),
];

fn named(name: &OsStr) -> Named {
    let name = name.to_string_lossy().to_lowercase();
    let end = ENDS.iter().find(|(end, _)| name.len() > end.len() && name.ends_with(end));
    end.map_or(Named::Nothing, |(_, named)| *named)
}

/// Chooses the requested compression, else that of the target's name.
///
/// # Errors
/// When the name stands for a compression that Takeup does not write.
pub(crate) fn choose(asked: Option<Compression>, to: &Destination) -> Result<Chosen, Failure> {
    let name = match to {
        // The name of a device or pipe does not stand for a compression.
        Destination::Path(path) if path != "-" && is_file_or_nothing(Path::new(path)) => path,
        _ => OsStr::new(""),
    };
    let shown = Path::new(name).display();
    let Some(compression) = asked else {
        return match named(name) {
            Named::Known(method) => {
                let compression = method.parse().map_err(|error| Failure::new(&error, None))?;
                Ok(Chosen { compression, contradiction: None })
            }
            Named::Unknown(method) => Err(Failure::of(
                format!("{shown}: takeup cannot write {method}, only zstd and gzip"),
                Some(
                    "end the name in .tar.zst or .tar.gz; `--to - | PROGRAM > FILE` compresses \
                     with another program",
                ),
            )),
            Named::Nothing => Ok(Chosen { compression: Compression::None, contradiction: None }),
        };
    };
    let written = match compression {
        Compression::None => "plain tar",
        Compression::Zstd { .. } => "zstd",
        Compression::Gzip { .. } => "gzip",
    };
    let says = match named(name) {
        Named::Known(method) | Named::Unknown(method) if method != written => Some(method),
        // A compressed .tar is no contradiction: every tar reads it.
        _ => None,
    };
    let contradiction = says.map(|says| format!("the name says {says}, the archive is {written}"));
    Ok(Chosen { compression, contradiction })
}

fn is_file_or_nothing(path: &Path) -> bool {
    path.metadata().map_or(true, |status| status.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_tar() {
        let check = |name: &str, expected| assert_eq!(named(OsStr::new(name)), expected, "{name}");
        check("a.tar.zst", Named::Known("zstd"));
        check("a.TZST", Named::Known("zstd"));
        check("dir/a.tgz", Named::Known("gzip"));
        check("a.tar.gz", Named::Known("gzip"));
        check("a.tar.xz", Named::Unknown("xz"));
        check("a.tar", Named::Nothing);
        check(".gz", Named::Nothing);
        check("backup", Named::Nothing);
        check("a.zst.old", Named::Nothing);
    }
}
