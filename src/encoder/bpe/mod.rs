//! Byte-pair encoding of one word.
//!
//! The rule: a word starts as its smallest symbols; again and again the pair of neighbours with the
//! lowest rank is joined, the leftmost of equals, until no pair has one. That rule, and nothing else,
//! is run here; most words never get that far:
//!
//! - A word met lately is remembered.
//! - A word that *is* a token, and to which the rule gives just that token, is looked up. For which
//!   tokens that holds is found when the vocabulary is loaded, by running the rule on each.
//!
//! *Symbols* are bytes (byte-level vocabularies spell each byte as a character), or characters with
//! a token per byte for those the vocabulary lacks (`byte_fallback`). Which vocabularies are
//! understood is decided in [`model`]; others are refused. Words that are long or not ASCII are taken
//! apart first, where no merge joins ([`joins`]).
//!
//! Cost: a few nanoseconds for a known word; for other words O(n²) in symbols up to [`SHORT`], beyond
//! that O(n log n) by a heap.

mod characters;
mod joins;
mod model;
mod pairs;
mod runs;
mod words;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;

use characters::Characters;
use joins::Joins;
pub(super) use model::Model;
use pairs::{Merge, NO_RANK, Pairs, Rule};
use runs::Runs;
use words::{FewIds, Key, Memory, Recent, Tokens};

/// A vocabulary with its merges.
pub(super) struct Bpe {
    symbols: Symbols,
    ascii: Box<Ascii>,
    pairs: Pairs,
    tokens: Tokens,
    joins: Joins,
    runs: Runs,
    /// A word that is a token is that token, whatever the rule says.
    whole: bool,
}

/// What a word starts as.
enum Symbols {
    /// One token per byte.
    Bytes(Box<[u32; 256]>),
    /// One token per character, or one per byte of a character that has none.
    Characters {
        tokens: Characters,
        bytes: Box<[u32; 256]>,
    },
}

/// What words of ASCII characters start as, each of which is one symbol in every vocabulary.
struct Ascii {
    symbols: [u32; ASCII],
    pairs: [Merge; ASCII * ASCII],
}

const ASCII: usize = 128;

/// Memory and work space of one call at a time.
pub(super) struct Scratch {
    recent: Recent,
    memory: Memory,
    /// Words that were put off, and parts of one word.
    words: Vec<Asked>,
    asked: Vec<Asked>,
    short: Box<Short>,
    ids: Vec<u32>,
    ranks: Vec<u32>,
    links: Vec<Link>,
    heap: BinaryHeap<Reverse<(u32, u32)>>,
}

/// Texts up to this length can be given, with a space more in front.
pub(super) const LONGEST: usize = u32::MAX as usize - 1;

/// A word, or a part of one, that is about to be looked up. Small, as each is written and read again.
#[derive(Clone, Copy)]
struct Asked {
    /// [`Key::NONE`] if it is too long for one.
    key: Key,
    hash: u64,
    start: u32,
    end: u32,
}

impl Asked {
    /// The word `text[start..end]`.
    #[inline]
    fn of(text: &str, start: usize, end: usize) -> Self {
        let key = Key::of(text.as_bytes(), start, end);
        // Texts are not longer than `LONGEST`.
        let (start, end) = (start as u32, end as u32);
        let hash = key.hash();
        Asked {
            key,
            hash,
            start,
            end,
        }
    }

    #[inline]
    fn word(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }
}

/// So many are asked for before the first is looked up: memory far away is waited for once.
const AHEAD: usize = 64;

/// So many words of a vocabulary, whose first ones are those that are met most, fill half of [`Recent`].
const FAMILIAR: usize = 1 << 14;

/// Up to so many symbols the lowest rank is found by looking at all of them.
const SHORT: usize = 64;

/// The symbols of a short word, in place: what was joined to the one before is skipped.
struct Short {
    symbols: [u32; SHORT],
    /// A bit for each symbol that merges with the next one.
    merging: u64,
    /// For each of those, the rank and its own place, in one number: the lowest is the one to merge, the
    /// leftmost of equals.
    merges: [u32; SHORT],
    /// For each of those, what becomes of the two.
    ids: [u32; SHORT],
}

const PLACE_BITS: u32 = SHORT.trailing_zeros();

/// Neighbours of a symbol in a long word.
#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
}

/// No neighbour, or a symbol that was joined to the one before.
const NONE: u32 = u32::MAX;
const GONE: u32 = u32::MAX - 1;

