//! The part of Oniguruma's syntax that a [`Splitter`](super::Splitter) runs, and nothing else.
//!
//! Split patterns of tokenizers are alternations of short sequences of character sets with greedy
//! quantifiers, now and then with a look at the next character: `(?!\S)`, `$`. That much is read
//! here; everything else (look-behind, anchors, lazy or possessive quantifiers, back-references,
//! `.`) is refused with its name, and the pattern stays with the `tokenizers` crate. What a set
//! contains is not read at all: its source is kept and the regex engine of that crate is asked
//! (see [`sets`](super::sets)).

use super::Refusal;

/// A pattern, as a tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// One character of a set, by index into [`Pattern::sets`].
    Set(usize),
    /// One after another.
    Sequence(Vec<Node>),
    /// The first that matches.
    Alternation(Vec<Node>),
    /// `min` times, then as often as it goes, up to `max`.
    Repeat {
        node: Box<Node>,
        min: u32,
        max: Option<u32>,
    },
    /// Nothing, if the next character is in the set (or is not, if `negated`); at the end of the
    /// text if `at_end`.
    Look {
        set: usize,
        negated: bool,
        at_end: bool,
    },
}

impl Node {
    /// Whether it may match without reading a character.
    pub(super) fn may_be_empty(&self) -> bool {
        match self {
            Node::Set(_) => false,
            Node::Sequence(nodes) => nodes.iter().all(Node::may_be_empty),
            Node::Alternation(nodes) => nodes.iter().any(Node::may_be_empty),
            Node::Repeat { node, min, .. } => *min == 0 || node.may_be_empty(),
            Node::Look { .. } => true,
        }
    }
}

/// A pattern with the sources of its sets.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) root: Node,
    /// Distinct sources of sets: each matches exactly one character.
    pub(super) sets: Vec<String>,
}

/// Times a part may be repeated: `\p{N}{1,3}` is common, `{1000}` would only make a huge automaton.
const MOST_REPEATS: u32 = 64;
const DEEPEST: usize = 32;

/// Reads a pattern.
pub(super) fn parse(source: &str) -> Result<Pattern, Refusal> {
    let mut parser = Parser {
        rest: source,
        sets: Vec::new(),
        depth: 0,
    };
    let root = parser.alternation(false)?;
    match parser.rest.chars().next() {
        None => Ok(Pattern {
            root,
            sets: parser.sets,
        }),
        Some(c) => Err(refused(&format!("an unbalanced {c:?}"))),
    }
}

fn refused(what: &str) -> Refusal {
    Refusal::new(format!("the split pattern has {what}"))
}

struct Parser<'s> {
    rest: &'s str,
    sets: Vec<String>,
    depth: usize,
}

