//! Where a text may be cut so that its parts can be encoded apart.
//!
//! Write `E(t)` for the ids of `encode(t, add_special_tokens=False)`. A position `p` of a text `t`
//! is a *cut* if `E(t) = E(t[..p]) ++ E(t[p..])`. Everything this crate keeps is a function of the
//! text between two cuts, so the whole promise of exactness rests on this module.
//!
//! # What `E` does
//!
//! 1. *Raw scan.* The raw added tokens (`normalized = false`) are searched in the whole text,
//!    leftmost-longest, without overlap; the search goes on at the end of each match. Then, match
//!    by match: `single_word` may discard it, `lstrip` moves its start left over whitespace but not
//!    past the end of the piece before, `rstrip` moves its end right over whitespace. What lies
//!    between the pieces of matches is *plain*.
//! 2. Each plain piece goes alone through the normalizer and is searched for the normalized added
//!    tokens (`normalized = true`) in the same way.
//! 3. What is still plain goes, piece by piece, through pre-tokenizer and model.
//!
//! The ids are the concatenation over the pieces. A piece contributes a function of its own text,
//! with one exception: `Metaspace` with scheme `first` asks whether a plain piece starts at offset
//! 0 of the text. A piece of a match contributes one id, whatever its strip flags swallowed.
//!
//! # Cuts at raw added tokens
//!
//! Let no added token be `single_word`, let `[s, e)` be a match of the raw scan of `t`, and `p` the
//! start of its piece (`p = s` without `lstrip`). If the piece is not *tangled* (below), **then `p`
//! is a cut**, whatever the normalizer, pre-tokenizer and model are.
//!
//! *Right part.* The match before ends at or before `p`: either `p = s`, or `lstrip` moved it and
//! stopped at the end of the piece before. The scan of `t` found nothing between that end and `s`,
//! so a scan that starts at `p` finds nothing before `s`, and from there it is in the same state as
//! the scan of `t`: leftmost-longest looks at nothing to the left of where it stands. Strip flags
//! look left only as far as the piece before, and the first piece on the right is the one of
//! `[s, e)` itself, with the same start `p`. So the pieces of `t[p..]` are those of `t` from `p` on.
//! Its first piece is a match, so no plain piece starts at offset 0 and `Metaspace` cannot notice.
//!
//! *Left part.* A match of `t` before `p` ends at or before `p`, and was the longest at its start,
//! so it is the longest within `t[..p]` as well; where `t` has no match, `t[..p]` has none. The
//! start of a piece looks left, so it is the same, and so are the plain pieces. The piece of the
//! last match may be shorter (its `rstrip` ran on past `p`, over whitespace in which `[s, e)`
//! starts): it gives its one id all the same. ∎
//!
//! *Tangled.* If an `rstrip` token swallows whitespace in which an `lstrip` token starts, the
//! backend lets the piece of the second start at the end of the swallowed run, behind its own match:
//! it slices backwards and panics, or drops the token. Here the start of a piece looks right, up to
//! the end of the run. Such a piece and all others that start before the end of that run are
//! tangled. So the run stays in one segment, and the same thing happens to it as in the whole text.
//!
//! With `single_word`, discarding looks at the neighbour characters, and a discarded match still
//! consumes text; we make no cuts at all then.
//!
//! # Cuts at normalized added tokens
//!
//! If the normalizer is the identity, the second scan runs over text of `t` itself, and the start
//! `p` of the piece of one of its matches is a cut by the same argument inside its plain piece
//! `[a, b)`: no raw match reaches into `(a, b)`; those before end by `a` and those after keep their
//! starts, as `b > p` was decided by whitespace right of `p`. With any other normalizer these
//! tokens are no cuts. They never disturb the cuts at raw tokens, which are decided before.
//!
//! # Which cuts survive in another text: the frontier
//!
//! Let `t` and `u` agree on their first `l` bytes. The *frontier* `f(u, l)` is the smallest `s < l`
//! such that `u[s..l)` is a proper prefix of a raw added token, else `l`. **A raw match of `t` that
//! starts at `s < f` is a raw match of `u`.** By induction from the left: let both scans stand at
//! the same place before `f`. An added token that occurs at `s < f` in one of the texts either ends
//! by `l` and occurs in both, or runs past `l`, and then `u[s..l)` is a proper prefix of it, which
//! the choice of `f` forbids. So the longest occurrence at each `s < f` is the same in both, and it
//! ends by `l`. The start of its piece, and whether it is tangled (is there a tangled piece before,
//! with nothing but whitespace up to the first character of the match, inclusive?), are decided by
//! common text, so **its cut `p` is a cut of `u` as well.** ∎
//!
//! The strict `s < f` matters: at `s = f` the match of `t` may end beyond `l`, where `u` differs.
//! Cuts at normalized tokens are not transferred that way (a raw token of `u` beyond `l` may cover
//! text of the match); they are found again by scanning `u` from the last transferred cut.
//!
//! # Cuts inside plain text
//!
//! A position `b` inside a plain piece can be a cut because of the two characters around it. Let no
//! added token be `single_word`, and let `b` lie *strictly inside a plain piece* `(a, e)` of the raw
//! scan of `t`, with `a` at or behind the end of every piece before, whitespace swallowed by `rstrip`
//! included. Write `x = t[a..b]` and `y = t[b..e]`; neither is empty.
//!
//! *The raw scan parts at `b`.* No match straddles `b`. The scan of `t` found nothing in `(a, e)`, so
//! neither `t[..b]` nor `t[b..]` has a match in its part of it; the matches before are the longest in
//! `t[..b]` too, and their pieces end by `a`, where whitespace was seen to end. The piece that ends
//! `y` starts at `e > b`: if `lstrip` moved it there, the character before `e` stopped it, and that
//! one lies in `y`. So the pieces of `t` are those of `t[..b]` followed by those of `t[b..]`, except that
//! `xy` is one plain piece there and two here. Left to show: what becomes of `xy` is what becomes of
//! `x`, then what becomes of `y`.
//!
//! **U: split pipelines.** The normalizer is the identity or NFC; then come stages of splitting, each
//! over the pieces of the one before, with patterns that look at nothing behind and at one character
//! ahead; then BPE, word by word. Write `c` and `d` for the characters around `b`.
//!
//! 1. *NFC.* `c`, `d` and the character behind `d` are of a kind that NFC leaves alone wherever they
//!    stand: they neither decompose, nor are reordered, nor join the character before them (checked over
//!    all of Unicode in `encoder/normalizer.rs`). Text in front of such a character is normalized apart
//!    from text behind, so `NFC(xy) = NFC(x) NFC(y)`, the first ends with `c`, and the second begins
//!    with `d`, as the character behind `d` does not join it.
//! 2. *Normalized added tokens.* None is a strip, and `cd` occurs in no content. So no occurrence
//!    straddles `b`, the longest at each place before `b` is the same, and the scan stands at or before
//!    `b` when it comes to `y`. If a piece of a match touches `b`, the text is parted there. Else `c` and
//!    `d` are in one plain piece.
//! 3. *A stage does not cross `b`.* Whatever state of its automaton is entered by reading `c` cannot
//!    read `d`, and it matches before `d` if and only if it matches at the end of the text. Then every
//!    attempt that begins before `b` takes the same steps on `xy` as on `x` and ends in the same place.
//!    So the matches in `x` are the same; none reaches over `b`; the scan comes to `b` and goes on as on
//!    `y`, since nothing looks behind. The pieces are those of `x`, then those of `y`, but that a gap at
//!    the end of `x` and one at the start of `y` are one gap piece, which again has `c` and `d` inside:
//!    the next stage is asked about it.
//! 4. *Some stage parts `b`.* One of the two characters is never in a gap: `c` matches alone at the end of
//!    a text (so where no match covers it, an attempt begins at it and succeeds), or `d` matches alone
//!    before anything. Or gaps are left out in this stage, so that it does not matter. From there on no
//!    piece holds both, and the words are those of `x`, then those of `y`. ∎
//!
//! **G: whole words.** The normalizer puts at most something in front of a piece and maps each
//! character for itself to one or more; there is no split, and no normalized added token. `Metaspace`
//! may put U+2581 in front of a piece. So `xy` becomes one word `m(x) m'(y)`, where `m'` puts nothing in
//! front. BPE has a token for every character or for each of its bytes, and no token of a byte is
//! merged (`encoder/bpe/model.rs`). If the last character of `m(x)` and the first of `m'(y)` stand side
//! by side in the result of no merge, no merge ever joins symbols across `b`: its result would hold
//! them. Both sides evolve as if alone, so the ids of the word are those of `m(x)`, then those of
//! `m'(y)`. ∎ What follows such a cut is the *rest* of a piece and is not what the same text is
//! elsewhere; its encoder and its chunk know ([`Opening::Rest`]). An encoder that does not know refuses.
//!
//! *In another text.* The *anchor* of such a cut is the last byte that was looked at to find it: of
//! `d`; with NFC, of the character behind; and where a raw token is `lstrip` and `d` is blank, of the
//! character that ends the run of blanks. **If the anchor lies before the frontier, `b` is a cut of `u`
//! as well.** The matches that start before the frontier are the same, so none straddles `b` in `u`,
//! those before `b` have the same pieces (the character at `a < b` stopped their blanks), and none
//! starts at `b`. The next piece starts behind `b`: one that starts before the anchor is the same as in
//! `t`; one behind it is stopped by `d`, or by the end of the run. The conditions on characters are about
//! common text. ∎
//!
//! # Factorization
//!
//! `t[p..]` is scanned like `t` from `p` on, so a cut of `t` right of `p` is a cut of `t[p..]`, and
//! with cuts `p1 < p2 < ...` of `t`, `E(t) = E(t[..p1]) ++ E(t[p1..p2]) ++ ...`. Every factor is a
//! function of its own text (and of being the rest of a word), wherever that text stands: it can be
//! kept and used again after an edit, in another conversation, or be computed on another thread.

