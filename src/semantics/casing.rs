//! Upper, lower and title case.

use super::{Result, unproved};
use minijinja::Value;

/// `str.upper`.
pub(super) fn upper(value: &Value, text: &str) -> Result {
    ascii(text)?;
    Ok(if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        Value::from(text.to_ascii_uppercase())
    } else {
        value.clone()
    })
}

/// `str.lower`.
pub(super) fn lower(value: &Value, text: &str) -> Result {
    ascii(text)?;
    Ok(if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Value::from(text.to_ascii_lowercase())
    } else {
        value.clone()
    })
}

/// `str.lower` as text.
pub(super) fn lowered(text: &str) -> Result<String> {
    ascii(text)?;
    Ok(text.to_ascii_lowercase())
}

/// `str.upper` as text.
pub(super) fn uppered(text: &str) -> Result<String> {
    ascii(text)?;
    Ok(text.to_ascii_uppercase())
}

/// `str.casefold`.
pub(super) fn casefold(value: &Value, text: &str) -> Result {
    lower(value, text)
}

/// `str.capitalize`.
pub(super) fn capitalize(text: &str) -> Result {
    ascii(text)?;
    let mut out = text.to_ascii_lowercase();
    if let Some(first) = out.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Ok(Value::from(out))
}

/// `str.title`.
pub(super) fn title(text: &str) -> Result {
    ascii(text)?;
    let mut previous_cased = false;
    let titled = text.chars().map(|c| {
        let cased = if previous_cased {
            c.to_ascii_lowercase()
        } else {
            c.to_ascii_uppercase()
        };
        previous_cased = c.is_ascii_alphabetic();
        cased
    });
    Ok(Value::from(titled.collect::<String>()))
}

/// `str.swapcase`.
pub(super) fn swapcase(text: &str) -> Result {
    ascii(text)?;
    let swapped = text.chars().map(|c| {
        if c.is_ascii_lowercase() {
            c.to_ascii_uppercase()
        } else {
            c.to_ascii_lowercase()
        }
    });
    Ok(Value::from(swapped.collect::<String>()))
}

fn ascii(text: &str) -> Result<()> {
    if text.is_ascii() {
        Ok(())
    } else {
        Err(unproved("unicode"))
    }
}
