//! What a run adds about its tape, for people.

use base::calendar::time_text;
use base::escape::escape;
use base::format::{count, counted, duration, long_time, rate, size};
use runs::streaming::TapeSummary;
use service::tape_forecast::{TapeForecast, WaitedAnswer};
use tapeset::TapeReading;

/// Lines on a set that was written.
pub fn written(tape: &TapeSummary) -> String {
    let set = tape.set.get(..8).unwrap_or(&tape.set);
    let names: Option<Vec<&str>> = tape.media.iter().map(|it| it.name.as_deref()).collect();
    let names = names.filter(|names| !names.is_empty()).map(|names| names.join(", "));
    let volumes = match (tape.volumes, names) {
        (1, None) => String::new(),
        (1, Some(name)) => format!(" of {name}"),
        (more, None) => format!(" on {more} volumes"),
        (more, Some(names)) => format!(" on {more} volumes, {names}"),
    };
    let waited = match tape.write_seconds {
        Some(seconds) => format!(", {} in writes", duration(seconds)),
        None => String::new(),
    };
    let ready = if tape.ready_seconds >= SECONDS_WORTH_NAMING {
        let wound = duration((tape.ready_seconds - tape.label_seconds).max(0.0));
        format!(", {wound} for winding, {} for reading its label", duration(tape.label_seconds))
    } else {
        String::new()
    };
    let changed = if tape.change_seconds > 0.0 {
        format!(", {} for changes of volume", duration(tape.change_seconds))
    } else {
        String::new()
    };
    let flushed = if tape.synchronise_seconds >= SECONDS_WORTH_NAMING {
        format!(", {} for flushing until all was on the medium", duration(tape.synchronise_seconds))
    } else {
        ", all on the medium".to_owned()
    };
    format!(
        "tape: set {set} from file {}{volumes}: {}, {} of {} \
         ({}){ready}{waited}{changed}{flushed}\n{}\n",
        tape.file_number,
        counted(tape.segments.into(), "segment", "segments"),
        counted(tape.blocks, "block", "blocks"),
        size(tape.block_bytes),
        size(tape.bytes),
        tape.verdict,
    )
}

/// Shorter times beside the data are not reported.
const SECONDS_WORTH_NAMING: f64 = 0.1;

/// What a full ring meant for the drive. It reads on into its own buffer at its lowest speed, and
/// nobody tells when that was full: so this is what the model of the drive says.
fn behind(waited: Option<&WaitedAnswer>) -> String {
    let Some(waited) = waited else {
        return "reading waited for what takes the data; whether the drive stopped is not known\n"
            .to_owned();
    };
    let taken = rate(waited.taken_bytes_per_second);
    let stops = match waited.estimated_stops {
        0 => "the drive did not stop, as its own buffer took the rest".to_owned(),
        1 => "the drive stopped about once".to_owned(),
        more => format!("the drive stopped about {} times", count(more)),
    };
    let from = rate(waited.streams_from_bytes_per_second as f64);
    let remedy = match (waited.estimated_stops, waited.ring_without_stops_bytes) {
        (0, _) => String::new(),
        (_, Some(ring)) => format!(
            "--ring {} would have spared the stops, or a target that takes {from}\n",
            size_option(ring)
        ),
        (_, None) => format!(
            "no ring spares the stops of so much data: from {from} on, that drive never stops\n"
        ),
    };
    format!("its data were taken at {taken}; {stops} (by the model of {})\n{remedy}", waited.drive)
}

/// A power of two of bytes, as options take it.
fn size_option(bytes: u64) -> String {
    match bytes >> 20 {
        mib if mib >= 1024 && mib.is_multiple_of(1024) => format!("{}G", mib >> 10),
        mib => format!("{mib}M"),
    }
}

/// When a set began, behind its name.
pub fn begun(seconds: Option<u64>) -> String {
    let time = seconds.map(|seconds| time_text(seconds as i64));
    time.map(|time| format!(", begun {time} UTC")).unwrap_or_default()
}

/// What reading from tape needs, a line for each medium, behind the words on which set it is.
pub fn forecast(forecast: &TapeForecast) -> String {
    let media = counted(forecast.media.len() as u64, "medium", "media");
    let time = match (forecast.seconds, forecast.winding_seconds) {
        (Some(seconds), Some(wound)) => {
            format!(", {} in the drive, {} of it winding", long_time(seconds), duration(wound))
        }
        _ => String::new(),
    };
    let mut text = format!("{media}{time}\n");
    for (step, number) in forecast.media.iter().zip(1..) {
        let places = match step.places {
            0 => "from where the tape stands".to_owned(),
            some => format!("in {}", counted(some, "place", "places")),
        };
        let sets: Vec<String> = step
            .sets
            .iter()
            .map(|set| format!("volume {} of {}", set.volume, set_name(&set.name)))
            .collect();
        let seconds = step.seconds.map(|seconds| format!(", {}", long_time(seconds)));
        text.push_str(&format!(
            "{number:>3}  medium {}: {} {places}{}: {}\n",
            &step.medium[..8],
            size(step.bytes),
            seconds.unwrap_or_default(),
            sets.join(", "),
        ));
    }
    for name in &forecast.unknown {
        let name = set_name(name);
        text.push_str(&format!("where {name} is, is not known: its media are asked for\n"));
    }
    text.push_str(&speeds(forecast));
    text
}

