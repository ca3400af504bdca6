//! PostgreSQL: five loads and their profiles.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::captured::{capture, capture_with, is_log_of_single_rows, number, validates};
use crate::servers::{Server, folder, succeeds, unprivileged};

/// Of pgbench: so many times 100,000 rows, 13 MB each, many times the shared buffers.
const SCALE: &str = "5";

/// A server with the tables of pgbench, and one for single rows.
pub struct Postgresql {
    server: Server,
    programs: PathBuf,
    folder: TempDir,
    /// Version, such as `150018` for 15.18.
    version: u32,
}

impl Postgresql {
    fn start() -> Postgresql {
        Postgresql::start_with(&["-c", "autovacuum=off"])
    }

    /// With more options of the server.
    pub fn start_with(options: &[&str]) -> Postgresql {
        let programs = testkit::needs::postgresql_folder().unwrap();
        let folder = folder();
        let data = folder.path().join("data");
        let mut initdb = unprivileged(&programs.join("initdb"), folder.path());
        initdb.args(["--no-sync", "--auth=trust", "--username=takeup", "--encoding=UTF8"]);
        succeeds({
            initdb.args(["--locale=C", "--pgdata"]).arg(&data);
            initdb
        });
        let mut command = unprivileged(&programs.join("postgres"), folder.path());
        command.arg("-D").arg(&data).arg("-k").arg(folder.path());
        // Hardly any page of a table stays there, and no other program reads the tables.
        command.args(["-c", "listen_addresses=", "-c", "shared_buffers=2MB"]);
        command.args(options);
        let log = folder.path().join("log");
        let client = |program: &str| client(&programs, &folder, program);
        let answers = || client("psql").args(["-c", "select 1"]).output().unwrap().status.success();
        let server = Server::start(command, &log, Signal::SIGQUIT, answers);
        succeeds({
            let mut tables = client("pgbench");
            tables.args(["--initialize", "--quiet", "--scale", SCALE]);
            tables
        });
        let mut made = Postgresql { server, programs, folder, version: 0 };
        made.version = made.says("show server_version_num").parse().unwrap();
        made.says("create table single (id bigserial primary key, words text)");
        made
    }

    /// Its data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The folder of its socket.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn says(&self, query: &str) -> String {
        let mut psql = client(&self.programs, &self.folder, "psql");
        psql.args(["--tuples-only", "--no-align", "--command", query]);
        succeeds(psql)
    }

    pub fn client(&self, program: &str) -> Command {
        client(&self.programs, &self.folder, program)
    }

    /// One client that runs these statements again and again.
    fn script(&self, name: &str, statements: &str) -> Command {
        let file = self.folder.path().join(name);
        fs::write(&file, statements).unwrap();
        let mut pgbench = self.client("pgbench");
        pgbench.args(["--no-vacuum", "--client=1", "--time=3600", "--file"]).arg(file);
        pgbench
    }

    /// Path of the table's rows, below the data folder.
    fn file_of(&self, table: &str) -> String {
        self.says(&format!("select pg_relation_filepath('{table}')"))
    }
}

/// A program of clients, which finds the server.
pub fn client(programs: &Path, folder: &TempDir, program: &str) -> Command {
    let mut command = unprivileged(&programs.join(program), folder.path());
    command.env("PGHOST", folder.path()).env("PGUSER", "takeup").env("PGDATABASE", "postgres");
    command
}

/// `docs/capture-databases.md` has the strace output of each of these loads.
#[test]
fn five_loads_of_postgresql_are_told_apart() {
    testkit::require!(Root, Postgresql, Tracefs, Fio);
    let database = Postgresql::start();
    single_rows(&database);
    transactions(&database);
    sequential_scan(&database);
    checkpoints(&database);
    dump(&database);
}

const INSERT: &str = "insert into single (words) values ('a row of some tens of bytes');";

fn single_rows(database: &Postgresql) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let validate = ["--validate", "--folder", folder.path().to_str().unwrap()];
    let insert = database.script("insert", INSERT);
    let captured = capture_with(&database.server, insert, &validate);
    validates(&captured);
    let log = captured.busiest("/pg_wal/");
    is_log_of_single_rows(log);
    assert_eq!(log["block_bytes"], 8192, "{log:#}");
    assert_eq!(log["direct"], false, "{log:#}");
    // The table is filled in memory: only the log goes to the disk at once.
    let (_, table) = captured.bytes("/base/");
    let (_, log) = captured.bytes("/pg_wal/");
    assert!(table * 4 < log, "{table} {log}");
}