impl Scratch {
    fn new() -> Self {
        Scratch {
            recent: Recent::new(),
            memory: Memory::new(),
            words: Vec::with_capacity(AHEAD),
            asked: Vec::with_capacity(AHEAD),
            short: Box::new(Short {
                symbols: [0; SHORT],
                merging: 0,
                merges: [0; SHORT],
                ids: [0; SHORT],
            }),
            ids: Vec::new(),
            ranks: Vec::new(),
            links: Vec::new(),
            heap: BinaryHeap::new(),
        }
    }

    /// Gives back what an unusually long word took.
    pub(super) fn trim(&mut self) {
        const KEPT: usize = 1 << 16;
        if self.ids.capacity() > KEPT {
            self.ids = Vec::new();
            self.ranks = Vec::new();
            self.links = Vec::new();
            self.heap = BinaryHeap::new();
        }
    }
}

impl Short {
    /// Takes up to [`SHORT`] bytes of ASCII.
    fn start_ascii(&mut self, word: &[u8], ascii: &Ascii) {
        self.merging = 0;
        for (symbol, byte) in self.symbols.iter_mut().zip(word) {
            *symbol = ascii.symbols[usize::from(*byte) % ASCII];
        }
        for (place, pair) in word.windows(2).enumerate() {
            let [a, b] = [pair[0], pair[1]].map(|byte| usize::from(byte) % ASCII);
            self.set(place, ascii.pairs[a * ASCII + b]);
        }
    }

    /// Takes up to [`SHORT`] symbols.
    fn start(&mut self, symbols: &[u32], pairs: &Pairs) {
        self.merging = 0;
        self.symbols[..symbols.len()].copy_from_slice(symbols);
        for (place, pair) in symbols.windows(2).enumerate() {
            self.set(place, pairs.merge(pair[0], pair[1]));
        }
    }

    /// Notes how the symbol at a place merges with the next one.
    #[inline]
    fn set(&mut self, place: usize, merge: Merge) {
        let place = place % SHORT;
        let merges = u64::from(merge.rank != NO_RANK);
        self.merging = self.merging & !(1 << place) | merges << place;
        // Ranks have at most 21 bits.
        self.merges[place] = merge.rank << PLACE_BITS | place as u32;
        self.ids[place] = merge.id;
    }

    /// The symbol to merge with the next one: that of the lowest rank, the leftmost of equals. One by one,
    /// as they are read again right after they are written, which hinders wider reads.
    #[inline]
    fn first_to_merge(&self) -> Option<usize> {
        let mut left = self.merging;
        let mut lowest = u32::MAX;
        while left != 0 {
            lowest = lowest.min(self.merges[left.trailing_zeros() as usize % SHORT]);
            left &= left - 1;
        }
        (self.merging != 0).then_some(lowest as usize % SHORT)
    }
}

impl Bpe {
    /// Whether a word that is a token is that token, whatever the rule says.
    pub(super) fn takes_whole_words(&self) -> bool {
        self.whole
    }

    /// Whether no merge joins these two where they stand side by side.
    pub(super) fn are_apart(&self, left: char, right: char) -> bool {
        self.joins.are_apart(left, right)
    }

    /// Words are given as they are, the model sees their bytes. With `whole`, a word that is a token is
    /// that token, whatever the rule says.
    fn of_bytes(
        bytes: Box<[u32; 256]>,
        rules: Vec<Rule>,
        joins: Joins,
        tokens: Vec<(&str, u32)>,
        whole: bool,
    ) -> Self {
        Self::of(Symbols::Bytes(bytes), rules, joins, tokens, whole)
    }

    /// Words are given as characters.
    fn of_characters(
        tokens: Characters,
        bytes: Box<[u32; 256]>,
        rules: Vec<Rule>,
        joins: Joins,
        words: Vec<(&str, u32)>,
    ) -> Self {
        let symbols = Symbols::Characters { tokens, bytes };
        Self::of(symbols, rules, joins, words, false)
    }

