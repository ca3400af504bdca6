//! Input data for tests and checks of their output, for all crates.
//!
//! Not here: what only one crate's tests need, and the needs of tests (`needs`).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What the file `status` of a virtual tape drive holds, as JSON.
pub const DRIVE_STATUS: &str = include_str!("samples/drive-status.json");
/// What the file `status` of a virtual disk holds, as JSON.
pub const DISK_STATUS: &str = include_str!("samples/disk-status.json");

/// Marsaglia's xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators,
/// scrambled", 2016): a seed gives the same numbers for ever.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator from a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// A generator for one of many things with consecutive numbers.
    pub fn numbered(number: u64) -> Random {
        Random::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Another generator, derived from this one and a number; this one does not advance.
    pub fn branch(&self, number: u64) -> Random {
        Random::new(self.0 ^ number)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.bits() >> 33) % limit
    }

    /// An index into something of this length, which must not be 0.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Bytes that do not compress.
    pub fn bytes(&mut self, bytes: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes + 8);
        while out.len() < bytes {
            out.extend_from_slice(&self.bits().to_le_bytes());
        }
        out.truncate(bytes);
        out
    }
}

/// Bytes that do not compress and differ with the seed.
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    Random::numbered(seed).bytes(bytes)
}

/// FNV-1a over words of eight bytes: fast in an emulated processor, and no attack must be resisted.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64;
    for word in bytes.chunks(8) {
        let mut padded = [0; 8];
        padded[..word.len()].copy_from_slice(word);
        hash = (hash ^ u64::from_le_bytes(padded)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

/// The recording of a machine with this name, from `scripts/record-machine` or written by hand: see
/// the files in `machines`.
///
/// # Panics
/// When there is no such recording.
pub fn machine(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines");
    let file = folder.join(format!("{name}.machine"));
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Makes the files, folders and links of a recorded machine below a folder. A line is `path: text`,
/// with `\n`, `\t`, `\\` and `\xNN` in the text; `path -> /path`, a link within the same machine;
/// or `path/`, a folder. `[path]` is a prefix for the paths of the following lines, until `[]`.
/// Empty lines and lines that begin with `#` are ignored.
///
/// # Errors
/// When a file cannot be made.
///
/// # Panics
/// When a line has another form.
pub fn unpack_machine(text: &str, folder: &Path) -> io::Result<()> {
    let mut prefix = PathBuf::new();
    let (mut files, mut links, mut folders) = (Vec::new(), Vec::new(), BTreeSet::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(path) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            prefix = PathBuf::from(path);
        } else if let Some((path, text)) = line.split_once(": ") {
            files.push((prefix.join(path), text));
        } else if let Some((path, target)) = line.split_once(" -> ") {
            links.push((prefix.join(path), target.trim_start_matches('/')));
        } else if let Some(path) = line.strip_suffix('/') {
            folders.insert(prefix.join(path));
        } else {
            panic!("no line of a machine: {line}");
        }
    }
    for (path, target) in &links {
        let parent = path.parent().expect("it has a name");
        fs::create_dir_all(folder.join(parent))?;
        let up: PathBuf = parent.components().map(|_| "..").collect();
        symlink(up.join(target), folder.join(path))?;
        // Nearly all links lead to folders, and for those to files it makes no difference.
        folders.insert(PathBuf::from(target));
    }
    for path in folders {
        fs::create_dir_all(folder.join(path))?;
    }
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("it has a name"))?;
        fs::write(path, unescaped(text))?;
    }
    Ok(())
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let behind = if byte == b'\\' { rest.next() } else { None };
        bytes.push(match behind {
            None => byte,
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'x') => {
                let mut digit = || char::from(rest.next().unwrap_or(b'0')).to_digit(16);
                let (high, low) = (digit().unwrap_or(0), digit().unwrap_or(0));
                u8::try_from(high * 16 + low).expect("two digits")
            }
            Some(other) => other,
        });
    }
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_made_of_its_lines() {
        assert_eq!(unescaped("a\\nb \\\\ \\x80!"), b"a\nb \\ \x80!\n");
    }

    #[test]
    fn noise_repeats_and_differs_with_the_seed() {
        assert_eq!(noise(3, 1001), noise(3, 1001));
        assert_eq!(noise(3, 1001)[..77], noise(3, 77));
        assert_ne!(noise(3, 64), noise(4, 64));
    }
}
