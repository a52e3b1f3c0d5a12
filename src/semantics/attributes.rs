//! Attribute and item access, slices, and what Python calls an attribute.
//!
//! `a.b` asks the Python type first and the item second, `a['b']` the other way round. Attributes of
//! the built-in types are methods and the like; reading one without calling it is never proved, so
//! the name alone decides.

use super::kind::{Kind, int};
use super::{Result, budget, unproved};
use minijinja::Value;

/// `object.name` under jinja2's sandbox.
#[inline]
pub(super) fn attribute(object: &Value, name: &str) -> Result {
    match Kind::of(object) {
        Kind::Dict(_) if is_attribute(DICT, name) => Err(unproved("attribute")),
        Kind::Dict(dict) => Ok(dict.get(name).cloned().unwrap_or(Value::UNDEFINED)),
        Kind::Namespace => namespace_item(object, name),
        Kind::Loop => loop_attribute(object, name),
        Kind::Str(_) => missing(STR, name),
        Kind::List(_) => missing(LIST, name),
        Kind::Tuple(_) => missing(TUPLE, name),
        Kind::Bool(_) | Kind::Int(_) => missing(INT, name),
        Kind::Float(_) => missing(FLOAT, name),
        Kind::None => missing(&[], name),
        _ => Err(unproved("attribute")),
    }
}

/// `object[key]` under jinja2's sandbox.
#[inline]
pub(super) fn item(object: &Value, key: &Value) -> Result {
    let key = Kind::of(key);
    if let Some(name) = key.text() {
        return match Kind::of(object) {
            Kind::Dict(dict) => match dict.get(name) {
                Some(found) => Ok(found.clone()),
                None => missing(DICT, name),
            },
            Kind::Namespace => namespace_item(object, name),
            Kind::Str(_) => missing(STR, name),
            Kind::List(_) => missing(LIST, name),
            Kind::Tuple(_) => missing(TUPLE, name),
            Kind::Bool(_) | Kind::Int(_) => missing(INT, name),
            Kind::Float(_) => missing(FLOAT, name),
            Kind::None => missing(&[], name),
            _ => Err(unproved("item")),
        };
    }
    // Whatever is wrong with a key that is not a string, jinja2 makes it undefined.
    let at = key.int();
    let found = match (Kind::of(object), at) {
        (Kind::List(items) | Kind::Tuple(items), Some(at)) => {
            index(at, items.len()).map(|at| items[at].clone())
        }
        (Kind::Str(text), Some(at)) => {
            budget::reads(std::slice::from_ref(object))?;
            character(text, at).map(Value::from)
        }
        (Kind::Range(range), Some(at)) => index(at, range.len()).map(|at| int(range.at(at))),
        (Kind::List(_) | Kind::Tuple(_) | Kind::Str(_) | Kind::Range(_) | Kind::Dict(_), _) => None,
        (Kind::None | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_), _) => None,
        (Kind::View(_) | Kind::Generator(_), _) => None,
        _ => return Err(unproved("item")),
    };
    Ok(found.unwrap_or(Value::UNDEFINED))
}

/// `object[start:stop:step]`; `None` where a bound is absent.
pub(super) fn slice(object: &Value, bounds: [&Value; 3]) -> Result {
    let (start, stop, step) = match bounds.map(|bound| bound_of(&Kind::of(bound))) {
        [Ok(start), Ok(stop), Ok(step)] => (start, stop, step.unwrap_or(1)),
        _ => return Err(unproved("slice")),
    };
    if step == 0 {
        return Err(unproved("slice"));
    }
    match Kind::of(object) {
        Kind::List(items) => Ok(Value::from(picked(items, start, stop, step))),
        Kind::Tuple(items) => {
            let items = picked(items, start, stop, step);
            Ok(Value::from(minijinja::value::Tuple::new(items)))
        }
        Kind::Str(text) if step == 1 => Ok(Value::from(substring(text, start, stop))),
        Kind::Str(text) => {
            let chars: Vec<char> = text.chars().collect();
            let picked = picked(&chars, start, stop, step);
            Ok(Value::from(picked.into_iter().collect::<String>()))
        }
        _ => Err(unproved("slice")),
    }
}

fn bound_of(kind: &Kind) -> Result<Option<i128>> {
    match kind {
        Kind::None => Ok(None),
        _ => kind.int().map(Some).ok_or_else(|| unproved("slice")),
    }
}

