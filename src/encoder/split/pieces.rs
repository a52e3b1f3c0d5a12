//! The pieces of ASCII text, several at a time.
//!
//! [`Automaton::longest`] finds one match and stops: where it stops cannot be foreseen, and each piece
//! costs the processor a wrong guess. Here the automaton goes on. Where a match ends, its transition is
//! that of the next attempt over the same character, and says so with a flag; the flags of a block of
//! bytes are made into one number, and the pieces are read off it.
//!
//! Two ends of a match are known when a character is read behind which the attempt is dead:
//!
//! - *Here*: the text before the character is a match. The next attempt begins with it.
//! - *One before*: the text before the last character was a match, as `\s+(?!\S)` leaves the last blank
//!   to the word behind. That is known of a state if every transition into it says so. The next attempt
//!   begins with that last character; it must come to the same state for each that leads into this one.
//!
//! In all other cases the match ended where the last transition said so, and the attempt after it begins
//! there, from new. Where no attempt can begin, a gap does: it ends before a character that begins an
//! attempt which matches whatever follows. What is not ASCII and what is not known is left to the automaton.

use super::automaton::{Automaton, DEAD, MATCH, START};

/// One match ends before the last character.
const ENDS_BEFORE: u8 = 1;
/// One ends here: the bit behind, so that both are one number.
const ENDS_HERE: u8 = 2;
const ENDS: u8 = ENDS_BEFORE | ENDS_HERE;
/// What was read of the attempt at hand is a match.
const MATCHED: u8 = 4;
/// None of the above, or not known.
const STOP: u8 = 8;

/// An entry for each byte.
const ROW: usize = 256;
const ASCII: u8 = 128;
/// So many bytes are read before pieces are handed on.
const BLOCK: usize = 32;

/// The row of the state in which no attempt begins, which the automaton has no state for: that of the dead
/// one, which is never entered here.
const GAP: u16 = DEAD;

/// An automaton over ASCII text that does not stop at the end of a match.
#[derive(Debug)]
pub(super) struct Pieces {
    /// By state and byte, where the row of the next state begins.
    next: Box<[u16]>,
    flags: Box<[u8]>,
}

/// Up to where pieces are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The start of the next piece.
    pub(super) start: usize,
    /// No match begins between that and here.
    pub(super) at: usize,
}

impl Pieces {
    /// For a split that keeps gaps. None if there are too many states.
    pub(super) fn new(automaton: &Automaton) -> Option<Self> {
        let rows = automaton.rows();
        if rows > ROW {
            return None;
        }
        let mut pieces = Pieces {
            next: vec![0; rows * ROW].into(),
            flags: vec![STOP; rows * ROW].into(),
        };
        // There are at most 256 states.
        for state in 0..rows as u16 {
            let last = automaton.read_before(state);
            for byte in 0..ASCII {
                let (flags, next) = match state {
                    GAP => in_gap(automaton, byte),
                    state => in_attempt(automaton, last.as_deref(), state, byte),
                };
                let at = usize::from(state) * ROW + usize::from(byte);
                pieces.next[at] = next * ROW as u16;
                pieces.flags[at] = flags;
            }
        }
        Some(pieces)
    }

    /// Calls `piece` with the start and end of each piece from where pieces are known on.
    #[inline]
    pub(super) fn split(
        &self,
        text: &[u8],
        known: Known,
        mut piece: impl FnMut(usize, usize),
    ) -> Known {
        const BEGIN: u16 = START * ROW as u16;
        const BETWEEN: u16 = GAP * ROW as u16;
        let Known { mut start, mut at } = known;
        let mut state = if start < at { BETWEEN } else { BEGIN };
        let mut matched = start;
        loop {
            if state == BETWEEN {
                // Byte by byte, of which none waits for the one before.
                let row = &self.flags[usize::from(BETWEEN)..][..ROW];
                let mut rest = text[at..].iter();
                at += rest
                    .position(|byte| row[usize::from(*byte)] != 0)
                    .unwrap_or(text.len() - at);
            }
            let block = &text[at..text.len().min(at + BLOCK)];
            // Bit 0 stands for the place before the block.
            let mut ends = 0_u64;
            let mut stopped = None;
            for (offset, &byte) in block.iter().enumerate() {
                let entry = usize::from(state) + usize::from(byte);
                let flags = self.flags[entry];
                if flags & STOP != 0 {
                    stopped = Some((byte, offset));
                    break;
                }
                state = self.next[entry];
                ends |= u64::from(flags & ENDS) << offset;
                matched = if flags & MATCHED == 0 {
                    matched
                } else {
                    at + offset
                };
            }
            while ends != 0 {
                let end = at + ends.trailing_zeros() as usize - 1;
                piece(start, end);
                start = end;
                ends &= ends - 1;
            }
            let read = match stopped {
                None if block.len() == BLOCK => {
                    at += BLOCK;
                    continue;
                }
                None => block.len(),
                Some((0..ASCII, _)) if state != BETWEEN && matched > start => {
                    piece(start, matched);
                    start = matched;
                    at = matched;
                    state = BEGIN;
                    continue;
                }
                Some((_, offset)) => offset,
            };
            let at = if state == BETWEEN { at + read } else { start };
            return Known { start, at };
        }
    }
}

const UNKNOWN: (u8, u16) = (STOP, GAP);

/// What the first character of an attempt, or of a gap, leads to.
fn begin(automaton: &Automaton, byte: u8) -> u16 {
    match automaton.step(START, byte) {
        DEAD => GAP,
        state => state,
    }
}

/// What reading an ASCII character in a gap means.
fn in_gap(automaton: &Automaton, byte: u8) -> (u8, u16) {
    match begin(automaton, byte) {
        GAP => (0, GAP),
        state if automaton.always_matches(state) => (ENDS_HERE, state),
        _ => UNKNOWN,
    }
}

/// What it means in a state, where `last` is what [`Automaton::read_before`] says of it.
fn in_attempt(automaton: &Automaton, last: Option<&[u8]>, state: u16, byte: u8) -> (u8, u16) {
    let again = begin(automaton, byte);
    let entry = automaton.step(state, byte);
    match (entry & !MATCH, entry & MATCH != 0) {
        // Nothing was read before.
        (DEAD, false) if state == START => (0, GAP),
        (DEAD, true) => (ENDS_HERE | MATCHED, again),
        (DEAD, false) => {
            // From the start over the last character, and over this one.
            let mut ways =
                last.unwrap_or_default()
                    .iter()
                    .map(|&before| match begin(automaton, before) {
                        GAP => in_gap(automaton, byte),
                        state => in_attempt(automaton, None, state, byte),
                    });
            match ways.next() {
                Some((flags, next)) if ways.all(|way| way == (flags, next)) => {
                    (flags | ENDS_BEFORE, next)
                }
                _ => UNKNOWN,
            }
        }
        (next, true) => (MATCHED, next),
        (next, false) => (0, next),
    }
}
