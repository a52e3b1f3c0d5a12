//! Cuts inside plain text: pairs of neighbouring characters that nothing in the pipeline joins.
//!
//! A *seam* is a position strictly inside a plain piece of the raw scan whose two neighbouring
//! characters belong together in no way, whatever else the text holds. Two kinds of pipelines have
//! them; what each condition is for is proved in [`cuts`](super), *Cuts inside plain text*:
//!
//! - **Split pipelines** (`U` there): stages of splitting, then BPE over words. The pair must be
//!   crossed by no attempt of any stage, up to one stage that always parts it. Both are read off the
//!   stages' automata, class by class ([`Seam`]).
//! - **Whole words** (`G` there): BPE over the entire piece. The pair must stand in no merge result.
//!   What follows such a seam is encoded as the *rest* of a piece: nothing is put in front of it.
//!
//! Pairs of ASCII characters are looked up in a table; others are worked out where they are met, in
//! split pipelines only. Asking costs a few nanoseconds.

use std::collections::HashSet;
use std::sync::Arc;

use memchr::memchr;

use super::Weakness;
use crate::encoder::{Encoders, Seam, Splitter, Whole, stays};

/// The seams of one pipeline.
pub(super) struct Seams {
    /// By the first character, which second ones make a seam.
    ascii: Box<[u128; 128]>,
    /// The stages, unless whole pieces are words.
    stages: Option<Arc<[Splitter]>>,
    /// NFC comes first.
    composed: bool,
    /// Neighbours inside the contents of normalized added tokens.
    late: HashSet<(char, char)>,
    /// Some raw added token is `lstrip`.
    blanks: bool,
    weakness: Weakness,
}

/// So far, in bytes, blanks are followed to see that no `lstrip` token takes them.
const LOOK: usize = 64;

impl Seams {
    /// The seams of what these encoders understand; `blanks` if a raw added token is `lstrip`.
    ///
    /// # Errors
    /// Why there are none.
    pub(super) fn new(
        encoders: &Encoders,
        blanks: bool,
        weakness: Weakness,
    ) -> Result<Self, String> {
        let fast = encoders.fast().map_err(ToString::to_string)?;
        let mut seams = Seams {
            ascii: Box::new([0; 128]),
            stages: None,
            composed: false,
            late: HashSet::new(),
            blanks,
            weakness,
        };
        let mut word = None;
        match fast.whole()? {
            Whole::Split {
                stages,
                composed,
                late,
            } => {
                seams.stages = Some(Arc::clone(stages));
                seams.composed = composed && weakness != Weakness::ComposedSeams;
                if weakness != Weakness::LateSeams {
                    for content in late {
                        seams
                            .late
                            .extend(content.chars().zip(content.chars().skip(1)));
                    }
                }
            }
            Whole::Word(apart) => word = Some(apart),
        }
        for first in 0..128_u8 {
            for second in 0..128_u8 {
                let (a, b) = (char::from(first), char::from(second));
                let seam = match &word {
                    Some(apart) => apart(a, b) || weakness == Weakness::JoinedSeams,
                    None => seams.parted(a, b),
                };
                seams.ascii[usize::from(first)] |= u128::from(seam) << second;
            }
        }
        if seams.ascii.iter().all(|seconds| *seconds == 0) {
            return Err("no two ASCII characters are always parted".to_owned());
        }
        Ok(seams)
    }

    /// Whether what follows a seam is the rest of a word.
    pub(super) fn whole_words(&self) -> bool {
        self.stages.is_none()
    }

    /// Whether the stages part these two in every text (for [`Whole::Split`]).
    ///
    /// Obligation: in each stage up to the one that parts them, no attempt depends on the second
    /// character once it has read the first; and no normalized token holds the two side by side.
    fn parted(&self, first: char, second: char) -> bool {
        if self.late.contains(&(first, second)) {
            return false;
        }
        for stage in self.stages.iter().flat_map(|stages| stages.iter()) {
            match stage.seam(first, second) {
                Seam::Parted => return true,
                Seam::Passed => {}
                Seam::Crossed => return self.weakness == Weakness::CrossedSeams,
            }
        }
        self.weakness == Weakness::GluedSeams
    }

