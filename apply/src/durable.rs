//! Syncs many files and folders to disk in parallel, so that a set takes little longer than a
//! single file.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// How many syncs run in parallel. The disk's own queue is deeper, but more threads gain nothing.
const THREADS: usize = 16;

/// Calls `sync` for each item, in any order; returns the first error.
pub(crate) fn sync_all<T: Sync>(
    items: &[T],
    sync: impl Fn(&T) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let threads = THREADS.min(items.len() / 4);
    if threads < 2 {
        return items.iter().try_for_each(sync);
    }
    let next = AtomicUsize::new(0);
    let work = || -> io::Result<()> {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            sync(item)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        // If the system provides fewer threads or none, this one does the work.
        let start = |_| Builder::new().spawn_scoped(scope, work).ok();
        let workers: Vec<_> = (1..threads).map_while(start).collect();
        let own = work();
        let others = workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|_| Err(lost())));
        own.and(others)
    })
}

fn lost() -> io::Error {
    io::Error::other("a thread that was writing to the disk ended early")
}
