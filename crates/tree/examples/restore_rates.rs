//! How fast small files can be made: 100,000 files of 9 KB on average in 400 folders, by 1, 2 and 4
//! threads, with whole folders assigned to one thread, or each file to any free thread: `cargo run
//! --release -p tree --example restore_rates -- DIRECTORY [FILES] [FOLDERS] [ROUNDS]`. The files
//! are removed only at the end: ext4 does not reuse an inode within a minute of its deletion (five,
//! while its table is dirty; `recently_deleted` in fs/ext4/ialloc.c) but checks each such inode
//! again for every file it makes, so a run after a deletion would measure that search.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use archive::member::{Member, MemberKind, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use tree::{Accounts, Created, Destination, DestinationOptions, Worker};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Assignment {
    WholeFolders,
    AnyFile,
}

struct Work {
    files: Vec<Member>,
    per_folder: usize,
    content: Vec<u8>,
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("where to?")?);
    let mut number = |default| arguments.next().map_or(Ok(default), |text| text.parse());
    let (files, folders, rounds) = (number(100_000)?, number(400)?, number(2)?);
    let work = Arc::new(work(files, folders));
    let mut made = Vec::new();
    for _ in 0..rounds {
        for threads in [1, 2, 4] {
            for assignment in [Assignment::WholeFolders, Assignment::AnyFile] {
                if threads == 1 && assignment == Assignment::AnyFile {
                    continue;
                }
                let into = directory.join(format!("restore-{}", made.len()));
                rustix::fs::sync();
                let (wall, cpu) = measure(&work, &into, threads, assignment)?;
                println!(
                    "{threads} threads, {assignment:?}: {:.2} s, {:.2} s of CPU, {:.1} us a file",
                    wall.as_secs_f64(),
                    cpu.as_secs_f64(),
                    wall.as_secs_f64() * 1e6 / files as f64,
                );
                made.push(into);
            }
        }
    }
    for into in made {
        std::fs::remove_dir_all(&into)?;
    }
    Ok(())
}

fn measure(
    work: &Arc<Work>,
    into: &Path,
    threads: usize,
    assignment: Assignment,
) -> Result<(Duration, Duration), Failure> {
    let accounts = Arc::new(Accounts::load());
    let (began, cpu_before) = (Instant::now(), cpu_time());
    let destination = Destination::open(into, DestinationOptions::for_this_user(), accounts)?;
    let mut folders = destination.worker();
    for member in work.files.iter().step_by(work.per_folder) {
        let slash = member.path.iter().position(|&byte| byte == b'/').ok_or("no folder")?;
        let folder = Member {
            path: member.path[..slash].to_vec(),
            kind: MemberKind::Directory,
            mode: 0o755,
            size_bytes: 0,
            ..member.clone()
        };
        folders.create(&folder)?;
    }
    let next = Arc::new(AtomicUsize::new(0));
    let step = if assignment == Assignment::WholeFolders { work.per_folder } else { 1 };
    let handles: Vec<_> = (0..threads)
        .map(|_| {
            let (work, next, worker) = (Arc::clone(work), Arc::clone(&next), destination.worker());
            std::thread::spawn(move || restore(&work, &next, step, worker))
        })
        .collect();
    for handle in handles {
        handle.join().map_err(|_| "a thread panicked")??;
    }
    let mut problems = 0;
    destination.finish(|_| problems += 1);
    if problems > 0 {
        return Err(format!("{problems} directories without their metadata").into());
    }
    Ok((began.elapsed(), cpu_time() - cpu_before))
}

fn restore(
    work: &Work,
    next: &AtomicUsize,
    step: usize,
    mut worker: Worker,
) -> Result<(), Failure> {
    loop {
        let from = next.fetch_add(step, Ordering::Relaxed);
        if from >= work.files.len() {
            return Ok(());
        }
        for member in &work.files[from..work.files.len().min(from + step)] {
            let Created::File(mut file) = worker.create_file(member)? else {
                return Err("a file was kept".into());
            };
            file.write_at(0, &work.content[..member.size_bytes as usize])?;
            if !file.finish(&member.path)?.is_empty() {
                return Err("metadata missing".into());
            }
        }
    }
}

/// Sizes are log-normal with a mean of 9 KB, drawn by a small congruential generator.
fn work(files: usize, folders: usize) -> Work {
    let per_folder = files.div_ceil(folders);
    let mut state = 1_u64;
    let mut uniform = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let member = |number: usize| {
        let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        Member {
            path: format!("folder{:03}/file{number:06}.dat", number / per_folder).into_bytes(),
            kind: MemberKind::File,
            mode: 0o644,
            uid: 0,
            gid: 0,
            user: b"root".to_vec(),
            group: b"root".to_vec(),
            modified: Timestamp {
                seconds: 1_600_000_000 + number as i64,
                nanoseconds: 123_456_789,
            },
            size_bytes: ((9000_f64.ln() - 0.5 + normal).exp() as u64).min(1 << 20),
            sparse: None,
            xattrs: Vec::new(),
            acl_access: None,
            acl_default: None,
        }
    };
    let files = (0..files).map(member).collect();
    let content = (0..1_usize << 20).map(|at| (at * 31 % 251) as u8).collect();
    Work { files, per_folder, content }
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
