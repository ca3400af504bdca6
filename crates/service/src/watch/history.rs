//! The devices of a record as an answer.

use base::calendar::time_text;
use base::finding::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use watch::columns::{COLUMNS, Column};
use watch::compare::Spread;
use watch::history::{DeviceHistory, DeviceKind, History, NumberRange, Point, Spell, series};

/// A device. Times are in seconds after the first reading of any device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceHistoryAnswer {
    pub device: String,
    pub kind: DeviceKind,
    /// The devices directly below it.
    pub made_of: Vec<String>,
    /// Its first appearance.
    pub since_seconds: f64,
    /// Its last appearance.
    pub until_seconds: f64,
    /// How long it has numbers for.
    pub seconds: f64,
    /// How long it was busy.
    pub busy_seconds: f64,
    /// When it disappeared.
    pub gone_seconds: Vec<f64>,
    /// The columns over the busy intervals.
    pub columns: Vec<ColumnAnswer>,
    /// What stands out, and when.
    pub findings: Vec<SpellAnswer>,
    /// What it did over time.
    pub series: Vec<Point>,
}

/// A column over the busy intervals, named and counted as in `iostat -x -o JSON`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ColumnAnswer {
    /// Its key.
    pub column: String,
    /// Its values.
    #[serde(flatten)]
    pub spread: Spread,
}

/// A time in which a finding held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpellAnswer {
    /// Its beginning, in UTC.
    pub began: String,
    /// Its end, in UTC.
    pub ended: String,
    /// Its beginning.
    pub began_seconds: f64,
    /// Its end.
    pub ended_seconds: f64,
    /// Intervals with the finding, of `intervals` in all.
    pub spoken: u64,
    /// Intervals from its beginning to its end.
    pub intervals: u64,
    /// The lowest and the highest value of each number.
    pub ranges: Vec<NumberRange>,
    /// The finding of the interval in which the device moved the most.
    #[serde(flatten)]
    pub finding: Finding,
}

impl DeviceHistoryAnswer {
    /// All devices of a record.
    pub fn all(history: &History) -> Vec<DeviceHistoryAnswer> {
        history.devices.iter().map(|device| DeviceHistoryAnswer::of(history, device)).collect()
    }

    fn of(history: &History, device: &DeviceHistory) -> DeviceHistoryAnswer {
        let column = |column: &'static Column| {
            Some(ColumnAnswer { column: column.key.to_owned(), spread: device.spread(column)? })
        };
        DeviceHistoryAnswer {
            device: device.name.clone(),
            kind: device.kind,
            made_of: device.made_of.clone(),
            since_seconds: device.since_seconds,
            until_seconds: device.until_seconds,
            seconds: device.seconds,
            busy_seconds: device.busy_seconds(),
            gone_seconds: device.gone_seconds.clone(),
            columns: COLUMNS.iter().filter_map(column).collect(),
            findings: device.spells.iter().map(|spell| SpellAnswer::of(history, spell)).collect(),
            series: series(history, device),
        }
    }
}

impl SpellAnswer {
    fn of(history: &History, spell: &Spell) -> SpellAnswer {
        let time = |seconds: f64| time_text(history.unix_seconds(seconds));
        SpellAnswer {
            began: time(spell.began_seconds),
            ended: time(spell.ended_seconds),
            began_seconds: spell.began_seconds,
            ended_seconds: spell.ended_seconds,
            spoken: spell.spoken,
            intervals: spell.intervals,
            ranges: spell.numbers.clone(),
            finding: spell.finding.clone(),
        }
    }
}
