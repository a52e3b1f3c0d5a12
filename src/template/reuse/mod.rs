//! Iterations of message loops that were rendered before are not rendered again.
//!
//! A conversation grows at its end, and its template goes over all messages at each turn. The loops
//! that do, and that run straight into the output, are rewritten:
//!
//! ```text
//! {% for message in messages %}         {% for message in messages|op:loop(0, ...) %}
//!   BODY                                  {% if message|op:fresh(ns) %}{% filter op:note(ns) %}BODY{% endfilter %}
//!                             becomes     {% elif 0|op:was_set %}{% set ns.x = 0|op:after %}{% endif %}
//! {% endfor %}                          {% endfor %}{{ 0|op:done }}
//! ```
//!
//! and `{% set ns.x = value %}` in the body becomes `{% set ns.x = value|op:sets(0) %}`.
//!
//! `op:fresh` compares the inputs of the iteration, as [`plan`] lists them, with those that the
//! iteration in this place had in an earlier render. If all are the same the text is too, and so are the
//! attributes of namespaces after it, which `op:after` puts in place. Then the iterations behind it for
//! which that can be told without a look at each are taken over with it, see [`stretch`]: `op:loop` gives
//! an iterator that goes on behind them. What the body reads of `loop` becomes `'index'|op:at` and so on,
//! as the engine does not know about iterations that it did not see.
//!
//! Outside of the loops `tojson` becomes `op:dump`, see [`dumps`].
//!
//! The texts of iterations do not go through the engine's output: they are collected, and joined with
//! what the engine wrote around the loops. Where that is shows by a mark in the output; if the marks
//! found are not those written, because a message holds one, the render is done again without all this.
//!
//! Invariants
//! - An entry is added only after its iteration succeeded, and only runs that succeeded are remembered.
//! - Entries hold the values they were made from, so that no other value can take their place in memory.
//! - A run is used for calls of the same space (a namespace of the trie) only: how long a render takes
//!   tells nothing about other tenants.
//!
//! Cost: for a stretch of iterations, a comparison of pointers each; no work over their texts, which are
//! shared. Memory: the texts of the latest runs, bounded by [`RUNS`] and [`BYTES`].

mod cache;
mod dumps;
mod items;
pub mod plan;
mod same;
mod stretch;
mod trust;

use std::cell::RefCell;
use std::sync::Arc;

use minijinja::{Environment, Error, Value};

use super::text::Text;
use crate::call::Call;
use crate::error::{Category, Reason};
use crate::semantics::arguments::Raw;
use crate::semantics::kind::Kind;
use crate::semantics::unproved;
use cache::{Entry, LoopRun, Seen, Slot};
pub use cache::{Run, Runs, Slots, epoch, forget};
use dumps::Dump;
use items::{Items, List};
use plan::{Mark, Place, Plan, Setting, Watch};
use same::{is_plain, same, same_dict};
pub use trust::{Difference, Trust};

/// Stands in the engine's output where the text of a loop belongs. No template prints it unless a
/// message or a variable holds it, which shows by its number.
const MARK: &str = "\u{fdd0}\u{0}turntrie:loop\u{0}\u{fdd1}";

/// So many iterations of a run may have inputs beside their slot: each is looked at where inputs are compared.
const MOST_ANEW: usize = 4;

/// Conversations shorter than this are rendered as they are.
pub const FEWEST_MESSAGES: usize = 2;

/// A plan that owns its names, as the filters need it.
#[derive(Debug)]
pub struct OwnedPlan {
    variables: usize,
    watches: Vec<OwnedWatch>,
    sets: Vec<OwnedSetting>,
    reversed: bool,
    turned: bool,
    /// Whether stretches can be taken over.
    stretches: bool,
}

#[derive(Debug)]
struct OwnedSetting {
    namespace: usize,
    name: Value,
    unnoted: bool,
}

#[derive(Debug)]
enum OwnedWatch {
    First,
    Last,
    Item(isize),
    Element(usize, Place),
    Rest(Option<usize>, i64),
    Attribute(usize, Value),
    OrderToLength(i64, Option<usize>),
    OrderToAttribute(i64, usize, Value),
    OrderToVariable(i64, usize),
}

