//! Things that calls take instead of making them anew, and give back.
//!
//! A place for each of up to [`PLACES`] of them. Nobody ever waits: a place that another thread is just
//! looking at, or that a forked child found locked for ever, is passed by.

use std::sync::Mutex;

/// Beyond that many, what is given back is dropped.
const PLACES: usize = 16;

/// See the module.
pub(super) struct Pool<T>([Mutex<Option<T>>; PLACES]);

impl<T> Pool<T> {
    /// A pool that holds this one.
    pub(super) fn of(first: T) -> Self {
        let pool = Pool([const { Mutex::new(None) }; PLACES]);
        pool.put(first);
        pool
    }

    /// One that was given back.
    pub(super) fn take(&self) -> Option<T> {
        self.0
            .iter()
            .find_map(|place| place.try_lock().ok()?.take())
    }

    /// Gives one back.
    pub(super) fn put(&self, value: T) {
        let mut places = self.0.iter().filter_map(|place| place.try_lock().ok());
        if let Some(mut empty) = places.find(|place| place.is_none()) {
            *empty = Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PLACES, Pool};

    #[test]
    fn what_is_given_back_is_taken_once() {
        let pool = Pool::of(0);
        assert_eq!((pool.take(), pool.take()), (Some(0), None));
        (0..2 * PLACES).for_each(|value| pool.put(value));
        let taken: Vec<usize> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(taken, (0..PLACES).collect::<Vec<_>>());
    }

    #[test]
    fn a_locked_place_is_passed_by() {
        let pool = Pool::of("first");
        let held = pool.0[0].lock().expect("no panic");
        assert_eq!(pool.take(), None);
        pool.put("second");
        assert_eq!(pool.take(), Some("second"));
        drop(held);
        assert_eq!(pool.take(), Some("first"));
    }
}
