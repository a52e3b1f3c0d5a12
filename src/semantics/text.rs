//! `str()` and `repr()`.
//!
//! The formatter of the environment, hence the hottest function: a string is one write. What prints
//! an address in Python (functions, generators, namespaces) fails.

use super::iterables::{Part, Range};
use super::kind::Kind;
use super::unicode::{Printable, printable};
use super::{Result, budget, floats, unproved};
use minijinja::{Error, Output, Value};
use std::borrow::Cow;
use std::fmt::Write;

/// How deeply nested a container may be to be printed, compared or serialized. Python's own limit is
/// higher and ends in an exception.
pub(super) const MAX_DEPTH: usize = 100;

/// Writes `str(value)` to `out`.
pub fn write_str(out: &mut Output, value: &Value) -> Result<()> {
    match Kind::of(value) {
        Kind::Str(text) | Kind::Markup(text) => {
            budget::spend(text.len())?;
            out.write_str(text).map_err(Error::from)
        }
        Kind::Undefined => Ok(()),
        _ => write_repr(out, value, 0),
    }
}

/// `str(value)`.
pub fn str_of(value: &Value) -> Result<Cow<'_, str>> {
    match Kind::of(value) {
        Kind::Str(text) | Kind::Markup(text) => Ok(Cow::Borrowed(text)),
        Kind::Undefined => Ok(Cow::Borrowed("")),
        _ => repr_of(value).map(Cow::Owned),
    }
}

/// `repr(value)`.
pub(super) fn repr_of(value: &Value) -> Result<String> {
    let mut out = String::new();
    write_repr(&mut out, value, 0)?;
    Ok(out)
}

fn write_repr(out: &mut impl Write, value: &Value, depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(unproved("depth"));
    }
    budget::visit(1)?;
    match Kind::of(value) {
        Kind::Undefined => out.write_str("Undefined")?,
        Kind::None => out.write_str("None")?,
        Kind::Bool(true) => out.write_str("True")?,
        Kind::Bool(false) => out.write_str("False")?,
        Kind::Int(int) => write!(out, "{int}")?,
        Kind::Float(float) => floats::write_repr(out, float)?,
        Kind::Str(text) => write_quoted(out, text)?,
        Kind::Markup(text) => {
            out.write_str("Markup(")?;
            write_quoted(out, text)?;
            out.write_char(')')?;
        }
        Kind::List(items) => {
            out.write_char('[')?;
            write_items(out, items, depth)?;
            out.write_char(']')?;
        }
        Kind::Tuple(items) => {
            out.write_char('(')?;
            write_items(out, items, depth)?;
            out.write_str(if items.len() == 1 { ",)" } else { ")" })?;
        }
        Kind::Dict(dict) => {
            out.write_char('{')?;
            for (at, (key, value)) in dict.entries().iter().enumerate() {
                if at > 0 {
                    out.write_str(", ")?;
                }
                write_repr(out, key, depth + 1)?;
                out.write_str(": ")?;
                write_repr(out, value, depth + 1)?;
            }
            out.write_char('}')?;
        }
        Kind::View(view) => {
            out.write_str(match view.part {
                Part::Keys => "dict_keys([",
                Part::Values => "dict_values([",
                Part::Items => "dict_items([",
            })?;
            write_items(out, &view.values(), depth)?;
            out.write_str("])")?;
        }
        Kind::Range(&Range {
            start,
            stop,
            step: 1,
            ..
        }) => write!(out, "range({start}, {stop})")?,
        Kind::Range(range) => {
            write!(
                out,
                "range({}, {}, {})",
                range.start, range.stop, range.step
            )?;
        }
        Kind::Generator(_) | Kind::Namespace | Kind::Loop | Kind::Macro | Kind::Other => {
            return Err(unproved("print"));
        }
    }
    Ok(())
}

fn write_items(out: &mut impl Write, items: &[Value], depth: usize) -> Result<()> {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.write_str(", ")?;
        }
        write_repr(out, item, depth + 1)?;
    }
    Ok(())
}

