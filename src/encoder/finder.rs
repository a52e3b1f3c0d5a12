//! Where the contents of added tokens stand in a text: leftmost first, of those that begin in one place
//! the longest.
//!
//! Few bytes begin a token, so most of a text is passed over by a filter that asks about the first bytes
//! only, and the automaton is asked where the filter stops. Which filter depends on the tokens: where
//! they begin in few ways, a vector search for their beginnings; else a table of their first two bytes
//! ([`BytePairs`]). Where their first byte is one of three, the automaton has a filter of its own.
//!
//! Cost: a fraction of a nanosecond a byte with the vector search, about one with the table.

use aho_corasick::packed::{self, Searcher};
use aho_corasick::{
    AhoCorasick, AhoCorasickKind, Anchored, BuildError, Input, Match, MatchKind, PatternID,
    StartKind,
};

use super::bytes::BytePairs;

/// See the module.
pub(crate) struct Finder {
    automaton: AhoCorasick,
    filter: Filter,
    /// By its byte, the place of a content of one byte.
    single: Box<[Option<PatternID>; 256]>,
    /// The first two bytes of the others.
    pairs: BytePairs,
}

/// What passes over places where no token begins. It may stop at others, never pass one over.
enum Filter {
    /// The automaton's own.
    Own,
    Beginnings(Searcher),
    /// The pairs of bytes that they begin with; one of a single byte begins with any pair that does.
    Pairs(BytePairs),
}

impl Finder {
    /// A search for these contents, of which none is empty; those found are named by their place here.
    ///
    /// # Errors
    /// If they are too many for an automaton.
    pub(crate) fn new(contents: &[&str]) -> Result<Self, BuildError> {
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .start_kind(StartKind::Both)
            .build(contents)?;
        let mut single = Box::new([None; 256]);
        let mut pairs = BytePairs::new();
        for (content, place) in contents.iter().zip(0..) {
            match *content.as_bytes() {
                [] => {}
                [only] => single[usize::from(only)] = Some(PatternID::must(place)),
                [first, second, ..] => pairs.insert(first, second),
            }
        }
        Ok(Finder {
            automaton,
            filter: Filter::of(contents),
            single,
            pairs,
        })
    }

    /// The longest one in `text[..to]` that begins at `at`.
    #[inline]
    fn find_at(&self, text: &str, at: usize, to: usize) -> Option<Match> {
        let bytes = &text.as_bytes()[..to];
        // Where a line feed is a token, most of them stand alone.
        let may_be_longer = |second| self.pairs.contains(bytes[at], second);
        if bytes.get(at + 1).copied().is_some_and(may_be_longer) {
            let input = Input::new(text).range(at..to).anchored(Anchored::Yes);
            return self.automaton.find(input);
        }
        self.single[usize::from(bytes[at])].map(|place| Match::new(place, at..at + 1))
    }

    /// The first one in `text[from..to]`.
    #[inline]
    pub(crate) fn find(&self, text: &str, from: usize, to: usize) -> Option<Match> {
        let here = |at| self.find_at(text, at, to);
        match &self.filter {
            Filter::Own => self.automaton.find(Input::new(text).range(from..to)),
            Filter::Beginnings(searcher) => {
                let mut from = from;
                loop {
                    let span = (from..to).into();
                    let at = searcher.find_in(text.as_bytes(), span)?.start();
                    if let Some(found) = here(at) {
                        return Some(found);
                    }
                    from = at + 1;
                }
            }
            Filter::Pairs(pairs) => {
                let bytes = &text.as_bytes()[..to];
                let last = to.checked_sub(1).filter(|last| from <= *last)?;
                let mut from = from;
                while from < last {
                    let mut mask = pairs.mask(&bytes[from..]);
                    while mask != 0 {
                        let found = here(from + mask.trailing_zeros() as usize);
                        if found.is_some() {
                            return found;
                        }
                        mask &= mask - 1;
                    }
                    from += BytePairs::BLOCK;
                }
                // The last byte may be a token of one byte, which any second byte stands for.
                pairs.contains(bytes[last], 0).then(|| here(last)).flatten()
            }
        }
    }
}