impl<'s> Parser<'s> {
    fn alternation(&mut self, fold: bool) -> Result<Node, Refusal> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(refused("groups in groups too deep"));
        }
        let mut branches = vec![self.sequence(fold)?];
        while self.eat("|") {
            branches.push(self.sequence(fold)?);
        }
        self.depth -= 1;
        Ok(one_or(branches, Node::Alternation))
    }

    fn sequence(&mut self, fold: bool) -> Result<Node, Refusal> {
        let mut parts = Vec::new();
        let mut literal_before = None;
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            let before = self.rest;
            let atom = self.atom(fold)?;
            let literal = fold.then(|| before.chars().next()).flatten();
            check_folding(literal_before, literal)?;
            literal_before = literal;
            parts.push(self.quantified(atom)?);
        }
        Ok(one_or(parts, Node::Sequence))
    }

    fn atom(&mut self, fold: bool) -> Result<Node, Refusal> {
        for (open, negated) in [("(?!", true), ("(?=", false)] {
            if self.eat(open) {
                let Node::Set(set) = self.atom(fold)? else {
                    return Err(refused("a look-ahead at more than one character"));
                };
                if !self.eat(")") {
                    return Err(refused("a look-ahead at more than one character"));
                }
                return Ok(Node::Look {
                    set,
                    negated,
                    at_end: negated,
                });
            }
        }
        for (open, inner) in [("(?i:", true), ("(?:", fold)] {
            if self.eat(open) {
                return self.group(inner);
            }
        }
        if self.rest.starts_with("(?") {
            return Err(refused("a group of an unknown kind"));
        }
        if self.eat("(") {
            return self.group(fold);
        }
        if self.eat("$") {
            // The end of a line: before a line feed, or at the end of the text.
            return Ok(Node::Look {
                set: self.set("\\n".to_owned()),
                negated: false,
                at_end: true,
            });
        }
        let source = self.set_source()?;
        if !fold {
            return Ok(Node::Set(self.set(source.to_owned())));
        }
        if source.len() > 1 {
            return Err(refused("a set that ignores case"));
        }
        Ok(Node::Set(self.set(format!("(?i:{source})"))))
    }

    fn group(&mut self, fold: bool) -> Result<Node, Refusal> {
        let inner = self.alternation(fold)?;
        if self.eat(")") {
            Ok(inner)
        } else {
            Err(refused("an unbalanced '('"))
        }
    }

    fn quantified(&mut self, node: Node) -> Result<Node, Refusal> {
        let (min, max) = match self.rest.chars().next() {
            Some('?') => (0, Some(1)),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('{') => return self.counted(node),
            _ => return Ok(node),
        };
        self.rest = &self.rest[1..];
        self.repeat(node, min, max)
    }

    fn counted(&mut self, node: Node) -> Result<Node, Refusal> {
        let unknown = || refused("a quantifier of an unknown form");
        let (inner, rest) = self.rest[1..].split_once('}').ok_or_else(unknown)?;
        self.rest = rest;
        let number = |digits: &str| match digits.parse::<u32>() {
            Ok(n) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(n),
            _ => Err(unknown()),
        };
        let (min, max) = match inner.split_once(',') {
            None => (number(inner)?, Some(number(inner)?)),
            Some((min, "")) => (number(min)?, None),
            Some((min, max)) => (number(min)?, Some(number(max)?)),
        };
        if min.max(max.unwrap_or(0)) > MOST_REPEATS || max.is_some_and(|max| max < min) {
            return Err(refused("a quantifier with large or crossed bounds"));
        }
        self.repeat(node, min, max)
    }

    fn repeat(&mut self, node: Node, min: u32, max: Option<u32>) -> Result<Node, Refusal> {
        if self.rest.starts_with(['?', '+', '*', '{']) {
            return Err(refused("a lazy, possessive or doubled quantifier"));
        }
        if matches!(node, Node::Look { .. }) {
            return Err(refused("a quantifier on a look-ahead"));
        }
        Ok(Node::Repeat {
            node: Box::new(node),
            min,
            max,
        })
    }

    /// The source of something that matches one character.
    fn set_source(&mut self) -> Result<&'s str, Refusal> {
        let rest = self.rest;
        let length = match rest.chars().next() {
            None => return Err(refused("an unexpected end")),
            Some('[') => bracket_length(rest)?,
            Some('\\') => escape_length(rest)?,
            Some(c @ ('.' | '^' | '$' | '*' | '+' | '?' | '{' | '}' | ')' | '|' | ']')) => {
                return Err(refused(&format!("{c:?} where it cannot be read")));
            }
            Some(c) => c.len_utf8(),
        };
        self.rest = &rest[length..];
        Ok(&rest[..length])
    }

    fn set(&mut self, source: String) -> usize {
        let known = self.sets.iter().position(|s| *s == source);
        known.unwrap_or_else(|| {
            self.sets.push(source);
            self.sets.len() - 1
        })
    }

    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

fn one_or(mut nodes: Vec<Node>, many: impl FnOnce(Vec<Node>) -> Node) -> Node {
    match nodes.pop() {
        Some(only) if nodes.is_empty() => only,
        Some(last) => {
            nodes.push(last);
            many(nodes)
        }
        None => many(nodes),
    }
}

/// Case folding maps one character to several in places: `(?i:ss)` matches `ß`. Refuses the letters
/// for which that is so, so that each literal stands for single characters.
fn check_folding(before: Option<char>, literal: Option<char>) -> Result<(), Refusal> {
    let Some(literal) = literal else {
        return Ok(());
    };
    let pair = before.map(|b| [b.to_ascii_lowercase(), literal.to_ascii_lowercase()]);
    match pair {
        Some(['s', 's' | 't'] | ['f', 'f' | 'i' | 'l']) => {
            Err(refused("letters with a ligature that ignore case"))
        }
        _ => Ok(()),
    }
}

