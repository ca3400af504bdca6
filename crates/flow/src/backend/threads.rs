//! The back end without io_uring: a few threads that call pread and pwrite.
//!
//! Capacity: `depth` operations in all, so neither channel ever holds more and no sender blocks.

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use base::failures::lock;

use super::{Backend, Completion, Memory, TransferRequest};
use crate::crew::guarded;
use crate::run::StageKind;

/// Transfers on threads of its own, started as needed.
pub struct ThreadBackend {
    requests: Option<SyncSender<TransferRequest>>,
    taken: Arc<Mutex<Receiver<TransferRequest>>>,
    done: SyncSender<Completion>,
    completions: Receiver<Completion>,
    threads: Vec<JoinHandle<()>>,
    depth: usize,
    in_flight: usize,
}

impl ThreadBackend {
    /// A back end with up to `depth` threads.
    ///
    /// # Errors
    /// When not even one can be started.
    pub fn new(depth: usize) -> io::Result<ThreadBackend> {
        let depth = depth.max(1);
        let (requests, taken) = sync_channel(depth);
        let (done, completions) = sync_channel(depth);
        let mut backend = ThreadBackend {
            requests: Some(requests),
            taken: Arc::new(Mutex::new(taken)),
            done,
            completions,
            threads: Vec::new(),
            depth,
            in_flight: 0,
        };
        backend.start_thread()?;
        Ok(backend)
    }

    fn start_thread(&mut self) -> io::Result<()> {
        let (taken, done) = (Arc::clone(&self.taken), self.done.clone());
        let thread = std::thread::Builder::new().name("takeup-io".into()).spawn(move || {
            loop {
                let next = lock(&taken).recv();
                let Ok(mut operation) = next else { return };
                // The waiting thread waits for nothing else, so the operation must always be
                // returned.
                let result = guarded(StageKind::Io, || transfer(&mut operation));
                let result = result.unwrap_or_else(|failure| Err(io::Error::other(failure)));
                if done.send(Completion { operation, result }).is_err() {
                    return;
                }
            }
        })?;
        self.threads.push(thread);
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "what is short or interrupted is reported")]
fn transfer(operation: &mut TransferRequest) -> io::Result<usize> {
    crate::trap::pass(StageKind::Io);
    let file = operation.file.as_fd();
    let done = operation.done_bytes;
    Ok(match &mut operation.memory {
        Memory::Fill(piece) => {
            rustix::io::pread(file, &mut piece.bytes_mut()[done..], operation.offset_bytes)
        }
        Memory::Drain(block) => rustix::io::pwrite(file, &block[done..], operation.offset_bytes),
    }?)
}

impl Backend for ThreadBackend {
    fn name(&self) -> &'static str {
        "pread"
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn submit(&mut self, operation: TransferRequest) -> io::Result<()> {
        if self.in_flight >= self.threads.len() {
            // The existing threads do it, if a little later.
            let _ = self.start_thread();
        }
        let requests = self.requests.as_ref().expect("requests are taken until drop");
        requests.send(operation).map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.in_flight += 1;
        Ok(())
    }

    fn wait(&mut self) -> io::Result<Completion> {
        let completion = self.completions.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.in_flight -= 1;
        Ok(completion)
    }
}

impl Drop for ThreadBackend {
    fn drop(&mut self) {
        self.requests = None;
        while self.in_flight > 0 && self.wait().is_ok() {}
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
