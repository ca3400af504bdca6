//! The lab's second drive: `sim`'s drive behind iSCSI, under the real tape driver.
//!
//! tgtd's drive has no block numbers, log pages, compression or end of the medium, and cannot be
//! made to fail. This drive follows the standard and fails on request. It is also the drive of the
//! in-process tape: a scenario that runs there and here compares `sim`'s driver with the kernel's,
//! on one drive. It runs in the guest as `xtask lab-drive`; its operator sends lines to a second
//! port.

mod iscsi;
mod operator;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use sim::tape::{DriveSettings, ScsiTarget};

use self::iscsi::Connection;
use self::operator::Operator;

/// Arguments of `xtask lab-drive`.
#[derive(clap::Args)]
pub struct DriveArguments {
    /// Address for the initiator
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3261")]
    listen: String,
    /// Address for the operator
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3262")]
    operator: String,
}

/// An operator who sends nothing for this long is gone.
const OPERATOR_LIMIT: Duration = Duration::from_secs(30);

/// Serves until it is killed.
///
/// # Errors
/// When an address cannot be listened on.
pub fn run(arguments: &DriveArguments) -> anyhow::Result<ExitCode> {
    let listen =
        |address: &str| TcpListener::bind(address).with_context(|| format!("listen on {address}"));
    let initiators = listen(&arguments.listen)?;
    let operators = listen(&arguments.operator)?;
    let target = Arc::new(ScsiTarget::new(DriveSettings {
        // As the drives of one maker answer; the real limit is that of the host.
        block_bytes_max: 8 << 20,
        ..DriveSettings::default()
    }));
    let operator = Arc::new(Mutex::new(Operator::new(Arc::clone(&target))));
    std::thread::spawn(move || {
        for stream in operators.incoming().flatten() {
            if let Err(error) = serve_operator(stream, &operator) {
                eprintln!("lab-drive: operator: {error:#}");
            }
        }
    });
    for stream in initiators.incoming() {
        let stream = stream.context("accept an initiator")?;
        stream.set_nodelay(true).context("set TCP_NODELAY")?;
        let target = Arc::clone(&target);
        // Few: the kernel has one connection, and makes a new one after a failure.
        std::thread::spawn(move || {
            if let Err(error) = Connection::new(stream, &target).serve() {
                eprintln!("lab-drive: {error}");
            }
        });
    }
    Ok(ExitCode::SUCCESS)
}

/// One command in, one line out: `ok TEXT` or `no REASON`.
fn serve_operator(stream: TcpStream, operator: &Mutex<Operator>) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(OPERATOR_LIMIT)).context("set a limit")?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).context("read a command")?;
    let words: Vec<_> = line.split_whitespace().collect();
    let mut operator = operator.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let answer = match operator.obey(&words) {
        Ok(text) => format!("ok {text}\n"),
        Err(error) => format!("no {error:#}\n"),
    };
    (&stream).write_all(answer.as_bytes()).context("answer")
}
