//! File contents that compress like real files.
//!
//! Random bytes and zeros say nothing about compression, and real files cannot be shipped. So five
//! kinds are generated from a seed: prose with a Zipf vocabulary, service logs, source code,
//! executable files, and data that are compressed already. `data.rs` sets the proportions of a
//! tree.

use std::io::Write as _;

use crate::random::Generator;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    /// Prose: words of a Zipf vocabulary in sentences and paragraphs.
    Prose,
    /// Lines of a service log: stamps, levels, templates, numbers.
    Log,
    /// Source code: indentation, keywords, few names used often.
    Source,
    /// An executable: instructions, tables, relocations, strings, padding.
    Executable,
    /// Photographs, films, archives: nothing left to compress.
    Packed,
}

/// The words that all texts of one seed share.
pub struct Vocabulary {
    words: Vec<Vec<u8>>,
    /// Rank of a word by 16 random bits; p(rank) is proportional to 1 / rank.
    rank: Vec<u16>,
}

const WORDS: usize = 20_000;
const SYLLABLES: [&str; 48] = [
    "a", "e", "i", "o", "be", "ca", "de", "di", "en", "er", "es", "fo", "ga", "ha", "he", "in",
    "ing", "ka", "la", "le", "li", "lo", "ma", "men", "mi", "mo", "na", "ne", "no", "on", "or",
    "pa", "per", "pro", "ra", "re", "ri", "ro", "sa", "se", "si", "st", "ta", "te", "ti", "to",
    "un", "ver",
];

impl Vocabulary {
    /// The vocabulary of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut generator = Generator::new(seed, 0x766f_6361);
        let words = (0..WORDS)
            .map(|rank| {
                // Frequent words are short, as in every language.
                let least = 1 + u64::from(rank > 100) + u64::from(rank > 2000);
                let syllables = least + generator.below(3);
                (0..syllables)
                    .flat_map(|_| SYLLABLES[generator.below(48) as usize].bytes())
                    .collect()
            })
            .collect();
        let scale = (WORDS as f64).ln() / 65536.0;
        let rank = (0..65536).map(|draw| ((f64::from(draw) * scale).exp() - 1.0) as u16).collect();
        Self { words, rank }
    }

    /// A word, frequent ones more often.
    pub fn word(&self, generator: &mut Generator) -> &[u8] {
        &self.words[usize::from(self.rank[(generator.next() >> 48) as usize])]
    }

    /// A word, all of them equally often.
    fn rare_word(&self, generator: &mut Generator) -> &[u8] {
        &self.words[generator.below(WORDS as u64) as usize]
    }
}

/// Appends `bytes` bytes of `kind` to `out`.
pub fn append(
    kind: ContentKind,
    vocabulary: &Vocabulary,
    generator: &mut Generator,
    out: &mut Vec<u8>,
    bytes: usize,
) {
    let end = out.len() + bytes;
    match kind {
        ContentKind::Prose => prose(vocabulary, generator, out, end),
        ContentKind::Log => log(vocabulary, generator, out, end),
        ContentKind::Source => source(vocabulary, generator, out, end),
        ContentKind::Executable => executable(vocabulary, generator, out, end),
        ContentKind::Packed => generator.noise(out, bytes),
    }
    out.truncate(end);
}

fn prose(vocabulary: &Vocabulary, generator: &mut Generator, out: &mut Vec<u8>, end: usize) {
    while out.len() < end {
        let words = 6 + generator.below(18);
        for position in 0..words {
            let start = out.len();
            out.extend_from_slice(vocabulary.word(generator));
            match position {
                0 => out[start] = out[start].to_ascii_uppercase(),
                _ if generator.below(12) == 0 => out.push(b','),
                _ => {}
            }
            out.push(b' ');
        }
        out.pop();
        out.extend_from_slice(if generator.below(6) == 0 { b".\n\n" } else { b". " });
    }
}

fn log(vocabulary: &Vocabulary, generator: &mut Generator, out: &mut Vec<u8>, end: usize) {
    let templates: Vec<Vec<u8>> = (0..24)
        .map(|_| {
            let words = 3 + generator.below(6);
            (0..words).flat_map(|_| [vocabulary.word(generator), b" "].concat()).collect()
        })
        .collect();
    let levels = ["INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"];
    let mut milliseconds = generator.below(86_400_000);
    while out.len() < end {
        milliseconds = (milliseconds + generator.below(400)) % 86_400_000;
        let (seconds, thousandths) = (milliseconds / 1000, milliseconds % 1000);
        let template = &templates[generator.below(24) as usize];
        let level = levels[generator.below(6) as usize];
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        // Writing to a Vec does not fail.
        let _ = write!(
            out,
            "2026-03-14T{hour:02}:{minute:02}:{second:02}.{thousandths:03}Z node-{:02} {level:5} ",
            generator.below(12),
        );
        out.extend_from_slice(template);
        let _ = writeln!(
            out,
            "request={:016x} user={} took={}.{:02}ms status={}",
            generator.next(),
            generator.below(5000),
            generator.below(900),
            generator.below(100),
            [200, 200, 200, 204, 404, 500][generator.below(6) as usize],
        );
    }
}

