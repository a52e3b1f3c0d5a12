//! Methods of `str`.
//!
//! Offsets count code points. Where a result is the text itself, the value is shared, not copied:
//! most `strip` calls of a chat template change nothing.

use super::arguments::Arguments;
use super::kind::Kind;
use super::unicode::{Printable, is_line_break, is_space, printable};
use super::{Result, attributes, budget, casing, text as texts, unproved};
use minijinja::Value;
use minijinja::value::Tuple;

/// A replacement that cannot make a longer text than this is not counted first.
const SMALL: usize = 1 << 20;

/// Calls method `name` of the string `value`, whose text is `text`.
pub(super) fn call(value: &Value, text: &str, name: &str, arguments: &Arguments) -> Result {
    match name {
        "split" | "rsplit" => {
            let [sep, most] = arguments.bind(["sep", "maxsplit"], 0)?;
            let most = most.map_or(Ok(-1), |most| size(&most))?;
            return split(text, sep.as_ref(), most, name == "rsplit");
        }
        "splitlines" => {
            let [keep] = arguments.bind(["keepends"], 0)?;
            let keep = keep.map_or(Ok(0), |keep| flag(&keep))?;
            return Ok(Value::from(lines(text, keep != 0)));
        }
        "expandtabs" => {
            let [size] = arguments.bind(["tabsize"], 0)?;
            let size = size.map_or(Ok(8), |size| flag(&size))?;
            return expand_tabs(text, size).map(Value::from);
        }
        "format" => return format(text, arguments).map(Value::from),
        _ => {}
    }
    let (least, most) = arity(name).ok_or_else(|| unproved("method"))?;
    let args = arguments.only(least, most)?;
    Ok(match name {
        "strip" | "lstrip" | "rstrip" => {
            let sides = (name != "rstrip", name != "lstrip");
            shared(value, text, strip(text, args.first(), sides)?)
        }
        "startswith" => Value::from(affix(text, args, |text, part| text.starts_with(part))?),
        "endswith" => Value::from(affix(text, args, |text, part| text.ends_with(part))?),
        "replace" => {
            let count = args.get(2).map_or(Ok(-1), size)?;
            replace(value, text, string(&args[0])?, string(&args[1])?, count)?
        }
        "removeprefix" => shared(
            value,
            text,
            text.strip_prefix(string(&args[0])?).unwrap_or(text),
        ),
        "removesuffix" => shared(
            value,
            text,
            text.strip_suffix(string(&args[0])?).unwrap_or(text),
        ),
        "join" => join(text, &args[0])?,
        "find" | "index" => found(
            position(text, args, |text, part| text.find(part))?,
            name == "find",
        )?,
        "rfind" | "rindex" => found(
            position(text, args, |text, part| text.rfind(part))?,
            name == "rfind",
        )?,
        "count" => {
            let part = string(&args[0])?;
            let bounds = bounded(text, &args[1..])?;
            Value::from(bounds.map_or(0, |(_, within)| within.matches(part).count()))
        }
        "partition" => partition(text, &args[0], false)?,
        "rpartition" => partition(text, &args[0], true)?,
        "upper" => casing::upper(value, text)?,
        "lower" => casing::lower(value, text)?,
        "capitalize" => casing::capitalize(text)?,
        "title" => casing::title(text)?,
        "swapcase" => casing::swapcase(text)?,
        "casefold" => casing::casefold(value, text)?,
        "zfill" => Value::from(zero_fill(text, size(&args[0])?)?),
        "center" | "ljust" | "rjust" => Value::from(justify(text, args, name)?),
        "islower" => Value::from(casing::is_lower(text)?),
        "isupper" => Value::from(casing::is_upper(text)?),
        "isascii" => Value::from(text.is_ascii()),
        "isspace" => Value::from(!text.is_empty() && text.chars().all(is_space)),
        "isprintable" => Value::from(is_printable(text)?),
        _ => Value::from(ascii_predicate(text, name)?),
    })
}

/// How many positional arguments a method takes, for those without keywords.
fn arity(name: &str) -> Option<(usize, usize)> {
    Some(match name {
        "upper" | "lower" | "capitalize" | "title" | "swapcase" | "casefold" | "isascii"
        | "isspace" | "isprintable" | "isalnum" | "isalpha" | "isdecimal" | "isdigit"
        | "isidentifier" | "islower" | "isnumeric" | "istitle" | "isupper" => (0, 0),
        "strip" | "lstrip" | "rstrip" => (0, 1),
        "removeprefix" | "removesuffix" | "join" | "partition" | "rpartition" | "zfill" => (1, 1),
        "center" | "ljust" | "rjust" => (1, 2),
        "startswith" | "endswith" | "find" | "rfind" | "index" | "rindex" | "count" => (1, 3),
        "replace" => (2, 3),
        _ => return None,
    })
}

