//! `tojson` as transformers defines it: `json.dumps` with its keywords.

use super::arguments::Arguments;
use super::kind::Kind;
use super::text::MAX_DEPTH;
use super::{Result, budget, floats, unproved};
use minijinja::Value;
use std::borrow::Cow;
use std::fmt::Write;

/// The `tojson` filter: `tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
pub(super) fn tojson(args: &[Value]) -> Result {
    let [value, rest @ ..] = args else {
        return Err(unproved("arguments"));
    };
    let mut style = Style {
        ensure_ascii: false,
        indent: None,
        item_separator: Cow::Borrowed(", "),
        key_separator: Cow::Borrowed(": "),
        sort_keys: false,
    };
    if !rest.is_empty() {
        style.read(rest)?;
    }
    let mut out = String::new();
    style.write(&mut out, value, 0)?;
    Ok(Value::from(out))
}

struct Style {
    ensure_ascii: bool,
    indent: Option<String>,
    item_separator: Cow<'static, str>,
    key_separator: Cow<'static, str>,
    sort_keys: bool,
}

impl Style {
    fn read(&mut self, args: &[Value]) -> Result<()> {
        let names = ["ensure_ascii", "indent", "separators", "sort_keys"];
        let [ensure_ascii, indent, separators, sort_keys] = Arguments::of(args).bind(names, 0)?;
        if let Some(value) = ensure_ascii {
            self.ensure_ascii = boolean(&value)?;
        }
        if let Some(value) = sort_keys {
            self.sort_keys = boolean(&value)?;
        }
        self.indent = match indent.as_ref().map(Kind::of) {
            None | Some(Kind::None) => None,
            Some(Kind::Str(text)) => Some(text.to_owned()),
            Some(kind) => {
                let width = kind.size().ok_or_else(|| unproved("indent"))?;
                let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
                if width > 1000 {
                    return Err(unproved("indent"));
                }
                Some(" ".repeat(width))
            }
        };
        match separators.as_ref().map(Kind::of) {
            None | Some(Kind::None) => {
                if self.indent.is_some() {
                    self.item_separator = Cow::Borrowed(",");
                }
            }
            Some(Kind::List([item, key]) | Kind::Tuple([item, key])) => {
                self.item_separator = Cow::Owned(separator(item)?);
                self.key_separator = Cow::Owned(separator(key)?);
            }
            _ => return Err(unproved("separators")),
        }
        Ok(())
    }

    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(unproved("depth"));
        }
        budget::visit(1)?;
        if let Some(text) = value.as_str() {
            budget::spend(text.len())?;
        }
        match Kind::of(value) {
            Kind::None => out.push_str("null"),
            Kind::Bool(true) => out.push_str("true"),
            Kind::Bool(false) => out.push_str("false"),
            Kind::Int(int) => write!(out, "{int}")?,
            Kind::Float(float) if float.is_nan() => out.push_str("NaN"),
            Kind::Float(f64::INFINITY) => out.push_str("Infinity"),
            Kind::Float(f64::NEG_INFINITY) => out.push_str("-Infinity"),
            Kind::Float(float) => floats::write_repr(out, float)?,
            Kind::Str(text) | Kind::Markup(text) => self.write_string(out, text)?,
            Kind::List(items) | Kind::Tuple(items) => {
                let entries = items.iter().map(|item| (None, item));
                self.write_container(out, ('[', ']'), entries, depth)?;
            }
            Kind::Dict(dict) if self.sort_keys => {
                let mut entries: Vec<_> = dict.entries().iter().collect();
                // Keys differ, so Python never gets to compare values. UTF-8 keeps code point order.
                entries.sort_by(|(a, _), (b, _)| a.as_str().cmp(&b.as_str()));
                let entries = entries.into_iter().map(|(key, value)| (Some(key), value));
                self.write_container(out, ('{', '}'), entries, depth)?;
            }
            Kind::Dict(dict) => {
                let entries = dict.entries().iter();
                let entries = entries.map(|(key, value)| (Some(key), value));
                self.write_container(out, ('{', '}'), entries, depth)?;
            }
            _ => return Err(unproved("json")),
        }
        Ok(())
    }

    fn write_container<'a>(
        &self,
        out: &mut String,
        (open, close): (char, char),
        entries: impl Iterator<Item = (Option<&'a Value>, &'a Value)>,
        depth: usize,
    ) -> Result<()> {
        out.push(open);
        let mut empty = true;
        for (key, value) in entries {
            if !empty {
                out.push_str(&self.item_separator);
            }
            empty = false;
            let indent = self.indent.as_ref().map_or(0, String::len);
            let separators = self.item_separator.len() + self.key_separator.len();
            budget::spend(separators + indent.saturating_mul(depth + 1))?;
            self.new_line(out, depth + 1);
            if let Some(key) = key {
                let key = key.as_str().ok_or_else(|| unproved("json"))?;
                self.write_string(out, key)?;
                out.push_str(&self.key_separator);
            }
            self.write(out, value, depth + 1)?;
        }
        if !empty {
            self.new_line(out, depth);
        }
        out.push(close);
        Ok(())
    }

    fn new_line(&self, out: &mut String, depth: usize) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            for _ in 0..depth {
                out.push_str(indent);
            }
        }
    }

    fn write_string(&self, out: &mut String, text: &str) -> Result<()> {
        out.push('"');
        let mut written = 0;
        for (at, byte) in text.bytes().enumerate() {
            let escape = match byte {
                b'"' => "\\\"",
                b'\\' => "\\\\",
                b'\n' => "\\n",
                b'\r' => "\\r",
                b'\t' => "\\t",
                0x0c => "\\f",
                0x08 => "\\b",
                0..0x20 => "",
                0x7f.. if self.ensure_ascii => "",
                _ => continue,
            };
            if at < written {
                continue;
            }
            out.push_str(&text[written..at]);
            written = at + 1;
            if escape.is_empty() {
                let Some(c) = text[at..].chars().next() else {
                    continue;
                };
                written = at + c.len_utf8();
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            } else {
                out.push_str(escape);
            }
        }
        out.push_str(&text[written..]);
        out.push('"');
        Ok(())
    }
}

