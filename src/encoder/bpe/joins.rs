//! Where a word may be taken apart: between two characters that stand side by side in no result of a
//! merge.
//!
//! *Why that is exact.* Take a word and a place between its characters `a` and `c`. A merge over that
//! place makes a token that holds the place. On its left that token has all of `a` or, if it begins
//! inside of `a`, as tokens of bytes may, only its last bytes; on its right all of `c` or only its
//! first bytes. So if no result of a merge holds `a` next to `c`, none holds a last part next to a
//! first part of which one is not whole, then no merge reaches over the place, and each side becomes
//! what it would be alone.
//!
//! Both questions are asked coarsely, which errs to the safe side: for pairs of whole characters that
//! are not both ASCII, bits by their hash are kept, and for parts the bytes next to the place. A text
//! in CJK falls into parts of two characters or so, which are met again and again where the whole runs
//! never are; in vocabularies of characters (sentencepiece), a text falls into words.

use crate::encoder::bytes::BytePairs;

/// Pairs of neighbours in the results of merges.
pub(in crate::encoder) struct Joins {
    /// By the byte before a place and the one behind it: pairs of ASCII, and pairs of parts.
    bytes: BytePairs,
    /// A bit for the hash of each pair of whole characters.
    pairs: Box<[u64]>,
    shift: u32,
}

/// Bits for each pair: one in 32 that are no pair is taken for one.
const BITS_PER_PAIR: usize = 32;

