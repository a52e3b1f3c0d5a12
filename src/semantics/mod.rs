//! Python's rules for the values that a chat template handles.
//!
//! minijinja is close to jinja2, not equal. Everything a template can do to a value goes through
//! this module: how a value prints ([`text`]), operators ([`operators`]), methods ([`methods`]),
//! filters, tests and global functions. The syntax tree is rewritten so that operators arrive here
//! too (`template/lower.rs`); each name that is not in the lists below makes the reference serve the
//! template.
//!
//! The contract of every function here: return exactly what CPython (under jinja2 as transformers
//! configures it) returns, or an error. An error is never wrong: the reference then decides between
//! an exception and a text.

pub(crate) mod arguments;
mod arithmetic;
mod attributes;
pub mod budget;
mod casing;
mod compare;
pub(crate) mod condition;
pub mod dict;
pub mod filters;
mod floats;
pub mod functions;
mod iterables;
mod json;
pub(crate) mod kind;
pub mod methods;
mod numerals;
pub mod operators;
mod printf;
#[cfg(test)]
mod probe;
mod sequences;
mod strings;
pub mod tests;
pub mod text;
mod unicode;

pub use dict::Dict;

use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};
use std::fmt;

/// The environment in which every template is evaluated.
pub fn environment() -> Environment<'static> {
    let mut env = Environment::empty();
    env.set_undefined_behavior(UndefinedBehavior::Lenient);
    env.set_formatter(|out, _state, value| text::write_str(out, value));
    env.set_unknown_method_callback(methods::call);
    operators::install(&mut env);
    filters::install(&mut env);
    tests::install(&mut env);
    functions::install(&mut env);
    env
}

/// Marks an error of ours: what could not be done as Python does it. Becomes `render:<code>`.
#[derive(Debug)]
pub struct Unproved(pub &'static str);

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Unproved {}

/// An error that hands the render to the reference with the reason `render:<code>`.
pub fn unproved(code: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, code).with_source(Unproved(code))
}

/// Shorthand for the results of this module.
pub type Result<T = Value> = std::result::Result<T, Error>;
