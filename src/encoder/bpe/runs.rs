//! Runs of spaces that no merge reaches out of, like the indentation of code.
//!
//! Where a whole text is one word, `return` and the twelve spaces before it are one part to
//! [`joins`](super::joins): a token holds a space and a letter side by side. So each depth of indentation
//! makes another part of the same word, to be merged anew. Some vocabularies prove that it is two:
//!
//! Take a part `sⁿy`, where `s` is the space and `y` is not empty and does not begin with one. Each id has one
//! spelling. The first merge over the place
//! between the two would join `sᵏ`, the last token of the run, with a token that begins like `y`. If all
//! merges of two runs of spaces have lower ranks than all merges of such a kind, it is made when no two
//! runs are left to merge: then the run has become what it becomes alone, since no merge reached into
//! it, and the leftmost of equals is the same with and without `y`. So if no rule joins what `sⁿ` alone ends
//! with and a token that begins with no space, there is no such merge, and both sides become what they
//! become alone. ∎
//!
//! Which lengths of runs that holds for is worked out once, when the vocabulary is loaded.

use super::pairs::Rule;

/// Longest run that is looked at.
const LONGEST: usize = 63;

/// A bit for each length of a run that may be taken off what follows it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runs(u64);

/// What a token is to a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Spaces only.
    Run,
    /// It begins with a space.
    Led,
    /// It begins with something else.
    Other,
}

impl Runs {
    /// Of a vocabulary's tokens, with their bytes, and its rules by rank; `last` is what so many spaces
    /// alone end with.
    pub(super) fn of<'t>(
        tokens: impl Iterator<Item = (&'t [u8], u32)>,
        rules: &[Rule],
        mut last: impl FnMut(usize) -> Option<u32>,
    ) -> Self {
        let mut sides = Vec::new();
        for (token, id) in tokens {
            let id = id as usize;
            if sides.len() <= id {
                // What has no bytes here may begin with anything.
                sides.resize(id + 1, Side::Other);
            }
            sides[id] = match token.iter().position(|byte| *byte != b' ') {
                None => Side::Run,
                Some(0) => Side::Other,
                Some(_) => Side::Led,
            };
        }
        let side = |id: u32| sides.get(id as usize).copied().unwrap_or(Side::Other);
        let mut within = 0;
        let mut across = usize::MAX;
        let mut crossing = Vec::new();
        for (rank, rule) in rules.iter().enumerate() {
            match (side(rule.left), side(rule.right)) {
                (Side::Run, Side::Run) => within = rank,
                (Side::Run, Side::Other) => {
                    across = across.min(rank);
                    crossing.push(rule.left);
                }
                _ => {}
            }
        }
        if within >= across {
            return Runs::default();
        }
        let mut lengths = 0;
        for length in 2..=LONGEST {
            if last(length).is_some_and(|id| !crossing.contains(&id)) {
                lengths |= 1 << length;
            }
        }
        Runs(lengths)
    }

    /// How many spaces at the beginning of a part are a part of their own; 0 if none are.
    #[inline]
    pub(super) fn leading(self, part: &[u8]) -> usize {
        match part {
            [b' ', b' ', ..] => self.length(part),
            _ => 0,
        }
    }

    fn length(self, part: &[u8]) -> usize {
        let length = part.iter().take_while(|byte| **byte == b' ').count();
        let apart = length < part.len() && length <= LONGEST && self.0 >> length & 1 == 1;
        if apart { length } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::{Rule, Runs};

    /// The rule, as it is written.
    fn merged(word: &[u32], rules: &[Rule]) -> Vec<u32> {
        let mut word = word.to_vec();
        loop {
            let rank = |pair: &[u32]| rules.iter().position(|r| [r.left, r.right] == *pair);
            let ranks = word.windows(2).enumerate();
            let lowest = ranks.filter_map(|(at, pair)| Some((rank(pair)?, at))).min();
            let Some((rank, at)) = lowest else {
                return word;
            };
            word[at] = rules[rank].id;
            word.remove(at + 1);
        }
    }

    #[test]
    fn a_run_that_is_taken_off_becomes_what_it_is_alone() {
        let mut state = 7_u64;
        let mut below = |n: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        let mut taken = 0;
        for _ in 0..4000 {
            let mut tokens: Vec<Vec<u8>> = [b" ", b"a", b"b"].map(|s| s.to_vec()).into();
            let mut rules: Vec<Rule> = Vec::new();
            let spaces = below(4);
            for round in 0..spaces + below(12) {
                // Mostly spaces first, as vocabularies have it for which this was made.
                let own = |token: &Vec<u8>| round >= spaces || token.iter().all(|b| *b == b' ');
                let sides: Vec<usize> = (0..tokens.len()).filter(|t| own(&tokens[*t])).collect();
                let (left, right) = (sides[below(sides.len())], sides[below(sides.len())]);
                let token = [&tokens[left][..], &tokens[right]].concat();
                let id = tokens.iter().position(|t| *t == token);
                let id = id.unwrap_or_else(|| {
                    tokens.push(token);
                    tokens.len() - 1
                });
                let pair = (left as u32, right as u32);
                if token_is_short(&tokens[id]) && rules.iter().all(|r| (r.left, r.right) != pair) {
                    let at = if below(8) == 0 {
                        below(rules.len() + 1)
                    } else {
                        rules.len()
                    };
                    let (left, right) = pair;
                    rules.insert(
                        at,
                        Rule {
                            left,
                            right,
                            id: id as u32,
                        },
                    );
                }
            }
            let listed = tokens.iter().zip(0..).map(|(token, id)| (&**token, id));
            let runs = Runs::of(listed, &rules, |n| {
                merged(&vec![0; n], &rules).last().copied()
            });
            for length in 2..8 {
                for _ in 0..6 {
                    let mut text = vec![0; length];
                    text.push(1 + below(2) as u32);
                    text.extend((0..below(5)).map(|_| below(3) as u32));
                    let bytes: Vec<u8> = text.iter().map(|id| b" ab"[*id as usize]).collect();
                    let run = runs.leading(&bytes);
                    if run > 0 {
                        assert_eq!(run, length);
                        let [before, behind] = [&text[..run], &text[run..]];
                        let apart = [merged(before, &rules), merged(behind, &rules)].concat();
                        assert_eq!(
                            merged(&text, &rules),
                            apart,
                            "{rules:?} {tokens:?} {text:?}"
                        );
                        taken += 1;
                    }
                }
            }
        }
        assert!(taken > 5000, "{taken}");
    }

    fn token_is_short(token: &[u8]) -> bool {
        token.len() < 7
    }

    #[test]
    fn ranks_and_rules_decide() {
        let tokens: [(&[u8], u32); 4] = [(b" ", 0), (b"a", 1), (b"  ", 2), (b" a", 3)];
        let rule = |left, right, id| Rule { left, right, id };
        let (spaces, led) = (rule(0, 0, 2), rule(0, 1, 3));
        let of = |rules: &[Rule]| {
            let last = |n: usize| merged(&vec![0; n], rules).last().copied();
            Runs::of(tokens.into_iter(), rules, last)
        };
        let runs = of(&[spaces, led]);
        // Of three spaces one is left, which a letter takes.
        let found = ["  a", "   a", "    a", "  ", " a", "a  a", "     "];
        let found = found.map(|part| runs.leading(part.as_bytes()));
        assert_eq!(found, [2, 0, 4, 0, 0, 0, 0]);
        assert_eq!(of(&[led, spaces]).leading(b"  a"), 0);
    }
}
