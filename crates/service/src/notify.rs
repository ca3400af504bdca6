//! Lines that the user must see while a command runs, whatever its answer is.

/// Receives them.
pub trait Notify {
    /// Shows one line, without `takeup: ` and a line end.
    fn notify(&self, line: &str);
}

impl Notify for flow::monitor::Silent {
    fn notify(&self, _: &str) {}
}
