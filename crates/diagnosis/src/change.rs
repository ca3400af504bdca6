//! What can be changed, and the chain with that change.

use std::path::Path;

use experiment::judgement::quoted;
use pipeline::judge::instead_of;
use pipeline::line::{blocks, buffered, redirection, with_program, with_stage};
use pipeline::pace;

use crate::amount::Amount;
use crate::chain::{Chain, Link, Reading, Target, WhyUnknown, Work};
use crate::line::{PIPE_BYTES, RING_BYTES, Typed, TypedTarget, words};
use crate::program::Compressor;

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The kernel's read-ahead of the source.
    ReadAhead { bytes: u64 },
    /// `takeup backup` in the place of the line.
    TakeupBackup,
    /// Larger writes of the last program, and `is_read_faster` where it reads the source in the
    /// same pieces and gains from that, too ([`Stream::in_pieces_of`]).
    ///
    /// [`Stream::in_pieces_of`]: crate::chain::Stream::in_pieces_of
    Blocks { bytes: u64, is_read_faster: bool },
    /// A buffer in front of the target.
    Buffer,
    /// A compressor with all cores; `instead` are its words.
    AllCores { link: usize, instead: &'static str },
    /// A program without its rate limit.
    WithoutRate { link: usize },
    /// A compressor at its fastest level: so many times as fast, with so many times the output.
    FastestLevel { link: usize, level: &'static str, faster: f64, larger: f64 },
    /// `takeup backup --compress` in the place of the line and its compressor: what a processor
    /// takes with both, in bytes for each second, and how many times the output is as large.
    OwnCompression { instead_of: String, before: f64, own: f64, larger: f64 },
}

/// A change, with the chain that it makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    pub change: Change,
    pub chain: Chain,
    /// The line with the change, where the line is changed.
    pub line: Option<String>,
    /// What to type.
    pub command: Option<String>,
    /// What takes it back.
    pub undo: Option<&'static str>,
}

/// What is known beside the chain.
#[derive(Clone, Debug)]
pub struct Ground<'a> {
    /// The line as it was typed; `None` for `takeup backup`.
    pub typed: Option<&'a Typed>,
    /// Where the read-ahead can be set: a path as it is typed.
    pub read_ahead_path: Option<&'a Path>,
    /// Programs that are not installed.
    pub absent: &'a [&'static str],
    /// What the compression of `takeup backup` does in the place of the line's
    /// ([`own_compression`]).
    pub own: Option<Compressor>,
    /// The line's compressor at its fastest level, where that was tried: then changes that have
    /// their price count, too.
    pub fastest: Option<Fastest>,
}

/// A compressor at its fastest level, beside the level of the line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fastest {
    /// The option; `None` where the program has no faster one.
    pub level: Option<&'static str>,
    /// Its rate and its ratio, divided by those of the level of the line.
    pub rate: f64,
    pub ratio: f64,
}

/// The fastest level of a program.
pub fn fastest_level(program: &str) -> Option<&'static str> {
    match program {
        "gzip" | "pigz" | "zstd" => Some("-1"),
        "xz" => Some("-0"),
        _ => None,
    }
}

/// Sizes of writes that are tried.
const BLOCKS: [u64; 4] = [64 << 10, 256 << 10, 512 << 10, 1 << 20];
/// A smaller read-ahead that gives this share of the best rate is enough.
const ENOUGH: f64 = 0.95;
/// `takeup pipe` writes blocks of this size unless told otherwise.
const BUFFERED_BLOCK_BYTES: u64 = 512 << 10;

