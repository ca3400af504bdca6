//! What an archive is read from, opened once, with what is known of it before it is read.

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

/// Whether an index must follow an archive that does not say so itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexNeed {
    /// What the archive says is what counts.
    #[default]
    AsTheArchiveSays,
    /// It must, whoever wrote the archive.
    Required,
}

/// Where the bytes come from. Opened once in a run: who opens a named pipe again finds nobody. Read
/// once: the thread that reads it has it to itself.
pub(crate) enum Input {
    /// A file, a device, a pipe.
    File(Source),
    /// A tape.
    Tape(OpenTape),
}

impl Input {
    /// Opens what an archive is read from. `monitor` hears that a tape is wound meanwhile.
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

    /// What is known not to be as it was written, before anything is read.
    pub fn damage(&self) -> Vec<String> {
        match self {
            Input::File(_) => Vec::new(),
            Input::Tape(tape) => tape.damage().to_vec(),
        }
    }

    /// Where the chunks of a compressed set on tape are, as far as its index knows: behind bytes
    /// that cannot be read the next one would have to be searched.
    pub fn chunks(&self) -> Option<Chunks> {
        match self {
            Input::File(_) => None,
            Input::Tape(_) if self.can_jump() => {
                self.index().and_then(|index| excerpt::all_chunks(&index))
            }
            Input::Tape(_) => None,
        }
    }

    /// The file or block device that the page cache may hold, and its length; also when it is
    /// standard input.
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

    /// The index, which must be there before the archive is read.
    ///
    /// # Errors
    /// `NoIndex`.
    pub fn require_known_index(&self, from: &Origin) -> Result<IndexFile, ReadFailure> {
        let name = from.name().to_string_lossy().into_owned();
        self.index().ok_or(ReadFailure::NoIndex { name })
    }

    /// Refuses a file without an index that can be found from its end. What other sources have is
    /// known when they have been read.
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

    /// The index, if it can be had before the archive. Not that of a block device: the last thing
    /// on it may be the index of a longer archive that was there before.
    pub fn index(&self) -> Option<IndexFile> {
        match self {
            Input::File(source) if Endpoint::of_file(&source.file) == Endpoint::BlockDevice => None,
            Input::File(source) => IndexFile::find(source),
            Input::Tape(tape) => tape.index().map(|index| index.index.clone()),
        }
    }
}

/// Whether a source is not compressed, and read at any offset.
pub(super) fn is_plain_file(source: &Source) -> bool {
    let mut prefix = [0; StreamFormat::PREFIX_BYTES];
    source.length_bytes.is_some_and(|length| length > 0)
        && base::interruptible::read_at(&source.file, &mut prefix, 0)
            .is_ok_and(|bytes| StreamFormat::detect(&prefix[..bytes]) == StreamFormat::Plain)
}
