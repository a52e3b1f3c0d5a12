//! (stub, being written)

use minijinja::{Error, Output, Value};
use std::fmt::Write;

/// Writes `str(value)` to `out`.
pub fn write_str(out: &mut Output, value: &Value) -> Result<(), Error> {
    write!(out, "{value}").map_err(Error::from)
}
