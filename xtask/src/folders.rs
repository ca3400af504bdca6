//! The checkout, its builds, and the program under test.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

/// The checkout, which contains this crate.
pub fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

/// The build's output folder, which has this program in `release/` or `debug/`.
///
/// # Errors
///
/// When the path of this program is unknown.
pub fn target() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("own path")?;
    let folder = own.parent().and_then(Path::parent).context("no folder above this program")?;
    Ok(folder.to_path_buf())
}

/// Builds `target/release/takeup` and returns its path.
///
/// # Errors
///
/// When the build fails.
pub fn build_takeup(target: &Path) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--locked", "--release", "--workspace", "--bin", "takeup"])
        .current_dir(repository())
        .status()
        .context("start cargo")?;
    if !status.success() {
        bail!("building takeup failed; --takeup FILE asks a binary that is there");
    }
    Ok(target.join("release/takeup"))
}
