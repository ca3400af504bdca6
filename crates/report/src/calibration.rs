//! The parameters of a drive or a disk that an experiment shows, and the others.

use base::format::{counted, percent, rate, size};
use base::rounding::Rounding;
use experiment::quantities::Unit;
use loads::calibrate::disk::shown_bound;
use loads::calibrate::{Beyond, NotTold, SPEEDS, Told};
use model::tape::parameters::TapeParameters;
use service::calibration::FromRuns;
use service::calibration::disk::DiskFromRuns;

use crate::table::{Align, Emphasis, Style, Table};

/// The parameters of a drive that the runs show, and the others.
pub fn drive(from: &FromRuns, style: Style) -> String {
    let found = &from.calibration;
    let runs = counted(found.runs as u64, "run", "runs");
    let mut text = format!("drive from {}: {runs} on {}\n", from.path.display(), found.drive);
    text.push_str(&table(&found.told).render(style));
    let generation = from.generation.title();
    text.push_str(&format!("not measured by these runs, so taken from {generation}:\n"));
    text.push_str(&reasons(&found.not_told));
    out_of_reach(from).iter().for_each(|line| text.push_str(&format!("{line}\n")));
    beside(from).iter().for_each(|line| text.push_str(&format!("{line}\n")));
    text
}

/// The parameters of a disk that the runs show, the lower bounds, and the other parameters.
pub fn disk(from: &DiskFromRuns, style: Style) -> String {
    let found = &from.calibration;
    let runs = counted(found.runs as u64, "run", "runs");
    let mut text = format!("disk from {}: {runs} on {}\n", from.path.display(), found.disk);
    text.push_str(&table(&found.told).render(style));
    if !found.bounds.is_empty() {
        text.push_str(&format!(
            "at least this, or the value of {} if that is higher:\n",
            from.preset
        ));
    }
    for bound in &found.bounds {
        let (name, least) = (bound.parameter, shown_bound(bound));
        text.push_str(&format!("  {name}: {least}; {}\n", bound.why));
    }
    text.push_str(&format!("not measured by these runs, so taken from {}:\n", from.preset));
    text.push_str(&reasons(&found.not_told));
    text
}

/// Values of the generation that the runs rule out.
fn out_of_reach(from: &FromRuns) -> Vec<String> {
    let line = |beyond: Beyond| {
        let Beyond { parameter, assumed, nearest } = beyond;
        let [assumed, nearest] = [assumed, nearest].map(|value| quantity(parameter, value));
        let title = from.generation.title();
        format!("{parameter} is not {assumed}, the value of {title}; the model uses {nearest}")
    };
    from.out_of_reach().into_iter().map(line).collect()
}

/// Other facts that the runs show.
fn beside(from: &FromRuns) -> Vec<String> {
    let found = &from.calibration;
    let mut lines = Vec::new();
    if let Some(above) = from.unexpected_speed() {
        let table = TapeParameters::of(from.generation).highest_bytes_per_second() as f64;
        let side = if above < 0.0 { "below" } else { "above" };
        lines.push(format!(
            "its highest speed is {} {side} that of {} ({}): check the drive and the medium",
            percent(above.abs()),
            from.generation.title(),
            rate(table)
        ));
    }
    for one in found.ratios.iter().filter(|one| one.data != "random") {
        lines.push(format!("the drive compresses {:.2}:1 with {}", one.value, one.data));
    }
    for one in &found.reads {
        let read = Rounding::within(one.interval.low, one.interval.high).rate(one.value);
        lines.push(format!(
            "{} are read back at {read}; the model has no parameter for it",
            one.data
        ));
    }
    lines
}

/// The fitted parameters, for people.
fn table(told: &[Told]) -> Table {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("parameter", Align::Left),
        right("value"),
        right("between"),
        right("runs"),
        ("from", Align::Left),
    ]);
    for told in told {
        let digits = Rounding::within(told.interval.low, told.interval.high);
        let [low, high] =
            [told.interval.low, told.interval.high].map(|end| shown(told, end, digits));
        let name = if told.parameter == SPEEDS { "the highest speed" } else { told.parameter };
        let cells = vec![
            name.to_owned(),
            shown(told, told.value, digits),
            format!("{low} and {high}"),
            told.runs.to_string(),
            told.from.clone(),
        ];
        table.row(cells, Emphasis::None);
    }
    table
}

/// The other parameters, a line for each reason.
fn reasons(not_told: &[NotTold]) -> String {
    let line = |one: &NotTold| format!("  {}: {}\n", one.parameters.join(", "), one.why);
    not_told.iter().map(line).collect()
}

/// An assumed parameter with its unit.
fn quantity(parameter: &str, value: u64) -> String {
    match Unit::of(parameter) {
        Unit::Nanoseconds => Rounding::digits(3).seconds(value as f64 / 1e9),
        Unit::BytesPerSecond => rate(value as f64),
        _ => size(value),
    }
}

fn shown(told: &Told, value: f64, digits: Rounding) -> String {
    match Unit::of(told.parameter) {
        Unit::Number => digits.number(value),
        Unit::BytesPerSecond => digits.rate(value),
        Unit::Nanoseconds => {
            Rounding::within(told.interval.low / 1e9, told.interval.high / 1e9).seconds(value / 1e9)
        }
        _ => size(value.max(0.0) as u64),
    }
}
