//! What stands in the way of Takeup on this machine.

use base::finding::{Certainty, Finding, Rule, Severity, Unit};
use base::format::counted;

use super::{DoctorAnswer, kernel, rules};

/// All of them, the worst first.
pub(super) fn findings(answer: &DoctorAnswer) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    found.extend(state(answer));
    found.extend(answer.tape_drives.iter().filter_map(|drive| {
        let why = drive.refused.as_deref()?;
        let what = format!("you may not use /dev/{}: {why}", drive.name);
        let told = warning(&rules::DRIVE_REFUSED, what);
        Some(told.with_action(if why.contains("no such file") {
            "make the node, or pass the device into the container"
        } else {
            "sudo usermod -aG tape \"$USER\", then log in again (`ls -l` of it shows the group)"
        }))
    }));
    found.extend(jobs(answer));
    found.extend(settings(answer));
    found.extend(io_uring(answer));
    if !answer.optimized {
        let what = "this program was built for its tests: it is several times slower";
        let told = Finding::new(&rules::NOT_OPTIMIZED, Certainty::Told, what);
        found.push(told.severe(Severity::Warning).with_action("build it with `make build`"));
    }
    // The sort is stable: findings of one severity keep their order.
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

fn warning(rule: &'static Rule, what: impl Into<String>) -> Finding {
    Finding::new(rule, Certainty::Told, what).severe(Severity::Warning)
}

fn state(answer: &DoctorAnswer) -> Option<Finding> {
    let why = answer.records.state_refused.as_deref()?;
    let what = format!("Takeup cannot write its catalogue and its journal: {why}");
    let told = warning(&rules::STATE_REFUSED, what)
        .because("jobs, incremental sets on tape and `takeup catalog` need them");
    Some(told.with_action("set XDG_STATE_HOME or HOME to a folder of yours"))
}

fn jobs(answer: &DoctorAnswer) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(why) = &answer.records.jobs_unreadable {
        let what = format!("the file with the jobs cannot be used: {why}");
        found.push(warning(&rules::JOBS_UNREADABLE, what).with_command("takeup check-config"));
    }
    if let Some(why) = &answer.records.journal_unreadable {
        let what = format!("the journal of jobs cannot be read: {why}");
        found.push(warning(&rules::JOURNAL_DAMAGED, what));
    }
    for run in &answer.records.failed {
        let error = run.run.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        let what = format!("the last run of {} failed{error}", run.job);
        found.push(warning(&rules::LAST_RUN_FAILED, what).with_command("takeup status"));
    }
    let lines = answer.records.unreadable_lines;
    if lines > 0 {
        let what = format!("{} of the journal cannot be read", counted(lines, "line", "lines"));
        let told = Finding::new(&rules::JOURNAL_DAMAGED, Certainty::Measured, what);
        found.push(told.with_number("unreadable lines", lines as f64, Unit::Count));
    }
    found
}

fn settings(answer: &DoctorAnswer) -> Vec<Finding> {
    let settings = &answer.settings;
    let mut found = Vec::new();
    if let Some(why) = &settings.unreadable {
        let what = format!("the list of changed settings cannot be used: {why}");
        found.push(warning(&rules::SETTINGS_UNREADABLE, what).with_command("takeup tune show"));
    }
    if let Some(left) = &settings.left {
        let what = format!("{left}: left changed by an experiment that was killed");
        found.push(warning(&rules::SETTINGS_LEFT, what).with_command("takeup bench put-back"));
    }
    if settings.lost > 0 {
        let lost = counted(settings.lost, "setting", "settings");
        let what =
            format!("{lost} of `takeup tune` not in force: the kernel or a program set others");
        let told = Finding::new(&rules::SETTINGS_LOST, Certainty::Measured, what).with_number(
            "settings",
            settings.lost as f64,
            Unit::Count,
        );
        found.push(told.with_command("takeup tune show"));
    }
    found
}

fn io_uring(answer: &DoctorAnswer) -> Option<Finding> {
    let facility = answer.kernel.iter().find(|it| it.name == kernel::IO_URING)?;
    let why = facility.refused.as_deref()?;
    let what = format!("io_uring cannot be used: {why}");
    let told = Finding::new(&rules::IO_URING_REFUSED, Certainty::Told, what)
        .because(facility.without.clone());
    let action = if why.contains("not implemented") {
        "Linux has it from 5.1 on: nothing to do on an older kernel, or where one is emulated"
    } else if answer.system.container {
        "allow io_uring in the container's seccomp profile, if its administrator agrees"
    } else {
        "sysctl kernel.io_uring_disabled shows whether it is switched off"
    };
    Some(told.with_action(action))
}

#[cfg(test)]
mod tests {
    use super::super::{DoctorRequest, RunRecordAnswer, doctor};
    use super::*;
    use crate::jobs::JobRunAnswer;

    fn sound() -> DoctorAnswer {
        let mut answer = doctor(DoctorRequest::default());
        answer.optimized = true;
        answer.tape_drives.clear();
        answer.kernel.iter_mut().for_each(|it| it.refused = None);
        answer.settings = Default::default();
        answer.records = Default::default();
        answer.stands_out.clear();
        answer
    }

    fn ids(answer: &DoctorAnswer) -> Vec<String> {
        findings(answer).iter().map(|it| it.rule.to_string()).collect()
    }

    #[test]
    fn nothing_stands_out_on_a_sound_machine() {
        assert_eq!(ids(&sound()), Vec::<String>::new());
    }

    #[test]
    fn each_rule_speaks() {
        let mut answer = sound();
        answer.optimized = false;
        answer.kernel[0].refused = Some("Operation not permitted".into());
        answer.settings.left = Some("read_ahead_kb of sda".into());
        answer.settings.lost = 2;
        answer.settings.unreadable = Some("x".into());
        answer.records.state_refused = Some("Permission denied".into());
        answer.records.jobs_unreadable = Some("x".into());
        answer.records.unreadable_lines = 1;
        let run = JobRunAnswer {
            ended_seconds: 0,
            result: "failed".into(),
            level: None,
            archive: None,
            files: 0,
            bytes: 0,
            seconds: 0.0,
            warnings: 0,
            limit: None,
            error: None,
        };
        let run = RunRecordAnswer { job: "job 1".into(), run };
        answer.records.failed = vec![run];
        answer.tape_drives = vec![super::super::TapeDeviceAnswer {
            name: "nst0".into(),
            vendor: None,
            product: None,
            firmware: None,
            refused: Some("Permission denied".into()),
        }];
        let mut found = ids(&answer);
        found.sort();
        let mut all: Vec<String> = rules::DOCTOR.rules.iter().map(|it| it.id.to_owned()).collect();
        all.sort();
        assert_eq!(found, all);
        let severities: Vec<_> = findings(&answer).iter().map(|it| it.severity).collect();
        assert!(severities.windows(2).all(|two| two[0] >= two[1]), "{severities:?}");
    }
}
