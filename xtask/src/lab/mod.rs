//! `cargo xtask lab`: the tape tests with the real st driver, in a virtual machine.
//!
//! QEMU boots Debian's kernel, or an older one (`old_kernel.rs`), with a small
//! initramfs (`initramfs.rs`, `modules.rs`). The guest sees the host's root read-only, with a
//! scratch layer on top, so that programs built on the host run unchanged. In the guest tgtd serves
//! a tape over iSCSI on loopback, and the kernel's own driver makes it `/dev/nst0`. `guest.rs` runs
//! one guest and one command in it. The scripts in `guest/` are the guest's side.
//!
//! `docs/lab.md` lists the differences of the virtual drive from a real one.

mod drive;
mod guest;
mod initramfs;
mod long;
mod modules;
mod old_kernel;
mod packages;
mod programs;

pub use self::drive::{DriveArguments, run as serve_drive};

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};

use self::guest::{Guest, Job, Outcome};
use self::packages::{Packages, Selection};
use self::programs::Watch;

/// Arguments of `cargo xtask lab`.
#[derive(clap::Args)]
pub struct LabArguments {
    /// Run a shell command in the guest, print its output, and exit with its exit code
    #[arg(long)]
    shell: bool,
    /// Have Ceph and ZFS in the guest, and run the tests that need them, and no others
    #[arg(long)]
    long: bool,
    /// End the guest after so many seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 600,
        default_value_if("long", "true", "1800")
    )]
    limit: u64,
    /// Memory of the guest; half of it can hold files
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 2048,
        default_value_if("long", "true", "4096")
    )]
    memory: u64,
    /// How the guest's processor is made
    #[arg(long, value_enum, default_value_t = guest::Accelerator::Tcg)]
    accelerator: guest::Accelerator,
    /// Boot an older kernel [default: this machine's Debian's]
    #[arg(long, value_name = "VERSION", value_enum, conflicts_with = "long")]
    kernel: Option<old_kernel::OldKernel>,
    /// Test this drive only: tgtd or sim [default: both]
    #[arg(long, value_name = "NAME", value_parser = programs::drive_names(),
        conflicts_with = "long")]
    drive: Option<String>,
    /// Tests to run, by a part of their name [default: all]; with --shell the command
    #[arg(last = true, value_name = "TEST")]
    words: Vec<String>,
}

impl LabArguments {
    fn selection(&self) -> Selection {
        if self.long { Selection::Long } else { Selection::Usual }
    }
}

/// Runs the lab's tests, or one command in the guest.
///
/// # Errors
/// When the guest cannot be made or does not end within its limit. A failed test is an exit code.
pub fn run(arguments: &LabArguments) -> anyhow::Result<ExitCode> {
    if arguments.shell {
        return run_shell(arguments);
    }
    run_tests(arguments)
}

fn run_tests(arguments: &LabArguments) -> anyhow::Result<ExitCode> {
    let packages = Packages::provide(arguments.selection(), arguments.kernel)?;
    let programs = programs::build(&crate::folders::repository())?;
    let tests = match arguments.selection() {
        Selection::Usual => programs::Tests::on(arguments.drive.as_deref()),
        Selection::Long => programs::Tests::long(),
    };
    let job = Job {
        command: programs::command(&programs, &tests, &arguments.words),
        folder: crate::folders::repository(),
        environment: Vec::new(),
    };
    let mut watch = Watch::new();
    let ended = guest(arguments, &packages).run(&job, &mut |bytes| {
        print_bytes(bytes);
        watch.take(bytes);
    });
    println!("\n{}", programs::table(&watch.results));
    let outcome = ended.with_context(|| format!("in {}", watch.unfinished()))?;
    report_times(&outcome);
    if watch.results.is_empty() {
        bail!("no test has a name with {}", arguments.words.join(" or "));
    }
    Ok(ExitCode::from(outcome.exit_code))
}

fn run_shell(arguments: &LabArguments) -> anyhow::Result<ExitCode> {
    if arguments.words.is_empty() {
        bail!("--shell needs a command: cargo xtask lab --shell -- 'mt -f /dev/nst0 status'");
    }
    let packages = Packages::provide(arguments.selection(), arguments.kernel)?;
    let job = Job {
        // Words are joined as by `ssh`: one word is a script, several are a command.
        command: arguments.words.join(" "),
        folder: std::env::current_dir()?,
        environment: Vec::new(),
    };
    let outcome = guest(arguments, &packages).run(&job, &mut print_bytes)?;
    report_times(&outcome);
    Ok(ExitCode::from(outcome.exit_code))
}

/// Passes output on at once, and ignores a reader that has gone.
fn print_bytes(bytes: &[u8]) {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(bytes).and_then(|()| output.flush());
}

fn report_times(outcome: &Outcome) {
    eprintln!(
        "lab: up after {:.1} s, done after {:.1} s",
        outcome.up_after.as_secs_f64(),
        outcome.done_after.as_secs_f64(),
    );
}

fn guest<'packages>(arguments: &LabArguments, packages: &'packages Packages) -> Guest<'packages> {
    Guest {
        packages,
        memory_mib: arguments.memory,
        accelerator: arguments.accelerator,
        limit: Duration::from_secs(arguments.limit),
    }
}
