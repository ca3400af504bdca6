//! How long a device has had requests and finished none.

/// A time without an end of any request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stuck {
    /// Intervals.
    pub intervals: u32,
    /// Seconds.
    pub seconds: f64,
}