/// The elements that Python's `slice.indices` names.
fn picked<T: Clone>(items: &[T], start: Option<i128>, stop: Option<i128>, step: i128) -> Vec<T> {
    let len = items.len() as i128;
    let (lowest, highest) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clamp = |bound: i128| {
        let bound = if bound < 0 {
            bound.saturating_add(len)
        } else {
            bound
        };
        bound.clamp(lowest, highest)
    };
    let (first, last) = if step > 0 {
        (start.map_or(0, clamp), stop.map_or(len, clamp))
    } else {
        (start.map_or(len - 1, clamp), stop.map_or(-1, clamp))
    };
    if step == 1 {
        return match items.get(first as usize..last.max(first) as usize) {
            Some(part) => part.to_vec(),
            None => Vec::new(),
        };
    }
    let mut out = Vec::new();
    let mut at = first;
    while if step > 0 { at < last } else { at > last } {
        if let Some(item) = usize::try_from(at).ok().and_then(|at| items.get(at)) {
            out.push(item.clone());
        }
        at = at.saturating_add(step);
    }
    out
}

/// `text[start:stop]`, by code point.
pub(super) fn substring(text: &str, start: Option<i128>, stop: Option<i128>) -> &str {
    let is_negative = |bound: Option<i128>| bound.is_some_and(|bound| bound < 0);
    let len = if is_negative(start) || is_negative(stop) {
        text.chars().count() as i128
    } else {
        0
    };
    let absolute = |bound: i128| match bound {
        0.. => bound,
        _ => bound.saturating_add(len).max(0),
    };
    let from = offset(text, start.map_or(0, absolute));
    let to = stop.map_or(text.len(), |stop| offset(text, absolute(stop)));
    text.get(from..to).unwrap_or("")
}

/// The byte offset of the code point with number `at`, or the length.
pub(super) fn offset(text: &str, at: i128) -> usize {
    if text.is_ascii() {
        return usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
    }
    let nth = usize::try_from(at)
        .ok()
        .and_then(|at| text.char_indices().nth(at));
    nth.map_or(text.len(), |(offset, _)| offset)
}

/// The absolute position that `at` names in a sequence of `len`, if there is one.
fn index(at: i128, len: usize) -> Option<usize> {
    let at = match at {
        0.. => at,
        _ => at.saturating_add(len as i128),
    };
    usize::try_from(at).ok().filter(|at| *at < len)
}

fn character(text: &str, at: i128) -> Option<char> {
    match at {
        0.. => text.chars().nth(usize::try_from(at).ok()?),
        _ => {
            let back = usize::try_from(at.checked_neg()? - 1).ok()?;
            text.chars().rev().nth(back)
        }
    }
}

fn namespace_item(object: &Value, name: &str) -> Result {
    if name.starts_with('_') {
        return Err(unproved("attribute"));
    }
    object.get_attr(name)
}

fn loop_attribute(object: &Value, name: &str) -> Result {
    match name {
        "index" | "index0" | "first" | "last" | "length" | "revindex" | "revindex0" | "depth"
        | "depth0" | "previtem" | "nextitem" => object.get_attr(name),
        _ => Err(unproved("attribute")),
    }
}

fn missing(attributes: &[&str], name: &str) -> Result {
    if is_attribute(attributes, name) {
        Err(unproved("attribute"))
    } else {
        Ok(Value::UNDEFINED)
    }
}

#[inline]
fn is_attribute(attributes: &[&str], name: &str) -> bool {
    name.starts_with("__") || attributes.contains(&name)
}

/// Whether any of the types that a template can meet has an attribute of this name in Python.
pub fn is_attribute_name(name: &str) -> bool {
    [
        STR, MARKUP, LIST, TUPLE, DICT, VIEW, RANGE, GENERATOR, INT, FLOAT,
    ]
    .iter()
    .any(|attributes| is_attribute(attributes, name))
}

/// Whether a template may call a method of this name. Those that no type here proves (`append`, which
/// the sandbox forbids, `encode`) are among them: a call of them fails when it is reached.
pub fn is_method_name(name: &str) -> bool {
    [STR, LIST, DICT].iter().any(|names| names.contains(&name))
}

// `dir()` of each type without the names that start with two underscores, which count as
// attributes of every type. Names that only newer Pythons have are included.

const STR: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "maketrans",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
];

const LIST: &[&str] = &[
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse",
    "sort",
];

const TUPLE: &[&str] = &["count", "index"];

const DICT: &[&str] = &[
    "clear",
    "copy",
    "fromkeys",
    "get",
    "items",
    "keys",
    "pop",
    "popitem",
    "setdefault",
    "update",
    "values",
];

const MARKUP: &[&str] = &["escape", "striptags", "unescape"];

const VIEW: &[&str] = &["isdisjoint", "mapping"];

const RANGE: &[&str] = &["count", "index", "start", "step", "stop"];

const GENERATOR: &[&str] = &[
    "close",
    "gi_code",
    "gi_frame",
    "gi_running",
    "gi_suspended",
    "gi_yieldfrom",
    "send",
    "throw",
];

