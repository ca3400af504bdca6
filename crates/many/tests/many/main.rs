//! Jobs of several ranks in one process: measured together, and backed up with ranks lost at any
//! step.

#![allow(clippy::unwrap_used, reason = "a test says why it failed or was left out")]

mod sets;
mod together;
