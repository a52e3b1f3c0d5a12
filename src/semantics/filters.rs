//! jinja2's filters.
//!
//! Those that jinja2 writes as generators return [`Generator`]s. Left out, so that the reference
//! serves a template that names them: what returns escaped or wrapped text by rules of its own
//! (`striptags`, `urlize`, `wordwrap`, `xmlattr`, `pprint`, `filesizeformat`, `urlencode`), chance
//! (`random`), and `attr` and `groupby`, whose results are Python objects with attributes.

use super::arguments::{Arguments, Raw};
use super::compare::Number;
use super::iterables::{self, Generator};
use super::kind::{Kind, int};
use super::sequences::{self, Path, elements, ignore_case};
use super::{
    Result, arithmetic, budget, casing, compare, json, numerals, printf, strings, tests, text,
    unproved,
};
use minijinja::{Environment, State, Value};
use std::borrow::Cow;
use std::cmp::Ordering;

/// A filter: the filtered value, then the arguments, keywords last.
type Filter = fn(&mut State, &[Value]) -> Result;

macro_rules! filters {
    ($($name:literal => $filter:expr,)*) => {
        /// Names of the filters that a template may use.
        pub const NAMES: &[&str] = &[$($name),*];

        const TABLE: &[(&str, Filter)] = &[$(($name, $filter)),*];
    };
}

filters! {
    "abs" => |_, args| abs(args),
    "batch" => |_, args| batch(args),
    "capitalize" => |_, args| casing::capitalize(&soft(only(args)?)?),
    "center" => |_, args| center(args),
    "count" => |_, args| sequences::length(only(args)?).map(Value::from),
    "d" => |_, args| default(args),
    "default" => |_, args| default(args),
    "dictsort" => |_, args| dictsort(args),
    "e" => |_, args| escape(args),
    "escape" => |_, args| escape(args),
    "first" => |_, args| first(args),
    "float" => |_, args| numerals::float(args),
    "format" => |_, args| format(args),
    "indent" => |_, args| indent(args),
    "int" => |_, args| numerals::int(args),
    "items" => |_, args| items(args),
    "join" => |_, args| join(args),
    "last" => |_, args| last(args),
    "length" => |_, args| sequences::length(only(args)?).map(Value::from),
    "list" => |_, args| Ok(Value::from(elements(only(args)?)?.into_owned())),
    "lower" => |_, args| lower(args),
    "map" => map,
    "max" => |_, args| extreme(args, Ordering::Greater),
    "min" => |_, args| extreme(args, Ordering::Less),
    "reject" => |state, args| select(state, args, false, false),
    "rejectattr" => |state, args| select(state, args, true, false),
    "replace" => |_, args| replace(args),
    "reverse" => |_, args| reverse(args),
    "round" => |_, args| numerals::round(args),
    "safe" => |_, args| safe(args),
    "select" => |state, args| select(state, args, false, true),
    "selectattr" => |state, args| select(state, args, true, true),
    "slice" => |_, args| slice(args),
    "sort" => |_, args| sort(args),
    "string" => |_, args| string(args),
    "sum" => |_, args| sum(args),
    "title" => |_, args| title(args),
    "tojson" => |_, args| json::tojson(args),
    "trim" => |_, args| trim(args),
    "truncate" => |_, args| truncate(args),
    "unique" => |_, args| unique(args),
    "upper" => |_, args| upper(args),
    "wordcount" => |_, args| wordcount(args),
}

/// The filters that make a `Markup` of text. What is added to one with `+` is escaped, so a template
/// that uses one of them cannot be given the engine's own `+`.
pub const MARKUP: &[&str] = &["e", "escape", "safe"];

/// Adds them to `env`.
pub fn install(env: &mut Environment<'static>) {
    for &(name, filter) in TABLE {
        env.add_filter(name, move |state: &mut State, args: Raw<'_>| {
            run(filter, state, args.0)
        });
    }
}

/// `tojson`, charged for, for who needs it by another name.
pub fn tojson(args: &[Value]) -> Result {
    budget::reads(args)?;
    budget::made(json::tojson(args))
}

/// Applies a filter and charges for it.
fn run(filter: Filter, state: &mut State, args: &[Value]) -> Result {
    budget::reads(args)?;
    budget::made(filter(state, args))
}

