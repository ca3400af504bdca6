//! Where a run writes to: one interface for all targets.
//!
//! A [`Destination`] describes the target; an [`Output`] is the target while it is written, with
//! its own error type. The run asks the output what it needs to know: whether a set is cut into
//! segments, when the writer starts again, and the result at the end. No other code distinguishes
//! files and tapes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
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
use tapeset::{
    Cut, Safe, Segments, TapeDestination, TapeReport, TapeSetError, TapeSink, TapeStream,
};

/// Time between two checks for a reader of a named pipe; the kernel does not report when one comes.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Where a run writes to.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A file, a block device or a pipe by its path; `-` is standard output.
    Path(OsString),
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

    /// Its name in messages.
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

/// Why a destination does not accept more data.
#[derive(Debug, thiserror::Error)]
pub enum DestinationError {
    /// The path's target does not.
    #[error(transparent)]
    Path(#[from] WriteError),
    /// The tape does not.
    #[error(transparent)]
    Tape(#[from] TapeSetError),
}

impl From<Stopped> for DestinationError {
    fn from(stopped: Stopped) -> DestinationError {
        WriteError::from(stopped).into()
    }
}

/// A destination that is being written.
pub(crate) enum Output<'a> {
    Path(Box<dyn Sink<Error = WriteError>>, Target),
    Set(Box<TapeSink<'a>>),
    /// A tape that takes a raw stream.
    Stream(TapeStream<'a>),
}

/// The result of a completed destination.
#[derive(Debug, Default)]
pub(crate) struct Completed {
    /// Properties of the replaced file that could not be kept.
    pub(crate) not_kept: Option<String>,
    /// Time until everything was on the medium.
    pub(crate) synchronise_seconds: f64,
    /// Results that only a set on tapes has.
    pub(crate) tape: Option<TapeReport>,
}

impl Output<'_> {
    /// Writes to the target, with several writes in flight if it accepts any offset.
    ///
    /// # Errors
    /// When the engine is not available.
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

    /// The kind of target.
    pub(crate) fn endpoint(&self) -> Endpoint {
        match self {
            Output::Path(_, target) => target.kind.into(),
            Output::Set(_) | Output::Stream(_) => Endpoint::Tape,
        }
    }

    /// The target of a path.
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

    /// When the writer starts again after a ring of this many blocks ran empty.
    pub(crate) fn restart(&self, capacity_blocks: usize) -> Restart {
        let at_once = Restart::AtFill { blocks: 1 };
        self.set().map_or(at_once, |set| set.restart(capacity_blocks))
    }

    /// Ends the archive; its index follows. Returns the locations of the archive's parts, for a set
    /// on tapes.
    pub(crate) fn begin_index(&mut self) -> Vec<ExtentRecord> {
        match self {
            Output::Set(set) => set.begin_index(),
            Output::Path(..) | Output::Stream(_) => Vec::new(),
        }
    }

    /// Set when what follows will be dropped: a medium is full, and there is no other.
    pub(crate) fn is_ending(&self) -> Option<Arc<AtomicBool>> {
        self.set().map(TapeSink::is_ending)
    }

    /// Bytes for which the only medium of a set has room.
    pub(crate) fn room_bytes(&self) -> Option<u64> {
        self.set().and_then(TapeSink::room_bytes)
    }

    /// Why a set on tape ends early, if it does.
    pub(crate) fn ends_early(&mut self) -> Option<TapeSetError> {
        match self {
            Output::Set(set) => set.ends_early(),
            Output::Path(..) | Output::Stream(_) => None,
        }
    }

    /// Where a set that ends early is cut, so that an index of so many bytes has room.
    pub(crate) fn cut_for(&self, index_bytes: u64) -> Option<Cut> {
        self.set().and_then(|set| set.cut_for(index_bytes))
    }

    /// Cuts a set that ends early.
    ///
    /// # Errors
    /// When the medium cannot be written to there.
    pub(crate) fn cut(&mut self, cut: &Cut) -> Result<(), TapeSetError> {
        match self {
            Output::Set(set) => set.cut(cut),
            Output::Path(..) | Output::Stream(_) => Ok(()),
        }
    }

    /// Gives up an incomplete target. Returns what is on the media of a set.
    pub(crate) fn abandon(self) -> Option<Safe> {
        match self {
            Output::Set(set) => Some(set.abandon()),
            Output::Path(..) | Output::Stream(_) => None,
        }
    }

    /// Makes the written data durable, at the end.
    ///
    /// # Errors
    /// When synchronising or renaming fails.
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

/// Opens the target of a path. A named pipe is opened once it has a reader; if the run is stopped
/// before, it is not opened.
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
