//! What of all that is known about a drive matters, why, and what to do about it.
//!
//! Each rule looks at a survey and knows no device; nothing here is asked or changed.

use device::tape::Compression;
use device::tape::limits::{Found, LimitedBy, Limits, PREFERRED_BLOCK_BYTES};
use device::tape::scsi::alert::Severity;
use device::tape::survey::{Answers, Readiness, Survey, options};
use report::format::rate;

use super::text::block;

/// Something that stands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What is so.
    pub what: String,
    /// What follows from it.
    pub why: String,
    /// What to do, where there is something.
    pub action: Option<String>,
}

impl Finding {
    fn new(severity: Severity, what: impl Into<String>, why: impl Into<String>) -> Finding {
        Finding { severity, what: what.into(), why: why.into(), action: None }
    }

    fn warning(what: impl Into<String>, why: impl Into<String>) -> Finding {
        Finding::new(Severity::Warning, what, why)
    }

    fn information(what: impl Into<String>, why: impl Into<String>) -> Finding {
        Finding::new(Severity::Information, what, why)
    }

    fn with(self, action: impl Into<String>) -> Finding {
        Finding { action: Some(action.into()), ..self }
    }
}

/// All that stands out, the worst first.
pub fn findings(survey: &Survey) -> Vec<Finding> {
    let mut findings: Vec<Finding> = readiness(survey).into_iter().collect();
    findings.extend(driver(survey));
    if let Some(answers) = &survey.answers {
        findings.extend(alerts(answers));
        findings.extend(medium(survey, answers));
        findings.extend(streaming(survey, answers));
        findings.extend(blocks(answers));
        findings.extend(answers.unanswered.iter().map(|(what, why)| {
            Finding::information(format!("no answer about {what}"), why.clone())
        }));
    }
    // Stable: rules of one severity stay in their order.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// The block size to use, and why.
pub fn recommended(limits: &Limits) -> (u64, String) {
    let bytes = limits.recommended_block_bytes();
    let who = limits.limited_by.name();
    let why = if bytes == PREFERRED_BLOCK_BYTES {
        "the driver passes it on without a copy, and larger ones gain next to nothing".to_owned()
    } else if limits.block_bytes_max < PREFERRED_BLOCK_BYTES {
        format!("the {who} takes {} at most", block(limits.block_bytes_max))
    } else {
        format!("the driver would have to copy more than {}", block(limits.direct_bytes_max))
    };
    (bytes, why)
}

fn readiness(survey: &Survey) -> Option<Finding> {
    let not_asked = "a command would make it stop, so it was not asked anything";
    Some(match &survey.readiness {
        Readiness::Ready => return None,
        Readiness::Empty => {
            Finding::information("no medium", "nothing can be said about blocks on it")
        }
        Readiness::NotReady => Finding::warning(
            "the drive has a medium and is not ready",
            "it is loading, or cannot read the medium",
        ),
        Readiness::Busy(Some(holder)) => {
            Finding::information(format!("in use by {holder}"), not_asked)
        }
        Readiness::Busy(None) => Finding::information("in use", not_asked),
    })
}

fn driver(survey: &Survey) -> Vec<Finding> {
    let mut findings = Vec::new();
    let node = &survey.node;
    let set = survey.kernel.options.unwrap_or(0);
    if set & options::NO_WAIT_FILEMARKS != 0 {
        let why = "no program can know when its data are on the medium; takeup refuses to write";
        let action = format!("mt -f {node} stclearoptions 0x8000");
        findings.push(Finding::warning("filemarks do not wait", why).with(action));
    }
    if set & options::NO_WAIT != 0 {
        let why = "a rewind returns before the tape is there, and the next command may fail";
        let action = format!("mt -f {node} stclearoptions no-wait");
        findings.push(Finding::warning("rewinding does not wait", why).with(action));
    }
    if set & options::TWO_FILEMARKS != 0 {
        let why = "programs that leave the filemark to the driver get a second one, which an \
                   append of theirs has to overwrite";
        findings.push(Finding::information("two filemarks at every close", why));
    }
    if set & options::FAST_END_OF_DATA != 0 {
        let why = "the driver loses the number of the file; takeup counts anew, which takes time";
        findings.push(Finding::information("the end of the data is found fast", why));
    }
    if survey.kernel.direct_io == Some(false) {
        let why = "the driver copies every block";
        let action = "echo options st try_direct_io=1 > /etc/modprobe.d/st.conf, then reload st";
        findings.push(Finding::warning("direct I/O is switched off", why).with(action));
    }
    findings
}

fn alerts(answers: &Answers) -> Vec<Finding> {
    let mut findings: Vec<Finding> = answers
        .alerts
        .iter()
        .flatten()
        .map(|alert| {
            let what = format!("TapeAlert {}", alert.flag);
            Finding::new(alert.severity, what, alert.meaning)
        })
        .collect();
    if answers.sequential.is_some_and(|page| page.cleaning == Some(true)) {
        let finding = Finding::warning("the drive asks to be cleaned", "errors become more likely");
        findings.push(finding.with("load a cleaning cartridge"));
    }
    findings
}

fn medium(survey: &Survey, answers: &Answers) -> Vec<Finding> {
    let mut findings = Vec::new();
    if answers.status.write_protected {
        let finding = Finding::information("the medium is write-protected", "it can be read only");
        findings.push(finding.with("the switch is at the front of the cartridge"));
    }
    if let Some(volume) = &answers.volume {
        let errors = [("write", volume.write_errors), ("read", volume.read_errors)];
        for (what, count) in errors {
            if let Some(count) = count.filter(|count| *count > 0) {
                let what = format!("{count} {what} errors in the life of the medium");
                let why = "they could not be corrected";
                let finding = Finding::warning(what, why);
                findings.push(finding.with("copy what is on it, and use another"));
            }
        }
        if volume.write_once == Some(true) {
            let why = "what is written stays; a backup can only be appended";
            findings.push(Finding::information("a write-once medium", why));
        }
    }
    if let (Some(drive), Some(medium)) = (survey.drive_generation(), survey.medium_generation())
        && drive.number > medium.number
    {
        let what = format!("an {} medium in an {} drive", medium.name, drive.name);
        let why = "it holds less and is written more slowly than one of the drive's generation";
        findings.push(Finding::information(what, why));
    }
    findings
}

fn streaming(survey: &Survey, answers: &Answers) -> Vec<Finding> {
    let mut findings = Vec::new();
    if answers.mode.is_some_and(|mode| mode.buffered_mode == 0) && answers.status.online {
        let why = "every block waits for the medium, so that the drive stops after each";
        let action = format!("mt -f {} drvbuffer 1", survey.node);
        findings.push(Finding::warning("writes are not buffered", why).with(action));
    }
    let Some(generation) = survey.medium_generation() else { return findings };
    let lowest = generation.lowest_speed() as f64;
    match answers.compression {
        Some(Compression::On) => {
            let what = format!(
                "a backup has to deliver {}, and {} if the drive halves the data",
                rate(lowest),
                rate(2.0 * lowest)
            );
            let why = "below that the drive stops and goes back again and again";
            let action = "a source that is slower: --drive-compression off, or --compress zstd";
            findings.push(Finding::information(what, why).with(action));
        }
        Some(Compression::Off | Compression::Unable) | None => {
            let what = format!("a backup has to deliver {}", rate(lowest));
            let why = "below that the drive stops and goes back again and again";
            findings.push(Finding::information(what, why));
        }
    }
    findings
}

fn blocks(answers: &Answers) -> Vec<Finding> {
    let mut findings = Vec::new();
    let limits = &answers.limits;
    let way = match limits.limited_by {
        LimitedBy::HostAdapter => Some("the host adapter"),
        LimitedBy::Fuse => Some("FUSE"),
        LimitedBy::Drive | LimitedBy::Driver => None,
    };
    if let Some(way) = way.filter(|_| limits.block_bytes_max < PREFERRED_BLOCK_BYTES) {
        let what = format!("{way} takes {} at once", block(limits.block_bytes_max));
        let why = "more commands for the same data, and tapes with larger blocks cannot be read";
        findings.push(Finding::warning(what, why));
    }
    match limits.found {
        Found::Asked => {}
        Found::Tried => {
            let why = "the drive could not be asked, so block sizes were set until one was refused";
            findings.push(Finding::information("limits found by trying", why));
        }
        Found::Unknown => {
            let finding = Finding::warning(
                "the drive's limits for blocks are not known",
                "it could not be asked",
            );
            findings.push(finding.with("run as root"));
        }
    }
    if let device::tape::BlockMode::Fixed(bytes) = answers.status.block_mode {
        let what = format!("the drive is set to blocks of {bytes} bytes");
        let why = "whoever used it last left it so; takeup sets what it needs, tar and dd do not";
        let finding = Finding::information(what, why);
        findings.push(finding.with("mt setblk 0 makes a block of each write"));
    }
    findings
}
