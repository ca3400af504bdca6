//! What a target takes: a drive by its generation or its settings, anything else only by writing.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use device::tape;
use diagnosis::amount::Amount;
use diagnosis::chain::{TapeTarget, Target, WhyUnknown};
use diagnosis::line::TypedTarget;
use diagnosis::source::Found;
use model::tape::generation::Generation;
use model::tape::parameters::TapeParameters;
use rustix::fs::{FileType, Mode, OFlags};

use crate::failure::Failure;
use crate::virtual_drive::VirtualDrive;

/// Blocks of this size pass through every adapter that is known.
const BLOCK_BYTES_MAX: u64 = 1 << 20;
/// A trial of a target lasts this long at most, and writes this much.
const WRITE: Duration = Duration::from_secs(4);
const WRITE_BYTES_MAX: u64 = 2 << 30;
const PIECE_BYTES: usize = 4 << 20;
const TRIALS: usize = 3;

/// Whether something may be written beside a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteTrial {
    Allowed,
    Refused,
}

/// The target.
///
/// # Errors
/// When its folder does not exist, or it was to be tried and cannot be written.
pub(super) fn of(
    typed: &TypedTarget,
    sources: &[PathBuf],
    found: &Found,
    trial: WriteTrial,
) -> Result<Target, Failure> {
    let path = match typed {
        TypedTarget::Nowhere => return Ok(Target::Nowhere),
        TypedTarget::Elsewhere(shown) => {
            let why = WhyUnknown::Elsewhere;
            return Ok(Target::Unknown { shown: shown.clone(), why });
        }
        TypedTarget::Path(path) => path,
    };
    let shown = path.display().to_string();
    if let Some(tape) = drive(path, found) {
        return Ok(Target::Tape(Box::new(tape)));
    }
    if !path.exists() && tape::find(path).is_some() {
        return Ok(Target::Unknown { shown, why: WhyUnknown::NoDrive });
    }
    let folder = existing(path);
    if !folder.exists() {
        let message = format!("cannot write {shown}: there is no folder {}", folder.display());
        return Err(Failure::of(message, Some("is it mounted?")));
    }
    let is_same = |source: &PathBuf| is_same_disk(source, path);
    if trial == WriteTrial::Allowed {
        let rate = tried(path)?;
        let is_of_source = !sources.is_empty() && sources.iter().all(is_same);
        return Ok(Target::Disk { shown, rate, is_of_source });
    }
    let same = sources.iter().any(is_same);
    let is_device = rustix::fs::stat(path)
        .map(|it| FileType::from_raw_mode(it.st_mode))
        .is_ok_and(|it| matches!(it, FileType::BlockDevice | FileType::CharacterDevice));
    let why = match (is_device, same) {
        (true, _) => WhyUnknown::Device,
        (_, true) => WhyUnknown::SameDisk,
        _ => WhyUnknown::NotWritten,
    };
    Ok(Target::Unknown { shown, why })
}

fn drive(path: &Path, found: &Found) -> Option<TapeTarget> {
    let shown = path.display().to_string();
    let ratio = found.sample.drive_ratio().unwrap_or(1.0);
    if let Some((parameters, speed_up)) = VirtualDrive::parameters_of_tape(&shown) {
        let compresses = VirtualDrive::of_tape(&shown).is_some_and(|it| it.compresses);
        return Some(TapeTarget {
            shown,
            parameters,
            speed_up,
            ratio: if compresses { ratio } else { 1.0 },
            block_bytes_max: BLOCK_BYTES_MAX,
            is_virtual: true,
        });
    }
    let found = tape::find(path)?;
    let product = found.folder()?.device_text("model")?;
    let generation = Generation::of_product(&product)?;
    Some(TapeTarget {
        shown,
        parameters: TapeParameters::of(generation.in_drive(&product)),
        speed_up: 1.0,
        // Drives compress unless told not to, which only a command to the drive would show.
        ratio,
        block_bytes_max: BLOCK_BYTES_MAX,
        is_virtual: false,
    })
}

/// Whether two paths end on one disk.
fn is_same_disk(source: &Path, target: &Path) -> bool {
    let disks = |path: &Path| {
        let path = existing(path);
        storage::layers::Storage::of(&path)
            .map(|it| it.disks().into_iter().map(str::to_owned).collect::<Vec<String>>())
    };
    match (disks(source), disks(target)) {
        (Ok(one), Ok(other)) => one.iter().any(|disk| other.contains(disk)),
        _ => false,
    }
}

