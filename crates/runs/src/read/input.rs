//! The source of an archive, opened once, with what is known before it is read.

use std::os::fd::OwnedFd;

use archive::chunk::StreamFormat;
use catalogue::IndexFile;
use device::source::Source;
use flow::cancel::Cancel;
use flow::monitor::{Monitor, Pause};
use flow::run::Endpoint;
use tapeset::{Need, OpenTape};

use super::excerpt::{self, Chunks};
use super::failure::ReadFailure;
use crate::origin::Origin;

/// Whether an index must follow an archive that does not announce one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexNeed {
    /// Only if the archive announces it.
    #[default]
    AsTheArchiveSays,
    /// Always, whoever wrote the archive.
    Required,
}

/// The source of the bytes. Opened once in a run: reopening a named pipe would wait for a second
/// writer. Read once: the reading thread has it to itself.
pub(crate) enum Input {
    /// A file, a device, a pipe.
    File(Source),
    Tape(OpenTape),
}

impl Input {
    /// Opens the source. Reports to `monitor` while a tape is wound.
    pub fn open(
        from: &Origin,
        need: Need,
        monitor: &dyn Monitor,
        cancel: &Cancel,
    ) -> Result<Input, ReadFailure> {
        Ok(match from {
            Origin::Path(path) => Input::File(Source::open(path)?),
            Origin::Tape(tape) => {
                monitor.pause(Some(Pause::Winding));
                let opened = OpenTape::open(tape, need, cancel);
                monitor.pause(None);
                Input::Tape(opened?)
            }
        })
    }

    /// Damage that is known before reading.
    pub fn damage(&self) -> Vec<String> {
        match self {
            Input::File(_) => Vec::new(),
            Input::Tape(tape) => tape.damage().to_vec(),
        }
    }

    /// Locations of the chunks of a compressed set on tape, as far as its index has them: after
    /// unreadable bytes the next chunk would have to be searched.
    pub fn chunks(&self) -> Option<Chunks> {
        match self {
            Input::File(_) => None,
            Input::Tape(_) if self.can_jump() => {
                self.index().and_then(|index| excerpt::all_chunks(&index))
            }
            Input::Tape(_) => None,
        }
    }

    /// The file or block device that the page cache may hold, and its length; also for standard
    /// input.
    pub fn cacheable(&self) -> Option<(&OwnedFd, u64)> {
        let Input::File(source) = self else { return None };
        let length_bytes = source.length_bytes.or_else(|| {
            let is_file = Endpoint::of_file(&source.file) == Endpoint::File;
            is_file.then(|| rustix::fs::fstat(&source.file).ok().map(|it| it.st_size as u64))?
        });
        length_bytes.map(|length_bytes| (&*source.file, length_bytes))
    }

    /// Whether parts of it can be read.
    pub fn can_jump(&self) -> bool {
        match self {
            Input::File(_) => true,
            Input::Tape(tape) => tape.knows_its_parts(),
        }
    }

    /// The index, required before the archive is read.
    ///
    /// # Errors
    /// `NoIndex`.
    pub fn require_known_index(&self, from: &Origin) -> Result<IndexFile, ReadFailure> {
        let name = from.name().to_string_lossy().into_owned();
        self.index().ok_or(ReadFailure::NoIndex { name })
    }

    /// Refuses a file without an index at its end. Whether other sources have one shows at the end
    /// of reading.
    ///
    /// # Errors
    /// `NoIndex`.
    pub fn require_index(&self) -> Result<(), ReadFailure> {
        match self {
            Input::File(source)
                if Endpoint::of_file(&source.file) == Endpoint::File && self.index().is_none() =>
            {
                Err(ReadFailure::NoIndex { name: source.name.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The index, if it is available before the archive. Not for a block device: the last thing on
    /// it may be the index of an older, longer archive.
    pub fn index(&self) -> Option<IndexFile> {
        match self {
            Input::File(source) if Endpoint::of_file(&source.file) == Endpoint::BlockDevice => None,
            Input::File(source) => IndexFile::find(source),
            Input::Tape(tape) => tape.index().map(|index| index.index.clone()),
        }
    }
}

/// Whether a source is uncompressed, with reads at any offset.
pub(super) fn is_plain_file(source: &Source) -> bool {
    let mut prefix = [0; StreamFormat::PREFIX_BYTES];
    source.length_bytes.is_some_and(|length| length > 0)
        && base::interruptible::read_at(&source.file, &mut prefix, 0)
            .is_ok_and(|bytes| StreamFormat::detect(&prefix[..bytes]) == StreamFormat::Plain)
}
