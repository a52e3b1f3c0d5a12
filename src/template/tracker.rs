//! Which parts of a rendered text `generation` tags wrote, as transformers finds them.
//!
//! transformers renders with a tracker: when the body of a `generation` tag has been rendered, it notes
//! a span that begins where the text ended that was written so far and is as long as what the body
//! gave. "Written so far" is what the template itself has written: a macro, a block `set` or `filter`
//! and another `generation` tag collect their text first, so a span from in there begins where the
//! statement around them stands. Spans are noted inner ones first, and also of text that is thrown away.
//!
//! That is repeated, not approximated: in a tracked program (`lower.rs`) everything the template itself
//! writes goes through [`written`], which counts its characters, and the text of a `generation` tag
//! through [`generated`]. Nothing is searched for in the text. If the count is not the length of the
//! text in the end, there are no spans. Cost: one more copy of what is written, in tracked renders only.

use minijinja::{Environment, Value};
use std::cell::RefCell;

use crate::semantics::{self, Result, text};

/// A part of a text, in characters: where it begins and where it ends.
pub type Span = (usize, usize);

/// What a tracked render tells besides its text.
#[derive(Default)]
pub struct Tracked {
    /// What `generation` tags wrote, in the order in which transformers notes it.
    pub spans: Vec<Span>,
    /// Where loops that run straight into the output begin an iteration, with its item, or end; in the
    /// order of the text.
    pub marks: Vec<(Option<Value>, usize)>,
}

#[derive(Default)]
struct Tracker {
    characters: usize,
    begun: bool,
    late: bool,
    found: Tracked,
}

thread_local! {
    static TRACKER: RefCell<Tracker> = RefCell::default();
}

/// Adds the filters of tracked programs; no template can spell their names.
pub fn install(env: &mut Environment<'static>) {
    env.add_filter("op:written", |value: Value| written(&value));
    env.add_filter("op:generation", |value: Value| generated(value));
    env.add_filter("op:begins", |item: Value| marked(Some(item)));
    env.add_filter("op:ends", |_: Value| marked(None));
}

/// What `render` gives, and what was tracked, unless it did not write what was counted.
///
/// A `late` tracker, that of transformers 4, is idle until something was written or noted.
pub fn within<E>(
    late: bool,
    render: impl FnOnce() -> std::result::Result<String, E>,
) -> std::result::Result<(String, Option<Tracked>), E> {
    TRACKER.set(Tracker {
        late,
        ..Tracker::default()
    });
    let text = render();
    let tracker = TRACKER.take();
    let text = text?;
    let agrees = tracker.characters == text.chars().count();
    Ok((text, agrees.then_some(tracker.found)))
}

fn written(value: &Value) -> Result {
    let value = match value.as_str() {
        Some(_) => value.clone(),
        None => Value::from(text::str_of(value)?),
    };
    TRACKER.with_borrow_mut(|tracker| {
        tracker.characters += length(&value);
        tracker.begun = true;
    });
    Ok(value)
}

fn generated(value: Value) -> Result {
    if value.as_str().is_none() {
        return Err(semantics::unproved("generation"));
    }
    TRACKER.with_borrow_mut(|tracker| {
        if tracker.begun || !tracker.late {
            let start = tracker.characters;
            tracker.found.spans.push((start, start + length(&value)));
            tracker.begun = true;
        }
    });
    Ok(value)
}

fn marked(item: Option<Value>) -> Value {
    TRACKER.with_borrow_mut(|tracker| {
        let at = tracker.characters;
        tracker.found.marks.push((item, at));
    });
    Value::from("")
}

fn length(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.chars().count())
}
