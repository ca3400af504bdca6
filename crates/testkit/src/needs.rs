//! What a test needs of the machine that runs it, said in the first line of the test:
//! `crate::needs::require!(Fuse, LoopDevices);`.
//!
//! A test that finds nothing to test on must not look like one that passed. So what is missing
//! fails the test where `CI` is set, and the message says what it is and how to get it. The script
//! that starts the tests may waive needs by name (`TAKEUP_TESTS_WITHOUT=chromium,loop-devices`):
//! then, and on the machine of somebody who has not set `CI`, the test is left out. That is written
//! past the capture of the test harness to standard error, and as one line to the file that
//! `TAKEUP_TESTS_LEFT_OUT` names, from which the scripts print how many were left out and why.
//!
//! Whether something is there is tried for real (a file system mounted, a loop device attached)
//! and once in each process. What is made here is gone when the answer is given.

mod decision;
mod need;
mod record;

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use decision::{Answer, Rules};
pub use need::{Need, ProcessorQuota, postgresql_folder};
pub use record::TestExtent;

/// Ends the test, of which this is the first line, unless the machine has all of these [`Need`]s.
///
/// # Panics
/// Where `CI` is set and the need is not waived.
#[macro_export]
macro_rules! require {
    ($($need:ident),+ $(,)?) => {
        if !$crate::needs::all(&[$($crate::needs::Need::$need),+], ::core::module_path!()) {
            return;
        }
    };
}

/// Whether a test can be done in full; without `need` it asserts less, which is told as well.
///
/// # Panics
/// Where `CI` is set and the need is not waived.
#[macro_export]
macro_rules! fully {
    ($need:ident) => {
        $crate::needs::in_full($crate::needs::Need::$need, ::core::module_path!())
    };
}

/// Ends the test, of which this is the first line, unless `TAKEUP_LONG` is set: the long form of
/// another one. It is told like all that is left out, and fails nowhere.
#[macro_export]
macro_rules! long_run {
    () => {
        if !$crate::needs::is_long_run(::core::module_path!()) {
            return;
        }
    };
}

/// Ends the test with a reason why it cannot hold here, whatever is installed: a table of tests has
/// lines that are not for every row of machines. It is told like all that is left out.
#[macro_export]
macro_rules! does_not_apply {
    ($why:expr) => {{
        $crate::needs::tell_that_it_does_not_apply(::core::module_path!(), $why);
        return;
    }};
}

/// What [`require!`] asks; `module` is where.
///
/// # Panics
/// Where `CI` is set and a missing need is not waived.
#[must_use]
pub fn all(needs: &[Need], module: &str) -> bool {
    let missing: Vec<_> = needs.iter().filter_map(|need| missing(*need)).collect();
    has(&missing, TestExtent::LeftOut, module)
}

/// What [`fully!`] asks; `module` is where.
///
/// # Panics
/// Where `CI` is set and the need is not waived.
#[must_use]
pub fn in_full(need: Need, module: &str) -> bool {
    has(missing(need).as_slice(), TestExtent::InPart, module)
}

/// What [`long_run!`] asks; `module` is where.
#[must_use]
pub fn is_long_run(module: &str) -> bool {
    let is_long = std::env::var_os("TAKEUP_LONG").is_some();
    if !is_long {
        record::tell(TestExtent::LeftOut, module, "a long run", "TAKEUP_LONG=1 asks for it");
    }
    is_long
}

/// What [`does_not_apply!`] tells; `module` is where.
pub fn tell_that_it_does_not_apply(module: &str, why: &str) {
    record::tell(TestExtent::LeftOut, module, "another place", why);
}

fn has(missing: &[(Need, String)], extent: TestExtent, module: &str) -> bool {
    match Rules::of_this_run().answer(missing) {
        Answer::Run => true,
        Answer::LeaveOut(need, why) => {
            record::tell(extent, module, need.name(), &why);
            false
        }
        Answer::Fail(text) => panic!("{text}"),
    }
}

/// Why the machine has not got it; asked once in each process.
fn missing(need: Need) -> Option<(Need, String)> {
    static ASKED: LazyLock<Mutex<HashMap<Need, Option<String>>>> = LazyLock::new(Mutex::default);
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let why = asked.entry(need).or_insert_with(|| need.find().err());
    why.clone().map(|why| (need, why))
}