impl From<&Plan<'_>> for OwnedPlan {
    fn from(plan: &Plan<'_>) -> Self {
        let watch = |watch: &Watch<'_>| match *watch {
            Watch::First => OwnedWatch::First,
            Watch::Last => OwnedWatch::Last,
            Watch::Item(distance) => OwnedWatch::Item(distance),
            Watch::Element(list, place) => OwnedWatch::Element(list, place),
            Watch::Rest(list, shift) => OwnedWatch::Rest(list, shift),
            Watch::Attribute(space, name) => OwnedWatch::Attribute(space, Value::from(name)),
            Watch::Order(shift, Mark::Length(list)) => OwnedWatch::OrderToLength(shift, list),
            Watch::Order(shift, Mark::Variable(at)) => OwnedWatch::OrderToVariable(shift, at),
            Watch::Order(shift, Mark::Attribute(space, name)) => {
                OwnedWatch::OrderToAttribute(shift, space, Value::from(name))
            }
        };
        let setting = |setting: &Setting<'_>| OwnedSetting {
            namespace: setting.at,
            name: Value::from(setting.name),
            unnoted: setting.unnoted,
        };
        OwnedPlan {
            variables: plan.variables.len(),
            watches: plan.watches.iter().map(watch).collect(),
            reversed: plan.reversed,
            turned: plan.turned,
            stretches: stretch::is_possible(plan),
            sets: plan.sets.iter().map(setting).collect(),
        }
    }
}

/// How many iterations of a render were taken over, and how many were rendered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Iterations taken over from an earlier render.
    pub reused: usize,
    /// Iterations rendered.
    pub rendered: usize,
    /// Iterations whose inputs were compared one by one; the others went along with one of them.
    pub compared: usize,
}

/// One render as it goes on.
pub struct Walk {
    plans: Arc<[OwnedPlan]>,
    earlier: Option<Arc<Run>>,
    /// The call's messages as the template sees them, and how many leading ones are the earlier run's.
    messages: Arc<Vec<Value>>,
    common: usize,
    /// Of the loops that ran, in the order of the plans.
    loops: Vec<Option<LoopRun>>,
    /// Loops that were left behind, in the order in which they ran.
    order: Vec<usize>,
    current: Option<Current>,
    /// What was dumped outside of loops.
    dumps: Vec<Dump>,
    share: Share,
    /// For tests: whether all inputs but the item are ignored.
    careless: bool,
}

/// The loop that runs.
struct Current {
    number: usize,
    items: List,
    looked_into: Vec<LookedInto>,
    /// Whether entries of the earlier run may be taken over: the variables are the same.
    reusable: bool,
    run: LoopRun,
    /// Iterations so far.
    done: usize,
    /// Of a loop that runs backwards those that are not in its run yet, in the order in which they ran.
    ahead: Vec<Slot>,
    /// What was seen before the iteration that is being rendered.
    seen: Vec<Seen>,
    /// Which attributes it set so far.
    set: Vec<bool>,
    item: Value,
    /// What the iterations that were taken over set last, about to be put in place.
    after: Vec<Option<Value>>,
    /// Up to where the items are known to be those of the earlier run, as they come.
    agrees: usize,
    /// How many items, from the start of the list, are the earlier run's without a look at them.
    identical: usize,
}

/// A variable that inputs are taken from.
enum LookedInto {
    List(Arc<Vec<Value>>),
    Other(Value),
}

thread_local! {
    static WALK: RefCell<Option<Walk>> = const { RefCell::new(None) };
}

/// What came of a render: the whole text, if the marks were those written.
pub struct Outcome {
    /// What to remember.
    pub run: Run,
    /// The loops, in the order in which their texts stand in the output.
    order: Vec<usize>,
    /// How much was taken over.
    pub share: Share,
}

