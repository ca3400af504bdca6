//! The folder of a case: files of noise, a virtual drive or disk, and commands that run there.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context as _;
use serde_json::Value;

use super::super::Ground;
use super::super::mounted::{Mounted, succeeded};
use super::pipelines::{Pipeline, Scenery};

/// Files for tar or cpio.
const FILES: usize = 16;

/// The folder of a case.
pub(super) struct Place {
    folder: PathBuf,
    path: OsString,
    takeup: PathBuf,
    has_drive: bool,
    _mounted: Option<Mounted>,
}

impl Place {
    pub(super) fn new(ground: &Ground, pipeline: &Pipeline) -> anyhow::Result<Place> {
        let folder = ground.folder.clone();
        let programs = folder.join("programs");
        fs::create_dir_all(&programs).context("create a folder for programs")?;
        std::os::unix::fs::symlink(&ground.takeup, programs.join("takeup"))?;
        let mut path = programs.into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut place =
            Place { folder, path, takeup: ground.takeup.clone(), has_drive: false, _mounted: None };
        place.write_files(ground.seed, pipeline)?;
        place._mounted = match &pipeline.scenery {
            Scenery::Files => None,
            Scenery::Drive(options) => Some(place.mount("tape", "drive", options)?),
            Scenery::Disk(options) => Some(place.mount("disk", "slow", options)?),
        };
        place.has_drive = matches!(pipeline.scenery, Scenery::Drive(_));
        Ok(place)
    }

    fn write_files(&self, seed: u64, pipeline: &Pipeline) -> anyhow::Result<()> {
        let bytes = usize::try_from(pipeline.bytes)?;
        let noise = testkit::samples::noise(seed, bytes);
        fs::write(self.folder.join("noise"), &noise)?;
        if pipeline.line.contains(" text") {
            let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
            let text: Vec<u8> =
                noise[..bytes / 2].iter().flat_map(|it| [digit(it >> 4), digit(it & 15)]).collect();
            fs::write(self.folder.join("text"), text)?;
        }
        fs::create_dir(self.folder.join("files"))?;
        if pipeline.line.contains("files") {
            for (number, part) in noise.chunks(bytes.div_ceil(FILES)).enumerate() {
                fs::write(self.folder.join(format!("files/{number}")), part)?;
            }
        }
        Ok(())
    }

    fn mount(&self, kind: &str, name: &str, options: &[String]) -> anyhow::Result<Mounted> {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        Ok(Mounted::start(&self.takeup, &self.folder, kind, name, &options)?.0)
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("/bin/bash");
        command.args(["-o", "pipefail", "-c", line]).current_dir(&self.folder);
        command.env("PATH", &self.path).stdin(Stdio::null());
        command
    }

    fn rewind(&self) -> anyhow::Result<()> {
        if self.has_drive {
            let output = self.shell("mt-st -f drive/nst0 rewind").output()?;
            succeeded(&output, "mt-st rewind")?;
        }
        Ok(())
    }

    /// Runs a line and times it.
    pub(super) fn seconds(&self, line: &str) -> anyhow::Result<f64> {
        self.rewind()?;
        let mut command = self.shell(line);
        let start = Instant::now();
        let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
        let seconds = start.elapsed().as_secs_f64();
        succeeded(&output, line)?;
        Ok(seconds)
    }

    /// The program's diagnosis of a command line.
    pub(super) fn explained(&self, line: &str) -> anyhow::Result<Value> {
        // Files just written are synced before anything is timed.
        succeeded(&self.shell("sync -f .").output()?, "sync")?;
        self.rewind()?;
        let mut command = Command::new(&self.takeup);
        command.args(["explain", "--json", "--shell", "/bin/bash", line]);
        let output = command.current_dir(&self.folder).env("PATH", &self.path).output()?;
        succeeded(&output, line)?;
        serde_json::from_slice(&output.stdout).context("what explain printed")
    }
}