/// The filtered value, of a filter without parameters.
fn only(args: &[Value]) -> Result<&Value> {
    Ok(&Arguments::of(args).only(1, 1)?[0])
}

/// jinja2's `soft_str`, except for `Markup`.
fn soft(value: &Value) -> Result<Cow<'_, str>> {
    match Kind::of(value) {
        Kind::Markup(_) => Err(unproved("markup")),
        _ => text::str_of(value),
    }
}

fn truth(value: Option<Value>) -> bool {
    value.is_some_and(|value| value.is_true())
}

/// An argument that goes to a C function as a flag: no truth values but those of ints.
fn flag(value: Option<Value>) -> Result<bool> {
    match value {
        Some(value) => match Kind::of(&value) {
            Kind::Bool(value) => Ok(value),
            _ => Err(unproved("arguments")),
        },
        None => Ok(false),
    }
}

fn count_of(value: &Value) -> Result<usize> {
    let count = Kind::of(value).int().ok_or_else(|| unproved("arguments"))?;
    usize::try_from(count).map_err(|_| unproved("arguments"))
}

/// A required argument that [`Arguments::bind`] has checked.
fn given(value: Option<Value>) -> Result {
    value.ok_or_else(|| unproved("arguments"))
}

fn abs(args: &[Value]) -> Result {
    match Number::of(&Kind::of(only(args)?)) {
        Some(Number::Int(value)) => value.checked_abs().map(int).ok_or_else(|| unproved("int")),
        Some(Number::Float(value)) => Ok(Value::from(value.abs())),
        None => Err(unproved("operand")),
    }
}

fn batch(args: &[Value]) -> Result {
    let [value, size, fill] = Arguments::of(args).bind(["value", "linecount", "fill_with"], 2)?;
    let (value, size) = (given(value)?, count_of(&given(size)?)?);
    if size == 0 {
        return Err(unproved("arguments"));
    }
    let items = elements(&value)?;
    let mut rows: Vec<Vec<Value>> = items.chunks(size).map(<[Value]>::to_vec).collect();
    if let (Some(fill), Some(last)) = (fill.filter(|fill| !fill.is_none()), rows.last_mut()) {
        budget::visit(size)?;
        last.resize(size, fill);
    }
    Ok(Generator::value(
        rows.into_iter().map(Value::from).collect(),
    ))
}

fn center(args: &[Value]) -> Result {
    let [value, width] = Arguments::of(args).bind(["value", "width"], 1)?;
    let width = match width {
        Some(width) => Kind::of(&width)
            .size()
            .ok_or_else(|| unproved("arguments"))?,
        None => 80,
    };
    strings::center(&soft(&given(value)?)?, width).map(Value::from)
}

fn default(args: &[Value]) -> Result {
    let names = ["value", "default_value", "boolean"];
    let [value, default, boolean] = Arguments::of(args).bind(names, 1)?;
    let value = given(value)?;
    if value.is_undefined() || (truth(boolean) && !value.is_true()) {
        Ok(default.unwrap_or_else(|| Value::from("")))
    } else {
        Ok(value)
    }
}

fn dictsort(args: &[Value]) -> Result {
    let names = ["value", "case_sensitive", "by", "reverse"];
    let [value, case_sensitive, by, reverse] = Arguments::of(args).bind(names, 1)?;
    let value = given(value)?;
    let Kind::Dict(dict) = Kind::of(&value) else {
        return Err(unproved("operand"));
    };
    let by_value = match by.as_ref().map(Kind::of) {
        None | Some(Kind::Str("key")) => false,
        Some(Kind::Str("value")) => true,
        _ => return Err(unproved("arguments")),
    };
    let case_sensitive = truth(case_sensitive);
    let mut keyed = Vec::with_capacity(dict.entries().len());
    for entry in dict.entries() {
        let key = if by_value { &entry.1 } else { &entry.0 }.clone();
        let key = if case_sensitive {
            key
        } else {
            ignore_case(key)?
        };
        keyed.push((key, iterables::pair(entry)));
    }
    sequences::sorted(keyed, flag(reverse)?).map(Value::from)
}

