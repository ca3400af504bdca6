//! Random identities.

use std::fs::File;
use std::io::{self, Read as _};

/// 16 random bytes, as good as the kernel's.
///
/// # Errors
/// When `/dev/urandom` cannot be read.
pub fn id() -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(id)
}