impl Filter {
    fn of(contents: &[&str]) -> Self {
        /// With so many first bytes the automaton has a filter.
        const FILTERED: usize = 3;
        /// So long beginnings are told apart, if they are not too many.
        const LONGEST: usize = 3;
        let mut pairs = BytePairs::new();
        for content in contents {
            match *content.as_bytes() {
                [] => {}
                [only] => pairs.insert_all(only),
                [first, second, ..] => pairs.insert(first, second),
            }
        }
        if pairs.firsts() <= FILTERED {
            return Filter::Own;
        }
        for length in (1..=LONGEST).rev() {
            let mut beginnings: Vec<&[u8]> = contents
                .iter()
                .map(|content| &content.as_bytes()[..content.len().min(length)])
                .collect();
            beginnings.sort_unstable();
            beginnings.dedup();
            let mut builder = packed::Config::new().builder();
            // None if they are too many, or if the processor lacks what it takes.
            if let Some(searcher) = builder.extend(beginnings).build() {
                return Filter::Beginnings(searcher);
            }
        }
        Filter::Pairs(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::{Filter, Finder};

    #[test]
    fn all_filters_find_the_same() {
        let few = ["<a>", "<a><b>", "\n\n", "\n\n\n", "é!", "\n\n\n\n\n"];
        let more = [&few[..], &["[x]", "{}", "~~", "("]].concat();
        // Too many beginnings for a vector search.
        let others: Vec<String> = (b'A'..=b'Z')
            .flat_map(|a| (b'A'..=b'C').map(move |b| [a, b, b'!'].map(char::from).iter().collect()))
            .collect();
        let most: Vec<&str> = others
            .iter()
            .map(String::as_str)
            .chain(more.clone())
            .collect();
        let finders = [&few[..], &more, &most].map(|contents| Finder::new(contents).expect("few"));
        assert!(matches!(finders[0].filter, Filter::Own));
        assert!(matches!(finders[2].filter, Filter::Pairs(_)));
        let found = |finder: &Finder, contents: &[&str], text: &str, from, to| {
            let found = finder.find(text, from, to)?;
            Some((
                contents[found.pattern().as_usize()].to_owned(),
                found.range(),
            ))
        };
        let unit = ["<a>", "<b>", "<", "\n", "é", "!", "a", "é!"];
        for number in 0..unit.len().pow(4) {
            let part = |place: u32| unit[number / unit.len().pow(place) % unit.len()];
            let mut text: String = (0..4).map(part).collect();
            if number % 3 == 0 {
                // Long enough for vectors, and in another block.
                text = " ".repeat(number % 90) + &text + &"x".repeat(number % 40);
            }
            let ends: Vec<usize> = (0..=text.len())
                .filter(|&at| text.is_char_boundary(at))
                .collect();
            let (from, to) = (ends[number % 2], ends[ends.len() - 1 - number % 3]);
            if from > to {
                continue;
            }
            let want = few
                .iter()
                .flat_map(|content| {
                    let starts = text[from..to].match_indices(content);
                    starts.map(|(at, _)| (from + at, content.len()))
                })
                .min_by_key(|&(at, length)| (at, usize::MAX - length))
                .map(|(at, length)| (text[at..at + length].to_owned(), at..at + length));
            for (finder, contents) in finders.iter().zip([&few[..], &more, &most]) {
                assert_eq!(
                    found(finder, contents, &text, from, to),
                    want,
                    "{text:?} {from} {to}"
                );
            }
        }
    }

    #[test]
    fn a_token_of_one_byte_is_found_at_the_end() {
        let contents = ["(", "[x]", "{}", "~~", "\n\n"];
        let finder = Finder::new(&contents).expect("few");
        for text in ["(", "a(", "[x(", "~("] {
            let found = finder.find(text, 0, text.len()).expect("it");
            assert_eq!(found.range(), text.len() - 1..text.len());
            assert!(finder.find(text, 0, text.len() - 1).is_none());
        }
        assert!(finder.find("", 0, 0).is_none());
    }
}