mod analysis;
mod frontier;
mod scan;
mod seams;
mod segments;

use std::fmt;

use frontier::Frontier;
pub use scan::{Cut, CutKind, Cuts, Opening};
use seams::Seams;
pub use segments::{Segment, Segments};

use crate::encoder::Finder;

/// Segments are at least this long, in bytes: about 1 KB on the average, for little memory beside the
/// text and its ids.
pub const MIN_SEGMENT: usize = 512;
/// The same where the `tokenizers` crate encodes: there, what an open tail costs counts for more.
pub const MIN_SEGMENT_SLOW: usize = 192;

/// Where texts of one tokenizer may be cut, and why not elsewhere.
///
/// Made once per backend by [`CutPolicy::of`]; answers three questions: [`CutPolicy::cuts`] (the
/// cuts of a text), [`CutPolicy::segments`] (the same, coalesced) and [`CutPolicy::frontier`] (up
/// to where a cut of one text holds in another).
pub struct CutPolicy {
    /// The raw added tokens, if cuts at them are allowed.
    raw: Option<Tokens>,
    /// The normalized added tokens, if cuts at them are allowed as well.
    normalized: Option<Tokens>,
    /// Cuts inside plain text, if there are any.
    seams: Option<Seams>,
    frontier: Frontier,
    min_segment: usize,
    pipeline: Pipeline,
    refusals: Vec<String>,
    weakness: Weakness,
}

