//! Many texts on several threads: a cold prompt is made of chunks that can be encoded apart. And two jobs
//! on two: the halves of loading.
//!
//! Threads live for one call, so there is no pool that a forked child could miss, and nothing to shut
//! down. How many may help at a time is counted for the whole process, whoever calls: the default is
//! the processors that the process may use (affinity and cgroup quota) less the calling thread.
//! Starting a thread costs some 20 µs, so short texts are encoded by the caller.

use std::process;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use super::Part;
use crate::error::Error;

/// Texts of fewer bytes altogether are encoded by the caller.
const WORTH_IT: usize = 64 << 10;
/// Bytes that each helper should have to do.
const SHARE: usize = 32 << 10;

/// The place of a text, and its ids.
type Done = (usize, Vec<u32>);

/// Encodes parts, one after the other, on one thread.
pub(super) trait Worker {
    /// Appends the ids of a part.
    ///
    /// # Errors
    /// If the part is refused.
    fn encode(&mut self, part: Part<'_>, out: &mut Vec<u32>) -> Result<(), Error>;
}

/// The ids of each part, in order, by as many workers as are useful; at most `threads` threads at work in
/// this process.
///
/// # Errors
/// The error of one of the parts that were refused.
pub(super) fn encode_all<W: Worker>(
    worker: impl Fn() -> W + Sync,
    parts: &[Part<'_>],
    threads: usize,
) -> Result<Vec<Vec<u32>>, Error> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut worker = worker();
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(&part) = parts.get(at) else {
                return Ok(done);
            };
            let mut ids = Vec::with_capacity(part.text.len() / 3 + 8);
            worker.encode(part, &mut ids)?;
            done.push((at, ids));
        }
    };
    let bytes: usize = parts.iter().map(|part| part.text.len()).sum();
    let useful = if bytes < WORTH_IT { 0 } else { bytes / SHARE };
    let helpers = Helpers::claim(useful.min(parts.len().saturating_sub(1)), threads - 1);
    if helpers.count == 0 {
        return Ok(work()?.into_iter().map(|(_, ids)| ids).collect());
    }
    let outcomes: Vec<Result<Vec<Done>, Error>> = thread::scope(|scope| {
        let started: Vec<_> = (0..helpers.count)
            .map_while(|_| {
                let thread = thread::Builder::new().name("turntrie-encode".to_owned());
                // A machine out of threads has the work done by fewer.
                thread.spawn_scoped(scope, work).ok()
            })
            .collect();
        let mut outcomes = vec![work()];
        for helper in started {
            // A panic goes on in the caller, where it would have been without helpers.
            outcomes.push(
                helper
                    .join()
                    .unwrap_or_else(|p| std::panic::resume_unwind(p)),
            );
        }
        outcomes
    });
    drop(helpers);
    let mut all = vec![Vec::new(); parts.len()];
    for outcome in outcomes {
        for (at, ids) in outcome? {
            all[at] = ids;
        }
    }
    Ok(all)
}

/// What both return, the second one on a thread of its own if there may be another.
pub(super) fn both<A, B: Send>(
    first: impl FnOnce() -> A,
    second: impl Fn() -> B + Sync,
    threads: usize,
) -> (A, B) {
    let helpers = Helpers::claim(1, threads - 1);
    if helpers.count == 0 {
        return (first(), second());
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("turntrie-load".to_owned());
        let helper = thread.spawn_scoped(scope, &second);
        let first = first();
        let second = match helper {
            Ok(helper) => helper
                .join()
                .unwrap_or_else(|p| std::panic::resume_unwind(p)),
            // A machine out of threads has it done by this one.
            Err(_) => second(),
        };
        (first, second)
    })
}

/// Helpers at work: process id in the upper half, their number in the lower. A forked child finds the
/// id of its parent, whose helpers it does not have.
static AT_WORK: AtomicU64 = AtomicU64::new(0);

/// Threads that one call may start; given back when dropped.
struct Helpers {
    count: usize,
}

impl Helpers {
    /// Up to `wanted` helpers, as long as there are no more than `most` in the process.
    fn claim(wanted: usize, most: usize) -> Self {
        let mut count = 0;
        if wanted > 0 {
            let _ = AT_WORK.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                let busy = busy(state);
                count = wanted.min(most.saturating_sub(busy));
                Some(state_of(busy + count))
            });
        }
        Helpers { count }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        if self.count > 0 {
            let _ = AT_WORK.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                Some(state_of(busy(state).saturating_sub(self.count)))
            });
        }
    }
}

fn busy(state: u64) -> usize {
    if state >> 32 == u64::from(process::id()) {
        (state & u64::from(u32::MAX)) as usize
    } else {
        0
    }
}

fn state_of(busy: usize) -> u64 {
    u64::from(process::id()) << 32 | busy as u64
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Helpers, WORTH_IT, Worker};
    use crate::encoder::Part;
    use crate::error::Error;

    /// The length of a text as its only id; refuses some.
    struct Lengths;

    static MOST: AtomicUsize = AtomicUsize::new(0);
    static NOW: AtomicUsize = AtomicUsize::new(0);

    impl Worker for Lengths {
        fn encode(&mut self, Part { text, .. }: Part<'_>, out: &mut Vec<u32>) -> Result<(), Error> {
            MOST.fetch_max(NOW.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(1));
            NOW.fetch_sub(1, Ordering::SeqCst);
            assert!(!text.starts_with("panic"), "as told");
            if text.starts_with("refuse") {
                return Err(Error::new("refused".to_owned()));
            }
            out.push(u32::try_from(text.len()).expect("short"));
            Ok(())
        }
    }

    fn encode_all(texts: &[&str], threads: usize) -> Result<Vec<Vec<u32>>, Error> {
        let parts: Vec<Part> = texts
            .iter()
            .map(|&text| Part { text, rest: false })
            .collect();
        super::encode_all(|| Lengths, &parts, threads)
    }

    #[test]
    fn results_are_in_order_and_failures_come_through() {
        let long = "x".repeat(WORTH_IT);
        for threads in [1, 2, 8] {
            let texts: Vec<&str> = (0..50).map(|n| &long[..n * 100]).chain([&*long]).collect();
            let ids = encode_all(&texts, threads).expect("ids");
            let want: Vec<Vec<u32>> = texts.iter().map(|t| vec![t.len() as u32]).collect();
            assert_eq!(ids, want);
            assert!(encode_all(&[&long, "a", "refuse"], threads).is_err());
            let panicked =
                std::panic::catch_unwind(|| encode_all(&[&long, "a", "panic", "b"], threads));
            assert!(panicked.is_err());
            assert_eq!(encode_all(&[], threads).expect("ids"), [[0_u32; 0]; 0]);
        }
        assert!(MOST.load(Ordering::SeqCst) > 1);
        assert_eq!(Helpers::claim(3, 7).count, 3);
        let held = Helpers::claim(5, 7);
        assert_eq!((held.count, Helpers::claim(5, 7).count), (5, 2));
        drop(held);
        assert_eq!(Helpers::claim(9, 7).count, 7);
    }
}
