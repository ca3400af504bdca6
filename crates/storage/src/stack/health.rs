//! Health of disks as `smartctl` reports it. Without `smartctl`, or without permission, it is
//! unknown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Layer, LayerKind};
use machine::Machine;

/// Maximum number of disks to query; each query has the time limit of a program.
const DISKS_MAX: usize = 16;

/// The health of a disk. A value that the disk does not report is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Whether the disk reports itself as healthy.
    pub passed: Option<bool>,
    /// Degrees Celsius.
    pub temperature_celsius: Option<i64>,
    /// Hours that it was powered.
    pub power_on_hours: Option<u64>,
    /// Share of the rated life that is used, in percent; can exceed 100.
    pub used_percent: Option<u64>,
    /// Bad blocks that the disk has replaced.
    pub replaced_blocks: Option<u64>,
    /// Blocks that it cannot read; their data may be lost.
    pub unreadable_blocks: Option<u64>,
    /// Uncorrected medium errors in the life of the disk.
    pub medium_errors: Option<u64>,
}

pub(super) fn look(machine: &Machine, layers: &mut [Layer]) {
    let asked = |layer: &&mut Layer| {
        matches!(
            layer.kind,
            LayerKind::Nvme
                | LayerKind::Ata
                | LayerKind::Sas
                | LayerKind::FibreChannel
                | LayerKind::Scsi
                | LayerKind::Usb
        )
    };
    for layer in layers.iter_mut().filter(asked).take(DISKS_MAX) {
        let node = format!("/dev/{}", layer.name.replace('!', "/"));
        // Do not wake a disk that is in standby.
        let arguments = ["--json", "--nocheck=standby", "--health", "--attributes", &node];
        let answer = machine.answer("smartctl", &arguments);
        layer.health = answer.and_then(|text| parse(&text));
    }
}

/// Health in the output of `smartctl --json`.
fn parse(text: &str) -> Option<Health> {
    let told: Value = serde_json::from_str(text).ok()?;
    let number = |pointer: &str| told.pointer(pointer)?.as_u64();
    // ATA attributes by number; makers agree on the meaning of these (smartmontools).
    let attribute = |id: u64| {
        let table = told.pointer("/ata_smart_attributes/table")?.as_array()?;
        let row = table.iter().find(|row| row["id"] == id)?;
        // The raw number may contain other values too; the text begins with the right one.
        let words = row.pointer("/raw/string")?.as_str()?;
        words.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
    };
    let scsi_errors = || {
        let of = |what: &str| {
            number(&format!("/scsi_error_counter_log/{what}/total_uncorrected_errors"))
        };
        [of("read"), of("write")].into_iter().flatten().reduce(u64::saturating_add)
    };
    let health = Health {
        passed: told.pointer("/smart_status/passed").and_then(Value::as_bool),
        temperature_celsius: told.pointer("/temperature/current").and_then(Value::as_i64),
        power_on_hours: number("/power_on_time/hours"),
        used_percent: number("/nvme_smart_health_information_log/percentage_used"),
        replaced_blocks: attribute(5).or_else(|| number("/scsi_grown_defect_list")),
        unreadable_blocks: attribute(197),
        medium_errors: number("/nvme_smart_health_information_log/media_errors")
            .or_else(scsi_errors),
    };
    (health != Health::default()).then_some(health)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn disks_of_three_kinds() {
        let nvme = r#"{"smart_status":{"passed":true,"nvme":{"value":0}},
            "nvme_smart_health_information_log":{"percentage_used":3,"media_errors":0},
            "temperature":{"current":41},"power_on_time":{"hours":8123}}"#;
        let expected = Health {
            passed: Some(true),
            temperature_celsius: Some(41),
            power_on_hours: Some(8123),
            used_percent: Some(3),
            medium_errors: Some(0),
            ..Health::default()
        };
        assert_eq!(parse(nvme), Some(expected));
        let ata = r#"{"smart_status":{"passed":false},"ata_smart_attributes":{"table":[
            {"id":5,"name":"Reallocated_Sector_Ct","raw":{"value":4295032856,"string":"24 (1 7)"}},
            {"id":197,"name":"Current_Pending_Sector","raw":{"value":8,"string":"8"}}]}}"#;
        let found = parse(ata).unwrap();
        assert_eq!((found.passed, found.replaced_blocks), (Some(false), Some(24)));
        assert_eq!((found.unreadable_blocks, found.medium_errors), (Some(8), None));
        let scsi = r#"{"scsi_grown_defect_list":2,"scsi_error_counter_log":{
            "read":{"total_uncorrected_errors":1},"write":{"total_uncorrected_errors":4}}}"#;
        let found = parse(scsi).unwrap();
        assert_eq!((found.replaced_blocks, found.medium_errors), (Some(2), Some(5)));
        // The disk is absent, or smartctl may not open it.
        assert_eq!(parse(r#"{"smartctl":{"exit_status":2}}"#), None);
        assert_eq!(parse(""), None);
    }

    proptest! {
        #[test]
        fn no_answer_panics(text in "[\\[\\]{}a-z\":,0-9]{0,60}") {
            parse(&text);
        }
    }
}