/// Runs `render`, of this call, with a walk in place.
pub fn within<T>(
    walk: Walk,
    call: &Call,
    space: u64,
    render: impl FnOnce() -> T,
) -> (T, Option<Outcome>) {
    /// Takes the walk away even if the render panics.
    struct Guard;
    impl Drop for Guard {
        fn drop(&mut self) {
            WALK.with_borrow_mut(Option::take);
        }
    }
    let epoch = epoch();
    WALK.set(Some(walk));
    let guard = Guard;
    let result = render();
    let walk = WALK.with_borrow_mut(Option::take);
    drop(guard);
    let walk = walk.filter(|walk| walk.current.is_none());
    let outcome = walk.map(|walk| Outcome {
        order: walk.order,
        share: walk.share,
        run: Run::new(
            space,
            epoch,
            call.messages().clone(),
            walk.loops,
            walk.dumps,
        ),
    });
    (result, outcome)
}

impl Outcome {
    /// The text of the render; None if `output` does not hold the marks that were written.
    pub fn text(&self, output: String) -> Option<Text> {
        if self.order.is_empty() {
            return Some(output.into());
        }
        let mut numbers = self.order.iter();
        let mut text = Text::default();
        for (at, part) in output.split(MARK).enumerate() {
            if at > 0 {
                let run = self.run.loops[*numbers.next()?].as_ref()?;
                match run.reversed {
                    false => text.push_iterations(run.slots.clone()),
                    // As a rule they only look for something.
                    true if run.slots.until().text == 0 => text.push(String::new()),
                    true => {
                        let texts = run.slots.iter().rev();
                        let texts = texts.filter_map(|slot| slot.entry.text.as_str());
                        text.push(texts.collect());
                    }
                }
            }
            text.push(part.to_owned());
        }
        numbers.next().is_none().then_some(text)
    }
}