/// Of which drive the times are, and what it asks of the target.
fn speeds(forecast: &TapeForecast) -> String {
    let (Some(drive), Some(from)) = (&forecast.drive, forecast.streams_from_bytes_per_second)
    else {
        return "no times: the drive, or what it holds, is not known\n".to_owned();
    };
    let from = rate(from as f64);
    let stops = match forecast.stops {
        None => format!("it streams where the target takes {from} or more"),
        Some(0) => "at that rate of the target it never stops".to_owned(),
        Some(stops) => format!(
            "at that rate of the target it stops {}; from {from} on, never",
            counted(stops, "time", "times")
        ),
    };
    format!("the times are those of {drive}, without the changes of medium\n{stops}\n")
}

/// The name of an archive, or the first digits of an id.
fn set_name(name: &str) -> String {
    let is_id = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { format!("set {}", &name[..12]) } else { escape(name.as_bytes()) }
}

/// Two lines on a tape that was read, or three where it had to wait.
pub fn read(tape: &TapeReading, waited: Option<&WaitedAnswer>) -> String {
    let what = match (&tape.set, tape.file_number) {
        (Some(set), _) => format!("set {}", &set[..set.len().min(8)]),
        (None, Some(number)) => format!("file {number}"),
        (None, None) => "a file".to_owned(),
    };
    let blocks = counted(tape.blocks, "block", "blocks");
    let mut text = format!("{what} of the tape in {}: {blocks}", tape.device);
    if tape.block_bytes > 0 {
        text.push_str(&format!(" of {}", size(tape.block_bytes)));
    }
    let winding_seconds = tape.ready_seconds - tape.label_seconds + tape.winding_seconds;
    if tape.ready_seconds + tape.winding_seconds >= SECONDS_WORTH_NAMING {
        let (wound, read) = (duration(winding_seconds), duration(tape.label_seconds));
        text.push_str(&format!(", {wound} for winding, {read} for reading its labels and index"));
    }
    if let Some(seconds) = tape.read_seconds {
        text.push_str(&format!(", {} in reads", duration(seconds)));
    }
    if tape.changes > 0 {
        text.push_str(&format!(
            ", {} of volume",
            counted(tape.changes.into(), "change", "changes")
        ));
    }
    if tape.lost_blocks > 0 {
        text.push_str(&format!(", {} unreadable", count(tape.lost_blocks)));
    }
    text.push('\n');
    text.push_str(&match tape.ring_was_full {
        0 => "the tape never had to wait\n".to_owned(),
        1 => format!("the ring was full once: {}", behind(waited)),
        more => format!("the ring was full {} times: {}", count(more), behind(waited)),
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::finding::Certainty;

    fn summary(bytes: u64, seconds: f64, ring_ran_empty: u64) -> TapeSummary {
        TapeSummary {
            set: "0123456789abcdef0123456789abcdef".into(),
            generation: Some("LTO-8".into()),
            lowest_bytes_per_second: Some(112_000_000),
            lowest_certainty: Some("by a maker's manual".into()),
            certainty: Some(Certainty::Told),
            block_bytes: 1 << 20,
            volumes: 2,
            segments: 3,
            blocks: bytes >> 20,
            bytes,
            streaming_seconds: seconds,
            synchronise_seconds: 2.5,
            write_seconds: Some(seconds / 2.0),
            ring_ran_empty,
            ..TapeSummary::default()
        }
        .judged()
    }

    #[test]
    fn sentences() {
        let short = TapeSummary { drive_buffer_bytes: Some(1 << 30), ..summary(1 << 30, 4.0, 0) };
        let unknown = TapeSummary { generation: None, ..summary(1 << 30, 4.0, 1) };
        let summaries = [
            summary(1 << 30, 4.0, 0),
            summary(1 << 30, 20.0, 0),
            summary(1 << 30, 20.0, 7),
            unknown.judged(),
            short.judged(),
        ];
        let texts: Vec<String> = summaries.iter().map(written).collect();
        insta::assert_snapshot!(texts.join("\n"));
    }

    #[test]
    fn a_flush_that_took_no_time_has_none() {
        let quick = TapeSummary { synchronise_seconds: 0.001, ..summary(1 << 30, 4.0, 0) };
        let text = written(&quick);
        assert!(text.contains(" in writes, all on the medium\n"), "{text}");
    }

    #[test]
    fn changes_of_volume_are_told_if_there_were_any() {
        let changed = TapeSummary { change_seconds: 95.0, ..summary(1 << 30, 4.0, 0) };
        let text = written(&changed);
        assert!(text.contains(", 1 min 35 s for changes of volume, "), "{text}");
        assert!(!written(&summary(1 << 30, 4.0, 0)).contains("changes"));
    }
}
