//! Findings about a tape drive: what matters, why, and what to do about it.
//!
//! Each rule reads a survey; nothing here queries or changes a device.

use base::finding::{Certainty, Finding, Rule, Severity, Unit};
use base::format::{binary_size as block, rate};
use device::tape::Compression;
use device::tape::limits::{DriveLimits, Found, LimitedBy, PREFERRED_BLOCK_BYTES};
use device::tape::survey::{Answers, Readiness, Survey, options};

use crate::outcome::certainty;
use crate::tape_end;
use crate::virtual_drive::VirtualDrive;

use super::rules;

/// A finding that the drive or the kernel reports.
fn told(rule: &'static Rule, what: impl Into<String>, why: impl Into<String>) -> Finding {
    Finding::new(rule, Certainty::Told, what).because(why)
}

/// The same, as a warning: the administrator should act.
fn warning(rule: &'static Rule, what: impl Into<String>, why: impl Into<String>) -> Finding {
    told(rule, what, why).severe(Severity::Warning)
}

/// All findings, the worst first.
pub fn findings(survey: &Survey, played: Option<&VirtualDrive>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = readiness(survey).into_iter().collect();
    findings.extend(driver(survey));
    if let Some(answers) = &survey.answers {
        findings.extend(alerts(answers));
        findings.extend(medium(survey, answers));
        findings.extend(streaming(survey, played, answers));
        findings.extend(blocks(survey, answers));
        findings.extend(answers.unanswered.iter().map(|(what, why)| {
            told(&rules::NO_ANSWER, format!("no answer about {what}"), why.clone())
        }));
    }
    // The sort is stable: findings of one severity keep their order.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// The block size to use, and why.
pub fn recommended(limits: &DriveLimits) -> (u64, String) {
    let bytes = limits.recommended_block_bytes();
    let who = limits.limited_by.name();
    let why = if bytes == PREFERRED_BLOCK_BYTES {
        "the driver sends it without a copy, and larger blocks are hardly faster".to_owned()
    } else if limits.block_bytes_max < PREFERRED_BLOCK_BYTES {
        format!("the {who} accepts {} at most", block(limits.block_bytes_max))
    } else {
        format!("the driver copies blocks larger than {}", block(limits.direct_bytes_max))
    };
    (bytes, why)
}

fn readiness(survey: &Survey) -> Option<Finding> {
    let not_asked = "a query would stop the tape, so takeup did not query the drive";
    Some(match &survey.readiness {
        Readiness::Ready => return None,
        Readiness::Empty => {
            told(&rules::EMPTY, "no medium", "the block mode and the position are unknown")
        }
        Readiness::NotReady => warning(
            &rules::NOT_READY,
            "the drive has a medium but is not ready",
            "it is loading the medium, or cannot read it",
        ),
        Readiness::Busy(Some(holder)) => {
            told(&rules::BUSY, format!("in use by {holder}"), not_asked)
        }
        Readiness::Busy(None) => told(&rules::BUSY, "in use", not_asked),
    })
}

fn driver(survey: &Survey) -> Vec<Finding> {
    let mut findings = Vec::new();
    let node = &survey.node;
    let set = survey.kernel.options.unwrap_or(0);
    if set & options::NO_WAIT_FILEMARKS != 0 {
        let what = "writing a filemark does not wait (option no-wait-eof)";
        let why = "no program can tell when its data are on the medium; takeup refuses to write";
        let finding = warning(&rules::FILEMARKS_DO_NOT_WAIT, what, why);
        findings.push(finding.with_command(format!("mt -f {node} stclearoptions 0x8000")));
    }
    if set & options::NO_WAIT != 0 {
        let what = "rewinding does not wait (option no-wait)";
        let why = "a rewind returns before it is done, and the next command may fail";
        let finding = warning(&rules::REWINDING_DOES_NOT_WAIT, what, why);
        findings.push(finding.with_command(format!("mt -f {node} stclearoptions no-wait")));
    }
    if set & options::TWO_FILEMARKS != 0 {
        let what = "the driver writes two filemarks at every close (option two-fms)";
        let why = "programs that append must first go back over the second one";
        findings.push(told(&rules::TWO_FILEMARKS, what, why));
    }
    if set & options::FAST_END_OF_DATA != 0 {
        let what = "the driver winds fast to the end of the data (option fast-eod)";
        let why = "it then does not know the file number; takeup counts again, which takes time";
        findings.push(told(&rules::FAST_END_OF_DATA, what, why));
    }
    if survey.kernel.direct_io == Some(false) {
        let why = "the driver copies every block";
        let finding = warning(&rules::NO_DIRECT_IO, "direct I/O is switched off", why);
        let command = "echo options st try_direct_io=1 > /etc/modprobe.d/takeup-st.conf";
        let action = format!("{command}, then reload st");
        findings.push(finding.with_action(action).with_command(command));
    }
    findings
}

fn alerts(answers: &Answers) -> Vec<Finding> {
    let mut findings: Vec<Finding> = answers.alerts.iter().flatten().map(tape_end::alert).collect();
    if answers.sequential.is_some_and(|page| page.cleaning == Some(true)) {
        findings.push(tape_end::cleaning());
    }
    findings
}

fn medium(survey: &Survey, answers: &Answers) -> Vec<Finding> {
    let mut findings = Vec::new();
    if answers.status.write_protected {
        let (what, why) = ("the medium is write-protected", "it can be read only");
        let finding = told(&rules::WRITE_PROTECTED, what, why);
        findings.push(finding.with_action("to write, move the switch on the cartridge"));
    }
    if let Some(volume) = &answers.volume {
        let errors = [("write", volume.write_errors), ("read", volume.read_errors)];
        for (what, count) in errors {
            if let Some(count) = count.filter(|count| *count > 0) {
                let what = format!("{count} uncorrected {what} errors in the life of the medium");
                let why = "data on it may be unreadable";
                let finding = warning(&rules::MEDIUM_ERRORS, what, why);
                let finding = finding.with_number("errors", count as f64, Unit::Count);
                findings.push(finding.with_action("copy its data, then use another medium"));
            }
        }
        if volume.write_once == Some(true) {
            let why = "data cannot be overwritten; a backup can only be appended";
            findings.push(told(&rules::WRITE_ONCE, "a write-once medium", why));
        }
    }
    if let (Some(drive), Some(medium)) = (survey.drive_generation(), survey.medium_generation())
        && drive.number > medium.number
    {
        let what = format!("an {} medium in an {} drive", medium.name, drive.name);
        let why = "it holds less and is slower than a medium of the drive's generation";
        findings.push(told(&rules::OLDER_MEDIUM, what, why));
    }
    findings
}

fn streaming(survey: &Survey, played: Option<&VirtualDrive>, answers: &Answers) -> Vec<Finding> {
    let mut findings = Vec::new();
    if answers.mode.is_some_and(|mode| mode.buffered_mode == 0) && answers.status.online {
        let why = "every block waits for the medium, so the drive stops after each block";
        let finding = warning(&rules::NOT_BUFFERED, "writes are not buffered", why);
        findings.push(finding.with_command(format!("mt -f {} drvbuffer 1", survey.node)));
    }
    let by_generation = survey
        .medium_generation()
        .map(|generation| (generation.lowest_speed(), certainty(generation.speed_certainty)));
    let by_itself = played.map(|drive| (drive.lowest_bytes_per_second, Certainty::Told));
    let Some((lowest, how_sure)) = by_itself.or(by_generation) else { return findings };
    let lowest = lowest as f64;
    let compresses = answers.compression == Some(Compression::On);
    let what = if compresses {
        format!(
            "a backup must deliver {}, or {} if the drive compresses to half",
            rate(lowest),
            rate(2.0 * lowest)
        )
    } else {
        format!("a backup must deliver {}", rate(lowest))
    };
    let why = "with less, the tape stops and winds back again and again (shoe-shining)";
    let mut finding =
        told(&rules::LOWEST_SPEED, what, why).with_number("lowest", lowest, Unit::BytesPerSecond);
    finding.certainty = how_sure;
    if compresses {
        let action = "for a slower source, use --drive-compression off, or --compress zstd";
        finding = finding.with_action(action);
    }
    findings.push(finding);
    findings
}

fn blocks(survey: &Survey, answers: &Answers) -> Vec<Finding> {
    let mut findings = Vec::new();
    let limits = &answers.limits;
    let way = match limits.limited_by {
        LimitedBy::HostAdapter => Some("the host adapter"),
        LimitedBy::Fuse => Some("FUSE"),
        LimitedBy::Drive | LimitedBy::Driver => None,
    };
    if let Some(way) = way.filter(|_| limits.block_bytes_max < PREFERRED_BLOCK_BYTES) {
        let what = format!("{way} transfers only {} at once", block(limits.block_bytes_max));
        let why = "more commands for the same data; tapes with larger blocks cannot be read";
        let finding = warning(&rules::SMALL_TRANSFERS, what, why);
        let largest = limits.block_bytes_max as f64;
        findings.push(finding.with_number("largest", largest, Unit::Bytes));
    }
    match limits.found {
        Found::Asked => {}
        Found::Tried => {
            let what = "the block size limits were found by trial";
            let why = "takeup could not query the drive, and set sizes until one was refused";
            findings.push(told(&rules::LIMITS_TRIED, what, why));
        }
        Found::Unknown => {
            let what = "the block size limits of the drive are unknown";
            let why = "takeup could not query the drive";
            let mut finding = warning(&rules::LIMITS_UNKNOWN, what, why);
            finding.certainty = Certainty::Unknown;
            findings.push(finding.with_action("run as root"));
        }
    }
    if let device::tape::BlockMode::Fixed(bytes) = answers.status.block_mode {
        let what = format!("the drive is set to a fixed block size of {bytes} bytes");
        let why = "an earlier program left it so; takeup sets its own size, tar and dd do not";
        let command = format!("mt -f {} setblk 0", survey.node);
        let finding = told(&rules::FIXED_BLOCKS, what, why)
            .with_number("block", bytes.into(), Unit::Bytes)
            .with_action(format!("{command} makes each write one block"));
        findings.push(finding.with_command(command));
    }
    findings
}
