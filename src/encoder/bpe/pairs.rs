//! Which two tokens merge, and into what.
//!
//! A hash table with open addressing, of which a slot holds the pair, its rank and what becomes of it.
//! Where memory is far away, as it is for whoever encodes a little now and then, all that is asked of a
//! pair is one wait.
//!
//! Everything is read only once built, so the longest run of occupied slots, which bounds every
//! search, is fixed by the vocabulary and not by the text.

/// Rank of what does not merge. Lower ranks merge first.
pub(super) const NO_RANK: u32 = u32::MAX;

/// Two tokens and what they become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) left: u32,
    pub(super) right: u32,
    pub(super) id: u32,
}

/// How soon a pair merges, and into what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Merge {
    /// [`NO_RANK`] if it does not.
    pub(super) rank: u32,
    /// What becomes of it, if it does.
    pub(super) id: u32,
}

/// All merges by their pair of ids.
pub(super) struct Pairs {
    slots: Box<[Slot]>,
    shift: u32,
    /// What becomes of a pair, by rank.
    ids: Box<[u32]>,
}

#[derive(Clone, Copy)]
#[repr(align(16))]
struct Slot {
    /// Both ids; [`EMPTY`] is no pair.
    pair: u64,
    merge: Merge,
}

const EMPTY: u64 = u64::MAX;
const VACANT: Slot = Slot {
    pair: EMPTY,
    merge: Merge {
        rank: NO_RANK,
        id: 0,
    },
};

const BITS: u32 = 21;
/// A vocabulary with this many merges or more does not fit.
pub(super) const MOST_MERGES: usize = (1 << BITS) - 1;
/// Ids from here on do not fit.
pub(super) const MOST_SYMBOLS: u32 = 1 << BITS;

impl Pairs {
    /// The table of fewer than [`MOST_MERGES`] rules by increasing rank, over ids below
    /// [`MOST_SYMBOLS`]; a pair that comes twice counts the second time, as in the `tokenizers` crate.
    pub(super) fn new(rules: &[Rule]) -> Self {
        // Between a third and two thirds full.
        let capacity = (rules.len() * 3 / 2).next_power_of_two().max(16);
        let mut pairs = Pairs {
            slots: vec![VACANT; capacity].into(),
            shift: u64::BITS - capacity.trailing_zeros(),
            ids: rules.iter().map(|rule| rule.id).collect(),
        };
        for (rule, rank) in rules.iter().zip(0..) {
            let pair = pair(rule.left, rule.right);
            let at = pairs.find(pair);
            let merge = Merge { rank, id: rule.id };
            pairs.slots[at] = Slot { pair, merge };
        }
        pairs
    }

    /// What is known of a pair.
    #[inline]
    pub(super) fn merge(&self, left: u32, right: u32) -> Merge {
        self.slots[self.find(pair(left, right))].merge
    }

    /// The rank of a pair, or [`NO_RANK`].
    #[inline]
    pub(super) fn rank(&self, left: u32, right: u32) -> u32 {
        self.merge(left, right).rank
    }

    /// What the pair of a rank becomes.
    #[inline]
    pub(super) fn id(&self, rank: u32) -> u32 {
        self.ids[rank as usize]
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.slots) + size_of_val(&*self.ids)
    }

    /// The slot of a pair, or the empty one where it would be.
    #[inline]
    fn find(&self, pair: u64) -> usize {
        let hash = (pair ^ pair >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[at].pair;
            if slot == EMPTY || slot == pair {
                return at;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
}

/// Two ids as one number.
#[inline]
fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << BITS | u64::from(right)
}

#[cfg(test)]
mod tests {
    use super::{MOST_SYMBOLS, Merge, NO_RANK, Pairs, Rule};

    #[test]
    fn finds_each_pair_and_the_later_of_two() {
        let rule = |left, right| Rule {
            left,
            right,
            id: left * 1000 + right,
        };
        let mut rules: Vec<Rule> = (0..300)
            .flat_map(|a| (0..40).map(move |b| rule(a, b)))
            .collect();
        rules.push(Rule {
            left: 7,
            right: 7,
            id: 1,
        });
        let last = rules.len() as u32 - 1;
        let pairs = Pairs::new(&rules);
        for a in 0..300 {
            for b in 0..40 {
                let rank = pairs.rank(a, b);
                if (a, b) == (7, 7) {
                    assert_eq!((rank, pairs.id(rank)), (last, 1));
                    assert_eq!(pairs.merge(a, b), Merge { rank, id: 1 });
                } else {
                    let id = a * 1000 + b;
                    assert_eq!((rank, pairs.id(rank)), (a * 40 + b, id));
                    assert_eq!(pairs.merge(a, b), Merge { rank, id });
                }
            }
            assert_eq!(pairs.rank(a, 40), NO_RANK);
        }
        assert_eq!(pairs.rank(0, 0), 0);
        assert_eq!(pairs.rank(MOST_SYMBOLS - 1, MOST_SYMBOLS - 1), NO_RANK);
        assert_eq!(Pairs::new(&[]).rank(0, 0), NO_RANK);
    }
}
