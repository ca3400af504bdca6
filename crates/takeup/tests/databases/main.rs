//! `takeup capture` of real databases: what PostgreSQL and MariaDB do to their disk, as strace
//! shows it (`docs/capture-databases.md`), is what the profile says.
//!
//! Servers run in folders of their own, as an ordinary user, without the network; they end with the
//! test, however that ends. A load runs before, during and after what is captured of it, so that
//! nothing here depends on how fast the machine is.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod captured;
mod mariadb;
mod postgresql;
mod servers;