    /// The last byte that was looked at to find that `at` is a seam of `text`, if it is one. The caller
    /// knows that it lies strictly inside a plain piece, and of a pair of ASCII characters that it makes
    /// a seam.
    ///
    /// Obligations beside the pair: under NFC both characters and the next one stay what they are
    /// wherever they stand, so that the text before and the text from `at` on are normalized apart and
    /// meet in the same two characters. Where an `lstrip` token might take blanks, the run of blanks at
    /// `at` must be seen to end.
    #[inline]
    fn anchor(&self, text: &str, at: usize) -> Option<usize> {
        // ASCII stays what it is under NFC.
        let reach = usize::from(self.composed);
        if let Some(&[a, b, c]) = text.as_bytes().get(at - 1..at + 2)
            && a | b | c < 128
            && !(self.blanks && char::from(b).is_whitespace())
        {
            return Some(at + reach);
        }
        self.anchor_of_any(text, at)
    }

    /// The same where the characters around are not all ASCII, or blanks are followed.
    fn anchor_of_any(&self, text: &str, at: usize) -> Option<usize> {
        let first = text[..at].chars().next_back()?;
        let second = text[at..].chars().next()?;
        if !(first.is_ascii() && second.is_ascii() || self.parted(first, second)) {
            return None;
        }
        let mut end = at + second.len_utf8();
        if self.composed {
            let third = text[end..].chars().next()?;
            if !(stays(first) && stays(second) && stays(third)) {
                return None;
            }
            end += third.len_utf8();
        }
        if self.blanks && second.is_whitespace() && self.weakness != Weakness::BlankSeams {
            let after = text[at..]
                .char_indices()
                .take_while(|(offset, _)| *offset <= LOOK)
                .find(|(_, c)| !c.is_whitespace());
            let (offset, c) = after?;
            end = end.max(at + offset + c.len_utf8());
        }
        Some(end - 1)
    }

    /// Calls `visit` with the seams of `text` after `from` and before `to`, left to right, until it
    /// returns true: where it is, its anchor, and whether it is the first one behind a line feed. Up to
    /// `lines` only those that are.
    pub(super) fn find(
        &self,
        text: &str,
        mut from: usize,
        to: usize,
        lines: usize,
        mut visit: impl FnMut(usize, usize, bool) -> bool,
    ) -> Option<(usize, usize)> {
        let bytes = text.get(..to)?.as_bytes();
        let lines = lines.min(to);
        // From line feed to line feed, most of a text is passed over.
        while from < lines {
            let before = &bytes[from..lines];
            let Some(feed) = memchr(b'\n', before) else {
                from = lines;
                break;
            };
            let (at, anchor) = self.next(text, bytes, from + feed)?;
            if visit(at, anchor, true) {
                return Some((at, anchor));
            }
            from = at;
        }
        loop {
            let (at, anchor) = self.next(text, bytes, from)?;
            let line = bytes[from..at].contains(&b'\n');
            if visit(at, anchor, line) {
                return Some((at, anchor));
            }
            from = at;
        }
    }

    /// The first seam after `from` in a text of which these are the plain bytes, and its anchor.
    fn next(&self, text: &str, plain: &[u8], from: usize) -> Option<(usize, usize)> {
        let pairs = plain.get(from..)?.windows(2);
        pairs.zip(from + 1..).find_map(|(pair, at)| {
            let may_part = match [pair[0], pair[1]] {
                [a @ 0..128, b @ 0..128] => self.ascii[usize::from(a)] >> b & 1 == 1,
                // Inside of a character.
                [_, 0x80..0xc0] => false,
                _ => self.stages.is_some(),
            };
            let anchor = may_part.then(|| self.anchor(text, at)).flatten()?;
            Some((at, anchor))
        })
    }
}
