//! What a virtual drive is taken to be: other numbers than those of its generation, where its user
//! has set them (`sim tape --set`). They stand in the status file beside its tape.

use std::path::Path;

use report::format::{rate, size};
use serde_json::{Value, json};

/// The words for how sure the numbers are.
pub const AS_SET: &str = "as the virtual drive is set";

/// Numbers of a virtual drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualDrive {
    /// Of native bytes, as the highest.
    pub lowest_bytes_per_second: u64,
    /// See there.
    pub highest_bytes_per_second: u64,
    /// Its buffer.
    pub buffer_bytes: u64,
}

impl VirtualDrive {
    /// The one whose tape file this is; `None` of a real drive, and of one that takes no time.
    pub fn of_tape(device: &str) -> Option<VirtualDrive> {
        let status = std::fs::read(Path::new(device).parent()?.join("status")).ok()?;
        let status: Value = serde_json::from_slice(&status).ok()?;
        status.get("drive")?;
        let number = |name: &str| status.get("time")?.get(name)?.as_u64();
        Some(VirtualDrive {
            lowest_bytes_per_second: number("lowest_bytes_per_second")?,
            highest_bytes_per_second: number("highest_bytes_per_second")?,
            buffer_bytes: number("buffer_bytes")?,
        })
    }

    /// Its speeds in words.
    pub fn speeds(&self) -> String {
        let [low, high] = [self.lowest_bytes_per_second, self.highest_bytes_per_second];
        format!("{} at least, up to {}, {AS_SET}", rate(low as f64), rate(high as f64))
    }

    /// Its buffer in words.
    pub fn buffer(&self) -> String {
        format!("{}, {AS_SET}", size(self.buffer_bytes))
    }

    /// For documents.
    pub fn document(&self) -> Value {
        json!({
            "lowest_bytes_per_second": self.lowest_bytes_per_second,
            "highest_bytes_per_second": self.highest_bytes_per_second,
            "buffer_bytes": self.buffer_bytes,
        })
    }
}