fn escape(args: &[Value]) -> Result {
    let value = only(args)?;
    if matches!(Kind::of(value), Kind::Markup(_)) {
        return Ok(value.clone());
    }
    Ok(Value::from_safe_string(text::escaped(&text::str_of(
        value,
    )?)))
}

fn first(args: &[Value]) -> Result {
    let value = only(args)?;
    match Kind::of(value) {
        Kind::Str(text) => Ok(text.chars().next().map_or(Value::UNDEFINED, Value::from)),
        _ => Ok(elements(value)?
            .first()
            .cloned()
            .unwrap_or(Value::UNDEFINED)),
    }
}

fn last(args: &[Value]) -> Result {
    let value = only(args)?;
    match Kind::of(value) {
        Kind::Str(text) => Ok(text
            .chars()
            .next_back()
            .map_or(Value::UNDEFINED, Value::from)),
        Kind::Generator(_) => Err(unproved("generator")),
        _ => Ok(elements(value)?.last().cloned().unwrap_or(Value::UNDEFINED)),
    }
}

fn format(args: &[Value]) -> Result {
    let arguments = Arguments::of(args);
    let [value, items @ ..] = arguments.only(1, usize::MAX)? else {
        return Err(unproved("arguments"));
    };
    printf::apply(&soft(value)?, items, false).map(Value::from)
}

fn indent(args: &[Value]) -> Result {
    let names = ["s", "width", "first", "blank"];
    let [value, width, first, blank] = Arguments::of(args).bind(names, 1)?;
    let value = given(value)?;
    let Kind::Str(text) = Kind::of(&value) else {
        return Err(unproved("operand"));
    };
    let indention = match width.as_ref().map(Kind::of) {
        None => Cow::Borrowed("    "),
        Some(Kind::Str(text)) => Cow::Borrowed(text),
        Some(kind) => match kind.size() {
            Some(width @ ..=1000) => Cow::Owned(" ".repeat(usize::try_from(width).unwrap_or(0))),
            _ => return Err(unproved("arguments")),
        },
    };
    let (first, blank) = (truth(first), truth(blank));
    let mut out = String::with_capacity(text.len());
    // jinja2 appends a newline first: an empty text is one line.
    for (at, line) in strings::lines(&format!("{text}\n"), false)
        .iter()
        .enumerate()
    {
        let line = line.as_str().unwrap_or_default();
        budget::spend(indention.len())?;
        if at > 0 {
            out.push('\n');
        }
        if if at == 0 {
            first
        } else {
            blank || !line.is_empty()
        } {
            out.push_str(&indention);
        }
        out.push_str(line);
    }
    Ok(Value::from(out))
}

fn items(args: &[Value]) -> Result {
    match Kind::of(only(args)?) {
        Kind::Undefined => Ok(Generator::value(Vec::new())),
        Kind::Dict(dict) => Ok(Generator::value(
            dict.entries().iter().map(iterables::pair).collect(),
        )),
        _ => Err(unproved("operand")),
    }
}

fn join(args: &[Value]) -> Result {
    let [value, separator, attribute] = Arguments::of(args).bind(["value", "d", "attribute"], 1)?;
    let value = given(value)?;
    let separator = separator.unwrap_or_else(|| Value::from(""));
    let separator = text::str_of(&separator)?;
    let path = Path::of(attribute.as_ref())?;
    let mut out = String::new();
    for (at, item) in elements(&value)?.iter().enumerate() {
        let item = path.get(item, None)?;
        let item = text::str_of(&item)?;
        budget::spend(separator.len() + item.len())?;
        if at > 0 {
            out.push_str(&separator);
        }
        out.push_str(&item);
    }
    Ok(Value::from(out))
}

fn lower(args: &[Value]) -> Result {
    let value = only(args)?;
    match Kind::of(value) {
        Kind::Str(text) => casing::lower(value, text),
        _ => casing::lowered(&soft(value)?).map(Value::from),
    }
}

fn upper(args: &[Value]) -> Result {
    let value = only(args)?;
    match Kind::of(value) {
        Kind::Str(text) => casing::upper(value, text),
        _ => casing::uppered(&soft(value)?).map(Value::from),
    }
}

