//! How long a device has had requests in flight without finishing one.

/// A time without a finished request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stuck {
    pub intervals: u32,
    pub seconds: f64,
}
