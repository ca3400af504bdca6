//! The drive behind a pipeline: what it needs for all that it is given, whoever hands it over.

use report::format::{duration, rate};

use super::Case;

/// Programs whose output a drive cannot make smaller.
const COMPRESSORS: [&str; 16] = [
    "gzip", "pigz", "bzip2", "pbzip2", "lbzip2", "xz", "zstd", "lz4", "lzop", "lzma", "lzip",
    "plzip", "brotli", "age", "gpg", "openssl",
];

impl Case<'_> {
    /// How long the drive writes what the last stage gave it, at the least; 0 where nothing is
    /// known of that. A drive that compresses may need less, unless it is given what is compressed.
    pub(super) fn drive_seconds(&self) -> f64 {
        let stages = &self.look.stages;
        let given = stages.last().and_then(|last| last.bytes_out);
        let (Some(drive), Some(bytes)) = (&self.look.drive, given) else { return 0.0 };
        let compresses = |name: &str| COMPRESSORS.contains(&name);
        let is_compressed = stages.iter().any(|stage| {
            compresses(stage.program()) || stage.works_most.as_deref().is_some_and(compresses)
        });
        if drive.compresses && !is_compressed {
            return 0.0;
        }
        bytes as f64 / drive.highest_bytes_per_second.max(f64::MIN_POSITIVE)
    }

    /// The same with the filemark behind it, which waits for all of it.
    pub(super) fn drive_seconds_to_end(&self) -> f64 {
        let mark = self.look.drive.as_ref().and_then(|drive| drive.synchronise_seconds);
        // A run that was cut off has written no mark.
        let mark = mark.unwrap_or(0.0).min(self.end_seconds());
        match self.drive_seconds() {
            seconds if seconds > 0.0 => seconds + mark,
            _ => 0.0,
        }
    }

    /// The same in words.
    pub(super) fn drive_said(&self) -> Option<String> {
        let drive = self.look.drive.as_ref()?;
        let (rate, all) =
            (rate(drive.highest_bytes_per_second), duration(self.drive_seconds_to_end()));
        Some(format!("{} takes {rate} at most, {all} for all of it", drive.name))
    }
}
