//! A set of pairs of bytes, asked about many neighbours at a time.
//!
//! Where a token may begin and where a word may be taken apart are first asked of two neighbouring
//! bytes. One answer costs two loads; what costs more is a branch on each, since half of a text's
//! answers are hard to foresee. So 64 answers are made into one number, and only those that matter
//! are looked at.

/// See the module. 8 KB.
pub(super) struct BytePairs(Box<[[u64; 4]; 256]>);

impl BytePairs {
    /// So many pairs make a block, of one byte more.
    pub(super) const BLOCK: usize = 64;

    pub(super) fn new() -> Self {
        BytePairs(Box::new([[0; 4]; 256]))
    }

    pub(super) fn insert(&mut self, first: u8, second: u8) {
        self.0[usize::from(first)][usize::from(second) / 64] |= 1 << (second % 64);
    }

    /// All pairs that begin with a byte.
    pub(super) fn insert_all(&mut self, first: u8) {
        self.0[usize::from(first)] = [u64::MAX; 4];
    }

    #[inline]
    pub(super) fn contains(&self, first: u8, second: u8) -> bool {
        self.0[usize::from(first)][usize::from(second) / 64] >> (second % 64) & 1 == 1
    }

    /// How many bytes begin a pair.
    pub(super) fn firsts(&self) -> usize {
        self.0.iter().filter(|row| **row != [0; 4]).count()
    }

    /// A bit for each of the first [`Self::BLOCK`] neighbours: bit 0 says whether the first two bytes
    /// are a pair.
    #[inline]
    pub(super) fn mask(&self, bytes: &[u8]) -> u64 {
        let neighbours = bytes.windows(2).zip(0..u64::BITS);
        neighbours.fold(0, |mask, (pair, at)| {
            mask | u64::from(self.contains(pair[0], pair[1])) << at
        })
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::BytePairs;

    #[test]
    fn a_mask_has_the_answers_one_by_one() {
        let mut pairs = BytePairs::new();
        for n in 0..5000_u32 {
            let [first, second, ..] = n.wrapping_mul(0x9e37_79b9).to_le_bytes();
            pairs.insert(first, second);
        }
        pairs.insert_all(7);
        assert!(pairs.contains(7, 0) && pairs.contains(7, 255));
        let bytes: Vec<u8> = (0..200_u32)
            .map(|n| (n.wrapping_mul(0x85eb_ca6b) >> 24) as u8)
            .chain([7, 7, 9])
            .collect();
        for start in 0..bytes.len() {
            for length in 0..=(bytes.len() - start).min(70) {
                let block = &bytes[start..start + length];
                let mask = pairs.mask(block);
                for at in 0..64 {
                    let want = block
                        .get(at..at + 2)
                        .is_some_and(|pair| pairs.contains(pair[0], pair[1]));
                    assert_eq!(mask >> at & 1 == 1, want);
                }
            }
        }
    }
}