/// Python: each word begins in upper case, where words also begin after `-({[<`.
fn title(args: &[Value]) -> Result {
    let text = soft(only(args)?)?;
    let separates =
        |c: char| matches!(c, '-' | '(' | '{' | '[' | '<') || super::unicode::is_space(c);
    let mut out = String::with_capacity(text.len());
    let mut rest: &str = &text;
    while let Some(first) = rest.chars().next() {
        let end = rest
            .find(|c| separates(c) != separates(first))
            .unwrap_or(rest.len());
        let (head, tail) = rest[..end].split_at(first.len_utf8());
        out.push_str(&casing::uppered(head)?);
        out.push_str(&casing::lowered(tail)?);
        rest = &rest[end..];
    }
    Ok(Value::from(out))
}

fn map(state: &mut State, args: &[Value]) -> Result {
    let arguments = Arguments::of(args);
    let [value, rest @ ..] = arguments.positional else {
        return Err(unproved("arguments"));
    };
    if !value.is_true() {
        return Ok(Generator::value(Vec::new()));
    }
    let mut out = Vec::new();
    let by_attribute = arguments
        .keywords()?
        .iter()
        .any(|(name, _)| *name == "attribute");
    if rest.is_empty() && by_attribute {
        let keywords = Arguments {
            positional: &[],
            keywords: arguments.keywords,
        };
        let [attribute, default] = keywords.bind(["attribute", "default"], 1)?;
        let path = Path::of(attribute.as_ref())?;
        let default = default.filter(|default| !default.is_none());
        for item in elements(value)?.iter() {
            out.push(path.get(item, default.as_ref())?);
        }
    } else {
        let name = rest
            .first()
            .and_then(Value::as_str)
            .ok_or_else(|| unproved("arguments"))?;
        let filter = TABLE.iter().find(|(known, _)| *known == name);
        let (_, filter) = filter.ok_or_else(|| unproved("filter"))?;
        if MARKUP.contains(&name) {
            return Err(unproved("markup"));
        }
        // The keywords, if any, are still the last argument.
        let mut call = args[1..].to_vec();
        for item in elements(value)?.iter() {
            call[0] = item.clone();
            out.push(run(*filter, state, &call)?);
        }
    }
    Ok(Generator::value(out))
}

fn select(state: &mut State, args: &[Value], by_attribute: bool, keep: bool) -> Result {
    let [value, rest @ ..] = args else {
        return Err(unproved("arguments"));
    };
    if !value.is_true() {
        return Ok(Generator::value(Vec::new()));
    }
    let (path, rest) = match rest {
        [attribute, rest @ ..] if by_attribute && !attribute.is_kwargs() => {
            (Path::of(Some(attribute))?, rest)
        }
        _ if by_attribute => return Err(unproved("arguments")),
        _ => (Path::of(None)?, rest),
    };
    let test = match rest {
        [] => None,
        [name, ..] => {
            let name = name.as_str().ok_or_else(|| unproved("arguments"))?;
            Some(tests::find(name).ok_or_else(|| unproved("test"))?)
        }
    };
    let mut call = rest.to_vec();
    let mut out = Vec::new();
    for item in elements(value)?.iter() {
        let subject = path.get(item, None)?;
        let passes = match test {
            Some(test) => {
                call[0] = subject;
                test(state, &call)?
            }
            None => subject.is_true(),
        };
        if passes == keep {
            out.push(item.clone());
        }
    }
    Ok(Generator::value(out))
}

fn extreme(args: &[Value], wanted: Ordering) -> Result {
    let names = ["value", "case_sensitive", "attribute"];
    let [value, case_sensitive, attribute] = Arguments::of(args).bind(names, 1)?;
    let path = Path::of(attribute.as_ref())?;
    let case_sensitive = truth(case_sensitive);
    let mut best: Option<(Value, Value)> = None;
    for item in elements(&given(value)?)?.iter() {
        let key = path.get(item, None)?;
        let key = if case_sensitive {
            key
        } else {
            ignore_case(key)?
        };
        match &best {
            None => best = Some((key, item.clone())),
            Some((best_key, _)) => match compare::order(&key, best_key)? {
                Some(order) if order == wanted => best = Some((key, item.clone())),
                Some(_) => {}
                None => return Err(unproved("nan")),
            },
        }
    }
    Ok(best.map_or(Value::UNDEFINED, |(_, item)| item))
}