/// Length of the bracket expression that `source` begins with.
fn bracket_length(source: &str) -> Result<usize, Refusal> {
    let mut depth = 0;
    let mut escaped = false;
    let mut first = false;
    for (at, c) in source.char_indices() {
        // `[]a]` and `[^]a]` hold a bracket.
        let literal = escaped || (first && c == ']');
        first = !escaped && (c == '[' || (first && c == '^'));
        escaped = !escaped && c == '\\';
        match c {
            '[' if !literal => {
                if source[at..].starts_with("[:") {
                    return Err(refused("a POSIX bracket"));
                }
                depth += 1;
            }
            ']' if !literal => {
                depth -= 1;
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            _ => {}
        }
    }
    Err(refused("an unbalanced '['"))
}

/// Length of the escape that `source` begins with, if it stands for one character.
fn escape_length(source: &str) -> Result<usize, Refusal> {
    let mut chars = source.chars().skip(1);
    match chars.next() {
        Some('p' | 'P') if chars.next() == Some('{') => {
            let end = source.find('}');
            end.map(|end| end + 1)
                .ok_or_else(|| refused("an unbalanced '{'"))
        }
        Some('s' | 'S' | 'd' | 'D' | 'w' | 'W' | 'r' | 'n' | 't') => Ok(2),
        Some(c) if c.is_ascii_punctuation() => Ok(2),
        Some(c) => Err(refused(&format!("the escape \\{c}"))),
        None => Err(refused("a lone backslash at its end")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Node, parse};

    #[test]
    fn reads_what_tokenizers_use() {
        let pattern =
            parse(r"(?i:'s|'ll)|[^\r\n\p{L}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+$").expect("a pattern");
        assert_eq!(
            pattern.sets,
            [
                "(?i:')",
                "(?i:s)",
                "(?i:l)",
                r"[^\r\n\p{L}]",
                r"\p{L}",
                r"\p{N}",
                r"\s",
                r"\S",
                r"\n"
            ]
        );
        let Node::Alternation(branches) = pattern.root else {
            panic!("an alternation");
        };
        assert_eq!(branches.len(), 5);
        assert_eq!(
            branches[2],
            Node::Repeat {
                node: Box::new(Node::Set(5)),
                min: 1,
                max: Some(3)
            }
        );
        let Node::Sequence(spaces) = &branches[3] else {
            panic!("a sequence");
        };
        assert_eq!(
            spaces[1],
            Node::Look {
                set: 7,
                negated: true,
                at_end: true
            }
        );
    }

    #[test]
    fn brackets_are_kept_whole() {
        for source in [r"[a\]b]", "[]a]", "[^]a]", r"[a&&[^\p{Han}]]", "[[a]b]"] {
            assert_eq!(parse(source).expect(source).sets, [source]);
        }
    }

    #[test]
    fn refuses_the_rest_by_name() {
        for (source, what) in [
            ("a.b", "'.'"),
            ("^a", "'^'"),
            (r"\bfoo", r"\b"),
            (r"a\Gb", r"\G"),
            ("(?<=a)b", "unknown kind"),
            ("(?!ab)c", "more than one character"),
            ("(?!a+)c", "more than one character"),
            ("a+?", "lazy, possessive"),
            ("a++", "lazy, possessive"),
            ("a{2}{3}", "lazy, possessive"),
            ("a{,3}", "unknown form"),
            ("a{1000}", "large"),
            ("a{3,1}", "crossed"),
            ("(?i:ss)", "ligature"),
            ("(?i:é)", "ignores case"),
            ("(?i:[a])", "ignores case"),
            ("[[:alpha:]]", "POSIX"),
            ("(a", "'('"),
            ("a)", "')'"),
            ("[a", "'['"),
            ("(?!a)+", "on a look-ahead"),
            (r"\", "backslash"),
            ("+a", "'+'"),
        ] {
            let refusal = parse(source).expect_err(source).to_string();
            assert!(refusal.contains(what), "{source}: {refusal}");
        }
    }
}
