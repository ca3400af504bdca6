//! takeup
fn main() {}
