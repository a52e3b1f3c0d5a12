//! What a value is to Python.
//!
//! minijinja has one number kind and tells lists, tuples, ranges and generators apart only by their
//! object type. Every rule in this module starts by asking for the [`Kind`], so this is the one
//! place that knows which Rust type stands for which Python type. A value of a type that is not
//! named here ([`Kind::Other`]) has no proved behaviour: operations on it fail.

use super::Dict;
use super::iterables::{Generator, Range, View};
use minijinja::Value;
use minijinja::value::{ObjectRepr, Tuple, ValueKind};

/// A value by its Python type.
pub(crate) enum Kind<'a> {
    Undefined,
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(&'a str),
    /// `markupsafe.Markup`: a `str` whose methods and `+` escape their operands.
    Markup(&'a str),
    List(&'a [Value]),
    Tuple(&'a [Value]),
    Dict(&'a Dict),
    View(&'a View),
    Range(&'a Range),
    Generator(&'a Generator),
    Namespace,
    Loop,
    Macro,
    Other,
}

impl<'a> Kind<'a> {
    /// The kind of `value`.
    #[inline]
    pub(crate) fn of(value: &'a Value) -> Self {
        match value.kind() {
            ValueKind::String => match value.as_str() {
                Some(text) if value.is_safe() => Kind::Markup(text),
                Some(text) => Kind::Str(text),
                None => Kind::Other,
            },
            ValueKind::Undefined => Kind::Undefined,
            ValueKind::None => Kind::None,
            ValueKind::Bool => Kind::Bool(value.is_true()),
            ValueKind::Number if value.is_integer() => match value.as_i64() {
                Some(int) => Kind::Int(int.into()),
                None => i128::try_from(value.clone()).map_or(Kind::Other, Kind::Int),
            },
            ValueKind::Number => f64::try_from(value.clone()).map_or(Kind::Other, Kind::Float),
            _ => Kind::of_object(value),
        }
    }

    fn of_object(value: &'a Value) -> Self {
        let Some(object) = value.as_object() else {
            return Kind::Other;
        };
        match object.repr() {
            ObjectRepr::Map => {
                if let Some(dict) = object.downcast_ref() {
                    return Kind::Dict(dict);
                }
                // These types are private to minijinja; their names are the only handle.
                match object.type_name() {
                    "minijinja::value::namespace_object::Namespace" => Kind::Namespace,
                    "minijinja::vm::loop_object::Loop" => Kind::Loop,
                    "minijinja::vm::macro_object::Macro" => Kind::Macro,
                    _ => Kind::Other,
                }
            }
            ObjectRepr::Seq => {
                if let Some(list) = object.downcast_ref::<Vec<Value>>() {
                    Kind::List(list)
                } else if let Some(tuple) = object.downcast_ref::<Tuple>() {
                    Kind::Tuple(tuple)
                } else {
                    Kind::Other
                }
            }
            ObjectRepr::Iterable => {
                if let Some(view) = object.downcast_ref() {
                    Kind::View(view)
                } else if let Some(range) = object.downcast_ref() {
                    Kind::Range(range)
                } else if let Some(generator) = object.downcast_ref() {
                    Kind::Generator(generator)
                } else {
                    Kind::Other
                }
            }
            _ => Kind::Other,
        }
    }

    /// The text of a `str`, also of a `Markup`.
    pub(super) fn text(&self) -> Option<&'a str> {
        match *self {
            Kind::Str(text) | Kind::Markup(text) => Some(text),
            _ => None,
        }
    }

    /// The value as Python's `int` sees it: `bool` is an `int`.
    pub(super) fn int(&self) -> Option<i128> {
        match *self {
            Kind::Bool(value) => Some(value.into()),
            Kind::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The value where CPython takes a width, a count or a number of times: an int of another size than
    /// its own sizes have (`Py_ssize_t`) is an `OverflowError`, whatever would be done with it.
    pub(super) fn size(&self) -> Option<i128> {
        let fits = |int: &i128| i64::try_from(*int).is_ok();
        self.int().filter(fits)
    }
}

/// An `int`, in the representation that comparing and indexing expect.
#[inline]
pub(super) fn int(value: i128) -> Value {
    match i64::try_from(value) {
        Ok(small) => Value::from(small),
        Err(_) => Value::from(value),
    }
}