fn replace(args: &[Value]) -> Result {
    let [value, old, new, count] = Arguments::of(args).bind(["s", "old", "new", "count"], 3)?;
    let (value, old, new) = (given(value)?, given(old)?, given(new)?);
    let count = match count.filter(|count| !count.is_none()) {
        Some(count) => Kind::of(&count)
            .size()
            .ok_or_else(|| unproved("arguments"))?,
        None => -1,
    };
    let (old, new) = (text::str_of(&old)?, text::str_of(&new)?);
    match Kind::of(&value) {
        Kind::Str(text) => strings::replace(&value, text, &old, &new, count),
        _ => {
            let plain = Value::from(text::str_of(&value)?);
            let text = plain.as_str().unwrap_or_default();
            strings::replace(&plain, text, &old, &new, count)
        }
    }
}

fn reverse(args: &[Value]) -> Result {
    let value = only(args)?;
    match Kind::of(value) {
        Kind::Str(text) => Ok(Value::from(text.chars().rev().collect::<String>())),
        kind => {
            let mut items = elements(value)?.into_owned();
            items.reverse();
            Ok(match kind {
                // `reversed` refuses it, so jinja2 makes a list.
                Kind::Generator(_) => Value::from(items),
                _ => Generator::value(items),
            })
        }
    }
}

fn safe(args: &[Value]) -> Result {
    let text = text::str_of(only(args)?)?;
    Ok(Value::from_safe_string(text.into_owned()))
}

fn slice(args: &[Value]) -> Result {
    let [value, slices, fill] = Arguments::of(args).bind(["value", "slices", "fill_with"], 2)?;
    let (value, slices) = (given(value)?, count_of(&given(slices)?)?);
    if slices == 0 || slices > 100_000 {
        return Err(unproved("arguments"));
    }
    let fill = fill.filter(|fill| !fill.is_none());
    let items = elements(&value)?;
    let (each, with_extra) = (items.len() / slices, items.len() % slices);
    let mut start = 0;
    let rows = (0..slices).map(|number| {
        let end = start + each + usize::from(number < with_extra);
        let mut row = items[start..end].to_vec();
        start = end;
        if let Some(fill) = fill.as_ref().filter(|_| number >= with_extra) {
            row.push(fill.clone());
        }
        Value::from(row)
    });
    Ok(Generator::value(rows.collect()))
}

fn sort(args: &[Value]) -> Result {
    let names = ["value", "reverse", "case_sensitive", "attribute"];
    let [value, reverse, case_sensitive, attribute] = Arguments::of(args).bind(names, 1)?;
    let paths = Path::many(attribute.as_ref())?;
    let case_sensitive = truth(case_sensitive);
    let value = given(value)?;
    let items = elements(&value)?;
    let mut keyed = Vec::with_capacity(items.len());
    for item in items.iter() {
        let keys = paths.iter().map(|path| {
            let key = path.get(item, None)?;
            if case_sensitive {
                Ok(key)
            } else {
                ignore_case(key)
            }
        });
        keyed.push((Value::from(keys.collect::<Result<Vec<_>>>()?), item.clone()));
    }
    sequences::sorted(keyed, flag(reverse)?).map(Value::from)
}

fn string(args: &[Value]) -> Result {
    let value = only(args)?;
    match Kind::of(value) {
        Kind::Str(_) | Kind::Markup(_) => Ok(value.clone()),
        _ => Ok(Value::from(text::str_of(value)?)),
    }
}

fn sum(args: &[Value]) -> Result {
    let [value, attribute, start] =
        Arguments::of(args).bind(["iterable", "attribute", "start"], 1)?;
    let path = Path::of(attribute.as_ref())?;
    let mut total = start.unwrap_or_else(|| Value::from(0));
    if Kind::of(&total).int().is_none() {
        return Err(unproved("sum"));
    }
    for item in elements(&given(value)?)?.iter() {
        let item = path.get(item, None)?;
        if Kind::of(&item).int().is_none() {
            // How floats are added differs between Python versions.
            return Err(unproved("sum"));
        }
        total = arithmetic::add(&total, &item)?;
    }
    Ok(total)
}