/// Added tokens of one scan: their contents, and the strip flags of each.
struct Tokens {
    finder: Finder,
    strips: Vec<Strip>,
}

/// Strip flags of an added token.
#[derive(Clone, Copy)]
struct Strip {
    left: bool,
    right: bool,
}

/// What was found in the live backend, for people.
#[derive(Debug, Default)]
struct Pipeline {
    normalizer: String,
    pre_tokenizer: String,
    model: String,
    raw: usize,
    normalized: usize,
    left_strips: usize,
    right_strips: usize,
    single_words: usize,
}

/// A rule of the theorem switched off, to prove that the tests would notice. Never in use otherwise.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weakness {
    /// All rules hold.
    #[default]
    None,
    /// The frontier does not hold back the beginnings of added tokens.
    NoFrontier,
    /// A cut transfers as soon as it lies within the common text, whatever starts there.
    NoAnchor,
    /// `lstrip` does not move a cut left.
    NoStripLeft,
    /// `lstrip` is not stopped by the piece before.
    NoStripStop,
    /// Normalized tokens are cuts whatever the normalizer is.
    NormalizedAlways,
    /// `single_word` is ignored.
    NoSingleWord,
    /// A seam may be crossed by attempts of a stage.
    CrossedSeams,
    /// A seam may lie in a gap of every stage.
    GluedSeams,
    /// A seam may lie where NFC composes.
    ComposedSeams,
    /// A seam may lie inside a normalized added token.
    LateSeams,
    /// A seam may lie in blanks that an `lstrip` token may take.
    BlankSeams,
    /// A seam may lie where merges join.
    JoinedSeams,
    /// The rest of a word is encoded like a word.
    RestIsWhole,
}

