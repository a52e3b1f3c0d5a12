//! Words whose ids are known: the tokens of the vocabulary, and words met before.
//!
//! Most words of a text are tokens themselves. [`Tokens`] finds them with one look at one slot, where
//! keys of up to 12 bytes are compared without leaving it. [`Memory`] remembers the ids of
//! the others. It is a cache of fixed size, owned by one call at a time: no lock, no growth. Keys
//! are always compared, so a collision costs time only; whoever chooses words to collide gains a
//! few steps, as searches there are bounded.

/// A word packed for hashing and comparing.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    /// The word itself up to 12 bytes: with the length no two words have the same.
    head: u64,
    tail: u32,
}

const LONGEST_PACKED: usize = 12;

#[inline]
fn quad(bytes: &[u8], at: usize) -> u32 {
    match bytes.get(at..at + 4) {
        Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
        _ => 0,
    }
}

/// Packs a word of 1 to [`LONGEST_PACKED`] bytes; with its length, no two words have the same key.
#[inline]
fn pack(word: &[u8]) -> Key {
    let n = word.len();
    match n {
        0..=3 => {
            let byte = |at: usize| u64::from(word.get(at).copied().unwrap_or_default());
            Key {
                head: byte(0) | byte(1) << 8 | byte(2) << 16,
                tail: 0,
            }
        }
        4..=8 => Key {
            head: u64::from(quad(word, 0)) | u64::from(quad(word, n - 4)) << 32,
            tail: 0,
        },
        _ => Key {
            head: u64::from(quad(word, 0)) | u64::from(quad(word, 4)) << 32,
            tail: quad(word, n - 4),
        },
    }
}

/// Folds two words of state into one.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const OTHER: u64 = 0xe703_7ed1_a0b4_28db;

#[inline]
fn hash_packed(key: Key, length: usize) -> u64 {
    fold(
        key.head ^ SEED,
        (u64::from(key.tail) << 8 | length as u64) ^ OTHER,
    )
}

