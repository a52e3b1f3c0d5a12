//! Equality, ordering and membership.
//!
//! Python compares numbers of different types exactly, never equates a list with a tuple, and
//! refuses to order values of different types. Containers compare by identity first, which shows
//! only for NaN: a NaN inside a container fails.

use super::iterables::Part;
use super::kind::Kind;
use super::text::MAX_DEPTH;
use super::{Result, budget, unproved};
use minijinja::Value;
use std::cmp::Ordering;

/// `left == right`.
#[inline]
pub(super) fn equal(left: &Value, right: &Value) -> Result<bool> {
    if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        return Ok(a == b);
    }
    equal_at(left, right, 0)
}

fn equal_at(left: &Value, right: &Value, depth: usize) -> Result<bool> {
    if depth > MAX_DEPTH {
        return Err(unproved("depth"));
    }
    budget::visit(1)?;
    let (a, b) = (Kind::of(left), Kind::of(right));
    Ok(match (&a, &b) {
        (Kind::Undefined, Kind::Undefined) | (Kind::None, Kind::None) => true,
        (Kind::List(a), Kind::List(b)) | (Kind::Tuple(a), Kind::Tuple(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal_inside(a, b, depth)? {
                    return Ok(false);
                }
            }
            true
        }
        (Kind::Dict(a), Kind::Dict(b)) => {
            if a.entries().len() != b.entries().len() {
                return Ok(false);
            }
            for (key, value) in a.entries() {
                match key.as_str().and_then(|key| b.get(key)) {
                    Some(other) if equal_inside(value, other, depth)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        _ => {
            if let (Some(a), Some(b)) = (a.text(), b.text()) {
                a == b
            } else if let (Some(a), Some(b)) = (Number::of(&a), Number::of(&b)) {
                a.compare(b) == Some(Ordering::Equal)
            } else if is_plain(&a) && is_plain(&b) {
                false
            } else {
                return Err(unproved("compare"));
            }
        }
    })
}

/// Equality of container elements, where Python looks at identity first.
fn equal_inside(left: &Value, right: &Value, depth: usize) -> Result<bool> {
    for value in [left, right] {
        if let Kind::Float(float) = Kind::of(value)
            && float.is_nan()
        {
            return Err(unproved("nan"));
        }
    }
    equal_at(left, right, depth + 1)
}

/// Whether values of this kind differ from those of every other kind here (numbers apart).
fn is_plain(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Undefined
            | Kind::None
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Float(_)
            | Kind::Str(_)
            | Kind::Markup(_)
            | Kind::List(_)
            | Kind::Tuple(_)
            | Kind::Dict(_)
    )
}

/// The order of `left` and `right`; `None` if a NaN is involved.
pub(super) fn order(left: &Value, right: &Value) -> Result<Option<Ordering>> {
    order_at(left, right, 0)
}

fn order_at(left: &Value, right: &Value, depth: usize) -> Result<Option<Ordering>> {
    if depth > MAX_DEPTH {
        return Err(unproved("depth"));
    }
    budget::visit(1)?;
    let (a, b) = (Kind::of(left), Kind::of(right));
    match (&a, &b) {
        (Kind::List(a), Kind::List(b)) | (Kind::Tuple(a), Kind::Tuple(b)) => {
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal_inside(a, b, depth)? {
                    return order_at(a, b, depth + 1);
                }
            }
            Ok(Some(a.len().cmp(&b.len())))
        }
        _ => {
            if let (Some(a), Some(b)) = (a.text(), b.text()) {
                // UTF-8 keeps the order of code points.
                return Ok(Some(a.cmp(b)));
            }
            match (Number::of(&a), Number::of(&b)) {
                (Some(a), Some(b)) => Ok(a.compare(b)),
                _ => Err(unproved("compare")),
            }
        }
    }
}

/// `item in container`.
pub(super) fn contains(container: &Value, item: &Value) -> Result<bool> {
    match (Kind::of(container), Kind::of(item)) {
        (Kind::Str(text), Kind::Str(part) | Kind::Markup(part)) => Ok(text.contains(part)),
        (Kind::Markup(text), Kind::Str(part) | Kind::Markup(part)) => Ok(text.contains(part)),
        (Kind::Dict(dict), kind) => key_in(dict, &kind),
        (Kind::List(items) | Kind::Tuple(items), _) => any_equal(items, item),
        (Kind::View(view), kind) => match view.part {
            Part::Keys => key_in(view.dict(), &kind),
            Part::Values => any_equal(&view.values(), item),
            // Anything but a pair is no item.
            Part::Items => match kind {
                Kind::Tuple([key, value]) => {
                    match key.as_str().and_then(|key| view.dict().get(key)) {
                        Some(found) => same(found, value),
                        None => key_in(view.dict(), &Kind::of(key)),
                    }
                }
                _ => Ok(false),
            },
        },
        (Kind::Range(range), kind) => match kind.int() {
            Some(int) => Ok((0..range.len()).any(|index| range.at(index) == int)),
            None => Err(unproved("contains")),
        },
        (Kind::Generator(generator), _) => any_equal(&generator.take()?, item),
        (Kind::Undefined, _) => Ok(false),
        _ => Err(unproved("contains")),
    }
}

fn any_equal(items: &[Value], item: &Value) -> Result<bool> {
    for other in items {
        if same(other, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether `list.index` or `in` takes `other`, an element of a container, for `item`.
pub(super) fn same(other: &Value, item: &Value) -> Result<bool> {
    equal_inside(other, item, 0)
}

fn key_in(dict: &super::Dict, key: &Kind) -> Result<bool> {
    match key {
        Kind::Str(key) | Kind::Markup(key) => Ok(dict.get(key).is_some()),
        // Keys are strings.
        _ if is_hashable(key) => Ok(false),
        _ => Err(unproved("contains")),
    }
}

/// Whether Python can hash values of this kind; not certain of the kinds left out.
pub(super) fn is_hashable(kind: &Kind) -> bool {
    is_hashable_at(kind, 0)
}

fn is_hashable_at(kind: &Kind, depth: usize) -> bool {
    match kind {
        Kind::Undefined | Kind::None | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => true,
        Kind::Str(_) | Kind::Markup(_) => true,
        Kind::Tuple(items) if depth < MAX_DEPTH => {
            let mut kinds = items.iter().map(Kind::of);
            kinds.all(|kind| is_hashable_at(&kind, depth + 1))
        }
        _ => false,
    }
}

/// An `int`, `bool` or `float`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    /// The number in `kind`, if it is one.
    #[inline]
    pub(super) fn of(kind: &Kind) -> Option<Self> {
        match *kind {
            Kind::Float(float) => Some(Number::Float(float)),
            _ => kind.int().map(Number::Int),
        }
    }

    /// Exact comparison; `None` with a NaN.
    pub(super) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
            (Number::Int(a), Number::Float(b)) => compare_mixed(a, b),
            (Number::Float(a), Number::Int(b)) => compare_mixed(b, a).map(Ordering::reverse),
        }
    }
}

fn compare_mixed(int: i128, float: f64) -> Option<Ordering> {
    // Beyond the range of i128 the float decides; inside it, its integer part is exact.
    const LIMIT: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if float.is_nan() {
        None
    } else if float >= LIMIT {
        Some(Ordering::Less)
    } else if float < -LIMIT {
        Some(Ordering::Greater)
    } else {
        let whole = float.trunc();
        Some(
            int.cmp(&(whole as i128)).then(
                // The fraction has the sign of the float.
                0.0_f64
                    .partial_cmp(&(float - whole))
                    .unwrap_or(Ordering::Equal),
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe::{code, dict, list, none, tuple};
    use super::*;

    fn eq(left: impl Into<Value>, right: impl Into<Value>) -> Result<bool> {
        equal(&left.into(), &right.into())
    }

    #[test]
    fn numbers_compare_exactly_across_types() {
        assert!(eq(true, 1).unwrap());
        assert!(eq(1, 1.0).unwrap());
        assert!(eq(1_i64 << 53, 9_007_199_254_740_992.0).unwrap());
        assert!(!eq((1_i64 << 53) + 1, 9_007_199_254_740_992.0).unwrap());
        assert!(!eq(f64::NAN, f64::NAN).unwrap());
        let less = |a: Value, b: Value| order(&a, &b).unwrap() == Some(Ordering::Less);
        assert!(less(
            Value::from(9_007_199_254_740_992.0),
            Value::from((1_i64 << 53) + 1)
        ));
        assert!(less(Value::from(i128::MAX), Value::from(f64::INFINITY)));
        assert!(less(Value::from(-1.5), Value::from(-1)));
        assert!(less(Value::from(1), Value::from(1.5)));
    }

    #[test]
    fn types_keep_apart() {
        assert!(!eq("1", 1).unwrap());
        assert!(!eq(Value::UNDEFINED, none()).unwrap());
        assert!(eq(Value::UNDEFINED, Value::UNDEFINED).unwrap());
        assert!(!eq(list([1]), tuple([1])).unwrap());
        assert!(eq(list([1.0]), list([true])).unwrap());
        assert!(eq(dict([("a", 1), ("b", 2)]), dict([("b", 2), ("a", 1)])).unwrap());
        assert!(!eq(dict([("a", 1)]), dict([("b", 1)])).unwrap());
        let nan = list([f64::NAN]);
        assert_eq!(code(&eq(nan.clone(), nan).unwrap_err()), "nan");
    }

    #[test]
    fn order_needs_one_type() {
        assert_eq!(code(&order(&1.into(), &"a".into()).unwrap_err()), "compare");
        assert_eq!(code(&order(&none(), &none()).unwrap_err()), "compare");
        assert_eq!(
            order(&"Z".into(), &"a".into()).unwrap(),
            Some(Ordering::Less)
        );
        // By code point, not by UTF-16 unit.
        assert_eq!(
            order(&"\u{ffff}".into(), &"😀".into()).unwrap(),
            Some(Ordering::Less)
        );
        assert_eq!(
            order(&list([1, 2]), &list([1])).unwrap(),
            Some(Ordering::Greater)
        );
        assert_eq!(order(&f64::NAN.into(), &1.into()).unwrap(), None);
    }

    #[test]
    fn membership() {
        assert!(contains(&"abc".into(), &"".into()).unwrap());
        assert!(contains(&dict([("a", 1)]), &"a".into()).unwrap());
        assert!(!contains(&dict([("1", 1)]), &1.into()).unwrap());
        assert!(contains(&list([1]), &true.into()).unwrap());
        assert!(!contains(&Value::UNDEFINED, &"a".into()).unwrap());
        for (container, item) in [
            (Value::from("abc"), none()),
            (none(), Value::from("a")),
            (Value::from(5), Value::from(5)),
            (dict([("a", 1)]), list([1])),
        ] {
            assert_eq!(code(&contains(&container, &item).unwrap_err()), "contains");
        }
    }
}
