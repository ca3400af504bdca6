//! The commands around a run.

use std::path::Path;
use std::time::Duration;

use base::failures::with_causes;
use flow::cancel::Cancel;
use jobs::{Command, Hooks, JobName};

use crate::shell::{self, Shell, ShellError};

/// Where in a run a command has its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Before,
    AfterBackup,
    After,
}

impl Moment {
    fn name(self) -> &'static str {
        match self {
            Moment::Before => "before",
            Moment::AfterBackup => "after-backup",
            Moment::After => "after",
        }
    }

    fn command(self, hooks: &Hooks) -> Option<&Command> {
        match self {
            Moment::Before => hooks.before.as_ref(),
            Moment::AfterBackup => hooks.after_backup.as_ref(),
            Moment::After => hooks.after.as_ref(),
        }
    }
}

/// Runs the command of a moment, if the job has one. Returns how it failed.
pub(super) fn call(
    moment: Moment,
    hooks: &Hooks,
    (job, to): (&JobName, &Path),
    input: Option<&str>,
    cancel: &Cancel,
) -> Option<String> {
    let command = moment.command(hooks)?;
    let to = to.to_string_lossy();
    let variables =
        [("TAKEUP_HOOK", moment.name()), ("TAKEUP_JOB", job.as_str()), ("TAKEUP_TARGET", &*to)];
    let limit = Duration::from_secs(hooks.timeout.seconds());
    let shell = Shell {
        command: command.as_str(),
        variables: &variables,
        input: input.map(str::as_bytes),
        limit: Some(limit),
    };
    let how = match shell::run(&shell, cancel) {
        Ok(status) if status.success() => return None,
        Ok(status) => format!("ended with {status}"),
        Err(ShellError::Failed(error)) => format!("could not be run: {}", with_causes(&error)),
        Err(ShellError::Stopped(_)) => "was ended, since the run was stopped".to_owned(),
        Err(ShellError::TooLong) => {
            format!("was ended after {}", base::format::duration(limit.as_secs_f64()))
        }
    };
    Some(format!("the command `{}` {how}", moment.name()))
}
