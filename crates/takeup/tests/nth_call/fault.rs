//! The faults: which call fails how.

use rustix::io::Errno;
use testkit::stepper::{Call, CallVerdict};

/// One way in which calls of one name can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Name of the call.
    pub call: &'static str,
    pub verdict: CallVerdict,
}

impl Fault {
    /// Not an error: the caller must go on or try again.
    pub fn is_no_failure(&self) -> bool {
        let interrupted = self.verdict == CallVerdict::Fail(Errno::INTR.raw_os_error());
        let is_shorter = matches!(self.verdict, CallVerdict::Shorten(_));
        is_shorter || interrupted && INTERRUPTIBLE.contains(&self.call)
    }

    pub fn shown(&self) -> String {
        match self.verdict {
            CallVerdict::Pass => format!("{} passes", self.call),
            CallVerdict::Fail(code) => format!("{} gives {:?}", self.call, errno(code)),
            CallVerdict::FailAfter(code) => {
                format!("{} is done, gives {:?}", self.call, errno(code))
            }
            CallVerdict::Shorten(most) => format!("{} of {most} bytes", self.call),
        }
    }
}

fn errno(code: i32) -> Errno {
    Errno::from_raw_os_error(code)
}

/// Calls that a signal can interrupt, by their manual pages.
const INTERRUPTIBLE: [&str; 15] = [
    "read",
    "pread64",
    "write",
    "pwrite64",
    "pwritev2",
    "openat",
    "openat2",
    "getdents64",
    "ftruncate",
    "fallocate",
    "flock",
    "fsync",
    "fdatasync",
    "statfs",
    "poll",
];

/// All faults of the calls that a run made.
pub fn faults_of(calls: &[&'static str]) -> Vec<Fault> {
    let fail = |error: Errno| CallVerdict::Fail(error.raw_os_error());
    let late = |error: Errno| CallVerdict::FailAfter(error.raw_os_error());
    let mut faults = Vec::new();
    for &call in calls {
        let verdicts = match call {
            "read" | "pread64" => vec![
                fail(Errno::IO),
                fail(Errno::INTR),
                fail(Errno::AGAIN),
                CallVerdict::Shorten(1),
                CallVerdict::Shorten(700),
            ],
            "write" | "pwrite64" | "pwritev2" => vec![
                fail(Errno::IO),
                fail(Errno::NOSPC),
                fail(Errno::INTR),
                fail(Errno::AGAIN),
                CallVerdict::Shorten(1),
                CallVerdict::Shorten(700),
            ],
            // close(2) releases the descriptor, whatever it returns.
            "close" => vec![late(Errno::IO), late(Errno::INTR), late(Errno::NOSPC)],
            "openat" | "openat2" => {
                vec![fail(Errno::IO), fail(Errno::INTR), fail(Errno::AGAIN), fail(Errno::MFILE)]
            }
            "renameat" | "renameat2" | "linkat" | "symlinkat" | "mkdirat" | "mknodat"
            | "unlinkat" => vec![
                fail(Errno::IO),
                fail(Errno::NOSPC),
                fail(Errno::INTR),
                // The answer was lost and the request repeated, as on a network file system.
                late(Errno::IO),
            ],
            "fsync" | "fdatasync" | "syncfs" | "sync_file_range" | "ftruncate" | "fallocate" => {
                vec![fail(Errno::IO), fail(Errno::NOSPC), fail(Errno::INTR)]
            }
            "poll" => vec![fail(Errno::INTR)],
            "clone3" => vec![fail(Errno::AGAIN)],
            _ => vec![fail(Errno::IO), fail(Errno::INTR)],
        };
        faults.extend(verdicts.into_iter().map(|verdict| Fault { call, verdict }));
    }
    faults
}

/// Calls that the program makes for itself, not for its user.
pub fn is_on_error_output(call: &Call) -> bool {
    call.name() == Some("write") && call.arguments[0] == 2
}
