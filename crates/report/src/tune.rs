//! What `takeup tune` measured, set, shows and reverts, as text.

pub mod apply;
mod forecast;
pub mod persist;
pub mod queue;
pub mod read_ahead;
pub mod show;

use base::escape::escape;
use base::format::counted;
use experiment::judgement::{KEEP, Paid, UNDO};
use experiment::quantities::Unit;
use service::tune::TuneNotice;
use service::tune::changes::ListOwner;
use service::tune::confirm::TuneConfirmed;
use service::tune::gain::LevelGain;
use service::tune::measuring::MeasureEnding;
use storage::settings::changes::SettingsChange;

/// Something that the user must see while the command runs: whole lines.
pub fn notice(notice: &TuneNotice) -> String {
    match notice {
        TuneNotice::Recovered(count) => {
            let settings = counted(*count as u64, "setting", "settings");
            format!("takeup: restored {settings} that a killed experiment had changed\n")
        }
        TuneNotice::TrialOver { reverted, owner } => {
            let told = show::reverted_words(reverted, 0, *owner);
            let lines: String = told.lines().map(|line| format!("takeup: {line}\n")).collect();
            format!("takeup: a trial is over and was not confirmed:\n{lines}")
        }
        TuneNotice::Forecast(forecast) => format!("takeup: {}\n", forecast::text(forecast)),
    }
}

/// What was confirmed.
pub fn confirmed(confirmed: &TuneConfirmed) -> String {
    if confirmed.confirmed.is_empty() {
        return nothing_in_list("nothing is on trial", confirmed.owner);
    }
    let line = |change: &SettingsChange| format!("{}: stays\n", escape(change.for_path.as_bytes()));
    confirmed.confirmed.iter().map(line).collect::<String>() + &format!("undo: {UNDO}\n")
}

/// The message for an empty list. Each user has a list: a user who changed something with sudo
/// would search his own list in vain.
fn nothing_in_list(nothing: &str, owner: ListOwner) -> String {
    match owner {
        ListOwner::Root => format!("{nothing}\n"),
        ListOwner::User => format!("{nothing} in your list; root has a separate list\n"),
    }
}

/// The command that keeps settings over a restart, or the reason why nothing keeps them.
fn keep_line(why_not: Option<&str>) -> String {
    why_not.map_or_else(|| KEEP.to_owned(), |why| format!("not over a restart: {why}"))
}

/// The line for a recommendation that was not applied, because nothing is settled.
fn unsettled(ending: &MeasureEnding) -> &'static str {
    if ending.is_unsettled { "nothing was applied: increase --budget to settle more\n" } else { "" }
}

/// A cost in words.
fn cost_words(gain: &LevelGain<'_>, paid: &Paid) -> String {
    let shown = |value| Unit::of(paid.measure).shown(value);
    let (now, then) = (shown(paid.recommended), shown(paid.present));
    if now == then || gain.to_apply().is_none() {
        return format!("{}: {then}", paid.what);
    }
    let settled = if paid.is_settled { "" } else { "; not settled" };
    format!("{}: {now} instead of {then}{settled}", paid.what)
}
