//! What one render may cost, and how deeply it may nest values.
//!
//! The engine counts instructions and what it writes itself, but a template's work is done in here:
//! `range(100000)` in a loop, a text that doubles a hundred times, a list that holds itself twice a
//! hundred levels deep. So every function of this module charges what it reads and makes, in bytes,
//! before it makes much; past the allowance the render fails with `limit:work`, and nobody is asked
//! instead, since the reference would hang where we stop. A value nested deeper than [`MAX_NESTING`]
//! would overflow the stack when it is dropped: [`nested`] looks at what is about to be kept.
//!
//! The allowance is one number per thread, set by [`within`]: a render never leaves its thread.

use super::kind::Kind;
use super::{Result, unproved};
use minijinja::Value;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// The code of the error of a render that is too expensive.
pub const EXCEEDED: &str = "limit:work";

/// How many containers a template may put into each other, besides those that came with the call.
const MAX_NESTING: usize = 200;

/// What an element of a container costs, in bytes.
pub(super) const ELEMENT: usize = 64;

/// What reading is cheaper than making.
const READING: usize = 8;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    /// How deep containers are, by address. The values are held so that no address is used again.
    static DEPTHS: RefCell<HashMap<usize, (Value, usize)>> = RefCell::new(HashMap::new());
}

/// Runs `work` with an allowance of `bytes`.
pub fn within<T>(bytes: u64, work: impl FnOnce() -> T) -> T {
    struct Restore(u64);
    impl Drop for Restore {
        fn drop(&mut self) {
            LEFT.set(self.0);
            DEPTHS.with_borrow_mut(HashMap::clear);
        }
    }
    let _restore = Restore(LEFT.replace(bytes));
    work()
}

/// Charges `bytes`.
#[inline]
pub(super) fn spend(bytes: usize) -> Result<()> {
    let left = LEFT.get();
    match left.checked_sub(bytes as u64) {
        Some(less) => {
            LEFT.set(less);
            Ok(())
        }
        None => Err(unproved(EXCEEDED)),
    }
}

/// Fails if `bytes` more are too many; what is built is charged when it is there.
#[inline]
pub(super) fn building(bytes: usize) -> Result<()> {
    const MOST: u64 = 1 << 32;
    match bytes as u64 <= LEFT.get().min(MOST) {
        true => Ok(()),
        false => Err(unproved(EXCEEDED)),
    }
}

/// Charges the visit of `count` elements.
#[inline]
pub(super) fn visit(count: usize) -> Result<()> {
    spend(count.saturating_mul(ELEMENT))
}

/// Charges what a function reads of its arguments: texts once, containers flat.
#[inline]
pub(super) fn reads(args: &[Value]) -> Result<()> {
    let mut bytes = READING;
    for arg in args {
        bytes = bytes.saturating_add(size(arg) / READING);
    }
    spend(bytes)
}

/// Charges what a function made.
#[inline]
pub(super) fn made(result: Result) -> Result {
    let value = result?;
    spend(size(&value))?;
    Ok(value)
}

fn size(value: &Value) -> usize {
    if let Some(text) = value.as_str() {
        return text.len();
    }
    let elements = match Kind::of(value) {
        Kind::List(items) | Kind::Tuple(items) => items.len(),
        Kind::Dict(dict) => dict.entries().len(),
        Kind::View(view) => view.len(),
        Kind::Range(range) => range.len(),
        Kind::Generator(generator) => generator.len(),
        _ => 0,
    };
    elements.saturating_mul(ELEMENT)
}

/// `value`, unless it nests too deep to be kept.
pub(super) fn nested(value: &Value) -> Result {
    if depth(value, 0)? > MAX_NESTING {
        return Err(unproved("depth"));
    }
    Ok(value.clone())
}

/// How many levels of containers `value` has. Each container is looked into once per render.
fn depth(value: &Value, level: usize) -> Result<usize> {
    let address = match Kind::of(value) {
        Kind::List([]) | Kind::Tuple([]) => return Ok(1),
        Kind::List(items) | Kind::Tuple(items) => items.as_ptr().addr(),
        Kind::Dict(dict) => std::ptr::from_ref(dict).addr(),
        Kind::View(view) => std::ptr::from_ref(view.dict()).addr(),
        Kind::Generator(generator) => std::ptr::from_ref(generator).addr(),
        _ => return Ok(0),
    };
    if let Some(known) = DEPTHS.with_borrow(|depths| depths.get(&address).map(|(_, depth)| *depth))
    {
        return Ok(known);
    }
    if level > 2 * MAX_NESTING {
        return Err(unproved("depth"));
    }
    let deepest = |values: &mut dyn Iterator<Item = &Value>| -> Result<usize> {
        let mut deepest = 0;
        for value in values {
            deepest = deepest.max(depth(value, level + 1)?);
        }
        Ok(deepest + 1)
    };
    let found = match Kind::of(value) {
        Kind::List(items) | Kind::Tuple(items) => {
            visit(items.len())?;
            deepest(&mut items.iter())?
        }
        Kind::Dict(dict) => {
            visit(dict.entries().len())?;
            deepest(&mut dict.entries().iter().map(|(_, value)| value))?
        }
        Kind::View(view) => deepest(&mut view.dict().entries().iter().map(|(_, value)| value))? + 1,
        Kind::Generator(generator) => generator.peek(|values| deepest(&mut values.iter()))?,
        _ => 0,
    };
    // The outermost one is new as a rule; what it holds will be met again.
    if level > 0 && found > 1 {
        DEPTHS.with_borrow_mut(|depths| depths.insert(address, (value.clone(), found)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::probe::{code, list};
    use super::*;

    #[test]
    fn an_allowance_ends_and_is_restored() {
        let outcome = within(100, || (spend(60), spend(60)));
        assert!(outcome.0.is_ok());
        assert_eq!(outcome.1.as_ref().map_err(code), Err(EXCEEDED));
        assert!(spend(usize::MAX).is_ok());
    }

    #[test]
    fn depth_counts_levels_not_elements() {
        within(u64::MAX, || {
            let mut value = list([1, 2, 3]);
            for _ in 1..MAX_NESTING {
                value = list([value.clone(), value]);
                assert!(nested(&value).is_ok());
            }
            assert_eq!(nested(&list([value])).as_ref().map_err(code), Err("depth"));
        });
    }
}
