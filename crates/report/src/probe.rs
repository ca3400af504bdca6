//! A survey as lines of names and values, followed by the findings.

use base::escape::escape;
use base::format::{binary_size as block, rate, size};
use device::tape::limits::{Found, LimitedBy, Way};
use device::tape::survey::{Answers, Readiness, Survey, options};
use device::tape::{BlockMode, Compression};
use experiment::judgement::quoted;
use model::tape::generation::{Generation, Steps};
use service::probe::ProbedDrive;
use service::probe::findings::recommended;
use service::virtual_drive::VirtualDrive;

use crate::findings::list;
use crate::next;
use crate::prose::fitted;
use crate::table::Style;

#[cfg(test)]
mod tests;

/// The whole text.
pub fn text(drive: &ProbedDrive, style: Style) -> String {
    let ProbedDrive { survey, played, findings } = drive;
    let mut rows = drive_rows(survey, played.as_ref());
    if let Some(answers) = &survey.answers {
        rows.extend(medium_rows(survey, answers));
        rows.extend(block_rows(answers));
    }
    rows.extend(driver_rows(survey));
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in rows {
        text.push_str(&format!("{name:width$}  {}\n", escape(value.as_bytes())));
    }
    if let Some(answers) = &survey.answers {
        let (bytes, why) = recommended(&answers.limits);
        text.push_str(&format!("\nrecommended: --block-size {}: {why}\n", option(bytes)));
    }
    if !findings.is_empty() {
        text.push_str("\nwhat stands out:\n");
    } else if survey.answers.is_some() {
        text.push_str("\nnothing stands out\n");
    }
    let next = next::next(
        &format!("takeup diagnose SOURCE {}", quoted(&survey.node)),
        "what limits a backup to it",
    );
    fitted(&text, style) + &list(findings, style) + "\n" + &next
}

/// A block size in the form of the option.
fn option(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        _ => bytes.to_string(),
    }
}

/// Speeds of a generation; half-height drives are slower.
fn speeds(generation: &Generation, product: &str) -> String {
    let half_height = generation.half_height_speed_max.filter(|_| product.contains("HH"));
    let high = half_height.unwrap_or(generation.highest_speed());
    let within = generation.speeds.iter().filter(|speed| **speed <= high).count();
    let between = match generation.steps {
        Steps::All => format!("{within} steps up to"),
        Steps::Ends => "up to".to_owned(),
    };
    let (low, high) = (rate(generation.lowest_speed() as f64), rate(high as f64));
    format!("{low} at least, {between} {high}, {}", generation.speed_certainty)
}

