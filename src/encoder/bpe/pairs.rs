//! The merges of a BPE vocabulary: which two tokens join, in which order of preference, to what.
//!
//! A hash table with open addressing over pairs of ids, one cache line per question. It is read only
//! once built, so the longest run of occupied slots, which bounds every search, is fixed by the
//! vocabulary and not by the text.

/// What two tokens become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Merge {
    /// Lower ranks merge first.
    pub(super) rank: u32,
    /// The token they become.
    pub(super) id: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    left: u32,
    right: u32,
    merge: Merge,
}

/// Rank of an empty slot; vocabularies are far from that many merges.
pub(super) const NO_RANK: u32 = u32::MAX;

const EMPTY: Slot = Slot {
    left: 0,
    right: 0,
    merge: Merge {
        rank: NO_RANK,
        id: 0,
    },
};

/// All merges by their pair of ids.
pub(super) struct Pairs {
    slots: Box<[Slot]>,
    shift: u32,
}

impl Pairs {
    /// A table of `(left, right, merged)` by increasing rank; a pair that comes twice counts the
    /// second time, as in the `tokenizers` crate.
    pub(super) fn new(merges: &[(u32, u32, u32)]) -> Self {
        let capacity = (merges.len() * 2).next_power_of_two().max(16);
        let mut pairs = Pairs {
            slots: vec![EMPTY; capacity].into(),
            shift: u64::BITS - capacity.trailing_zeros(),
        };
        for (rank, &(left, right, id)) in (0..).zip(merges) {
            let at = pairs.find(left, right);
            pairs.slots[at] = Slot {
                left,
                right,
                merge: Merge { rank, id },
            };
        }
        pairs
    }

    /// What a pair becomes; of rank [`NO_RANK`] if it does not merge.
    #[inline]
    pub(super) fn get(&self, left: u32, right: u32) -> Merge {
        self.slots[self.find(left, right)].merge
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    #[inline]
    fn find(&self, left: u32, right: u32) -> usize {
        let key = u64::from(left) << 32 | u64::from(right);
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        loop {
            let slot = &self.slots[at];
            if slot.merge.rank == NO_RANK || (slot.left == left && slot.right == right) {
                return at;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
}