/// Adds the filters that the rewritten loops call.
pub fn install(env: &mut Environment<'static>) {
    env.add_filter("op:loop", |args: Raw<'_>| enter(args.0));
    env.add_filter("op:fresh", |args: Raw<'_>| {
        step(|walk| walk.fresh(args.0)).map(Value::from)
    });
    env.add_filter("op:note", |args: Raw<'_>| {
        step(|walk| walk.keep(args.0))?;
        Ok::<_, Error>(Value::from(""))
    });
    env.add_filter("op:sets", |args: Raw<'_>| step(|walk| walk.sets(args.0)));
    env.add_filter("op:was_set", |args: Raw<'_>| {
        step(|walk| walk.was_set(args.0)).map(Value::from)
    });
    env.add_filter("op:after", |args: Raw<'_>| step(|walk| walk.after(args.0)));
    env.add_filter("op:dump", |args: Raw<'_>| dumps::dump(args.0));
    env.add_filter("op:at", |args: Raw<'_>| step(|walk| walk.at(args.0)));
    env.add_filter("op:done", |_: Raw<'_>| step(|walk| walk.leave()));
}

/// Anything that cannot be as it is ends this render; the template is rendered whole then.
fn lost() -> Error {
    unproved(LOST)
}

const LOST: &str = "reuse";

/// What the render ends with.
pub fn lost_reason() -> Reason {
    Reason::new(Category::Render, LOST)
}

fn step<T>(act: impl FnOnce(&mut Walk) -> Result<T, Error>) -> Result<T, Error> {
    WALK.with_borrow_mut(|walk| act(walk.as_mut().ok_or_else(lost)?))
}

/// `items|op:loop(number, variables..., looked into...)`: the items again.
fn enter(args: &[Value]) -> Result<Value, Error> {
    let [items, number, rest @ ..] = args else {
        return Err(lost());
    };
    let number = number.as_usize().ok_or_else(lost)?;
    step(|walk| {
        let plan = walk.plans.get(number).ok_or_else(lost)?;
        let (variables, looked_into) = rest.split_at_checked(plan.variables).ok_or_else(lost)?;
        if walk.current.is_some() || walk.loops[number].is_some() {
            return Err(lost());
        }
        let earlier = walk
            .earlier
            .as_ref()
            .and_then(|run| run.loops[number].as_ref());
        let reusable = earlier.is_some_and(|earlier| {
            let mut pairs = earlier.variables.iter().zip(variables);
            earlier.variables.len() == variables.len() && pairs.all(|(a, b)| same(a, b))
        });
        let looked_into = looked_into
            .iter()
            .map(|value| match value.downcast_object() {
                Some(list) => LookedInto::List(list),
                None => LookedInto::Other(value.clone()),
            });
        // A loop over messages goes over a list, or over nothing.
        let is_list = items.downcast_object_ref::<Vec<Value>>().is_some();
        let list: Arc<Vec<Value>> = items.downcast_object().unwrap_or_default();
        let turned = plan.turned;
        if turned && !is_list {
            return Err(lost());
        }
        let looked_into: Vec<_> = looked_into.collect();
        let own = looked_into.iter().map(
            |known| matches!(known, LookedInto::List(known) if Arc::ptr_eq(known, &list) && !turned),
        );
        let own = own.collect();
        let whole = Arc::ptr_eq(&list, &walk.messages);
        let identical = match earlier {
            Some(earlier) if whole && earlier.whole => walk.common,
            _ => 0,
        };
        walk.current = Some(Current {
            number,
            items: List {
                values: list,
                turned,
            },
            looked_into,
            reusable,
            run: LoopRun {
                variables: variables.to_vec(),
                own,
                reversed: plan.reversed,
                whole,
                ..LoopRun::default()
            },
            done: 0,
            ahead: Vec::new(),
            seen: Vec::new(),
            set: Vec::new(),
            item: Value::UNDEFINED,
            after: Vec::new(),
            agrees: 0,
            identical,
        });
        Ok(match is_list {
            true => Value::from_object(Items),
            false => items.clone(),
        })
    })
}

impl Walk {
    /// A walk of a call that takes over what it can from an `earlier` run. `careless` for tests only.
    pub fn new(
        plans: &Arc<[OwnedPlan]>,
        call: &Call,
        earlier: Option<Arc<Run>>,
        careless: bool,
    ) -> Self {
        let common = earlier
            .as_ref()
            .map(|run| run.messages.common(call.messages()));
        Walk {
            plans: Arc::clone(plans),
            messages: Arc::clone(call.conversation.values()),
            common: common.unwrap_or(0),
            earlier,
            loops: plans.iter().map(|_| None).collect(),
            order: Vec::new(),
            current: None,
            dumps: Vec::new(),
            share: Share::default(),
            careless,
        }
    }

    /// `item|op:fresh(namespaces...)`: whether the iteration has to be rendered.
    fn fresh(&mut self, args: &[Value]) -> Result<bool, Error> {
        let [item, namespaces @ ..] = args else {
            return Err(lost());
        };
        let current = self.current.as_mut().ok_or_else(lost)?;
        let at = current.done;
        let expected = current.items.get(at).ok_or_else(lost)?;
        if !same(expected, item) {
            return Err(lost());
        }
        let plan = &self.plans[current.number];
        if at == 0 {
            let marks = plan.watches.iter();
            let marks = marks.map(|watch| watch.mark(current, namespaces));
            current.run.marks = marks.collect::<Result<_, _>>()?;
        }
        self.share.compared += 1;
        current.seen.clear();
        for watch in &plan.watches {
            let seen = watch.look(current, at, namespaces)?;
            current.seen.push(seen);
        }
        let earlier = self
            .earlier
            .as_ref()
            .and_then(|run| run.loops[current.number].as_ref());
        let earlier = earlier.filter(|_| current.reusable);
        let found = earlier.and_then(|run| {
            let place = match plan.reversed {
                false => Some(at),
                true => (at + run.len()).checked_sub(current.items.len()),
            };
            place.and_then(|place| Some((run, place, run.at(place)?)))
        });
        let found = found.filter(|(run, place, slot)| {
            same(&slot.item, item) && (self.careless || seen_alike(run, *place, &current.seen))
        });
        if let Some((run, place, _)) = found {
            let more = match plan.stretches && !self.careless {
                true => stretch::reach(plan, current, run, place),
                false => 0,
            };
            current.take_over(plan, run, place, more + 1);
            self.share.reused += more + 1;
            return Ok(false);
        }
        current.item = item.clone();
        current.set.clear();
        current
            .set
            .extend(plan.sets.iter().map(|setting| setting.unnoted));
        self.share.rendered += 1;
        Ok(true)
    }

    /// `text|op:note(namespaces...)`: notes the text of an iteration that was rendered.
    fn keep(&mut self, args: &[Value]) -> Result<(), Error> {
        let [text, namespaces @ ..] = args else {
            return Err(lost());
        };
        let current = self.current.as_mut().ok_or_else(lost)?;
        let plan = &self.plans[current.number];
        let mut after = Vec::with_capacity(plan.sets.len());
        for (setting, set) in plan.sets.iter().zip(&current.set) {
            let value = attribute(namespaces, setting.namespace, &setting.name)?;
            after.push(set.then_some(value));
        }
        let lasting = after.iter().flatten().all(is_plain);
        let seen = match lasting {
            true => std::mem::take(&mut current.seen),
            false => vec![Seen::Never],
        };
        // Messages among what was seen count with the run.
        let values =
            plan.watches
                .iter()
                .zip(&seen)
                .filter_map(|(watch, seen)| match (watch, seen) {
                    (
                        OwnedWatch::Attribute(..) | OwnedWatch::OrderToAttribute(..),
                        Seen::Value(value),
                    ) => Some(value),
                    _ => None,
                });
        let values = values.chain(after.iter().flatten()).chain([text]);
        let bytes = size_of::<Entry>() + values.map(weight).sum::<usize>();
        let entry = Entry {
            item: std::mem::take(&mut current.item),
            seen,
            after,
            text: text.clone(),
            bytes,
        };
        let earlier = self
            .earlier
            .as_ref()
            .and_then(|run| run.loops[current.number].as_ref());
        let earlier = earlier.filter(|_| current.reusable && !self.careless);
        match earlier.and_then(|earlier| current.as_before(earlier, &entry)) {
            Some((slots, held)) => {
                let bytes = entry.bytes + held;
                let entry = Arc::new(Entry { bytes, ..entry });
                current.run.slots = slots;
                current.run.anew.push((current.done, entry));
                current.done += 1;
            }
            None => current.add(Slot::from(entry)),
        }
        Ok(())
    }

    /// `value|op:sets(index)`: notes that an attribute is set.
    fn sets(&mut self, args: &[Value]) -> Result<Value, Error> {
        let [value, index] = args else {
            return Err(lost());
        };
        let current = self.current.as_mut().ok_or_else(lost)?;
        let index = index.as_usize().ok_or_else(lost)?;
        *current.set.get_mut(index).ok_or_else(lost)? = true;
        Ok(value.clone())
    }

    /// `index|op:was_set`: whether the iterations that were taken over set an attribute.
    fn was_set(&self, args: &[Value]) -> Result<bool, Error> {
        self.after_taken(args).map(|after| after.is_some())
    }

    /// `index|op:after`: what an attribute was after the iterations that were taken over.
    fn after(&self, args: &[Value]) -> Result<Value, Error> {
        self.after_taken(args)?.clone().ok_or_else(lost)
    }

    fn after_taken(&self, args: &[Value]) -> Result<&Option<Value>, Error> {
        let current = self.current.as_ref().ok_or_else(lost)?;
        let index = args.first().and_then(Value::as_usize).ok_or_else(lost)?;
        current.after.get(index).ok_or_else(lost)
    }

    /// `name|op:at`: what `loop` has under this name in the iteration that is being rendered.
    fn at(&self, args: &[Value]) -> Result<Value, Error> {
        let current = self.current.as_ref().ok_or_else(lost)?;
        let name = args.first().and_then(Value::as_str).ok_or_else(lost)?;
        items::attribute(&current.items, current.done, name).ok_or_else(lost)
    }

    /// `0|op:done`: the mark of the loop that ended.
    fn leave(&mut self) -> Result<Value, Error> {
        let mut current = self.current.take().ok_or_else(lost)?;
        if current.done != current.items.len() {
            return Err(lost());
        }
        for slot in current.ahead.drain(..).rev() {
            current.run.slots.push(slot);
        }
        self.order.push(current.number);
        self.loops[current.number] = Some(current.run);
        Ok(Value::from(MARK))
    }
}

impl Current {
    /// Goes on with an iteration.
    fn add(&mut self, slot: Slot) {
        match self.run.reversed {
            false => self.run.slots.push(slot),
            true => self.ahead.push(slot),
        }
        self.done += 1;
    }

    /// The iterations with that of the earlier run in place of `entry`, if it differs in its inputs only and
    /// all before are the earlier run's: what comes behind can go on from them. And the bytes of what its
    /// inputs hold, which may be messages that the conversation has no longer.
    ///
    /// As a rule it is the first one of a template that looks at `messages[loop.index0 - 1]`, which is
    /// the last message there, a new one at each turn.
    fn as_before(&self, earlier: &LoopRun, entry: &Entry) -> Option<(Slots, usize)> {
        /// What is held for that may have as many bytes.
        const MOST_HELD: usize = 1 << 20;
        let at = self.done;
        let slot = earlier.slots.get(at)?;
        let held = slot.entry.seen.iter().map(|seen| match seen {
            Seen::Value(value) => weight(value),
            _ => 0,
        });
        let held = held.sum::<usize>() + weight(&slot.item);
        let begins = !self.run.reversed
            && self.run.anew.len() < MOST_ANEW
            && held <= MOST_HELD
            && self.run.slots.common(&earlier.slots) == at
            && slot.lasting
            && entry.lasts()
            && entry.came_out_as(&slot.entry);
        begins.then(|| (earlier.slots.take(at + 1), held))
    }

    /// Takes over `count` iterations of an earlier run from `place` on.
    fn take_over(&mut self, plan: &OwnedPlan, earlier: &LoopRun, place: usize, count: usize) {
        let last_set = |index: usize| {
            let bit = u32::try_from(index).ok();
            let bit = bit.and_then(|bit| 1_u64.checked_shl(bit));
            let is_set = |set: u64| bit.is_none_or(|bit| set & bit != 0);
            if !is_set(earlier.slots.until().set) {
                return None;
            }
            let mut slots = (place..place + count).rev().filter_map(|at| earlier.at(at));
            let slot = slots.find(|slot| is_set(slot.set));
            slot.and_then(|slot| slot.entry.after.get(index)?.clone())
        };
        self.after = (0..plan.sets.len()).map(last_set).collect();
        if let Some(slots) = self.prefix(earlier, place, count) {
            let taken = slots.len() - count..slots.len();
            let anew = earlier.anew.iter().filter(|(at, _)| taken.contains(at));
            if self.run.anew.len() + anew.clone().count() <= MOST_ANEW {
                self.run.anew.extend(anew.cloned());
                self.run.slots = slots;
                self.done += count;
                return;
            }
        }
        for at in place..place + count {
            let item = self.items.get(self.done);
            let (Some(slot), Some(entry), Some(item)) = (earlier.at(at), earlier.entry(at), item)
            else {
                return; // More than there are: the loop will not end where it should.
            };
            // Items that say the same as those of the earlier run, but are others, are compared only once.
            self.add(Slot {
                item: item.clone(),
                entry: Arc::clone(entry),
                ..slot.clone()
            });
        }
    }

    /// The iterations up to the `count` ones of an earlier run from `place` on, in the order of the list, if
    /// they are how the earlier run's begin.
    fn prefix(&self, earlier: &LoopRun, place: usize, count: usize) -> Option<Slots> {
        let end = match self.run.reversed {
            false => {
                let begins = place == self.done && self.run.slots.common(&earlier.slots) == place;
                begins.then_some(place + count)?
            }
            true => (place + count == earlier.len()).then_some(count)?,
        };
        // Of a list that is turned, the first items come last.
        let known = match (self.run.reversed, self.items.turned) {
            (true, false) => 0,
            _ => self.identical.min(end),
        };
        let mut rest = earlier.slots.skip(known).take(end - known).zip(known..);
        let item = |at: usize| match self.run.reversed {
            false => self.items.get(at),
            true => self.items.get(self.items.len().checked_sub(at + 1)?),
        };
        rest.all(|(slot, at)| item(at).is_some_and(|item| same_dict(&slot.item, item)))
            .then(|| earlier.slots.take(end))
    }

    /// Length of the items, or of a list that is looked into.
    fn length(&self, list: Option<usize>) -> Result<usize, Error> {
        match list {
            None => Ok(self.items.len()),
            Some(place) => match self.looked_into.get(place) {
                Some(LookedInto::List(list)) => Ok(list.len()),
                // What the length of something else is counts for nothing here.
                Some(LookedInto::Other(_)) | None => Err(lost()),
            },
        }
    }
}

impl OwnedWatch {
    /// The integer that positions are compared with, if there is one.
    fn mark(&self, current: &Current, namespaces: &[Value]) -> Result<Option<i128>, Error> {
        let integer = |value: &Value| {
            value
                .as_i64()
                .filter(|_| value.is_integer())
                .map(i128::from)
        };
        Ok(match self {
            OwnedWatch::OrderToLength(_, list) => i128::try_from(current.length(*list)?).ok(),
            OwnedWatch::OrderToAttribute(_, space, name) => {
                integer(&attribute(namespaces, *space, name)?)
            }
            OwnedWatch::OrderToVariable(_, variable) => match current.looked_into.get(*variable) {
                Some(LookedInto::Other(mark)) => integer(mark),
                _ => None,
            },
            _ => None,
        })
    }

    /// What the watch sees before the iteration at `at`.
    fn look(&self, current: &Current, at: usize, namespaces: &[Value]) -> Result<Seen, Error> {
        let items = &current.items;
        let looked_into = |place: usize| current.looked_into.get(place).ok_or_else(lost);
        Ok(match self {
            OwnedWatch::First => Seen::Bool(at == 0),
            OwnedWatch::Last => Seen::Bool(at + 1 == items.len()),
            OwnedWatch::Item(distance) => Seen::value(
                at.checked_add_signed(*distance)
                    .and_then(|at| items.get(at)),
            ),
            OwnedWatch::Rest(list, shift) => {
                let length = i64::try_from(current.length(*list)?).map_err(|_| lost())?;
                let at = i64::try_from(at).map_err(|_| lost())?;
                Seen::Number(i128::from(length) - i128::from(at) + i128::from(*shift))
            }
            OwnedWatch::Element(list, place) => {
                let LookedInto::List(elements) = looked_into(*list)? else {
                    // Not a list: what a subscript means there is not known here.
                    return Ok(Seen::Never);
                };
                let index = match place {
                    Place::At(index) => *index,
                    Place::Near(shift) => {
                        i64::try_from(at).unwrap_or(i64::MAX).saturating_add(*shift)
                    }
                };
                // Python counts negative indices from the end.
                let index = match usize::try_from(index) {
                    Ok(index) => Some(index),
                    Err(_) => usize::try_from(index.unsigned_abs())
                        .ok()
                        .and_then(|back| elements.len().checked_sub(back)),
                };
                Seen::value(index.and_then(|index| elements.get(index)))
            }
            OwnedWatch::Attribute(space, name) => Seen::Value(attribute(namespaces, *space, name)?),
            OwnedWatch::OrderToLength(shift, list) => {
                let mark = current.length(*list)?;
                Seen::order(at, *shift, i128::try_from(mark).unwrap_or(i128::MAX))
            }
            OwnedWatch::OrderToAttribute(shift, space, name) => {
                Seen::order_to(at, *shift, attribute(namespaces, *space, name)?)
            }
            OwnedWatch::OrderToVariable(shift, variable) => match looked_into(*variable)? {
                LookedInto::Other(mark) => Seen::order_to(at, *shift, mark.clone()),
                LookedInto::List(_) => Seen::Never,
            },
        })
    }
}

/// Whether an iteration of an earlier run had these inputs.
fn seen_alike(run: &LoopRun, number: usize, seen: &[Seen]) -> bool {
    run.entry(number).is_some_and(|entry| entry.seen == seen)
}

fn weight(value: &Value) -> usize {
    usize::try_from(crate::message::weight(value)).unwrap_or(usize::MAX)
}

/// An attribute of one of the namespaces; undefined if it has none of that name.
fn attribute(namespaces: &[Value], space: usize, name: &Value) -> Result<Value, Error> {
    let namespace = namespaces.get(space).ok_or_else(lost)?;
    match Kind::of(namespace) {
        Kind::Namespace => namespace.get_item(name),
        _ => Err(lost()),
    }
}

/// An iteration that wrote this text, for tests.
#[cfg(test)]
pub fn slot_of_text(text: &str) -> Slot {
    Slot::from(Entry {
        item: Value::UNDEFINED,
        seen: Vec::new(),
        after: Vec::new(),
        text: Value::from(text),
        bytes: 0,
    })
}
