//! Whether a plan fits into the available time, and what would make it fit.

use base::format::{duration, rate, size};
use model::plan::alternatives::{Alternative, Effort};
use model::plan::{Plan, Setup};
use service::plan::TimeWindow;

/// The head of the column.
pub(super) fn title(window: &TimeWindow) -> String {
    format!("within {}", duration(window.seconds))
}

/// The time that is left, or missing.
pub(super) fn cell(window: &TimeWindow, plan: &Plan) -> String {
    let by = duration((window.seconds - plan.seconds).abs());
    if window.fits(plan) { format!("{by} left") } else { format!("{by} over") }
}

/// The lines on a plan and its alternatives; the first of `list` is the plan itself.
pub(super) fn lines(window: &TimeWindow, setup: &Setup, list: &[Alternative]) -> Vec<String> {
    let asked = &list[0].plan;
    let time = duration(window.seconds);
    let by = duration((window.seconds - asked.seconds).abs());
    let least = rate(setup.source.size_bytes as f64 / window.seconds);
    let bytes = size(setup.source.size_bytes);
    let told = if window.fits(asked) {
        format!("the plan fits into {time}, with {by} left")
    } else {
        format!("the plan does not fit into {time}: {by} too long")
    };
    let mut lines = vec![format!("{told}; {bytes} in that time need {least}")];
    if !window.fits(asked) {
        lines.push(ways(window, list));
    }
    lines.push(needed(window, setup, asked));
    lines
}

/// The alternatives that fit, by their effort.
fn ways(window: &TimeWindow, list: &[Alternative]) -> String {
    let of = |effort: Effort| window.ways(list, effort).join(", ");
    let told = [
        (Effort::Setting, "with settings alone"),
        (Effort::Procedure, "with more than settings"),
        (Effort::Hardware, "with other drives"),
    ];
    let told: Vec<String> = told
        .into_iter()
        .map(|(effort, words)| (of(effort), words))
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, words)| format!("{words}: {names}"))
        .collect();
    match &told[..] {
        [] => "none of the ways below fits".to_owned(),
        some => format!("it fits {}", some.join("; ")),
    }
}

fn needed(window: &TimeWindow, setup: &Setup, asked: &Plan) -> String {
    let fits = window.fits(asked);
    let source = match window.needs.source_bytes_per_second {
        Some(least) if fits => format!("a source of {} would still fit", rate(least as f64)),
        Some(least) => format!("a source of {} would fit", rate(least as f64)),
        None => "no source is fast enough for it".to_owned(),
    };
    let drives = match window.needs.drives {
        Some(drives) if drives == setup.drives => None,
        Some(1) => Some("one such drive is enough".to_owned()),
        Some(drives) => Some(format!("{drives} such drives are enough")),
        None => Some("no number of such drives is enough".to_owned()),
    };
    let drives = drives.map_or(String::new(), |drives| format!("; {drives}"));
    format!("with all else as given: {source}{drives}")
}