impl Ground<'_> {
    /// All changes that this chain has room for.
    pub fn changes(&self, chain: &Chain) -> Vec<Changed> {
        let mut all = Vec::new();
        all.extend(self.read_ahead(chain));
        all.extend(BLOCKS.iter().filter_map(|bytes| self.blocks(chain, *bytes)));
        all.extend(self.buffer(chain));
        for link in 0..chain.links.len() {
            all.extend(self.all_cores(chain, link));
            all.extend(self.without_rate(chain, link));
        }
        all.extend(self.takeup(chain));
        all
    }

    /// Changes with a price, for a chain that no other change makes faster: larger output, or
    /// another program.
    pub fn trade_offs(&self, chain: &Chain) -> Vec<Changed> {
        let Some(fastest) = self.fastest else { return Vec::new() };
        let levels = (0..chain.links.len()).filter_map(|at| self.at_level(chain, at, fastest));
        levels.chain(self.compressed_by_takeup(chain)).collect()
    }

    fn at_level(&self, chain: &Chain, at: usize, fastest: Fastest) -> Option<Changed> {
        let (typed, level) = (self.typed?, fastest.level?);
        let link = chain.links.get(at)?;
        let Work::Compresses { rate, ratio, threads } = link.work else { return None };
        let program = typed.programs.iter().find(|it| it.name == link.shown)?;
        let is_there = program.words.iter().any(|word| word == level);
        if is_there || fastest_level(&link.shown) != Some(level) {
            return None;
        }
        let stage = typed.stages.get(link.stage)?;
        let stage = if stage.split_whitespace().next() == Some(link.shown.as_str()) {
            with_level(stage, level)?
        } else {
            within_tar(stage, &link.shown, &format!("{} {level}", link.shown))?
        };
        let line = with_stage(&typed.stages, link.stage, stage);
        let mut changed = chain.clone();
        changed.links[at].work = Work::Compresses {
            rate: rate.times(fastest.rate),
            ratio: (ratio * fastest.ratio).max(1.0),
            threads,
        };
        let larger = 1.0 / fastest.ratio.max(0.01);
        Some(Changed {
            change: Change::FastestLevel { link: at, level, faster: fastest.rate, larger },
            chain: changed,
            command: line.clone(),
            line,
            undo: None,
        })
    }

    fn compressed_by_takeup(&self, chain: &Chain) -> Option<Changed> {
        let own = self.own?;
        let (instead_of, before, ratio, cores) = chain.links.iter().find_map(|link| {
            let Work::Compresses { rate, ratio, threads } = link.work else { return None };
            let cores = threads.min(chain.processors).max(1.0);
            Some((link.shown.clone(), rate.typical, ratio, cores))
        })?;
        if own.rate.low * chain.processors.max(1.0) <= before * cores {
            return None;
        }
        let larger = ratio / own.ratio.max(0.01);
        let change = Change::OwnCompression { instead_of, before, own: own.rate.typical, larger };
        Some(Changed { change, ..self.takeup(chain)? })
    }

    fn read_ahead(&self, chain: &Chain) -> Option<Changed> {
        let path = self.read_ahead_path?;
        let stream = chain.source.stream.as_ref()?;
        let present = stream.window_bytes?;
        if chain.source.reading != Reading::OneByOne {
            return None;
        }
        let best = stream.windows.iter().map(|it| it.rate.typical).fold(0.0, f64::max);
        let enough = stream.windows.iter().find(|it| it.rate.typical >= ENOUGH * best)?;
        if enough.bytes <= present {
            return None;
        }
        let mut changed = chain.clone();
        if let Some(stream) = changed.source.stream.as_mut() {
            (stream.window_bytes, stream.now) = (Some(enough.bytes), enough.rate);
        }
        let path = quoted(&path.to_string_lossy());
        Some(Changed {
            change: Change::ReadAhead { bytes: enough.bytes },
            chain: changed,
            line: None,
            command: Some(format!("takeup tune set {path} read_ahead_kb={}", enough.bytes >> 10)),
            undo: Some("takeup tune revert"),
        })
    }

    fn blocks(&self, chain: &Chain, bytes: u64) -> Option<Changed> {
        let most = match &chain.target {
            Target::Tape(tape) => tape.block_bytes_max,
            Target::Disk { .. }
            | Target::Unknown { why: WhyUnknown::NotWritten | WhyUnknown::SameDisk, .. } => {
                BLOCKS[0]
            }
            Target::Unknown { .. } | Target::Nowhere => return None,
        };
        let last = chain.links.last()?;
        if last.write_bytes >= bytes || bytes > most {
            return None;
        }
        let typed = self.typed?;
        let stage = typed.stages.get(last.stage)?;
        let line = match blocks::larger(stage, bytes) {
            Some(stage) => with_stage(&typed.stages, last.stage, stage),
            None => {
                // Only a drive needs whole blocks.
                let Target::Tape(_) = chain.target else { return None };
                let stage = blocks::collected(stage, bytes)?;
                with_stage(&typed.stages, last.stage, stage)
            }
        };
        let mut changed = chain.clone();
        let own = changed.links.last_mut()?;
        let mut is_read_faster = false;
        if blocks::larger(stage, bytes).is_some() {
            (own.write_bytes, own.read_bytes) = (bytes, bytes);
            // It reads its files in the same pieces.
            if changed.links.len() == 1
                && changed.source.reading == Reading::OneByOne
                && let Some(stream) = changed.source.stream.as_mut()
            {
                let present = stream.now;
                stream.now = stream.in_pieces_of(bytes);
                is_read_faster = stream.now.typical > present.typical;
            }
        } else {
            changed.links.push(buffer_link(bytes, last.stage));
        }
        Some(Changed {
            change: Change::Blocks { bytes, is_read_faster },
            chain: changed,
            command: line.clone(),
            line,
            undo: None,
        })
    }

    fn buffer(&self, chain: &Chain) -> Option<Changed> {
        let typed = self.typed?;
        let last = chain.links.last()?;
        if last.input_bytes > PIPE_BYTES || matches!(chain.target, Target::Nowhere) {
            return None;
        }
        let line = buffered(&typed.stages)?;
        let mut changed = chain.clone();
        let typed_last = typed.stages.last()?;
        let is_dd = last.shown == "dd" && chain.links.len() > 1;
        let bytes = if is_dd { last.write_bytes } else { BUFFERED_BLOCK_BYTES };
        if is_dd {
            // A dd that only collects blocks is replaced.
            while changed.links.len() > 1 && changed.links.last().is_some_and(|it| it.shown == "dd")
            {
                changed.links.pop();
            }
        } else if redirection(typed_last).is_none() {
            // The program wrote the target itself, and writes a pipe now.
            changed.links.last_mut()?.write_bytes = last.write_bytes.min(PIPE_BYTES);
        }
        changed.links.push(buffer_link(bytes, last.stage));
        Some(Changed {
            change: Change::Buffer,
            chain: changed,
            command: Some(line.clone()),
            line: Some(line),
            undo: None,
        })
    }

    fn all_cores(&self, chain: &Chain, at: usize) -> Option<Changed> {
        let typed = self.typed?;
        let link = chain.links.get(at)?;
        let Work::Compresses { rate, ratio, threads } = link.work else { return None };
        let program = typed.programs.iter().find(|it| it.name == link.shown)?;
        let instead = instead_of(&program.words, Some(1.0 / ratio), self.absent)?;
        if threads > 1.0 || rate.typical > instead.fastest_bytes_per_second {
            return None;
        }
        let stage = typed.stages.get(link.stage)?;
        let is_own_stage = stage.split_whitespace().next() == Some(link.shown.as_str());
        let line = if is_own_stage {
            with_program(&typed.stages, link.stage, instead.words)
        } else {
            within_tar(stage, &link.shown, instead.words)
                .and_then(|stage| with_stage(&typed.stages, link.stage, stage))
        };
        // A change that nobody can type is none.
        let line = line?;
        let mut changed = chain.clone();
        let rate = shared(rate.times(1.0 / instead.work));
        changed.links[at].work =
            Work::Compresses { rate, ratio, threads: chain.processors.max(1.0) };
        Some(Changed {
            change: Change::AllCores { link: at, instead: instead.words },
            chain: changed,
            command: Some(line.clone()),
            line: Some(line),
            undo: None,
        })
    }

    fn without_rate(&self, chain: &Chain, at: usize) -> Option<Changed> {
        let typed = self.typed?;
        let link = chain.links.get(at)?;
        let Work::Holds { .. } = link.work else { return None };
        let stage = pace::without_rate(typed.stages.get(link.stage)?)?;
        // mbuffer has one for each side.
        if pace::declared(&words(&stage)?.words).is_some() {
            return None;
        }
        let line = with_stage(&typed.stages, link.stage, stage);
        let mut changed = chain.clone();
        changed.links[at].work = Work::Passes;
        Some(Changed {
            change: Change::WithoutRate { link: at },
            chain: changed,
            command: line.clone(),
            line,
            undo: None,
        })
    }

    /// tar makes the same archive with `takeup backup`, which reads several files at once.
    fn takeup(&self, chain: &Chain) -> Option<Changed> {
        let typed = self.typed?;
        let is_tar = typed.programs.first().is_some_and(|it| it.name == "tar");
        let known = !chain.links.iter().any(|link| matches!(link.work, Work::Unknown(_)));
        let is_plain = !typed.is_special && typed.sources.iter().all(|path| !path.ends_with("."));
        let goes_somewhere = matches!(typed.target, TypedTarget::Path(_));
        let holds = chain.links.iter().any(|link| matches!(link.work, Work::Holds { .. }));
        if !is_tar
            || !known
            || !is_plain
            || !goes_somewhere
            || holds
            || chain.source.reading == Reading::ManyAtOnce
        {
            return None;
        }
        let compressor = chain.links.iter().find(|it| matches!(it.work, Work::Compresses { .. }));
        let option = match compressor {
            None => String::new(),
            Some(link) => {
                let program = typed.programs.iter().find(|it| it.name == link.shown)?;
                format!(" --compress={}", own_compression(&program.words)?)
            }
        };
        // tar writes over a file that is there.
        let is_there = matches!(&typed.target, TypedTarget::Path(path) if path.is_file());
        let is_tape = matches!(chain.target, Target::Tape(_));
        let over = if is_there && !is_tape { " --overwrite" } else { "" };
        let mut changed = chain.clone();
        changed.source.reading = Reading::ManyAtOnce;
        let mut links = vec![Link {
            shown: "takeup".to_owned(),
            stage: 0,
            work: Work::Passes,
            read_bytes: 1 << 20,
            write_bytes: 1 << 20,
            input_bytes: RING_BYTES,
        }];
        if let Some(compressor) = compressor {
            let threads = chain.processors.max(1.0);
            let work = match (self.own, &compressor.work) {
                (Some(own), _) => Work::Compresses { rate: own.rate, ratio: own.ratio, threads },
                (None, Work::Compresses { rate, ratio, .. }) => {
                    Work::Compresses { rate: *rate, ratio: *ratio, threads }
                }
                (None, other) => other.clone(),
            };
            links.push(Link { work, shown: "takeup".to_owned(), ..links[0].clone() });
        }
        changed.links = links;
        let sources: Vec<String> =
            typed.sources.iter().map(|path| quoted(&path.to_string_lossy())).collect();
        let to = quoted(chain.target.shown());
        let line = format!("takeup backup {} --to {to}{over}{option}", sources.join(" "));
        Some(Changed {
            change: Change::TakeupBackup,
            chain: changed,
            command: Some(line.clone()),
            line: Some(line),
            undo: None,
        })
    }
}

