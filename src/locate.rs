//! Which message each token of a prompt belongs to.
//!
//! The renderer says which characters are which message's, [`places`](crate::places) where tokens begin.
//! A token belongs to the message in whose text it begins, also if it reaches beyond; what no loop over
//! messages wrote (a tool list at the head, a generation prompt) belongs to nobody: [`NOBODY`].
//! Cost: linear in tokens; only segments in which a message begins or ends are encoded with offsets.

use crate::places::Piece;
use crate::template::MessageSpan;

/// The message index of tokens outside of all messages.
pub const NOBODY: i32 = -1;

/// For each token of `pieces` the index of its message; `spans` are in the order of the text.
pub fn message_index(pieces: &[Piece], spans: &[MessageSpan]) -> Vec<i32> {
    let of = |place: usize| {
        let after = spans.partition_point(|(_, start, _)| *start <= place);
        let span = after.checked_sub(1).and_then(|at| spans.get(at));
        span.filter(|(_, _, end)| place < *end)
            .and_then(|(message, ..)| i32::try_from(*message).ok())
            .unwrap_or(NOBODY)
    };
    let mut index = Vec::new();
    for piece in pieces {
        match &piece.offsets {
            Some(offsets) => index.extend(offsets.iter().map(|(start, _)| of(*start))),
            // No message begins or ends in here.
            None => index.resize(index.len() + piece.tokens, of(piece.start)),
        }
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_belong_to_where_they_begin() {
        let spans = [(0, 2, 5), (2, 5, 9), (1, 12, 14)];
        let piece = |start, end, offsets: &[(usize, usize)]| Piece {
            start,
            end,
            tokens: offsets.len(),
            offsets: Some(offsets.to_vec()),
        };
        let plain = |start, end, tokens| Piece {
            start,
            end,
            tokens,
            offsets: None,
        };
        let pieces = [
            piece(0, 6, &[(0, 1), (1, 3), (3, 4), (4, 6)]),
            plain(6, 9, 2),
            piece(9, 13, &[(9, 10), (10, 12), (12, 13)]),
            plain(14, 20, 1),
        ];
        let expected = [-1, -1, 0, 0, 2, 2, -1, -1, 1, -1];
        assert_eq!(message_index(&pieces, &spans), expected);
        assert_eq!(message_index(&pieces, &[]), [NOBODY; 10]);
    }
}
