//! The text of a `float`, shared by `repr` and JSON.
//!
//! Python and Rust both print the shortest digits that read back as the same number; they differ in
//! where an exponent starts and how it is spelled.

use std::fmt::{self, Write};

/// Writes `repr(value)`.
pub(super) fn write_repr(out: &mut impl Write, value: f64) -> fmt::Result {
    if value.is_nan() {
        return out.write_str("nan");
    }
    if value.is_infinite() {
        return out.write_str(if value > 0.0 { "inf" } else { "-inf" });
    }
    let shortest = format!("{value:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    out.write_str(sign)?;
    match exponent {
        16.. | ..=-5 => {
            out.write_str(first)?;
            if !rest.is_empty() {
                write!(out, ".{rest}")?;
            }
            let sign = if exponent < 0 { '-' } else { '+' };
            write!(out, "e{sign}{:02}", exponent.unsigned_abs())
        }
        -4..=-1 => {
            out.write_str("0.")?;
            for _ in 1..exponent.unsigned_abs() {
                out.write_char('0')?;
            }
            write!(out, "{first}{rest}")
        }
        0..=15 => {
            let before = exponent.unsigned_abs() as usize;
            out.write_str(first)?;
            if rest.len() > before {
                write!(out, "{}.{}", &rest[..before], &rest[before..])
            } else {
                out.write_str(rest)?;
                for _ in rest.len()..before {
                    out.write_char('0')?;
                }
                out.write_str(".0")
            }
        }
    }
}
