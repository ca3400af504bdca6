//! SIGINT, SIGTERM and SIGHUP: the first one ends the run at the next block, the second one at
//! once. SIGHUP only where it is not ignored, as under nohup.
//!
//! A target that is a file never has its final name before it is complete, so ending at once leaves
//! at worst a partial file beside it, which the next run to that name takes over.
//!
//! SIGXFSZ, which a write beyond the limit of file sizes raises (`ulimit -f`), would end the
//! process without a word. Once it is watched the write fails instead, and the error says why.

use std::ffi::c_int;
use std::io;
use std::thread;

use flow::cancel::Cancel;
use nix::sys::signal::{SigSet, SigmaskHow};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

/// Ends `cancel`'s run on the first signal and the process on the second. Where signals cannot be
/// watched they keep their usual meaning and end the process.
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
            if stopping {
                std::process::exit(crate::exit_code::FAILED.into());
            }
            stopping = true;
            cancel.cancel();
            crate::standard_error::to_standard_error(
                "takeup: stopping at the next block; once more stops at once\n",
            );
        }
    })?;
    Ok(())
}

/// Takes these signals. One that comes meanwhile waits: between installing a handler and entering
/// what to do for it, it would be lost.
pub fn listen(wanted: &[c_int]) -> io::Result<Signals> {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let signals = Signals::new(wanted);
    before.thread_set_mask()?;
    signals
}

/// What the parent has asked for, from the mask `SigIgn` of proc_pid_status(5).
fn is_hangup_ignored() -> bool {
    let mask = machine::processes::own_status("SigIgn");
    let mask = mask.and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or(0);
    mask & 1 << (SIGHUP - 1) != 0
}
