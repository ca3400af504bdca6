//! The content of a file as an endless stream: from memory where it fits, else read as it goes.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use super::PayloadError;

/// Larger files are read while a run writes.
pub const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// A file shorter than this comes again soon enough for some compressors to notice; an LTO drive
/// remembers 1 KiB (ECMA-321), zstd at its highest levels much more.
const SHORT_BYTES: u64 = 8 << 10;

/// The stream.
#[derive(Debug)]
pub struct FileData {
    path: PathBuf,
    from: From,
}

#[derive(Debug)]
enum From {
    Memory { content: Vec<u8>, at: usize },
    File(File),
}

impl FileData {
    /// Reads the file once, or opens it where it is larger than [`MEMORY_BYTES_MAX`].
    pub fn open(path: &Path) -> Result<FileData, PayloadError> {
        let error = |source| PayloadError::read(path, source);
        let mut file = File::open(path).map_err(error)?;
        let mut content = Vec::new();
        file.by_ref().take(MEMORY_BYTES_MAX + 1).read_to_end(&mut content).map_err(error)?;
        if content.is_empty() {
            return Err(PayloadError::EmptyFile { path: path.to_owned() });
        }
        let from = if content.len() as u64 > MEMORY_BYTES_MAX {
            drop(content);
            file.rewind().map_err(error)?;
            From::File(file)
        } else {
            From::Memory { content, at: 0 }
        };
        Ok(FileData { path: path.to_owned(), from })
    }

    /// Fills `buffer` with what comes next.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<(), PayloadError> {
        match &mut self.from {
            From::Memory { content, at } => {
                loop_over(content, at, buffer);
                Ok(())
            }
            From::File(file) => read_around(file, &self.path, buffer),
        }
    }

    /// See [`super::Payload::cautions`].
    pub fn cautions(&self) -> Vec<String> {
        let path = self.path.display();
        match &self.from {
            From::File(_) => vec![format!(
                "{path} is larger than {} and read while it is written: that may be the limit",
                base::format::size(MEMORY_BYTES_MAX)
            )],
            From::Memory { content, .. } if (content.len() as u64) < SHORT_BYTES => vec![format!(
                "{path} has only {}, which come again and again: such data may compress better \
                 than the file",
                base::format::size(content.len() as u64)
            )],
            From::Memory { .. } => Vec::new(),
        }
    }
}

fn loop_over(content: &[u8], at: &mut usize, mut buffer: &mut [u8]) {
    while !buffer.is_empty() {
        let bytes = buffer.len().min(content.len() - *at);
        let (now, later) = buffer.split_at_mut(bytes);
        now.copy_from_slice(&content[*at..][..bytes]);
        *at = (*at + bytes) % content.len();
        buffer = later;
    }
}

fn read_around(file: &mut File, path: &Path, mut buffer: &mut [u8]) -> Result<(), PayloadError> {
    let error = |source| PayloadError::read(path, source);
    let mut is_fresh = false;
    while !buffer.is_empty() {
        match file.read(buffer) {
            Ok(0) if is_fresh => return Err(PayloadError::EmptyFile { path: path.to_owned() }),
            Ok(0) => {
                file.rewind().map_err(error)?;
                is_fresh = true;
            }
            Ok(bytes) => {
                buffer = &mut buffer[bytes..];
                is_fresh = false;
            }
            Err(again) if again.kind() == std::io::ErrorKind::Interrupted => {}
            Err(other) => return Err(error(other)),
        }
    }
    Ok(())
}
