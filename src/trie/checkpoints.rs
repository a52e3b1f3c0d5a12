//! The lock around a trie: one mutex, threads, panics and forks.
//!
//! - **Poisoned** (a panic while the lock was held): the trie may be half written, so it is emptied
//!   and used on. Checkpoints are a cache; nothing but time is lost.
//! - **Forked**: a child inherits the memory of its parent but not its threads. A mutex that another
//!   thread held at that moment stays locked for ever, so a child never touches the trie of its
//!   parent. It claims a slot of its own, an empty trie, by one compare-and-swap of its process
//!   id: no lock is involved in finding the lock. Beyond [`GENERATIONS`] nested forks there is no
//!   slot left, and a process works without checkpoints.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::{Holdings, Trie};

/// How many processes in a line of forks may keep checkpoints in one engine.
const GENERATIONS: usize = 8;

/// The trie of this process behind its lock.
pub struct Checkpoints {
    tries: [Slot; GENERATIONS],
}

struct Slot {
    /// The process that uses the slot; 0 if none does.
    owner: AtomicU32,
    trie: Mutex<Trie>,
}

impl Checkpoints {
    /// No checkpoints yet.
    pub fn new() -> Self {
        Checkpoints {
            tries: std::array::from_fn(|at| Slot {
                owner: AtomicU32::new(0),
                // Whoever still knows a node of the parent's trie must not take a child's for it.
                trie: Mutex::new(Trie::of_series(u8::try_from(at).unwrap_or(u8::MAX))),
            }),
        }
    }

    /// Runs `work` on the trie of this process, locked. None if this process has none.
    pub fn with<R>(&self, work: impl FnOnce(&mut Trie) -> R) -> Option<R> {
        Some(work(&mut *self.lock()?))
    }

    /// How much this process holds.
    pub fn holdings(&self) -> Holdings {
        self.with(|trie| trie.holdings()).unwrap_or_default()
    }

    fn lock(&self) -> Option<MutexGuard<'_, Trie>> {
        let trie = self.own()?;
        Some(trie.lock().unwrap_or_else(|poisoned| {
            trie.clear_poison();
            let mut guard = poisoned.into_inner();
            guard.clear();
            guard
        }))
    }

    fn own(&self) -> Option<&Mutex<Trie>> {
        let process = process::id();
        self.tries
            .iter()
            .find(|slot| match slot.owner.load(Ordering::Acquire) {
                0 => slot
                    .owner
                    .compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire)
                    .map_or_else(|owner| owner == process, |_| true),
                owner => owner == process,
            })
            .map(|slot| &slot.trie)
    }
}

impl Default for Checkpoints {
    fn default() -> Self {
        Checkpoints::new()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};
    use std::sync::Arc;

    use super::Checkpoints;
    use crate::cuts::Opening;
    use crate::trie::Chunk;

    #[test]
    fn a_poisoned_trie_starts_empty_and_works_on() {
        let checkpoints = Checkpoints::new();
        let chunk = Arc::new(Chunk::new("text", &[1], 7, Opening::Fixed));
        let link =
            || checkpoints.with(|trie| trie.link(0, [].iter(), &[Arc::clone(&chunk)], 1 << 20));
        link();
        assert_eq!(checkpoints.holdings().nodes, 1);
        let panicked = panic::catch_unwind(AssertUnwindSafe(|| {
            checkpoints.with(|_| panic!("while the lock is held"));
        }));
        assert!(panicked.is_err());
        assert_eq!(checkpoints.holdings().nodes, 0);
        link();
        assert_eq!(checkpoints.holdings().nodes, 1);
    }
}
