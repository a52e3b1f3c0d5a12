//! Conditions on one item, asked of all items of a list without the virtual machine.
//!
//! Some templates look for a message behind each message (`for later in messages[loop.index:]`, which sets
//! a flag): n²/2 iterations, each of some ten instructions. `template/existence.rs` recognises such loops and
//! writes `items|op:any(condition)` instead.
//!
//! A condition gives what its expression gives, or an error where that may not be proved: it is built from
//! what the expression would be lowered to, functions of this module and of the engine. It is asked of *every*
//! item, also behind one for which it holds: Python would raise there if it had to.
//!
//! Cost: some tens of nanoseconds an item.

use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Object, ObjectRepr};

use super::sequences::elements;
use super::{Result, attributes, budget, compare};

/// A condition on an item. What it names of the item is a literal string.
#[derive(Debug)]
pub enum Condition {
    /// Whether a part of the item is true.
    True(Part),
    /// `item.name == 'literal'`.
    Equal(Part, Value),
    /// `'literal' in item`.
    Has(Value),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

/// A part of an item.
#[derive(Debug)]
pub enum Part {
    /// `item.name`, where a type of Python may have an attribute of that name.
    Attribute(Box<str>),
    /// `item['name']`, likewise.
    Item(Value),
    /// `item.name` of any other name, as the engine has it.
    PlainAttribute(Box<str>),
    /// `item['name']`, likewise.
    PlainItem(Value),
}

impl Part {
    /// `item.name`.
    pub fn attribute(name: &str) -> Self {
        match attributes::is_attribute_name(name) {
            true => Part::Attribute(name.into()),
            false => Part::PlainAttribute(name.into()),
        }
    }

    /// `item['key']`.
    pub fn item(key: Value) -> Self {
        match key.as_str().is_none_or(attributes::is_attribute_name) {
            true => Part::Item(key),
            false => Part::PlainItem(key),
        }
    }

    fn of(&self, item: &Value) -> Result {
        match self {
            Part::Attribute(name) => attributes::attribute(item, name),
            Part::Item(key) => attributes::item(item, key),
            Part::PlainAttribute(name) => item.get_attr(name),
            Part::PlainItem(key) => item.get_item(key),
        }
    }
}

impl Condition {
    fn holds(&self, item: &Value) -> Result<bool> {
        Ok(match self {
            Condition::True(part) => part.of(item)?.is_true(),
            // With a string, the engine's equality is Python's.
            Condition::Equal(part, literal) => part.of(item)? == *literal,
            Condition::Has(literal) => {
                budget::reads(std::slice::from_ref(item))?;
                compare::contains(item, literal)?
            }
            Condition::Not(inner) => !inner.holds(item)?,
            Condition::And(a, b) => a.holds(item)? && b.holds(item)?,
            Condition::Or(a, b) => a.holds(item)? || b.holds(item)?,
        })
    }
}

impl Object for Condition {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
}

/// Whether `condition` holds for any of the items that a loop over `list` would have.
pub(super) fn any(list: &Value, condition: &Condition) -> Result<bool> {
    let items = elements(list)?;
    budget::visit(items.len())?;
    let mut found = false;
    for item in &*items {
        found |= condition.holds(item)?;
    }
    Ok(found)
}