#[inline]
fn hash_long(word: &[u8]) -> u64 {
    let mut state = word.len() as u64 ^ SEED;
    let (blocks, rest) = word.as_chunks::<8>();
    for block in blocks {
        state = fold(state ^ u64::from_le_bytes(*block), OTHER);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    fold(state ^ u64::from_le_bytes(last), SEED)
}

#[derive(Clone, Copy)]
struct Slot {
    key: Key,
    /// Length of the word above, id below; 0 if empty. Long words hold an index into `long`.
    value: u32,
}

const ID_BITS: u32 = 24;
/// Ids from here on do not fit the table.
pub(super) const MOST_IDS: u32 = 1 << ID_BITS;
/// Length of words that are not packed.
const LONG: u32 = 255;

/// The words that are one token.
pub(super) struct Tokens {
    slots: Box<[Slot]>,
    shift: u32,
    long: Vec<(Box<[u8]>, u32)>,
}

impl Tokens {
    /// A table of words and ids below [`MOST_IDS`]; words are distinct and not empty.
    pub(super) fn new(words: Vec<(Box<[u8]>, u32)>) -> Self {
        let capacity = (words.len() * 2).next_power_of_two().max(16);
        let empty = Slot {
            key: Key { head: 0, tail: 0 },
            value: 0,
        };
        let mut tokens = Tokens {
            slots: vec![empty; capacity].into(),
            shift: u64::BITS - capacity.trailing_zeros(),
            long: Vec::new(),
        };
        for (word, id) in words {
            let (hash, slot) = if word.len() <= LONGEST_PACKED {
                let key = pack(&word);
                let value = (word.len() as u32) << ID_BITS | id;
                (hash_packed(key, word.len()), Slot { key, value })
            } else {
                let hash = hash_long(&word);
                let value = LONG << ID_BITS | tokens.long.len() as u32;
                tokens.long.push((word, id));
                let key = Key {
                    head: hash,
                    tail: 0,
                };
                (hash, Slot { key, value })
            };
            let mut at = tokens.first(hash);
            while tokens.slots[at].value != 0 {
                at = tokens.after(at);
            }
            tokens.slots[at] = slot;
        }
        tokens
    }

    /// The id of a word that is one token.
    #[inline]
    pub(super) fn get(&self, word: &[u8]) -> Option<u32> {
        let n = word.len();
        if n > LONGEST_PACKED {
            return self.get_long(word);
        }
        let key = pack(word);
        let mut at = self.first(hash_packed(key, n));
        loop {
            let slot = &self.slots[at];
            if slot.value == 0 {
                return None;
            }
            if slot.key == key && slot.value >> ID_BITS == n as u32 {
                return Some(slot.value & (MOST_IDS - 1));
            }
            at = self.after(at);
        }
    }

    fn get_long(&self, word: &[u8]) -> Option<u32> {
        let hash = hash_long(word);
        let mut at = self.first(hash);
        loop {
            let slot = &self.slots[at];
            if slot.value == 0 {
                return None;
            }
            if slot.key.head == hash && slot.value >> ID_BITS == LONG {
                let (known, id) = &self.long[(slot.value & (MOST_IDS - 1)) as usize];
                if **known == *word {
                    return Some(*id);
                }
            }
            at = self.after(at);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let long = self.long.iter().map(|(word, _)| word.len());
        size_of_val(&*self.slots) + size_of_val(&*self.long) + long.sum::<usize>()
    }

    #[inline]
    fn first(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }
}

/// Words up to this length are remembered: longer ones are rarely met again.
const LONGEST_REMEMBERED: usize = 64;
const SLOTS: usize = 1 << 14;
const MOST_ENTRIES: usize = SLOTS / 2;
const LONGEST_SEARCH: usize = 8;

#[derive(Clone, Copy, Default)]
struct Entry {
    hash: u64,
    word: u32,
    ids: u32,
    word_length: u16,
    ids_length: u16,
}

/// Ids of words met before. Bounded: when it is full it starts over.
pub(super) struct Memory {
    entries: Vec<Entry>,
    words: Vec<u8>,
    ids: Vec<u32>,
    used: usize,
}

impl Memory {
    pub(super) fn new() -> Self {
        Memory {
            entries: vec![Entry::default(); SLOTS],
            words: Vec::new(),
            ids: Vec::new(),
            used: 0,
        }
    }

    /// The ids of a word, or where to remember them.
    #[inline]
    pub(super) fn get(&self, word: &[u8]) -> Result<&[u32], Vacancy> {
        if word.len() > LONGEST_REMEMBERED {
            return Err(Vacancy(None));
        }
        let hash = hash_long(word) | 1;
        let mut at = (hash >> 32) as usize % SLOTS;
        for _ in 0..LONGEST_SEARCH {
            let entry = &self.entries[at];
            if entry.hash == 0 {
                return Err(Vacancy(Some((at, hash))));
            }
            let start = entry.word as usize;
            if entry.hash == hash
                && self.words[start..start + usize::from(entry.word_length)] == *word
            {
                let start = entry.ids as usize;
                return Ok(&self.ids[start..start + usize::from(entry.ids_length)]);
            }
            at = (at + 1) % SLOTS;
        }
        Err(Vacancy(None))
    }

    /// Remembers the ids of the word that had this vacancy.
    pub(super) fn put(&mut self, vacancy: Vacancy, word: &[u8], ids: &[u32]) {
        let Vacancy(Some((at, hash))) = vacancy else {
            return;
        };
        if self.used == MOST_ENTRIES {
            self.entries.fill(Entry::default());
            self.words.clear();
            self.ids.clear();
            self.used = 0;
        }
        // A word of at most 64 bytes has at most 64 ids, so the offsets stay far below 2^32.
        self.entries[at] = Entry {
            hash,
            word: self.words.len() as u32,
            ids: self.ids.len() as u32,
            word_length: word.len() as u16,
            ids_length: ids.len() as u16,
        };
        self.words.extend_from_slice(word);
        self.ids.extend_from_slice(ids);
        self.used += 1;
    }
}

/// A place in a [`Memory`], if there is one for the word.
#[derive(Clone, Copy)]
pub(super) struct Vacancy(Option<(usize, u64)>);

#[cfg(test)]
mod tests {
    use super::{Memory, Tokens};

    fn word(n: u32) -> Box<[u8]> {
        let text = format!("{n:b}");
        let bytes = text.as_bytes();
        bytes[bytes.len().saturating_sub(1 + n as usize % 20)..].into()
    }

    #[test]
    fn finds_each_token_and_nothing_else() {
        let mut words: Vec<_> = (0..3000)
            .map(word)
            .chain([[0].into(), [0, 0].into()])
            .collect();
        words.sort();
        words.dedup();
        let tokens = Tokens::new(words.iter().cloned().zip(5..).collect());
        for (word, id) in words.iter().zip(5..) {
            assert_eq!(tokens.get(word), Some(id));
            for other in [[word, &b"\0"[..]].concat(), [b"x", &**word].concat()] {
                assert_eq!(
                    tokens.get(&other),
                    None.or(words
                        .binary_search(&other.clone().into())
                        .ok()
                        .map(|i| i as u32 + 5))
                );
            }
        }
        assert_eq!(tokens.get(&[0, 0, 0]), None);
    }

    #[test]
    fn remembers_until_it_is_full() {
        let mut memory = Memory::new();
        let mut found = 0;
        for n in 0..40_000_u32 {
            let word = n.to_le_bytes();
            match memory.get(&word) {
                Ok(ids) => panic!("{ids:?}"),
                Err(vacancy) => memory.put(vacancy, &word, &[n, n + 1]),
            }
            if let Ok(ids) = memory.get(&word) {
                assert_eq!(ids, [n, n + 1]);
                found += 1;
            }
        }
        assert!(found > 39_000, "{found}");
        assert!(memory.words.len() <= 4 * super::MOST_ENTRIES);
        assert!(memory.get(&[1; 100]).is_err());
    }
}
