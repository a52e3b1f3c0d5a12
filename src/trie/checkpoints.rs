//! The lock around a trie: one mutex, threads, panics and forks.
//!
//! - **Poisoned** (a panic while the lock was held): the trie may be half written, so it is emptied
//!   and used on. Checkpoints are a cache; nothing but time is lost.
//! - **Forked**: a child has an empty trie of its own ([`PerProcess`]).

use std::sync::{Mutex, MutexGuard};

use super::{Holdings, Trie};
use crate::process::PerProcess;

/// The trie of this process behind its lock.
pub struct Checkpoints {
    tries: PerProcess<Mutex<Trie>>,
}

impl Checkpoints {
    /// No checkpoints yet.
    pub fn new() -> Self {
        Checkpoints {
            // Whoever still knows a node of the parent's trie must not take a child's for it.
            tries: PerProcess::new(|at| {
                Mutex::new(Trie::of_series(u8::try_from(at).unwrap_or(u8::MAX)))
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
        let trie = self.tries.own()?;
        Some(trie.lock().unwrap_or_else(|poisoned| {
            trie.clear_poison();
            let mut guard = poisoned.into_inner();
            guard.clear();
            guard
        }))
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
