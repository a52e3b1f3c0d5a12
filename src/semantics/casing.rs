//! Upper, lower and title case.
//!
//! Rust's tables are those of a newer Unicode than CPython 3.11's; for characters that Unicode 14
//! knows they agree except for the handful in [`is_unsure`] (every character was compared). Of title
//! case Rust knows nothing: it is upper case except for [`has_own_title`].

use super::unicode::is_unassigned;
use super::{Result, unproved};
use minijinja::Value;

/// `str.upper`.
pub(super) fn upper(value: &Value, text: &str) -> Result {
    if text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return Ok(value.clone());
    }
    uppered(text).map(Value::from)
}

/// `str.lower`.
pub(super) fn lower(value: &Value, text: &str) -> Result {
    if text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Ok(value.clone());
    }
    lowered(text).map(Value::from)
}

/// `str.upper` as text.
pub(super) fn uppered(text: &str) -> Result<String> {
    if text.is_ascii() {
        return Ok(text.to_ascii_uppercase());
    }
    check(text)?;
    Ok(text.to_uppercase())
}

/// `str.lower` as text. The final sigma depends on what stands around it, on both sides.
pub(super) fn lowered(text: &str) -> Result<String> {
    if text.is_ascii() {
        return Ok(text.to_ascii_lowercase());
    }
    check(text)?;
    Ok(text.to_lowercase())
}

/// `str.casefold`, where it is the lower case: in ASCII.
pub(super) fn casefold(value: &Value, text: &str) -> Result {
    if text.is_ascii() {
        lower(value, text)
    } else {
        Err(unproved("unicode"))
    }
}

/// `str.capitalize`.
pub(super) fn capitalize(text: &str) -> Result {
    let Some(first) = text.chars().next() else {
        return Ok(Value::from(""));
    };
    let lower = lowered(text)?;
    let mut out = titled(first)?;
    // The lower case of all, without that of the first character: the rest sees its context.
    let skipped: usize = first.to_lowercase().map(char::len_utf8).sum();
    out.push_str(lower.get(skipped..).unwrap_or_default());
    Ok(Value::from(out))
}

/// `str.title`.
pub(super) fn title(text: &str) -> Result {
    check_without_context(text)?;
    let mut out = String::with_capacity(text.len());
    let mut previous_cased = false;
    for c in text.chars() {
        if previous_cased {
            out.extend(c.to_lowercase());
        } else {
            out.push_str(&titled(c)?);
        }
        previous_cased = is_cased(c);
    }
    Ok(Value::from(out))
}

/// `str.swapcase`.
pub(super) fn swapcase(text: &str) -> Result {
    check_without_context(text)?;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_uppercase() {
            out.extend(c.to_lowercase());
        } else if c.is_lowercase() {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
    }
    Ok(Value::from(out))
}

/// `str.islower`.
pub(super) fn is_lower(text: &str) -> Result<bool> {
    check(text)?;
    let breaks = |c: char| c.is_uppercase() || is_title(c);
    Ok(text.chars().any(char::is_lowercase) && !text.chars().any(breaks))
}

/// `str.isupper`.
pub(super) fn is_upper(text: &str) -> Result<bool> {
    check(text)?;
    let breaks = |c: char| c.is_lowercase() || is_title(c);
    Ok(text.chars().any(char::is_uppercase) && !text.chars().any(breaks))
}

fn titled(c: char) -> Result<String> {
    if has_own_title(c) {
        return Err(unproved("unicode"));
    }
    Ok(c.to_uppercase().collect())
}

fn check(text: &str) -> Result<()> {
    let unknown = |c: char| !c.is_ascii() && (is_unsure(c) || is_unassigned(c));
    if !text.is_ascii() && text.chars().any(unknown) {
        return Err(unproved("unicode"));
    }
    Ok(())
}

/// As [`check`], and no letter whose lower case depends on its neighbours.
fn check_without_context(text: &str) -> Result<()> {
    check(text)?;
    if text.contains('Σ') {
        return Err(unproved("unicode"));
    }
    Ok(())
}

/// Known to Unicode 14, and of another case (or of another weight for a final sigma) since.
fn is_unsure(c: char) -> bool {
    matches!(
        c,
        '\u{19b}' | '\u{264}' | '\u{295}' | '\u{10fc}' | '\u{a7d3}' | '\u{a7d5}' | '\u{a7f2}'
            ..='\u{a7f4}' | '\u{ab69}' | '\u{1171e}'
    )
}

/// Whether the title case of `c` may be something else than its upper case.
fn has_own_title(c: char) -> bool {
    matches!(
        c,
        'ß' | '\u{1c4}'..='\u{1cc}' | '\u{1f1}'..='\u{1f3}' | '\u{587}' | '\u{10d0}'..='\u{10ff}'
            | '\u{1f80}'..='\u{1fff}' | '\u{fb00}'..='\u{fb17}'
    )
}

/// Category `Lt`.
fn is_title(c: char) -> bool {
    matches!(
        c,
        '\u{1c5}' | '\u{1c8}' | '\u{1cb}' | '\u{1f2}' | '\u{1f88}'..='\u{1f8f}'
            | '\u{1f98}'..='\u{1f9f}' | '\u{1fa8}'..='\u{1faf}' | '\u{1fbc}' | '\u{1fcc}'
            | '\u{1ffc}'
    )
}

fn is_cased(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase() || is_title(c)
}

#[cfg(test)]
mod tests {
    use super::super::probe::{filter, method};

    #[test]
    fn methods() {
        let table = [
            ("upper", "straße ŉ ﬁ", "STRASSE ʼN FI"),
            ("lower", "ΑΣ ΑΣΑ İ", "ας ασα i̇"),
            ("lower", "ABC", "abc"),
            ("capitalize", "hELLO ÉCOLE", "Hello école"),
            ("capitalize", "éCOLE", "École"),
            ("title", "they're o'neill é", "They'Re O'Neill É"),
            ("swapcase", "aBß É", "AbSS é"),
            ("casefold", "ABC", "abc"),
            ("islower", "aé1", "True"),
            ("isupper", "AÉ1", "True"),
            ("isupper", "1", "False"),
            ("istitle", "Ab Cd", "True"),
            ("isalpha", "ab", "True"),
        ];
        for (name, text, expected) in table {
            assert_eq!(method(name, &[text.into()]), expected, "{name} {text}");
        }
    }

    #[test]
    fn what_depends_on_the_unicode_version_fails() {
        for (name, text) in [
            ("upper", "\u{19b}"),
            ("lower", "\u{a7cb}"),
            ("title", "ß"),
            ("title", "aΣ"),
            ("casefold", "ß"),
            ("isalpha", "é"),
        ] {
            assert_eq!(method(name, &[text.into()]), "!unicode", "{name} {text}");
        }
    }

    #[test]
    fn the_title_filter_has_its_own_words() {
        assert_eq!(
            filter("title", &["they're foo-bar (bAZ) [q]".into()]),
            "They're Foo-Bar (Baz) [Q]"
        );
        assert_eq!(filter("title", &["a\u{1c}b ß".into()]), "A\u{1c}B SS");
        assert_eq!(filter("title", &["a_b {c".into()]), "A_b {C");
    }
}