    fn of(
        symbols: Symbols,
        rules: Vec<Rule>,
        joins: Joins,
        tokens: Vec<(&str, u32)>,
        whole: bool,
    ) -> Self {
        let pairs = Pairs::new(&rules);
        let mut ascii = Box::new(Ascii {
            symbols: [0; ASCII],
            pairs: [pairs.merge(NO_RANK, NO_RANK); ASCII * ASCII],
        });
        for (symbol, byte) in ascii.symbols.iter_mut().zip(0_u8..) {
            *symbol = match &symbols {
                Symbols::Bytes(bytes) => bytes[usize::from(byte)],
                Symbols::Characters { tokens, bytes } => {
                    tokens.get(byte.into()).unwrap_or(bytes[usize::from(byte)])
                }
            };
        }
        for (at, merge) in ascii.pairs.iter_mut().enumerate() {
            *merge = pairs.merge(ascii.symbols[at / ASCII], ascii.symbols[at % ASCII]);
        }
        let mut bpe = Bpe {
            symbols,
            ascii,
            pairs,
            tokens: Tokens::new(Vec::new()),
            joins,
            runs: Runs::default(),
            whole,
        };
        let mut scratch = Scratch::new();
        let bytes = tokens.iter().map(|(token, id)| (token.as_bytes(), *id));
        bpe.runs = Runs::of(bytes, &rules, |length| {
            bpe.by_rule(&" ".repeat(length), &mut scratch)
                .last()
                .copied()
        });
        let closed = tokens
            .into_iter()
            .filter(|(word, id)| whole || bpe.by_rule(word, &mut scratch) == [*id])
            .map(|(word, id)| (word.as_bytes(), id))
            .collect();
        bpe.tokens = Tokens::new(closed);
        bpe
    }

    /// Work space that knows the first words of the vocabulary: the first text should not take several
    /// times as long as the next.
    pub(super) fn scratch(&self) -> Scratch {
        let mut scratch = Scratch::new();
        // What comes later stays longer.
        for (key, id) in self.tokens.first_words(FAMILIAR).rev() {
            if let Some(ids) = FewIds::of(&[id]) {
                scratch.recent.put(key, key.hash(), ids);
            }
        }
        scratch
    }

    /// A text of the first words of the vocabulary, and of some that it lacks: whoever encodes it has seen
    /// all tables.
    pub(super) fn familiar(&self) -> String {
        let words = self.tokens.first_words(FAMILIAR);
        let words: Vec<String> = words.filter_map(|(key, _)| key.text()).collect();
        let joined = words
            .chunks(8)
            .map(|words| words.concat().replace(' ', "") + " ");
        let joined: String = joined.collect();
        words.concat() + &joined
    }

    /// Bytes that the tables take.
    pub(super) fn bytes(&self) -> usize {
        let symbols = match &self.symbols {
            Symbols::Bytes(bytes) => size_of_val(&**bytes),
            Symbols::Characters { tokens, bytes } => size_of_val(&**bytes) + tokens.bytes(),
        };
        symbols
            + size_of_val(&*self.ascii)
            + self.pairs.bytes()
            + self.tokens.bytes()
            + self.joins.bytes()
    }

    /// Appends the ids of a text that is one word, taken apart.
    pub(super) fn encode_parts(&self, text: &str, scratch: &mut Scratch, out: &mut Vec<u32>) {
        self.parts(text, 0, text.len(), scratch, out);
    }

    /// Appends the ids of the word `text[start..end]`, which must not be empty, or asks for it and puts it
    /// off: all words of a text are given in order, and then [`finish`](Self::finish) is called.
    #[inline]
    pub(super) fn encode(
        &self,
        text: &str,
        start: usize,
        end: usize,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) {
        let word = Asked::of(text, start, end);
        scratch.recent.ask_ahead(word.hash);
        scratch.words.push(word);
        if scratch.words.len() == AHEAD {
            self.finish(text, scratch, out);
        }
    }

    /// Appends the ids of the words that were put off.
    pub(super) fn finish(&self, text: &str, scratch: &mut Scratch, out: &mut Vec<u32>) {
        let mut words = mem::take(&mut scratch.words);
        self.ask_ahead(&words, &scratch.recent);
        for word in words.drain(..) {
            match scratch.recent.get(word.key, word.hash) {
                Some(ids) => ids.append(out),
                None if word.key == Key::NONE => self.encode_long(text, word, scratch, out),
                None => self.encode_short(text, word, scratch, out),
            }
        }
        scratch.words = words;
    }

    /// Has memory fetched for those of up to [`AHEAD`] words that were not met lately.
    #[inline]
    fn ask_ahead(&self, words: &[Asked], recent: &Recent) {
        // A bit for each: a branch on each would be hard to foresee.
        let mut missed = 0_u64;
        for (at, word) in words.iter().enumerate() {
            missed |= u64::from(!recent.has(word.key, word.hash)) << at;
        }
        while missed != 0 {
            let word = words[missed.trailing_zeros() as usize % AHEAD];
            self.tokens.ask_ahead(word.hash);
            missed &= missed - 1;
        }
    }

