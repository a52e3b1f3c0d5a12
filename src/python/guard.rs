//! The one place where a panic stops.
//!
//! `PanicException` derives from `BaseException` and would pass every `except Exception` of a trainer.
//! Here it becomes a reason: the reference serves the call and the caller counts it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Category, Reason};

/// Runs `work`; a panic is the reason `panic:<place>`.
///
/// Unwind safety: `work` reads shared state that is either immutable or behind locks whose owners
/// recover from poisoning.
pub fn guarded<T>(
    place: &'static str,
    work: impl FnOnce() -> Result<T, Reason>,
) -> Result<T, Reason> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Reason::new(Category::Panic, place)))
}
