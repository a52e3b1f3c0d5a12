//! A pattern as a deterministic automaton over character classes.
//!
//! A backtracking engine tries the alternatives in order and takes the first that matches. The set of
//! all positions it could be at, *in that order of preference*, is a state of a deterministic
//! automaton: a transition moves all of them over one character, and when one of them has matched,
//! those it is preferred to are dropped (leftmost-first, as in RE2). Whether a position has matched
//! is decided when the next character is known, so a look at that character (`(?!\S)`, `$`) costs
//! nothing extra: the position is passed over the look or dropped at that moment. All of this needs
//! is that the pattern looks at nothing else, which its syntax guarantees.
//!
//! Matching costs one table lookup per character, with no backtracking and no worst case; for ASCII
//! characters the lookup of the class is part of it.

use std::collections::HashMap;

use super::Refusal;
use super::sets::Classes;
use super::syntax::Node;

/// A step of the pattern.
#[derive(Clone, Copy)]
enum Step {
    /// Over a character of a set, then on.
    Set(usize, usize),
    /// To either, the first preferred.
    Fork(usize, usize),
    /// On, if the next character allows it.
    Look {
        set: usize,
        negated: bool,
        at_end: bool,
        next: usize,
    },
    /// The pattern has matched.
    Match,
}

/// More states than this and the pattern is refused.
const MOST_STATES: usize = 4096;
const MOST_STEPS: usize = 8192;

/// In an entry of a table: the text read so far is a match. The rest is the next state.
pub(super) const MATCH: u16 = 1 << 15;
/// The state in which nothing can match any more.
pub(super) const DEAD: u16 = 0;
/// The state in which nothing has been read.
pub(super) const START: u16 = 1;

/// What a pattern does between a character of one class and one of another, whatever else the text
/// holds before the first and after the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seam {
    /// An attempt that has read the first may read the second, or depend on it.
    Crossed,
    /// None does, but both may lie in one gap between matches.
    Passed,
    /// None does, and one of the two is always in a match.
    Parted,
}

/// The automaton of one pattern.
#[derive(Debug)]
pub(super) struct Automaton {
    /// A row per state and an entry per class, the last being the end of the text.
    classes: Vec<u16>,
    width: usize,
    /// A row per state and an entry per ASCII character.
    ascii: Vec<[u16; 128]>,
}

impl Automaton {
    /// Compiles a pattern.
    pub(super) fn new(root: &Node, classes: &Classes) -> Result<Self, Refusal> {
        let mut program = vec![Step::Match];
        let start = compile(root, 0, &mut program)?;
        let width = classes.len() + 1;
        let mut states: Vec<Vec<usize>> = vec![Vec::new(), vec![start]];
        // A loop that the pattern begins with comes back to the position at the start, with something read:
        // that is a state of its own, so that nothing leads to the start.
        let mut known = HashMap::from([(Vec::new(), usize::from(DEAD))]);
        let mut table = Vec::new();
        let mut at = 0;
        while at < states.len() {
            for class in 0..width {
                let next_class = (class < classes.len()).then_some(class);
                let (matched, next) = advance(&program, &states[at], classes, next_class);
                let fresh = states.len();
                let id = match known.get(&next) {
                    Some(&id) => id,
                    None if fresh < MOST_STATES => {
                        known.insert(next.clone(), fresh);
                        states.push(next);
                        fresh
                    }
                    None => {
                        return Err(Refusal::new(
                            "the split pattern needs too many states".into(),
                        ));
                    }
                };
                // There are 4096 states at most.
                let id = id as u16;
                table.push(if matched { id | MATCH } else { id });
            }
            at += 1;
        }
        let mut ascii = vec![[0; 128]; states.len()];
        for (row, of_classes) in ascii.iter_mut().zip(table.chunks(width)) {
            for (entry, byte) in row.iter_mut().zip(0..) {
                *entry = of_classes[usize::from(classes.of_ascii(byte))];
            }
        }
        let automaton = Automaton {
            classes: table,
            width,
            ascii,
        };
        if automaton.row(START).iter().any(|entry| entry & MATCH != 0) {
            return Err(Refusal::new(
                "the split pattern matches the empty text".into(),
            ));
        }
        Ok(automaton)
    }

    fn row(&self, state: u16) -> &[u16] {
        &self.classes[usize::from(state) * self.width..][..self.width]
    }

    /// How many states there are.
    pub(super) fn rows(&self) -> usize {
        self.ascii.len()
    }

    /// The entry of an ASCII character in the row of a state.
    pub(super) fn step(&self, state: u16, byte: u8) -> u16 {
        self.ascii[usize::from(state)][usize::from(byte)]
    }

    /// Whether what was read up to a state is a match, whatever follows.
    pub(super) fn always_matches(&self, state: u16) -> bool {
        self.row(state).iter().all(|entry| entry & MATCH != 0)
    }

    /// The ASCII characters that lead into a state, if the text before each character that does is a
    /// match of the same attempt.
    pub(super) fn read_before(&self, state: u16) -> Option<Vec<u8>> {
        let leads = |entry: u16| entry & !MATCH == state;
        let mut entries = self.classes.iter().filter(|entry| leads(**entry));
        if !entries.all(|entry| entry & MATCH != 0) {
            return None;
        }
        let leading = (0..128).filter(|byte| {
            let mut rows = self.ascii.iter();
            rows.any(|row| leads(row[usize::from(*byte)]))
        });
        Some(leading.collect())
    }

