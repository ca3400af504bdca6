//! Where a sparse file has data.

use std::io;
use std::os::fd::AsFd;

use archive::member::Extent;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// Runs of data that a map may have; 16 bytes each. A file torn into more is archived whole.
pub const EXTENTS_MAX: usize = 1 << 16;

/// Asks the file system for the runs of data of an open file. `None` when there is no hole, when
/// the file system does not say, or when there are more than [`EXTENTS_MAX`] runs. Ask only when
/// fewer blocks are allocated than the size needs ([`crate::Captured::may_be_sparse`]).
///
/// Moves the file position (`SEEK_DATA` and `SEEK_HOLE` of lseek(2) cannot do without). The map is
/// what the file was at this moment: read what it lists, and compare with [`crate::recheck`] after.
///
/// # Errors
/// What lseek(2) says.
pub fn sparse_map(file: impl AsFd, size_bytes: u64) -> io::Result<Option<Vec<Extent>>> {
    let file = file.as_fd();
    let mut extents = Vec::new();
    let mut at = 0;
    while at < size_bytes {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // lseek(2): ENXIO when there is no data behind the offset.
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if start >= size_bytes {
            break;
        }
        let end = seek(file, SeekFrom::Hole(start))?.min(size_bytes);
        if end <= start {
            // The file is being changed under our hands.
            return Ok(None);
        }
        if extents.len() == EXTENTS_MAX {
            return Ok(None);
        }
        extents.push(Extent { offset_bytes: start, length_bytes: end - start });
        at = end;
    }
    let whole = Extent { offset_bytes: 0, length_bytes: size_bytes };
    Ok(if size_bytes == 0 || extents == [whole] { None } else { Some(extents) })
}
