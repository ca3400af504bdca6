//! fio as a process: started, watched, ended.
//!
//! It is one process, also for a job of somebody's own: those that fio forks leave its process
//! group, and would go on writing when it is stopped. And it is in a group with a guard, so that it
//! ends with this process however that ends.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use flow::cancel::Cancel;
use machine::processes::huge_page_bytes;
use machine::programs;

use super::DiskError;
use crate::programs::group::ProcessGroup;
use crate::read::Pages;

/// Longest output of fio that is read; its bins take some 100 kB for each job.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// What a run of fio left.
#[derive(Debug)]
pub struct ProcessOutput {
    /// What it printed.
    pub document: Vec<u8>,
    /// Huge pages seen in its memory, where it ran for long enough to be looked at.
    pub huge_page_bytes: Option<u64>,
}

/// What fio says of itself.
pub fn version() -> Result<String, DiskError> {
    let output = programs::command("fio")
        .and_then(|mut fio| fio.arg("--version").stderr(Stdio::null()).output());
    match output {
        Ok(output) => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(DiskError::NoFio),
        Err(source) => Err(DiskError::Start(source)),
    }
}

/// Whether that version of fio tells how submission latencies are distributed
/// (`slat_percentiles`, from 3.20 at the latest), and not only their mean.
pub fn knows_slat_percentiles(version: &str) -> bool {
    let numbers = version.trim_start_matches("fio-").split(['.', '-']);
    let numbers: Vec<u32> = numbers.map_while(|number| number.parse().ok()).take(2).collect();
    numbers.as_slice() >= [3, 20].as_slice()
}

/// Holds for all sections of a job, which cannot say otherwise: all of fio is one process, and one
/// that verifies writes no file of how far it came into the working folder.
const FOR_ALL: &str = "[global]\nthread\nverify_state_save=0\n";

/// Runs fio and returns what it printed; it is ended when the experiment is. A `job` is given to it
/// on standard input. `look` is called every few milliseconds meanwhile.
pub fn run(
    arguments: &[OsString],
    job: Option<&str>,
    pages: Pages,
    look: &mut dyn FnMut(),
    cancel: &Cancel,
) -> Result<ProcessOutput, DiskError> {
    let mut command = programs::command("fio").map_err(DiskError::Start)?;
    if pages == Pages::Huge {
        command.env("GLIBC_TUNABLES", tunables(std::env::var("GLIBC_TUNABLES").ok()));
    }
    let group = ProcessGroup::start().map_err(DiskError::Start)?;
    let mut child = command
        .args(arguments)
        .process_group(group.number())
        .stdin(if job.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(DiskError::Start)?;
    if let (Some(job), Some(mut input)) = (job, child.stdin.take()) {
        // A fio that has ended already says why. It reads all of it before it prints.
        let _ = input.write_all(format!("{FOR_ALL}{job}").as_bytes());
    }
    let output = reader(child.stdout.take());
    let errors = reader(child.stderr.take());
    let mut huge = HugePages::default();
    let status = wait(&mut child, &mut huge, look, cancel)?;
    drop(group);
    let join = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
    let (output, errors) = (join(output), join(errors));
    if status.success() {
        Ok(ProcessOutput { document: output, huge_page_bytes: huge.bytes })
    } else {
        let said = String::from_utf8_lossy(&errors);
        let line = said.lines().find(|line| line.contains("fio:")).unwrap_or("it failed");
        Err(DiskError::Failed { said: line.trim_start_matches("fio: ").to_owned() })
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What is cut off here fails in the parser.
            let _ = pipe.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
        }
        bytes
    })
}

fn wait(
    child: &mut Child,
    huge: &mut HugePages,
    look: &mut dyn FnMut(),
    cancel: &Cancel,
) -> Result<ExitStatus, DiskError> {
    const STEP: Duration = Duration::from_millis(20);
    let mut step = 0u64;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(error) => return Err(DiskError::Wait(error)),
        }
        if let Err(stopped) = cancel.check() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(stopped.into());
        }
        look();
        huge.look(step, child.id());
        step += 1;
        std::thread::sleep(STEP);
    }
}

/// Huge pages that were seen in fio's memory.
#[derive(Default)]
struct HugePages {
    bytes: Option<u64>,
}

impl HugePages {
    /// Looks a few times early in a run: counting takes the kernel a walk over the whole memory.
    fn look(&mut self, step: u64, pid: u32) {
        let seldom = step >= 4 && step.is_power_of_two() && step <= 256;
        if seldom && self.bytes.unwrap_or(0) == 0 {
            self.bytes = huge_page_bytes(pid).or(self.bytes);
        }
    }
}

/// glibc's allocator asks for huge pages when it is told to (glibc manual, Memory Allocation
/// Tunables, from 2.35); other tunables stay.
fn tunables(known: Option<String>) -> String {
    const HUGE: &str = "glibc.malloc.hugetlb=1";
    match known {
        Some(known) if !known.is_empty() => format!("{known}:{HUGE}"),
        _ => HUGE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_know_an_option() {
        let known = ["fio-3.33", "fio-3.20-12-gabc", "fio-4.0"];
        assert!(known.into_iter().all(knows_slat_percentiles));
        let unknown = ["fio-3.16", "fio-2.99", "", "fio"];
        assert!(!unknown.into_iter().any(knows_slat_percentiles));
    }
}
