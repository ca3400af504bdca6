//! A survey as a JSON document. Unknown values are null.

use base::finding::Finding;
use device::tape::limits::{Found, LimitedBy};
use device::tape::survey::{Answers, KernelView, Readiness, Survey, options};
use device::tape::{BlockMode, Compression};
use model::tape::generation::{Generation, Steps};
use serde_json::{Value, json};

use super::findings::recommended;
use crate::virtual_drive::VirtualDrive;

/// The whole document.
pub fn document(survey: &Survey, played: Option<&VirtualDrive>, findings: &[Finding]) -> Value {
    let answers = survey.answers.as_ref();
    let names = survey.names();
    let holder = match &survey.readiness {
        Readiness::Busy(Some(holder)) => json!({ "process": holder.process, "name": holder.name }),
        _ => Value::Null,
    };
    let advice = answers.map(|answers| recommended(&answers.limits));
    json!({
        "command": "probe",
        "device": survey.device,
        "node": survey.node,
        "state": state(&survey.readiness),
        "holder": holder,
        "drive": {
            "vendor": names.map(|names| &names.vendor),
            "product": names.map(|names| &names.product),
            "firmware": names.map(|names| &names.revision),
            "serial_number": answers.and_then(|answers| answers.serial_number.as_ref()),
            "generation": survey.drive_generation().map(generation),
            "buffer_bytes": answers
                .and_then(|answers| answers.sequential)
                .and_then(|page| page.buffer_bytes),
            "compression": answers.and_then(|answers| answers.compression).map(compression),
            "tape_alerts": answers.and_then(alerts),
            "as_set": played.map(VirtualDrive::document),
        },
        "medium": answers.filter(|answers| answers.status.online).map(|answers| {
            medium(survey, answers)
        }),
        "position": answers.filter(|answers| answers.status.online).map(position),
        "blocks": answers.map(blocks),
        "driver": driver(&survey.kernel),
        "recommended_block_bytes": advice.as_ref().map(|advice| advice.0),
        "recommended_because": advice.map(|advice| advice.1),
        "findings": findings,
        "unanswered": answers.map(|answers| {
            let list = answers.unanswered.iter();
            list.map(|(what, why)| json!({ "what": what, "why": why })).collect::<Vec<Value>>()
        }),
    })
}

fn state(readiness: &Readiness) -> &'static str {
    match readiness {
        Readiness::Ready => "ready",
        Readiness::Empty => "empty",
        Readiness::NotReady => "not ready",
        Readiness::Busy(_) => "busy",
    }
}

fn generation(generation: &Generation) -> Value {
    json!({
        "name": generation.name,
        "lowest_bytes_per_second": generation.lowest_speed(),
        "highest_bytes_per_second": generation.highest_speed(),
        "speeds_bytes_per_second": generation.speeds,
        "speeds_are_complete": generation.steps == Steps::All,
        "speeds_certainty": generation.speed_certainty.to_string(),
        "capacity_bytes": generation.capacity_bytes,
        "assumed_buffer_bytes": generation.buffer_bytes,
        "buffer_certainty": generation.buffer_certainty.to_string(),
    })
}

fn compression(compression: Compression) -> &'static str {
    match compression {
        Compression::On => "on",
        Compression::Off => "off",
        Compression::Unable => "unable",
    }
}

fn alerts(answers: &Answers) -> Option<Value> {
    let list = answers.alerts.as_ref()?.iter().map(|alert| {
        let severity = alert.severity.name();
        json!({ "flag": alert.flag, "severity": severity, "meaning": alert.meaning })
    });
    Some(list.collect())
}

fn medium(survey: &Survey, answers: &Answers) -> Value {
    let volume = answers.volume.clone().unwrap_or_default();
    json!({
        "density_code": answers.status.density,
        "generation": survey.medium_generation().map(generation),
        "write_protected": answers.status.write_protected,
        "write_once": volume.write_once,
        "barcode": volume.barcode,
        "serial_number": volume.serial_number,
        "manufacturer": volume.manufacturer,
        "personality": volume.personality,
        "loads": volume.loads,
        "capacity_bytes": volume.capacity_bytes,
        "used_bytes": volume.used_bytes,
        "written_bytes": volume.written_bytes,
        "read_bytes": volume.read_bytes,
        "write_errors": volume.write_errors,
        "read_errors": volume.read_errors,
        "write_ratio_percent": volume.write_ratio_percent,
    })
}

fn position(answers: &Answers) -> Value {
    let status = &answers.status;
    let told = answers.position;
    json!({
        "file_number": status.file_number,
        "block_in_file": status.block_in_file,
        "object": told.and_then(|position| position.object).or(answers.object),
        "at_beginning": status.at_beginning,
        "at_end_of_data": status.at_end_of_data,
        "behind_early_warning": told.map(|position| position.behind_early_warning),
    })
}

fn blocks(answers: &Answers) -> Value {
    let limits = &answers.limits;
    json!({
        "fixed_bytes": match answers.status.block_mode {
            BlockMode::Variable => None,
            BlockMode::Fixed(bytes) => Some(bytes),
        },
        "drive_bytes_min": limits.drive.bytes_min,
        "drive_bytes_max": limits.drive.bytes_max,
        "drive_limits_found": match limits.found {
            Found::Asked => "asked",
            Found::Tried => "tried",
            Found::Unknown => "unknown",
        },
        "transfer_bytes_max": limits.transfer_bytes_max,
        "transfer_bytes_sure": limits.transfer_bytes_sure,
        "largest_bytes": limits.block_bytes_max,
        "largest_is_limited_by": match limits.limited_by {
            LimitedBy::Drive => "drive",
            LimitedBy::Driver => "driver",
            LimitedBy::HostAdapter => "host adapter",
            LimitedBy::Fuse => "fuse",
        },
        "direct_bytes_max": limits.direct_bytes_max,
    })
}

fn driver(kernel: &KernelView) -> Value {
    let names = kernel.options.map(|set| {
        let named = options::NAMES.iter().filter(|(bit, _)| set & bit != 0);
        named.map(|(_, name)| *name).collect::<Vec<&str>>()
    });
    json!({
        "address": kernel.address,
        "host_driver": kernel.host_driver,
        "generic_device": kernel.generic_device,
        "options": names,
        "direct_io": kernel.direct_io,
        "written_bytes": kernel.statistics.map(|counters| counters.write_bytes),
        "write_ns": kernel.statistics.map(|counters| counters.write_ns),
        "read_bytes": kernel.statistics.map(|counters| counters.read_bytes),
        "read_ns": kernel.statistics.map(|counters| counters.read_ns),
    })
}
