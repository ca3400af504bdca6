//! The ranks of `takeup-mpi`: MPI as the communicator of the library.

use std::ffi::OsString;
use std::process::ExitCode;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use many::communicator::{CommunicationError, Communicator, Waiting};
use mpi::Threading;
use mpi::collective::{Root, SystemOperation};
use mpi::point_to_point::MatchedReceiveVec;
use mpi::topology::{Communicator as _, SimpleCommunicator};
use mpi::traits::{Destination, Source};
use takeup_mpi::arguments::ManyArgs;
use takeup_mpi::job::{JobEnd, run};
use takeup_mpi::say::to_standard_error;

/// Sleep between two looks for a message.
const IDLE: Duration = Duration::from_micros(500);

/// Messages over MPI. An error of MPI ends the job: its library ends all ranks.
struct Mpi {
    world: SimpleCommunicator,
    rank: usize,
    size: usize,
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, to: usize, bytes: &[u8]) -> Result<(), CommunicationError> {
        let to = i32::try_from(to).map_err(|_| CommunicationError::Lost(to))?;
        self.world.process_at_rank(to).send(bytes);
        Ok(())
    }

    fn receive(
        &self,
        wait: Duration,
        waiting: Waiting,
    ) -> Result<Option<(usize, Vec<u8>)>, CommunicationError> {
        let end = Instant::now() + wait;
        loop {
            if let Some(found) = self.world.any_process().immediate_matched_probe() {
                let (bytes, status) = found.matched_receive_vec::<u8>();
                let from = usize::try_from(status.source_rank()).unwrap_or_default();
                return Ok(Some((from, bytes)));
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            match waiting {
                Waiting::Busy => thread::yield_now(),
                Waiting::Idle => thread::sleep(IDLE),
            }
        }
    }

    fn sum(&self, counts: &[u64]) -> Result<Option<Vec<u64>>, CommunicationError> {
        let root = self.world.process_at_rank(0);
        if self.rank != 0 {
            root.reduce_into(counts, SystemOperation::sum());
            return Ok(None);
        }
        let mut sums = vec![0; counts.len()];
        root.reduce_into_root(counts, &mut sums[..], SystemOperation::sum());
        Ok(Some(sums))
    }
}

/// Whether only text about the program is asked for, which needs no MPI.
fn asks_for_help(typed: &[OsString]) -> bool {
    let asks = |argument: &OsString| {
        ["-h", "--help", "help", "-V", "--version"].iter().any(|asked| argument == asked)
    };
    typed.len() < 2 || typed.iter().any(asks)
}

/// A panic of any thread ends the rank at once, and so the job: the others would wait for ever, and
/// MPI cannot be left in good order.
fn abort_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        std::process::abort();
    }));
}

/// With `TAKEUP_TRAP=STEP:N` the rank breaks down at the N-th such step, for the tests.
#[cfg(debug_assertions)]
fn set_trap() {
    if let Ok(trap) = std::env::var("TAKEUP_TRAP")
        && let Some((step, passes)) = trap.split_once(':')
        && let Ok(passes) = passes.parse()
    {
        flow::trap::set(step, passes);
    }
}

fn main() -> ExitCode {
    abort_on_panic();
    #[cfg(debug_assertions)]
    set_trap();
    let typed: Vec<OsString> = std::env::args_os().collect();
    if asks_for_help(&typed) {
        let _ = ManyArgs::parse_from(&typed);
    }
    machine::open_files::raise();
    let Some((universe, _)) = mpi::initialize_with_threading(Threading::Funneled) else {
        to_standard_error("takeup-mpi: MPI cannot be initialised\n");
        return ExitCode::FAILURE;
    };
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let by = Mpi {
        world: world.duplicate(),
        rank: usize::try_from(rank).unwrap_or_default(),
        size: usize::try_from(size).unwrap_or(1),
    };
    match run(&typed, Rc::new(by)) {
        JobEnd::Code(code) => ExitCode::from(code),
        JobEnd::Alone => world.abort(1),
    }
}
