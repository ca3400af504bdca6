//! The needs of a test, declared in its first line: `crate::needs::require!(Fuse, LoopDevices);`.
//!
//! A test that cannot run must not look like one that passed. So where `CI` is set, a missing need
//! fails the test, with a message on how to get it. The script that starts the tests may waive
//! needs by name (`TAKEUP_TESTS_WITHOUT=chromium,loop-devices`). Then, and on machines without
//! `CI`, the test is left out. This is written to standard error, past the capture of the test
//! harness, and as one line to the file named by `TAKEUP_TESTS_LEFT_OUT`, from which the scripts
//! print how many were left out and why.
//!
//! A need is checked by trying it (a file system is mounted, a loop device attached), once per
//! process. Everything made for the check is removed.

mod control_group;
mod decision;
mod need;
mod record;

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

pub use control_group::ControlGroup;
use decision::{Answer, Rules};
pub use need::{Need, postgresql_folder};
pub use record::TestExtent;

/// Ends the test, of which this is the first line, unless the machine meets all of these [`Need`]s.
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

/// Whether a test can be done in full; without `need` it asserts less, which is reported as well.
///
/// # Panics
/// Where `CI` is set and the need is not waived.
#[macro_export]
macro_rules! fully {
    ($need:ident) => {
        $crate::needs::in_full($crate::needs::Need::$need, ::core::module_path!())
    };
}

/// Ends the test, of which this is the first line, unless `TAKEUP_LONG` is set: it is the long form
/// of another test. It is reported like every test that is left out, and never fails.
#[macro_export]
macro_rules! long_run {
    () => {
        if !$crate::needs::is_long_run(::core::module_path!()) {
            return;
        }
    };
}

/// Ends the test with the reason why it cannot apply here, whatever is installed: some tests do not
/// apply to all machines. It is reported like every test that is left out.
#[macro_export]
macro_rules! does_not_apply {
    ($why:expr) => {{
        $crate::needs::tell_that_it_does_not_apply(::core::module_path!(), $why);
        return;
    }};
}

/// Ends the test where the kernel is older than `$since`, a version such as `(5, 14)`, with what
/// older ones do otherwise.
#[macro_export]
macro_rules! kernel_since {
    ($since:expr, $why:expr) => {
        if $crate::needs::kernel_version() < $since {
            $crate::does_not_apply!($why);
        }
    };
}

/// The first two numbers of the kernel's release.
///
/// # Panics
/// Where it has none.
#[must_use]
pub fn kernel_version() -> (u32, u32) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse().ok());
    numbers.next().zip(numbers.next()).unwrap_or_else(|| panic!("no version in {release}"))
}

/// Implements [`require!`]; `module` is that of the test.
///
/// # Panics
/// Where `CI` is set and a missing need is not waived.
#[must_use]
pub fn all(needs: &[Need], module: &str) -> bool {
    let missing: Vec<_> = needs.iter().filter_map(|need| missing(*need)).collect();
    has(&missing, TestExtent::LeftOut, module)
}

/// Implements [`fully!`]; `module` is that of the test.
///
/// # Panics
/// Where `CI` is set and the need is not waived.
#[must_use]
pub fn in_full(need: Need, module: &str) -> bool {
    has(missing(need).as_slice(), TestExtent::InPart, module)
}

/// Implements [`long_run!`]; `module` is that of the test.
#[must_use]
pub fn is_long_run(module: &str) -> bool {
    let is_long = std::env::var_os("TAKEUP_LONG").is_some();
    if !is_long {
        record::tell(TestExtent::LeftOut, module, "a long run", "TAKEUP_LONG=1 asks for it");
    }
    is_long
}

/// Implements [`does_not_apply!`]; `module` is that of the test.
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

/// Why the machine does not meet the need; checked once per process.
fn missing(need: Need) -> Option<(Need, String)> {
    static ASKED: LazyLock<Mutex<HashMap<Need, Option<String>>>> = LazyLock::new(Mutex::default);
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let why = asked.entry(need).or_insert_with(|| need.find().err());
    why.clone().map(|why| (need, why))
}
