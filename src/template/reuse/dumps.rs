//! What `tojson` made of the same value in the render before.
//!
//! The head of a prompt is mostly a list of tools, dumped anew at each turn. Values are immutable, so what is
//! dumped again is recognised by its identity, and its text taken over. Inside of loops over messages
//! iterations are taken over as a whole; what they dump is not kept here.
//!
//! Invariant: a dump holds its value, so that no other value can take its place in memory. Cost: a search
//! among [`MOST`] pointers.

use minijinja::{Error, Value};

use super::same::same_dict;
use super::{WALK, Walk};
use crate::semantics::filters;

/// Values that are kept of one render.
const MOST: usize = 128;

/// A value and its text.
#[derive(Clone, Debug)]
pub struct Dump {
    value: Value,
    text: Value,
}

impl Dump {
    /// Bytes of what it holds, except for the value, which the variables of the call hold.
    pub fn bytes(&self) -> usize {
        self.text.as_str().map_or(0, str::len)
    }
}

/// `value|op:dump`, which is `value|tojson`.
pub fn dump(args: &[Value]) -> Result<Value, Error> {
    if let [value] = args
        && let Some(text) = with_walk(|walk| walk.dumped(value)).flatten()
    {
        return Ok(text);
    }
    let text = filters::tojson(args)?;
    if let [value] = args {
        with_walk(|walk| walk.note_dump(value, &text));
    }
    Ok(text)
}

fn with_walk<T>(act: impl FnOnce(&mut Walk) -> T) -> Option<T> {
    WALK.with_borrow_mut(|walk| walk.as_mut().filter(|walk| walk.current.is_none()).map(act))
}

impl Walk {
    /// The text of a value that was dumped in this render or in the earlier one.
    fn dumped(&mut self, value: &Value) -> Option<Value> {
        let is_it = |dump: &&Dump| same_dict(&dump.value, value);
        if let Some(known) = self.dumps.iter().find(is_it) {
            return Some(known.text.clone());
        }
        let earlier = self.earlier.as_ref()?;
        let known = earlier.dumps.iter().find(is_it)?.clone();
        let text = known.text.clone();
        self.dumps.push(known);
        Some(text)
    }

    fn note_dump(&mut self, value: &Value, text: &Value) {
        // A dict is the same as itself; nothing else is recognised.
        if self.dumps.len() < MOST && same_dict(value, value) {
            self.dumps.push(Dump {
                value: value.clone(),
                text: text.clone(),
            });
        }
    }
}
