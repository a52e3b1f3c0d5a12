//! What must be settled before the syntax tree exists: newlines, literals, the `generation` tag.
//!
//! jinja2 normalises newlines and drops one trailing newline before it looks at a template
//! (`Lexer.tokeniter`); [`normalize`] does the same. The two lexers then agree on where text ends and
//! a tag begins, but not on every literal: a few escapes and number spellings mean something else in
//! Python, and the tree holds only their values. [`lex`] reads the tokens and refuses those.
//!
//! The `generation` tag of transformers is unknown to minijinja. To jinja2 it is a call block: its
//! body is a scope of its own that sees the names around it, which is what `with` without assignments
//! is in minijinja. The tag name is replaced in place, so white space control and lines stay as they
//! are. Cost: one pass over the source, once per template.

use minijinja::machinery::{self, Token};
use minijinja::syntax::SyntaxConfig;

/// Newlines as jinja2 sees them: `\r\n` and `\r` are `\n`, and one trailing newline is dropped.
pub fn normalize(source: &str) -> String {
    let mut text = source.replace("\r\n", "\n").replace('\r', "\n");
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

/// A source that both lexers read alike.
pub struct Lexed {
    /// The normalised source without `generation` tags.
    pub source: String,
    /// Whether a filter that returns `markupsafe.Markup` may be used.
    pub markup: bool,
    /// Where in `source` the names of tags stand that were `generation`, in order.
    pub generations: Vec<u32>,
}

/// The longest source, the longest tag in tokens and the most `elif`s. Each token of a tag, and each
/// `elif`, can be one more level of the tree, which is walked and dropped recursively.
const MAX_SOURCE: usize = 1 << 20;
const MAX_TAG: usize = 600;
const MAX_BRANCHES: usize = 300;

/// Tags whose bodies jinja2 writes as indented Python, and how many of them, and of loops, may be in each
/// other: Python takes a hundred indentations and twenty loops, and a tag may make several.
const INDENTED: [&str; 4] = ["for", "if", "macro", "generation"];
const MAX_DEPTH: usize = 40;
const MAX_LOOPS: usize = 15;

/// Filters that return `markupsafe.Markup`.
const MARKUP_FILTERS: [&str; 4] = ["safe", "e", "escape", "forceescape"];

/// Checks the tokens of `source`, which must be normalised.
///
/// The error is the construct that makes the two lexers disagree.
pub fn lex(source: &str, syntax: &SyntaxConfig) -> Result<Lexed, &'static str> {
    // White space to the lexer of one side only; it decides what `-` strips.
    if source.contains(|c| ('\u{1c}'..='\u{1f}').contains(&c) || c == '\u{b}') {
        return Err("control-character");
    }
    if source.len() > MAX_SOURCE {
        return Err("size");
    }
    if has_raw_block(source) {
        return Err("raw");
    }
    let mut rewritten = String::with_capacity(source.len());
    let mut copied = 0;
    let mut markup = false;
    let mut generations = Vec::new();
    let mut place = Place::Inside;
    let mut after_comma = false;
    let mut test = Test::None;
    let mut in_macro = false;
    let (mut in_tag, mut branches) = (0, 0);
    let mut open: Vec<&str> = Vec::new();
    for token in machinery::tokenize(source, false, syntax.clone()) {
        let Ok((token, span)) = token else {
            return Err("syntax");
        };
        let text = source
            .get(span.start_offset as usize..span.end_offset as usize)
            .unwrap_or_default();
        let before = std::mem::replace(&mut place, Place::Inside);
        in_tag += 1;
        if in_tag > MAX_TAG && !matches!(token, Token::TemplateData(_)) {
            return Err("size");
        }
        if before == Place::AfterGeneration && !matches!(token, Token::BlockEnd) {
            return Err("generation");
        }
        // The end of a loop's targets to the engine; to jinja2 one more target, named `in`.
        let comma = std::mem::replace(&mut after_comma, matches!(token, Token::Comma));
        if comma && matches!(token, Token::Ident("in")) {
            return Err("syntax");
        }
        if before == Place::TagName
            && let Token::Ident(name) = token
        {
            match name.strip_prefix("end") {
                Some(name) if INDENTED.contains(&name) => drop(open.pop()),
                None if INDENTED.contains(&name) => open.push(name),
                _ => {}
            }
            let loops = open.iter().filter(|name| **name == "for").count();
            if open.len() > MAX_DEPTH || loops > MAX_LOOPS {
                return Err("size");
            }
        }
        // Parameters of a macro do not end in a comma.
        in_macro = match token {
            Token::Ident(name) if before == Place::TagName => name == "macro",
            _ => in_macro,
        };
        if comma && in_macro && matches!(token, Token::ParenClose) {
            return Err("syntax");
        }
        // A sign after the name of a test is its argument to the engine, an operator to jinja2, which
        // takes no second `is` there either.
        if test == Test::Named && matches!(token, Token::Plus | Token::Minus | Token::Ident("is")) {
            return Err("syntax");
        }
        test = match (test, &token) {
            (Test::Is, Token::Ident("not")) => Test::IsNot,
            (Test::Is | Test::IsNot, Token::Ident(_)) => Test::Named,
            (_, Token::Ident("is")) => Test::Is,
            _ => Test::None,
        };
        match token {
            Token::BlockStart => {
                place = Place::TagName;
                in_tag = 0;
            }
            Token::VariableStart => in_tag = 0,
            Token::Ident("elif") if before == Place::TagName => {
                branches += 1;
                if branches > MAX_BRANCHES {
                    return Err("size");
                }
            }
            Token::Ident(name) => {
                markup |= MARKUP_FILTERS.contains(&name);
                let replacement = match name {
                    "generation" => Some("with"),
                    "endgeneration" => Some("endwith"),
                    _ => None,
                };
                if let (Place::TagName, Some(replacement)) = (before, replacement) {
                    rewritten.push_str(&source[copied..span.start_offset as usize]);
                    if name == "generation" {
                        // Shorter than MAX_SOURCE, hence than 4 GiB.
                        generations.push(u32::try_from(rewritten.len()).map_err(|_| "size")?);
                    }
                    rewritten.push_str(replacement);
                    copied = span.end_offset as usize;
                    place = Place::AfterGeneration;
                }
            }
            // A sign of blank control to the engine; to jinja2 an operator without an operand.
            Token::VariableEnd if text.starts_with('+') => return Err("syntax"),
            Token::String(_) if !escapes_agree(text) => return Err("escape"),
            Token::Int(_) | Token::Int128(_) if !is_plain_integer(text) => return Err("number"),
            Token::Float(_) if !is_plain_float(text) => return Err("number"),
            _ => {}
        }
    }
    rewritten.push_str(&source[copied..]);
    Ok(Lexed {
        source: rewritten,
        markup,
        generations,
    })
}

