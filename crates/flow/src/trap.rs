//! A panic on demand, so that tests can see what happens to a run in which a stage panics.
//!
//! There is one trap in a process, and only with debug assertions: in a release build [`pass`] does
//! nothing. A stage passes it when one of its threads starts, when its state changes and when it
//! counts bytes, which is also where locks are held and work is half done.

#[cfg(debug_assertions)]
mod armed {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use base::failures::lock;

    use crate::run::StageKind;

    static ARMED: AtomicBool = AtomicBool::new(false);
    static TRAP: Mutex<Option<(String, u64)>> = Mutex::new(None);

    /// Makes the stage named `stage` panic at its `passes`-th pass, from 1.
    pub fn set(stage: &str, passes: u64) {
        *lock(&TRAP) = Some((stage.to_owned(), passes));
        ARMED.store(true, Ordering::Release);
    }

    pub(crate) fn pass(stage: StageKind) {
        step(stage.name());
    }

    /// Passes a step that is no stage.
    pub fn step(passed: &str) {
        if !ARMED.load(Ordering::Acquire) {
            return;
        }
        let mut trap = lock(&TRAP);
        let Some((name, passes)) = trap.as_mut().filter(|(name, _)| name == passed) else {
            return;
        };
        *passes = passes.saturating_sub(1);
        if *passes == 0 {
            let text = format!("the trap of {name}");
            *trap = None;
            drop(trap);
            panic!("{text}");
        }
    }
}

#[cfg(debug_assertions)]
pub(crate) use armed::pass;
#[cfg(debug_assertions)]
pub use armed::{set, step};

#[cfg(not(debug_assertions))]
#[inline]
pub(crate) fn pass(_: crate::run::StageKind) {}

/// Passes a step that is no stage.
#[cfg(not(debug_assertions))]
#[inline]
pub fn step(_: &str) {}
