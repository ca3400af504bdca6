//! Where a run writes to: one way out, whatever is at its end.
//!
//! A [`Destination`] is what a run is given; an [`Output`] is one while it is written to, with an
//! error type of its own. What a run has to know of it (whether a set is cut into segments, when
//! the writer starts again, what became of it at the end) it asks the output, and nobody else tells
//! files from tapes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive::index::ExtentRecord;
use device::target::{Existing, FileMode, Target, TargetError, TargetKind};
use flow::account::Account;
use flow::backend::Choice;
use flow::cancel::{Cancel, Stopped};
use flow::restart::Restart;
use flow::ring::Block;
use flow::run::Endpoint;
use flow::sink::{FileSink, Sink, StreamSink, WriteError};
use tapeset::{Safe, Segments, TapeDestination, TapeReport, TapeSetError, TapeSink, TapeStream};

/// Time between two looks for a reader of a named pipe. Nobody is told when one comes.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Where a run writes to.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A file, a block device or a pipe by its path; `-` is standard output.
    Path(OsString),
    /// A tape.
    Tape(TapeDestination),
}

impl<T: Into<OsString>> From<T> for Destination {
    fn from(path: T) -> Destination {
        Destination::Path(path.into())
    }
}

impl Destination {
    /// Whether it is a tape.
    pub fn is_tape(&self) -> bool {
        matches!(self, Destination::Tape(_))
    }

    /// Its name for people.
    pub fn shown(&self) -> String {
        match self {
            Destination::Path(path) if path == "-" => "standard output".to_owned(),
            Destination::Path(path) => path.to_string_lossy().into_owned(),
            Destination::Tape(tape) => tape.drive.name().to_owned(),
        }
    }

    /// Its path, or the name of its drive.
    pub fn name(&self) -> &OsStr {
        match self {
            Destination::Path(path) => path,
            Destination::Tape(tape) => tape.drive.name().as_ref(),
        }
    }
}

/// Why a destination does not take more data.
#[derive(Debug, thiserror::Error)]
pub enum DestinationError {
    /// What a path leads to does not take them.
    #[error(transparent)]
    Path(#[from] WriteError),
    /// The tape does not take them.
    #[error(transparent)]
    Tape(#[from] TapeSetError),
}

impl From<Stopped> for DestinationError {
    fn from(stopped: Stopped) -> DestinationError {
        WriteError::from(stopped).into()
    }
}

/// A destination while it is written to.
pub(crate) enum Output<'a> {
    /// What a path leads to.
    Path(Box<dyn Sink<Error = WriteError>>, Target),
    /// A set on tapes.
    Set(Box<TapeSink<'a>>),
    /// A tape that takes a stream as it is.
    Stream(TapeStream<'a>),
}

/// What there is to tell of a destination that is complete.
#[derive(Debug, Default)]
pub(crate) struct Completed {
    /// What of the file before could not be kept.
    pub(crate) not_kept: Option<String>,
    /// Time until everything was on the medium.
    pub(crate) synchronise_seconds: f64,
    /// What only a set on tapes has to tell.
    pub(crate) tape: Option<TapeReport>,
}

impl Output<'_> {
    /// What a target takes, several writes in flight where it takes them at any offset.
    ///
    /// # Errors
    /// When the engine is not to be had.
    pub(crate) fn to_target(
        target: Target,
        engine: &Choice,
        depth: usize,
        cancel: &Cancel,
    ) -> io::Result<Output<'static>> {
        let file = Arc::clone(&target.file);
        let sink: Box<dyn Sink<Error = WriteError>> = match target.kind {
            TargetKind::File | TargetKind::BlockDevice => {
                let in_flight = engine.open_for(depth, &file)?;
                Box::new(FileSink::new(file, in_flight))
            }
            _ => Box::new(StreamSink::new(file, cancel.clone())),
        };
        Ok(Output::Path(sink, target))
    }

    /// What it is.
    pub(crate) fn endpoint(&self) -> Endpoint {
        match self {
            Output::Path(_, target) => target.kind.into(),
            Output::Set(_) | Output::Stream(_) => Endpoint::Tape,
        }
    }

    /// What a path leads to.
    pub(crate) fn target(&self) -> Option<&Target> {
        match self {
            Output::Path(_, target) => Some(target),
            Output::Set(_) | Output::Stream(_) => None,
        }
    }

    fn set(&self) -> Option<&TapeSink<'_>> {
        match self {
            Output::Set(set) => Some(set),
            Output::Path(..) | Output::Stream(_) => None,
        }
    }