/// `value` itself if `part` is all of its text.
pub(super) fn shared(value: &Value, text: &str, part: &str) -> Value {
    if part.len() == text.len() {
        value.clone()
    } else {
        Value::from(part)
    }
}

fn string(value: &Value) -> Result<&str> {
    match Kind::of(value) {
        Kind::Str(text) => Ok(text),
        _ => Err(unproved("operand")),
    }
}

/// A width, a count or a number of times.
fn size(value: &Value) -> Result<i128> {
    Kind::of(value).size().ok_or_else(|| unproved("operand"))
}

/// What CPython takes as a C `int`: others are an `OverflowError`.
fn flag(value: &Value) -> Result<i128> {
    let fits = |value: &i128| i32::try_from(*value).is_ok();
    let int = Kind::of(value).int().filter(fits);
    int.ok_or_else(|| unproved("operand"))
}

/// A bound as in a slice, of any size.
fn bound(value: Option<&Value>) -> Result<Option<i128>> {
    match value.map(Kind::of) {
        None | Some(Kind::None) => Ok(None),
        Some(kind) => kind.int().map(Some).ok_or_else(|| unproved("operand")),
    }
}

/// `text` without the characters in `set` (white space if absent) on the chosen sides.
pub(super) fn strip<'t>(
    text: &'t str,
    set: Option<&Value>,
    (left, right): (bool, bool),
) -> Result<&'t str> {
    let set = match set {
        Some(set) if !set.is_none() => Some(string(set)?),
        _ => None,
    };
    let drops = |c: char| set.map_or_else(|| is_space(c), |set| set.contains(c));
    let text = if left {
        text.trim_start_matches(drops)
    } else {
        text
    };
    Ok(if right {
        text.trim_end_matches(drops)
    } else {
        text
    })
}

fn split(text: &str, sep: Option<&Value>, most: i128, from_right: bool) -> Result {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let sep = match sep {
        Some(sep) if !sep.is_none() => Some(string(sep)?),
        _ => None,
    };
    let mut parts: Vec<Value> = match (sep, from_right) {
        (Some(""), _) => return Err(unproved("separator")),
        (Some(sep), false) if most == usize::MAX => text.split(sep).map(Value::from).collect(),
        (Some(sep), false) => text
            .splitn(most.saturating_add(1), sep)
            .map(Value::from)
            .collect(),
        (Some(sep), true) => text
            .rsplitn(most.saturating_add(1), sep)
            .map(Value::from)
            .collect(),
        (None, false) => words(text, most),
        (None, true) => words_from_right(text, most),
    };
    if from_right {
        parts.reverse();
    }
    Ok(Value::from(parts))
}

fn words(text: &str, most: usize) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let end = rest.find(is_space).filter(|_| parts.len() < most);
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        parts.push(Value::from(word));
        rest = after.trim_start_matches(is_space);
    }
    parts
}

fn words_from_right(text: &str, most: usize) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut rest = text.trim_end_matches(is_space);
    while !rest.is_empty() {
        let last = rest.char_indices().rev().find(|(_, c)| is_space(*c));
        let start = last
            .filter(|_| parts.len() < most)
            .map_or(0, |(at, c)| at + c.len_utf8());
        let (before, word) = rest.split_at(start);
        parts.push(Value::from(word));
        rest = before.trim_end_matches(is_space);
    }
    parts
}

/// `str.splitlines`.
pub(super) fn lines(text: &str, keep_ends: bool) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !is_line_break(c) {
            continue;
        }
        let mut next = at + c.len_utf8();
        if c == '\r' && chars.next_if(|(_, c)| *c == '\n').is_some() {
            next += 1;
        }
        lines.push(Value::from(&text[start..if keep_ends { next } else { at }]));
        start = next;
    }
    if start < text.len() {
        lines.push(Value::from(&text[start..]));
    }
    lines
}

