//! What must be settled before the syntax tree exists: newlines, escapes, number literals.
//!
//! jinja2 normalises newlines and drops one trailing newline before it looks at a template
//! (`Lexer.tokeniter`); [`normalize`] does the same. The two lexers then agree on where text ends and
//! a tag begins, but not on every literal: a few escapes and number spellings mean something else in
//! Python, and the tree holds only their values. [`check`] reads the tokens and refuses those.
//! Cost: one pass over the source, once per template.

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

/// The construct that makes the two lexers disagree, if there is one.
///
/// `source` must be normalised.
pub fn check(source: &str, syntax: &SyntaxConfig) -> Result<(), &'static str> {
    // White space to the lexer of one side only; it decides what `-` strips.
    if source.contains(|c| ('\u{1c}'..='\u{1f}').contains(&c) || c == '\u{b}') {
        return Err("control-character");
    }
    if has_raw_block(source) {
        return Err("raw");
    }
    for token in machinery::tokenize(source, false, syntax.clone()) {
        let Ok((token, span)) = token else {
            return Err("syntax");
        };
        let text = source
            .get(span.start_offset as usize..span.end_offset as usize)
            .unwrap_or_default();
        match token {
            Token::String(_) if !escapes_agree(text) => return Err("escape"),
            Token::Int(_) | Token::Int128(_) if !is_plain_integer(text) => return Err("number"),
            Token::Float(_) if !is_plain_float(text) => return Err("number"),
            _ => {}
        }
    }
    Ok(())
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

fn is_plain_float(text: &str) -> bool {
    text.split_once('.').is_some_and(|(whole, fraction)| {
        is_plain_integer(whole)
            && !fraction.is_empty()
            && fraction.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_default(source: &str) -> Result<(), &'static str> {
        check(source, &SyntaxConfig::default())
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