fn trim(args: &[Value]) -> Result {
    if let [value] = args
        && let Kind::Str(text) = Kind::of(value)
    {
        return Ok(strings::shared(
            value,
            text,
            strings::strip(text, None, (true, true))?,
        ));
    }
    let [value, chars] = Arguments::of(args).bind(["value", "chars"], 1)?;
    let value = given(value)?;
    let text = soft(&value)?;
    Ok(Value::from(strings::strip(
        &text,
        chars.as_ref(),
        (true, true),
    )?))
}

fn truncate(args: &[Value]) -> Result {
    let names = ["s", "length", "killwords", "end", "leeway"];
    let [value, length, killwords, end, leeway] = Arguments::of(args).bind(names, 1)?;
    let (value, end) = (given(value)?, end.unwrap_or_else(|| Value::from("...")));
    let (Kind::Str(text), Kind::Str(end)) = (Kind::of(&value), Kind::of(&end)) else {
        return Err(unproved("operand"));
    };
    let length = length.map_or(Ok(255), |length| count_of(&length))?;
    let leeway = match leeway.filter(|leeway| !leeway.is_none()) {
        Some(leeway) => count_of(&leeway)?,
        None => 5,
    };
    let kept = length.checked_sub(end.chars().count());
    let kept = kept.ok_or_else(|| unproved("arguments"))?;
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(value.clone());
    }
    let start = super::attributes::substring(text, None, Some(kept as i128));
    let start = match start.rsplit_once(' ') {
        Some((before, _)) if !truth(killwords) => before,
        _ => start,
    };
    Ok(Value::from(arithmetic::joined(start, end)))
}

fn unique(args: &[Value]) -> Result {
    let names = ["value", "case_sensitive", "attribute"];
    let [value, case_sensitive, attribute] = Arguments::of(args).bind(names, 1)?;
    let path = Path::of(attribute.as_ref())?;
    let case_sensitive = truth(case_sensitive);
    let mut texts = std::collections::HashSet::new();
    let mut others: Vec<Value> = Vec::new();
    let mut out = Vec::new();
    for item in elements(&given(value)?)?.iter() {
        let key = path.get(item, None)?;
        let key = if case_sensitive {
            key
        } else {
            ignore_case(key)?
        };
        let is_new = match Kind::of(&key) {
            Kind::Str(text) => texts.insert(text.to_owned()),
            Kind::Undefined | Kind::None | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => {
                budget::visit(others.len())?;
                let known = compare::contains(&Value::from(others.clone()), &key)?;
                if !known {
                    others.push(key.clone());
                }
                !known
            }
            _ => return Err(unproved("key")),
        };
        if is_new {
            out.push(item.clone());
        }
    }
    Ok(Generator::value(out))
}

fn wordcount(args: &[Value]) -> Result {
    let text = soft(only(args)?)?;
    if !text.is_ascii() {
        return Err(unproved("unicode"));
    }
    let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let words = text.split(|c| !is_word(c)).filter(|word| !word.is_empty());
    Ok(Value::from(words.count()))
}

#[cfg(test)]
mod unit_tests {
    use super::super::probe::{called, dict, filter, keywords, list, none, tuple};
    use super::*;

    fn people() -> Value {
        list([
            dict([("n", Value::from("b")), ("v", Value::from(1))]),
            dict([("n", Value::from("A")), ("v", Value::from(2))]),
            dict([("n", Value::from("a")), ("v", Value::from(1))]),
        ])
    }

    fn names(filtered: &str, args: &[Value]) -> String {
        let people = super::super::probe::filtered(filtered, args).unwrap();
        filter("map", &[people, keywords([("attribute", "n")])])
    }