/// The other programs and the kernel use the same cores.
fn shared(rate: Amount) -> Amount {
    Amount { typical: rate.typical * 0.9, low: rate.low * 0.7, high: rate.high * 1.15, ..rate }
}

/// `takeup pipe`.
fn buffer_link(block_bytes: u64, stage: usize) -> Link {
    Link {
        shown: "takeup pipe".to_owned(),
        stage,
        work: Work::Passes,
        read_bytes: 256 << 10,
        write_bytes: block_bytes,
        input_bytes: RING_BYTES,
    }
}

/// What `takeup backup --compress` calls the compressor of these words, with its level.
pub fn own_compression(words: &[String]) -> Option<String> {
    let name = match words.first()?.rsplit('/').next()? {
        "gzip" | "pigz" => "gzip",
        "zstd" => "zstd",
        _ => return None,
    };
    let mut level = None;
    for word in &words[1..] {
        let digits = word.strip_prefix('-').unwrap_or("");
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            // Threads are its own matter; anything else would make another result.
            (word.starts_with("-T") || word.starts_with("-p")).then_some(())?;
            continue;
        }
        level = Some(digits);
    }
    Some(level.map_or(name.to_owned(), |level| format!("{name}:{level}")))
}

/// A compressor's stage with another level.
fn with_level(stage: &str, level: &str) -> Option<String> {
    if stage.contains(['"', '\'', '\\', '`', '$', '(', '{']) {
        return None;
    }
    let (command, target) = match redirection(stage) {
        Some((command, target)) => (command, format!(" {target}")),
        None => (stage, String::new()),
    };
    let mut words = command.split_whitespace();
    let mut kept = vec![words.next()?.to_owned(), level.to_owned()];
    for word in words {
        let letters = word.strip_prefix('-').filter(|it| !it.starts_with(['-', 'T', 'p']));
        match letters {
            _ if matches!(word, "--fast" | "--best" | "-e" | "--extreme") => {}
            // Letters together: `-9c`.
            Some(letters) if letters.contains(|it: char| it.is_ascii_digit()) => {
                let rest = letters.trim_matches(|it: char| it.is_ascii_digit());
                if rest.contains(|it: char| it.is_ascii_digit()) {
                    return None;
                }
                kept.extend((!rest.is_empty()).then(|| format!("-{rest}")));
            }
            _ => kept.push(word.to_owned()),
        }
    }
    Some(kept.join(" ") + &target)
}

/// A tar that starts its own compressor, with another one.
fn within_tar(stage: &str, program: &str, instead: &str) -> Option<String> {
    if stage.contains(['"', '\'', '\\', '`', '$', '(', '{']) {
        return None;
    }
    let letter = match program {
        "gzip" => 'z',
        "bzip2" => 'j',
        "xz" => 'J',
        _ => return None,
    };
    let mut words: Vec<String> = stage.split_whitespace().map(str::to_owned).collect();
    // Of bsdtar, -I is a list of files.
    let is_gnu = matches!(words.first()?.rsplit('/').next(), Some("tar" | "gtar"));
    if !is_gnu || words.iter().any(|word| word == "--") {
        return None;
    }
    let letters = words.get_mut(1)?;
    // Values may be glued behind other letters.
    let is_plain = letters.trim_start_matches('-').chars().all(|it| "czjJvpSf".contains(it));
    if letters.starts_with("--")
        || !is_plain
        || !letters.ends_with('f')
        || !letters.contains(letter)
    {
        return None;
    }
    *letters = letters.replacen(letter, "", 1);
    words.push(format!("-I '{instead}'"));
    Some(words.join(" "))
}
