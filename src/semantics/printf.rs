//! `str % value`.

use super::kind::Kind;
use super::{Result, budget, text, unproved};
use minijinja::Value;
use std::borrow::Cow;

/// `format % value`: conversions `s r d i u x X o f F %` with flags, width and precision; mapping
/// keys, `*` and the rest fail.
pub(super) fn format(format: &str, value: &Value) -> Result<String> {
    match Kind::of(value) {
        Kind::Tuple(items) => apply(format, items, false),
        // Extra arguments are ignored for what Python takes for a mapping: anything with
        // `__getitem__` that is neither tuple nor str.
        Kind::List(_) | Kind::Dict(_) | Kind::Undefined => {
            apply(format, std::slice::from_ref(value), true)
        }
        Kind::Range(_) | Kind::Other | Kind::Namespace | Kind::Loop | Kind::Macro => {
            Err(unproved("printf"))
        }
        _ => apply(format, std::slice::from_ref(value), false),
    }
}

/// `format % tuple(items)`.
pub(super) fn apply(format: &str, items: &[Value], extra_allowed: bool) -> Result<String> {
    let mut out = String::with_capacity(format.len());
    let mut items_left = items.iter();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = write_conversion(&mut out, &rest[at + 1..], &mut items_left)?;
    }
    out.push_str(rest);
    if items_left.next().is_some() && !extra_allowed {
        return Err(unproved("printf"));
    }
    Ok(out)
}

/// The part of a conversion between `%` and its letter.
#[derive(Default)]
struct Spec {
    left: bool,
    plus: bool,
    blank: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

fn write_conversion<'f>(
    out: &mut String,
    format: &'f str,
    items: &mut std::slice::Iter<'_, Value>,
) -> Result<&'f str> {
    let mut spec = Spec::default();
    let mut rest = format;
    loop {
        match rest.bytes().next() {
            Some(b'-') => spec.left = true,
            Some(b'+') => spec.plus = true,
            Some(b' ') => spec.blank = true,
            Some(b'#') => spec.alternate = true,
            Some(b'0') => spec.zero = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    (spec.width, rest) = digits(rest)?;
    if let Some(after) = rest.strip_prefix('.') {
        let (precision, after) = digits(after)?;
        (spec.precision, rest) = (Some(precision), after);
    }
    let mut chars = rest.chars();
    let letter = chars.next().ok_or_else(|| unproved("printf"))?;
    if letter == '%' {
        // CPython accepts flags here; nobody writes them.
        if rest.len() != format.len() {
            return Err(unproved("printf"));
        }
        out.push('%');
        return Ok(chars.as_str());
    }
    let value = items.next().ok_or_else(|| unproved("printf"))?;
    match letter {
        's' => write_text(out, &spec, &text::str_of(value)?)?,
        'r' => write_text(out, &spec, &text::repr_of(value)?)?,
        'd' | 'i' | 'u' => write_int(out, &spec, value)?,
        'f' | 'F' => write_float(out, &spec, value)?,
        'x' => write_radix(out, &spec, value, |value| format!("{value:x}"))?,
        'X' => write_radix(out, &spec, value, |value| format!("{value:X}"))?,
        'o' => write_radix(out, &spec, value, |value| format!("{value:o}"))?,
        _ => return Err(unproved("printf")),
    }
    Ok(chars.as_str())
}

fn digits(text: &str) -> Result<(usize, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    match digits.len() {
        0 => Ok((0, rest)),
        1..=4 => Ok((digits.parse().map_err(|_| unproved("printf"))?, rest)),
        _ => Err(unproved("printf")),
    }
}

fn write_text(out: &mut String, spec: &Spec, text: &str) -> Result<()> {
    budget::spend(text.len())?;
    let text = match spec.precision {
        Some(precision) => super::attributes::substring(text, None, Some(precision as i128)),
        None => text,
    };
    pad(out, spec, "", text, false);
    Ok(())
}

fn write_int(out: &mut String, spec: &Spec, value: &Value) -> Result<()> {
    let value = match Kind::of(value) {
        Kind::Float(float) if float.abs() < 1e38 => float.trunc() as i128,
        kind => kind.int().ok_or_else(|| unproved("printf"))?,
    };
    write_digits(out, spec, value < 0, "", value.unsigned_abs().to_string());
    Ok(())
}

fn write_radix(
    out: &mut String,
    spec: &Spec,
    value: &Value,
    digits: fn(u128) -> String,
) -> Result<()> {
    let value = Kind::of(value).int().ok_or_else(|| unproved("printf"))?;
    if spec.alternate {
        return Err(unproved("printf"));
    }
    write_digits(out, spec, value < 0, "", digits(value.unsigned_abs()));
    Ok(())
}

fn write_digits(out: &mut String, spec: &Spec, negative: bool, prefix: &str, digits: String) {
    let least = spec.precision.unwrap_or(0);
    let digits = if digits.len() < least {
        Cow::Owned(format!("{}{digits}", "0".repeat(least - digits.len())))
    } else {
        Cow::Borrowed(digits.as_str())
    };
    let sign = format!("{}{prefix}", sign(spec, negative));
    pad(out, spec, &sign, &digits, spec.zero);
}

fn write_float(out: &mut String, spec: &Spec, value: &Value) -> Result<()> {
    let value = match Kind::of(value) {
        Kind::Float(float) if float.is_finite() => float,
        kind => match kind.int() {
            Some(int) if int.unsigned_abs() <= 1 << 53 => int as f64,
            _ => return Err(unproved("printf")),
        },
    };
    let precision = spec.precision.unwrap_or(6);
    if spec.alternate || precision > 60 {
        return Err(unproved("printf"));
    }
    // Both sides print the exact value rounded half to even.
    let digits = format!("{:.precision$}", value.abs());
    let sign = sign(spec, value.is_sign_negative());
    pad(out, spec, sign, &digits, spec.zero);
    Ok(())
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.blank) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    }
}

