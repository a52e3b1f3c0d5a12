//! Iterables that are not sequences: dict views, `range` and generators.
//!
//! jinja2 filters such as `map`, `select` and `items` are Python generators: always true, without a
//! length, gone once iterated. Ours are computed at once and handed out once; a second iteration
//! fails, because what Python yields then depends on how far the first one went.

use super::{Dict, Result, unproved};
use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr, Tuple};
use std::sync::{Arc, Mutex, PoisonError};

/// Which part of the dict a view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Keys,
    Values,
    Items,
}

/// `dict.keys()`, `dict.values()` or `dict.items()`.
#[derive(Debug)]
pub(crate) struct View {
    dict: Arc<Dict>,
    pub(super) part: Part,
}

impl View {
    /// A view on `dict`.
    pub(super) fn new(dict: Arc<Dict>, part: Part) -> Self {
        View { dict, part }
    }

    /// How many elements it has.
    pub(super) fn len(&self) -> usize {
        self.dict.entries().len()
    }

    /// The dict under the view.
    pub(super) fn dict(&self) -> &Dict {
        &self.dict
    }

    /// The elements, in order.
    pub(super) fn values(&self) -> Vec<Value> {
        let entries = self.dict.entries().iter();
        match self.part {
            Part::Keys => entries.map(|(key, _)| key.clone()).collect(),
            Part::Values => entries.map(|(_, value)| value.clone()).collect(),
            Part::Items => entries.map(pair).collect(),
        }
    }
}

/// A dict entry as the tuple that `items` yields.
pub(super) fn pair((key, value): &(Value, Value)) -> Value {
    Value::from(Tuple::from([key.clone(), value.clone()]))
}

impl Object for View {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.values())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.len())
    }
}

/// Python's `range`.
#[derive(Debug)]
pub(crate) struct Range {
    pub(super) start: i64,
    pub(super) stop: i64,
    pub(super) step: i64,
    len: usize,
}

impl Range {
    /// `range(start, stop, step)`; `None` if the step is zero or the sandbox refuses the size.
    pub(super) fn new(start: i64, stop: i64, step: i64) -> Option<Self> {
        let (low, high) = match step {
            0 => return None,
            1.. => (start, stop),
            _ => (stop, start),
        };
        let span = (i128::from(high) - i128::from(low)).max(0);
        let stride = i128::from(step).abs();
        let len = usize::try_from((span + stride - 1) / stride).ok()?;
        (len <= 100_000).then_some(Range {
            start,
            stop,
            step,
            len,
        })
    }

    /// How many elements it has.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The element at `index`, which is below the length.
    pub(super) fn at(&self, index: usize) -> i128 {
        i128::from(self.start) + index as i128 * i128::from(self.step)
    }

    /// The elements, in order.
    pub(super) fn values(&self) -> Vec<Value> {
        (0..self.len)
            .map(|index| super::kind::int(self.at(index)))
            .collect()
    }
}

impl Object for Range {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.values())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.len)
    }
}

/// What a Python generator (or another iterator) would yield.
#[derive(Debug)]
pub(crate) struct Generator(Mutex<Option<Vec<Value>>>);

impl Generator {
    /// A generator that yields `values`.
    pub(super) fn value(values: Vec<Value>) -> Value {
        Value::from_object(Generator(Mutex::new(Some(values))))
    }

    /// How many values it has left to yield.
    pub(super) fn len(&self) -> usize {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.as_ref().map_or(0, Vec::len)
    }

    /// Looks at what it will yield.
    pub(super) fn peek<T>(&self, look: impl FnOnce(&[Value]) -> T) -> T {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        look(values.as_deref().unwrap_or_default())
    }

    /// What it yields; an error if it was iterated before.
    pub(super) fn take(&self) -> Result<Vec<Value>> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.take().ok_or_else(|| unproved("generator"))
    }
}

impl Object for Generator {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        // The engine reports an item that holds an error.
        Enumerator::Values(self.take().unwrap_or_else(|error| vec![Value::from(error)]))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        None
    }

    fn is_true(self: &Arc<Self>) -> bool {
        true
    }
}
