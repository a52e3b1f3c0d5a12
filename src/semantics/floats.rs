//! The text of a `float`, shared by `repr` and JSON.
//!
//! Python and Rust both print the shortest digits that read back as the same number. They differ in
//! where an exponent starts and how it is spelled, and where the number lies halfway between two such
//! texts: Python takes the even digit (`2251799813685248.2`, where Rust prints `...8.3`).

use std::fmt::{self, Write};

/// Writes `repr(value)`.
pub(super) fn write_repr(out: &mut impl Write, value: f64) -> fmt::Result {
    if value.is_nan() {
        return out.write_str("nan");
    }
    if value.is_infinite() {
        return out.write_str(if value > 0.0 { "inf" } else { "-inf" });
    }
    let shortest = even(value, format!("{value:e}"));
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

/// The text with as many digits as `shortest` that is nearest to `value`, ties to even.
fn even(value: f64, shortest: String) -> String {
    let (mantissa, _) = shortest.split_once('e').unwrap_or((&shortest, ""));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    // A tie has one more digit than the shortest text; those of doubles have at least 15.
    if digits < 10 {
        return shortest;
    }
    let precision = digits - 1;
    let rounded = format!("{value:.precision$e}");
    if rounded != shortest && rounded.parse() == Ok(value) {
        rounded
    } else {
        shortest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_python() {
        let table = [
            (0.0, "0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (123.456, "123.456"),
            (1e15, "1000000000000000.0"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00012345, "0.00012345"),
            (0.00001, "1e-05"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::INFINITY, "inf"),
            // Halfway between two shortest texts.
            (2_f64.powi(-25), "2.9802322387695312e-08"),
            (2_f64.powi(50) + 0.25, "1125899906842624.2"),
            (-26_363_981_746_409.0 - 0.312_5, "-26363981746409.312"),
        ];
        for (value, expected) in table {
            let mut text = String::new();
            write_repr(&mut text, value).unwrap();
            assert_eq!(text, expected);
        }
    }
}