    /// Where segments end, of a set on tapes.
    pub(crate) fn segments(&self) -> Option<Arc<Segments>> {
        self.set().map(TapeSink::segments)
    }

    /// When the writer should start again after it found a ring of so many blocks empty.
    pub(crate) fn restart(&self, capacity_blocks: usize) -> Restart {
        let at_once = Restart::AtFill { blocks: 1 };
        self.set().map_or(at_once, |set| set.restart(capacity_blocks))
    }

    /// The archive is complete; what follows is its index. Returns where the parts of the archive
    /// are, of a set on tapes.
    pub(crate) fn begin_index(&mut self) -> Vec<ExtentRecord> {
        match self {
            Output::Set(set) => set.begin_index(),
            Output::Path(..) | Output::Stream(_) => Vec::new(),
        }
    }

    /// Gives up what does not come to its end. Returns what is on the media of a set.
    pub(crate) fn abandon(self) -> Option<Safe> {
        match self {
            Output::Set(set) => Some(set.abandon()),
            Output::Path(..) | Output::Stream(_) => None,
        }
    }

    /// Makes what was written good, behind its end.
    ///
    /// # Errors
    /// When it cannot be synchronised, or not get its name.
    pub(crate) fn complete(self) -> Result<Completed, TargetError> {
        let begun = Instant::now();
        match self {
            Output::Path(sink, target) => {
                drop(sink);
                let not_kept = target.complete()?.not_kept;
                let synchronise_seconds = begun.elapsed().as_secs_f64();
                Ok(Completed { not_kept, synchronise_seconds, tape: None })
            }
            Output::Set(set) => {
                let tape = set.into_report();
                let synchronise_seconds = tape.synchronise_seconds;
                Ok(Completed { not_kept: None, synchronise_seconds, tape: Some(tape) })
            }
            Output::Stream(stream) => {
                let synchronise_seconds = stream.synchronise_seconds();
                Ok(Completed { synchronise_seconds, ..Completed::default() })
            }
        }
    }
}

impl Sink for Output<'_> {
    type Error = DestinationError;

    fn write(&mut self, block: Block, account: &mut Account) -> Result<(), DestinationError> {
        match self {
            Output::Path(sink, _) => sink.write(block, account)?,
            Output::Set(set) => set.write(block, account)?,
            Output::Stream(stream) => stream.write(block, account)?,
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), DestinationError> {
        match self {
            Output::Path(sink, _) => sink.settle()?,
            Output::Set(set) => set.settle()?,
            Output::Stream(stream) => stream.settle()?,
        }
        Ok(())
    }

    fn finish(&mut self, account: &mut Account) -> Result<(), DestinationError> {
        match self {
            Output::Path(sink, _) => sink.finish(account)?,
            Output::Set(set) => set.finish(account)?,
            Output::Stream(stream) => stream.finish(account)?,
        }
        Ok(())
    }
}

/// Opens what a path leads to; a named pipe once somebody reads it, or not at all when the run is
/// stopped before.
pub(crate) fn open_target(
    path: &OsStr,
    existing: Existing,
    mode: FileMode,
    cancel: &Cancel,
) -> Result<Result<Target, TargetError>, Stopped> {
    loop {
        match Target::open(path, existing, mode) {
            Err(TargetError::NoReader { .. }) => {
                cancel.check()?;
                std::thread::sleep(LOOK_AGAIN);
            }
            other => return Ok(other),
        }
    }
}
