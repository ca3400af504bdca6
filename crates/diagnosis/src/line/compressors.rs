//! Compressors that may be tried on data: with options that change how they compress, and no other.
//!
//! A compressor can delete, overwrite and list files by its options. So a word that is not known to
//! be harmless makes it one that is not tried.

use std::path::PathBuf;

/// Programs that compress standard input to standard output.
pub(super) const COMPRESSORS: [&str; 8] =
    ["gzip", "pigz", "zstd", "xz", "bzip2", "lbzip2", "pbzip2", "lz4"];

/// A compressor as it was typed.
pub(super) struct Compresses {
    /// The words to try it with.
    pub(super) words: Vec<String>,
    /// The file that it reads, where it writes to standard output.
    pub(super) file: Option<PathBuf>,
}

/// Reads a compressor of standard input, or of a file with `-c`; `None` for anything else.
pub(super) fn compresses(words: &[String]) -> Option<Compresses> {
    let name = words.first()?.rsplit('/').next()?;
    let mut read = Compresses { words: vec![name.to_owned()], file: None };
    let mut to_output = false;
    let mut rest = words.get(1..)?.iter().peekable();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-" => {}
            "-c" | "--stdout" | "--to-stdout" => to_output = true,
            "-k" | "--keep" | "-q" | "--quiet" | "-v" | "-n" | "--no-name" => {}
            level if is_level(level) => read.words.push(word.clone()),
            // A number of threads, glued or as the next word; zstd takes that for a file.
            "-T" | "-p" if is_threads(name, word) => {
                if name == "zstd" {
                    return None;
                }
                let number = rest.next_if(|next| next.bytes().all(|byte| byte.is_ascii_digit()))?;
                read.words.push(format!("{word}{number}"));
            }
            threads if is_threads(name, threads) => read.words.push(word.clone()),
            "--rsyncable" | "--long" | "-e" | "--extreme" => read.words.push(word.clone()),
            // Letters together: `-9c`, `-qc`.
            letters if is_bundle(letters) => {
                to_output |= letters.contains('c');
                let level: String = letters.chars().filter(char::is_ascii_digit).collect();
                read.words.extend((!level.is_empty()).then(|| format!("-{level}")));
            }
            option if option.starts_with('-') => return None,
            path if read.file.is_none() => read.file = Some(path.into()),
            _ => return None,
        }
    }
    // Without -c it compresses the file in its place.
    (read.file.is_none() || to_output).then_some(read)
}

/// The words to try a compressor with, where all of them are harmless.
pub(super) fn safe(words: &[String]) -> Option<Vec<String>> {
    let name = words.first()?.rsplit('/').next()?;
    let read = compresses(words).filter(|_| COMPRESSORS.contains(&name))?;
    read.file.is_none().then_some(read.words)
}

fn is_level(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or("");
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number || matches!(word, "--fast" | "--best")
}

fn is_threads(name: &str, word: &str) -> bool {
    let number = match name {
        "xz" | "zstd" => word.strip_prefix("-T").or_else(|| word.strip_prefix("--threads=")),
        "pigz" | "pbzip2" => word.strip_prefix("-p"),
        _ => None,
    };
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_bundle(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or("");
    !letters.is_empty() && letters.bytes().all(|letter| b"0123456789cqvk".contains(&letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<Vec<String>> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        safe(&words)
    }

    #[test]
    fn options_that_could_touch_files_are_not_tried() {
        for line in [
            "xz --files=/tmp/list",
            "xz --files",
            "zstd --filelist=list --rm",
            "zstd -o x",
            "zstd -fo x",
            "zstd --trace=x",
            "zstd --output-dir-flat=x",
            "zstd -b1 -i2",
            "zstd -D dictionary",
            "zstd -c /tmp/fifo",
            "gzip /tmp/victim",
            "gzip -r folder",
            "gzip -d",
            "gzip -S .x",
            "lz4 - out",
            "lz4 -f",
            "zstd -T 2",
            "rm -c",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
        let words = |line: &str| Some(line.split(' ').map(str::to_owned).collect::<Vec<String>>());
        assert_eq!(of("/usr/bin/gzip -9c"), words("gzip -9"));
        assert_eq!(of("xz -T 2 -0"), words("xz -T2 -0"));
        assert_eq!(of("zstd -q -3 -T0 --long"), words("zstd -3 -T0 --long"));
        assert_eq!(of("pigz -p 4"), words("pigz -p4"));
    }
}
