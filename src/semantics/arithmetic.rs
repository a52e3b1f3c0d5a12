//! `+ - * / // % **` and negation.
//!
//! An `int` is exact or an error: what leaves 128 bits is never rounded. Floats follow IEEE 754 on
//! both sides; `//` and `%` round towards minus infinity.

use super::compare::Number;
use super::kind::{Kind, int};
use super::text::escaped;
use super::{Result, budget, printf, unproved};
use minijinja::Value;
use minijinja::value::Tuple;

/// `left + right`.
#[inline]
pub(super) fn add(left: &Value, right: &Value) -> Result {
    match (Kind::of(left), Kind::of(right)) {
        (Kind::Str(a), Kind::Str(b)) => Ok(Value::from(joined(a, b))),
        (Kind::Markup(a), Kind::Markup(b)) => Ok(Value::from_safe_string(joined(a, b))),
        (Kind::Markup(a), Kind::Str(b)) => Ok(Value::from_safe_string(joined(a, &escaped(b)))),
        (Kind::Str(a), Kind::Markup(b)) => Ok(Value::from_safe_string(joined(&escaped(a), b))),
        (Kind::List(a), Kind::List(b)) => Ok(Value::from([a, b].concat())),
        (Kind::Tuple(a), Kind::Tuple(b)) => Ok(Value::from(Tuple::new([a, b].concat()))),
        (a, b) => match numbers(&a, &b)? {
            (Number::Int(a), Number::Int(b)) => exact(a.checked_add(b)),
            (a, b) => Ok(Value::from(float(a) + float(b))),
        },
    }
}

/// Two strings as one.
pub(super) fn joined(left: &str, right: &str) -> String {
    let mut text = String::with_capacity(left.len() + right.len());
    text.push_str(left);
    text.push_str(right);
    text
}

/// `left - right`.
pub(super) fn sub(left: &Value, right: &Value) -> Result {
    match numbers(&Kind::of(left), &Kind::of(right))? {
        (Number::Int(a), Number::Int(b)) => exact(a.checked_sub(b)),
        (a, b) => Ok(Value::from(float(a) - float(b))),
    }
}

/// `left * right`.
pub(super) fn mul(left: &Value, right: &Value) -> Result {
    let (a, b) = (Kind::of(left), Kind::of(right));
    if b.int().is_some()
        && let Some(repeated) = repeated(&a, &b)?
    {
        return Ok(repeated);
    }
    if a.int().is_some()
        && let Some(repeated) = repeated(&b, &a)?
    {
        return Ok(repeated);
    }
    match numbers(&a, &b)? {
        (Number::Int(a), Number::Int(b)) => exact(a.checked_mul(b)),
        (a, b) => Ok(Value::from(float(a) * float(b))),
    }
}

fn repeated(kind: &Kind, times: &Kind) -> Result<Option<Value>> {
    let size = match kind {
        Kind::Str(text) => text.len(),
        Kind::List(items) | Kind::Tuple(items) => items.len(),
        _ => return Ok(None),
    };
    let times = times.size().ok_or_else(|| unproved("int"))?;
    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
    match kind {
        Kind::Str(_) => budget::building(size.saturating_mul(times))?,
        _ => budget::building(size.saturating_mul(times).saturating_mul(budget::ELEMENT))?,
    }
    let times = if size == 0 { 0 } else { times };
    Ok(match kind {
        Kind::Str(text) => Some(Value::from(text.repeat(times))),
        Kind::List(items) => Some(Value::from(copies(items, times))),
        Kind::Tuple(items) => Some(Value::from(Tuple::new(copies(items, times)))),
        _ => None,
    })
}

fn copies(items: &[Value], times: usize) -> Vec<Value> {
    std::iter::repeat_n(items, times)
        .flatten()
        .cloned()
        .collect()
}

/// `left / right`.
pub(super) fn div(left: &Value, right: &Value) -> Result {
    let (a, b) = numbers(&Kind::of(left), &Kind::of(right))?;
    if let (Number::Int(a), Number::Int(b)) = (a, b) {
        // Both are exact as floats, so the quotient is rounded once, as Python rounds it.
        const EXACT: u128 = 1 << 53;
        if a.unsigned_abs() > EXACT || b.unsigned_abs() > EXACT {
            return Err(unproved("float"));
        }
    }
    let (a, b) = (float(a), float(b));
    if b == 0.0 {
        return Err(unproved("zero_division"));
    }
    Ok(Value::from(a / b))
}

/// `left // right`.
pub(super) fn floordiv(left: &Value, right: &Value) -> Result {
    match numbers(&Kind::of(left), &Kind::of(right))? {
        (Number::Int(_), Number::Int(0)) => Err(unproved("zero_division")),
        (Number::Int(a), Number::Int(b)) => {
            let Some(quotient) = a.checked_div(b) else {
                return Err(unproved("int"));
            };
            let rounds_up = a % b != 0 && (a < 0) != (b < 0);
            Ok(int(quotient - i128::from(rounds_up)))
        }
        (a, b) => Ok(Value::from(float_divmod(float(a), float(b))?.0)),
    }
}