fn boolean(value: &Value) -> Result<bool> {
    match Kind::of(value) {
        Kind::Bool(value) => Ok(value),
        _ => Err(unproved("arguments")),
    }
}

fn separator(value: &Value) -> Result<String> {
    match Kind::of(value) {
        Kind::Str(text) => Ok(text.to_owned()),
        _ => Err(unproved("separators")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe::{dict, filter, keywords, list, none, tuple};
    use minijinja::Value;

    fn sample() -> Value {
        dict([
            (
                "b",
                list([Value::from(1), Value::from(1e16), none(), Value::from(true)]),
            ),
            ("a", Value::from("é<&>\"\\\n\u{8}\u{1f}\u{7f}\u{2028}😀")),
            ("c", dict::<i32>([])),
            ("d", tuple::<i32>([])),
        ])
    }

    #[test]
    fn defaults_are_those_of_transformers() {
        assert_eq!(
            filter("tojson", &[sample()]),
            "{\"b\": [1, 1e+16, null, true], \
             \"a\": \"é<&>\\\"\\\\\\n\\b\\u001f\u{7f}\u{2028}😀\", \"c\": {}, \"d\": []}"
        );
        let odd = list([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
        assert_eq!(filter("tojson", &[odd]), "[NaN, Infinity, -Infinity]");
    }

    #[test]
    fn every_keyword_works() {
        let ascii = keywords([("ensure_ascii", true)]);
        assert_eq!(
            filter("tojson", &[Value::from("é\u{7f}😀"), ascii]),
            r#""\u00e9\u007f\ud83d\ude00""#
        );
        let style = keywords([("indent", Value::from(2)), ("sort_keys", Value::from(true))]);
        let value = dict([("b", list([1, 2])), ("a", list::<i32>([]))]);
        assert_eq!(
            filter("tojson", &[value.clone(), style]),
            "{\n  \"a\": [],\n  \"b\": [\n    1,\n    2\n  ]\n}"
        );
        let tight = keywords([("separators", tuple([",", ":"]))]);
        assert_eq!(filter("tojson", &[value, tight]), r#"{"b":[1,2],"a":[]}"#);
    }

    #[test]
    fn what_json_dumps_refuses_fails() {
        assert_eq!(filter("tojson", &[Value::UNDEFINED]), "!json");
        assert_eq!(filter("tojson", &[list([Value::UNDEFINED])]), "!json");
        assert_eq!(
            filter("tojson", &[1.into(), keywords([("other", 1)])]),
            "!arguments"
        );
    }
}
