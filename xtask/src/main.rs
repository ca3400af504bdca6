//! The project's own chores: `cargo xtask NAME`.
//!
//! One subcommand per chore, one module or crate per subcommand. The hidden subcommands are
//! programs that `peers` starts in its pipelines; they are in this binary so that a checkout needs
//! no other. This crate only runs the product.

// A chore prints to the person who started it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod folders;
mod lab;
mod mutants;
mod notices;
mod replay;
mod site;
mod statistics;
mod tidy;
mod trial;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "xtask", about = "The project's own chores")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run Takeup and other tools side by side and compare
    Peers(peers::PeersArguments),
    /// Run the tape tests on the real st driver, in a guest
    Lab(lab::LabArguments),
    /// Check the rules of style that a machine can check
    Tidy(tidy::TidyArguments),
    /// Ask the five published accounts again, by commands of Takeup alone
    Replay(replay::ReplayArguments),
    /// Print what the judgement of experiments claims of known truths, before and now
    Statistics(statistics::StatisticsArguments),
    /// Put small defects into the source and see whether the tests fail
    Mutants(mutants::MutantsArguments),
    /// Put cases of known truth to the program and hold its answers against them
    Trial(trial::TrialArguments),
    /// Write the licences and the list of parts that a binary is shipped with
    Notices(notices::NoticesArguments),
    /// Build the documents as a site, and check its links
    Site(site::SiteArguments),
    /// Serve a tape drive over iSCSI, in the lab's guest
    #[command(hide = true)]
    LabDrive(lab::DriveArguments),
    /// Run one program of a pipeline and report what it used
    #[command(hide = true)]
    Stage(peers::StageArguments),
    /// Write BYTES to standard output in writes of 1 MiB
    #[command(hide = true)]
    Produce(peers::ProduceArguments),
    /// Read standard input to its end and print the number of bytes
    #[command(hide = true)]
    Count,
    /// Open, read and close the listed files with parallel threads
    #[command(hide = true)]
    Floor(peers::FloorArguments),
    /// Write to a virtual drive as fast as it goes and print its rate
    #[command(hide = true)]
    DriveRate(peers::DriveRateArguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().chore {
        Chore::Peers(arguments) => peers::run(&arguments),
        Chore::Lab(arguments) => lab::run(&arguments),
        Chore::Tidy(arguments) => tidy::run(&arguments),
        Chore::Replay(arguments) => replay::run(&arguments),
        Chore::Statistics(arguments) => statistics::run(&arguments),
        Chore::Mutants(arguments) => mutants::run(&arguments),
        Chore::Trial(arguments) => trial::run(&arguments),
        Chore::Notices(arguments) => notices::run(&arguments),
        Chore::Site(arguments) => site::run(&arguments),
        Chore::LabDrive(arguments) => lab::serve_drive(&arguments),
        Chore::Stage(arguments) => peers::run_stage(&arguments),
        Chore::Produce(arguments) => peers::produce(&arguments),
        Chore::Count => peers::count(),
        Chore::Floor(arguments) => peers::run_floor(&arguments),
        Chore::DriveRate(arguments) => peers::run_drive_rate(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