fn write_quoted(out: &mut impl Write, text: &str) -> Result<()> {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    budget::spend(text.len())?;
    out.write_char(quote)?;
    let mut written = 0;
    for (at, c) in text.char_indices() {
        let escape = match c {
            '\\' => Some("\\\\"),
            '\n' => Some("\\n"),
            '\r' => Some("\\r"),
            '\t' => Some("\\t"),
            '\'' if quote == '\'' => Some("\\'"),
            ' '..='~' => continue,
            _ => match printable(c) {
                Printable::Yes => continue,
                Printable::No => None,
                Printable::Unknown => return Err(unproved("unicode")),
            },
        };
        out.write_str(&text[written..at])?;
        written = at + c.len_utf8();
        match (escape, u32::from(c)) {
            (Some(escape), _) => out.write_str(escape)?,
            (None, code @ 0..=0xff) => write!(out, "\\x{code:02x}")?,
            (None, code @ 0x100..=0xffff) => write!(out, "\\u{code:04x}")?,
            (None, code) => write!(out, "\\U{code:08x}")?,
        }
    }
    out.write_str(&text[written..])?;
    out.write_char(quote)?;
    Ok(())
}

/// `text` as `markupsafe.escape` writes it.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::probe::{called, dict, list, none, shown, tuple};
    use super::*;

    fn repr(value: impl Into<Value>) -> String {
        shown(repr_of(&value.into()).map(Value::from))
    }

    #[test]
    fn scalars_print_as_in_python() {
        let table: [(Value, &str); 12] = [
            (none(), "None"),
            (Value::from(true), "True"),
            (Value::from(false), "False"),
            (Value::from(-7), "-7"),
            (
                Value::from(i128::MAX),
                "170141183460469231731687303715884105727",
            ),
            (Value::from(1e16), "1e+16"),
            (Value::from(1e-5), "1e-05"),
            (Value::from(-0.0), "-0.0"),
            (Value::from(f64::NAN), "nan"),
            (Value::from(f64::NEG_INFINITY), "-inf"),
            (Value::UNDEFINED, ""),
            (Value::from("plain 'text'"), "plain 'text'"),
        ];
        for (value, expected) in table {
            assert_eq!(shown(Ok(value)), expected);
        }
    }

    #[test]
    fn strings_are_quoted_and_escaped_as_in_python() {
        let table = [
            ("", "''"),
            ("it's", "\"it's\""),
            ("say \"it's\"", r#"'say "it\'s"'"#),
            ("a\\b\n\r\t\x00\x7f", r"'a\\b\n\r\t\x00\x7f'"),
            ("é ß 日本 😀", "'é ß 日本 😀'"),
            ("\u{a0}\u{ad}\u{200b}\u{2028}", r"'\xa0\xad\u200b\u2028'"),
            ("\u{e000}\u{e0001}\u{3000}", r"'\ue000\U000e0001\u3000'"),
            // Assigned after Unicode 14: what Python prints depends on its version.
            ("\u{1fae8}", "!unicode"),
        ];
        for (text, expected) in table {
            assert_eq!(repr(text), expected, "{text:?}");
        }
    }

    #[test]
    fn containers_print_the_repr_of_their_elements() {
        assert_eq!(
            repr(list([Value::from("a"), Value::UNDEFINED])),
            "['a', Undefined]"
        );
        assert_eq!(repr(tuple::<i32>([])), "()");
        assert_eq!(repr(tuple([1])), "(1,)");
        assert_eq!(repr(tuple([1, 2])), "(1, 2)");
        assert_eq!(
            repr(dict([("a", list([1.0])), ("b", dict::<i32>([]))])),
            "{'a': [1.0], 'b': {}}"
        );
        assert_eq!(
            repr(list([Value::from_safe_string("<".into())])),
            "[Markup('<')]"
        );
        assert_eq!(repr(called("range", &[3.into()]).unwrap()), "range(0, 3)");
        assert_eq!(
            repr(called("range", &[3.into(), 0.into(), (-2).into()]).unwrap()),
            "range(3, 0, -2)"
        );
    }

    #[test]
    fn what_prints_an_address_or_is_too_deep_fails() {
        assert_eq!(repr(called("namespace", &[]).unwrap()), "!print");
        let mut nested = list::<i32>([]);
        for _ in 0..=MAX_DEPTH {
            nested = list([nested]);
        }
        assert_eq!(repr(nested), "!depth");
    }
}
