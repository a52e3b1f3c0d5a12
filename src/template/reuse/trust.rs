//! Whether iterations may still be reused: until a text made that way differs from a whole render.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::sampler::Sampler;

/// Differences kept for reports.
const KEPT: usize = 8;

/// A text that differs from a whole render of the same call.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The text with reused iterations; private to the user.
    pub got: String,
    /// The whole render; None if it failed.
    pub want: Option<String>,
}

/// See the module.
#[derive(Default)]
pub struct Trust {
    sampler: Sampler,
    checked: AtomicU64,
    lost: AtomicBool,
    differences: Mutex<Vec<Difference>>,
}

impl Trust {
    /// Whether no difference was found so far.
    pub fn holds(&self) -> bool {
        !self.lost.load(Ordering::Relaxed)
    }

    /// Texts compared.
    pub fn checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }

    /// How many differences are kept.
    pub fn different(&self) -> usize {
        let differences = self.differences.lock();
        differences.unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The first differences.
    pub fn differences(&self) -> Vec<Difference> {
        let differences = self.differences.lock();
        differences.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// See [`Sampler`].
    pub fn is_due(&self) -> bool {
        self.sampler.is_due()
    }

    /// See [`Sampler::start`].
    pub fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// Compares a text with the whole render.
    pub fn judge(&self, got: String, want: Option<String>) {
        if want.as_ref() != Some(&got) {
            self.lost.store(true, Ordering::Relaxed);
            let mut differences = self
                .differences
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if differences.len() < KEPT {
                differences.push(Difference { got, want });
            }
        }
        self.checked.fetch_add(1, Ordering::Relaxed);
    }
}