    #[test]
    fn text() {
        let table: [(&str, Vec<Value>, &str); 19] = [
            ("trim", vec!["\u{1c} a\u{3000}".into()], "a"),
            ("trim", vec!["xax".into(), "x".into()], "a"),
            ("trim", vec![none()], "None"),
            ("trim", vec![Value::UNDEFINED], ""),
            ("upper", vec![true.into()], "TRUE"),
            ("capitalize", vec!["aB".into()], "Ab"),
            (
                "replace",
                vec!["aaa".into(), "a".into(), "b".into(), 1.into()],
                "baa",
            ),
            ("replace", vec![11.into(), 1.into(), none()], "NoneNone"),
            ("string", vec![1.0.into()], "1.0"),
            ("center", vec!["ab".into(), 5.into()], "  ab "),
            ("format", vec!["%s-%d".into(), "a".into(), 1.into()], "a-1"),
            ("indent", vec!["a\n\nb".into()], "a\n\n    b"),
            (
                "indent",
                vec!["a\n\nb".into(), ">".into(), true.into(), true.into()],
                ">a\n>\n>b",
            ),
            (
                "truncate",
                vec!["aaa bbb ccc ddd".into(), 9.into()],
                "aaa...",
            ),
            ("truncate", vec!["aaa bbb".into(), 3.into()], "aaa bbb"),
            ("wordcount", vec!["a b_c, d-e".into()], "4"),
            ("escape", vec!["<'\">&".into()], "&lt;&#39;&#34;&gt;&amp;"),
            ("e", vec![Value::from_safe_string("<".into())], "<"),
            (
                "lower",
                vec![Value::from_safe_string("A".into())],
                "!markup",
            ),
        ];
        for (name, args, expected) in table {
            assert_eq!(filter(name, &args), expected, "{name} {args:?}");
        }
    }

    #[test]
    fn numbers() {
        let table: [(&str, Vec<Value>, &str); 21] = [
            ("int", vec![" 4_2 ".into()], "42"),
            ("int", vec!["42.9".into()], "42"),
            ("int", vec!["x".into(), 7.into()], "7"),
            ("int", vec![none()], "0"),
            ("int", vec![Value::UNDEFINED], "!operand"),
            ("int", vec![f64::INFINITY.into()], "!float"),
            ("int", vec!["inf".into()], "0"),
            ("int", vec!["٤".into()], "!unicode"),
            ("float", vec!["1e3".into()], "1000.0"),
            ("float", vec!["-.5".into()], "-0.5"),
            ("float", vec!["1__0".into(), none()], "None"),
            ("round", vec![2.5.into()], "2.0"),
            ("round", vec![2.675.into(), 2.into()], "2.67"),
            ("round", vec![42.into()], "42"),
            ("round", vec![1.21.into(), 1.into(), "ceil".into()], "1.3"),
            ("abs", vec![(-3).into()], "3"),
            ("abs", vec!["a".into()], "!operand"),
            ("sum", vec![list([1, 2])], "3"),
            ("sum", vec![list([0.1])], "!sum"),
            ("sum", vec![people(), "v".into(), 10.into()], "14"),
            ("sum", vec![list::<i32>([]), none(), "".into()], "!sum"),
        ];
        for (name, args, expected) in table {
            assert_eq!(filter(name, &args), expected, "{name} {args:?}");
        }
    }

    #[test]
    fn sequences() {
        let numbers = || list([3, 1, 2]);
        let table: [(&str, Vec<Value>, &str); 27] = [
            ("length", vec!["日本".into()], "2"),
            ("count", vec![Value::UNDEFINED], "0"),
            ("length", vec![5.into()], "!length"),
            ("first", vec!["日本".into()], "日"),
            ("last", vec![numbers()], "2"),
            ("first", vec![list::<i32>([])], ""),
            ("list", vec!["ab".into()], "['a', 'b']"),
            ("list", vec![dict([("k", 1)])], "['k']"),
            ("list", vec![none()], "!iterate"),
            (
                "join",
                vec![list([Value::from(1), none()]), "-".into()],
                "1-None",
            ),
            (
                "join",
                vec![people(), keywords([("attribute", "n")])],
                "bAa",
            ),
            ("sort", vec![list(["b", "A", "a"])], "['A', 'a', 'b']"),
            ("sort", vec![numbers(), true.into()], "[3, 2, 1]"),
            ("sort", vec![list([Value::from(1), "a".into()])], "!compare"),
            (
                "sort",
                vec![list([Value::UNDEFINED, Value::UNDEFINED])],
                "[Undefined, Undefined]",
            ),
            ("reverse", vec!["ab日".into()], "日ba"),
            ("reverse", vec![numbers()], "<2, 1, 3>"),
            ("unique", vec![list(["a", "A", "b"])], "<'a', 'b'>"),
            (
                "unique",
                vec![list([Value::from(1), true.into(), 2.into()])],
                "<1, 2>",
            ),
            ("min", vec![list(["b", "A"])], "A"),
            ("max", vec![numbers()], "3"),
            ("max", vec![list::<i32>([])], ""),
            (
                "batch",
                vec![numbers(), 2.into(), 0.into()],
                "<3, 1], [2, 0>",
            ),
            ("slice", vec![numbers(), 2.into()], "<3, 1], [2>"),
            ("items", vec![dict([("a", 1)])], "<('a', 1)>"),
            ("items", vec![numbers()], "!operand"),
            (
                "dictsort",
                vec![dict([("b", 1), ("A", 2)])],
                "[('A', 2), ('b', 1)]",
            ),
        ];
        for (name, args, expected) in table {
            assert_eq!(filter(name, &args), expected, "{name} {args:?}");
        }
    }