/// The path, or the folder where it would be made.
fn existing(path: &Path) -> PathBuf {
    if path.exists() {
        return path.to_owned();
    }
    let above = path.parent().filter(|it| !it.as_os_str().is_empty());
    above.unwrap_or_else(|| Path::new(".")).to_owned()
}

/// Writes a file without a name beside the target, past the page cache, for a moment.
fn tried(path: &Path) -> Result<Amount, Failure> {
    let existing = existing(path);
    let status = rustix::fs::stat(&existing);
    let is_folder =
        status.as_ref().is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory);
    let is_file = status
        .as_ref()
        .is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::RegularFile);
    let folder = match (is_folder, is_file) {
        (true, _) => existing,
        (_, true) => {
            let above = existing.parent().filter(|it| !it.as_os_str().is_empty());
            above.unwrap_or_else(|| Path::new(".")).to_owned()
        }
        _ => {
            let message = format!("{} is neither a file nor a folder", path.display());
            let hint = "nothing is written to a device: leave out --write-test";
            return Err(Failure::of(message, Some(hint)));
        }
    };
    let failed = |error: std::io::Error| {
        let why = crate::failure::with_causes(&error);
        Failure::of(format!("cannot write in {}: {why}", folder.display()), None)
    };
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = base::interruptible::open(&folder, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| failed(error.into()))?;
    let file = File::from(file);
    // Where this does not work, fsync is what shows the disk's rate.
    let _ = device::file::set_direct(&file, device::file::Direct::On);
    let mut rates = Vec::new();
    let mut at = 0;
    for _ in 0..TRIALS {
        let begun = Instant::now();
        let from = at;
        while begun.elapsed() < WRITE / u32::try_from(TRIALS).unwrap_or(1)
            && at - from < WRITE_BYTES_MAX / TRIALS as u64
        {
            at += written(&file, at).map_err(failed)?;
        }
        base::interruptible::fdatasync(&file).map_err(|error| failed(error.into()))?;
        rates.push((at - from) as f64 / begun.elapsed().as_secs_f64().max(1e-6));
    }
    device::file::drop_cached(&file, 0, 0);
    Amount::of_trials(&rates).ok_or_else(|| Failure::of("nothing was written", None))
}

/// Writes a piece of data that no disk compresses.
fn written(file: &File, at: u64) -> Result<u64, std::io::Error> {
    thread_local! {
        static PIECE: memory::Aligned = memory::Aligned::noise(PIECE_BYTES);
    }
    PIECE.with(|piece| {
        file.write_all_at(piece.bytes(), at)?;
        Ok(PIECE_BYTES as u64)
    })
}

mod memory {
    //! Memory that begins at a page, as writes past the page cache need it.

    use statistics::random::Random;

    #[derive(Debug)]
    pub(super) struct Aligned {
        bytes: Vec<u8>,
        from: usize,
        length: usize,
    }

    const PAGE: usize = 4096;

    impl Aligned {
        pub(super) fn noise(length: usize) -> Aligned {
            let mut random = Random::new(7);
            let mut bytes: Vec<u8> = Vec::with_capacity(length + PAGE + 8);
            while bytes.len() < length + PAGE {
                bytes.extend_from_slice(&random.bits().to_le_bytes());
            }
            let from = bytes.as_ptr().align_offset(PAGE).min(PAGE);
            Aligned { bytes, from, length }
        }

        pub(super) fn bytes(&self) -> &[u8] {
            &self.bytes[self.from..self.from + self.length]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_without_its_folder_is_an_error() {
        let typed = TypedTarget::Path("/nowhere/at/all/srv.tar".into());
        let error = of(&typed, &[], &Found::default(), WriteTrial::Refused).unwrap_err();
        assert!(format!("{error:?}").contains("/nowhere/at/all"), "{error:?}");
    }

    #[test]
    fn a_folder_is_tried_and_nothing_stays() {
        let folder = tempfile::tempdir().unwrap();
        let rate = tried(&folder.path().join("srv.tar")).unwrap();
        assert!(rate.low > 0.0 && rate.low <= rate.high);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(tried(Path::new("/dev/null")).is_err());
    }
}
