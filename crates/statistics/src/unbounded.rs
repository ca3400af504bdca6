//! Numbers without a bound in JSON, which has no infinity: they are written as null.

use serde::{Deserialize as _, Deserializer};

/// Reads a number; null is infinity.
///
/// # Errors
/// When it is neither a number nor null.
pub fn above<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

/// Reads a number; null is minus infinity.
///
/// # Errors
/// When it is neither a number nor null.
pub fn below<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NEG_INFINITY))
}
