//! Segments: the text between cuts, coalesced to a useful length.
//!
//! Cuts lie close together, so most of them end no segment. Which ones do is a question of speed only,
//! and has two sides. Segments should have about the same length (long ones are encoded again for a
//! small change, short ones cost memory), and the same text should be divided in the same way whatever
//! stands before it, or an edit would shift all segments behind it. So the decision is made by the
//! *content* around a cut once a segment is long enough: a hash of the bytes before it, sooner at the
//! first seam of a line than elsewhere, sooner at an added token than at a seam. Two divisions that
//! begin in different places meet at the first cut where both say yes, mostly within a segment or two.
//!
//! What follows the last such cut is the *open tail*: it may still grow, and is encoded but never kept.

use super::CutPolicy;
use super::scan::{Cut, CutKind, Opening, Stretches};

/// A closed segment: a piece of text between two cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// How it begins.
    pub opening: Opening,
    /// How what follows it begins.
    pub next: Opening,
}

/// Iterator over the closed segments of a text; see [`CutPolicy::segments`].
pub struct Segments<'p, 't> {
    policy: &'p CutPolicy,
    text: &'t str,
    stretches: Stretches<'p, 't>,
    /// Where seams of the stretch at hand are looked for, and the cut at its end.
    plain: (usize, usize),
    cut: Option<Cut>,
    start: usize,
    opening: Opening,
}

/// Before it is so many times the least length, a segment ends at the first seam of a line if at any.
const LINES: usize = 3;

impl<'p, 't> Segments<'p, 't> {
    pub(super) fn new(policy: &'p CutPolicy, text: &'t str, from: usize, opening: Opening) -> Self {
        Segments {
            policy,
            text,
            stretches: Stretches::new(policy, text, from),
            plain: (0, 0),
            cut: None,
            start: from,
            opening,
        }
    }

    /// Whether a cut of this kind ends the segment; `line` if it is the first seam of a line.
    fn ends(&self, at: usize, kind: CutKind, line: bool) -> bool {
        let min = self.policy.min_segment;
        let length = at - self.start;
        let one_in = |n: u64, window: usize| hash_before(self.text, at, window).is_multiple_of(n);
        match (kind, length / min) {
            (_, 0) => false,
            (CutKind::Raw | CutKind::Normalized, 1 | 2) => one_in(4, 64),
            (CutKind::Raw | CutKind::Normalized, _) => true,
            (_, 1..LINES) => line && one_in(8, 16),
            (_, LINES) => one_in(if line { 2 } else { 16 }, 16),
            _ => true,
        }
    }

    /// Ends the segment at a cut.
    fn close(&mut self, cut: Cut) -> Segment {
        let next = Opening::of(cut);
        let segment = Segment {
            start: self.start,
            end: cut.at,
            opening: self.opening,
            next,
        };
        self.start = cut.at;
        self.opening = next;
        segment
    }
}

impl Iterator for Segments<'_, '_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        loop {
            let mut near = self.start + self.policy.min_segment.saturating_sub(4);
            while !self.text.is_char_boundary(near.min(self.text.len())) {
                near -= 1;
            }
            let from = self.plain.0.max(near);
            let lines = self.policy.min_segment.saturating_mul(LINES);
            let lines = self.start.saturating_add(lines);
            if let Some(cut) =
                self.policy
                    .seam(self.text, from, self.plain.1, lines, |cut, line| {
                        self.ends(cut.at, cut.kind, line)
                    })
            {
                self.plain.0 = cut.at;
                return Some(self.close(cut));
            }
            self.plain = (0, 0);
            if let Some(cut) = self.cut.take() {
                if cut.at == self.start {
                    self.opening = Opening::of(cut);
                } else if cut.at > self.start && self.ends(cut.at, cut.kind, false) {
                    return Some(self.close(cut));
                }
            }
            let stretch = self.stretches.next()?;
            self.plain = stretch.plain;
            self.cut = stretch.cut;
        }
    }
}

/// A hash of up to `window` bytes that end at `at`.
fn hash_before(text: &str, at: usize, window: usize) -> u64 {
    let bytes = &text.as_bytes()[at.saturating_sub(window)..at];
    let mut hash = 0_u64;
    for block in bytes.rchunks(8) {
        let mut word = [0; 8];
        word[..block.len()].copy_from_slice(block);
        hash =
            (hash.rotate_left(29) ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    hash >> 32
}
