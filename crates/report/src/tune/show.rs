//! Changed settings, and what was reverted, as text.

use base::escape::escape;
use base::format::{counted, duration};
use experiment::judgement::UNDO;
use service::tune::CONFIRM;
use service::tune::changes::ListOwner;
use service::tune::revert::TuneReverted;
use service::tune::show::{ShownChange, ShownTrial, TuneShown};
use storage::settings::Pending;
use storage::settings::changes::{Left, Now, Reverted};

use super::apply::{held, setting_name, step};
use super::nothing_in_list;

/// Changed settings, and whether they still hold.
pub fn text(shown: &TuneShown) -> String {
    let changes = &shown.changes;
    let one = |at: usize| words(&changes[at], &changes[at + 1..], shown.now_unix_seconds);
    let text: String = (0..changes.len()).map(one).collect();
    let text = text + &shown.pending.as_ref().map_or(String::new(), pending_words);
    if text.is_empty() {
        nothing_in_list("Takeup has changed no setting", shown.owner)
    } else {
        text
    }
}

/// Settings that an experiment has changed at the moment.
fn pending_words(pending: &Pending) -> String {
    let Pending { pid, runs, what } = pending;
    if *runs {
        format!("process {pid}, an experiment: has changed {what} until it ends\n")
    } else {
        format!("{what}: left changed by a killed experiment (process {pid}); to restore: {UNDO}\n")
    }
}

/// A change with the present values; `later` are the changes after it.
fn words(shown: &ShownChange, later: &[ShownChange], now_unix_seconds: u64) -> String {
    let is_anew = |one: &Now| {
        let same = |other: &&Now| {
            other.changed.kind == one.changed.kind
                && other.changed.device.name == one.changed.device.name
        };
        let after = later.iter().flat_map(|later| &later.now).find(same);
        after.is_some_and(|it| it.changed.set.is_some())
    };
    let change = &shown.change;
    let ago = duration(now_unix_seconds.saturating_sub(change.made_unix_seconds) as f64);
    let mut text = format!("{ago} ago for {}\n", escape(change.for_path.as_bytes()));
    if let Some(trial) = &shown.trial {
        text.push_str(&format!("  {}\n", trial_words(trial)));
    }
    for one in &shown.now {
        let Some(set) = &one.changed.set else { continue };
        let state = match (&one.name, one.holds()) {
            (None, _) => "the device is gone".to_owned(),
            (_, true) => "holds".to_owned(),
            (_, false) if is_anew(one) => format!("is {} now: changed again below", held(one)),
            (_, false) => format!("is {} now: set by the kernel or another program", held(one)),
        };
        text.push_str(&format!("  {}: {}, {state}\n", setting_name(one), step(one, set)));
    }
    text
}

/// When a change on trial is restored, and by which process.
fn trial_words(trial: &ShownTrial) -> String {
    let time = duration(trial.left.as_secs_f64());
    let pid = trial.guard_pid;
    match (trial.left.is_zero(), trial.is_guarded) {
        (false, true) => format!("on trial: restored in {time} unless `{CONFIRM}`"),
        (false, false) => format!(
            "on trial for {time}: the guard (process {pid}) has died; the next `takeup tune` after \
             that time restores it, unless `{CONFIRM}`; at once: {UNDO}"
        ),
        (true, true) => format!("on trial, and overdue: process {pid} is about to restore it"),
        (true, false) => format!(
            "on trial, and overdue: the guard (process {pid}) has died; the next `takeup tune` \
             restores it; at once: {UNDO}"
        ),
    }
}

/// What was reverted.
pub fn reverted(reverted: &TuneReverted) -> String {
    let removed = reverted.removed().map_or(String::new(), |file| format!("{file}: removed\n"));
    match reverted_words(&reverted.reverted, reverted.forgotten, reverted.owner) {
        // The restore after the experiment is reported already.
        text if text.starts_with(NOTHING) && reverted.recovered > 0 => removed,
        text => removed + &text,
    }
}

const NOTHING: &str = "nothing to revert";

/// The result of a revert, in lines.
pub(super) fn reverted_words(reverted: &Reverted, forgotten: usize, owner: ListOwner) -> String {
    let name = |left: &Left| {
        let device = escape(left.changed.device.name.as_bytes());
        format!("{device} {}", left.changed.kind.name())
    };
    let shown = |left: &Left, value: &Option<String>| match value {
        Some(value) => left.changed.kind.with_unit(value),
        None => "unknown".to_owned(),
    };
    let mut text = String::new();
    // Settings that the kernel could have reset, but did not, are not shown.
    let mut told = 0;
    for left in &reverted.put_back {
        told += u64::from(
            left.found.as_ref() != Some(&left.changed.before) || left.changed.set.is_some(),
        );
        let before = Some(left.changed.before.clone());
        if left.found != before {
            let (from, to) = (shown(left, &left.found), shown(left, &before));
            text.push_str(&format!("{}: {from} -> {to}\n", name(left)));
        } else if left.changed.set.is_some() {
            let value = shown(left, &before);
            text.push_str(&format!("{}: already {value}\n", name(left)));
        }
    }
    for left in &reverted.forgotten {
        let found = shown(left, &left.found);
        text.push_str(&format!(
            "{}: {found} since the device or the machine restarted, not changed\n",
            name(left)
        ));
    }
    for left in &reverted.theirs {
        let found = shown(left, &left.found);
        text.push_str(&format!(
            "{}: {found}, set by another program during the trial, not changed\n",
            name(left)
        ));
    }
    for left in reverted.gone.iter().filter(|left| left.changed.set.is_some()) {
        let before = shown(left, &Some(left.changed.before.clone()));
        let rest = if forgotten > 0 {
            "removed from the list".to_owned()
        } else {
            format!("restore {before} when it is back, or use --forget")
        };
        text.push_str(&format!("{}: the device is gone; {rest}\n", name(left)));
    }
    if text.is_empty() {
        return nothing_in_list(NOTHING, owner);
    }
    if told == 0 {
        return text;
    }
    text + &format!("{} restored\n", counted(told, "setting", "settings"))
}
