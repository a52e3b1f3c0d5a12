//! Operators as filters.
//!
//! The rewritten syntax tree (`template/lower.rs`) applies a filter where the template has an
//! operator, so that Python's rules hold and not the engine's. The left operand comes first. A space
//! in a name would be dropped by the engine and no template can write the colon.

use super::arguments::Raw;
use super::arithmetic as math;
use super::dict::Dict;
use super::kind::Kind;
use super::{Result, attributes, budget, compare, condition, sequences, text, unproved};
use minijinja::{Environment, Value};
use std::cmp::Ordering;

/// Adds them to `env`.
pub fn install(env: &mut Environment<'static>) {
    // What a `filter` block may write.
    unary(env, "op:text", |value| match value.as_str() {
        Some(_) => Ok(value.clone()),
        None => Err(unproved("filter-block")),
    });
    binary(env, "op:add", math::add);
    binary(env, "op:sub", math::sub);
    binary(env, "op:mul", math::mul);
    binary(env, "op:div", math::div);
    binary(env, "op:floordiv", math::floordiv);
    binary(env, "op:mod", math::modulo);
    binary(env, "op:pow", math::pow);
    unary(env, "op:neg", math::neg);
    binary(env, "op:concat", concat);
    binary(env, "op:eq", |a, b| compare::equal(a, b).map(Value::from));
    binary(env, "op:ne", |a, b| Ok(Value::from(!compare::equal(a, b)?)));
    binary(env, "op:lt", |a, b| ordered(a, b, Ordering::is_lt));
    binary(env, "op:le", |a, b| ordered(a, b, Ordering::is_le));
    binary(env, "op:gt", |a, b| ordered(a, b, Ordering::is_gt));
    binary(env, "op:ge", |a, b| ordered(a, b, Ordering::is_ge));
    binary(env, "op:in", |a, b| {
        compare::contains(b, a).map(Value::from)
    });
    binary(env, "op:not_in", |a, b| {
        Ok(Value::from(!compare::contains(b, a)?))
    });
    env.add_filter("op:attribute", |args: Raw<'_>| match args.0 {
        [object, name] => match name.as_str() {
            Some(name) => attributes::attribute(object, name),
            None => Err(unproved("attribute")),
        },
        _ => Err(unproved("arguments")),
    });
    env.add_filter("op:item", |args: Raw<'_>| match args.0 {
        [object, key] => attributes::item(object, key),
        _ => Err(unproved("arguments")),
    });
    env.add_filter("op:slice", |args: Raw<'_>| match args.0 {
        [object, start, stop, step] => budget::made(attributes::slice(object, [start, stop, step])),
        _ => Err(unproved("arguments")),
    });
    env.add_filter("op:any", |args: Raw<'_>| match args.0 {
        [list, condition] => match condition.downcast_object_ref() {
            Some(condition) => condition::any(list, condition).map(Value::from),
            None => Err(unproved("arguments")),
        },
        _ => Err(unproved("arguments")),
    });
    env.add_filter("op:iter", |args: Raw<'_>| match args.0 {
        [value] => iter(value),
        _ => Err(unproved("arguments")),
    });
    unary(env, "op:dict", dict);
    env.add_filter("op:defer", |args: Raw<'_>| -> Result {
        Err(unproved(match args.0.first().and_then(Value::as_str) {
            Some("filter") => "filter",
            Some("test") => "test",
            Some("method") => "method",
            _ => "function",
        }))
    });
    env.add_filter("op:keep", |args: Raw<'_>| match args.0 {
        [value] => budget::nested(value),
        _ => Err(unproved("arguments")),
    });
}

fn unary(env: &mut Environment<'static>, name: &'static str, apply: fn(&Value) -> Result) {
    env.add_filter(name, move |args: Raw<'_>| match args.0 {
        [value] => budget::made(apply(value)),
        _ => Err(unproved("arguments")),
    });
}

fn binary(env: &mut Environment<'static>, name: &'static str, apply: fn(&Value, &Value) -> Result) {
    env.add_filter(name, move |args: Raw<'_>| match args.0 {
        [left, right] => {
            budget::reads(args.0)?;
            budget::made(apply(left, right))
        }
        _ => Err(unproved("arguments")),
    });
}

