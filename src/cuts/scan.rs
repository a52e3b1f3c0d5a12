//! The cuts of one text, left to right: a scan for added tokens that mirrors the backend's.
//!
//! The raw tokens split the text into pieces; if cuts at normalized tokens are allowed (identity
//! normalizer), each plain piece is scanned for them. Where an `rstrip` token swallowed the start of
//! an `lstrip` token, nothing is cut up to the end of the swallowed whitespace (see the module
//! above). [`Stretches`] are what both lead to: plain text, in which seams are looked for, and the
//! token that ends it. The cuts come in strictly increasing order. Lazy, O(bytes scanned), no
//! allocation.

use super::{CutPolicy, Tokens, Weakness};

/// A position where a text may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The position: the start of the piece of an added token, stripped whitespace included, or a seam.
    pub at: usize,
    /// Where the added token itself starts; the last byte that makes the position a seam.
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
    /// Two characters inside plain text that every split parts. Transfers by the frontier.
    Parted,
    /// Two characters inside plain text that no merge joins; what follows is the rest of a word.
    /// Transfers by the frontier.
    Unjoined,
}

/// How the text from a cut on begins: what is known of the cut there, in bytes from it on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Opening {
    /// At the start of a text, or with a normalized added token: says nothing about other texts.
    #[default]
    Fixed,
    /// With a raw added token, which starts so many bytes on.
    Token(usize),
    /// With a seam of a split pipeline, decided by as many bytes and one.
    Parted(usize),
    /// With the rest of a word, decided by as many bytes and one.
    Rest(usize),
}

impl Opening {
    pub(super) fn of(cut: Cut) -> Self {
        let anchor = cut.anchor - cut.at;
        match cut.kind {
            CutKind::Raw => Opening::Token(anchor),
            CutKind::Normalized => Opening::Fixed,
            CutKind::Parted => Opening::Parted(anchor),
            CutKind::Unjoined => Opening::Rest(anchor),
        }
    }

    /// The byte that has to lie before the frontier for the cut to hold in another text.
    pub fn anchor(self) -> Option<usize> {
        match self {
            Opening::Fixed => None,
            Opening::Token(anchor) | Opening::Parted(anchor) | Opening::Rest(anchor) => {
                Some(anchor)
            }
        }
    }

    /// Whether the text begins with the rest of a word.
    pub fn is_rest(self) -> bool {
        matches!(self, Opening::Rest(_))
    }
}

/// Plain text, and the added token that ends it.
pub(super) struct Stretch {
    /// Seams may be cuts strictly between these.
    pub(super) plain: (usize, usize),
    /// The cut at its end; none at the end of the text, and where no cut is allowed.
    pub(super) cut: Option<Cut>,
}

/// Iterator over the stretches of a text.
pub(super) struct Stretches<'p, 't> {
    policy: &'p CutPolicy,
    text: &'t str,
    raw: Option<Pieces<'p, 't>>,
    /// The plain piece being scanned for normalized tokens.
    plain: Option<Pieces<'p, 't>>,
    /// The raw token that ends the plain piece.
    next_raw: Option<Piece>,
    /// Up to where pieces reach, what `rstrip` tokens swallowed included.
    reach: usize,
    done: bool,
}

impl<'p, 't> Stretches<'p, 't> {
    pub(super) fn new(policy: &'p CutPolicy, text: &'t str, from: usize) -> Self {
        let mut stretches = Stretches {
            policy,
            text,
            raw: policy
                .raw
                .as_ref()
                .map(|tokens| Pieces::new(tokens, text, from, text.len(), policy.weakness)),
            plain: None,
            next_raw: None,
            reach: from,
            done: false,
        };
        stretches.next_raw_piece(from);
        stretches
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

impl Iterator for Stretches<'_, '_> {
    type Item = Stretch;

    fn next(&mut self) -> Option<Stretch> {
        if self.done {
            return None;
        }
        let inner = self.plain.as_mut().and_then(Iterator::next);
        let (piece, kind) = if let Some(piece) = inner {
            (piece, CutKind::Normalized)
        } else if let Some(piece) = self.next_raw.take() {
            self.next_raw_piece(piece.end);
            (piece, CutKind::Raw)
        } else {
            self.done = true;
            return Some(Stretch {
                plain: (self.reach, self.text.len()),
                cut: None,
            });
        };
        let plain = (self.reach, piece.start);
        self.reach = self.reach.max(piece.start);
        if kind == CutKind::Raw {
            self.reach = self.reach.max(piece.end);
        }
        Some(Stretch {
            plain,
            cut: piece.is_cut.then_some(Cut {
                at: piece.start,
                anchor: piece.anchor,
                kind,
            }),
        })
    }
}

/// Iterator over the cuts of a text; see [`CutPolicy::cuts`].
pub struct Cuts<'p, 't> {
    stretches: Stretches<'p, 't>,
    /// Where seams of the stretch at hand are looked for, and the cut at its end.
    plain: (usize, usize),
    cut: Option<Cut>,
}

impl<'p, 't> Cuts<'p, 't> {
    pub(super) fn new(policy: &'p CutPolicy, text: &'t str, from: usize) -> Self {
        Cuts {
            stretches: Stretches::new(policy, text, from),
            plain: (0, 0),
            cut: None,
        }
    }
}

impl Iterator for Cuts<'_, '_> {
    type Item = Cut;

    fn next(&mut self) -> Option<Cut> {
        loop {
            let (from, to) = self.plain;
            let Stretches { policy, text, .. } = self.stretches;
            if let Some(cut) = policy.seam(text, from, to, 0, |_, _| true) {
                self.plain.0 = cut.at;
                return Some(cut);
            }
            self.plain = (0, 0);
            if let Some(cut) = self.cut.take() {
                return Some(cut);
            }
            let stretch = self.stretches.next()?;
            self.plain = stretch.plain;
            self.cut = stretch.cut;
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
    /// From where the next one is searched.
    from: usize,
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
            from,
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
        let found = self.tokens.finder.find(self.text, self.from, self.end)?;
        self.from = found.end();
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