/// TPC-B: rows all over a table that is larger than the shared buffers, and the log.
fn transactions(database: &Postgresql) {
    let mut pgbench = database.client("pgbench");
    pgbench.args(["--no-vacuum", "--client=2", "--time=3600"]);
    let captured = capture(&database.server, pgbench);
    let log = captured.busiest("/pg_wal/");
    assert_eq!((&log["class"], &log["engine"]), (&"write_ahead_log".into(), &"psync".into()));
    assert_eq!(log["sync"]["call"], "fdatasync", "{log:#}");
    let accounts = captured.busiest(&database.file_of("pgbench_accounts"));
    is_data(database, accounts);
    assert!(number(accounts, "reads") > 0.0, "{accounts:#}");
    assert!(number(accounts, "sequential_share") < 0.5, "{accounts:#}");
}

/// A whole table, once from front to end: no log, and hardly any other file.
fn sequential_scan(database: &Postgresql) {
    let scan =
        "set max_parallel_workers_per_gather = 0; select sum(abalance) from pgbench_accounts;";
    let captured = capture(&database.server, database.script("scan", scan));
    let table = database.file_of("pgbench_accounts");
    let accounts = captured.busiest(&table);
    is_data(database, accounts);
    assert!(number(accounts, "read_share") > 0.95, "{accounts:#}");
    assert!(number(accounts, "sequential_share") > 0.9, "{accounts:#}");
    let (read, _) = captured.bytes(&table);
    let (all, _) = captured.bytes("/base/");
    assert!(read * 10 > all * 9, "{read} {all}");
}

/// Changes of transactions go from memory to the tables, which are synchronised file by file.
fn checkpoints(database: &Postgresql) {
    let statements = "update pgbench_accounts set abalance = abalance + 1 where aid % 500 = 7; \
                      checkpoint;";
    let statements = statements.replace("; ", ";\n");
    let captured = capture(&database.server, database.script("checkpoint", &statements));
    let accounts = captured.busiest(&database.file_of("pgbench_accounts"));
    is_data(database, accounts);
    assert!(number(accounts, "writes") > 0.0, "{accounts:#}");
    let syncs: f64 = captured.files().filter(|file| file["class"] == "data").map(syncs).sum();
    assert!(syncs > 0.0, "{:#}", captured.0);
    assert_eq!(accounts["sync"]["call"], "sync_file_range", "{accounts:#}");
}

fn syncs(file: &serde_json::Value) -> f64 {
    number(&file["sync"], "calls")
}

/// Tables one after the other, each from front to end, without writes.
fn dump(database: &Postgresql) {
    let mut dumps = unprivileged("sh".as_ref(), database.folder.path());
    dumps.args(["-c", "while \"$0\"; do :; done"]).arg(database.programs.join("pg_dump"));
    dumps.env("PGHOST", database.folder.path());
    dumps.env("PGUSER", "takeup").env("PGDATABASE", "postgres");
    let captured = capture(&database.server, dumps);
    let accounts = captured.busiest(&database.file_of("pgbench_accounts"));
    is_data(database, accounts);
    assert!(number(accounts, "read_share") > 0.95, "{accounts:#}");
    assert!(number(accounts, "sequential_share") > 0.9, "{accounts:#}");
    // Beside a scan it reads every table.
    let single = captured.busiest(&database.file_of("single"));
    assert!(number(single, "reads") > 0.0, "{single:#}");
}

/// Pages of 8 KiB, in place, through the page cache.
#[track_caller]
fn is_data(database: &Postgresql, file: &serde_json::Value) {
    assert_eq!(file["class"], "data", "{file:#}");
    assert_eq!(file["direct"], false, "{file:#}");
    let block = number(file, "block_bytes");
    // From version 17 on, neighbours are read together.
    if database.version >= 170_000 && number(file, "read_share") > 0.0 {
        assert!(block >= 8192.0 && block % 8192.0 == 0.0, "{file:#}");
    } else {
        assert_eq!((&file["engine"], block), (&"psync".into(), 8192.0), "{file:#}");
    }
}
