//! What is remembered of earlier renders: for each iteration its inputs, its text and what it set.
//!
//! A run is immutable and shares its entries with the run before it, so a conversation of N turns costs
//! its texts once. The latest runs are kept, bounded in number and bytes; nobody waits for them: if
//! another thread is in here, a render starts from nothing, or is not remembered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use minijinja::Value;

use super::dumps::Dump;
use super::same::same;
use crate::lineage::Lineage;
use crate::message::Messages;

/// Runs that are kept for one template.
pub const RUNS: usize = 128;
/// Bytes that they may hold: texts, messages, values of namespaces. What runs share counts for each.
pub const BYTES: usize = 64 << 20;

/// One iteration.
#[derive(Debug)]
pub struct Entry {
    /// The item of the loop.
    pub item: Value,
    /// The other inputs.
    pub seen: Vec<Seen>,
    /// What the attributes of namespaces were after it that it set.
    pub after: Vec<Option<Value>>,
    /// What it wrote.
    pub text: Value,
    /// Bytes of what it holds, except for messages.
    pub bytes: usize,
}

/// What was seen of one input.
#[derive(Debug)]
pub enum Seen {
    /// A condition.
    Bool(bool),
    /// A number.
    Number(i128),
    /// On which side of a mark a position is.
    Order(std::cmp::Ordering),
    /// There is no such item.
    Absent,
    /// A value.
    Value(Value),
    /// Something that is never the same again.
    Never,
}

impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Seen::Bool(a), Seen::Bool(b)) => a == b,
            (Seen::Number(a), Seen::Number(b)) => a == b,
            (Seen::Order(a), Seen::Order(b)) => a == b,
            (Seen::Absent, Seen::Absent) => true,
            (Seen::Value(a), Seen::Value(b)) => same(a, b),
            _ => false,
        }
    }
}

impl Seen {
    /// An item, if it is there.
    pub fn value(value: Option<&Value>) -> Self {
        value.map_or(Seen::Absent, |value| Seen::Value(value.clone()))
    }

    /// Where `at + shift` is to a mark.
    pub fn order(at: usize, shift: i64, mark: i128) -> Self {
        let position = i128::try_from(at)
            .unwrap_or(i128::MAX)
            .saturating_add(shift.into());
        Seen::Order(position.cmp(&mark))
    }

    /// The same to a mark that may be no integer; then what it is counts.
    pub fn order_to(at: usize, shift: i64, mark: Value) -> Self {
        match mark.as_i64().filter(|_| mark.is_integer()) {
            Some(mark) => Seen::order(at, shift, mark.into()),
            None => Seen::Value(mark),
        }
    }
}

/// An iteration in its place, with what is asked of many at once: no look into the entry is needed.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The iteration.
    pub entry: Arc<Entry>,
    /// The item of the loop.
    pub item: Value,
    /// One bit for each attribute that it set, those with a number below 64.
    pub set: u64,
    /// Whether it can be the same again.
    pub lasting: bool,
    /// The same of all slots up to this one.
    pub until: Until,
}

/// What is true of a slot and all before it.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    /// Bytes of their texts.
    pub text: usize,
    /// Bytes of what they hold, except for messages.
    pub bytes: usize,
    /// The attributes that one of them set.
    pub set: u64,
    /// Whether each can be the same again.
    pub lasting: bool,
}

impl Until {
    const NONE: Until = Until {
        text: 0,
        bytes: 0,
        set: 0,
        lasting: true,
    };
}

impl Entry {
    /// Whether it came out as another one: the same text, and attributes set to the same values.
    pub fn came_out_as(&self, other: &Entry) -> bool {
        let sets_same = |(a, b): (&Option<Value>, &Option<Value>)| match (a, b) {
            (Some(a), Some(b)) => same(a, b),
            (None, None) => true,
            _ => false,
        };
        same(&self.item, &other.item)
            && self.text == other.text
            && self.after.len() == other.after.len()
            && self.after.iter().zip(&other.after).all(sets_same)
    }

