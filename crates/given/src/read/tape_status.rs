//! `mt status` of mt-st and of GNU cpio. Formats: mt.c of both.

use super::{Before, Met};
use crate::piece::{TapeStatus, What};

/// Names of the status bits, which stand behind their number.
const BITS: [&str; 13] = [
    "EOF",
    "BOT",
    "EOT",
    "SM",
    "EOD",
    "WR_PROT",
    "ONLINE",
    "D_6250",
    "D_1600",
    "D_800",
    "DR_OPEN",
    "IM_REP_EN",
    "CLN",
];
/// Longest first line: a name and `tape drive:`.
const NAME_BYTES_MAX: usize = 60;

pub(super) fn line(text: &str, _: &mut Before) -> Met {
    let line = text.trim();
    if line.ends_with(" tape drive:") && line.len() <= NAME_BYTES_MAX {
        return Met::Whole(What::TapeStatus(TapeStatus::Drive));
    }
    let begins = [
        ("File number=", position as fn(&str) -> Option<TapeStatus>),
        ("Tape block size ", mode),
        ("Soft error count since last status=", |it| {
            Some(TapeStatus::SoftErrors(it.parse().ok()?))
        }),
        ("General status bits on (", bits),
        ("drive status = ", status_of_cpio),
    ];
    for (begin, read) in begins {
        let Some(rest) = line.strip_prefix(begin) else { continue };
        return match read(rest) {
            Some(status) => Met::Whole(What::TapeStatus(status)),
            None => Met::Begun(format!("mt status without the end of its line `{}`", begin.trim())),
        };
    }
    of_no_use(line)
}

/// `0, block number=0, partition=0.`
fn position(rest: &str) -> Option<TapeStatus> {
    let (file, rest) = rest.split_once(", block number=")?;
    let block = rest.strip_suffix('.')?;
    let block = match block.split_once(", partition=") {
        Some((block, partition)) => partition.parse::<i64>().ok().map(|_| block)?,
        None => block,
    };
    Some(TapeStatus::Position { file: file.parse().ok()?, block: block.parse().ok()? })
}

/// `0 bytes. Density code 0x58 (no translation).`
fn mode(rest: &str) -> Option<TapeStatus> {
    let (block, rest) = rest.split_once(" bytes. Density code 0x")?;
    let (density, name) = rest.split_once(" (")?;
    name.ends_with(").").then_some(())?;
    let density = u8::from_str_radix(density, 16).ok()?;
    Some(TapeStatus::Mode { block_bytes: block.parse().ok()?, density })
}

/// `41010000):`
fn bits(rest: &str) -> Option<TapeStatus> {
    let digits = rest.strip_suffix("):")?;
    Some(TapeStatus::Bits(u32::from_str_radix(digits, 16).ok()?))
}

/// `mt_dsreg`: the density above the size of a block.
fn status_of_cpio(rest: &str) -> Option<TapeStatus> {
    let register: u32 = rest.parse().ok()?;
    let density = register.to_be_bytes()[0];
    Some(TapeStatus::Mode { block_bytes: register & 0xff_ffff, density })
}

/// Names of bits, and lines of cpio's that are of no use.
fn of_no_use(line: &str) -> Met {
    let words = line.split_whitespace();
    // A line with EOF alone ends a text in a shell.
    if !line.is_empty() && line != "EOF" && words.clone().all(|word| BITS.contains(&word)) {
        return Met::Whole(What::Passed);
    }
    let number = line.split_once(" = ").filter(|(name, _)| {
        matches!(*name, "sense key error" | "residue count" | "file number" | "block number")
    });
    if line.starts_with("drive type = ") {
        return Met::Whole(What::TapeStatus(TapeStatus::Drive));
    }
    match number {
        Some((_, value)) if value.parse::<i64>().is_ok() => Met::Whole(What::Passed),
        _ => Met::Nothing,
    }
}
