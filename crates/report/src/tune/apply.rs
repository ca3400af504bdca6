//! Settings that were set, with the values read back, as text.

use base::escape::escape;
use base::format::duration;
use experiment::judgement::UNDO;
use service::tune::CONFIRM;
use service::tune::apply::{Applied, SecondLook};
use storage::settings::SettingKind;
use storage::settings::changes::Now;

/// The whole text.
pub fn text(applied: &Applied) -> String {
    if applied.now.is_empty() {
        return "all values are in force already: nothing was changed\n".to_owned();
    }
    let when = when(&applied.second);
    let mut text = String::new();
    for (now, later) in applied.now.iter().zip(&applied.later) {
        let Some(set) = &now.changed.set else {
            if later.value.as_ref().is_some_and(|value| *value != now.changed.before) {
                text.push_str(&brought_along(later));
            }
            continue;
        };
        text.push_str(&format!("{}: {}", setting_name(now), step(now, set)));
        if !now.holds() {
            text.push_str(&format!("; the kernel set {}", held(now)));
        }
        if later.value != now.value {
            text.push_str(&format!(", and {when} it is {}", held(later)));
        }
        text.push('\n');
    }
    if applied.holds() {
        text.push_str(&format!("read back at once and {when}: all as set\n"));
    } else {
        text.push_str("another program sets it too: check udev, tuned, lvm and multipathd\n");
    }
    text + &match applied.left_seconds() {
        None => format!("undo: {UNDO}\n"),
        Some(seconds) => {
            let left = duration(seconds);
            format!("undo: automatic in {left} unless `{CONFIRM}`; at once: {UNDO}\n")
        }
    }
}

/// When the values were read the second time.
fn when(second: &SecondLook) -> String {
    let udev = if second.is_after_udev { "after `udevadm settle` and " } else { "" };
    let stopped = if second.wait.is_stopped { ", when you stopped it" } else { "" };
    format!("{udev}after {}{stopped}", duration(second.wait.seconds))
}

/// A setting that the kernel changed along with a requested one.
fn brought_along(now: &Now) -> String {
    let from = now.changed.kind.with_unit(&now.changed.before);
    let with = if SettingKind::Scheduler.resets().contains(&now.changed.kind) {
        "the kernel resets it with the scheduler"
    } else {
        "the kernel resets it with the limits"
    };
    format!("{}: {from} -> {}; {with}\n", setting_name(now), held(now))
}

/// `sdb read-ahead`.
pub(super) fn setting_name(now: &Now) -> String {
    let name = now.name.as_ref().unwrap_or(&now.changed.device.name);
    format!("{} {}", escape(name.as_bytes()), now.changed.kind.name())
}

/// The old and the new value.
pub(super) fn step(now: &Now, set: &str) -> String {
    let (kind, before) = (now.changed.kind, &now.changed.before);
    if now.asks_for_default() {
        return format!("{} -> {}, the kernel's default", kind.with_unit(before), held(now));
    }
    match kind.with_unit(set) {
        same if before == set => format!("{same}, kept"),
        other => format!("{} -> {other}", kind.with_unit(before)),
    }
}

/// The value in force, in words.
pub(super) fn held(now: &Now) -> String {
    match &now.value {
        Some(value) => now.changed.kind.with_unit(value),
        None => "unreadable".to_owned(),
    }
}
