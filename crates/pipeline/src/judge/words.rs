//! Reads the command lines of the stages.

use super::super::Stage;

/// Shells, which start other programs.
pub const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "busybox", "fish"];

/// A program with one thread, and a replacement with several.
pub(super) struct Parallel {
    /// The program with one thread.
    pub(super) program: &'static str,
    /// The words to type in its place.
    pub(super) instead: &'static str,
    /// The program that must be installed for that.
    pub(super) installed: &'static str,
    /// Processor time of the replacement for the same data, as a ratio to the program with one
    /// thread. The arguments are its command line, and its bytes out for each byte in, where that
    /// is known.
    pub(super) work: fn(&[String], Option<f64>) -> f64,
    /// Above this rate of one thread, dividing the data costs what the threads save.
    pub(super) fastest_bytes_per_second: f64,
    /// Bytes that one thread of the replacement takes at a time, from the same command line.
    pub(super) piece_bytes: fn(&[String]) -> u64,
}

/// Programs that Takeup proposes if they are installed.
pub const PROPOSED: [&str; 5] = ["pigz", "lbzip2", "pbzip2", "xz", "zstd"];

/// zstd 1.5.4 with two threads takes as long as with one at 170 MB/s per thread, and 0.6 of the
/// time at 45 MB/s. Sources of the piece sizes: pigz(1) --blocksize, xz(1) --block-size (three
/// times the dictionary, 1 MiB at least), zstd(1) --jobsize.
static PARALLEL: [Parallel; 5] = [
    Parallel {
        program: "gzip",
        instead: "pigz",
        installed: "pigz",
        work: pigz_work,
        fastest_bytes_per_second: f64::INFINITY,
        piece_bytes: |_| 128 << 10,
    },
    Parallel {
        program: "bzip2",
        instead: "lbzip2",
        installed: "lbzip2",
        work: |_, _| 1.0,
        fastest_bytes_per_second: f64::INFINITY,
        piece_bytes: |_| 900_000,
    },
    Parallel {
        program: "bzip2",
        instead: "pbzip2",
        installed: "pbzip2",
        work: |_, _| 1.0,
        fastest_bytes_per_second: f64::INFINITY,
        piece_bytes: |_| 900_000,
    },
    Parallel {
        program: "xz",
        instead: "xz -T0",
        installed: "xz",
        work: |_, _| 1.0,
        fastest_bytes_per_second: f64::INFINITY,
        piece_bytes: xz_block_bytes,
    },
    Parallel {
        program: "zstd",
        instead: "zstd -T0",
        installed: "zstd",
        work: |_, _| 1.0,
        fastest_bytes_per_second: 100e6,
        piece_bytes: zstd_job_bytes,
    },
];

/// Known replacements of a program that use several threads, the preferred one first.
pub(super) fn parallel<'a>(
    program: &'a str,
    absent: &'a [&'static str],
) -> impl Iterator<Item = &'static Parallel> + 'a {
    let is_it = move |it: &&Parallel| it.program == program && !absent.contains(&it.installed);
    PARALLEL.iter().filter(is_it)
}

/// A program that does the work of another with all cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instead {
    /// The words to type in its place.
    pub words: &'static str,
    /// Its processor time for the same data, as a ratio.
    pub work: f64,
    /// Above this rate of one thread it gains nothing.
    pub fastest_bytes_per_second: f64,
}

