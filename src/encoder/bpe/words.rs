//! Words whose ids are known: words just met, the tokens of the vocabulary, and words met before.
//!
//! Three tables, asked in this order, the smallest first:
//!
//! - [`Recent`]: words of up to 15 bytes with up to four ids, one cache line to look at. Most words of
//!   a text end here.
//! - [`Tokens`]: the words that are one token. Large, so that a new word costs a look at memory far
//!   away: four bytes there say "no", a key beside them "yes".
//! - [`Memory`]: the ids of longer words.
//!
//! The first and the last are caches of fixed size, owned by one call at a time: no lock, no growth.
//! Keys are always compared, so a collision costs time only; whoever chooses words to collide gains
//! a few steps, as searches there are bounded.

use prefetch_index::prefetch_index;

use super::pairs::MOST_SYMBOLS;

/// A word of 1 to 15 bytes and its length, as one number: no two words have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Key(u128);

const LONGEST_KEY: usize = 15;
const LENGTH_AT: u32 = 120;

/// By length, what a key takes of sixteen bytes, and the length in its place.
const KEYS: [[u128; 2]; LONGEST_KEY + 1] = {
    let mut keys = [[0; 2]; LONGEST_KEY + 1];
    let mut length = 0;
    while length <= LONGEST_KEY {
        keys[length] = [!(u128::MAX << (8 * length)), (length as u128) << LENGTH_AT];
        length += 1;
    }
    keys
};

impl Key {
    /// Of what has no key: no word and no part has this one.
    pub(super) const NONE: Key = Key(u128::MAX);

    /// The key of `text[start..end]`, if it is short enough, else [`Key::NONE`].
    #[inline]
    pub(super) fn of(text: &[u8], start: usize, end: usize) -> Key {
        let length = end - start;
        if length > LONGEST_KEY {
            return Key::NONE;
        }
        if let Some(block) = text[start..].first_chunk::<16>() {
            let [mask, length] = KEYS[length];
            Key(u128::from_le_bytes(*block) & mask | length)
        } else {
            let mut block = [0; 16];
            block[..length].copy_from_slice(&text[start..end]);
            Key(u128::from_le_bytes(block) | (length as u128) << LENGTH_AT)
        }
    }

    /// Another key, which no word has: for the same text as a part of a word.
    #[inline]
    pub(super) fn of_part(self) -> Key {
        Key(self.0 | 1 << 127)
    }

    /// The word of a key that is not that of a part.
    pub(super) fn text(self) -> Option<String> {
        let bytes = self.0.to_le_bytes();
        let word = bytes.get(..usize::from(bytes[LONGEST_KEY]))?;
        str::from_utf8(word).ok().map(str::to_owned)
    }

