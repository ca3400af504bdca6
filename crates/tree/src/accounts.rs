//! Names of users and groups, in both directions.
//!
//! `/etc/passwd` and `/etc/group` are read once. If `/etc/nsswitch.conf` names further sources
//! (LDAP, sssd, systemd), an unknown number or name is looked up with `getent`, once, and the
//! answer is kept. So no C library call with its own locking and allocation slows down a worker
//! thread. A run makes at most [`ASKED_MAX`] such lookups; later unknown accounts are archived by
//! number alone.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;

use base::failures::lock;
use rustix::fs::{Mode, OFlags};

/// Most `getent` lookups per table and run.
pub const ASKED_MAX: usize = 4096;
/// Most bytes read of an account file.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Users and groups of this machine. Shared by all threads.
#[derive(Debug, Default)]
pub struct Accounts {
    users: Table,
    groups: Table,
}

impl Accounts {
    /// Reads the account files of this machine. A missing file counts as empty.
    pub fn load() -> Accounts {
        let switch = read(Path::new("/etc/nsswitch.conf"));
        let table = |database: &'static str, file: &str| Table {
            database: has_other_sources(&switch, database).then_some(database),
            ..Table::parse(&read(Path::new(file)))
        };
        Accounts { users: table("passwd", "/etc/passwd"), groups: table("group", "/etc/group") }
    }

    /// Appends the name of a user, if it has one.
    pub fn append_user_name(&self, uid: u32, name: &mut Vec<u8>) {
        self.users.append_name(uid, name);
    }

    /// Appends the name of a group, if it has one.
    pub fn append_group_name(&self, gid: u32, name: &mut Vec<u8>) {
        self.groups.append_name(gid, name);
    }

    /// Number of the user called `name`.
    pub fn user_id(&self, name: &[u8]) -> Option<u32> {
        self.users.id(name)
    }

    /// Number of the group called `name`.
    pub fn group_id(&self, name: &[u8]) -> Option<u32> {
        self.groups.id(name)
    }
}

#[derive(Debug, Default)]
struct Table {
    names: HashMap<u32, Box<[u8]>>,
    ids: HashMap<Box<[u8]>, u32>,
    /// `getent`'s name of the table, if there are other sources.
    database: Option<&'static str>,
    asked: Mutex<Asked>,
}

/// Answers of `getent`, including negative ones.
#[derive(Debug, Default)]
struct Asked {
    names: HashMap<u32, Option<Box<[u8]>>>,
    ids: HashMap<Box<[u8]>, Option<u32>>,
}

impl Table {
    /// Takes lines of `name:password:number:...`. If a name or number has two lines, the first
    /// counts, as in getpwnam(3).
    fn parse(bytes: &[u8]) -> Table {
        let mut table = Table::default();
        for (name, id) in bytes.split(|&byte| byte == b'\n').filter_map(parse_line) {
            table.names.entry(id).or_insert_with(|| name.into());
            table.ids.entry(name.into()).or_insert(id);
        }
        table
    }

    fn append_name(&self, id: u32, name: &mut Vec<u8>) {
        if let Some(known) = self.names.get(&id) {
            name.extend_from_slice(known);
            return;
        }
        let Some(database) = self.database else { return };
        let mut asked = lock(&self.asked);
        let full = asked.names.len() >= ASKED_MAX;
        let answer = match asked.names.get(&id) {
            Some(answer) => answer,
            None if full => return,
            None => {
                let answer = ask(database, &id.to_string()).filter(|(_, found)| *found == id);
                asked.names.entry(id).or_insert(answer.map(|(name, _)| name))
            }
        };
        name.extend_from_slice(answer.as_deref().unwrap_or_default());
    }

    fn id(&self, name: &[u8]) -> Option<u32> {
        if let Some(&id) = self.ids.get(name) {
            return Some(id);
        }
        // getent would take digits for a number, and a name from an archive may be anything.
        let database = self.database?;
        let text = std::str::from_utf8(name).ok()?;
        if text.is_empty() || text.contains('\0') || text.bytes().all(|byte| byte.is_ascii_digit())
        {
            return None;
        }
        let mut asked = lock(&self.asked);
        if let Some(answer) = asked.ids.get(name) {
            return *answer;
        }
        if asked.ids.len() >= ASKED_MAX {
            return None;
        }
        let answer = ask(database, text).filter(|(found, _)| **found == *name).map(|(_, id)| id);
        asked.ids.insert(name.into(), answer);
        answer
    }
}

fn parse_line(line: &[u8]) -> Option<(&[u8], u32)> {
    let mut fields = line.split(|&byte| byte == b':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let id = std::str::from_utf8(fields.nth(1)?).ok()?.parse().ok()?;
    Some((name, id))
}

/// Whether nsswitch.conf(5) names a source of `database` besides the local files. Without a line
/// for it, the C library uses only files.
fn has_other_sources(switch: &[u8], database: &str) -> bool {
    String::from_utf8_lossy(switch).lines().any(|line| {
        let line = line.split('#').next().unwrap_or_default();
        line.split_once(':').is_some_and(|(name, sources)| {
            name.trim() == database
                && sources.split_whitespace().any(|source| {
                    !source.starts_with('[') && !["files", "compat"].contains(&source)
                })
        })
    })
}

fn ask(database: &str, key: &str) -> Option<(Box<[u8]>, u32)> {
    let asked = machine::programs::command("getent").and_then(|mut getent| {
        getent.args([database, "--", key]).stdin(Stdio::null()).stderr(Stdio::null()).output()
    });
    let output = asked.inspect_err(base::interruptible::remember_shortage).ok()?;
    let line = output.stdout.split(|&byte| byte == b'\n').next()?;
    parse_line(line).map(|(name, id)| (name.into(), id))
}

fn read(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    if let Ok(file) = base::interruptible::open(path, flags, Mode::empty()).map(File::from) {
        // A partly read file is used: names are a convenience, since the numbers are archived
        // anyway.
        let _ = file.take(FILE_BYTES_MAX).read_to_end(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_account_files() {
        let table =
            Table::parse(b"root:x:0:0:root:/root:/bin/sh\nbad\n:x:3\ntoor:x:0:\nme:x:-1:\n");
        let mut name = Vec::new();
        table.append_name(0, &mut name);
        assert_eq!(name, b"root");
        assert_eq!(table.id(b"toor"), Some(0));
        assert_eq!(table.id(b"me"), None);
        name.clear();
        table.append_name(3, &mut name);
        assert!(name.is_empty());
    }

    #[test]
    fn sources_in_nsswitch() {
        let switch = b"# x\npasswd: files systemd # no\ngroup:  files [NOTFOUND=return] compat\n";
        assert!(has_other_sources(switch, "passwd"));
        assert!(!has_other_sources(switch, "group"));
        assert!(!has_other_sources(switch, "shadow"));
    }

    #[test]
    fn this_machine_has_root() {
        let accounts = Accounts::load();
        let mut name = Vec::new();
        accounts.append_user_name(0, &mut name);
        assert_eq!(name, b"root");
        assert_eq!(accounts.user_id(b"root"), Some(0));
        assert_eq!(accounts.group_id(b"no such group here"), None);
        let mut name = Vec::new();
        accounts.append_group_name(3_999_999_999, &mut name);
        assert!(name.is_empty());
    }
}