fn pad(out: &mut String, spec: &Spec, sign: &str, body: &str, zero: bool) {
    let width = sign.len() + body.chars().count();
    let missing = spec.width.saturating_sub(width);
    if spec.left {
        out.push_str(sign);
        out.push_str(body);
        out.extend(std::iter::repeat_n(' ', missing));
    } else if zero {
        out.push_str(sign);
        out.extend(std::iter::repeat_n('0', missing));
        out.push_str(body);
    } else {
        out.extend(std::iter::repeat_n(' ', missing));
        out.push_str(sign);
        out.push_str(body);
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe::{dict, filter, list, none, tuple};
    use minijinja::Value;

    fn formatted(format: &str, value: impl Into<Value>) -> String {
        filter("op:mod", &[format.into(), value.into()])
    }

    #[test]
    fn conversions() {
        let table = [
            ("%s", Value::from("a"), "a"),
            ("%s-%r", tuple(["a", "b"]), "a-'b'"),
            ("%5s|%-5s|", tuple(["a", "b"]), "    a|b    |"),
            ("%.2s", Value::from("日本語"), "日本"),
            ("%05d", Value::from(-42), "-0042"),
            ("%+d % d", tuple([1, 2]), "+1  2"),
            ("%d", Value::from(3.9), "3"),
            ("%i%%", Value::from(true), "1%"),
            ("%.3d", Value::from(7), "007"),
            ("%x %X %o", tuple([255, 255, 8]), "ff FF 10"),
            ("%.2f", Value::from(2.675), "2.67"),
            ("%.0f", Value::from(0.5), "0"),
            ("%08.3f", Value::from(-2.5), "-002.500"),
            ("%s", list([1]), "[1]"),
            ("%s", Value::UNDEFINED, ""),
            ("none", dict([("a", 1)]), "none"),
        ];
        for (format, value, expected) in table {
            assert_eq!(formatted(format, value), expected, "{format}");
        }
    }

    #[test]
    fn what_python_refuses_or_we_cannot_prove_fails() {
        for (format, value) in [
            ("%s %s", Value::from("a")),
            ("none", Value::from("a")),
            ("%d", Value::from("1")),
            ("%d", none()),
            ("%x", Value::from(1.5)),
            ("%(a)s", dict([("a", 1)])),
            ("%*d", tuple([1, 2])),
            ("%e", Value::from(1.5)),
            ("%", Value::from(1)),
        ] {
            assert_eq!(formatted(format, value), "!printf", "{format}");
        }
    }
}