fn source(vocabulary: &Vocabulary, generator: &mut Generator, out: &mut Vec<u8>, end: usize) {
    let names: Vec<Vec<u8>> = (0..60)
        .map(|_| [vocabulary.rare_word(generator), b"_", vocabulary.word(generator)].concat())
        .collect();
    let name = |generator: &mut Generator| {
        // Half of the uses go to a quarter of the names.
        let limit = if generator.below(2) == 0 { 15 } else { 60 };
        String::from_utf8_lossy(&names[generator.below(limit) as usize]).into_owned()
    };
    while out.len() < end {
        let _ =
            writeln!(out, "\nfn {}({}: &str) -> Result<()> {{", name(generator), name(generator));
        for _ in 0..3 + generator.below(14) {
            let indent = "    ".repeat(1 + generator.below(3) as usize);
            let (first, second) = (name(generator), name(generator));
            let number = generator.below(256);
            let _ = match generator.below(7) {
                0 => writeln!(out, "{indent}let {first} = {second}.{}()?;", name(generator)),
                1 => writeln!(out, "{indent}if {first} > {number} {{ return Err({second}); }}"),
                2 => writeln!(out, "{indent}self.{first}.push({second}[{number}]);"),
                3 => writeln!(out, "{indent}for {first} in 0..{second}.len() {{"),
                4 => writeln!(out, "{indent}}}"),
                5 => writeln!(out, "{indent}{first}({second}, 0x{:04x})?;", generator.below(65536)),
                _ => {
                    let _ = write!(out, "{indent}// ");
                    for _ in 0..4 + generator.below(9) {
                        out.extend_from_slice(vocabulary.word(generator));
                        out.push(b' ');
                    }
                    writeln!(out)
                }
            };
        }
        let _ = writeln!(out, "    Ok(())\n}}");
    }
}

fn executable(vocabulary: &Vocabulary, generator: &mut Generator, out: &mut Vec<u8>, end: usize) {
    // A compiler's idioms: short instruction sequences that repeat.
    let idioms: Vec<Vec<u8>> = (0..512)
        .map(|_| {
            let mut idiom = Vec::new();
            let bytes = 2 + generator.below(8) as usize;
            generator.noise(&mut idiom, bytes);
            idiom
        })
        .collect();
    let targets: Vec<u32> = (0..300).map(|_| generator.below(1 << 20) as u32).collect();
    let mut address = generator.below(1 << 22) as u32;
    while out.len() < end {
        match generator.below(20) {
            0..12 => code(&idioms, &targets, generator, out),
            12..15 => {
                for _ in 0..128 {
                    address = address.wrapping_add(8 + 8 * generator.below(12) as u32);
                    out.extend_from_slice(&u64::from(address).to_le_bytes());
                    out.extend_from_slice(&(generator.below(300) as u32).to_le_bytes());
                    out.extend_from_slice(&8u32.to_le_bytes());
                }
            }
            15..18 => {
                for _ in 0..120 {
                    out.extend_from_slice(vocabulary.rare_word(generator));
                    out.push(b'_');
                    out.extend_from_slice(vocabulary.word(generator));
                    out.push(0);
                }
            }
            18 => generator.noise(out, 512),
            _ => out.resize(out.len() + 2048, 0),
        }
    }
}

/// About 4 KiB of instructions: idioms, low numbers more often, with small operands and calls.
fn code(idioms: &[Vec<u8>], targets: &[u32], generator: &mut Generator, out: &mut Vec<u8>) {
    for _ in 0..600 {
        let draws = [(); 3].map(|()| generator.below(idioms.len() as u64) as usize);
        let pick = draws[0].min(draws[1]).min(draws[2]);
        out.extend_from_slice(&idioms[pick]);
        match pick % 8 {
            0 => {
                let target = targets[generator.below(targets.len() as u64) as usize];
                out.extend_from_slice(&target.to_le_bytes());
            }
            1..4 => out.push(generator.below(32) as u8 * 8),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zstd_finds_in_each_kind_what_it_finds_in_its_model() {
        // Measured with `zstd -3` on real programs, logs and texts; per cent of the size that is
        // left.
        for (kind, left_percent) in [
            (ContentKind::Prose, 30..45),
            (ContentKind::Log, 12..28),
            (ContentKind::Source, 15..30),
            (ContentKind::Executable, 38..58),
            (ContentKind::Packed, 98..102),
        ] {
            let mut contents = Vec::new();
            let mut generator = Generator::new(8, 8);
            append(kind, &Vocabulary::new(1), &mut generator, &mut contents, 1 << 20);
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&contents).unwrap();
            let mut zstd = std::process::Command::new("zstd");
            let output = zstd.args(["-q", "-3", "-c"]).arg(file.path()).output().unwrap();
            assert!(output.status.success());
            let percent = output.stdout.len() * 100 / contents.len();
            assert!(left_percent.contains(&percent), "{kind:?}: {percent} %");
        }
    }

    #[test]
    fn every_kind_is_exact_in_size_and_repeats() {
        let vocabulary = Vocabulary::new(1);
        for kind in [
            ContentKind::Prose,
            ContentKind::Log,
            ContentKind::Source,
            ContentKind::Executable,
            ContentKind::Packed,
        ] {
            for bytes in [0, 1, 777, 100_000] {
                let make = || {
                    let mut out = b"kept".to_vec();
                    append(kind, &vocabulary, &mut Generator::new(3, 4), &mut out, bytes);
                    out
                };
                let first = make();
                assert_eq!(first.len(), 4 + bytes, "{kind:?}");
                assert_eq!(&first[..4], b"kept");
                assert!(first == make(), "{kind:?} differs from run to run");
            }
        }
    }
}