/// What does the work of the program of these words with all cores, and is installed. `kept` are
/// the program's bytes out for each byte in.
pub fn instead_of(words: &[String], kept: Option<f64>, absent: &[&'static str]) -> Option<Instead> {
    let program = words.first()?.rsplit('/').next()?;
    if does_not_share(words) {
        return None;
    }
    let found = parallel(program, absent).next()?;
    Some(Instead {
        words: found.instead,
        work: (found.work)(words, kept),
        fastest_bytes_per_second: found.fastest_bytes_per_second,
    })
}

/// The level on a compressor's command line, or `usual`.
fn level(words: &[String], usual: u32) -> u32 {
    let of = |word: &String| {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
        let digits: String = letters.chars().filter(char::is_ascii_digit).collect();
        (!letters.starts_with('T')).then(|| digits.parse().ok()).flatten()
    };
    words.iter().skip(1).find_map(of).unwrap_or(usual)
}

/// Measured with pigz 2.6 against gzip 1.12: 0.8 of the work at level 1, 0.9 at 6 and 9; of data
/// that do not shrink 0.73 and 0.75, and between the two from 0.8 bytes out for each byte in on
/// (`/usr/bin/time -f '%U %S' PROGRAM -LEVEL -c FILE > /dev/null`, 60 MB of noise, of hexadecimal
/// digits, of words, and of words and noise in turn; the least of three runs in turn).
fn pigz_work(words: &[String], kept: Option<f64>) -> f64 {
    const FAST: [f64; 2] = [0.8, 0.73];
    const SLOW: [f64; 2] = [0.9, 0.75];
    const SHRINKS: f64 = 0.8;
    let level = (f64::from(level(words, 6).clamp(1, 6)) - 1.0) / 5.0;
    let stays = ((kept.unwrap_or(0.0) - SHRINKS) / (1.0 - SHRINKS)).clamp(0.0, 1.0);
    let between = |ends: [f64; 2], at: f64| ends[0] + (ends[1] - ends[0]) * at;
    between([between(FAST, stays), between(SLOW, stays)], level)
}

fn xz_block_bytes(words: &[String]) -> u64 {
    // xz(1), the table of presets.
    let dictionary_kib = match level(words, 6) {
        0 => 256,
        1 => 1024,
        2 => 2048,
        3 | 4 => 4096,
        5 | 6 => 8192,
        7 => 16384,
        8 => 32768,
        _ => 65536,
    };
    (3 * dictionary_kib).max(1024) << 10
}

fn zstd_job_bytes(words: &[String]) -> u64 {
    // Four windows (zstd(1), --jobsize); windows of the levels for input of unknown size.
    let window_mib = match level(words, 3) {
        1 => return 2 << 20,
        2 => 1,
        3..=8 => 2,
        9..=16 => 4,
        17..=19 => 8,
        _ => 32,
    };
    (4 * window_mib) << 20
}

/// The compressor with its lowest level, if it uses a higher one.
pub(super) fn faster_level(words: &[String]) -> Option<String> {
    let program = words.first()?.rsplit('/').next()?;
    let (lowest, usual) = match program {
        "gzip" | "pigz" | "bzip2" => (1, 6),
        "xz" => (0, 6),
        "zstd" => (1, 3),
        _ => return None,
    };
    let is_decompressing = words.iter().skip(1).any(|word| {
        let letters = word.strip_prefix('-').unwrap_or("");
        word.starts_with("--d") || (!letters.starts_with('-') && letters.contains('d'))
    });
    (program != "bzip2" && !is_decompressing && level(words, usual) > lowest)
        .then(|| format!("{program} -{lowest}"))
}

/// Whether the first word of a stage, as typed, is `program`.
pub(super) fn is_word_of(stage: &str, program: &str) -> bool {
    stage.split_whitespace().next() == Some(program)
}

/// Whether a compressor's options set the number of threads, or it does not compress.
pub(super) fn does_not_share(words: &[String]) -> bool {
    let long = ["--threads", "--single-thread", "--decompress", "--uncompress", "--test", "--list"];
    words.iter().skip(1).any(|word| {
        let is_long = long.iter().any(|name| word.starts_with(name));
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        is_long || letters.is_some_and(|it| it.starts_with('T') || it.contains(['d', 't', 'l']))
    })
}

/// The blocking factor of a tar whose compressor writes the archive, so that it has no effect.
pub(super) fn ignored_blocking(stage: &Stage) -> Option<String> {
    if stage.program() != "tar" {
        return None;
    }
    let words = stage.arguments.get(1..)?;
    let (mut factor, mut compresses, mut target) = (None, false, None);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').unwrap_or((long, ""));
            match name {
                "blocking-factor" => factor = Some(value.to_owned()),
                "file" => target = Some(value.to_owned()),
                "gzip"
                | "bzip2"
                | "xz"
                | "zstd"
                | "lzip"
                | "lzma"
                | "lzop"
                | "use-compress-program" => compresses = true,
                _ => {}
            }
            continue;
        }
        // Letters in one word; after a first word without a dash the values follow in order.
        let Some(letters) = word.strip_prefix('-').or((at == 1).then_some(word.as_str())) else {
            continue;
        };
        let is_old = !word.starts_with('-');
        for (place, letter) in letters.char_indices() {
            let rest = &letters[place + letter.len_utf8()..];
            match letter {
                'z' | 'j' | 'J' | 'Z' => compresses = true,
                'b' | 'f' | 'C' | 'T' | 'X' | 'I' | 'g' | 'H' | 'L' | 'N' | 'V' | 'K' => {
                    let value = if rest.is_empty() || is_old {
                        at += 1;
                        words.get(at - 1).cloned().unwrap_or_default()
                    } else {
                        rest.to_owned()
                    };
                    match letter {
                        'b' => factor = Some(value),
                        'f' => target = Some(value),
                        'I' => compresses = true,
                        _ => {}
                    }
                    if !is_old {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    factor.filter(|_| compresses && target.is_some_and(|target| target != "-"))
}