    /// What happens between each two classes, row by row; see [`Seam`] and `cuts::seams` for the proof.
    ///
    /// *Crossed*: of all states that reading a character of the first class leads to, from whatever
    /// state, one stays alive over the second, or matches before it and not before the end of the text
    /// (or the other way round). If none does, every attempt that begins before the seam takes the same
    /// steps and ends in the same place as if the text ended there.
    ///
    /// *Parted*: the first class matches alone at the end of a text, so its character is never left in
    /// a gap: where no match covers it, one is attempted at it, and found. Or the second one matches
    /// alone before anything, so that the attempt at it is never in vain.
    pub(super) fn seams(&self) -> Vec<Seam> {
        let classes = self.width - 1;
        let next = |row: u16, class: usize| self.row(row)[class] & !MATCH;
        let matched = |row: u16, class: usize| self.row(row)[class] & MATCH != 0;
        let mut seams = Vec::with_capacity(classes * classes);
        for first in 0..classes {
            let mut entered: Vec<u16> = self
                .classes
                .chunks(self.width)
                .map(|row| row[first] & !MATCH)
                .filter(|&state| state != DEAD)
                .collect();
            entered.sort_unstable();
            entered.dedup();
            let alone = next(START, first);
            let first_matches = alone != DEAD && matched(alone, classes);
            for second in 0..classes {
                let crossed = entered.iter().any(|&state| {
                    next(state, second) != DEAD || matched(state, second) != matched(state, classes)
                });
                let alone = next(START, second);
                let second_matches =
                    alone != DEAD && (0..=classes).all(|class| matched(alone, class));
                seams.push(if crossed {
                    Seam::Crossed
                } else if first_matches || second_matches {
                    Seam::Parted
                } else {
                    Seam::Passed
                });
            }
        }
        seams
    }

    /// Where the match that starts at `from` ends.
    #[inline]
    pub(super) fn longest(&self, classes: &Classes, text: &str, from: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let mut at = from;
        let mut state = START;
        // No match is empty, so `from` stands for none.
        let mut end = from;
        while let Some(&byte) = bytes.get(at) {
            let (entry, length) = if byte < 128 {
                (self.ascii[usize::from(state)][usize::from(byte)], 1)
            } else {
                let c = text[at..].chars().next().unwrap_or_default();
                let class = usize::from(classes.of_char(c));
                (self.row(state)[class], c.len_utf8())
            };
            end = if entry & MATCH == 0 { end } else { at };
            state = entry & !MATCH;
            if state == DEAD {
                return (end > from).then_some(end);
            }
            at += length;
        }
        if self.row(state)[self.width - 1] & MATCH != 0 {
            end = at;
        }
        (end > from).then_some(end)
    }
}

/// Adds the steps of `node` in front of step `next`; returns where they begin.
fn compile(node: &Node, next: usize, program: &mut Vec<Step>) -> Result<usize, Refusal> {
    let mut add = |step| {
        program.push(step);
        program.len() - 1
    };
    let start = match node {
        Node::Set(set) => add(Step::Set(*set, next)),
        Node::Look {
            set,
            negated,
            at_end,
        } => add(Step::Look {
            set: *set,
            negated: *negated,
            at_end: *at_end,
            next,
        }),
        Node::Sequence(nodes) => {
            let mut next = next;
            for node in nodes.iter().rev() {
                next = compile(node, next, program)?;
            }
            next
        }
        Node::Alternation(nodes) => {
            let mut rest: Option<usize> = None;
            for node in nodes.iter().rev() {
                let first = compile(node, next, program)?;
                rest = Some(match rest {
                    None => first,
                    Some(rest) => {
                        program.push(Step::Fork(first, rest));
                        program.len() - 1
                    }
                });
            }
            rest.unwrap_or(next)
        }
        Node::Repeat { node, min, max } => {
            let mut next = next;
            if *max != Some(1) && node.may_be_empty() {
                // The crate's regex engine leaves a loop at a round that reads nothing, whatever else
                // there was to try; and which repeats are loops is its own affair.
                return Err(Refusal::new(
                    "the split pattern repeats what may be empty".into(),
                ));
            }
            if let Some(max) = max {
                // x{1,3} is x(x(x)?)?
                let end = next;
                for _ in *min..*max {
                    let more = compile(node, next, program)?;
                    program.push(Step::Fork(more, end));
                    next = program.len() - 1;
                }
            } else {
                let fork = add(Step::Fork(0, next));
                let more = compile(node, fork, program)?;
                program[fork] = Step::Fork(more, next);
                next = fork;
            }
            for _ in 0..*min {
                next = compile(node, next, program)?;
            }
            next
        }
    };
    if program.len() > MOST_STEPS {
        return Err(Refusal::new("the split pattern is too long".into()));
    }
    Ok(start)
}

/// Moves positions over a character of `class`, or to the end of the text. Returns whether one of
/// them has matched before that character, and the new positions, in order of preference.
fn advance(
    program: &[Step],
    positions: &[usize],
    classes: &Classes,
    class: Option<usize>,
) -> (bool, Vec<usize>) {
    let in_set = |set: usize| class.is_some_and(|class| classes.contains(class, set));
    let mut seen = vec![false; program.len()];
    let mut moved = Vec::new();
    let mut pending: Vec<usize> = positions.iter().rev().copied().collect();
    while let Some(position) = pending.pop() {
        if std::mem::replace(&mut seen[position], true) {
            continue;
        }
        match program[position] {
            Step::Match => return (true, moved),
            Step::Fork(first, second) => pending.extend([second, first]),
            Step::Look {
                set,
                negated,
                at_end,
                next,
            } => {
                let passes = match class {
                    Some(_) => in_set(set) != negated,
                    None => at_end,
                };
                if passes {
                    pending.push(next);
                }
            }
            Step::Set(set, next) => {
                if in_set(set) && !moved.contains(&next) {
                    moved.push(next);
                }
            }
        }
    }
    (false, moved)
}
