//! Where in a text its tokens are, as far as somebody asks.
//!
//! Offsets cost much more than ids: only the `tokenizers` crate knows them, and to say them in
//! characters it keeps a table of all bytes of the text. But whoever wants to know which tokens lie in
//! a few spans has to look closely only where a span begins or ends. So a text is taken apart at its
//! cuts. A part with such a place in it, or at its border, is encoded by the crate, with offsets;
//! what lies between is encoded as any text, and of its tokens only the number is told. Cuts at added
//! tokens serve for that; behind others the crate cannot be asked for the rest of a word.
//!
//! *Why a part's offsets are those of the whole text.* Behind a cut the crate goes through the same
//! pieces as in the whole text ([`cuts`](crate::cuts)), and a piece's offsets are its own, moved by its
//! place. What else looks at a position is left out: tokens with `rstrip`, whose piece may reach beyond
//! a cut, and post-processors that treat a blank at offset 0 in a special way. Offsets that are not in
//! order or beyond the part, as the crate gives where it cannot convert one, and pipelines that the
//! fast encoder does not understand: then the whole text is encoded with offsets.

use crate::cuts::{Cut, CutKind, CutPolicy};
use crate::encoder::{Encoder, Encoders, Offsets};
use crate::error::Error;

/// A run of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where its text begins, in characters.
    pub start: usize,
    /// Where its text ends.
    pub end: usize,
    /// How many tokens it has.
    pub tokens: usize,
    /// Where they are; None if every place that was asked for lies before `start` or behind `end`.
    pub offsets: Option<Vec<Offsets>>,
}

/// The ids of a text, and where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// The ids of the whole text.
    pub ids: Vec<u32>,
    /// Runs of them, one behind the other.
    pub pieces: Vec<Piece>,
}

/// The characters where spans begin and end, sorted: what to ask for to know which tokens lie in them.
pub fn borders(spans: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut borders: Vec<usize> = spans.flat_map(|(start, end)| [start, end]).collect();
    borders.sort_unstable();
    borders
}

/// The ids of `text`, and where they are around the characters `asked` for, which are sorted.
///
/// # Errors
/// If the backend refuses the text.
pub fn places(
    encoders: &Encoders,
    policy: &CutPolicy,
    text: &str,
    asked: &[usize],
) -> Result<Placed, Error> {
    let local = encoders.fast().is_ok() && encoders.oracle().has_local_offsets();
    if local && policy.has_cuts() {
        let is_token = |cut: &Cut| matches!(cut.kind, CutKind::Raw | CutKind::Normalized);
        let cuts = policy.cuts(text, 0).filter(is_token).map(|cut| cut.at);
        if let Some(placed) = by_cuts(encoders, text, cuts.chain([text.len()]), asked)? {
            return Ok(placed);
        }
    }
    let (ids, offsets) = encoders.oracle().encode_with_offsets(text)?;
    let piece = Piece {
        start: 0,
        end: text.chars().count(),
        tokens: ids.len(),
        offsets: Some(offsets),
    };
    Ok(Placed {
        ids,
        pieces: vec![piece],
    })
}

fn by_cuts(
    encoders: &Encoders,
    text: &str,
    ends: impl Iterator<Item = usize>,
    asked: &[usize],
) -> Result<Option<Placed>, Error> {
    let mut placed = Placed::default();
    // What nobody asks for: where it begins.
    let mut plain = 0;
    let (mut start, mut first) = (0, 0);
    for end in ends {
        if end <= start {
            continue;
        }
        let part = &text[start..end];
        let last = first + part.chars().count();
        let next = asked.partition_point(|place| *place < first);
        if asked.get(next).is_some_and(|place| *place <= last) {
            placed.add_plain(encoders, &text[plain..start], first)?;
            let (ids, mut offsets) = encoders.oracle().encode_with_offsets(part)?;
            if !in_order(&offsets, last - first) {
                return Ok(None);
            }
            for (from, to) in &mut offsets {
                *from += first;
                *to += first;
            }
            placed.add(ids.len(), last, Some(offsets));
            placed.ids.extend(ids);
            plain = end;
        }
        (start, first) = (end, last);
    }
    placed.add_plain(encoders, &text[plain..start], first)?;
    Ok(Some(placed))
}

