//! MariaDB: single rows, and a dump.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::captured::{
    capture, capture_with, is_log_of_single_rows, number, validates_beside_a_ring, validates_file,
};
use crate::servers::{Server, folder, succeeds, unprivileged};

/// A server with a table for single rows.
struct Mariadb {
    server: Server,
    folder: TempDir,
}

impl Mariadb {
    fn start() -> Mariadb {
        let folder = folder();
        let data = format!("--datadir={}", folder.path().join("data").display());
        let mut tables = unprivileged("mariadb-install-db".as_ref(), folder.path());
        tables.args(["--no-defaults", &data, "--auth-root-authentication-method=normal"]);
        tables.args(["--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=16M"]);
        succeeds(tables);
        let mut command = unprivileged("mariadbd".as_ref(), folder.path());
        command.args(["--no-defaults", &data, "--skip-networking"]);
        command.args(["--pid-file=pid", "--innodb-buffer-pool-size=8M"]);
        command.arg(format!("--tmpdir={}", folder.path().display()));
        command.args(["--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=1"]);
        command.arg(format!("--socket={}", folder.path().join("socket").display()));
        let log = folder.path().join("log");
        let asks = |query: &str| asks(&folder, query);
        let answers = || asks("select 1").output().unwrap().status.success();
        let server = Server::start(command, &log, Signal::SIGKILL, answers);
        succeeds(asks("create database takeup"));
        let rows = "select repeat('words', 30) from seq_1_to_200000";
        succeeds(asks(&format!(
            "use takeup; create table large (words varchar(200)); insert into large {rows}"
        )));
        let table = "id bigint auto_increment primary key, words varchar(200)";
        succeeds(asks(&format!("create table takeup.single ({table})")));
        Mariadb { server, folder }
    }

    /// A client program that is run again and again, with this standard input.
    fn again(&self, program: &str, arguments: &str, input: &str) -> Command {
        let file = self.folder.path().join("input");
        fs::write(&file, input).unwrap();
        let mut again = unprivileged("sh".as_ref(), self.folder.path());
        let client = format!("{program} --no-defaults --socket=socket --user=root {arguments}");
        again.args(["-c", &format!("while {client} <input; do :; done")]);
        again
    }
}

fn asks(folder: &TempDir, query: &str) -> Command {
    let mut command = unprivileged("mariadb".as_ref(), folder.path());
    command.args(["--no-defaults", "--socket=socket", "--user=root", "--execute", query]);
    command
}

/// `docs/capture-databases.md` has the strace output of each of these loads.
#[test]
fn single_rows_and_a_dump_of_mariadb_are_told_apart() {
    testkit::require!(Root, Mariadb, Tracefs, Fio);
    let database = Mariadb::start();
    single_rows(&database);
    dump(&database);
}

fn single_rows(database: &Mariadb) {
    let rows = (0..10_000).fold(String::new(), |mut rows, row| {
        writeln!(rows, "insert into single (words) values ('row {row} of some tens of bytes');")
            .unwrap();
        rows
    });
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let validate = ["--validate", "--folder", folder.path().to_str().unwrap()];
    let inserts = database.again("mariadb", "takeup", &rows);
    let captured = capture_with(&database.server, inserts, &validate);
    // Pages of tables are flushed beside the log, with a ring; the profile has all of it.
    validates_beside_a_ring(&captured);
    validates_file(&captured, "/ib_logfile0");
    let log = captured.busiest("/ib_logfile0");
    is_log_of_single_rows(log);
    // The log is written past the page cache, in whole blocks of the disk.
    assert_eq!(log["direct"], true, "{log:#}");
    let block = log["block_bytes"].as_u64().unwrap();
    assert!((512..=4096).contains(&block) && block.is_multiple_of(512), "{log:#}");
    let written = log["block_sizes"]["write"].as_array().unwrap();
    let sizes = written.iter().map(|size| size[0].as_u64().unwrap());
    assert!(sizes.into_iter().all(|bytes| bytes.is_multiple_of(512)), "{log:#}");
}

/// A table of several times the buffer pool: it is read ahead with a ring, whose direct requests
/// show their place on the device.
fn dump(database: &Mariadb) {
    let captured = capture(&database.server, database.again("mariadb-dump", "takeup large", ""));
    let large = captured.busiest("/takeup/large.ibd");
    assert_eq!((&large["class"], &large["engine"]), (&"data".into(), &"io_uring".into()));
    assert_eq!(large["block_bytes"], 16_384, "{large:#}");
    assert_eq!(large["direct"], true, "{large:#}");
    assert!(number(large, "read_share") > 0.95, "{large:#}");
    // Order by place on the device, where pages continue from one extent to the next.
    assert!(number(large, "sequential_share") > 0.5, "{large:#}");
    let (_, logged) = captured.bytes("/ib_logfile0");
    let (read, _) = captured.bytes("/takeup/large.ibd");
    assert!(logged * 10 < read, "{logged} {read}");
}
