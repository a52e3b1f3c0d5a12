//! The cuts of one text, left to right: a scan for added tokens that mirrors the backend's.
//!
//! The raw tokens split the text into pieces; if cuts at normalized tokens are allowed (identity
//! normalizer), each plain piece is scanned for them. Where an `rstrip` token swallowed the start of
//! an `lstrip` token, nothing is cut up to the end of the swallowed whitespace (see the module
//! above). The cuts come in strictly increasing order. Lazy, O(bytes scanned), no allocation.

use aho_corasick::{FindIter, Input};

use super::{CutPolicy, Tokens, Weakness};

/// A position where a text may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The position: the start of the piece of an added token, stripped whitespace included.
    pub at: usize,
    /// Where the added token itself starts.
    pub anchor: usize,
    /// What makes it a cut.
    pub kind: CutKind,
}

/// What makes a position a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutKind {
    /// The start of a raw added token. Transfers to other texts by the frontier.
    Raw,
    /// The start of a normalized added token under an identity normalizer. Found by scanning only.
    Normalized,
}

/// Iterator over the cuts of a text; see [`CutPolicy::cuts`].
pub struct Cuts<'p, 't> {
    policy: &'p CutPolicy,
    text: &'t str,
    raw: Option<Pieces<'p, 't>>,
    /// The plain piece being scanned for normalized tokens.
    plain: Option<Pieces<'p, 't>>,
    /// The raw token that ends the plain piece.
    next_raw: Option<Piece>,
}

impl<'p, 't> Cuts<'p, 't> {
    pub(super) fn new(policy: &'p CutPolicy, text: &'t str, from: usize) -> Self {
        let mut cuts = Cuts {
            policy,
            text,
            raw: policy
                .raw
                .as_ref()
                .map(|tokens| Pieces::new(tokens, text, from, text.len(), policy.weakness)),
            plain: None,
            next_raw: None,
        };
        cuts.next_raw_piece(from);
        cuts
    }

    /// Steps to the next raw token; the text between `plain_start` and it is plain.
    fn next_raw_piece(&mut self, plain_start: usize) {
        self.next_raw = self.raw.as_mut().and_then(Iterator::next);
        let plain_end = self
            .next_raw
            .as_ref()
            .map_or(self.text.len(), |piece| piece.start);
        self.plain = self
            .policy
            .normalized
            .as_ref()
            .filter(|_| plain_start < plain_end)
            .map(|tokens| {
                Pieces::new(
                    tokens,
                    self.text,
                    plain_start,
                    plain_end,
                    self.policy.weakness,
                )
            });
    }
}

impl Iterator for Cuts<'_, '_> {
    type Item = Cut;

    fn next(&mut self) -> Option<Cut> {
        loop {
            let inner = self.plain.as_mut().and_then(Iterator::next);
            let (piece, kind) = if let Some(piece) = inner {
                (piece, CutKind::Normalized)
            } else {
                let piece = self.next_raw.take()?;
                self.next_raw_piece(piece.end);
                (piece, CutKind::Raw)
            };
            if piece.is_cut {
                return Some(Cut {
                    at: piece.start,
                    anchor: piece.anchor,
                    kind,
                });
            }
        }
    }
}

/// The piece of one matched token: what the strip flags made of `[anchor, ..)`.
struct Piece {
    start: usize,
    end: usize,
    anchor: usize,
    is_cut: bool,
}

/// The pieces of the matched tokens in a part of a text.
struct Pieces<'p, 't> {
    tokens: &'p Tokens,
    text: &'t str,
    matches: FindIter<'p, 't>,
    /// End of the piece before, where `lstrip` stops.
    floor: usize,
    /// Up to where nothing is cut, as an `rstrip` token swallowed the start of an `lstrip` token.
    tangled: usize,
    /// End of the part, where `rstrip` stops.
    end: usize,
    weakness: Weakness,
}

impl<'p, 't> Pieces<'p, 't> {
    fn new(tokens: &'p Tokens, text: &'t str, from: usize, end: usize, weakness: Weakness) -> Self {
        Pieces {
            tokens,
            text,
            matches: tokens
                .automaton
                .find_iter(Input::new(text).range(from..end)),
            floor: from,
            tangled: from,
            end,
            weakness,
        }
    }
}

impl Pieces<'_, '_> {
    /// Left over whitespace from `anchor`, but not past the end of the piece before.
    fn strip_left(&self, anchor: usize) -> usize {
        let stop = match self.weakness {
            Weakness::NoStripStop => 0,
            _ => self.floor,
        };
        match self.text.get(stop..anchor) {
            Some(before) => stop + before.trim_end().len(),
            None => stop,
        }
    }
}

impl Iterator for Pieces<'_, '_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let found = self.matches.next()?;
        let strip = self.tokens.strips[found.pattern().as_usize()];
        let anchor = found.start();
        let start = if strip.left {
            self.strip_left(anchor)
        } else {
            anchor
        };
        if start > anchor {
            self.tangled = self.tangled.max(start);
        }
        let end = if strip.right {
            let after = &self.text[found.end()..self.end];
            self.end - after.trim_start().len()
        } else {
            found.end()
        };
        self.floor = end;
        Some(Piece {
            start,
            end,
            anchor,
            is_cut: start >= self.tangled && start <= anchor,
        })
    }
}
