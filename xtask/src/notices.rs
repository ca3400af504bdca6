//! `cargo xtask notices FOLDER`: what a binary of the program has to be shipped with: the licences
//! of all that is compiled into it, and its list of parts (SPDX).
//!
//! Both follow from `Cargo.lock`, the sources of the crates and the licence of this machine's C
//! library, so that they are the same for the same commit on the same distribution.

mod parts;
mod spdx;
mod texts;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::folders;

/// Arguments of `cargo xtask notices`.
#[derive(clap::Args)]
pub struct NoticesArguments {
    /// The folder for LICENSES.txt and takeup.spdx.json; it is made
    folder: PathBuf,
    /// The triple that the binary is built for
    #[arg(long, default_value = "x86_64-unknown-linux-gnu")]
    platform: String,
    /// The time to write into the list of parts, in seconds since 1970: that of the last commit,
    /// so that it is the same for the same source
    #[arg(long, env = "SOURCE_DATE_EPOCH", default_value_t = 0)]
    epoch: i64,
}

/// Writes both files.
///
/// # Errors
/// When `cargo metadata` fails, a crate has no licence, or a file cannot be written.
pub fn run(arguments: &NoticesArguments) -> anyhow::Result<ExitCode> {
    let root = folders::repository();
    let parts = parts::of_the_program(&root, &arguments.platform)?;
    let folder = &arguments.folder;
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    };
    write("LICENSES.txt", texts::all(&root, &parts)?)?;
    let lock = fs::read(root.join("Cargo.lock")).context("read Cargo.lock")?;
    write("takeup.spdx.json", spdx::document(&parts, &lock, arguments.epoch)?)?;
    println!("{} parts in {}", parts.len(), folder.display());
    Ok(ExitCode::SUCCESS)
}
