//! What the words say that a program was started with.

use super::super::Stage;

/// Programs that start others.
pub(super) const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "busybox", "fish"];

/// Compressors of one thread, and what does the same with all cores.
pub(super) const PARALLEL: [(&str, &str); 5] = [
    ("gzip", "pigz"),
    ("bzip2", "pbzip2"),
    ("xz", "xz -T0"),
    ("zstd", "zstd -T0"),
    ("lzma", "xz --format=lzma -T0"),
];

/// Whether the first word of a stage as it was typed is that program.
pub(super) fn is_word_of(stage: &str, program: &str) -> bool {
    stage.split_whitespace().next() == Some(program)
}

/// Whether a compressor was told how many threads to have, or does not compress.
pub(super) fn does_not_share(words: &[String]) -> bool {
    let long = ["--threads", "--single-thread", "--decompress", "--uncompress", "--test", "--list"];
    words.iter().skip(1).any(|word| {
        let is_long = long.iter().any(|name| word.starts_with(name));
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        is_long || letters.is_some_and(|it| it.starts_with('T') || it.contains(['d', 't', 'l']))
    })
}

/// The blocking factor of a tar that lets its compressor write the archive.
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
        // Letters in one word; in the first one without a dash values follow in their order.
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
