//! The scan for added tokens, as the `tokenizers` crate does it.
//!
//! Leftmost-longest over one text; then, match by match, `lstrip` moves the start left over
//! whitespace as far as the piece before, and `rstrip` the end right. What lies between is plain. The
//! arithmetic is the crate's own, with its consequences: a token inside whitespace that an `rstrip`
//! token swallowed makes text count twice (see `cuts`, *Tangled*).

use std::collections::HashSet;

use super::Refusal;
use super::finder::Finder;

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
    finder: Finder,
    tokens: Vec<Token>,
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
        let contents: Vec<&str> = tokens.iter().map(|(content, _)| content.as_str()).collect();
        let distinct: HashSet<&str> = contents.iter().copied().collect();
        if distinct.len() < contents.len() || distinct.contains("") {
            return Err(Refusal::new("two added tokens look the same".into()));
        }
        let finder = Finder::new(&contents)
            .map_err(|e| Refusal::new(format!("there is no automaton over added tokens: {e}")))?;
        Ok(Some(AddedTokens {
            finder,
            tokens: tokens.into_iter().map(|(_, token)| token).collect(),
        }))
    }

    /// Calls `piece` with every part of `text`, left to right.
    pub(super) fn scan(
        &self,
        text: &str,
        mut piece: impl FnMut(Piece),
    ) -> Result<(), Contradiction> {
        let mut floor = 0;
        let mut from = 0;
        while let Some(found) = self.finder.find(text, from, text.len()) {
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