    /// Appends the ids of a word that was not met lately.
    fn encode_short(&self, text: &str, asked: Asked, scratch: &mut Scratch, out: &mut Vec<u32>) {
        let before = out.len();
        let word = asked.word(text);
        match self.tokens.get(asked.key, asked.hash) {
            Some(id) => out.push(id),
            None if word.is_ascii() => out.extend_from_slice(self.by_rule(word, scratch)),
            None => self.parts(text, asked.start as usize, asked.end as usize, scratch, out),
        }
        if let Some(few) = FewIds::of(&out[before..]) {
            scratch.recent.put(asked.key, asked.hash, few);
        }
    }

    /// Appends the ids of a word without a key.
    fn encode_long(&self, text: &str, asked: Asked, scratch: &mut Scratch, out: &mut Vec<u32>) {
        let word = asked.word(text);
        match self.tokens.get_long(word.as_bytes()) {
            Some(id) => out.push(id),
            None if word.len() <= SHORT && word.is_ascii() => self.remembered(word, scratch, out),
            None => self.parts(text, asked.start as usize, asked.end as usize, scratch, out),
        }
    }

    /// Appends the ids of a word, part by part. A part is not a word: the rule alone says what it
    /// becomes.
    fn parts(
        &self,
        text: &str,
        start: usize,
        end: usize,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) {
        let mut asked = mem::take(&mut scratch.asked);
        self.joins.split(&text[start..end], |a, b| {
            let part = self.asked_part(text, start + a, start + b);
            scratch.recent.ask_ahead(part.hash);
            asked.push(part);
            if asked.len() == AHEAD {
                self.finish_parts(text, &mut asked, scratch, out);
            }
        });
        self.finish_parts(text, &mut asked, scratch, out);
        scratch.asked = asked;
    }

    /// Appends the ids of the parts that were asked for.
    fn finish_parts(
        &self,
        text: &str,
        asked: &mut Vec<Asked>,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) {
        self.ask_ahead(asked, &scratch.recent);
        for part in asked.drain(..) {
            self.part(text, part, scratch, out);
        }
    }

    /// Appends the ids of a part that was asked for.
    #[inline]
    fn part(&self, text: &str, part: Asked, scratch: &mut Scratch, out: &mut Vec<u32>) {
        if let Some(ids) = scratch.recent.get(part.key, part.hash) {
            return ids.append(out);
        }
        if part.key == Key::NONE {
            return self.unknown_part(text, part, scratch, out);
        }
        let before = out.len();
        match self.tokens.get(part.key, part.hash) {
            Some(id) => out.push(id),
            None => self.unknown_part(text, part, scratch, out),
        }
        if let Some(few) = FewIds::of(&out[before..]) {
            scratch.recent.put(part.key, part.hash, few);
        }
    }

    /// Appends the ids of a part that is too long to be looked up, or no token.
    fn unknown_part(&self, text: &str, part: Asked, scratch: &mut Scratch, out: &mut Vec<u32>) {
        let word = part.word(text);
        let run = self.runs.leading(word.as_bytes());
        if run > 0 {
            let (start, end) = (part.start as usize, part.end as usize);
            for (start, end) in [(start, start + run), (start + run, end)] {
                self.part(text, self.asked_part(text, start, end), scratch, out);
            }
        } else if part.key == Key::NONE {
            self.remembered(word, scratch, out);
        } else {
            out.extend_from_slice(self.by_rule(word, scratch));
        }
    }

    /// A part as it is asked for.
    #[inline]
    fn asked_part(&self, text: &str, start: usize, end: usize) -> Asked {
        let mut part = Asked::of(text, start, end);
        if self.whole {
            // Where a word that is a token needs no rule, a part that looks the same is another thing.
            part.key = part.key.of_part();
            part.hash = part.key.hash();
        }
        part
    }

    /// Appends the ids that the rule gives a word without a key.
    fn remembered(&self, word: &str, scratch: &mut Scratch, out: &mut Vec<u32>) {
        match scratch.memory.get(word.as_bytes()) {
            Ok(ids) => out.extend_from_slice(ids),
            Err(vacancy) => {
                let before = out.len();
                out.extend_from_slice(self.by_rule(word, scratch));
                scratch.memory.put(vacancy, word.as_bytes(), &out[before..]);
            }
        }
    }

