//! Some data of a source, to try compressors on.

use model::compressibility::Compressibility;

/// Data that trials read anyhow.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    bytes: Vec<u8>,
}

/// The most that is kept.
const SAMPLE_BYTES_MAX: usize = 32 << 20;

impl Sample {
    /// Adds data, as long as there is room.
    pub fn add(&mut self, data: &[u8]) {
        let room = SAMPLE_BYTES_MAX - self.bytes.len();
        self.bytes.extend_from_slice(&data[..data.len().min(room)]);
    }

    /// The data.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What a drive's own compression would make of it: bytes in for each byte out.
    pub fn drive_ratio(&self) -> Option<f64> {
        let mut estimate = Compressibility::new();
        for piece in self.bytes.chunks(64 << 10) {
            estimate.jump();
            estimate.add(piece);
        }
        (estimate.host_bytes() > 0).then(|| estimate.ratio().max(1.0))
    }
}