/// Where in a tag the token before left us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    TagName,
    AfterGeneration,
    Inside,
}

/// Which part of a test without arguments the tokens before are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Test {
    None,
    Is,
    IsNot,
    Named,
}

/// `{% raw %}` never reaches the tree, and its white space rules are their own.
fn has_raw_block(source: &str) -> bool {
    source.match_indices("{%").any(|(at, _)| {
        source[at + 2..]
            .trim_start_matches(['-', '+'])
            .trim_start()
            .starts_with("raw")
    })
}

/// Whether every escape in a string literal means the same to Python's `unicode-escape` codec and to
/// minijinja. Not so: `\/`, `\a`, `\v`, `\U`, `\N`, an escaped newline, surrogates, and a backslash
/// before a character outside ASCII (which jinja2 first turns into a `\x` escape of its own).
fn escapes_agree(literal: &str) -> bool {
    let mut chars = literal.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            continue;
        }
        let agrees = match chars.next() {
            Some('n' | 't' | 'r' | '\\' | '\'' | '"' | 'b' | 'f') => true,
            Some('u') => {
                let digits = chars.as_str().get(..4).unwrap_or_default();
                u32::from_str_radix(digits, 16)
                    .is_ok_and(|code| !digits.starts_with('+') && char::from_u32(code).is_some())
            }
            Some('x') => {
                let digits = chars.as_str().get(..2).unwrap_or_default();
                digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_hexdigit())
            }
            // Unknown to both: the backslash stays.
            Some(c) => {
                c.is_ascii_punctuation() && c != '/' || c == ' ' || "cdegijklmopqswyz".contains(c)
            }
            None => false,
        };
        if !agrees {
            return false;
        }
    }
    true
}

fn is_plain_integer(text: &str) -> bool {
    text == "0" || (!text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()))
}

/// Digits of a float that a chat template may need; a longer one may be infinite.
const MAX_FLOAT: usize = 24;

fn is_plain_float(text: &str) -> bool {
    text.len() <= MAX_FLOAT
        && text.split_once('.').is_some_and(|(whole, fraction)| {
            is_plain_integer(whole)
                && !fraction.is_empty()
                && fraction.bytes().all(|b| b.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_default(source: &str) -> Result<(), &'static str> {
        lex(source, &SyntaxConfig::default()).map(|_| ())
    }

    #[test]
    fn generation_is_a_scope() {
        let lexed = lex(
            "{% generation %}generation{%- endgeneration +%}{{ generation|e }}{% generation %}",
            &SyntaxConfig::default(),
        );
        let lexed = lexed.map(|l| (l.source, l.markup, l.generations));
        let want = "{% with %}generation{%- endwith +%}{{ generation|e }}{% with %}";
        assert_eq!(lexed, Ok((want.to_owned(), true, vec![3, 56])));
    }

    #[test]
    fn newlines_are_those_of_jinja2() {
        assert_eq!(normalize("a\r\nb\rc\n\n"), "a\nb\nc\n");
        assert_eq!(normalize("a"), "a");
    }

    #[test]
    fn literals_that_differ_are_refused() {
        for source in [
            r"{{ '\/' }}",
            r"{{ '\a' }}",
            r"{{ '\v' }}",
            r"{{ '\U0001F600' }}",
            r"{{ '\N{DASH}' }}",
            r"{{ '\ud83d\ude00' }}",
            "{{ '\\\n' }}",
            r"{{ '\é' }}",
            r"{{ '\101' }}",
        ] {
            assert_eq!(check_default(source), Err("escape"), "{source}");
        }
        for source in [
            "{{ 010 }}",
            "{{ 1_0 }}",
            "{{ 0x1 }}",
            "{{ 1. }}",
            "{{ 1e5 }}",
        ] {
            assert_eq!(check_default(source), Err("number"), "{source}");
        }
        assert_eq!(check_default("{%- raw %}x{% endraw %}"), Err("raw"));
        assert_eq!(
            check_default("a\u{1c}{%- if x %}"),
            Err("control-character")
        );
        assert_eq!(check_default("{{ 'a"), Err("syntax"));
    }

    #[test]
    fn ordinary_literals_pass() {
        for source in [
            r#"{{ '\n\t\\\'\"\u2028\x41' ~ "\s\." }}"#,
            "{{ 0 + 10 + 1.5 }}",
            "plain \\/ text {% if a %}{{ 'x' }}{% endif %}",
        ] {
            assert_eq!(check_default(source), Ok(()), "{source}");
        }
    }
}
