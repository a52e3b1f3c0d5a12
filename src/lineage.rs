//! A vector that goes on from copies of itself, and knows how far two of them go together.
//!
//! Turns of a conversation are such vectors: messages, iterations of loops, nodes of the trie. Each
//! element is pushed once, and gets a number that no other push has. Nothing is ever changed in place, so
//! two vectors that have a number in common at some place share all that comes before it as well: how far
//! they go together is found by a search among the numbers, without a look at the elements. For the same
//! reason an element may hold what is true of all elements up to it, such as a sum.
//!
//! Cost: O(log n) for [`Lineage::common`], [`Lineage::take`] and a push; clones share their memory.

use std::sync::atomic::{AtomicU64, Ordering};

use imbl::Vector;

/// See the module.
#[derive(Clone, Debug)]
pub struct Lineage<T: Clone>(Vector<Link<T>>);

#[derive(Clone, Debug)]
struct Link<T> {
    value: T,
    number: u64,
}

impl<T: Clone> Default for Lineage<T> {
    fn default() -> Self {
        Lineage(Vector::new())
    }
}

impl<T: Clone> Lineage<T> {
    /// Goes on with an element.
    pub fn push(&mut self, value: T) {
        static PUSHES: AtomicU64 = AtomicU64::new(0);
        let number = PUSHES.fetch_add(1, Ordering::Relaxed);
        self.0.push_back(Link { value, number });
    }

    /// How many elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The element at a place.
    pub fn get(&self, at: usize) -> Option<&T> {
        self.0.get(at).map(|link| &link.value)
    }

    /// The last element.
    pub fn last(&self) -> Option<&T> {
        self.0.last().map(|link| &link.value)
    }

    /// The elements in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + Clone {
        self.0.iter().map(|link| &link.value)
    }

    /// The elements from a place on.
    pub fn skip(&self, count: usize) -> impl DoubleEndedIterator<Item = &T> {
        let count = count.min(self.len());
        let rest = self.0.focus().narrow(count..);
        rest.into_iter().map(|link| &link.value)
    }

    /// The first `count` elements, or all if there are fewer.
    #[must_use]
    pub fn take(&self, count: usize) -> Self {
        match count < self.len() {
            true => Lineage(self.0.take(count)),
            false => self.clone(),
        }
    }

    /// How many elements come before the first for which `before` does not hold; it holds for none
    /// behind that.
    pub fn leading(&self, before: impl Fn(&T) -> bool) -> usize {
        let side = |link: &Link<T>| match before(&link.value) {
            true => std::cmp::Ordering::Less,
            false => std::cmp::Ordering::Greater,
        };
        self.0.binary_search_by(side).unwrap_or_else(|count| count)
    }

    /// How many leading elements are the very ones of `other`: pushed once, onto the same elements.
    pub fn common(&self, other: &Self) -> usize {
        let number = |list: &Self, at: usize| list.0.get(at).map(|link| link.number);
        let (mut low, mut high) = (0, self.len().min(other.len()));
        // As a rule one goes on from the other.
        let mut middle = high.saturating_sub(1);
        while low < high {
            match number(self, middle) == number(other, middle) {
                true => low = middle + 1,
                false => high = middle,
            }
            middle = low + (high - low) / 2;
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::Lineage;

    /// Copies that go on by themselves, at random: what they have in common is what a plain list of pushes
    /// says.
    #[test]
    fn common_is_what_was_pushed_once() {
        let mut state = 1_u64;
        let mut below = |n: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % n
        };
        let mut known: Vec<(Lineage<u8>, Vec<usize>)> = vec![Default::default()];
        for push in 0..2_000 {
            let (mut list, mut pushes) = known[below(known.len())].clone();
            let count = match below(3) {
                0 => below(list.len() + 1),
                _ => list.len(),
            };
            list = list.take(count);
            pushes.truncate(count);
            for more in 0..=below(5) {
                list.push(below(2) as u8);
                pushes.push(8 * push + more);
            }
            let (other, others) = &known[below(known.len())];
            let shared = pushes.iter().zip(others).take_while(|(a, b)| a == b);
            let shared = shared.count();
            assert_eq!((list.common(other), other.common(&list)), (shared, shared));
            assert_eq!(list.common(&list.clone()), list.len());
            if known.len() < 60 {
                known.push((list, pushes));
            } else {
                let at = below(60);
                known[at] = (list, pushes);
            }
        }
    }
}