    #[test]
    fn default_asks_for_undefined_or_for_truth() {
        assert_eq!(filter("default", &[Value::UNDEFINED, "x".into()]), "x");
        assert_eq!(filter("d", &["".into(), "x".into()]), "");
        assert_eq!(filter("d", &["".into(), "x".into(), true.into()]), "x");
        assert_eq!(filter("d", &[none(), keywords([("boolean", true)])]), "");
        assert_eq!(filter("d", &[none(), "x".into()]), "None");
    }

    #[test]
    fn mapping_and_selecting() {
        assert_eq!(
            filter("map", &[list(["a", "b"]), "upper".into()]),
            "<'A', 'B'>"
        );
        assert_eq!(filter("map", &[list(["a"]), "op:neg".into()]), "!filter");
        assert_eq!(filter("map", &[list(["a"]), "safe".into()]), "!markup");
        let missing = keywords([("attribute", "x"), ("default", "d")]);
        assert_eq!(filter("map", &[people(), missing]), "<'d', 'd', 'd'>");
        assert_eq!(
            names("selectattr", &[people(), "v".into(), "eq".into(), 1.into()]),
            "<'b', 'a'>"
        );
        assert_eq!(
            names("rejectattr", &[people(), "v".into(), "==".into(), 1.into()]),
            "<'A'>"
        );
        assert_eq!(names("selectattr", &[people(), "x".into()]), "<>");
        assert_eq!(
            names("sort", &[people(), keywords([("attribute", "v,n")])]),
            "<'a', 'b', 'A'>"
        );
        assert_eq!(filter("select", &[list([0, 1, 2])]), "<1, 2>");
        assert_eq!(filter("reject", &[list([0, 1, 2]), "odd".into()]), "<0, 2>");
        assert_eq!(filter("select", &[list([0]), "unheard".into()]), "!test");
        let paths = list([dict([("a", list([dict([("b", 1)])]))])]);
        assert_eq!(
            filter("map", &[paths, keywords([("attribute", "a.0.b")])]),
            "<1>"
        );
    }

    #[test]
    fn a_generator_is_true_has_no_length_and_ends() {
        let generator =
            || super::super::probe::filtered("map", &[list([1]), "string".into()]).unwrap();
        assert!(generator().is_true());
        assert_eq!(filter("length", &[generator()]), "!length");
        assert_eq!(filter("string", &[generator()]), "!print");
        assert_eq!(filter("op:add", &[generator(), list([1])]), "!operand");
        let once = generator();
        assert_eq!(filter("list", std::slice::from_ref(&once)), "['1']");
        assert_eq!(filter("list", &[once]), "!generator");
    }

    #[test]
    fn arguments_are_checked() {
        assert_eq!(filter("upper", &["a".into(), 1.into()]), "!arguments");
        assert_eq!(
            filter("join", &[list([1]), keywords([("by", ",")])]),
            "!arguments"
        );
        assert_eq!(
            filter(
                "trim",
                &["a".into(), "b".into(), keywords([("chars", "c")])]
            ),
            "!arguments"
        );
        assert_eq!(filter("sort", &[list([1]), "yes".into()]), "!arguments");
        assert_eq!(
            filter("list", &[called("namespace", &[]).unwrap()]),
            "!iterate"
        );
        assert_eq!(filter("length", &[tuple([1, 2])]), "2");
    }
}
