//! Which pages a run's memory gets: huge ones or only small ones.
//!
//! The rings of `flow` ask the kernel for huge pages; a run that is to show what they are worth is
//! made without them. The kernel's switch for that is one of the whole process (prctl(2),
//! `PR_SET_THP_DISABLE`), it acts when a page is touched first, and it is put back after the run.

use super::error::ReadBenchError;
use super::reading::Pages;
use experiment::environment::{HUGE_PAGES, huge_page_setting};

/// The pages of a run, as long as it lasts.
#[derive(Debug)]
pub struct PagesInForce {
    wanted: Pages,
    disabled_before: Option<bool>,
}

impl PagesInForce {
    /// Makes them what a cell says.
    pub fn set(wanted: Pages) -> Result<PagesInForce, ReadBenchError> {
        if wanted == Pages::Huge {
            return Ok(PagesInForce { wanted, disabled_before: None });
        }
        let failed = |error: rustix::io::Errno| ReadBenchError::Pages(error.into());
        let before = rustix::thread::transparent_huge_pages_are_disabled().map_err(failed)?;
        rustix::thread::disable_transparent_huge_pages(true).map_err(failed)?;
        Ok(PagesInForce { wanted, disabled_before: Some(before) })
    }

    /// What should be known where they are not what was wanted.
    pub fn notes(&self) -> Vec<String> {
        let never = huge_page_setting().is_some_and(|setting| setting == "never");
        let missing = self.wanted == Pages::Huge && never;
        let note = format!("{HUGE_PAGES} is never: the memory is of small pages");
        if missing { vec![note] } else { Vec::new() }
    }
}

impl Drop for PagesInForce {
    fn drop(&mut self) {
        if let Some(before) = self.disabled_before {
            // It was possible a moment ago.
            let _ = rustix::thread::disable_transparent_huge_pages(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_is_put_back() {
        let disabled = || rustix::thread::transparent_huge_pages_are_disabled().unwrap();
        let before = disabled();
        let small = PagesInForce::set(Pages::Small).unwrap();
        assert!(disabled() && small.notes().is_empty());
        drop(small);
        assert_eq!(disabled(), before);
        drop(PagesInForce::set(Pages::Huge).unwrap());
        assert_eq!(disabled(), before);
    }
}
