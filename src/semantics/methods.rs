//! Methods of the built-in types.
//!
//! The engine asks here after an object's own `call_method`, of which ours have none, and only an
//! `UnknownMethod` error would make it call an item of that name. So a key can neither shadow a
//! method nor be called.

use super::arguments::Arguments;
use super::dict::Dict;
use super::iterables::{Part, View};
use super::kind::Kind;
use super::{Result, budget, compare, strings, unproved};
use minijinja::{State, Value};

pub use super::attributes::{is_attribute_name, is_method_name};

/// Calls method `name` of `value`.
pub fn call(_: &mut State, value: &Value, name: &str, args: &[Value]) -> Result {
    budget::reads(std::slice::from_ref(value))?;
    budget::reads(args)?;
    budget::made(method(value, name, args))
}

fn method(value: &Value, name: &str, args: &[Value]) -> Result {
    let arguments = Arguments::of(args);
    match Kind::of(value) {
        Kind::Str(text) => strings::call(value, text, name, &arguments),
        Kind::Dict(dict) => dict_method(value, dict, name, &arguments),
        Kind::List(items) => match name {
            "copy" => arguments.only(0, 0).map(|_| value.clone()),
            _ => sequence_method(items, name, &arguments),
        },
        Kind::Tuple(items) => sequence_method(items, name, &arguments),
        _ => Err(unproved("method")),
    }
}

fn dict_method(value: &Value, dict: &Dict, name: &str, arguments: &Arguments) -> Result {
    let part = match name {
        "get" => return get(dict, arguments.only(1, 2)?),
        "copy" => return arguments.only(0, 0).map(|_| value.clone()),
        "keys" => Part::Keys,
        "values" => Part::Values,
        "items" => Part::Items,
        _ => return Err(unproved("method")),
    };
    arguments.only(0, 0)?;
    let dict = value.downcast_object().ok_or_else(|| unproved("method"))?;
    Ok(Value::from_object(View::new(dict, part)))
}

fn get(dict: &Dict, arguments: &[Value]) -> Result {
    let found = match Kind::of(&arguments[0]) {
        Kind::Str(key) | Kind::Markup(key) => dict.get(key),
        key if compare::is_hashable(&key) => None,
        _ => return Err(unproved("key")),
    };
    let default = || arguments.get(1).cloned().unwrap_or(Value::from(()));
    Ok(found.cloned().unwrap_or_else(default))
}

fn sequence_method(items: &[Value], name: &str, arguments: &Arguments) -> Result {
    let item = match name {
        "count" | "index" => &arguments.only(1, 1)?[0],
        _ => return Err(unproved("method")),
    };
    let mut count = 0;
    for (at, other) in items.iter().enumerate() {
        if compare::same(other, item)? {
            if name == "index" {
                return Ok(Value::from(at));
            }
            count += 1;
        }
    }
    match name {
        "count" => Ok(Value::from(count)),
        _ => Err(unproved("not_found")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe::{called, dict, filter, list, method, none};
    use super::*;

    fn message() -> Value {
        dict([("get", 1), ("items", 2)])
    }

    #[test]
    fn a_key_neither_shadows_a_method_nor_is_called() {
        assert_eq!(method("get", &[message(), "items".into()]), "2");
        assert_eq!(method("get", &[message(), "x".into()]), "None");
        assert_eq!(method("get", &[message(), none(), 7.into()]), "7");
        assert_eq!(method("get", &[message(), list([1])]), "!key");
        assert_eq!(
            method("items", &[message()]),
            "dict_items([('get', 1), ('items', 2)])"
        );
        let callable = dict([("run", called("range", &[1.into()]).unwrap())]);
        assert_eq!(method("run", &[callable]), "!method");
        let namespace = called("namespace", &[dict([("get", 1)])]).unwrap();
        assert_eq!(method("get", &[namespace, "a".into()]), "!method");
    }

    #[test]
    fn views() {
        let keys = super::super::probe::called_method("keys", &[message()]).unwrap();
        assert_eq!(filter("length", std::slice::from_ref(&keys)), "2");
        assert_eq!(
            filter("list", std::slice::from_ref(&keys)),
            "['get', 'items']"
        );
        assert_eq!(filter("op:in", &["get".into(), keys.clone()]), "True");
        assert_eq!(filter("op:item", &[keys.clone(), 0.into()]), "");
        assert_eq!(filter("op:add", &[keys, list([1])]), "!operand");
        assert_eq!(method("values", &[dict::<i32>([])]), "dict_values([])");
    }

    #[test]
    fn lists_are_read_only() {
        assert_eq!(method("count", &[list([1, 2, 1]), true.into()]), "2");
        assert_eq!(method("index", &[list(["a", "b"]), "b".into()]), "1");
        assert_eq!(method("index", &[list(["a"]), "b".into()]), "!not_found");
        assert_eq!(method("copy", &[list(["a"])]), "['a']");
        for name in ["append", "pop", "sort", "reverse", "clear"] {
            assert_eq!(method(name, &[list(["a"])]), "!method");
        }
        assert_eq!(method("strip", &[Value::UNDEFINED]), "!method");
        assert_eq!(method("upper", &[1.into()]), "!method");
    }
}
