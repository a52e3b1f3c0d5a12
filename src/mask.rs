//! Which tokens of a text `generation` tags wrote: the `assistant_masks` of transformers.
//!
//! Spans are in characters (`template/tracker.rs`), tokens have offsets in characters
//! ([`places`](crate::places)). There are two rules, and both are repeated with their corners. Newer
//! versions take every token that overlaps a span, in one pass that trusts both to be in order. Older
//! ones look for the token of a span's first and of its last character and take what lies between: a
//! character without a token ends the search or takes the rest of the text, and of several tokens of
//! one character the first counts. Cost: linear in tokens and in the characters whose offsets are known.

use crate::places::Piece;
use crate::template::Span;

/// How the installed transformers goes from spans to tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Tokens that overlap a span.
    Overlap,
    /// Tokens from that of the first character to that of the last.
    Ends,
}

/// Which tokens of the text in `pieces` the `spans` cover. None where transformers raises.
pub fn mask(pieces: &[Piece], spans: &[Span], rule: Rule) -> Option<Vec<bool>> {
    match rule {
        Rule::Overlap => Some(overlapping(pieces, spans)),
        Rule::Ends => between_ends(pieces, spans),
    }
}

fn tokens(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.tokens).sum()
}

fn overlapping(pieces: &[Piece], spans: &[Span]) -> Vec<bool> {
    let mut mask = Vec::with_capacity(tokens(pieces));
    let mut spans = spans.iter().peekable();
    let mut covers = |start: usize, end: usize| {
        while spans.next_if(|span| start >= span.1).is_some() {}
        spans.peek().is_some_and(|span| end > span.0)
    };
    for piece in pieces {
        match &piece.offsets {
            Some(offsets) => mask.extend(offsets.iter().map(|(start, end)| covers(*start, *end))),
            // No span begins or ends in here or at the borders: all tokens are as one.
            None if piece.tokens > 0 => {
                let covered = covers(piece.start, piece.end);
                mask.resize(mask.len() + piece.tokens, covered);
            }
            None => {}
        }
    }
    mask
}

fn between_ends(pieces: &[Piece], spans: &[Span]) -> Option<Vec<bool>> {
    let token_of = first_tokens(pieces);
    let token_at = |character: usize| {
        let piece = token_of.partition_point(|(start, _)| *start <= character);
        let (start, tokens) = token_of.get(piece.checked_sub(1)?)?;
        tokens.get(character - start).copied().flatten()
    };
    let mut mask = vec![false; tokens(pieces)];
    for (start, end) in spans {
        let first = token_at(*start);
        let last = token_at(end.checked_sub(1)?);
        let Some(first) = first else {
            break;
        };
        let stop = match last {
            None | Some(0) => mask.len(),
            Some(last) => last + 1,
        };
        if let Some(covered) = mask.get_mut(first..stop) {
            covered.fill(true);
        }
    }
    Some(mask)
}

/// For each piece with offsets: where it starts, and for each of its characters the first token that
/// holds it.
fn first_tokens(pieces: &[Piece]) -> Vec<(usize, Vec<Option<usize>>)> {
    let mut found = Vec::new();
    let mut before = 0;
    for piece in pieces {
        if let Some(offsets) = &piece.offsets {
            let mut tokens = vec![None; piece.end - piece.start];
            for (token, (start, end)) in offsets.iter().enumerate() {
                let (start, end) = (
                    start.saturating_sub(piece.start),
                    end.saturating_sub(piece.start),
                );
                let end = end.min(tokens.len());
                for entry in tokens.get_mut(start..end).into_iter().flatten() {
                    entry.get_or_insert(before + token);
                }
            }
            found.push((piece.start, tokens));
        }
        before += piece.tokens;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(offsets: &[Span], spans: &[Span], rule: Rule) -> Option<Vec<usize>> {
        let piece = |start, end, tokens, offsets| Piece {
            start,
            end,
            tokens,
            offsets,
        };
        let mask = mask(
            &[piece(0, 6, offsets.len(), Some(offsets.to_vec()))],
            spans,
            rule,
        )?;
        // Text around that no span touches changes nothing.
        let moved = |by: usize, spans: &[Span]| -> Vec<Span> {
            spans.iter().map(|(a, b)| (a + by, b + by)).collect()
        };
        let around = [
            piece(0, 9, 3, None),
            piece(9, 15, offsets.len(), Some(moved(9, offsets))),
            piece(15, 20, 2, None),
        ];
        let wider = super::mask(&around, &moved(9, spans), rule)?;
        if rule == Rule::Overlap {
            assert_eq!(wider[3..8], mask);
            assert_eq!([&wider[..3], &wider[8..]].concat(), [false; 5]);
        }
        Some((0..mask.len()).filter(|i| mask[*i]).collect())
    }

    /// Two tokens of one character, a gap, and a token of two characters.
    const OFFSETS: [Span; 5] = [(0, 1), (1, 2), (1, 2), (3, 5), (5, 6)];

    #[test]
    fn overlap_takes_every_token_that_a_span_touches() {
        let covered = |spans: &[Span]| covered(&OFFSETS, spans, Rule::Overlap);
        assert_eq!(covered(&[(1, 2)]), Some(vec![1, 2]));
        assert_eq!(covered(&[(4, 5), (5, 6)]), Some(vec![3, 4]));
        assert_eq!(covered(&[(2, 3)]), Some(vec![]));
        // An empty span in a token covers it, one at its start does not.
        assert_eq!(covered(&[(4, 4)]), Some(vec![3]));
        assert_eq!(covered(&[(3, 3)]), Some(vec![]));
        // Out of order: the first span has to end before the second is looked at.
        assert_eq!(covered(&[(5, 6), (0, 1)]), Some(vec![4]));
    }

    #[test]
    fn ends_take_what_lies_between_two_tokens() {
        let covered = |spans: &[Span]| covered(&OFFSETS, spans, Rule::Ends);
        assert_eq!(covered(&[(1, 2)]), Some(vec![1]));
        assert_eq!(covered(&[(4, 6)]), Some(vec![3, 4]));
        // The first token as the last one, and a last character without a token: all the rest.
        assert_eq!(covered(&[(0, 1)]), Some(vec![0, 1, 2, 3, 4]));
        assert_eq!(covered(&[(1, 3)]), Some(vec![1, 2, 3, 4]));
        // A first character without one: the spans behind it are not looked at.
        assert_eq!(covered(&[(5, 6), (2, 4), (3, 4)]), Some(vec![4]));
        assert_eq!(covered(&[(9, 10)]), Some(vec![]));
        // Empty: nothing, the token around it, or the rest behind a gap; at the start transformers raises.
        assert_eq!(covered(&[(5, 5)]), Some(vec![]));
        assert_eq!(covered(&[(3, 3)]), Some(vec![3, 4]));
        assert_eq!(covered(&[(4, 4)]), Some(vec![3]));
        assert_eq!(covered(&[(0, 0)]), None);
    }
}
