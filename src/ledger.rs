//! Which shapes of calls were compared with the reference, and which were found wrong.
//!
//! One for each template, shared by its threads. A forked child goes on from what its parent knew. It
//! only reads that, without waiting for a lock, and notes what it finds itself in sets of its own
//! ([`PerProcess`]): a thread of the parent may have been in the middle of anything. What cannot be read
//! counts as never checked, or as in quarantine. A process for which there is no set left checks each
//! time, and gives up the template at the first difference.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::error::{Category, Reason};
use crate::process::PerProcess;
use crate::shape::{Key, Set};

/// See the module.
#[derive(Debug)]
pub struct Ledger {
    sets: PerProcess<Sets>,
    /// Every key is in quarantine.
    given_up: AtomicBool,
}

#[derive(Debug, Default)]
struct Sets {
    checked: RwLock<Set<Key>>,
    quarantined: RwLock<Set<Key>>,
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger {
            sets: PerProcess::new(|_| Sets::default()),
            given_up: AtomicBool::new(false),
        }
    }
}

impl Ledger {
    /// Whether no key is in quarantine.
    pub fn is_clean(&self) -> bool {
        !self.given_up.load(Ordering::Relaxed)
            && self.all(|sets| &sets.quarantined, false, |set| set.is_empty())
    }

    /// The keys that were never checked, each once, with the message where it was met: `keys` are those of
    /// the messages from `first` on.
    ///
    /// # Errors
    /// If one of `keys` is in quarantine.
    pub fn unseen(&self, keys: &[Key], first: usize) -> Result<Vec<(Key, usize)>, Reason> {
        let disjoint = |set: &Set<Key>| set.is_empty() || !keys.iter().any(|key| set.contains(key));
        if self.given_up.load(Ordering::Relaxed)
            || !self.all(|sets| &sets.quarantined, false, disjoint)
        {
            return Err(Reason::new(Category::Quarantine, "shape"));
        }
        let mut unseen: Vec<(Key, usize)> = Vec::new();
        for (i, key) in keys.iter().enumerate() {
            if !unseen.iter().any(|(known, _)| known == key) {
                // Two keys a message; the last one is that of the last message with the end.
                let last = (first + keys.len() / 2).saturating_sub(1);
                unseen.push((*key, (first + i / 2).min(last)));
            }
        }
        self.all(
            |sets| &sets.checked,
            true,
            |set| {
                unseen.retain(|(key, _)| !set.contains(key));
                true
            },
        );
        Ok(unseen)
    }

    /// Notes that calls with these keys gave the reference's text.
    pub fn accept(&self, keys: &[Key]) {
        if let Some(sets) = self.sets.own() {
            let mut checked = sets.checked.write().unwrap_or_else(PoisonError::into_inner);
            checked.extend(keys);
        }
    }

    /// Sends every call with one of these keys to the reference from now on.
    pub fn quarantine(&self, keys: &[Key]) {
        match self.sets.own() {
            Some(sets) => sets
                .quarantined
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(keys),
            None => self.given_up.store(true, Ordering::Relaxed),
        }
    }

    /// How many keys were accepted and how many are in quarantine.
    pub fn sizes(&self) -> (usize, usize) {
        let size = |which: fn(&Sets) -> &RwLock<Set<Key>>| {
            let mut size = 0;
            self.all(which, true, |set| {
                size += set.len();
                true
            });
            size
        };
        (size(|sets| &sets.checked), size(|sets| &sets.quarantined))
    }

    /// Whether `holds` for this process's set and for those of all that it descends from; `unreadable`
    /// is the answer for one that an ancestor was just writing.
    fn all(
        &self,
        which: impl Fn(&Sets) -> &RwLock<Set<Key>>,
        unreadable: bool,
        mut holds: impl FnMut(&Set<Key>) -> bool,
    ) -> bool {
        let (own, mut ancestors) = self.sets.lineage();
        let own = own.map(|sets| which(sets).read().unwrap_or_else(PoisonError::into_inner));
        own.is_none_or(|set| holds(&set))
            && ancestors.all(|sets| which(sets).try_read().map_or(unreadable, |set| holds(&set)))
    }
}

#[cfg(test)]
mod tests {
    use super::Ledger;
    use crate::process::GENERATIONS;

    #[test]
    fn keys_are_told_once_until_they_are_accepted_and_never_when_in_quarantine() {
        let ledger = Ledger::default();
        // Two keys for each message, one for the end of the last.
        assert_eq!(
            ledger.unseen(&[1, 2, 1, 3, 4], 7),
            Ok(vec![(1, 7), (2, 7), (3, 8), (4, 8)])
        );
        ledger.accept(&[1, 3]);
        assert_eq!(ledger.unseen(&[1, 2, 1, 3, 4], 7), Ok(vec![(2, 7), (4, 8)]));
        assert!(ledger.is_clean());
        ledger.quarantine(&[2]);
        assert!(!ledger.is_clean());
        assert!(ledger.unseen(&[1, 2], 0).is_err());
        assert_eq!(ledger.unseen(&[1, 5], 0), Ok(vec![(5, 0)]));
        assert_eq!(ledger.sizes(), (2, 1));
    }

    #[test]
    fn a_child_knows_what_its_parent_knew_whatever_locks_the_parent_held() {
        let ledger = Ledger::default();
        ledger.accept(&[1]);
        ledger.quarantine(&[2]);
        // From here on this process is a child of the one that used the first set.
        ledger.sets.disown_for_tests();
        assert_eq!(ledger.unseen(&[1, 3], 0), Ok(vec![(3, 0)]));
        assert!(ledger.unseen(&[2], 0).is_err());
        let (_, mut ancestors) = ledger.sets.lineage();
        let parent = ancestors.next().expect("the parent's sets");
        {
            // A thread of the parent was reading: nothing of ours waits for it.
            let _reading = parent.checked.read();
            ledger.accept(&[3]);
            assert_eq!(ledger.unseen(&[1, 3], 0), Ok(vec![]));
        }
        {
            let _writing = parent.checked.write();
            assert_eq!(ledger.unseen(&[1, 3], 0), Ok(vec![(1, 0)]));
        }
        let _writing = parent.quarantined.write();
        assert!(!ledger.is_clean());
        assert!(ledger.unseen(&[3], 0).is_err());
    }

    #[test]
    fn without_a_set_a_difference_ends_it_all() {
        let ledger = Ledger::default();
        for _ in 0..GENERATIONS {
            assert!(ledger.is_clean());
            ledger.sets.disown_for_tests();
        }
        ledger.accept(&[1]);
        assert_eq!(ledger.unseen(&[1], 0), Ok(vec![(1, 0)]));
        ledger.quarantine(&[2]);
        assert!(!ledger.is_clean() && ledger.unseen(&[1], 0).is_err());
    }
}