    #[inline]
    pub(super) fn hash(self) -> u64 {
        fold(self.0 as u64 ^ SEED, (self.0 >> 64) as u64 ^ OTHER)
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

const ID_BITS: u32 = 24;
const ID: u32 = (1 << ID_BITS) - 1;
// Ids are those of pairs as well.
const _: () = assert!(MOST_SYMBOLS <= ID);

/// The words that are one token.
pub(super) struct Tokens {
    /// Index of a token plus one in the low bits, bits of the hash above; 0 if empty.
    slots: Box<[u32]>,
    shift: u32,
    tokens: Vec<Token>,
    long: Vec<Box<[u8]>>,
}

struct Token {
    low: u64,
    /// With [`LONG`] in the upper byte, the place in `long` of a word that has no key; then `low` is
    /// its hash.
    high: u64,
    id: u32,
}

const LONG: u64 = 0xff << 56;

impl Tokens {
    /// A table of words and ids below [`MOST_SYMBOLS`], fewer than that. Of a word that comes twice, the first
    /// counts.
    pub(super) fn new(words: Vec<(&[u8], u32)>) -> Self {
        let capacity = (words.len() * 2).next_power_of_two().max(16);
        let mut tokens = Tokens {
            slots: vec![0; capacity].into(),
            shift: u64::BITS - capacity.trailing_zeros(),
            tokens: Vec::with_capacity(words.len()),
            long: Vec::new(),
        };
        for (word, id) in words {
            if tokens.get_word(word).is_some() {
                continue;
            }
            let key = Key::of(word, 0, word.len());
            let (hash, low, high) = if key == Key::NONE {
                let hash = hash_long(word);
                tokens.long.push(word.into());
                (hash, hash, LONG | (tokens.long.len() as u64 - 1))
            } else {
                (key.hash(), key.0 as u64, (key.0 >> 64) as u64)
            };
            let mut at = tokens.first(hash);
            while tokens.slots[at] != 0 {
                at = tokens.after(at);
            }
            tokens.tokens.push(Token { low, high, id });
            tokens.slots[at] = tag(hash) | tokens.tokens.len() as u32;
        }
        tokens
    }

    /// Has memory fetched for a word with this hash, without waiting for it.
    #[inline]
    pub(super) fn ask_ahead(&self, hash: u64) {
        prefetch_index(&self.slots, self.first(hash));
    }

    /// Those with a key among the words that were given first.
    pub(super) fn first_words(&self, most: usize) -> impl DoubleEndedIterator<Item = (Key, u32)> {
        let first = self.tokens.iter().take(most);
        first
            .filter(|token| token.high & LONG != LONG)
            .map(|token| {
                let key = u128::from(token.high) << 64 | u128::from(token.low);
                (Key(key), token.id)
            })
    }

    /// The id of a word that is one token, by its key and the hash of that.
    #[inline]
    pub(super) fn get(&self, key: Key, hash: u64) -> Option<u32> {
        let (low, high) = (key.0 as u64, (key.0 >> 64) as u64);
        self.find(hash, |token| token.low == low && token.high == high)
    }

    /// The same for any word.
    pub(super) fn get_word(&self, word: &[u8]) -> Option<u32> {
        match Key::of(word, 0, word.len()) {
            Key::NONE => self.get_long(word),
            key => self.get(key, key.hash()),
        }
    }

    /// Number of words.
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The same for a word that has no key.
    pub(super) fn get_long(&self, word: &[u8]) -> Option<u32> {
        let hash = hash_long(word);
        self.find(hash, |token| {
            token.low == hash
                && token.high & LONG == LONG
                && *self.long[(token.high & !LONG) as usize] == *word
        })
    }

    #[inline]
    fn find(&self, hash: u64, same: impl Fn(&Token) -> bool) -> Option<u32> {
        let mut at = self.first(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if slot & !ID == tag(hash) {
                let token = &self.tokens[(slot & ID) as usize - 1];
                if same(token) {
                    return Some(token.id);
                }
            }
            at = self.after(at);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let long = self.long.iter().map(|word| size_of_val(word) + word.len());
        size_of_val(&*self.slots) + size_of_val(&*self.tokens) + long.sum::<usize>()
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

/// The bits of a hash that a slot keeps.
#[inline]
fn tag(hash: u64) -> u32 {
    hash as u32 & !ID
}

/// Up to four ids, their number in the upper byte of the first.
#[derive(Clone, Copy, Default)]
pub(super) struct FewIds([u32; MOST_FEW]);

const MOST_FEW: usize = 4;

impl FewIds {
    #[inline]
    pub(super) fn of(ids: &[u32]) -> Option<Self> {
        let mut few = [0; MOST_FEW];
        few.get_mut(..ids.len())?.copy_from_slice(ids);
        few[0] |= (ids.len() as u32) << ID_BITS;
        Some(FewIds(few))
    }

    /// Appends the ids: all four are written, and what is too much is cut off.
    #[inline]
    pub(super) fn append(self, out: &mut Vec<u32>) {
        let FewIds([first, b, c, d]) = self;
        let length = out.len() + (first >> ID_BITS) as usize;
        out.extend_from_slice(&[first & ID, b, c, d]);
        out.truncate(length);
    }
}

/// Words met lately: two places for each, of which the older is given up.
pub(super) struct Recent(Vec<Line>);

/// Two places, in one line of a cache.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Line([(Key, FewIds); 2]);

const SETS_BITS: u32 = 14;

impl Recent {
    pub(super) fn new() -> Self {
        Recent(vec![Line::default(); 1 << SETS_BITS])
    }

    /// Has memory fetched for a word with this hash, without waiting for it.
    #[inline]
    pub(super) fn ask_ahead(&self, hash: u64) {
        prefetch_index(&self.0, (hash >> (u64::BITS - SETS_BITS)) as usize);
    }

    /// Whether a word is among them.
    #[inline]
    pub(super) fn has(&self, key: Key, hash: u64) -> bool {
        let Line([new, old]) = &self.0[(hash >> (u64::BITS - SETS_BITS)) as usize];
        (new.0 == key) | (old.0 == key)
    }

    #[inline]
    pub(super) fn get(&self, key: Key, hash: u64) -> Option<FewIds> {
        let Line(places) = &self.0[(hash >> (u64::BITS - SETS_BITS)) as usize];
        // Which of the two it is cannot be foreseen, so that is no branch.
        let (known, ids) = places[usize::from(places[0].0 != key)];
        (known == key).then_some(ids)
    }

    #[inline]
    pub(super) fn put(&mut self, key: Key, hash: u64, ids: FewIds) {
        let Line([new, old]) = &mut self.0[(hash >> (u64::BITS - SETS_BITS)) as usize];
        *old = *new;
        *new = (key, ids);
    }
}

/// Words up to this length are remembered: longer ones are rarely met again.
const LONGEST_REMEMBERED: usize = 64;
const SLOTS: usize = 1 << 13;
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
    use super::{FewIds, Key, Memory, Recent, Tokens};

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
        let tokens = Tokens::new(words.iter().map(|word| &**word).zip(5..).collect());
        for (word, id) in words.iter().zip(5..) {
            assert_eq!(tokens.get_word(word), Some(id));
            for other in [[word, &b"\0"[..]].concat(), [b"x", &**word].concat()] {
                assert_eq!(
                    tokens.get_word(&other),
                    None.or(words
                        .binary_search(&other.clone().into())
                        .ok()
                        .map(|i| i as u32 + 5))
                );
            }
        }
        assert_eq!(tokens.get_word(&[0, 0, 0]), None);
        let twice = Tokens::new(vec![(b"a", 1), (b"", 2), (b"a", 3)]);
        assert_eq!((twice.len(), twice.get_word(b"a")), (2, Some(1)));
        assert_eq!(twice.get_word(b""), Some(2));
    }

    #[test]
    fn a_key_depends_on_the_word_alone() {
        let text = b"0123456789abcdefghijklmnopqrstuvwxyz\0\0\0";
        for start in 0..text.len() {
            for end in start + 1..=text.len() {
                let word = &text[start..end];
                assert_eq!(Key::of(text, start, end), Key::of(word, 0, word.len()));
                assert_eq!(Key::of(text, start, end) == Key::NONE, word.len() > 15);
                let spelled = Key::of(text, start, end).text();
                assert!(spelled.is_none_or(|spelled| spelled.as_bytes() == word));
            }
        }
        assert_ne!(Key::of(b"\0", 0, 1), Key::of(b"\0\0", 0, 2));
    }

    #[test]
    fn the_latest_words_are_known() {
        let mut recent = Recent::new();
        for n in 0..40_000_u32 {
            let word = n.to_le_bytes();
            let key = Key::of(&word, 0, 4);
            assert!(recent.get(key, key.hash()).is_none());
            let ids: Vec<u32> = (0..1 + n % 4).map(|i| n + i).collect();
            recent.put(key, key.hash(), FewIds::of(&ids).expect("few"));
            let mut out = vec![9];
            let known = recent.get(key, key.hash()).expect("just met");
            known.append(&mut out);
            assert_eq!(out[1..], ids);
        }
        assert!(FewIds::of(&[1; 5]).is_none());
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
