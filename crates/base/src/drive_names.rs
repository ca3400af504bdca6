//! Names that only tape drives have (st.rst of the kernel, udev's rules), for paths at which there
//! may be nothing yet. Whether a drive is there is for `device::tape` to find out.

use std::path::Path;

/// `nst0` in any folder, with a letter for the mode, as virtual drives are called, too; or
/// `/dev/tape/by-id/…-nst`: the tape stays where it is when these are closed.
pub fn is_non_rewinding(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    is_numbered(name_of(text), b"nst")
        || (text.starts_with(b"/dev/tape/") && name_of(text).ends_with(b"-nst"))
}

/// One of those, `/dev/st0`, or another name below `/dev/tape`.
pub fn is_drive(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    let is_rewinding = || text.strip_prefix(b"/dev/").is_some_and(|name| is_numbered(name, b"st"));
    is_non_rewinding(path) || text.starts_with(b"/dev/tape/") || is_rewinding()
}

fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

fn is_numbered(name: &[u8], prefix: &[u8]) -> bool {
    let Some(number) = name.strip_prefix(prefix) else { return false };
    let number = match number {
        [digits @ .., b'l' | b'm' | b'a'] => digits,
        digits => digits,
    };
    !number.is_empty() && number.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_only_drives_have() {
        for name in ["/dev/nst0", "/dev/nst3a", "nst0", "drive/nst0", "/dev/tape/by-id/scsi-1-nst"]
        {
            assert!(is_non_rewinding(Path::new(name)) && is_drive(Path::new(name)), "{name}");
        }
        for name in ["/dev/st12", "/dev/tape/by-id/scsi-1"] {
            assert!(!is_non_rewinding(Path::new(name)) && is_drive(Path::new(name)), "{name}");
        }
        for name in ["/dev/nst", "/dev/stdout", "/dev/st0x", "/tmp/st0", "/dev/nstl", "nst0.tar"] {
            assert!(!is_drive(Path::new(name)), "{name}");
        }
    }
}
