//! Whether two values are the same to every template: same types, same contents, same order.
//!
//! Stricter than Python's `==`, for which `1 == True == 1.0`. What is not known to be immutable, such as
//! a generator, is the same as nothing. Cost: none for values that share their memory, as those of
//! recognised messages do; else a comparison of the contents.

use minijinja::Value;

use crate::semantics::Dict;
use crate::semantics::kind::Kind;

/// Containers nested deeper are taken to differ.
const MAX_DEPTH: usize = 100;

/// See the module.
#[inline]
pub fn same(a: &Value, b: &Value) -> bool {
    same_dict(a, b) || same_at(a, b, 0)
}

/// Whether two values are one dict: messages, as a rule.
#[inline]
pub fn same_dict(a: &Value, b: &Value) -> bool {
    let dicts = (
        a.downcast_object_ref::<Dict>(),
        b.downcast_object_ref::<Dict>(),
    );
    matches!(dicts, (Some(a), Some(b)) if std::ptr::eq(a, b))
}

/// Whether a value consists of what [`same`] knows.
pub fn is_plain(value: &Value) -> bool {
    is_plain_at(value, 0)
}

fn same_at(a: &Value, b: &Value, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    let all = |a: &[Value], b: &[Value]| {
        let mut pairs = a.iter().zip(b);
        a.len() == b.len()
            && (a.as_ptr() == b.as_ptr() || pairs.all(|(a, b)| same_at(a, b, depth + 1)))
    };
    match (Kind::of(a), Kind::of(b)) {
        (Kind::Undefined, Kind::Undefined) | (Kind::None, Kind::None) => true,
        (Kind::Bool(a), Kind::Bool(b)) => a == b,
        (Kind::Int(a), Kind::Int(b)) => a == b,
        (Kind::Float(a), Kind::Float(b)) => a.to_bits() == b.to_bits(),
        (Kind::Str(a), Kind::Str(b)) | (Kind::Markup(a), Kind::Markup(b)) => {
            a.len() == b.len() && (a.as_ptr() == b.as_ptr() || a == b)
        }
        (Kind::List(a), Kind::List(b)) | (Kind::Tuple(a), Kind::Tuple(b)) => all(a, b),
        (Kind::Dict(a), Kind::Dict(b)) => {
            let (a, b) = (a.entries(), b.entries());
            a.len() == b.len()
                && (a.as_ptr() == b.as_ptr()
                    || a.iter().zip(b).all(|((k, v), (l, w))| {
                        same_at(k, l, depth + 1) && same_at(v, w, depth + 1)
                    }))
        }
        _ => false,
    }
}

fn is_plain_at(value: &Value, depth: usize) -> bool {
    let plain = |value: &Value| is_plain_at(value, depth + 1);
    depth <= MAX_DEPTH
        && match Kind::of(value) {
            Kind::None | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => true,
            Kind::Str(_) | Kind::Markup(_) => true,
            Kind::List(items) | Kind::Tuple(items) => items.iter().all(plain),
            Kind::Dict(dict) => dict.entries().iter().all(|(_, value)| plain(value)),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::value::Tuple;

    fn list(items: &[Value]) -> Value {
        Value::from_object(items.to_vec())
    }

    fn dict(entries: &[(&str, Value)]) -> Value {
        let entries = entries.iter().map(|(k, v)| (Value::from(*k), v.clone()));
        Value::from_object(Dict::new(entries.collect()))
    }

    /// Every value is the same as a copy of its own, and as no other: types, signs and order count.
    #[test]
    fn values_are_the_same_as_themselves_only() {
        let make = || {
            vec![
                Value::UNDEFINED,
                Value::from(()),
                Value::from(true),
                Value::from(false),
                Value::from(0),
                Value::from(1),
                Value::from(0.0),
                Value::from(-0.0),
                Value::from(1.0),
                Value::from(f64::NAN),
                Value::from(""),
                Value::from("1"),
                Value::from("a long text that is not stored inline"),
                Value::from_safe_string("1".to_owned()),
                list(&[]),
                list(&[Value::from(1)]),
                list(&[Value::from(true)]),
                list(&[list(&[Value::from(1.0)])]),
                Value::from(Tuple::from([Value::from(1), Value::from(2)])),
                list(&[Value::from(1), Value::from(2)]),
                dict(&[]),
                dict(&[("a", Value::from(1)), ("b", Value::from(2))]),
                dict(&[("b", Value::from(2)), ("a", Value::from(1))]),
                dict(&[("a", Value::from(1)), ("b", Value::from(()))]),
            ]
        };
        for (i, a) in make().iter().enumerate() {
            for (j, b) in make().iter().enumerate() {
                assert_eq!(same(a, b), i == j, "{a:?} and {b:?}");
            }
            assert_eq!(is_plain(a), i > 0);
        }
    }

    #[test]
    fn what_may_change_is_the_same_as_nothing() {
        let generator = Value::make_iterable(|| [1, 2].into_iter());
        assert!(!same(&generator, &generator));
        assert!(!is_plain(&list(&[generator])));
    }
}