    /// The ids that the rule gives a word.
    fn by_rule<'s>(&self, word: &str, scratch: &'s mut Scratch) -> &'s [u32] {
        scratch.ids.clear();
        if word.len() <= SHORT && word.is_ascii() {
            scratch.short.start_ascii(word.as_bytes(), &self.ascii);
            self.merge_short(&mut scratch.short, word.len(), &mut scratch.ids);
            return &scratch.ids;
        }
        self.start(word, &mut scratch.ids);
        match scratch.ids.len() {
            0 | 1 => {}
            count @ 2..=SHORT => {
                scratch.short.start(&scratch.ids, &self.pairs);
                scratch.ids.clear();
                self.merge_short(&mut scratch.short, count, &mut scratch.ids);
            }
            _ => self.merge_long(scratch),
        }
        &scratch.ids
    }

    /// The symbols that a word starts as.
    fn start(&self, word: &str, ids: &mut Vec<u32>) {
        match &self.symbols {
            Symbols::Bytes(bytes) => {
                ids.extend(word.bytes().map(|byte| bytes[usize::from(byte)]));
            }
            Symbols::Characters { tokens, bytes } => {
                for c in word.chars() {
                    if let Some(id) = tokens.get(c) {
                        ids.push(id);
                    } else {
                        let mut buffer = [0; 4];
                        let spelled = c.encode_utf8(&mut buffer).bytes();
                        ids.extend(spelled.map(|byte| bytes[usize::from(byte)]));
                    }
                }
            }
        }
    }

    /// Appends what becomes of the first `count` symbols.
    fn merge_short(&self, short: &mut Short, count: usize, ids: &mut Vec<u32>) {
        const PLACE: usize = SHORT - 1;
        // A bit for each symbol that is there.
        let mut there = u64::MAX >> (SHORT - count);
        while let Some(at) = short.first_to_merge() {
            let id = short.ids[at];
            short.symbols[at] = id;
            // The symbol behind is there, since the pair was.
            let behind = there & (u64::MAX << at << 1);
            let right = behind.trailing_zeros() as usize & PLACE;
            there &= !(1 << right);
            short.merging &= !(1 << right | 1 << at);
            let behind = behind & (behind - 1);
            if behind != 0 {
                let next = behind.trailing_zeros() as usize & PLACE;
                short.set(at, self.pairs.merge(id, short.symbols[next]));
            }
            let before = there & !(u64::MAX << at);
            if before != 0 {
                let previous = before.ilog2() as usize & PLACE;
                short.set(previous, self.pairs.merge(short.symbols[previous], id));
            }
        }
        while there != 0 {
            ids.push(short.symbols[there.trailing_zeros() as usize & PLACE]);
            there &= there - 1;
        }
    }

    /// The same for `ids`, with a heap of pairs by rank and place. A pair in the heap whose symbols
    /// have changed since is known by its rank, which is no longer that of its place.
    fn merge_long(&self, scratch: &mut Scratch) {
        let Scratch {
            ids,
            ranks,
            links,
            heap,
            ..
        } = scratch;
        let count = ids.len();
        ranks.clear();
        ranks.extend(ids.windows(2).map(|pair| self.pairs.rank(pair[0], pair[1])));
        ranks.push(NO_RANK);
        links.clear();
        links.extend((0..count).map(|i| Link {
            previous: if i == 0 { NONE } else { i as u32 - 1 },
            next: if i + 1 == count { NONE } else { i as u32 + 1 },
        }));
        heap.clear();
        heap.extend(
            ranks
                .iter()
                .zip(0..)
                .filter(|(rank, _)| **rank != NO_RANK)
                .map(|(rank, at)| Reverse((*rank, at))),
        );
        while let Some(Reverse((rank, place))) = heap.pop() {
            let at = place as usize;
            if ranks[at] != rank {
                continue;
            }
            let right = links[at].next as usize;
            ids[at] = self.pairs.id(rank);
            let after = links[right].next;
            links[at].next = after;
            links[right].next = GONE;
            ranks[right] = NO_RANK;
            ranks[at] = NO_RANK;
            if after != NONE {
                links[after as usize].previous = place;
                ranks[at] = self.pairs.rank(ids[at], ids[after as usize]);
            }
            let before = links[at].previous;
            if before != NONE {
                ranks[before as usize] = self.pairs.rank(ids[before as usize], ids[at]);
            }
            for changed in [place, before] {
                if changed != NONE && ranks[changed as usize] != NO_RANK {
                    heap.push(Reverse((ranks[changed as usize], changed)));
                }
            }
        }
        let mut index = 0;
        ids.retain(|_| {
            index += 1;
            links[index - 1].next != GONE
        });
    }
}