type Row = (&'static str, String);

fn drive_rows(survey: &Survey, played: Option<&VirtualDrive>) -> Vec<Row> {
    let mut rows = Vec::new();
    let device = if survey.node == survey.device {
        survey.device.clone()
    } else {
        format!("{}, opened as {}, which does not rewind", survey.device, survey.node)
    };
    rows.push(("device", device));
    if let Some(names) = survey.names() {
        let (vendor, product, revision) = (&names.vendor, &names.product, &names.revision);
        rows.push(("drive", format!("{vendor} {product}, firmware {revision}")));
    }
    let answers = survey.answers.as_ref();
    if let Some(number) = answers.and_then(|answers| answers.serial_number.as_ref()) {
        rows.push(("serial number", number.clone()));
    }
    if let Some(generation) = survey.drive_generation() {
        rows.push(("generation", format!("{}, by the drive's name", generation.name)));
    }
    if let Some(drive) = played {
        rows.push(("drive's buffer", drive.buffer()));
    } else if let Some(bytes) =
        answers.and_then(|a| a.sequential).and_then(|page| page.buffer_bytes)
    {
        rows.push(("drive's buffer", format!("{}, reported by the drive", size(bytes))));
    } else if let Some(generation) = survey.drive_generation() {
        let (bytes, sure) = (generation.buffer_bytes, generation.buffer_certainty);
        rows.push(("drive's buffer", format!("{}, {sure}", size(bytes))));
    }
    let streaming = survey.medium_generation().or(survey.drive_generation());
    if let Some(drive) = played {
        rows.push(("streams at", drive.speeds()));
    } else if let Some(generation) = streaming {
        let product = survey.names().map_or("", |names| names.product.as_str());
        rows.push(("streams at", speeds(generation, product)));
    }
    rows.push((
        "state",
        match &survey.readiness {
            Readiness::Ready => "ready".to_owned(),
            Readiness::Empty => "empty".to_owned(),
            Readiness::NotReady => "not ready".to_owned(),
            Readiness::Busy(Some(holder)) => format!("in use by {holder}"),
            Readiness::Busy(None) => "in use".to_owned(),
        },
    ));
    if let Some(alerts) = answers.and_then(|answers| answers.alerts.as_ref()) {
        let flags: Vec<String> = alerts.iter().map(|alert| alert.flag.to_string()).collect();
        let told = if flags.is_empty() {
            "none".to_owned()
        } else {
            format!("{}; reading them cleared them in the drive", flags.join(", "))
        };
        rows.push(("TapeAlert", told));
    }
    rows
}

fn medium_rows(survey: &Survey, answers: &Answers) -> Vec<Row> {
    let status = &answers.status;
    let mut rows = Vec::new();
    if !status.online {
        return rows;
    }
    let density = status.density;
    rows.push((
        "medium",
        match survey.medium_generation() {
            Some(generation) => format!("{}, by density code {density:02x}h", generation.name),
            None => format!("not known, density code {density:02x}h"),
        },
    ));
    if let Some(volume) = &answers.volume {
        let mut facts = Vec::new();
        if let Some(barcode) = &volume.barcode {
            facts.push(format!("bar code {barcode}"));
        }
        if let (Some(used), Some(capacity)) = (volume.used_bytes, volume.capacity_bytes) {
            facts.push(format!("{} of {} in use", size(used), size(capacity)));
        }
        if let Some(loads) = volume.loads {
            facts.push(format!("loaded {loads} times"));
        }
        if let Some(bytes) = volume.written_bytes {
            facts.push(format!("{} written in its life", size(bytes)));
        }
        if !facts.is_empty() {
            rows.push(("volume", facts.join(", ")));
        }
    }
    rows.push(("write-protected", if status.write_protected { "yes" } else { "no" }.to_owned()));
    rows.push(("position", position(answers)));
    let mode = match status.block_mode {
        BlockMode::Variable => "variable: each write is a block".to_owned(),
        BlockMode::Fixed(bytes) => format!("fixed, {}", block(bytes.into())),
    };
    rows.push(("block mode", mode));
    rows.push((
        "compression",
        match answers.compression {
            Some(Compression::On) => "on",
            Some(Compression::Off) => "off",
            Some(Compression::Unable) => "not supported",
            None => "not known",
        }
        .to_owned(),
    ));
    rows
}

fn position(answers: &Answers) -> String {
    let status = &answers.status;
    let mut text = match (status.file_number, status.block_in_file) {
        (Some(0), Some(0)) if status.at_beginning => "at the beginning".to_owned(),
        (Some(file), Some(block)) => format!("file {file}, block {block}"),
        (Some(file), None) => format!("file {file}"),
        _ => "not known".to_owned(),
    };
    if status.at_end_of_data {
        text.push_str(", end of the data");
    }
    let told = answers.position.and_then(|position| position.object);
    if let Some(object) = told.or(answers.object).filter(|_| !status.at_beginning) {
        text.push_str(&format!(", object {object} of the medium"));
    }
    if answers.position.is_some_and(|position| position.behind_early_warning) {
        text.push_str(", behind early warning");
    }
    text
}

fn block_rows(answers: &Answers) -> Vec<Row> {
    let limits = &answers.limits;
    let range = match (limits.found, limits.drive.bytes_max) {
        (Found::Unknown, _) => "not known".to_owned(),
        (_, 0) => format!("{} and more", block(limits.block_bytes_min)),
        (_, bytes) => format!("{} to {}", block(limits.block_bytes_min), block(bytes.into())),
    };
    let transfer = match (limits.transfer_bytes_max, limits.transfer_bytes_sure) {
        (Some(bytes), _) => format!("{} at most", block(bytes)),
        (None, Some(bytes)) => format!("{} at least; the limit is unknown", block(bytes)),
        (None, None) => "not known".to_owned(),
    };
    let by = match limits.limited_by {
        LimitedBy::Drive => "the drive's limit",
        LimitedBy::Driver => "the driver's limit",
        LimitedBy::HostAdapter => "the host adapter's limit",
        LimitedBy::Fuse => "the limit of FUSE (fs.fuse.max_pages_limit)",
    };
    let direct = if limits.direct_bytes_max < limits.block_bytes_max {
        format!("; up to {} without a copy", block(limits.direct_bytes_max))
    } else {
        String::new()
    };
    let way = match limits.way {
        Way::HostAdapter => "adapter takes",
        Way::Fuse => "FUSE takes",
    };
    vec![
        ("drive takes", range),
        (way, transfer),
        ("largest block", format!("{}, {by}{direct}", block(limits.block_bytes_max))),
    ]
}

fn driver_rows(survey: &Survey) -> Vec<Row> {
    let kernel = &survey.kernel;
    let mut rows = Vec::new();
    let parts = [
        kernel.address.as_ref().map(|address| format!("st at {address}")),
        kernel.host_driver.clone(),
        kernel.generic_device.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    rows.push((
        "driver",
        if parts.is_empty() {
            "a file system in user space that simulates the drive".to_owned()
        } else {
            parts.join(", ")
        },
    ));
    if let Some(set) = kernel.options {
        let named = options::NAMES.iter().filter(|(bit, _)| set & bit != 0);
        let names: Vec<&str> = named.map(|(_, name)| *name).collect();
        rows.push(("driver options", names.join(", ")));
    }
    if let Some(direct) = kernel.direct_io {
        rows.push(("direct I/O", if direct { "used" } else { "switched off" }.to_owned()));
    }
    rows
}
