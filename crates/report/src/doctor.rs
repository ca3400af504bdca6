//! What a bug report needs of a machine, as text.

use base::calendar::time_text;
use base::escape::escape_controls;
use base::format::{binary_size, count, counted, duration, size};
use service::doctor::{
    BlockDeviceAnswer, DoctorAnswer, FacilityAnswer, FileSystemAnswer, HelperAnswer, Names,
    RunRecordAnswer, SystemAnswer, TapeDeviceAnswer,
};

use crate::findings::list;

use crate::table::Style;

/// The whole text.
pub fn text(answer: &DoctorAnswer, style: Style) -> String {
    let mut text = format!("takeup {}: {}\n", answer.version, outcome(answer));
    text.push_str(&list(&answer.stands_out, style));
    text.push('\n');
    for (head, lines) in sections(answer) {
        let lines = if lines.is_empty() { vec!["none".to_owned()] } else { lines };
        let mut head = head;
        for line in lines {
            text.push_str(&format!("{head:<HEAD_WIDTH$}{}\n", escape_controls(&line)));
            head = "";
        }
    }
    text.push_str(&format!("\n{}\n", names(answer.names)));
    text.push_str(
        "for a bug report: `takeup doctor > doctor.txt`, and read it before you send it\n",
    );
    text
}

/// Where the lines begin.
const HEAD_WIDTH: usize = 14;

fn outcome(answer: &DoctorAnswer) -> String {
    match answer.stands_out.len() as u64 {
        0 => "nothing stands in its way on this machine".to_owned(),
        some => format!("{} out on this machine", counted(some, "thing stands", "things stand")),
    }
}

fn names(names: Names) -> &'static str {
    match names {
        Names::LeftOut => {
            "left out: names of hosts, users, files, folders, jobs and sets, and serial numbers; \
             --with-names shows jobs and mount points"
        }
        Names::Shown => "this has the names of jobs and mount points, and messages with file names",
    }
}

fn sections(answer: &DoctorAnswer) -> Vec<(&'static str, Vec<String>)> {
    let speed = if answer.optimized { "built for speed" } else { "built for tests" };
    let program = format!("{}, {}, {speed}", answer.architecture, answer.linked);
    vec![
        ("program", vec![program]),
        ("machine", system(&answer.system)),
        ("kernel", answer.kernel.iter().map(facility).collect()),
        ("programs", answer.programs.iter().map(helper).collect()),
        ("tape drives", answer.tape_drives.iter().map(tape_drive).collect()),
        ("disks", answer.block_devices.iter().map(block_device).collect()),
        ("file systems", answer.file_systems.iter().map(file_system).collect()),
        ("settings", settings(answer)),
        ("records", records(answer)),
    ]
}

fn system(system: &SystemAnswer) -> Vec<String> {
    let distribution = system.distribution.as_deref().unwrap_or("an unknown distribution");
    let mut lines = vec![format!("{distribution}, Linux {}", system.kernel)];
    let cores = counted(system.cores, "core", "cores");
    lines.push(match &system.processor {
        Some(processor) => format!("{cores} of {processor}"),
        None => cores,
    });
    let memory = system
        .memory_bytes
        .map_or("unknown memory".to_owned(), |bytes| format!("{} of memory", size(bytes)));
    let left = system
        .memory_left_bytes
        .map_or(String::new(), |bytes| format!(", a limit leaves {} of it", size(bytes)));
    let (page, files) = (binary_size(system.page_bytes), count(system.open_files_max));
    lines.push(format!("{memory}{left}, pages of {page}, {files} open files at most"));
    let user = if system.root { "root" } else { "an ordinary user" };
    let around = match (system.container, system.virtual_machine) {
        (true, true) => ", in a container on a virtual machine",
        (true, false) => ", in a container",
        (false, true) => ", on a virtual machine",
        (false, false) => "",
    };
    lines.push(format!("run by {user}{around}"));
    lines
}

fn facility(facility: &FacilityAnswer) -> String {
    let FacilityAnswer { name, refused, without } = facility;
    match refused {
        None => format!("{name}: works"),
        Some(why) => format!("{name}: {why}; {without}"),
    }
}

fn helper(helper: &HelperAnswer) -> String {
    match &helper.version {
        Some(version) if version.contains(&helper.name) => version.clone(),
        Some(version) => format!("{}: {version}", helper.name),
        None => format!("{}: not here; for {}", helper.name, helper.used_for),
    }
}

fn tape_drive(drive: &TapeDeviceAnswer) -> String {
    let known = [&drive.vendor, &drive.product].into_iter().flatten().map(String::as_str);
    let mut line = format!("{}: {}", drive.name, known.collect::<Vec<_>>().join(" "));
    if let Some(firmware) = &drive.firmware {
        line.push_str(&format!(", firmware {firmware}"));
    }
    if let Some(why) = &drive.refused {
        line.push_str(&format!("; not usable by this user: {why}"));
    }
    line
}

fn block_device(device: &BlockDeviceAnswer) -> String {
    let mut parts = Vec::new();
    parts.extend(device.bytes.map(size));
    parts.extend(device.model.clone());
    parts.extend(device.rotational.map(|it| if it { "rotating" } else { "not rotating" }.into()));
    parts.extend(device.scheduler.as_ref().map(|it| format!("scheduler {it}")));
    parts.extend(device.read_ahead_bytes.map(|it| format!("read-ahead {}", binary_size(it))));
    let largest = device.largest_request_bytes;
    parts.extend(largest.map(|it| format!("requests up to {}", binary_size(it))));
    format!("{}: {}", device.name, parts.join(", "))
}

fn file_system(kind: &FileSystemAnswer) -> String {
    let at = kind.mounted_at.join(" ");
    let separator = if at.is_empty() { "" } else { ": " };
    format!("{} {}{separator}{at}", kind.count, kind.kind)
}

fn settings(answer: &DoctorAnswer) -> Vec<String> {
    let settings = &answer.settings;
    let mut lines = settings.changed.clone();
    lines.extend(settings.left.as_ref().map(|left| format!("{left}: left by an experiment")));
    lines.extend(settings.unreadable.as_ref().map(|why| format!("not readable: {why}")));
    if lines.is_empty() {
        lines.push("takeup has changed none".to_owned());
    }
    lines
}

fn records(answer: &DoctorAnswer) -> Vec<String> {
    let records = &answer.records;
    let jobs = match (&records.jobs, &records.jobs_unreadable) {
        (Some(jobs), _) => counted(*jobs, "job", "jobs"),
        (None, Some(_)) => "a file with jobs that cannot be used".to_owned(),
        (None, None) => "no file with jobs".to_owned(),
    };
    let catalogue = match records.catalogue_bytes {
        Some(bytes) => format!("a catalogue of {}", size(bytes)),
        None => "no catalogue".to_owned(),
    };
    let mut lines = vec![format!("{jobs}, {catalogue}")];
    lines.extend(records.runs.iter().map(run));
    lines
}

fn run(record: &RunRecordAnswer) -> String {
    let run = &record.run;
    let files = counted(run.files, "file", "files");
    let mut line = format!(
        "{} UTC {}: {}, {files}, {}, {}",
        time_text(run.ended_seconds),
        record.job,
        run.result,
        size(run.bytes),
        duration(run.seconds)
    );
    if run.warnings > 0 {
        line.push_str(&format!(", {}", counted(run.warnings, "warning", "warnings")));
    }
    for more in [&run.limit, &run.error].into_iter().flatten() {
        line.push_str(&format!("; {more}"));
    }
    line
}