/// `str.replace`; a negative `count` means all.
pub(super) fn replace(value: &Value, text: &str, old: &str, new: &str, count: i128) -> Result {
    if !old.is_empty() && !text.contains(old) {
        return Ok(value.clone());
    }
    // Only what could grow much is counted first.
    let most = text.len() / old.len().max(1) + 1;
    if most.saturating_mul(new.len()) > SMALL {
        let found = text.matches(old).count();
        let found = usize::try_from(count).map_or(found, |count| count.min(found));
        budget::spend(found.saturating_mul(new.len()))?;
    }
    Ok(Value::from(match usize::try_from(count) {
        Ok(count) => text.replacen(old, new, count),
        Err(_) => text.replace(old, new),
    }))
}

fn affix(text: &str, args: &[Value], has: fn(&str, &str) -> bool) -> Result<bool> {
    let within = match args {
        [_] => Some(text),
        _ => bounded(text, &args[1..])?.map(|(_, within)| within),
    };
    let test = |part: &str| within.is_some_and(|text| has(text, part));
    match Kind::of(&args[0]) {
        Kind::Str(part) => Ok(test(part)),
        Kind::Tuple(parts) => {
            for part in parts {
                if test(string(part)?) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Err(unproved("operand")),
    }
}

/// The part of `text` between the bounds in `args` and the number of code points before it. `None`
/// if the start lies behind the end, where not even the empty string is found.
fn bounded<'t>(text: &'t str, args: &[Value]) -> Result<Option<(usize, &'t str)>> {
    let (start, end) = (bound(args.first())?, bound(args.get(1))?);
    if start.is_none() && end.is_none() {
        return Ok(Some((0, text)));
    }
    let len = text.chars().count() as i128;
    let absolute = |bound: i128| match bound {
        0.. => bound,
        _ => bound.saturating_add(len).max(0),
    };
    let start = start.map_or(0, absolute);
    let end = end.map_or(len, absolute).min(len);
    if start > end {
        return Ok(None);
    }
    let within = attributes::substring(text, Some(start), Some(end));
    Ok(Some((start as usize, within)))
}

fn position(
    text: &str,
    args: &[Value],
    search: fn(&str, &str) -> Option<usize>,
) -> Result<Option<usize>> {
    let part = string(&args[0])?;
    let Some((skipped, within)) = bounded(text, &args[1..])? else {
        return Ok(None);
    };
    let at = search(within, part);
    Ok(at.map(|at| skipped + within[..at].chars().count()))
}

fn found(position: Option<usize>, or_minus_one: bool) -> Result {
    match position {
        Some(at) => Ok(Value::from(at)),
        None if or_minus_one => Ok(Value::from(-1)),
        None => Err(unproved("not_found")),
    }
}

fn partition(text: &str, sep: &Value, from_right: bool) -> Result {
    let sep = string(sep)?;
    if sep.is_empty() {
        return Err(unproved("separator"));
    }
    let halves = if from_right {
        text.rsplit_once(sep)
    } else {
        text.split_once(sep)
    };
    let parts = match halves {
        Some((before, after)) => [before, sep, after],
        None if from_right => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Value::from(Tuple::from(parts.map(Value::from))))
}

fn join(separator: &str, parts: &Value) -> Result {
    let parts = super::sequences::elements(parts)?;
    let mut out = String::new();
    for (at, part) in parts.iter().enumerate() {
        let part = Kind::of(part).text().ok_or_else(|| unproved("operand"))?;
        budget::spend(separator.len() + part.len())?;
        if at > 0 {
            out.push_str(separator);
        }
        out.push_str(part);
    }
    Ok(Value::from(out))
}

fn expand_tabs(text: &str, size: i128) -> Result<String> {
    let size = usize::try_from(size.max(0)).unwrap_or(usize::MAX);
    let (mut out, mut column) = (String::with_capacity(text.len()), 0);
    for c in text.chars() {
        match c {
            '\t' if size == 0 => {}
            '\t' => {
                let blanks = size - column % size;
                budget::spend(blanks)?;
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            _ => {
                out.push(c);
                column = if matches!(c, '\n' | '\r') {
                    0
                } else {
                    column + 1
                };
            }
        }
    }
    Ok(out)
}

fn missing(text: &str, width: i128) -> Result<usize> {
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    budget::building(width.saturating_mul(4))?;
    Ok(width.saturating_sub(text.chars().count()))
}

fn zero_fill(text: &str, width: i128) -> Result<String> {
    let zeros = "0".repeat(missing(text, width)?);
    Ok(match text.split_at_checked(1) {
        Some((sign @ ("+" | "-"), digits)) => format!("{sign}{zeros}{digits}"),
        _ => format!("{zeros}{text}"),
    })
}

fn justify(text: &str, args: &[Value], name: &str) -> Result<String> {
    let width = size(&args[0])?;
    let fill = args.get(1).map_or(Ok(" "), string)?;
    if fill.chars().count() != 1 {
        return Err(unproved("operand"));
    }
    let missing = missing(text, width)?;
    let left = match name {
        "ljust" => 0,
        "rjust" => missing,
        _ => center_left(missing, width),
    };
    Ok(format!(
        "{}{text}{}",
        fill.repeat(left),
        fill.repeat(missing - left)
    ))
}

/// How many of the `missing` characters `str.center` puts on the left.
fn center_left(missing: usize, width: i128) -> usize {
    missing / 2 + usize::from(missing % 2 == 1 && width % 2 != 0)
}

/// `str.center` with blanks.
pub(super) fn center(text: &str, width: i128) -> Result<String> {
    let missing = missing(text, width)?;
    let left = center_left(missing, width);
    Ok(format!(
        "{}{text}{}",
        " ".repeat(left),
        " ".repeat(missing - left)
    ))
}

fn is_printable(text: &str) -> Result<bool> {
    for c in text.chars() {
        match printable(c) {
            Printable::Yes => {}
            Printable::No => return Ok(false),
            Printable::Unknown => return Err(unproved("unicode")),
        }
    }
    Ok(true)
}

/// `isalpha` and the like; their Unicode tables are not ours.
fn ascii_predicate(text: &str, name: &str) -> Result<bool> {
    if !text.is_ascii() {
        return Err(unproved("unicode"));
    }
    let all = |test: fn(&u8) -> bool| !text.is_empty() && text.bytes().all(|byte| test(&byte));
    Ok(match name {
        "isalpha" => all(u8::is_ascii_alphabetic),
        "isalnum" => all(u8::is_ascii_alphanumeric),
        "isdigit" | "isdecimal" | "isnumeric" => all(u8::is_ascii_digit),
        "istitle" => is_title(text),
        "isidentifier" => {
            let first = text.bytes().next();
            first.is_some_and(|byte| !byte.is_ascii_digit())
                && text
                    .bytes()
                    .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        }
        _ => return Err(unproved("method")),
    })
}

fn is_title(text: &str) -> bool {
    let (mut cased, mut previous) = (false, false);
    for byte in text.bytes() {
        if byte.is_ascii_alphabetic() {
            if byte.is_ascii_uppercase() == previous {
                return false;
            }
            cased = true;
        }
        previous = byte.is_ascii_alphabetic();
    }
    cased
}

/// `str.format` with plain fields: `{}`, `{0}` and `{name}`.
fn format(text: &str, arguments: &Arguments) -> Result<String> {
    let keywords = arguments.keywords()?;
    let (mut automatic, mut numbered) = (0, false);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            out.push_str(brace);
            rest = after;
            continue;
        }
        let Some((field, after)) = after.split_once('}').filter(|_| brace == "{") else {
            return Err(unproved("format"));
        };
        rest = after;
        let value = if field.is_empty() {
            automatic += 1;
            arguments.positional.get(automatic - 1)
        } else if field.bytes().all(|byte| byte.is_ascii_digit()) {
            numbered = true;
            let at: Option<usize> = field.parse().ok();
            at.and_then(|at| arguments.positional.get(at))
        } else if field
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        {
            keywords
                .iter()
                .find(|(name, _)| *name == field)
                .map(|(_, value)| value)
        } else {
            None
        };
        if automatic > 0 && numbered {
            return Err(unproved("format"));
        }
        let shown = texts::str_of(value.ok_or_else(|| unproved("format"))?)?;
        budget::spend(shown.len())?;
        out.push_str(&shown);
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::probe::{keywords, list, method, none, tuple};
    use minijinja::Value;

    fn call(name: &str, text: &str, args: &[Value]) -> String {
        let mut values = vec![Value::from(text)];
        values.extend_from_slice(args);
        method(name, &values)
    }

    #[test]
    fn white_space_is_that_of_python() {
        assert_eq!(call("strip", "\u{1c}\u{3000}\u{a0} x \u{85}\n", &[]), "x");
        assert_eq!(call("strip", "xxaxx", &["x".into()]), "a");
        assert_eq!(call("lstrip", "\n\n a\n", &["\n".into()]), " a\n");
        assert_eq!(call("rstrip", " a ", &[none()]), " a");
        assert_eq!(
            call("split", " a\u{1c}b\u{3000} c ", &[]),
            "['a', 'b', 'c']"
        );
        assert_eq!(
            call("splitlines", "a\r\nb\u{b}c\u{2028}d\n", &[]),
            "['a', 'b', 'c', 'd']"
        );
        assert_eq!(
            call("splitlines", "a\r\nb", &[true.into()]),
            r"['a\r\n', 'b']"
        );
        assert_eq!(call("isspace", "\u{1f}\u{2009}", &[]), "True");
        assert_eq!(call("isspace", "\u{200b}", &[]), "False");
    }

    #[test]
    fn splitting() {
        assert_eq!(
            call("split", "a,b,,c", &[",".into()]),
            "['a', 'b', '', 'c']"
        );
        assert_eq!(
            call("split", "a,b,c", &[",".into(), 1.into()]),
            "['a', 'b,c']"
        );
        assert_eq!(
            call("rsplit", "a,b,c", &[",".into(), 1.into()]),
            "['a,b', 'c']"
        );
        assert_eq!(
            call("split", " a b c ", &[none(), 1.into()]),
            "['a', 'b c ']"
        );
        assert_eq!(
            call("rsplit", " a b c ", &[none(), 1.into()]),
            "[' a b', 'c']"
        );
        assert_eq!(
            call("split", "a b", &[keywords([("maxsplit", 0)])]),
            "['a b']"
        );
        assert_eq!(call("split", "a", &["".into()]), "!separator");
        assert_eq!(call("split", "", &[]), "[]");
        assert_eq!(call("split", "", &["x".into()]), "['']");
        assert_eq!(
            call("partition", "a=b=c", &["=".into()]),
            "('a', '=', 'b=c')"
        );
        assert_eq!(call("rpartition", "abc", &["=".into()]), "('', '', 'abc')");
    }

    #[test]
    fn searching_counts_code_points() {
        assert_eq!(call("find", "日本語", &["語".into()]), "2");
        assert_eq!(call("rfind", "aXaXa", &["X".into(), none(), 3.into()]), "1");
        assert_eq!(call("find", "abc", &["".into(), 3.into()]), "3");
        assert_eq!(call("find", "abc", &["".into(), 4.into()]), "-1");
        assert_eq!(call("index", "abc", &["x".into()]), "!not_found");
        assert_eq!(call("count", "aaa", &["aa".into()]), "1");
        assert_eq!(call("count", "日本", &["".into()]), "3");
        assert_eq!(call("startswith", "abc", &[tuple(["x", "ab"])]), "True");
        assert_eq!(call("startswith", "abc", &["bc".into(), 1.into()]), "True");
        assert_eq!(call("endswith", "abc", &["".into(), 4.into()]), "False");
        assert_eq!(call("startswith", "abc", &[list(["a"])]), "!operand");
    }

    #[test]
    fn building() {
        assert_eq!(
            call("replace", "aaa", &["a".into(), "b".into(), 2.into()]),
            "bba"
        );
        assert_eq!(call("replace", "ab", &["".into(), "-".into()]), "-a-b-");
        assert_eq!(call("join", ", ", &[list(["a", "b"])]), "a, b");
        assert_eq!(call("join", ",", &[list([1])]), "!operand");
        assert_eq!(call("zfill", "-42", &[5.into()]), "-0042");
        assert_eq!(call("center", "ab", &[5.into(), "*".into()]), "**ab*");
        assert_eq!(call("ljust", "é", &[3.into()]), "é  ");
        assert_eq!(call("expandtabs", "a\tb\n\tc", &[4.into()]), "a   b\n    c");
        assert_eq!(call("removeprefix", "xxa", &["x".into()]), "xa");
        assert_eq!(call("format", "{}-{}", &[1.into(), "a".into()]), "1-a");
        assert_eq!(call("format", "{x}{{}}", &[keywords([("x", 1)])]), "1{}");
        assert_eq!(call("format", "{:>5}", &[1.into()]), "!format");
        assert_eq!(call("format", "{}{0}", &[1.into()]), "!format");
    }

    #[test]
    fn arguments_are_checked_as_in_python() {
        assert_eq!(
            call("strip", "a", &[keywords([("chars", "a")])]),
            "!arguments"
        );
        assert_eq!(call("split", "a", &[keywords([("by", "a")])]), "!arguments");
        assert_eq!(call("upper", "a", &[1.into()]), "!arguments");
        assert_eq!(call("replace", "a", &["a".into()]), "!arguments");
        assert_eq!(call("strip", "a", &[1.into()]), "!operand");
        assert_eq!(call("encode", "a", &[]), "!method");
        assert_eq!(call("append", "a", &[1.into()]), "!method");
    }
}
