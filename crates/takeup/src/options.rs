//! Options that several subcommands share: they are in `arguments`.

pub use arguments::run::CommonArgs;
