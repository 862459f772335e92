//! The commands, in the order of a first day with neph. Each command's options stand beside what
//! it does; help, man pages and completions are made from them.

use clap::{Parser, Subcommand};

use crate::{ping, reflect, shell, version};

/// Measures latency in cloud networks, layer by layer, and says where the time went.
#[derive(Debug, Parser)]
#[command(name = "neph", version = version::VERSION, long_version = version::LONG)]
#[command(after_help = "Start with: neph demo\nManual: neph man --help, and docs/ of the source.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// A layered ping: application, TCP and ICMP round trips and each message's ledger.
    Ping(Box<ping::Args>),
    /// Answers probes: WebSocket, HTTP, TCP and STAMP on one port.
    Reflect(Box<reflect::Args>),
    /// Prints a completion script for a shell.
    Completions(shell::CompletionArgs),
    /// Writes the man pages.
    Man(shell::ManArgs),
}