impl Joins {
    /// The neighbours in these results, given as bytes.
    pub(super) fn new<'t>(results: impl Iterator<Item = &'t [u8]>) -> Self {
        let mut bytes = BytePairs::new();
        let mut pairs = Vec::new();
        for result in results {
            for (before, behind) in neighbours(result) {
                match (before, behind) {
                    (Part::Whole(a), Part::Whole(c)) if !(a.is_ascii() && c.is_ascii()) => {
                        pairs.push((a, c));
                    }
                    _ => bytes.insert(before.last(), behind.first()),
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let bits = (pairs.len() * BITS_PER_PAIR).next_power_of_two().max(64);
        let mut joins = Joins {
            bytes,
            pairs: vec![0; bits / 64].into(),
            shift: u64::BITS - bits.trailing_zeros(),
        };
        for (a, c) in pairs {
            let bit = joins.bit(a, c);
            joins.pairs[bit / 64] |= 1 << (bit % 64);
        }
        joins
    }

    /// Calls `part` with the start and end of each part of `text` that no merge reaches out of.
    #[inline]
    pub(in crate::encoder) fn split(&self, text: &str, mut part: impl FnMut(usize, usize)) {
        let bytes = text.as_bytes();
        let mut start = 0;
        let mut from = 0;
        while from + 1 < bytes.len() {
            let block = &bytes[from..bytes.len().min(from + BytePairs::BLOCK + 1)];
            let mut apart = if block.is_ascii() {
                !self.bytes.mask(block) & (u64::MAX >> (BytePairs::BLOCK + 1 - block.len()))
            } else {
                self.apart(text, from, block.len() - 1)
            };
            while apart != 0 {
                let place = from + 1 + apart.trailing_zeros() as usize;
                part(start, place);
                start = place;
                apart &= apart - 1;
            }
            from += BytePairs::BLOCK;
        }
        if start < bytes.len() {
            part(start, bytes.len());
        }
    }

    /// A bit for each of the `count` places behind `from` that no merge reaches over, bit 0 for the one
    /// at `from + 1`. Inside of a character there is no place.
    fn apart(&self, text: &str, from: usize, count: usize) -> u64 {
        let bytes = text.as_bytes();
        let Some(first) = (from + 1..=from + count).find(|&at| text.is_char_boundary(at)) else {
            return 0;
        };
        let mut before = text[..first].chars().next_back().unwrap_or_default();
        let mut apart = 0;
        for (offset, c) in text[first..].char_indices() {
            let at = first + offset;
            if at > from + count {
                break;
            }
            let joined = self.joined(bytes[at - 1], before, bytes[at], c);
            apart |= u64::from(!joined) << (at - from - 1);
            before = c;
        }
        apart
    }

    /// Whether no merge joins these two where they stand side by side.
    pub(super) fn are_apart(&self, left: char, right: char) -> bool {
        let [last, first] = [Part::Whole(left).last(), Part::Whole(right).first()];
        !self.joined(last, left, first, right)
    }

    /// Whether some merge may join `before`, which ends with the byte `last`, and `behind`, which
    /// begins with `first`.
    #[inline]
    fn joined(&self, last: u8, before: char, first: u8, behind: char) -> bool {
        if self.bytes.contains(last, first) {
            return true;
        }
        if last < 128 && first < 128 {
            return false;
        }
        let bit = self.bit(before, behind);
        self.pairs[bit / 64] >> (bit % 64) & 1 == 1
    }

    #[inline]
    fn bit(&self, before: char, behind: char) -> usize {
        let pair = u64::from(before) << 21 | u64::from(behind);
        (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.bytes() + size_of_val(&*self.pairs)
    }
}

/// A character in a token, or as much of it as is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole(char),
    /// The last bytes, at the start of a token, or the first, at its end: by the outer one.
    Some(u8),
}

impl Part {
    /// Its last byte.
    fn last(self) -> u8 {
        match self {
            Part::Whole(c) => {
                let mut buffer = [0; 4];
                let length = c.encode_utf8(&mut buffer).len();
                buffer[length - 1]
            }
            Part::Some(byte) => byte,
        }
    }

    /// Its first byte.
    fn first(self) -> u8 {
        match self {
            Part::Whole(c) => {
                let mut buffer = [0; 4];
                c.encode_utf8(&mut buffer);
                buffer[0]
            }
            Part::Some(byte) => byte,
        }
    }
}

/// The characters on both sides of each place between characters.
fn neighbours(token: &[u8]) -> impl Iterator<Item = (Part, Part)> {
    let is_start = |byte: &u8| byte & 0xc0 != 0x80;
    let head = token.iter().position(is_start).unwrap_or(token.len());
    let mut before = head.checked_sub(1).map(|last| Part::Some(token[last]));
    let mut rest = &token[head..];
    std::iter::from_fn(move || {
        loop {
            let (&first, inner) = rest.split_first()?;
            let length = 1 + inner.iter().position(is_start).unwrap_or(inner.len());
            let whole = str::from_utf8(&rest[..length]).ok();
            let behind = match whole.and_then(|whole| whole.chars().next()) {
                Some(c) => Part::Whole(c),
                // The first bytes of a character, at the end. (What is no text at all is no matter.)
                None => Part::Some(first),
            };
            rest = &rest[length..];
            if let Some(before) = before.replace(behind) {
                return Some((before, behind));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{Joins, Part, neighbours};

    fn parts(tokens: &[&[u8]], text: &str) -> Vec<String> {
        let mut parts = Vec::new();
        Joins::new(tokens.iter().copied()).split(text, |a, b| parts.push(text[a..b].to_owned()));
        parts
    }

    #[test]
    fn words_part_where_no_merge_joins() {
        let tokens = ["\u{2581}ab".as_bytes(), "bé".as_bytes()];
        let text = "\u{2581}ab\u{2581}aébbéaa";
        let expected = ["\u{2581}ab", "\u{2581}a", "é", "b", "bé", "a", "a"];
        assert_eq!(parts(&tokens, text), expected);
        assert_eq!(parts(&tokens, ""), [""; 0]);
    }

    #[test]
    fn long_texts_part_where_short_ones_do() {
        let joins = Joins::new(["ab", "a ", "é漢", "👩b"].map(str::as_bytes).into_iter());
        let characters = ['a', 'b', ' ', 'é', '漢', '👩'];
        let mut state = 5_u32;
        for length in 0..400 {
            let ascii = length % 2 * 3;
            let text: String = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    characters[(state >> 16) as usize % (6 - ascii)]
                })
                .collect();
            let mut want = Vec::new();
            let mut before = None;
            for (at, c) in text.char_indices() {
                if before.is_none_or(|before| joins.are_apart(before, c)) {
                    want.push(at);
                }
                before = Some(c);
            }
            let mut starts = Vec::new();
            let mut end = 0;
            joins.split(&text, |a, b| {
                assert_eq!(a, end);
                assert!(a < b);
                starts.push(a);
                end = b;
            });
            assert_eq!(end, text.len());
            assert_eq!(starts, want, "{text:?}");
        }
    }

    #[test]
    fn parts_of_characters_join_whatever_ends_and_begins_with_them() {
        let [a, c] = ["漢", "字"].map(str::as_bytes);
        assert_eq!(parts(&[], "漢字"), ["漢", "字"]);
        for token in [
            [a, c].concat(),
            [&a[2..], c].concat(),
            [&a[1..], c].concat(),
            [a, &c[..1]].concat(),
            [a, &c[..2]].concat(),
            [&a[1..], &c[..1]].concat(),
            [b"x", a, c, b"y"].concat(),
        ] {
            assert_eq!(parts(&[&token], "漢字"), ["漢字"], "{token:x?}");
            assert_eq!(parts(&[&token], "字漢"), ["字", "漢"], "{token:x?}");
        }
        for token in [a, &a[1..], &a[..2], &[c, a].concat()] {
            assert_eq!(parts(&[token], "漢字"), ["漢", "字"], "{token:x?}");
        }
    }

    #[test]
    fn every_place_between_characters_is_seen() {
        let token = "aé漢👩b".as_bytes();
        for start in 0..token.len() {
            for end in start..=token.len() {
                let token = &token[start..end];
                let places = (1..token.len()).filter(|&at| token[at] & 0xc0 != 0x80);
                let seen: Vec<_> = neighbours(token).collect();
                assert_eq!(seen.len(), places.clone().count());
                for ((before, behind), at) in seen.into_iter().zip(places) {
                    assert_eq!((before.last(), behind.first()), (token[at - 1], token[at]));
                    assert!(matches!(behind, Part::Whole(_)) || at + 4 > token.len());
                }
            }
        }
    }
}