impl CutPolicy {
    /// Whether any text can be cut at all.
    pub fn has_cuts(&self) -> bool {
        self.raw.is_some() || self.normalized.is_some() || self.seams.is_some()
    }

    /// The cuts of `text` from `from` on, which must be a cut itself (0 is one).
    ///
    /// A cut at `from` itself is reported if an added token makes it one, not if it is a seam. O(bytes
    /// scanned).
    pub fn cuts<'p, 't>(&'p self, text: &'t str, from: usize) -> Cuts<'p, 't> {
        Cuts::new(self, text, from)
    }

    /// The closed segments of `text` from the cut `from` on, where the text begins with `opening`. What
    /// follows the last one is the open tail.
    pub fn segments<'p, 't>(
        &'p self,
        text: &'t str,
        from: usize,
        opening: Opening,
    ) -> Segments<'p, 't> {
        Segments::new(self, text, from, opening)
    }

    /// The first seam of `text` strictly between two ends of plain text that is `wanted`. That function
    /// is also told whether the seam is the first one of a line; before `lines` it is asked about no
    /// others.
    fn seam(
        &self,
        text: &str,
        from: usize,
        to: usize,
        lines: usize,
        mut wanted: impl FnMut(Cut, bool) -> bool,
    ) -> Option<Cut> {
        let seams = self.seams.as_ref()?;
        let kind = if seams.whole_words() {
            CutKind::Unjoined
        } else {
            CutKind::Parted
        };
        let cut = |(at, anchor)| Cut { at, anchor, kind };
        seams
            .find(text, from, to, lines, |at, anchor, line| {
                wanted(cut((at, anchor)), line)
            })
            .map(cut)
    }

    /// The frontier of the first `length` bytes of `text`: a raw match that starts before it is
    /// one in every text that begins with these bytes.
    pub fn frontier(&self, text: &[u8], length: usize) -> usize {
        if self.weakness == Weakness::NoFrontier {
            return length;
        }
        self.frontier.of(text, length)
    }

    /// How many bytes at most lie between the end of a common text and its frontier.
    pub fn hold_back(&self) -> usize {
        self.frontier.longest().saturating_sub(1)
    }

    /// Why cuts are not made where they might be expected.
    pub fn refusals(&self) -> &[String] {
        &self.refusals
    }

    /// Whether a cut with this anchor holds in a text with this frontier.
    pub(crate) fn transfers(&self, anchor: Option<usize>, frontier: usize) -> bool {
        match anchor {
            Some(anchor) => anchor < frontier || self.weakness == Weakness::NoAnchor,
            None => self.weakness == Weakness::NoAnchor,
        }
    }

    /// The same policy with another minimum for the length of a segment.
    #[must_use]
    pub fn with_min_segment(mut self, bytes: usize) -> Self {
        self.min_segment = bytes.max(1);
        self
    }
}

impl fmt::Display for CutPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = &self.pipeline;
        writeln!(
            f,
            "pipeline:      normalizer {}; pre-tokenizer {}; model {}",
            p.normalizer, p.pre_tokenizer, p.model
        )?;
        writeln!(
            f,
            "added tokens:  {} raw, {} normalized; lstrip {}, rstrip {}, single_word {}",
            p.raw, p.normalized, p.left_strips, p.right_strips, p.single_words
        )?;
        let kinds = match (&self.raw, &self.normalized) {
            (Some(_), Some(_)) => "start of raw and of normalized added tokens",
            (Some(_), None) => "start of raw added tokens",
            (None, Some(_)) => "start of normalized added tokens",
            (None, None) => "no added tokens",
        };
        let inside = match self.seams.as_ref().map(Seams::whole_words) {
            None => "",
            Some(false) => "; inside plain text between characters that every split parts",
            Some(true) => "; inside plain text between characters that no merge joins",
        };
        writeln!(f, "cuts:          {kinds}{inside}")?;
        writeln!(f, "hold-back:     at most {} bytes", self.hold_back())?;
        write!(
            f,
            "segments:      at least {} bytes, then by content",
            self.min_segment
        )?;
        for refusal in &self.refusals {
            write!(f, "\nno cuts:       {refusal}")?;
        }
        Ok(())
    }
}
