//! How long a device has had requests in flight without finishing one.

/// A time without a finished request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stuck {
    /// Intervals.
    pub intervals: u32,
    /// Seconds.
    pub seconds: f64,
}