/// `left % right`; formatting if the left one is a string.
pub(super) fn modulo(left: &Value, right: &Value) -> Result {
    let (a, b) = (Kind::of(left), Kind::of(right));
    if let Kind::Str(format) = a {
        return printf::format(format, right).map(Value::from);
    }
    match numbers(&a, &b)? {
        (Number::Int(_), Number::Int(0)) => Err(unproved("zero_division")),
        (Number::Int(a), Number::Int(b)) => {
            let Some(rest) = a.checked_rem(b) else {
                return Ok(int(0));
            };
            let wrong_sign = rest != 0 && (rest < 0) != (b < 0);
            Ok(int(if wrong_sign { rest + b } else { rest }))
        }
        (a, b) => Ok(Value::from(float_divmod(float(a), float(b))?.1)),
    }
}

/// CPython's `float_divmod`: floor quotient and remainder with the sign of the divisor.
fn float_divmod(a: f64, b: f64) -> Result<(f64, f64)> {
    if b == 0.0 {
        return Err(unproved("zero_division"));
    }
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest != 0.0 {
        if (b < 0.0) != (rest < 0.0) {
            rest += b;
            quotient -= 1.0;
        }
    } else {
        rest = 0.0_f64.copysign(b);
    }
    let floor = if quotient != 0.0 {
        let floor = quotient.floor();
        if quotient - floor > 0.5 {
            floor + 1.0
        } else {
            floor
        }
    } else {
        0.0_f64.copysign(a / b)
    };
    Ok((floor, rest))
}

/// `left ** right`. Only of ints with a natural exponent: the rest is up to the C library.
pub(super) fn pow(left: &Value, right: &Value) -> Result {
    match (Kind::of(left).int(), Kind::of(right).int()) {
        (Some(base), Some(exponent)) => match u32::try_from(exponent) {
            Ok(exponent) => exact(base.checked_pow(exponent)),
            Err(_) => Err(unproved("float")),
        },
        _ => Err(unproved("float")),
    }
}

/// `-value`.
pub(super) fn neg(value: &Value) -> Result {
    match Number::of(&Kind::of(value)) {
        Some(Number::Int(value)) => exact(value.checked_neg()),
        Some(Number::Float(value)) => Ok(Value::from(-value)),
        None => Err(unproved("operand")),
    }
}

fn numbers(left: &Kind, right: &Kind) -> Result<(Number, Number)> {
    match (Number::of(left), Number::of(right)) {
        (Some(left), Some(right)) => Ok((left, right)),
        _ => Err(unproved("operand")),
    }
}

fn exact(value: Option<i128>) -> Result {
    value.map(int).ok_or_else(|| unproved("int"))
}

/// As Python converts an `int` operand: to the nearest float, ties to even.
fn float(number: Number) -> f64 {
    match number {
        Number::Int(int) => int as f64,
        Number::Float(float) => float,
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe::{filter, list, none, tuple};
    use minijinja::Value;

    fn op(name: &str, left: impl Into<Value>, right: impl Into<Value>) -> String {
        filter(&format!("op:{name}"), &[left.into(), right.into()])
    }

    #[test]
    fn ints_are_exact_or_refused() {
        assert_eq!(op("add", true, 1), "2");
        assert_eq!(op("add", i64::MAX, 1), "9223372036854775808");
        assert_eq!(op("add", i128::MAX, 1), "!int");
        assert_eq!(op("mul", i128::MAX, 2), "!int");
        assert_eq!(op("sub", 1, 3), "-2");
        assert_eq!(op("pow", 2, 100), "1267650600228229401496703205376");
        assert_eq!(op("pow", 2, -1), "!float");
        assert_eq!(filter("op:neg", &[true.into()]), "-1");
    }

    #[test]
    fn division_rounds_down() {
        assert_eq!(op("div", 7, 2), "3.5");
        assert_eq!(op("div", 4, 2), "2.0");
        assert_eq!(op("div", 1, 0), "!zero_division");
        assert_eq!(op("div", i128::MAX, 3), "!float");
        for (a, b, quotient, rest) in [(7, 2, "3", "1"), (-7, 2, "-4", "1"), (7, -2, "-4", "-1")] {
            assert_eq!(op("floordiv", a, b), quotient);
            assert_eq!(op("mod", a, b), rest);
        }
        assert_eq!(op("mod", -7.25, 2), "0.75");
        assert_eq!(op("floordiv", -7.25, 2), "-4.0");
        assert_eq!(op("mod", 0.0, -3), "-0.0");
        assert_eq!(op("mod", 1, 0.0), "!zero_division");
    }

    #[test]
    fn sequences_join_and_repeat() {
        assert_eq!(op("add", "a", "b"), "ab");
        assert_eq!(op("add", "a", 1), "!operand");
        assert_eq!(op("add", none(), "a"), "!operand");
        assert_eq!(op("add", Value::UNDEFINED, "a"), "!operand");
        assert_eq!(op("add", list([1]), list(["a"])), "[1, 'a']");
        assert_eq!(op("add", list([1]), tuple([1])), "!operand");
        assert_eq!(op("mul", "ab", 3), "ababab");
        assert_eq!(op("mul", -1, "ab"), "");
        assert_eq!(op("mul", list([1]), true), "[1]");
        assert_eq!(op("mul", tuple([1]), 2), "(1, 1)");
        assert_eq!(op("mul", "x", 10_000_000_000_i64), "!limit:work");
    }

    #[test]
    fn markup_escapes_what_is_added() {
        let markup = || Value::from_safe_string("<i>".into());
        assert_eq!(op("add", markup(), "<"), "<i>&lt;");
        assert_eq!(op("add", "'\"&", markup()), "&#39;&#34;&amp;<i>");
        assert_eq!(op("concat", markup(), "<"), "<i><");
        assert_eq!(op("add", markup(), 1), "!operand");
    }
}
