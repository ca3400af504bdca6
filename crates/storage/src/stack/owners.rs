//! What sets a setting (udev, tuned, multipathd, lvm): a change by hand would be overwritten there.

use std::path::Path;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::udev::{self, Applies, Rule};
use super::{Layer, LayerKind, settings};
use machine::Machine;

/// What sets a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Owner {
    /// `udev`, `tuned`, `multipath.conf` or `lvm`.
    pub by: Cow<'static, str>,
    /// The file and line, as `FILE:LINE`.
    pub place: Option<String>,
    /// The value, as written there.
    pub value: Option<String>,
    /// Whether it surely applies to this device: a rule may have conditions that are not evaluated.
    pub is_sure: bool,
}

/// Maximum depth of tuned profiles that include each other.
const INCLUDED_MAX: usize = 8;
/// Folders of tuned profiles, in the order of precedence.
const PROFILES: &[&str] =
    &["etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"];
/// tuned's names of settings in a section for disks.
const TUNED: &[(&str, &str)] = &[("readahead", "read_ahead_kb"), ("elevator", "scheduler")];

pub(super) fn look(machine: &Machine, layers: &mut [Layer]) {
    let rules = udev::rules(machine);
    let tuned = tuned(machine);
    let multipath = machine.text(&machine.at("etc/multipath.conf")).unwrap_or_default();
    for layer in layers {
        let kind = layer.kind;
        let is_file_system = kind == LayerKind::FileSystem;
        let number = layer.fact("number").unwrap_or_default().to_owned();
        let folder = if is_file_system {
            machine.at("sys/class/bdi").join(number)
        } else {
            settings::folder(machine, layer)
        };
        let subsystem = if is_file_system { "bdi" } else { "block" };
        for (name, setting) in &mut layer.settings {
            setting.owners.extend(of_udev(machine, &rules, &folder, subsystem, name));
            // tuned sets block devices only, not file systems or network mounts.
            if !is_file_system {
                setting
                    .owners
                    .extend(tuned.iter().filter(|it| it.0 == *name).map(|it| it.1.clone()));
            }
            if kind == LayerKind::Lvm && *name == "read_ahead_kb" {
                setting.owners.push(told("lvm", None, None));
            }
            if kind == LayerKind::Multipath && *name == "max_sectors_kb" {
                setting.owners.extend(of_multipath(&multipath));
            }
        }
    }
}

/// What sets a setting of the block device in that sysfs folder, when it appears or later.
pub(crate) fn of_device(machine: &Machine, folder: &Path, name: &str) -> Vec<Owner> {
    let mut owners = of_udev(machine, &udev::rules(machine), folder, "block", name);
    owners.extend(tuned(machine).into_iter().filter(|it| it.0 == name).map(|it| it.1));
    owners
}

fn told(by: &'static str, place: Option<String>, value: Option<String>) -> Owner {
    Owner { by: by.into(), place, value, is_sure: true }
}

fn of_udev(
    machine: &Machine,
    rules: &[Rule],
    folder: &Path,
    subsystem: &str,
    name: &str,
) -> Vec<Owner> {
    let (queue, bdi, device) =
        (format!("queue/{name}"), format!("bdi/{name}"), format!("device/{name}"));
    let attributes: &[&str] = if subsystem == "bdi" { &[name] } else { &[&queue, &bdi, &device] };
    let owner = |rule: &Rule| {
        if !rule.sets(attributes) {
            return None;
        }
        let applies = rule.applies(machine, folder, subsystem);
        let place = format!("{}:{}", rule.file.display(), rule.line);
        let (place, value) = (Some(place), rule.value(attributes).map(str::to_owned));
        let is_sure = applies == Applies::Yes;
        (applies != Applies::No).then_some(Owner { by: "udev".into(), place, value, is_sure })
    };
    rules.iter().filter_map(owner).collect()
}

fn of_multipath(text: &str) -> Option<Owner> {
    let (index, line) = text
        .lines()
        .enumerate()
        .find(|(_, line)| line.trim_start().starts_with("max_sectors_kb"))?;
    let value = line.split_whitespace().nth(1).map(str::to_owned);
    let place = Some(format!("/etc/multipath.conf:{}", index + 1));
    // Its sections may apply to other devices only.
    Some(Owner { is_sure: false, ..told("multipath.conf", place, value) })
}

/// Settings of the active tuned profile and the profiles that it includes.
fn tuned(machine: &Machine) -> Vec<(&'static str, Owner)> {
    let active = machine.text(&machine.at("etc/tuned/active_profile")).unwrap_or_default();
    let mut open: Vec<String> = active.split_whitespace().map(str::to_owned).collect();
    let mut found = Vec::new();
    for _ in 0..INCLUDED_MAX {
        let Some(name) = open.pop() else { break };
        // A name must be a single folder, not a path.
        if name.contains('/') || name == ".." {
            continue;
        }
        let file = |folder: &&str| machine.at(folder).join(&name).join("tuned.conf");
        let Some(place) = PROFILES.iter().map(file).find(|it| it.exists()) else {
            continue;
        };
        of_profile(machine, &place, &mut open, &mut found);
    }
    found
}

fn of_profile(
    machine: &Machine,
    place: &Path,
    open: &mut Vec<String>,
    found: &mut Vec<(&'static str, Owner)>,
) {
    let text = machine.text(place).unwrap_or_default();
    let mut section = "";
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            section = name;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        if section == "main" && key == "include" {
            open.extend(value.split([',', ' ']).filter(|it| !it.is_empty()).map(str::to_owned));
        }
        let is_for_disks = section.starts_with("disk");
        if let Some((_, name)) = TUNED.iter().find(|(of, _)| is_for_disks && *of == key)
            // If an included profile has the same setting, the including profile wins.
            && !found.iter().any(|(of, _)| of == name)
        {
            let place = format!("{}:{}", machine.shown(place).display(), index + 1);
            found.push((name, told("tuned", Some(place), Some(value.to_owned()))));
        }
    }
}
