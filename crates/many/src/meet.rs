//! Whether all hosts run the same: said before anything starts.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use flow::cancel::Cancel;

use crate::communicator::Communicator;
use crate::message::{Introduction, MailError, Message, receive, send, send_to_all, unexpected};

/// Longest wait for the ranks of a job to arrive.
const MEET_MAX: Duration = Duration::from_secs(120);

/// Why a job does not begin, or what is known of its hosts.
#[derive(Debug, thiserror::Error)]
pub enum MeetError {
    /// The hosts cannot talk to each other.
    #[error(transparent)]
    Mail(#[from] MailError),
    /// They do not run the same, or one cannot take part.
    #[error("{0}")]
    Refused(String),
}

/// The hosts of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Met {
    /// Name of the host of each rank.
    pub hosts: Vec<String>,
    /// What differs between them and may matter, in words.
    pub differences: Vec<String>,
}

/// Introduces this rank, and returns what rank 0 found of all; only rank 0 gets the differences.
///
/// # Errors
/// On all ranks, when they do not run the same or one cannot take part.
pub fn meet(own: Introduction, by: &dyn Communicator, cancel: &Cancel) -> Result<Met, MeetError> {
    if by.rank() != 0 {
        send(0, &Message::Introduce(Box::new(own)), by)?;
        return match receive(by, MEET_MAX, cancel)? {
            (_, Message::Begin { refused: None }) => Ok(Met::default()),
            (_, Message::Begin { refused: Some(why) }) => Err(MeetError::Refused(why)),
            (from, other) => Err(unexpected(from, &other).into()),
        };
    }
    let mut all: Vec<Option<Introduction>> = vec![None; by.size()];
    all[0] = Some(own);
    while all.iter().any(Option::is_none) {
        let (from, message) = receive(by, MEET_MAX, cancel)?;
        let Message::Introduce(introduction) = message else {
            return Err(unexpected(from, &message).into());
        };
        all[from] = Some(*introduction);
    }
    let all: Vec<Introduction> = all.into_iter().flatten().collect();
    let refused = refusal(&all);
    send_to_all(&Message::Begin { refused: refused.clone() }, by)?;
    if let Some(why) = refused {
        return Err(MeetError::Refused(why));
    }
    let differences = differences(&all);
    Ok(Met { hosts: all.into_iter().map(|one| one.host).collect(), differences })
}

/// Why the job cannot begin.
fn refusal(all: &[Introduction]) -> Option<String> {
    let first = all.first()?;
    let named = |rank: usize| format!("{} (rank {rank})", all[rank].host);
    for (rank, one) in all.iter().enumerate() {
        if let Some(why) = &one.refused {
            return Some(format!("{}: {why}", named(rank)));
        }
        if one.version != first.version {
            return Some(format!(
                "{} has takeup-mpi {}, and {} has {}: install the same on all hosts",
                named(0),
                first.version,
                named(rank),
                one.version
            ));
        }
        let other = first
            .shared
            .iter()
            .find(|(path, identity)| one.shared.get(*path).is_some_and(|its| its != *identity));
        if let Some((path, identity)) = other.filter(|_| one.arguments == first.arguments) {
            return Some(format!(
                "{path} is not the same folder on all hosts: {} sees {identity}, and {} sees {}",
                named(0),
                named(rank),
                one.shared[path]
            ));
        }
        if one.arguments != first.arguments {
            return Some(format!(
                "{} was started with {:?}, and {} with {:?}: give all ranks the same arguments",
                named(0),
                first.arguments.join(" "),
                named(rank),
                one.arguments.join(" ")
            ));
        }
    }
    None
}

/// What stands for a folder that all hosts have to see: the nearest of it and those above it that
/// exists, and its inode, which is the same wherever one file system is mounted. A mount point
/// without its mount has another one.
pub fn identity_of(folder: &Path) -> String {
    let found = folder.ancestors().find_map(|path| Some((path, path.metadata().ok()?.ino())));
    found.map_or_else(
        || "not there".to_owned(),
        |(path, inode)| format!("{} with inode {inode}", path.display()),
    )
}

/// Ranks that are named with a value; of more the number is said.
const NAMED_MAX: usize = 4;

/// What of the targets differs, one sentence for each property.
fn differences(all: &[Introduction]) -> Vec<String> {
    let mut values: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for one in all {
        for (name, value) in &one.target {
            values.entry(name).or_default().entry(value).or_default().push(&one.host);
        }
    }
    let mut said = Vec::new();
    for (name, by_value) in values {
        let everybody = by_value.len() == 1 && by_value.values().all(|it| it.len() == all.len());
        if everybody {
            continue;
        }
        let one = |(value, hosts): (&&str, &Vec<&str>)| {
            let shown = match hosts.len() {
                0..=NAMED_MAX => hosts.join(", "),
                many => format!("{many} hosts"),
            };
            format!("{value} on {shown}")
        };
        let shown: Vec<String> = by_value.iter().map(one).collect();
        said.push(format!("{name} is not the same on all hosts: {}", shown.join("; ")));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::Local;
    use std::thread;

    fn one(host: &str, version: &str, read_ahead: &str) -> Introduction {
        Introduction {
            host: host.to_owned(),
            version: version.to_owned(),
            arguments: vec!["bench".to_owned()],
            target: [("read-ahead".to_owned(), read_ahead.to_owned())].into(),
            shared: [("/srv".to_owned(), "/srv with inode 2".to_owned())].into(),
            refused: None,
        }
    }

    fn met(introductions: Vec<Introduction>) -> Vec<Result<Met, MeetError>> {
        let group = Local::group(introductions.len());
        thread::scope(|scope| {
            let ranks: Vec<_> = group
                .into_iter()
                .zip(introductions)
                .map(|(by, own)| scope.spawn(move || meet(own, &by, &Cancel::new())))
                .collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn what_differs_is_said_before_anything_starts() {
        let same = met(vec![one("a", "1", "128"), one("b", "1", "4096"), one("c", "1", "128")]);
        let found = same[0].as_ref().unwrap();
        assert_eq!(found.hosts, ["a", "b", "c"]);
        let said = "read-ahead is not the same on all hosts: 128 on a, c; 4096 on b";
        assert_eq!(found.differences, [said]);
        let other = met(vec![one("a", "1", "1"), one("b", "2", "1")]);
        for rank in other {
            let error = rank.unwrap_err().to_string();
            assert!(error.contains("b (rank 1) has 2"), "{error}");
        }
        let mut unmounted = one("b", "1", "1");
        unmounted.shared = [("/srv".to_owned(), "/srv with inode 77".to_owned())].into();
        for rank in met(vec![one("a", "1", "1"), unmounted]) {
            let error = rank.unwrap_err().to_string();
            assert!(error.contains("b (rank 1) sees /srv with inode 77"), "{error}");
        }
        let mut broken = one("b", "1", "1");
        broken.refused = Some("/srv: no such file".to_owned());
        for rank in met(vec![one("a", "1", "1"), broken]) {
            assert_eq!(rank.unwrap_err().to_string(), "b (rank 1): /srv: no such file");
        }
    }
}
