//! The arguments of `takeup watch`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use service::watch::{INTERVAL_SECONDS, WatchRequest};

/// Show what block devices do, and say what the numbers mean
///
/// Prints all columns of `iostat -x`, and below each busy device what they mean. Idle devices are
/// hidden. DEVICE is a name (sda), a node (/dev/mapper/home) or a path on a file system; the
/// devices below it are included. Without DEVICE, Takeup watches all disks, including those that
/// appear later.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup watch
  takeup watch sda /srv --interval 5s
  takeup watch sda --interval 5s --count 2 --json | jq -c '.devices[].findings[].sentence'
  takeup watch --record night.ndjson --interval 10s >/dev/null
  takeup watch --from night.ndjson")]
pub struct WatchArgs {
    /// Devices to watch
    #[arg(value_name = "DEVICE")]
    devices: Vec<OsString>,
    /// Time between two readings, from 100ms to a day, such as 500ms, 5s, 1m [default: 1s]
    #[arg(long, value_name = "TIME", conflicts_with = "from")]
    interval: Option<Pause>,
    /// End after this many intervals
    #[arg(long, value_name = "N", value_parser = intervals)]
    pub count: Option<u64>,
    /// Record the readings in a new file
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    record: Option<PathBuf>,
    /// Replay such a file
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Use the whole terminal: the default on a terminal without --count, --plain and --json
    #[arg(long, help_heading = "Output", conflicts_with_all = ["json", "plain"])]
    pub screen: bool,
    /// Print lines, even on a terminal
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    pub plain: bool,
    /// Print one JSON object per interval, each on one line
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Colours, bold and dim: auto is on a terminal, unless NO_COLOR is set or TERM is dumb
    #[arg(long, help_heading = "Output", value_name = "WHEN", default_value = "auto")]
    pub color: When,
}

/// When there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
// The help would print documentation of the variants.
pub enum When {
    Auto,
    Always,
    Never,
}

impl WatchArgs {
    /// What is asked for.
    pub fn request(&self) -> WatchRequest {
        WatchRequest {
            devices: self.devices.iter().map(PathBuf::from).collect(),
            interval_seconds: self.interval.map(|pause| pause.0),
            count: self.count,
            record: self.record.clone(),
            from: self.from.clone(),
        }
    }
}

/// The time between two readings, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pause(f64);

impl FromStr for Pause {
    type Err = String;

    fn from_str(text: &str) -> Result<Pause, String> {
        let digits = text.bytes().take_while(|it| it.is_ascii_digit() || *it == b'.').count();
        let (number, unit) = text.split_at(digits);
        let factor = match unit {
            "ms" => 1e-3,
            "" | "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => f64::NAN,
        };
        let seconds = number.parse::<f64>().map_or(f64::NAN, |number| number * factor);
        if INTERVAL_SECONDS.contains(&seconds) {
            Ok(Pause(seconds))
        } else {
            Err("use a time from 100ms to 24h with ms, s, m or h, such as 5s".to_owned())
        }
    }
}

fn intervals(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("use a number of 1 or more; without --count there is no end".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_looks() {
        let seconds = |text: &str| text.parse::<Pause>().ok().map(|pause| pause.0);
        for (text, expected) in [("500ms", 0.5), ("5s", 5.0), ("2", 2.0), ("1.5m", 90.0)] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["", "s", "0", "99ms", "25h", "-1s", "5x", "1e3", "NaN"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
