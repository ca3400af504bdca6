//! SIGINT, SIGTERM and SIGHUP: the first one ends the run at the next block, the second one at
//! once. SIGHUP is left alone where it is ignored, as under nohup.
//!
//! A target file gets its final name when it is complete, so ending at once leaves at worst a
//! partial file beside it, which the next run to that name replaces.
//!
//! A write beyond the limit of file sizes (`ulimit -f`) raises SIGXFSZ, which would end the process
//! silently. With a handler the write fails instead, and the error says why.

use std::ffi::c_int;
use std::io;
use std::thread;

use flow::cancel::Cancel;
use nix::sys::signal::{SigSet, SigmaskHow};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::standard_error::{end_progress, to_standard_error};

/// Ends `cancel`'s run on the first signal and the process on the second. If handlers cannot be
/// installed, signals keep their usual effect and end the process.
pub fn watch(cancel: &Cancel) {
    let _ = start(cancel);
}

fn start(cancel: &Cancel) -> io::Result<()> {
    let mut wanted = vec![SIGINT, SIGTERM, SIGXFSZ];
    if !is_hangup_ignored() {
        wanted.push(SIGHUP);
    }
    let mut signals = listen(&wanted)?;
    let cancel = cancel.clone();
    thread::Builder::new().name("takeup-signals".to_owned()).spawn(move || {
        let mut stopping = false;
        for signal in signals.forever() {
            if signal == SIGXFSZ {
                continue;
            }
            end_progress();
            if stopping {
                to_standard_error("takeup: stopped at once; partial files may be left\n");
                std::process::exit(crate::exit_code::FAILED.into());
            }
            stopping = true;
            cancel.cancel();
            to_standard_error(
                "takeup: stopping at the next block; interrupt again to stop at once\n",
            );
        }
    })?;
    Ok(())
}

/// Handles these signals. They are blocked meanwhile: a signal between the installation of the
/// handler and the registration of its action would be lost.
pub fn listen(wanted: &[c_int]) -> io::Result<Signals> {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let signals = Signals::new(wanted);
    before.thread_set_mask()?;
    signals
}

/// Whether the parent has set SIGHUP to be ignored, from `SigIgn` of proc_pid_status(5).
fn is_hangup_ignored() -> bool {
    let mask = machine::processes::own_status("SigIgn");
    let mask = mask.and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or(0);
    mask & 1 << (SIGHUP - 1) != 0
}
