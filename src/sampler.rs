//! Which calls are done again in full by a thread of its own, to be compared.
//!
//! Every [`EVERY`]-th call is, warm ones included; at most one at a time for each owner, and for at most
//! [`SHARE`] of one core, so that nobody waits for it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Every how many calls one is done again.
pub const EVERY: u64 = 16;

/// Share of one core that this may take.
pub const SHARE: f64 = 0.01;

/// Time that may be spent before the share applies, so that short lives are looked at as well.
const ALLOWANCE: Duration = Duration::from_millis(500);

/// See the module.
pub struct Sampler {
    born: Instant,
    calls: AtomicU64,
    spent: AtomicU64,
    /// The process that is at it right now. A forked child inherits the number, not the thread.
    busy: AtomicU32,
}

impl Default for Sampler {
    fn default() -> Self {
        Sampler {
            born: Instant::now(),
            calls: AtomicU64::new(0),
            spent: AtomicU64::new(0),
            busy: AtomicU32::new(0),
        }
    }
}

impl Sampler {
    /// Counts a call; true if it is this one's turn. Then [`Sampler::start`] has to follow.
    pub fn is_due(&self) -> bool {
        if !(self.calls.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(EVERY) {
            return false;
        }
        let spent = Duration::from_nanos(self.spent.load(Ordering::Relaxed));
        if spent > ALLOWANCE + self.born.elapsed().mul_f64(SHARE) {
            return false;
        }
        let process = std::process::id();
        self.busy.swap(process, Ordering::AcqRel) != process
    }

    /// Runs `check` on a thread of its own; `of` finds the sampler in what the check is about.
    pub fn start<T: Clone + Send + 'static>(
        owner: T,
        of: impl Fn(&T) -> &Sampler + Copy + Send + 'static,
        check: impl FnOnce(&T) + Send + 'static,
    ) {
        let keeper = owner.clone();
        let work = move || {
            let started = Instant::now();
            check(&owner);
            let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let sampler = of(&owner);
            sampler.spent.fetch_add(nanos, Ordering::Relaxed);
            sampler.busy.store(0, Ordering::Release);
        };
        let thread = thread::Builder::new().name("turntrie-verify".to_owned());
        if thread.spawn(work).is_err() {
            // No thread to be had: the next one that is due tries again.
            of(&keeper).busy.store(0, Ordering::Release);
        }
    }
}
