//! What `tojson` made of the same value in the render before.
//!
//! The head of a prompt is mostly a list of tools, dumped anew at each turn. Values are immutable, so what is
//! dumped again is recognised by its identity, and its text taken over. Inside of loops over messages
//! iterations are taken over as a whole; what they dump is not kept here.
//!
//! Invariant: a dump holds its value, so that no other value can take its place in memory. Cost: a search
//! among [`MOST`] pointers.

use minijinja::{Error, Value};

use super::same::{same, same_dict};
use super::{WALK, Walk};
use crate::semantics::filters;

/// Values that are kept of one render.
const MOST: usize = 128;

/// A value and its text.
#[derive(Clone, Debug)]
pub struct Dump {
    value: Value,
    /// The filter's arguments.
    style: Vec<Value>,
    text: Value,
}

impl Dump {
    /// What was written.
    #[cfg(test)]
    pub fn text(&self) -> &str {
        self.text.as_str().unwrap_or_default()
    }

    /// Bytes of what it holds, except for the value, which the variables of the call hold.
    pub fn bytes(&self) -> usize {
        self.text.as_str().map_or(0, str::len)
    }
}

/// `value|op:dump(...)`, which is `value|tojson(...)`.
pub fn dump(args: &[Value]) -> Result<Value, Error> {
    let [value, style @ ..] = args else {
        return filters::tojson(args);
    };
    if let Some(text) = with_walk(|walk| walk.dumped(value, style)).flatten() {
        return Ok(text);
    }
    let text = filters::tojson(args)?;
    with_walk(|walk| walk.note_dump(value, style, &text));
    Ok(text)
}

fn with_walk<T>(act: impl FnOnce(&mut Walk) -> T) -> Option<T> {
    WALK.with_borrow_mut(|walk| walk.as_mut().filter(|walk| walk.current.is_none()).map(act))
}

impl Walk {
    /// The text of a value that was dumped in this render or in the earlier one.
    fn dumped(&mut self, value: &Value, style: &[Value]) -> Option<Value> {
        let is_it = |dump: &&Dump| same_dict(&dump.value, value) && same_style(&dump.style, style);
        if let Some(known) = self.dumps.iter().find(is_it) {
            return Some(known.text.clone());
        }
        let earlier = self.earlier.as_ref()?;
        let known = earlier.dumps.iter().find(is_it)?.clone();
        let text = known.text.clone();
        self.dumps.push(known);
        Some(text)
    }

    fn note_dump(&mut self, value: &Value, style: &[Value], text: &Value) {
        // A dict is the same as itself; nothing else is recognised.
        if self.dumps.len() < MOST && same_dict(value, value) {
            self.dumps.push(Dump {
                value: value.clone(),
                style: style.to_vec(),
                text: text.clone(),
            });
        }
    }
}

/// Whether two calls of the filter have the same arguments.
fn same_style(a: &[Value], b: &[Value]) -> bool {
    let same_argument = |(a, b): (&Value, &Value)| match (a.is_kwargs(), b.is_kwargs()) {
        (true, true) => same_keywords(a, b),
        (false, false) => same(a, b),
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(same_argument)
}

fn same_keywords(a: &Value, b: &Value) -> bool {
    let names = |keywords: &Value| Some(keywords.try_iter().ok()?.collect::<Vec<_>>());
    let (Some(ours), Some(theirs)) = (names(a), names(b)) else {
        return false;
    };
    let given = |keywords: &Value, name: &Value| keywords.get_item(name).unwrap_or_default();
    let is_same = |(x, y): (&Value, &Value)| same(x, y) && same(&given(a, x), &given(b, y));
    ours.len() == theirs.len() && ours.iter().zip(&theirs).all(is_same)
}

#[cfg(test)]
mod tests {
    use minijinja::value::Kwargs;

    use super::*;

    #[test]
    fn styles_differ_by_name_value_and_type() {
        let keywords = |pairs: &[(&'static str, Value)]| {
            Value::from(pairs.iter().cloned().collect::<Kwargs>())
        };
        let styles: Vec<Vec<Value>> = vec![
            vec![],
            vec![Value::from(4)],
            vec![Value::from(true)],
            vec![keywords(&[])],
            vec![keywords(&[("indent", Value::from(4))])],
            vec![keywords(&[("indent", Value::from(true))])],
            vec![keywords(&[("sort_keys", Value::from(true))])],
            vec![keywords(&[
                ("indent", Value::from(4)),
                ("sort_keys", Value::from(true)),
            ])],
        ];
        for (i, a) in styles.iter().enumerate() {
            for (j, b) in styles.iter().enumerate() {
                assert_eq!(same_style(a, &b.clone()), i == j, "{a:?} {b:?}");
            }
        }
    }
}
