//! The filters `int`, `float` and `round`: numbers from text and to fewer digits.

use super::arguments::Arguments;
use super::kind::{self, Kind};
use super::{Result, unproved};
use minijinja::Value;

/// `int(value, default=0, base=10)`.
pub(super) fn int(args: &[Value]) -> Result {
    let [value, default, base] = Arguments::of(args).bind(["value", "default", "base"], 1)?;
    let value = value.ok_or_else(|| unproved("arguments"))?;
    if base.is_some_and(|base| Kind::of(&base).int() != Some(10)) {
        return Err(unproved("arguments"));
    }
    let default = || default.unwrap_or_else(|| Value::from(0));
    match Kind::of(&value) {
        Kind::Str(text) => match parse_int(text)? {
            Some(value) => Ok(kind::int(value)),
            None => match parse_float(text)? {
                Some(value) if value.is_finite() => truncated(value),
                _ => Ok(default()),
            },
        },
        // `int(inf)` raises what jinja2 does not catch.
        Kind::Float(value) if value.is_infinite() => Err(unproved("float")),
        Kind::Float(value) if value.is_nan() => Ok(default()),
        Kind::Float(value) => truncated(value),
        Kind::None | Kind::List(_) | Kind::Tuple(_) | Kind::Dict(_) => Ok(default()),
        kind => kind.int().map(kind::int).ok_or_else(|| unproved("operand")),
    }
}

/// `float(value, default=0.0)`.
pub(super) fn float(args: &[Value]) -> Result {
    let [value, default] = Arguments::of(args).bind(["value", "default"], 1)?;
    let value = value.ok_or_else(|| unproved("arguments"))?;
    let default = || default.unwrap_or_else(|| Value::from(0.0));
    match Kind::of(&value) {
        Kind::Str(text) => Ok(parse_float(text)?.map_or_else(default, Value::from)),
        Kind::Float(_) => Ok(value.clone()),
        Kind::None | Kind::List(_) | Kind::Tuple(_) | Kind::Dict(_) => Ok(default()),
        kind => match kind.int() {
            Some(int) => Ok(Value::from(int as f64)),
            None => Err(unproved("operand")),
        },
    }
}

/// `round(value, precision=0, method='common')`.
pub(super) fn round(args: &[Value]) -> Result {
    let [value, precision, method] =
        Arguments::of(args).bind(["value", "precision", "method"], 1)?;
    let value = value.ok_or_else(|| unproved("arguments"))?;
    let precision = match precision.as_ref().map(Kind::of) {
        None => 0,
        Some(Kind::Int(precision @ 0..=15)) => precision as usize,
        _ => return Err(unproved("arguments")),
    };
    let method = method.unwrap_or_else(|| Value::from("common"));
    match (Kind::of(&value), method.as_str()) {
        (Kind::Float(value), Some("common")) if !value.is_finite() => Ok(Value::from(value)),
        // Both sides round the exact value half to even.
        (Kind::Float(value), Some("common")) => {
            let rounded = format!("{value:.precision$}");
            rounded
                .parse::<f64>()
                .map(Value::from)
                .map_err(|_| unproved("float"))
        }
        (Kind::Float(value), Some(method @ ("ceil" | "floor"))) => {
            let scale = 10_f64.powi(precision as i32);
            let scaled = value * scale;
            let whole = if method == "ceil" {
                scaled.ceil()
            } else {
                scaled.floor()
            };
            // Python divides ints: exact below 2 ** 53, and an int has no negative zero.
            if scaled.is_nan() || whole.abs() > 9e15 {
                return Err(unproved("float"));
            }
            Ok(Value::from((whole + 0.0) / scale))
        }
        (kind, Some("common")) => kind.int().map(kind::int).ok_or_else(|| unproved("operand")),
        _ => Err(unproved("operand")),
    }
}

fn truncated(value: f64) -> Result {
    if value.abs() < 1e38 {
        Ok(kind::int(value.trunc() as i128))
    } else {
        Err(unproved("int"))
    }
}

/// `int(text)`; `None` where Python raises a `ValueError`.
fn parse_int(text: &str) -> Result<Option<i128>> {
    let Some(digits) = plain(text)? else {
        return Ok(None);
    };
    let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(&digits);
    if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    digits.parse().map(Some).map_err(|_| unproved("int"))
}

/// `float(text)`; `None` where Python raises a `ValueError`.
fn parse_float(text: &str) -> Result<Option<f64>> {
    Ok(plain(text)?.and_then(|text| text.parse().ok()))
}

/// `text` without white space around it and without underscores between digits; `None` if an
/// underscore stands elsewhere.
fn plain(text: &str) -> Result<Option<String>> {
    if !text.is_ascii() {
        // Python reads the digits of every script.
        return Err(unproved("unicode"));
    }
    let text = text.trim_matches(super::unicode::is_space);
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    let misplaced = |(at, byte): (usize, &u8)| {
        *byte == b'_' && !(is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)))
    };
    if bytes.iter().enumerate().any(misplaced) {
        return Ok(None);
    }
    Ok(Some(text.replace('_', "")))
}
