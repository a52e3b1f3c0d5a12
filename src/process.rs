//! One value for each process in a line of forks.
//!
//! A child inherits the memory of its parent but not its threads: a lock that another thread held at
//! that moment stays held for ever. So a child never waits for a lock of its parent. It claims a slot
//! of its own, with a value nobody has used, by one compare-and-swap of its process id: no lock is
//! involved in finding the lock. Beyond [`GENERATIONS`] nested forks no slot is left, and a process
//! works without a value.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many processes in a line of forks may have a value.
pub const GENERATIONS: usize = 8;

/// See the module.
#[derive(Debug)]
pub struct PerProcess<T> {
    slots: [Slot<T>; GENERATIONS],
}

#[derive(Debug)]
struct Slot<T> {
    /// The process that uses the slot; 0 if none does.
    owner: AtomicU32,
    value: T,
}

impl<T> PerProcess<T> {
    /// Values made from the number of their slot, the oldest ancestor's being 0.
    pub fn new(mut value: impl FnMut(usize) -> T) -> Self {
        PerProcess {
            slots: std::array::from_fn(|at| Slot {
                owner: AtomicU32::new(0),
                value: value(at),
            }),
        }
    }

    /// The value of this process, if there is one left for it.
    pub fn own(&self) -> Option<&T> {
        self.claim().map(|at| &self.slots[at].value)
    }

    /// The value of this process, and those of the processes that it descends from, the oldest first:
    /// they are as the ancestors left them, locks included.
    pub fn lineage(&self) -> (Option<&T>, impl Iterator<Item = &T>) {
        let claimed = self.claim();
        let ancestors = &self.slots[..claimed.unwrap_or(GENERATIONS)];
        (
            claimed.map(|at| &self.slots[at].value),
            ancestors.iter().map(|slot| &slot.value),
        )
    }

    /// Makes this process a child of the one that it was.
    #[cfg(test)]
    pub fn disown_for_tests(&self) {
        let process = process::id();
        for (slot, other) in self.slots.iter().zip(process + 1..) {
            let owner = &slot.owner;
            let _ = owner.compare_exchange(process, other, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    fn claim(&self) -> Option<usize> {
        let process = process::id();
        self.slots
            .iter()
            .position(|slot| match slot.owner.load(Ordering::Acquire) {
                0 => slot
                    .owner
                    .compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire)
                    .map_or_else(|owner| owner == process, |_| true),
                owner => owner == process,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::{GENERATIONS, PerProcess};

    #[test]
    fn a_process_keeps_its_slot_and_knows_those_before() {
        let values = PerProcess::new(|at| at);
        assert_eq!(values.own(), Some(&0));
        assert_eq!(values.own(), Some(&0));
        assert_eq!(values.lineage().1.count(), 0);
        for at in 0..GENERATIONS {
            values.disown_for_tests();
            let own = (at + 1 < GENERATIONS).then_some(at + 1);
            assert_eq!(values.own().copied(), own);
            assert_eq!(values.lineage().1.count(), at + 1);
        }
    }
}
