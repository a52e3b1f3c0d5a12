//! The items of a loop whose iterations are taken over in stretches.
//!
//! The engine counts the iterations that it sees. Where a [walk](super::Walk) takes over several at once it
//! sees one of them, so its `loop` is not the template's: the iterator asks the walk for the next item, and
//! the body asks it for what `loop` has, see [`attribute`].

use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr};

use super::WALK;

/// A list, or the same list from its end: that one is not made for it.
#[derive(Debug, Default)]
pub struct List {
    /// The list.
    pub values: Arc<Vec<Value>>,
    /// Whether the last item comes first.
    pub turned: bool,
}

impl List {
    /// How many items.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The item at a place.
    pub fn get(&self, at: usize) -> Option<&Value> {
        match self.turned {
            false => self.values.get(at),
            true => self
                .values
                .len()
                .checked_sub(at + 1)
                .map(|at| &self.values[at]),
        }
    }
}

/// What a loop goes over: the items of the walk of this thread, from where it is.
#[derive(Debug)]
pub struct Items;

impl Object for Items {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Iter(Box::new(std::iter::from_fn(next)))
    }
}

/// The item behind the iterations that were rendered or taken over so far.
fn next() -> Option<Value> {
    WALK.with_borrow(|walk| {
        let current = walk.as_ref()?.current.as_ref()?;
        current.items.get(current.done).cloned()
    })
}

/// What jinja2's `loop` has under this name in the iteration at `at`; None for names that are not known.
pub fn attribute(items: &List, at: usize, name: &str) -> Option<Value> {
    let item = |at: Option<usize>| {
        let item = at.and_then(|at| items.get(at));
        item.cloned().unwrap_or_default()
    };
    Some(match name {
        "index" => Value::from(at + 1),
        "index0" => Value::from(at),
        "length" => Value::from(items.len()),
        "revindex" => Value::from(items.len() - at),
        "revindex0" => Value::from(items.len() - at - 1),
        "first" => Value::from(at == 0),
        "last" => Value::from(at + 1 == items.len()),
        "previtem" => item(at.checked_sub(1)),
        "nextitem" => item(at.checked_add(1)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use minijinja::Environment;

    /// Every attribute, at every place, is what the engine's own loop has there.
    #[test]
    fn attributes_are_those_of_the_engine() {
        const NAMES: [&str; 9] = [
            "index",
            "index0",
            "length",
            "revindex",
            "revindex0",
            "first",
            "last",
            "previtem",
            "nextitem",
        ];
        for length in 0..4 {
            let items: Vec<Value> = (0..length).map(Value::from).collect();
            let context: BTreeMap<_, _> = [("items", Value::from(items.clone()))].into();
            let context = Value::from(context);
            for name in NAMES {
                let source = format!("{{% for i in items %}}{{{{ loop.{name} }}}};{{% endfor %}}");
                let want = Environment::new().render_str(&source, context.clone());
                let want = want.unwrap();
                let mut list = List {
                    values: items.clone().into(),
                    turned: false,
                };
                let ours = |list: &List| -> String {
                    let at = |at| attribute(list, at, name).unwrap().to_string() + ";";
                    (0..list.len()).map(at).collect()
                };
                assert_eq!(want, ours(&list), "{name}");
                Arc::make_mut(&mut list.values).reverse();
                list.turned = true;
                assert_eq!(want, ours(&list), "{name}, turned");
            }
        }
        let one = List {
            values: Arc::new(vec![Value::from(1)]),
            turned: true,
        };
        assert!(attribute(&one, 0, "cycle").is_none());
        assert!(one.get(1).is_none());
    }
}
