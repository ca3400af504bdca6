//! How the libraries tell what they are doing: through one small trait, never by printing.
//!
//! The terminal, the JSON stream and the tests are three implementations of it.

use std::sync::Arc;

use crate::account::Stage;

/// What is counted while a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Objects handled: files, directories, links, devices.
    Members,
    /// Bytes of content read from or written to the tree.
    SourceBytes,
    /// Bytes of the archive before compression.
    ArchiveBytes,
    /// Bytes handed to the target.
    TargetBytes,
}

/// Something to tell that is not an error of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// How much it matters.
    pub level: Level,
    /// Object that it is about, as the user knows it; empty when it is about the run.
    pub object: Vec<u8>,
    /// What happened: a lowercase fragment.
    pub text: String,
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Only of interest with `-v`: which back end was chosen and why.
    Detail,
    /// Worth a line, no reason for exit code 2: a socket that was skipped.
    Note,
    /// As a note, and told with `--quiet`, too: what was read is more than was named.
    Notable,
    /// Something was not done or not as asked; what that means for the data decides on the exit
    /// code.
    Warning(Harm),
}

/// What a warning means for the data of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Harm {
    /// Data of the archive are lost, or are not what was archived.
    Damage,
    /// Blocks of the archive are not what was written; the files in them are named on their own.
    Blocks,
    /// The archive has lost its end, and what that held.
    CutOff,
    /// An object could not be read: it is not in the archive.
    Unread,
    /// A folder could not be listed: nothing below it is in the archive.
    Unlisted,
    /// An object is archived, but not as it was: it changed meanwhile, or part of it is missing.
    Flawed,
    /// An object was not restored, because something exists at its path.
    Existing,
    /// An object was not restored for another reason.
    NotRestored,
    /// An object was restored without part of its metadata.
    Metadata,
    /// What was asked for is not in the archive.
    NotFound,
    /// Part of the archive was not read, because its volume was not there.
    Unseen,
    /// A live object is not as archived.
    Different,
    /// Part of the archive is of a later version of the format, and cannot be checked.
    Later,
    /// Data may be lost, and nothing proves it.
    Doubt,
    /// The data are as they should be; something beside them was not done.
    Beside,
}

/// What a run does while no bytes pass, and no rate says anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// A tape is on its way to where it will be written.
    Winding,
    /// What stands on the medium is read.
    ReadingLabel,
    /// Another volume is asked for and made ready.
    Changing,
    /// Everything was handed over, and the drive puts what it holds on the medium.
    Flushing,
}

impl Pause {
    /// In tables and on the live line.
    pub fn name(self) -> &'static str {
        match self {
            Pause::Winding => "winding",
            Pause::ReadingLabel => "reading the label",
            Pause::Changing => "changing the volume",
            Pause::Flushing => "flushing the drive",
        }
    }
}

/// Receives what a run counts and notices. Called from many threads at once.
pub trait Monitor: Send + Sync {
    /// Adds to a counter.
    fn count(&self, counter: Counter, amount: u64);
    /// Takes a notice.
    fn notice(&self, notice: Notice);
    /// Tells how many blocks of the ring before the writer are ready, of how many.
    fn fill(&self, ready_blocks: usize, capacity_blocks: usize) {
        let _ = (ready_blocks, capacity_blocks);
    }
    /// Tells the stages of the run that begins, in the order in which data pass through them. Who
    /// wants to know what they do over time asks them now to keep it.
    fn stages(&self, stages: &[&Arc<Stage>]) {
        let _ = stages;
    }
    /// Tells what goes on while no bytes pass; `None` when they pass again.
    fn pause(&self, pause: Option<Pause>) {
        let _ = pause;
    }
}

/// A monitor that nobody looks at.
#[derive(Debug, Default)]
pub struct Silent;

impl Monitor for Silent {
    fn count(&self, _: Counter, _: u64) {}
    fn notice(&self, _: Notice) {}
}
