//! A folder of this process alone, for what a command needs for a while.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use archive::label::hex;
use base::failures::with_causes;

use crate::failure::{Failure, without_error_numbers};

/// A folder that goes with this.
#[derive(Debug)]
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// Makes one whose name says what for.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn make(what_for: &str) -> Result<Scratch, Failure> {
        let id = base::random::id().map_err(|error| Failure::new(&error, None))?;
        let path = std::env::temp_dir().join(format!("takeup-{what_for}-{}", hex(&id)));
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            let why = without_error_numbers(&with_causes(&error)).to_string();
            let hint = "TMPDIR names a folder with room for some files";
            Failure::of(format!("cannot make the folder {}: {why}", path.display()), Some(hint))
        })?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left lies in a folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
