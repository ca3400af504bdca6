//! What a file is for: from its name, where a database or a convention gave it one, and else from
//! what is done to it.

use super::super::operation::FileKind;
use super::Class;

/// What is known of a file that its class may follow from.
#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    pub reads: u64,
    pub writes: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// As in the profile.
    pub sequential_share: Option<f64>,
    /// As in the profile.
    pub rewrite_share: Option<f64>,
    /// As in the profile.
    pub reuse_share: Option<f64>,
    /// As in the profile.
    pub block_bytes: Option<u64>,
    pub syncs: u64,
    /// As in the profile.
    pub synchronous: bool,
    /// It had lost its name.
    pub deleted: bool,
}

/// The class of a file.
pub fn class(kind: FileKind, path: Option<&str>, behaviour: &Behaviour) -> Class {
    match kind {
        FileKind::Regular | FileKind::Other => {}
        _ => return Class::Device,
    }
    let named = path.and_then(by_name);
    let behaves = if behaviour.deleted { Class::Temporary } else { by_behaviour(behaviour) };
    named.unwrap_or(behaves)
}

/// What a name says; `None` for one that says nothing.
pub fn by_name(path: &str) -> Option<Class> {
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    database(&parts, name).or_else(|| convention(path, &parts, name))
}

/// Names that databases give.
fn database(folders: &[&str], name: &str) -> Option<Class> {
    let within = |folder: &str| folders.contains(&folder);
    let begins = |beginnings: &[&str]| beginnings.iter().any(|it| name.starts_with(it));
    let ends = |endings: &[&str]| endings.iter().any(|it| name.ends_with(it));
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));

    // PostgreSQL.
    if within("pgsql_tmp") || begins(&["pgsql_tmp"]) {
        return Some(Class::Temporary);
    }
    if within("pg_wal") || within("pg_xlog") {
        return Some(Class::WriteAheadLog);
    }
    if within("base") || within("global") || within("pg_tblspc") {
        if name.starts_with('t') && name[1..].split('_').all(|it| is_number(number_part(it))) {
            return Some(Class::Temporary);
        }
        if is_number(number_part(name)) {
            return Some(Class::Data);
        }
    }
    let slru = ["pg_xact", "pg_clog", "pg_multixact", "pg_subtrans", "pg_commit_ts"];
    if slru.iter().any(|it| within(it)) || name == "pg_control" {
        return Some(Class::Data);
    }

    // MariaDB and MySQL.
    if begins(&["ibtmp", "#sql"]) || within("#innodb_temp") {
        return Some(Class::Temporary);
    }
    let logs = begins(&["ib_logfile", "aria_log", "#ib_redo"]) || name == "tc.log";
    let binary_log = stem.ends_with("-bin") || stem == "binlog";
    if logs || (binary_log && is_number(ending)) {
        return Some(Class::WriteAheadLog);
    }
    let undo = name.strip_prefix("undo").map(|it| it.trim_start_matches('_'));
    if begins(&["ibdata"])
        || undo.is_some_and(is_number)
        || ends(&[".ibd", ".frm", ".MYD", ".MYI", ".MAD", ".MAI", ".dblwr"])
    {
        return Some(Class::Data);
    }

    // SQLite, RocksDB and LevelDB, WiredTiger, etcd, Redis.
    if ends(&["-wal", "-journal", ".wal", ".aof"]) || begins(&["WiredTigerLog."]) {
        return Some(Class::WriteAheadLog);
    }
    if ending == "log" && stem.len() == 6 && is_number(stem) {
        return Some(Class::WriteAheadLog);
    }
    let data = [".sst", ".ldb", ".wt", ".db", ".sqlite", ".sqlite3", ".mdb", "-shm"];
    (ends(&data) || begins(&["MANIFEST-"])).then_some(Class::Data)
}

/// Names by convention.
fn convention(path: &str, folders: &[&str], name: &str) -> Option<Class> {
    let lower = name.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|it| lower.ends_with(it));
    if ends(&[".tmp", ".temp"]) || matches!(folders, ["", "tmp"] | ["", "var", "tmp"]) {
        return Some(Class::Temporary);
    }
    if ends(&[".log", ".journal", ".err"]) || path.starts_with("/var/log/") {
        return Some(Class::Messages);
    }
    let packed = [".gz", ".zst", ".xz", ".bz2", ".lz4", ".tgz"];
    let streams = [".tar", ".cpio", ".dump", ".sql", ".rdb", ".iso", ".bak"];
    (ends(&packed) || ends(&streams)).then_some(Class::Stream)
}