/// Whether the order of `left` and `right` passes `test`; never with a NaN.
pub(super) fn ordered(left: &Value, right: &Value, test: fn(Ordering) -> bool) -> Result {
    let order = compare::order(left, right)?;
    Ok(Value::from(order.is_some_and(test)))
}

/// `left ~ right`.
fn concat(left: &Value, right: &Value) -> Result {
    let (left, right) = (text::str_of(left)?, text::str_of(right)?);
    Ok(Value::from(math::joined(&left, &right)))
}

/// What a `for` loop iterates over: always something of known length, since `loop.last` and
/// `loop.length` of the engine depend on it. A generator gives its values away.
fn iter(value: &Value) -> Result {
    budget::reads(std::slice::from_ref(value))?;
    match Kind::of(value) {
        Kind::Undefined
        | Kind::List(_)
        | Kind::Tuple(_)
        | Kind::Dict(_)
        | Kind::View(_)
        | Kind::Range(_) => Ok(value.clone()),
        Kind::Str(_) | Kind::Generator(_) => {
            Ok(Value::from(sequences::elements(value)?.into_owned()))
        }
        _ => Err(unproved("iterate")),
    }
}

/// A dict display, from the list `[key, value, key, value, ...]`.
fn dict(flat: &Value) -> Result {
    let Kind::List(flat) = Kind::of(flat) else {
        return Err(unproved("dict"));
    };
    let pairs = flat
        .chunks_exact(2)
        .map(|pair| (pair[0].clone(), pair[1].clone()));
    let dict = Dict::from_pairs(pairs).ok_or_else(|| unproved("key"))?;
    Ok(Value::from_object(dict))
}

#[cfg(test)]
mod tests {
    use super::super::probe::{dict, filter, filtered, list, none, shown};
    use minijinja::Value;

    #[test]
    fn names_reach_their_functions() {
        let pair = |name: &str, a: Value, b: Value| filter(name, &[a, b]);
        assert_eq!(pair("op:concat", 1e16.into(), none()), "1e+16None");
        assert_eq!(pair("op:concat", Value::UNDEFINED, "a".into()), "a");
        assert_eq!(pair("op:eq", 1.into(), 1.0.into()), "True");
        assert_eq!(pair("op:ne", 1.into(), "1".into()), "True");
        assert_eq!(pair("op:lt", 1.into(), f64::NAN.into()), "False");
        assert_eq!(pair("op:ge", 2.into(), 2.into()), "True");
        assert_eq!(pair("op:in", "a".into(), "abc".into()), "True");
        assert_eq!(pair("op:not_in", "a".into(), list(["a"])), "False");
        assert_eq!(pair("op:attribute", dict([("a", 1)]), "a".into()), "1");
        assert_eq!(pair("op:item", list([4, 5]), (-1).into()), "5");
        let slice = [list([1, 2, 3]), none(), none(), (-1).into()];
        assert_eq!(filter("op:slice", &slice), "[3, 2, 1]");
        assert_eq!(filter("op:neg", &[1.5.into()]), "-1.5");
    }

    #[test]
    fn loops_know_their_length() {
        for value in ["ab".into(), list([1, 2]), dict([("a", 1), ("b", 2)])] {
            let iterable = filtered("op:iter", &[value]).unwrap();
            assert_eq!(iterable.try_iter().unwrap().size_hint(), (2, Some(2)));
        }
        let generator = filtered("map", &[list([1, 2]), "string".into()]).unwrap();
        assert_eq!(
            shown(filtered("op:iter", std::slice::from_ref(&generator))),
            "['1', '2']"
        );
        assert_eq!(filter("op:iter", &[generator]), "!generator");
        assert_eq!(filter("op:iter", &[none()]), "!iterate");
        assert_eq!(filter("op:iter", &[5.into()]), "!iterate");
    }

    #[test]
    fn dict_displays_keep_the_first_place_and_the_last_value() {
        let flat = |items: &[Value]| filter("op:dict", &[list(items.to_vec())]);
        let [a, b] = ["a", "b"].map(Value::from);
        let entries = [a.clone(), 1.into(), b, 2.into(), a, 3.into()];
        assert_eq!(flat(&entries), "{'a': 3, 'b': 2}");
        assert_eq!(flat(&[]), "{}");
        assert_eq!(flat(&[1.into(), 2.into()]), "!key");
    }
}
