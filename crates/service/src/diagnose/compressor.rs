//! The compressor of a line, and what else could be in its place, tried on the same data.

use base::finding::Finding;
use diagnosis::chain::Work;
use diagnosis::change::{Fastest, fastest_level, own_compression};
use diagnosis::line::{Role, Typed, TypedProgram};
use diagnosis::program::{Compressor, try_beside, try_compressor, try_own};
use diagnosis::rank::Ranking;
use diagnosis::source::Found;
use diagnosis::station::Station;
use diagnosis::words::other_format;

/// What is tried of another format.
const OTHER: [&str; 2] = ["zstd", "-1"];

fn of(typed: &Typed) -> Option<&TypedProgram> {
    typed.programs.iter().find(|it| it.role == Role::Compresses)
}

/// What `takeup backup` would do in the place of the line's compressor.
pub(super) fn own(typed: &Typed, found: &Found) -> Option<Compressor> {
    let compression = own_compression(&of(typed)?.words)?.parse().ok()?;
    try_own(compression, &found.sample)
}

/// Whether a compressor is the limit that no change takes away.
pub(super) fn limits(ranking: &Ranking) -> bool {
    let Some(Station::Program(at)) = ranking.last.map(|it| it.station) else { return false };
    ranking.end.links.get(at).is_some_and(|it| matches!(it.work, Work::Compresses { .. }))
}

/// What else was tried.
#[derive(Default)]
pub(super) struct Alternatives {
    pub(super) fastest: Option<Fastest>,
    pub(super) other_format: Option<Finding>,
}

/// Tries the compressor at its fastest level, and another format where it is installed.
pub(super) fn alternatives(typed: &Typed, found: &Found, absent: &[&'static str]) -> Alternatives {
    // Once more, beside the others.
    let present = of(typed)
        .and_then(|program| Some((program, try_compressor(&program.words, &found.sample).ok()?)));
    let Some((program, present)) = present else { return Alternatives::default() };
    let level = fastest_level(&program.name);
    let level = level.filter(|level| !program.words.iter().any(|word| word == level));
    let tried = level.and_then(|level| {
        let words = at_level(&program.words, level);
        Some((level, try_beside(&words, &found.sample, present.seen_bytes).ok()?))
    });
    let fastest = match tried {
        Some((level, tried)) => Fastest {
            level: Some(level),
            rate: tried.rate.typical / present.rate.typical.max(1.0),
            ratio: tried.ratio / present.ratio.max(0.01),
        },
        None => Fastest { level: None, rate: 1.0, ratio: 1.0 },
    };
    let is_other = program.name != OTHER[0] && !absent.contains(&OTHER[0]);
    let other_format = is_other.then(|| {
        let words: Vec<String> = OTHER.iter().map(|word| (*word).to_owned()).collect();
        let tried = try_beside(&words, &found.sample, present.seen_bytes).ok()?;
        let is_faster = tried.rate.low > FASTER_MIN * present.rate.high;
        is_faster.then(|| other_format(&OTHER.join(" "), &tried, &present))
    });
    Alternatives { fastest: Some(fastest), other_format: other_format.flatten() }
}

/// The words of a compressor with another level.
fn at_level(words: &[String], level: &str) -> Vec<String> {
    let is_level = |word: &&String| {
        let digits = word.strip_prefix('-').unwrap_or_default();
        let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
        is_number || matches!(word.as_str(), "--fast" | "--best" | "-e" | "--extreme")
    };
    let rest = words.iter().skip(1).filter(|word| !is_level(word)).cloned();
    words.iter().take(1).cloned().chain([level.to_owned()]).chain(rest).collect()
}

/// Another format is told from here on.
const FASTER_MIN: f64 = 1.2;

/// The most threads that a compressor uses at once.
pub(super) fn threads(words: &[String]) -> f64 {
    let name = words.first().and_then(|word| word.rsplit('/').next()).unwrap_or("");
    let given = words.iter().enumerate().find_map(|(at, word)| {
        let glued = word.strip_prefix("-T").or_else(|| word.strip_prefix("--threads="));
        let own = word.strip_prefix("-p").filter(|_| name == "pigz" || name.ends_with("bzip2"));
        let text = glued.or(own)?;
        let text = if text.is_empty() { words.get(at + 1)?.as_str() } else { text };
        text.parse::<u32>().ok()
    });
    match (name, given) {
        (_, Some(0)) | ("pigz" | "lbzip2" | "pbzip2", None) => f64::INFINITY,
        (_, Some(threads)) => f64::from(threads),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_stay_at_another_level() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            at_level(&words, "-1").join(" ")
        };
        assert_eq!(of("gzip"), "gzip -1");
        assert_eq!(of("zstd -19 --long -T2"), "zstd -1 --long -T2");
        assert_eq!(of("gzip --best --rsyncable"), "gzip -1 --rsyncable");
    }

    #[test]
    fn threads_of_compressors_are_read() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            threads(&words)
        };
        assert_eq!(of("gzip -6"), 1.0);
        assert_eq!(of("pigz -1"), f64::INFINITY);
        assert_eq!(of("pigz -p 2"), 2.0);
        assert_eq!(of("zstd -T4 -3"), 4.0);
        assert_eq!(of("xz -T0"), f64::INFINITY);
        assert_eq!(of("zstd --threads=3"), 3.0);
    }
}
