//! Last lines of programs that say what they moved: `tar --totals`, pv, restic, rsync.

use super::number::{clock, grouped, leading, unit};
use super::{Before, Met};
use crate::piece::{Moved, Mover, What};

pub(super) fn totals(text: &str, _: &mut Before) -> Met {
    let line = text.trim();
    if line.starts_with("Prepare volume #") {
        return Met::Whole(What::NextVolume);
    }
    let readers: [fn(&str) -> Met; 4] = [of_tar, of_restic, of_rsync, of_pv];
    readers
        .iter()
        .map(|reader| reader(line))
        .find(|met| *met != Met::Nothing)
        .unwrap_or(Met::Nothing)
}

/// `Total bytes written: 10240 (10KiB, 2.1MiB/s)`
fn of_tar(line: &str) -> Met {
    let rest = line.strip_prefix("Total bytes written: ");
    let Some(rest) = rest.or_else(|| line.strip_prefix("Total bytes read: ")) else {
        return Met::Nothing;
    };
    let Some((bytes, rest)) = rest.split_once(' ') else {
        return Met::begun("totals of tar without their end");
    };
    if !rest.starts_with('(') {
        return Met::Nothing;
    }
    let rate = rest.strip_suffix("/s)").and_then(|it| it.rsplit_once(", ")).map(|(_, it)| it);
    let Some((bytes, rate)) = bytes.parse::<u64>().ok().zip(rate) else {
        return Met::begun("totals of tar without their end");
    };
    // `?/s` where no time had passed.
    let bytes_per_second = binary(rate).filter(|rate| *rate > 0.0);
    moved(Mover::Tar, bytes as f64, None, bytes_per_second)
}

/// `processed 1234 files, 5.600 GiB in 1:23`
fn of_restic(line: &str) -> Met {
    let Some(rest) = line.strip_prefix("processed ") else { return Met::Nothing };
    let Some((count, rest)) = rest.split_once(" files, ") else { return Met::Nothing };
    if count.parse::<u64>().is_err() {
        return Met::Nothing;
    }
    let read = rest.split_once(" in ").and_then(|(size, time)| {
        // Seconds have two digits.
        let is_whole = time.rsplit(':').next().is_some_and(|it| it.len() == 2);
        Some((binary(size)?, clock(time).filter(|_| is_whole && time.contains(':'))?))
    });
    match read {
        Some((bytes, seconds)) => moved(Mover::Restic, bytes, Some(seconds), None),
        None => Met::begun("the summary of restic without its time"),
    }
}

/// `sent 1,234,567 bytes  received 89 bytes  12,345.67 bytes/sec`
fn of_rsync(line: &str) -> Met {
    let Some(rest) = line.strip_prefix("sent ") else { return Met::Nothing };
    let words: Vec<&str> = rest.split_whitespace().collect();
    match words[..] {
        [sent, "bytes", "received", received, "bytes", rate, "bytes/sec"] => {
            let decimals = rate.rsplit_once(['.', ',']).filter(|(_, cents)| cents.len() == 2);
            let rate = decimals.and_then(|(whole, cents)| {
                Some(grouped(whole)? as f64 + cents.parse::<u32>().ok().map(f64::from)? / 100.0)
            });
            let bytes = grouped(sent).zip(grouped(received)).map(|(a, b)| a.saturating_add(b));
            match bytes.zip(rate) {
                Some((bytes, rate)) => moved(Mover::Rsync, bytes as f64, None, Some(rate)),
                None => Met::begun("the last lines of rsync with rounded numbers (-h)"),
            }
        }
        [_, "bytes", "received", ..] => Met::begun("the last lines of rsync without a rate"),
        _ => Met::Nothing,
    }
}

/// ` 1.95GiB 0:00:10 [ 199MiB/s] [=====>] 100%`
fn of_pv(line: &str) -> Met {
    let mut words = line.split_whitespace();
    let mut next = || words.next().unwrap_or_default();
    let first = next();
    // -N
    let label = first.strip_suffix(':').filter(|it| !it.is_empty());
    let size = if label.is_some() { next() } else { first };
    let time = next();
    let is_size = size.ends_with('B') && leading(size).is_some();
    let Some(seconds) = clock(time).filter(|_| is_size && time.matches(':').count() == 2) else {
        return Met::Nothing;
    };
    let Some((_, rest)) = line.split_once(time) else { return Met::Nothing };
    let rate = rest.trim_start().strip_prefix('[').and_then(|it| it.split_once("/s]"));
    let Some((rate, _)) = rate else { return Met::begun("a line of pv without its rate") };
    match binary(size).zip(binary(rate.trim())) {
        Some((bytes, rate)) => Met::Whole(What::Moved(Moved {
            mover: Mover::Pv,
            label: label.unwrap_or_default().to_owned(),
            bytes,
            seconds: Some(seconds),
            bytes_per_second: Some(rate),
        })),
        None => Met::begun("a line of pv whose units may count in powers of 1000 or of 1024"),
    }
}

fn moved(mover: Mover, bytes: f64, seconds: Option<f64>, bytes_per_second: Option<f64>) -> Met {
    let label = String::new();
    Met::Whole(What::Moved(Moved { mover, label, bytes, seconds, bytes_per_second }))
}

/// A size in units of 1024: `5.600 GiB`, `512B`.
fn binary(text: &str) -> Option<f64> {
    let (number, name) = leading(text)?;
    let name = name.trim();
    let is_sure = name == "B" || name.ends_with("iB");
    let (_, factor) = unit(name).filter(|_| is_sure)?;
    Some(number * factor)
}
