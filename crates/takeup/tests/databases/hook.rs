//! A data folder of PostgreSQL, backed up by a job while a load runs, comes back as a database in
//! which no transaction is half.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use crate::captured::takeup;
use crate::postgresql::{Postgresql, client};
use crate::servers::{Load, Server, succeeds, unprivileged};

/// Each transaction of pgbench adds one amount to an account, a teller and a branch, and notes it.
const SUMS: &str = "select (select sum(abalance) from pgbench_accounts), \
                    (select sum(tbalance) from pgbench_tellers), \
                    (select sum(bbalance) from pgbench_branches), \
                    (select sum(delta) from pgbench_history), count(*) from pgbench_history";

#[test]
fn a_data_folder_is_backed_up_while_it_is_written() {
    testkit::require!(Root, Postgresql);
    let folder = crate::servers::folder();
    let log = folder.path().join("wal");
    succeeds({
        let mut mkdir = unprivileged(Path::new("/bin/mkdir"), folder.path());
        mkdir.arg(&log);
        mkdir
    });
    let keeps = format!("archive_command=cp %p {}/%f", log.display());
    let database = Postgresql::start_with(&["-c", "archive_mode=on", "-c", &keeps]);
    let data = database.data();
    let job = Job { folder: folder.path().to_owned() };
    job.configure(&data, database.socket_folder());
    let mut load = Load::of({
        let mut pgbench = database.client("pgbench");
        pgbench.args(["--no-vacuum", "--client=4", "--time=3600"]);
        pgbench
    });
    for level in 0..3u64 {
        load.goes_on();
        job.run(level);
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    load.goes_on();
    drop(load);
    let before = database.says(SUMS);
    assert_eq!(
        database.says(
            "select count(*) from pg_stat_activity where query ~ 'backup_stop'
                              and pid <> pg_backend_pid()"
        ),
        "0"
    );
    let archives = job.archives();
    assert_eq!(archives.len(), 3);
    drop(database);
    for (number, archive) in (1..).zip(&archives) {
        let sums = restored(&job, number, archive, &data, &log);
        let sums: Vec<&str> = sums.split('|').collect();
        assert!(sums[..4].iter().all(|sum| *sum == sums[0]), "set {number}: {sums:?}");
        let count: u64 = sums[4].parse().unwrap();
        assert!(count > 0, "set {number}: {sums:?}, {before}");
    }
}

/// The job that backs up the data folder.
struct Job {
    folder: PathBuf,
}

impl Job {
    fn configure(&self, data: &Path, socket_folder: &Path) {
        let hook = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/hooks/postgresql");
        let (hook, sets) = (hook.canonicalize().unwrap(), self.folder.join("sets"));
        let state = format!("TAKEUP_PG_STATE={}", self.folder.join("state").display());
        let server =
            format!("PGHOST={} PGUSER=takeup PGDATABASE=postgres", socket_folder.display());
        let hook = hook.display();
        let text = format!(
            "[jobs.database]\nsources = ['{}']\nto = '{}/'\n\
             exclude = ['**/pg_wal/**', 'postmaster.pid', 'postmaster.opts']\n\
             hooks.before = \"{state} {server} {hook} start\"\n\
             hooks.after-backup = \"{state} {hook} stop\"\n",
            data.display(),
            sets.display()
        );
        fs::write(self.folder.join("takeup.toml"), text).unwrap();
    }

    fn takeup(&self) -> Command {
        let mut command = takeup();
        command.env("XDG_STATE_HOME", self.folder.join("takeup-state"));
        command
    }

    /// Runs the job; files that change while they are read are what backup mode is for.
    fn run(&self, level: u64) {
        let mut command = self.takeup();
        command.args(["run", "database", "--json", "--config"]);
        let output = command.arg(self.folder.join("takeup.toml")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 2)), "{said}");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["backup"]["set"]["level"], level, "{said}");
        assert_eq!(answer["warnings"], serde_json::json!([]), "{said}");
    }

    fn archives(&self) -> Vec<PathBuf> {
        let mut archives: Vec<PathBuf> = fs::read_dir(self.folder.join("sets"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "tar"))
            .collect();
        archives.sort();
        archives
    }
}

/// The sums of a restored set, after the server has recovered it.
fn restored(job: &Job, number: u32, archive: &Path, data: &Path, log: &Path) -> String {
    let into = job.folder.join(format!("back-{number}"));
    let mut restore = job.takeup();
    restore.arg("restore").arg(job.folder.join("sets/")).arg("--into").arg(&into);
    let output = restore.args(["--set", &number.to_string()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let data = into.join(data.strip_prefix("/").unwrap());
    let label = PathBuf::from(format!("{}.backup_label", archive.display()));
    fs::copy(label, data.join("backup_label")).unwrap();
    fs::write(data.join("recovery.signal"), "").unwrap();
    let comes_back = format!("restore_command=cp {}/%f %p", log.display());
    for name in ["backup_label", "recovery.signal"] {
        std::os::unix::fs::chown(data.join(name), Some(65_534), Some(65_534)).unwrap();
    }
    succeeds({
        // The folders above the data folder came back as they were, for root alone.
        let mut chmod = Command::new("chmod");
        chmod.args(["-R", "a+X"]).arg(&into);
        chmod
    });
    succeeds({
        let mut chmod = Command::new("chmod");
        chmod.args(["-R", "go-rwx"]).arg(&data);
        chmod
    });
    let programs = testkit::needs::postgresql_folder().unwrap();
    let socket = crate::servers::folder();
    let mut command = unprivileged(&programs.join("postgres"), socket.path());
    command.arg("-D").arg(&data).arg("-k").arg(socket.path());
    command.args(["-c", "listen_addresses=", "-c", &comes_back, "-c", "archive_mode=off"]);
    let asks = |query: &str| {
        let mut psql = client(&programs, &socket, "psql");
        psql.args(["--tuples-only", "--no-align", "--command", query]);
        psql
    };
    // A recovery that went to the end of the log lets others write.
    let is_there = || {
        let output = asks("select pg_is_in_recovery()").output().unwrap();
        output.status.success() && output.stdout.starts_with(b"f")
    };
    let server = Server::start(command, &socket.path().join("log"), Signal::SIGQUIT, is_there);
    let sums = succeeds(asks(SUMS));
    drop(server);
    sums
}
