//! `takeup capture` of real databases: the profile of PostgreSQL and MariaDB must match what strace
//! shows (`docs/capture-databases.md`). And a job with `contrib/hooks/postgresql`.
//!
//! Servers run in separate folders, as an ordinary user, without the network; they end with the
//! test, however it ends. A load runs before, during and after its capture, so that nothing depends
//! on the speed of the machine.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod captured;
mod hook;
mod mariadb;
mod postgresql;
mod servers;