/// What stands before a fork (`_fsm`) or the number of a segment (`.1`) of a relation.
fn number_part(name: &str) -> &str {
    name.split(['_', '.']).next().unwrap_or_default()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

/// Operations below which nothing is said of how a file is used.
const FEW: u64 = 8;
/// Up to this many writes for each sync, a program waits for its writes.
const WRITES_OF_A_LOG: u64 = 16;
/// Bytes below which nothing is a stream.
const BYTES_OF_A_STREAM: u64 = 1 << 20;

fn by_behaviour(it: &Behaviour) -> Class {
    let operations = it.reads + it.writes;
    let Some(sequential) = it.sequential_share else { return Class::Other };
    if operations < FEW && it.bytes < BYTES_OF_A_STREAM {
        return Class::Other;
    }
    let reads = it.reads as f64 / operations.max(1) as f64;
    let rewrites = it.rewrite_share.unwrap_or(0.0);
    let in_order = if it.writes > it.reads { sequential + rewrites } else { sequential };
    // A dump is synced once, at its end.
    let is_asked_for = it.syncs >= FEW && it.syncs.saturating_mul(WRITES_OF_A_LOG) >= it.writes;
    let is_waited_for = it.synchronous || is_asked_for;
    if operations >= FEW && reads <= 0.05 && in_order >= 0.9 && is_waited_for {
        return Class::WriteAheadLog;
    }
    if reads <= 0.05 && in_order >= 0.9 && it.block_bytes.is_some_and(|it| it < 4096) {
        return Class::Messages;
    }
    let is_one_way = !(0.05..=0.95).contains(&reads);
    let is_once = it.reuse_share.is_none_or(|it| it <= 0.1);
    if is_one_way && sequential >= 0.9 && is_once && it.bytes >= BYTES_OF_A_STREAM {
        return Class::Stream;
    }
    let is_in_place = in_order < 0.5 || (!is_one_way && !is_once);
    if operations >= FEW && is_in_place { Class::Data } else { Class::Other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_databases_and_conventions() {
        let classes = [
            (Class::WriteAheadLog, "/srv/pg/pg_wal/000000010000000000000001"),
            (Class::Data, "/srv/pg/base/5/16384"),
            (Class::Data, "/srv/pg/base/5/16384.1"),
            (Class::Data, "/srv/pg/base/5/2619_fsm"),
            (Class::Data, "/srv/pg/global/1262"),
            (Class::Data, "/srv/pg/pg_xact/0000"),
            (Class::Temporary, "/srv/pg/base/5/t3_16390"),
            (Class::Temporary, "/srv/pg/base/pgsql_tmp/pgsql_tmp4711.0"),
            (Class::WriteAheadLog, "/var/lib/mysql/ib_logfile0"),
            (Class::Data, "/var/lib/mysql/ibdata1"),
            (Class::Data, "/var/lib/mysql/shop/orders.ibd"),
            (Class::Data, "/var/lib/mysql/shop/orders.frm"),
            (Class::Data, "/var/lib/mysql/undo001"),
            (Class::Temporary, "/var/lib/mysql/ibtmp1"),
            (Class::WriteAheadLog, "/var/lib/mysql/mariadb-bin.000017"),
            (Class::WriteAheadLog, "/var/lib/mysql/aria_log.00000001"),
            (Class::WriteAheadLog, "/home/a/places.sqlite-wal"),
            (Class::WriteAheadLog, "/home/a/cookies.db-journal"),
            (Class::Data, "/home/a/cookies.db"),
            (Class::WriteAheadLog, "/srv/rocks/000123.log"),
            (Class::Data, "/srv/rocks/000124.sst"),
            (Class::Messages, "/var/log/journal/8f/system.journal"),
            (Class::Messages, "/srv/pg/log/postgresql-Mon.log"),
            (Class::Stream, "/backup/home.tar.zst"),
            (Class::Stream, "/backup/shop.dump"),
            (Class::Temporary, "/tmp/sort8gH2"),
        ];
        for (class, path) in classes {
            assert_eq!(by_name(path), Some(class), "{path}");
        }
        for path in ["/srv/a/b", "", "/", "/tmp/run/file", "/srv/base/readme", "/srv/base/t", "t_"]
        {
            assert_eq!(by_name(path), None, "{path}");
        }
    }

    #[test]
    fn what_is_done_to_a_file_without_a_telling_name() {
        let file = Behaviour {
            writes: 1_000,
            bytes: 8 << 20,
            sequential_share: Some(0.1),
            rewrite_share: Some(0.88),
            block_bytes: Some(8192),
            syncs: 1_000,
            ..Behaviour::default()
        };
        let check = |expected: Class, file: &Behaviour| {
            assert_eq!(class(FileKind::Regular, Some("/srv/x"), file), expected, "{file:?}");
        };
        check(Class::WriteAheadLog, &file);
        let once = Behaviour { sequential_share: Some(1.0), rewrite_share: Some(0.0), ..file };
        check(Class::Stream, &Behaviour { syncs: 1, ..once.clone() });
        check(Class::Messages, &Behaviour { syncs: 0, block_bytes: Some(90), ..once.clone() });
        check(Class::WriteAheadLog, &Behaviour { syncs: 0, synchronous: true, ..once.clone() });
        check(Class::Data, &Behaviour { sequential_share: Some(0.0), syncs: 3, ..once.clone() });
        let reads = Behaviour { reads: 1_000, writes: 0, syncs: 0, rewrite_share: None, ..once };
        check(Class::Stream, &reads);
        check(Class::Other, &Behaviour { sequential_share: None, ..reads.clone() });
        check(Class::Temporary, &Behaviour { deleted: true, ..reads.clone() });
        assert_eq!(class(FileKind::Pipe, Some("/srv/x"), &reads), Class::Device);
    }
}