    /// Whether it can be the same again.
    pub fn lasts(&self) -> bool {
        !self.seen.iter().any(|seen| matches!(seen, Seen::Never))
    }
}

impl From<Entry> for Slot {
    fn from(entry: Entry) -> Self {
        let bits = entry.after.iter().take(64).enumerate();
        Slot {
            item: entry.item.clone(),
            set: bits.fold(0, |set, (bit, value)| {
                set | u64::from(value.is_some()) << bit
            }),
            lasting: entry.lasts(),
            entry: Arc::new(entry),
            until: Until::NONE,
        }
    }
}

/// Iterations in a row. Runs share what they have in common.
#[derive(Clone, Debug, Default)]
pub struct Slots(Lineage<Slot>);

impl Slots {
    /// Goes on with an iteration.
    pub fn push(&mut self, mut slot: Slot) {
        let before = self.until();
        slot.until = Until {
            text: before.text + slot.entry.text.as_str().map_or(0, str::len),
            bytes: before.bytes + slot.entry.bytes,
            set: before.set | slot.set,
            lasting: before.lasting && slot.lasting,
        };
        self.0.push(slot);
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The one at a place.
    pub fn get(&self, at: usize) -> Option<&Slot> {
        self.0.get(at)
    }

    /// All in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Slot> + ExactSizeIterator {
        self.0.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those from a place on.
    pub fn skip(&self, count: usize) -> impl DoubleEndedIterator<Item = &Slot> {
        self.0.skip(count)
    }

    /// The first `count`.
    #[must_use]
    pub fn take(&self, count: usize) -> Slots {
        Slots(self.0.take(count))
    }

    /// How many leading ones are the very ones of `other`.
    pub fn common(&self, other: &Slots) -> usize {
        self.0.common(&other.0)
    }

    /// What is true of all.
    pub fn until(&self) -> Until {
        self.0.last().map_or(Until::NONE, |slot| slot.until)
    }

    /// What is true of the first `count`.
    pub fn until_first(&self, count: usize) -> Until {
        let last = count.checked_sub(1).and_then(|at| self.0.get(at));
        last.map_or(Until::NONE, |slot| slot.until)
    }
}

/// One loop of a render.
#[derive(Debug, Default)]
pub struct LoopRun {
    /// The variables that all iterations read.
    pub variables: Vec<Value>,
    /// The iterations, in the order of the list: a loop that runs backwards, too, has what is new at the end
    /// then.
    pub slots: Slots,
    /// By their place, iterations that came out as the one in the slot, of other inputs: those are theirs.
    pub anew: Vec<(usize, Arc<Entry>)>,
    /// Whether the last item of the list came first.
    pub reversed: bool,
    /// Whether it went over the messages of the call themselves.
    pub whole: bool,
    /// Of the plan's watches, the integers that positions are compared with; they are the same in all
    /// iterations.
    pub marks: Vec<Option<i128>>,
    /// Of the lists looked into, which are the loop's own.
    pub own: Vec<bool>,
}

impl LoopRun {
    /// How many iterations.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// An iteration by its number in the order in which they ran.
    pub fn at(&self, number: usize) -> Option<&Slot> {
        self.slots.get(self.place(number)?)
    }

    /// The same, with what it was made from.
    pub fn entry(&self, number: usize) -> Option<&Arc<Entry>> {
        let place = self.place(number)?;
        let anew = self.anew.iter().find(|(at, _)| *at == place);
        match anew {
            Some((_, entry)) => Some(entry),
            None => self.slots.get(place).map(|slot| &slot.entry),
        }
    }

    fn place(&self, number: usize) -> Option<usize> {
        match self.reversed {
            false => Some(number),
            true => self.len().checked_sub(number + 1),
        }
    }

