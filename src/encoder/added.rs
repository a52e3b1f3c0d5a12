//! The scan for added tokens, as the `tokenizers` crate does it.
//!
//! Leftmost-longest over one text; then, match by match, `lstrip` moves the start left over
//! whitespace as far as the piece before, and `rstrip` the end right. What lies between is plain. The
//! arithmetic is the crate's own, with its consequences: a token inside whitespace that an `rstrip`
//! token swallowed makes text count twice (see `cuts`, *Tangled*).
//!
//! Few bytes begin a token, so most of a text is passed over by a filter: that of the automaton where
//! tokens begin with at most three different bytes, else a table of their first two ([`Begins`]).

use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored, Input, Match, MatchKind, StartKind};

use super::Refusal;
use super::bytes::BytePairs;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// An added token, by id.
    Token(u32),
    /// Text between, from byte to byte.
    Plain(usize, usize),
}

/// The added tokens of one scan.
pub(super) struct AddedTokens {
    automaton: AhoCorasick,
    begins: Option<Begins>,
    tokens: Vec<Token>,
}

/// The pairs of bytes that tokens begin with; a token of one byte begins with any pair that begins
/// with it.
struct Begins(BytePairs);

impl Begins {
    /// None if the automaton's own filter is better.
    fn of(contents: &[&str]) -> Option<Self> {
        /// With more first bytes than this the automaton has no filter.
        const FILTERED: usize = 3;
        let mut begins = BytePairs::new();
        for content in contents {
            match *content.as_bytes() {
                [] => {}
                [only] => begins.insert_all(only),
                [first, second, ..] => begins.insert(first, second),
            }
        }
        (begins.firsts() > FILTERED).then_some(Begins(begins))
    }

    /// The first result of `ask` among those for the places from `from` on where a token may begin.
    #[inline]
    fn find<T>(
        &self,
        bytes: &[u8],
        mut from: usize,
        mut ask: impl FnMut(usize) -> Option<T>,
    ) -> Option<T> {
        let last = bytes.len().checked_sub(1).filter(|last| from <= *last)?;
        while from < last {
            let mut mask = self.0.mask(&bytes[from..]);
            while mask != 0 {
                let found = ask(from + mask.trailing_zeros() as usize);
                if found.is_some() {
                    return found;
                }
                mask &= mask - 1;
            }
            from += BytePairs::BLOCK;
        }
        // The last byte may be a token of one byte, which any second byte stands for.
        self.0.contains(bytes[last], 0).then(|| ask(last)).flatten()
    }
}

/// An added token, with what its scan needs to know.
#[derive(Clone, Copy)]
pub(super) struct Token {
    pub(super) id: u32,
    pub(super) lstrip: bool,
    pub(super) rstrip: bool,
}

/// The crate could not take a text apart either: it panics.
pub(super) struct Contradiction;

impl AddedTokens {
    /// The scan for these contents; none if there are none.
    pub(super) fn new(tokens: Vec<(String, Token)>) -> Result<Option<Self>, Refusal> {
        if tokens.is_empty() {
            return Ok(None);
        }
        let mut contents: Vec<&str> = tokens.iter().map(|(content, _)| content.as_str()).collect();
        contents.sort_unstable();
        if contents.iter().any(|content| content.is_empty())
            || contents.windows(2).any(|pair| pair[0] == pair[1])
        {
            return Err(Refusal::new("two added tokens look the same".into()));
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .start_kind(StartKind::Both)
            .build(tokens.iter().map(|(content, _)| content))
            .map_err(|e| Refusal::new(format!("there is no automaton over added tokens: {e}")))?;
        Ok(Some(AddedTokens {
            automaton,
            begins: Begins::of(&contents),
            tokens: tokens.into_iter().map(|(_, token)| token).collect(),
        }))
    }

    /// The first match from `from` on, the longest of those that begin there.
    fn find(&self, text: &str, from: usize) -> Option<Match> {
        match &self.begins {
            None => self.automaton.find(Input::new(text).range(from..)),
            Some(begins) => begins.find(text.as_bytes(), from, |at| {
                let here = Input::new(text).range(at..).anchored(Anchored::Yes);
                self.automaton.find(here)
            }),
        }
    }

    /// Calls `piece` with every part of `text`, left to right.
    pub(super) fn scan(
        &self,
        text: &str,
        mut piece: impl FnMut(Piece),
    ) -> Result<(), Contradiction> {
        let mut floor = 0;
        let mut from = 0;
        while let Some(found) = self.find(text, from) {
            from = found.end();
            let token = self.tokens[found.pattern().as_usize()];
            let (mut start, mut end) = (found.start(), found.end());
            if token.lstrip {
                start = text[..start].trim_end().len().max(floor);
            }
            if token.rstrip {
                end = text.len() - text[end..].trim_start().len();
            }
            if floor < start {
                piece(Piece::Plain(floor, start));
            }
            if start > end {
                return Err(Contradiction);
            }
            // Where nothing of a token is left, the crate drops it like every empty piece.
            if start < end {
                piece(Piece::Token(token.id));
            }
            floor = end;
        }
        if floor != text.len() {
            piece(Piece::Plain(floor, text.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{AddedTokens, Piece, Token};

    #[test]
    fn both_filters_find_the_same() {
        let plain = Token {
            id: 0,
            lstrip: false,
            rstrip: false,
        };
        let scan = |contents: &[&str], text: &str| {
            let tokens = contents.iter().zip(0..);
            let tokens = tokens.map(|(c, id)| ((*c).to_owned(), Token { id, ..plain }));
            let tokens = AddedTokens::new(tokens.collect()).ok().flatten();
            let tokens = tokens.expect("tokens");
            let mut pieces = Vec::new();
            let scanned = tokens.scan(text, |piece| pieces.push(piece));
            assert!(scanned.is_ok());
            (tokens.begins.is_some(), pieces)
        };
        let few = ["<a>", "<a><b>", "\n\n", "\n\n\n", "é!"];
        let more = [&few[..], &["[x]", "{}", "~~", "("]].concat();
        let unit = ["<a>", "<b>", "<", "\n", "é", "!", "a", "é!"];
        for number in 0..unit.len().pow(4) {
            let part = |place: u32| unit[number / unit.len().pow(place) % unit.len()];
            let text: String = (0..4).map(part).collect();
            let want = scan(&few, &text);
            assert!(!want.0);
            assert_eq!(scan(&more, &text), (true, want.1), "{text:?}");
        }
        let pieces = [Piece::Plain(0, 1), Piece::Token(7), Piece::Token(8)];
        assert_eq!(scan(&more, "a~~(").1, pieces);
    }
}