const INT: &[&str] = &[
    "as_integer_ratio",
    "bit_count",
    "bit_length",
    "conjugate",
    "denominator",
    "from_bytes",
    "imag",
    "is_integer",
    "numerator",
    "real",
    "to_bytes",
];

const FLOAT: &[&str] = &[
    "as_integer_ratio",
    "conjugate",
    "from_number",
    "fromhex",
    "hex",
    "imag",
    "is_integer",
    "real",
];

#[cfg(test)]
mod tests {
    use super::super::probe::{called, dict, list, none, shown, tuple};
    use super::*;

    #[test]
    fn attributes_come_before_items() {
        let message = dict([("role", "user"), ("items", "mine")]);
        assert_eq!(shown(attribute(&message, "role")), "user");
        assert_eq!(shown(attribute(&message, "items")), "!attribute");
        assert_eq!(shown(attribute(&message, "__class__")), "!attribute");
        assert!(attribute(&message, "missing").unwrap().is_undefined());
        assert_eq!(shown(item(&message, &"items".into())), "mine");
        assert_eq!(shown(item(&message, &"keys".into())), "!attribute");
        assert!(item(&message, &1.into()).unwrap().is_undefined());
    }

    #[test]
    fn other_types_have_no_items_by_name() {
        for value in [
            none(),
            Value::from(1),
            Value::from(1.5),
            Value::from("a"),
            list([1]),
            tuple([1]),
        ] {
            assert!(attribute(&value, "role").unwrap().is_undefined());
            assert!(item(&value, &"role".into()).unwrap().is_undefined());
        }
        assert_eq!(shown(attribute(&"a".into(), "upper")), "!attribute");
        assert_eq!(shown(item(&list([1]), &"append".into())), "!attribute");
        assert_eq!(shown(attribute(&Value::UNDEFINED, "role")), "!attribute");
        assert_eq!(shown(item(&Value::UNDEFINED, &"role".into())), "!item");
    }

    #[test]
    fn a_namespace_has_what_was_put_into_it() {
        let namespace = called("namespace", &[dict([("items", 1)])]).unwrap();
        assert!(namespace.is_true() && called("namespace", &[]).unwrap().is_true());
        assert_eq!(shown(attribute(&namespace, "items")), "1");
        assert!(attribute(&namespace, "other").unwrap().is_undefined());
        assert_eq!(shown(attribute(&namespace, "__turntrie__")), "!attribute");
    }

    #[test]
    fn indices_count_code_points_and_wrap() {
        let text = Value::from("a日😀");
        assert_eq!(shown(item(&text, &1.into())), "日");
        assert_eq!(shown(item(&text, &(-1).into())), "😀");
        assert!(item(&text, &3.into()).unwrap().is_undefined());
        assert!(item(&text, &(-4).into()).unwrap().is_undefined());
        assert_eq!(shown(item(&list([5, 6]), &true.into())), "6");
        assert!(item(&list([5]), &i128::MIN.into()).unwrap().is_undefined());
        assert!(item(&list([5]), &none()).unwrap().is_undefined());
        assert!(item(&list([5]), &list([0])).unwrap().is_undefined());
    }

    #[test]
    fn slices_are_those_of_python() {
        let bound = |bound: Option<i128>| bound.map_or_else(none, int);
        let text = Value::from("a日😀b");
        let table = [
            ((None, None, Some(-1)), "b😀日a"),
            ((Some(-9), None, None), "a日😀b"),
            ((None, Some(-9), None), ""),
            ((Some(3), Some(0), Some(-1)), "b😀日"),
            ((Some(1), Some(-1), None), "日😀"),
            ((None, None, Some(2)), "a😀"),
            ((Some(2), Some(1), None), ""),
            ((Some(i128::MAX), None, Some(i128::MIN)), "b"),
            ((None, None, Some(0)), "!slice"),
        ];
        for ((start, stop, step), expected) in table {
            let bounds = [bound(start), bound(stop), bound(step)];
            let [start, stop, step] = &bounds;
            assert_eq!(
                shown(slice(&text, [start, stop, step])),
                expected,
                "{bounds:?}"
            );
        }
        let [none, one] = [none(), Value::from(1)];
        assert_eq!(
            shown(slice(&list([1, 2, 3]), [&one, &none, &none])),
            "[2, 3]"
        );
        assert_eq!(shown(slice(&tuple([1, 2]), [&one, &none, &none])), "(2,)");
        assert_eq!(
            shown(slice(&dict([("a", 1)]), [&one, &none, &none])),
            "!slice"
        );
        assert_eq!(shown(slice(&none, [&one, &none, &none])), "!slice");
        assert_eq!(shown(slice(&text, [&"1".into(), &none, &none])), "!slice");
    }
}