    /// Bytes of what the iterations hold, except for messages.
    pub fn bytes(&self) -> usize {
        let anew = self.anew.iter().map(|(_, entry)| entry.bytes);
        self.slots.until().bytes + anew.sum::<usize>()
    }
}

/// One render.
#[derive(Debug)]
pub struct Run {
    space: u64,
    /// As of when everything was forgotten last.
    epoch: u64,
    /// The conversation.
    pub messages: Messages,
    /// By number; None for a loop that did not run.
    pub loops: Vec<Option<LoopRun>>,
    /// What was dumped outside of loops.
    pub dumps: Vec<Dump>,
    bytes: usize,
}

impl Run {
    /// A run that rendered `messages`.
    pub fn new(
        space: u64,
        epoch: u64,
        messages: Messages,
        loops: Vec<Option<LoopRun>>,
        dumps: Vec<Dump>,
    ) -> Self {
        let weight = usize::try_from(messages.weight()).unwrap_or(usize::MAX);
        let bytes = loops.iter().flatten().map(LoopRun::bytes).sum::<usize>();
        let bytes = bytes + dumps.iter().map(Dump::bytes).sum::<usize>();
        Run {
            space,
            epoch,
            messages,
            loops,
            dumps,
            bytes: bytes.saturating_add(weight),
        }
    }

    /// Whether calls of this space may take from this run.
    pub fn is_of(&self, space: u64) -> bool {
        self.space == space && self.epoch == epoch()
    }

    /// How many leading messages seem to be those of this run. What is taken from it is compared, so a
    /// good guess is enough.
    fn common(&self, messages: &Messages) -> usize {
        self.messages.resembling(messages)
    }
}

/// The latest runs of a template.
#[derive(Default)]
pub struct Runs(Mutex<Recent>);

#[derive(Default)]
struct Recent {
    /// As of when everything was forgotten last.
    epoch: u64,
    /// The latest first.
    runs: Vec<Arc<Run>>,
}

static EPOCH: AtomicU64 = AtomicU64::new(0);

/// How often everything was forgotten.
pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Relaxed)
}

/// Makes all templates forget their runs, at their next use.
pub fn forget() {
    EPOCH.fetch_add(1, Ordering::Relaxed);
}

impl Runs {
    /// The run that shares most leading messages, of equals the latest.
    pub fn closest(&self, space: u64, messages: &Messages) -> Option<Arc<Run>> {
        let mut recent = self.0.try_lock().ok()?;
        recent.expire();
        let runs = recent
            .runs
            .iter()
            .filter(|run| run.space == space)
            .enumerate();
        let shared = runs.map(|(at, run)| (run.common(messages), std::cmp::Reverse(at), run));
        let closest = shared.max_by_key(|(common, at, _)| (*common, *at));
        closest
            .filter(|(common, ..)| *common > 0)
            .map(|(.., run)| Arc::clone(run))
    }

    /// Remembers a run; the `earlier` one is replaced if its conversation went on in this one.
    pub fn remember(&self, run: &Arc<Run>, earlier: Option<&Arc<Run>>) {
        let Ok(mut recent) = self.0.try_lock() else {
            return;
        };
        recent.expire();
        if recent.epoch != run.epoch {
            return;
        }
        let earlier =
            earlier.filter(|earlier| earlier.common(&run.messages) == earlier.messages.len());
        let replaced = earlier.and_then(|earlier| {
            let at = recent
                .runs
                .iter()
                .position(|known| Arc::ptr_eq(known, earlier))?;
            Some(recent.runs.remove(at))
        });
        recent.runs.insert(0, Arc::clone(run));
        let mut bytes = 0;
        let within = recent.runs.iter().take(RUNS).take_while(|run| {
            bytes += run.bytes;
            bytes <= BYTES
        });
        let within = within.count();
        let dropped = recent.runs.split_off(within);
        // Freed without the lock.
        drop(recent);
        drop((replaced, dropped));
    }
}

impl Recent {
    fn expire(&mut self) {
        let epoch = epoch();
        if self.epoch != epoch {
            self.epoch = epoch;
            self.runs.clear();
        }
    }
}
