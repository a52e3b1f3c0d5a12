//! Pre-tokenization at the speed of a table lookup per character.
//!
//! A [`Splitter`] does what a `Split` of the `tokenizers` crate does with a regex: it divides a text
//! into the matches and what lies between them. The crate runs Oniguruma, builds an alignment
//! of every byte with its origin, and cuts it at every match. Here the pattern becomes a small
//! deterministic automaton over character classes ([`automaton`]); which characters belong to which
//! class is asked of the crate's own regex engine ([`sets`]), so no second Unicode table takes part.
//! Over ASCII text it goes on from match to match ([`pieces`]).
//! A pattern that the automaton cannot express is refused ([`syntax`]).

mod automaton;
mod pieces;
mod sets;
mod syntax;

use std::fmt;

use automaton::Automaton;
pub(crate) use automaton::Seam;
use pieces::{Known, Pieces};
use sets::{Classes, Set};
use syntax::Node;

/// Why a backend is not encoded by the fast encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl Refusal {
    /// A refusal that reads as a clause: "the model is a Unigram".
    pub(super) fn new(why: String) -> Self {
        Refusal(why)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What becomes of the text between two matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gaps {
    /// Each is a piece.
    Kept,
    /// They are left out.
    Dropped,
}

/// One stage of pre-tokenization.
#[derive(Debug)]
pub(crate) struct Splitter {
    automaton: Automaton,
    pieces: Option<Pieces>,
    classes: Classes,
    gaps: Gaps,
    /// What happens between each two classes.
    seams: Vec<Seam>,
}

impl Splitter {
    /// Splits at the matches of a regex, each match being a piece.
    pub(super) fn new(pattern: &str, gaps: Gaps) -> Result<Self, Refusal> {
        let pattern = syntax::parse(pattern)?;
        let sets: Vec<Set> = pattern.sets.into_iter().map(Set::Regex).collect();
        Self::of(&pattern.root, &sets, gaps)
    }

    /// Splits at digits: each numeric character is a piece, or each run of them.
    pub(super) fn digits(individual: bool) -> Result<Self, Refusal> {
        let max = individual.then_some(1);
        let run = Node::Repeat {
            node: Box::new(Node::Set(0)),
            min: 1,
            max,
        };
        Self::of(&run, &[Set::Numeric], Gaps::Kept)
    }

    fn of(root: &Node, sets: &[Set], gaps: Gaps) -> Result<Self, Refusal> {
        let classes = Classes::of(sets)?;
        let automaton = Automaton::new(root, &classes)?;
        let mut seams = automaton.seams();
        if gaps == Gaps::Dropped {
            // Of a gap that is left out, both parts are.
            for seam in seams.iter_mut().filter(|seam| **seam == Seam::Passed) {
                *seam = Seam::Parted;
            }
        }
        Ok(Splitter {
            pieces: match gaps {
                Gaps::Kept => Pieces::new(&automaton),
                Gaps::Dropped => None,
            },
            automaton,
            classes,
            gaps,
            seams,
        })
    }

    /// What this stage does between two neighbouring characters.
    pub(crate) fn seam(&self, first: char, second: char) -> Seam {
        let row = usize::from(self.classes.of_char(first)) * self.classes.len();
        self.seams[row + usize::from(self.classes.of_char(second))]
    }

    /// Calls `piece` with the start and end of every piece of `text`, left to right.
    #[inline]
    pub(super) fn split(&self, text: &str, mut piece: impl FnMut(usize, usize)) {
        let bytes = text.as_bytes();
        let mut at = 0;
        let mut gap = 0;
        while at < text.len() {
            if let Some(pieces) = &self.pieces
                && bytes[at].is_ascii()
            {
                let known = pieces.split(bytes, Known { start: gap, at }, &mut piece);
                (gap, at) = (known.start, known.at);
                if at == text.len() {
                    break;
                }
            }
            match self.automaton.longest(&self.classes, text, at) {
                Some(end) => {
                    if gap < at && self.gaps == Gaps::Kept {
                        piece(gap, at);
                    }
                    piece(at, end);
                    at = end;
                    gap = end;
                }
                None => at += text[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        if gap < at && self.gaps == Gaps::Kept {
            piece(gap, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
    use tokenizers::{OffsetReferential, OffsetType};
    use tokenizers::{PreTokenizedString, PreTokenizer, SplitDelimiterBehavior};

    use super::{Gaps, Splitter};

    fn ours(splitter: &Splitter, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        splitter.split(text, |a, b| pieces.push(text[a..b].to_owned()));
        pieces
    }

    fn theirs(split: &impl PreTokenizer, text: &str) -> Vec<String> {
        let mut pieces = PreTokenizedString::from(text);
        split.pre_tokenize(&mut pieces).expect("pieces");
        pieces
            .get_splits(OffsetReferential::Original, OffsetType::Byte)
            .into_iter()
            .map(|(piece, _, _)| piece.to_owned())
            .collect()
    }

    /// Numbers below what is asked for, the same ones at each run.
    fn numbers(mut state: u64) -> impl FnMut(usize) -> usize {
        move |below| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        }
    }

    const PATTERNS: [&str; 13] = [
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        r"[\p{Han}]+|[\p{Lu}&&[^\p{Han}]]*[\p{L}\p{M}&&[^\p{Han}]]+|\p{N}{1,3}|\s+(?!\S)|\s",
        r"\s+$",
        r"\s?\p{P}+",
        r"a(b|ba)*(?=c)|ab|(?:a|b){2,}c?",
        r"x{2}|x{3,5}y|(?i:kt)+",
        r"[^\n]\n?$|\n\n",
        r"\s*\n",
        r"\s*[\r\n]+",
        r"\S*[^\r\n\p{L}\p{N}]+",
        r"x(?:a?|b)?c?",
    ];

    const ALPHABET: [&str; 40] = [
        " ", " ", "\n", "\r", "\t", "\u{a0}", "\u{2028}", "\u{3000}", "a", "b", "c", "x", "y", "A",
        "B", "Z", "ab", "'", "'S", "'ſ", "'Re", "K", "t", "0", "7", "½", "٣", "é", "e\u{301}", "ß",
        "ǅ", "漢", "字", "か", "한", "\u{200d}", "👩", "!", "/", "_",
    ];

    #[test]
    fn pieces_are_those_of_the_crate() {
        let mut below = numbers(7);
        for pattern in PATTERNS {
            for (gaps, behavior, invert) in [
                (Gaps::Kept, SplitDelimiterBehavior::Isolated, false),
                (Gaps::Dropped, SplitDelimiterBehavior::Removed, true),
            ] {
                let splitter = Splitter::new(pattern, gaps).expect(pattern);
                let split = Split::new(SplitPattern::Regex(pattern.into()), behavior, invert)
                    .expect(pattern);
                for _ in 0..2_000 {
                    let text: String = (0..below(14)).map(|_| ALPHABET[below(40)]).collect();
                    assert_eq!(
                        ours(&splitter, &text),
                        theirs(&split, &text),
                        "{pattern}: {text:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn ascii_pieces_are_those_of_one_match_after_the_other() {
        let ascii: Vec<&str> = ALPHABET
            .into_iter()
            .filter(|unit| unit.is_ascii())
            .collect();
        let mut below = numbers(11);
        for pattern in PATTERNS {
            let splitter = Splitter::new(pattern, Gaps::Kept).expect(pattern);
            let plain = Splitter {
                pieces: None,
                ..Splitter::new(pattern, Gaps::Kept).expect(pattern)
            };
            assert!(splitter.pieces.is_some());
            for number in 0..2_000 {
                // Runs of one character, blocks and their borders, now and then something else.
                let mut text = String::new();
                for _ in 0..below(60) {
                    let unit = match below(40) {
                        0 if number % 2 == 0 => ALPHABET[below(40)],
                        _ => ascii[below(ascii.len())],
                    };
                    text.extend(std::iter::repeat_n(unit, 1 + below(20) / 16 * below(50)));
                }
                assert_eq!(
                    ours(&splitter, &text),
                    ours(&plain, &text),
                    "{pattern}: {text:?}"
                );
            }
        }
    }

    #[test]
    fn digits_are_those_of_the_crate() {
        for individual in [true, false] {
            let splitter = Splitter::digits(individual).expect("digits");
            let theirs_ = tokenizers::pre_tokenizers::digits::Digits::new(individual);
            for text in ["", "a12b", "1", "½٣ x 12", "abc"] {
                assert_eq!(ours(&splitter, text), theirs(&theirs_, text), "{text}");
            }
        }
    }

    #[test]
    fn an_empty_match_is_refused() {
        for pattern in ["a*", "(?!a)", "a?|b", ""] {
            assert!(Splitter::new(pattern, Gaps::Kept).is_err(), "{pattern}");
        }
    }

    #[test]
    fn a_loop_over_what_may_be_empty_is_refused() {
        for pattern in [
            r"x(?:a?|b)+",
            r"x(?: ?|b)*",
            r"x(?:a*b*){2,}",
            r"x(?:(?!a)|b)+",
            r"(?:x?| ){3}x",
        ] {
            assert!(Splitter::new(pattern, Gaps::Kept).is_err(), "{pattern}");
        }
    }

    #[test]
    fn a_loop_at_the_start_forgets_no_match() {
        for (pattern, text, pieces) in [
            (r"\s*\n", "_\n Z", ["_", "\n", " Z"]),
            (r"\s*[\r\n]+", "x\n  y", ["x", "\n", "  y"]),
        ] {
            let splitter = Splitter::new(pattern, Gaps::Kept).expect(pattern);
            assert_eq!(ours(&splitter, text), pieces, "{pattern}");
        }
    }

    #[test]
    fn a_long_run_needs_no_stack() {
        let splitter = Splitter::new(PATTERNS[0], Gaps::Kept).expect("a splitter");
        let text = " ".repeat(1 << 20);
        assert_eq!(ours(&splitter, &text).len(), 1);
    }
}
