//! Which two tokens merge, and into what.
//!
//! Most questions are answered "they do not", so that answer is the cheapest: a hash table with open
//! addressing and four bytes a slot, small enough for a cache close to the core. A slot holds a rank
//! and a few bits of the hash; only where those bits agree are the pair itself, kept by rank, looked
//! at.
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

/// All merges by their pair of ids.
pub(super) struct Pairs {
    /// Rank plus one in the low bits, bits of the hash above; 0 if empty.
    slots: Box<[u32]>,
    shift: u32,
    /// By rank.
    rules: Box<[Rule]>,
}

const RANK_BITS: u32 = 21;
/// A vocabulary with this many merges or more does not fit.
pub(super) const MOST_MERGES: usize = (1 << RANK_BITS) - 1;
const RANK: u32 = (1 << RANK_BITS) - 1;

impl Pairs {
    /// The table of fewer than [`MOST_MERGES`] rules by increasing rank; a pair that comes twice
    /// counts the second time, as in the `tokenizers` crate.
    pub(super) fn new(rules: Vec<Rule>) -> Self {
        let capacity = (rules.len() * 2).next_power_of_two().max(16);
        let mut pairs = Pairs {
            slots: vec![0; capacity].into(),
            shift: u64::BITS - capacity.trailing_zeros(),
            rules: rules.into(),
        };
        for rank in 0..pairs.rules.len() {
            let Rule { left, right, .. } = pairs.rules[rank];
            let (at, tag) = pairs.find(left, right);
            pairs.slots[at] = tag | (rank as u32 + 1);
        }
        pairs
    }

    /// The rank of a pair, or [`NO_RANK`].
    #[inline]
    pub(super) fn rank(&self, left: u32, right: u32) -> u32 {
        let (at, _) = self.find(left, right);
        // An empty slot is 0, and the rank below it is NO_RANK.
        (self.slots[at] & RANK).wrapping_sub(1)
    }

    /// What the pair of a rank becomes.
    #[inline]
    pub(super) fn id(&self, rank: u32) -> u32 {
        self.rules[rank as usize].id
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.slots) + size_of_val(&*self.rules)
    }

    /// The slot of a pair, or the empty one where it would be, and its bits of the hash.
    #[inline]
    fn find(&self, left: u32, right: u32) -> (usize, u32) {
        let key = u64::from(left) << 32 | u64::from(right);
        let hash = (key ^ key >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let tag = (hash as u32) & !RANK;
        let mut at = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return (at, tag);
            }
            if slot & !RANK == tag {
                let rule = &self.rules[(slot & RANK) as usize - 1];
                if rule.left == left && rule.right == right {
                    return (at, tag);
                }
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NO_RANK, Pairs, Rule};

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
        let pairs = Pairs::new(rules);
        for a in 0..300 {
            for b in 0..40 {
                let rank = pairs.rank(a, b);
                if (a, b) == (7, 7) {
                    assert_eq!((rank, pairs.id(rank)), (last, 1));
                } else {
                    assert_eq!((rank, pairs.id(rank)), (a * 40 + b, a * 1000 + b));
                }
            }
            assert_eq!(pairs.rank(a, 40), NO_RANK);
        }
        assert_eq!(pairs.rank(u32::MAX, 0), NO_RANK);
    }
}