impl Placed {
    /// A text that nobody asks for, and that ends at the character `end`.
    fn add_plain(&mut self, encoders: &Encoders, text: &str, end: usize) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        let before = self.ids.len();
        encoders.encode(text, &mut self.ids)?;
        self.add(self.ids.len() - before, end, None);
        Ok(())
    }

    fn add(&mut self, tokens: usize, end: usize, offsets: Option<Vec<Offsets>>) {
        self.pieces.push(Piece {
            start: self.pieces.last().map_or(0, |piece| piece.end),
            end,
            tokens,
            offsets,
        });
    }
}

fn in_order(offsets: &[Offsets], length: usize) -> bool {
    let mut before = 0;
    offsets.iter().all(|(from, to)| {
        let ordered = before <= *from && from <= to && *to <= length;
        before = *from;
        ordered
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Byte-level, with two merges and one added token.
    fn backend(rstrip: bool) -> String {
        let is_shown = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
        let shown = (0..=255).filter(is_shown).map(char::from);
        let others = (256..).filter_map(char::from_u32).take(68);
        let letters = shown.chain(others).map(String::from);
        let tokens = letters.chain(["ab".to_owned(), "\u{120}ab".to_owned()]);
        let vocab: serde_json::Map<_, _> = tokens.zip((0..).map(Value::from)).collect();
        let byte_level = json!({
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true,
        });
        let added = json!({
            "id": vocab.len(), "content": "<|a|>", "special": true, "normalized": false,
            "single_word": false, "lstrip": false, "rstrip": rstrip,
        });
        let model = json!({
            "type": "BPE", "vocab": vocab, "merges": ["a b", "\u{120} ab"], "dropout": null,
            "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
        });
        let backend = json!({
            "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
            "decoder": null, "added_tokens": [added], "pre_tokenizer": byte_level,
            "post_processor": byte_level, "model": model,
        });
        backend.to_string()
    }

    fn text() -> String {
        let turns = ["ab é", " a ", "é", "ab"].map(|words| words.repeat(90));
        turns.map(|turn| format!("<|a|>{turn}")).concat()
    }

    #[test]
    fn offsets_are_those_of_the_whole_text() -> Result<(), Error> {
        let (encoders, text) = (Encoders::from_json(&backend(false))?, text());
        let policy = CutPolicy::of(&encoders)?;
        let (ids, offsets) = encoders.oracle().encode_with_offsets(&text)?;
        let length = text.chars().count();
        for asked in (0..=length).step_by(7) {
            let Placed { ids: found, pieces } = places(&encoders, &policy, &text, &[asked])?;
            assert_eq!(found, ids);
            assert!(pieces.len() > 1, "the whole text was encoded with offsets");
            let (mut before, mut end) = (0, 0);
            for piece in &pieces {
                assert_eq!(piece.start, end);
                end = piece.end;
                let is_asked = (piece.start..=piece.end).contains(&asked);
                assert_eq!(piece.offsets.is_some(), is_asked);
                if let Some(own) = &piece.offsets {
                    assert_eq!(own[..], offsets[before..before + piece.tokens]);
                }
                before += piece.tokens;
            }
            assert_eq!((before, end), (ids.len(), length));
        }
        Ok(())
    }

    #[test]
    fn borders_are_sorted() {
        assert_eq!(
            borders([(2, 9), (5, 5), (1, 3)].into_iter()),
            [1, 2, 3, 5, 5, 9]
        );
    }

    #[test]
    fn a_token_that_swallows_blanks_makes_the_text_one_piece() -> Result<(), Error> {
        let (encoders, text) = (Encoders::from_json(&backend(true))?, text());
        let policy = CutPolicy::of(&encoders)?;
        assert_eq!(places(&encoders, &policy, &text, &[3])?.pieces.len(), 1);
        Ok(())
    }
}
