//! A service and a timer for systemd.
//!
//! The service may write its target, Takeup's own state and temporary files, and nothing else. It
//! has CAP_SYS_ADMIN, without which nobody sees attributes of `trusted.*`. Commands of the user
//! around the run may need anything, so with these only what never hurts is forbidden.

use std::fmt::Write as _;
use std::path::Path;

use crate::config::Job;
use crate::values::JobName;

/// What the units of a job depend on besides the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitSettings<'a> {
    pub program: &'a Path,
    pub config: &'a Path,
    /// For the service manager of a user, which cannot make file systems read-only.
    pub is_users: bool,
}

/// The service of a job.
pub fn service_unit(name: &JobName, job: &Job, settings: &UnitSettings<'_>) -> String {
    let mut unit = format!("[Unit]\nDescription=Takeup job {name}\n");
    let mut paths: Vec<String> = job.sources.iter().map(|it| quoted(it.as_path())).collect();
    if !job.to.is_tape() {
        paths.push(quoted(job.to.as_path()));
    }
    // A disk that is not mounted must not be backed up as an empty folder, nor filled as one.
    let _ = writeln!(unit, "RequiresMountsFor={}", paths.join(" "));
    // In a command a dollar begins a variable.
    let argument = |path: &Path| quoted(path).replace('$', "$$");
    let (program, config) = (argument(settings.program), argument(settings.config));
    let _ = write!(
        unit,
        "\n[Service]\nType=oneshot\nExecStart={program} run {name} --config {config}\n\
         TimeoutStartSec=infinity\nNice=10\nIOSchedulingClass=best-effort\n\
         IOSchedulingPriority=7\nUMask=0077\n"
    );
    if !settings.is_users {
        unit.push_str("StateDirectory=takeup\n");
    }
    unit.push_str(
        "NoNewPrivileges=yes\nLockPersonality=yes\nRestrictRealtime=yes\n\
         SystemCallArchitectures=native\n",
    );
    let hooks = [&job.hooks.before, &job.hooks.after_backup, &job.hooks.after];
    let target = if job.to.is_tape() { String::new() } else { quoted(job.to.as_path()) + " " };
    let metrics = job.tell.metrics.as_ref().and_then(|it| it.as_path().parent());
    let target = target + &metrics.map_or(String::new(), |it| format!("-{} ", quoted(it)));
    let network = if job.tell.ping.is_some() { " AF_INET AF_INET6" } else { "" };
    let rights = if job.to.is_tape() { " CAP_SYS_RAWIO" } else { "" };
    if job.change_command.is_some() {
        unit.push_str(
            "# The job has a command for volumes, which may need more than a backup does.\n",
        );
    } else if hooks.iter().any(|hook| hook.is_some()) {
        unit.push_str("# The job has hooks, which may need more than a backup does.\n");
    } else if !settings.is_users {
        let _ = write!(
            unit,
            "ProtectSystem=strict\nReadWritePaths={target}-/var/tmp -/tmp\n\
             ProtectKernelModules=yes\n\
             ProtectKernelTunables=yes\nProtectKernelLogs=yes\nProtectControlGroups=yes\n\
             ProtectClock=yes\nProtectHostname=yes\nRestrictNamespaces=yes\n\
             RestrictSUIDSGID=yes\nRestrictAddressFamilies=AF_UNIX AF_NETLINK{network}\n\
             MemoryDenyWriteExecute=yes\n\
             CapabilityBoundingSet=CAP_DAC_READ_SEARCH CAP_DAC_OVERRIDE CAP_FOWNER CAP_CHOWN \
             CAP_SYS_RESOURCE CAP_SYS_NICE CAP_SYS_ADMIN{rights}\n",
        );
    }
    unit
}

/// The timer of a job.
pub fn timer_unit(name: &JobName, job: &Job) -> String {
    // A machine that was off makes up for it; several do not all begin at once.
    format!(
        "[Unit]\nDescription=When the Takeup job {name} runs\n\n[Timer]\nOnCalendar={}\n\
         Persistent=yes\nRandomizedDelaySec=5min\nAccuracySec=1min\n\n[Install]\n\
         WantedBy=timers.target\n",
        job.schedule
    )
}

/// A path as systemd reads it back (systemd.syntax(7), systemd.service(5)).
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut unit = String::new();
    for letter in text.chars() {
        match letter {
            '"' | '\\' => unit.extend(['\\', letter]),
            '%' => unit.push_str("%%"),
            '\n' => unit.push_str("\\n"),
            _ => unit.push(letter),
        }
    }
    let is_plain = unit.chars().all(|it| it.is_alphanumeric() || "/._-+@:".contains(it));
    if is_plain { unit } else { format!("\"{unit}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_letters_that_mean_something() {
        assert_eq!(quoted(Path::new("/srv/a-b_c.d")), "/srv/a-b_c.d");
        assert_eq!(quoted(Path::new("/srv/a b")), "\"/srv/a b\"");
        assert_eq!(quoted(Path::new("/srv/100%\"$x\\")), "\"/srv/100%%\\\"$x\\\\\"");
    }
}
