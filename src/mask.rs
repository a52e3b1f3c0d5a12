//! Which tokens of a text `generation` tags wrote: the `assistant_masks` of transformers.
//!
//! Spans are in characters (`template/tracker.rs`), tokens have offsets in characters. There are two
//! rules, and both are repeated with their corners. Newer versions take every token that overlaps a
//! span, in one pass that trusts both to be in order. Older ones look for the token of a span's first
//! and of its last character and take what lies between: a character without a token ends the search
//! or takes the rest of the text, and of several tokens of one character the first counts. Cost:
//! linear in the text.

use crate::template::Span;

/// How the installed transformers goes from spans to tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Tokens that overlap a span.
    Overlap,
    /// Tokens from that of the first character to that of the last.
    Ends,
}

/// Which of the tokens with these `offsets` the `spans` cover. None where transformers raises.
pub fn mask(offsets: &[Span], spans: &[Span], rule: Rule) -> Option<Vec<bool>> {
    match rule {
        Rule::Overlap => Some(overlapping(offsets, spans)),
        Rule::Ends => between_ends(offsets, spans),
    }
}

fn overlapping(offsets: &[Span], spans: &[Span]) -> Vec<bool> {
    let mut mask = vec![false; offsets.len()];
    let mut spans = spans.iter().peekable();
    for (covered, (start, end)) in mask.iter_mut().zip(offsets) {
        while spans.next_if(|span| *start >= span.1).is_some() {}
        let Some(span) = spans.peek() else {
            break;
        };
        *covered = *end > span.0;
    }
    mask
}

fn between_ends(offsets: &[Span], spans: &[Span]) -> Option<Vec<bool>> {
    let token_of = first_tokens(offsets);
    let token_at = |character: usize| token_of.get(character).copied().flatten();
    let mut mask = vec![false; offsets.len()];
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

/// For each character the first token that holds it.
fn first_tokens(offsets: &[Span]) -> Vec<Option<usize>> {
    let length = offsets.iter().map(|(_, end)| *end).max().unwrap_or(0);
    let mut tokens = vec![None; length];
    for (token, (start, end)) in offsets.iter().enumerate() {
        for entry in tokens.get_mut(*start..*end).into_iter().flatten() {
            entry.get_or_insert(token);
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(offsets: &[Span], spans: &[Span], rule: Rule) -> Option<Vec<usize>> {
        let mask = mask(offsets, spans, rule)?;
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
        // Empty: nothing, or the token around it; at the very start transformers raises.
        assert_eq!(covered(&[(3, 3), (5, 5)]), Some(vec![]));
        assert_eq!(covered(&[(4, 4)]), Some(vec![3]));
        assert_eq!(covered(&[(0, 0)]), None);
    }
}
