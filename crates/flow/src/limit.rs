//! limit
