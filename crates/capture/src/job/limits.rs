//! How large a job may be.

/// What a job is cut to. All of its sections are made smaller by the same share, so that the mix
/// stays what it was.
#[derive(Clone, Copy, Debug)]
pub struct JobLimits {
    /// Bytes of all files together.
    pub file_bytes: u64,
    /// Reads and writes of all sections together.
    pub operations: u64,
    /// Seconds, at the rate that was captured.
    pub seconds: f64,
}
