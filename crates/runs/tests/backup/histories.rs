//! Campaign: histories of a tree that changes between any two requests. Every file in the archive
//! is what its name stood for at some moment of the run, or has a warning. Every listed name is in
//! the archive or has a warning. Takeup and GNU tar read the archive.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use archive::chunk::Compression;
use flow::cancel::Cancel;
use runs::verify::{VerifyOptions, verify};
use tempfile::tempdir;
use testkit::samples::Random;

use crate::harness::{Finished, Recorder, options, run};
use crate::index::{Parts, check_archive};
use crate::living::{CHANGES, Counts, Mounted, Thing, World, mount};
use crate::tools::{PythonMember, python_members};

/// More than fit into a batch, so that files are done with while others are not listed yet.
const NAMES: usize = 700;

fn is_long() -> bool {
    std::env::var_os("TAKEUP_LONG").is_some()
}

fn world(seed: u64) -> World {
    let mut random = Random::new(seed << 8);
    let mut world = World::new(seed, 2 + random.below(12));
    for number in 0..NAMES {
        let most_bytes = match random.below(40) {
            0 => 2_000_000,
            1..=3 => 300_000,
            _ => 4000,
        };
        world.add_file(&format!("{number:04}"), most_bytes);
    }
    for _ in 0..NAMES / 4 {
        let [from, to] = [(); 2].map(|()| format!("{:04}", random.below(NAMES as u64)));
        if from != to {
            world.link(&from, &to);
        }
    }
    world
}

fn name_of(path: &[u8]) -> String {
    let path = String::from_utf8(path.to_vec()).unwrap();
    path.trim_end_matches('/').rsplit('/').next().unwrap().to_owned()
}

/// The kind of a member, following hard links within the archive.
fn thing(
    member: &PythonMember,
    members: &HashMap<Vec<u8>, PythonMember>,
    parts: &Parts,
) -> Option<Thing> {
    Some(match member.type_flag {
        b'0' => {
            let content = &parts.archive[member.content_offset as usize..][..member.size as usize];
            Thing::File(Arc::new(content.to_vec()))
        }
        b'1' => return thing(members.get(&member.link)?, members, parts),
        b'2' => Thing::SymbolicLink(member.link.clone()),
        b'3' => Thing::Device,
        b'5' => Thing::Folder,
        b'6' => Thing::Fifo,
        _ => return None,
    })
}

/// Outcomes of one history.
#[derive(Default)]
struct Seen {
    true_states: u64,
    warned: u64,
    links: u64,
}

fn check_states(finished: &Finished, parts: &Parts, mounted: &Mounted, what: &str) -> Seen {
    let world = mounted.stop();
    let all = python_members(&finished.archive);
    let members: HashMap<Vec<u8>, PythonMember> =
        all.iter().map(|member| (member.path.clone(), member.clone())).collect();
    let warned: HashSet<String> =
        finished.warnings().iter().map(|(object, _)| name_of(object.as_bytes())).collect();
    let root = name_of(mounted.path().as_os_str().as_encoded_bytes());
    let mut seen = Seen::default();
    let mut missing: HashSet<String> = (0..NAMES).map(|number| format!("{number:04}")).collect();
    for member in &all {
        let name = name_of(&member.path);
        missing.remove(&name);
        if name == root {
            continue;
        }
        // A warning about a file holds for all of its names in the archive.
        let is_link = member.type_flag == b'1';
        if warned.contains(&name) || is_link && warned.contains(&name_of(&member.link)) {
            seen.warned += 1;
            continue;
        }
        let thing = thing(member, &members, parts).expect("a link has a target in the archive");
        let told = match &thing {
            Thing::File(content) => format!("{} bytes", content.len()),
            other => format!("{other:?}"),
        };
        let others = world.names_that_were(&thing);
        assert!(world.was(&name, &thing), "{what}: {name} never was this, {others:?} were: {told}");
        seen.true_states += 1;
        seen.links += u64::from(is_link);
    }
    missing.retain(|name| !warned.contains(name));
    assert!(missing.is_empty(), "{what}: neither archived nor warned of: {missing:?}");
    seen
}

fn history(seed: u64) -> (Seen, Counts) {
    let mounted = mount(world(seed));
    let folder = tempdir().unwrap();
    let mut wanted = options(&[mounted.path()], &folder.path().join("archive"));
    // One reader makes a history repeatable; many meet in more ways.
    wanted.read_threads = (!seed.is_multiple_of(3)).then_some(1 + seed as usize % 2);
    wanted.compression = match seed % 4 {
        3 => Compression::Zstd { level: 1 },
        _ => Compression::None,
    };
    let finished = run(&wanted);
    drop(mounted.stop());
    let parts = check_archive(&finished, wanted.compression);
    let from = wanted.target.name().into();
    let verified = verify(
        VerifyOptions { from, ..VerifyOptions::default() },
        &Recorder::default(),
        &Cancel::new(),
    );
    let verified = verified.unwrap();
    assert!(verified.is_sound(), "history {seed}: {:?}", verified.damaged);
    let plain = Finished { archive: folder.path().join("plain"), ..finished };
    std::fs::write(&plain.archive, [&parts.archive[..], &parts.index].concat()).unwrap();
    let seen = check_states(&plain, &parts, &mounted, &format!("history {seed}"));
    let counts = mounted.stop().counts;
    (seen, counts)
}

#[test]
fn every_file_is_what_it_was_at_some_moment_or_is_warned_of() {
    testkit::require!(Fuse, GnuTar);
    let histories = if is_long() { 300 } else { 8 };
    let (mut all, mut total) = (Counts::default(), Seen::default());
    for seed in 1..=histories {
        let (seen, counts) = history(seed);
        all.requests += counts.requests;
        all.numbers_reused += counts.numbers_reused;
        for (sum, count) in all.changes.iter_mut().zip(counts.changes) {
            *sum += count;
        }
        total.true_states += seen.true_states;
        total.warned += seen.warned;
        total.links += seen.links;
    }
    let changes: Vec<String> =
        CHANGES.iter().zip(all.changes).map(|(name, count)| format!("{count} {name}")).collect();
    eprintln!(
        "{histories} histories, {} requests, changes: {}; {} inode numbers used again; {} members \
         true to some moment ({} of them links), {} warned of",
        all.requests,
        changes.join(", "),
        all.numbers_reused,
        total.true_states,
        total.links,
        total.warned
    );
    assert!(all.changes.iter().all(|count| *count > 0) && all.numbers_reused > 0);
}
