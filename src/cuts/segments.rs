//! Segments: the text between cuts, coalesced to a useful length.
//!
//! A segment ends at the first cut that lies at least [`MIN_SEGMENT`](super::MIN_SEGMENT) bytes
//! behind its start. That is a function of the text from its start on, so the same text behind the
//! same cut is divided the same way again, after an edit before it as well. What follows the last
//! such cut is the *open tail*: it may still grow, and is encoded but never kept.

use super::scan::{CutKind, Cuts};

/// A closed segment: a piece of text between two cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Where the raw token starts that makes `start` a cut, if one does.
    pub anchor: Option<usize>,
}

/// Iterator over the closed segments of a text; see [`CutPolicy::segments`](super::CutPolicy).
pub struct Segments<'p, 't> {
    cuts: Cuts<'p, 't>,
    start: usize,
    anchor: Option<usize>,
    min: usize,
}

impl<'p, 't> Segments<'p, 't> {
    pub(super) fn new(cuts: Cuts<'p, 't>, from: usize, min: usize) -> Self {
        Segments {
            cuts,
            start: from,
            anchor: None,
            min,
        }
    }
}

impl Iterator for Segments<'_, '_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        loop {
            let cut = self.cuts.next()?;
            let anchor = (cut.kind == CutKind::Raw).then_some(cut.anchor);
            if cut.at == self.start {
                self.anchor = anchor;
            } else if cut.at.saturating_sub(self.start) >= self.min {
                let segment = Segment {
                    start: self.start,
                    end: cut.at,
                    anchor: self.anchor,
                };
                self.start = cut.at;
                self.anchor = anchor;
                return Some(segment);
            }
        }
    }
}
