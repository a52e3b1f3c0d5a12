//! How many iterations behind one that is taken over can be taken over with it.
//!
//! Let the iteration at `at` have the same inputs as the one at `place` in an earlier run. Those at `at + j`
//! and `place + j` have the same inputs too, for each `j` up to a bound that each input sets:
//!
//! - *Attributes of namespaces* change in iterations only. What an iteration sets is part of what is taken
//!   over, so by induction they stay the same in both runs as long as all iterations between are taken over.
//! - *An element at a fixed place*, and *the length less the position*, are the same at `at + j` if they are
//!   at `at`: the one does not depend on `j`, the other goes down by `j` in both runs.
//! - *Items near by* are the same as far as the items are, which is compared, by pointers as a rule.
//! - *First* is no iteration with `j > 0`. *Last* is one of each run, which bounds `j` unless it is the same.
//! - *Which side of a mark* a position is on: marks are the same in all iterations of a run (none is set in
//!   the loop, see [`is_possible`]), so the sides agree as long as both positions are below their marks, or
//!   once both are above, or always if both marks are equally far away.
//!
//! Cost: none for items that are the conversation's messages and were those of the earlier run, see
//! [`Lineage`](crate::lineage::Lineage); else a comparison of two pointers for each, once in a run.

use super::cache::{LoopRun, Slot};
use super::plan::{Mark, Place, Plan, Watch};
use super::same::same;
use super::{Current, OwnedPlan, OwnedWatch};

/// Whether the argument holds for a plan: no mark is set in the loop, and all settings have a bit.
pub fn is_possible(plan: &Plan<'_>) -> bool {
    let fits = |watch: &Watch<'_>| match *watch {
        Watch::Order(_, Mark::Attribute(space, name)) => {
            let mut sets = plan.sets.iter();
            !sets.any(|setting| setting.at == space && setting.name == name)
        }
        Watch::Item(distance) => distance >= -1,
        // Positions in other lists do not move as those from the end do.
        Watch::Element(_, Place::Near(_)) => !plan.reversed,
        _ => true,
    };
    plan.sets.len() <= 64 && plan.watches.iter().all(fits)
}

/// How many iterations behind the current one, which has the inputs of the `earlier` run's at `place`, have
/// those of the ones behind that.
pub fn reach(plan: &OwnedPlan, current: &mut Current, earlier: &LoopRun, place: usize) -> usize {
    let at = current.done;
    reach_of(plan, current, earlier, at, place).map_or(0, |end| end.saturating_sub(at + 1))
}

/// The end of the stretch; None if there is none.
fn reach_of(
    plan: &OwnedPlan,
    current: &mut Current,
    earlier: &LoopRun,
    at: usize,
    place: usize,
) -> Option<usize> {
    // Positions in the earlier run, as those in this one.
    let aligned = |position: usize| (at + position).saturating_sub(place);
    let (length, earlier_length) = (current.items.len(), aligned(earlier.len()));
    let mut end = length.min(earlier_length);
    let mut ahead = 0;
    for (number, watch) in plan.watches.iter().enumerate() {
        match watch {
            OwnedWatch::First
            | OwnedWatch::Rest(..)
            | OwnedWatch::Attribute(..)
            | OwnedWatch::Element(_, Place::At(_)) => {}
            OwnedWatch::Last => {
                if length != earlier_length {
                    end = end.min(length - 1).min(earlier_length - 1);
                }
            }
            OwnedWatch::Item(distance) => {
                ahead = ahead.max(usize::try_from(*distance).unwrap_or(0))
            }
            OwnedWatch::Element(list, Place::Near(shift)) => {
                if !(current.run.own[*list] && *earlier.own.get(*list)? && at == place) {
                    return None;
                }
                match usize::try_from(*shift) {
                    Ok(shift) => ahead = ahead.max(shift),
                    // Not before the start, from where Python would count from the end.
                    Err(_) => {
                        let back = usize::try_from(shift.unsigned_abs()).ok()?;
                        let from = (at + 1).checked_sub(back)?;
                        let mut between = from..at;
                        let agree = |at| {
                            let pair = (current.items.get(at), earlier.at(at));
                            matches!(pair, (Some(item), Some(slot)) if same(item, &slot.item))
                        };
                        if !between.all(agree) {
                            return None;
                        }
                    }
                }
            }
            OwnedWatch::OrderToLength(shift, _)
            | OwnedWatch::OrderToAttribute(shift, ..)
            | OwnedWatch::OrderToVariable(shift, _) => {
                // The positions that are equal to the marks.
                let here = (*current.run.marks.get(number)?)? - i128::from(*shift);
                let there = (*earlier.marks.get(number)?)? - i128::from(*shift);
                let there = there + i128::try_from(at).ok()? - i128::try_from(place).ok()?;
                let next = i128::try_from(at + 1).ok()?;
                if here != there && next <= here.max(there) {
                    end = end.min(usize::try_from(here.min(there)).ok()?);
                }
            }
        }
    }
    // Items that have to agree, and those that do.
    let most = (end + ahead).min(length).min(earlier_length);
    let known = current
        .agrees
        .max(at + 1)
        .max(identical(current, earlier, at, place));
    current.agrees = match known < most {
        true => known + agreeing(current, earlier, known, place + (known - at), most - known),
        false => known,
    };
    Some(end.min(current.agrees.saturating_sub(ahead)))
}

/// Up to where the items are those of the earlier run because the conversation is.
fn identical(current: &Current, earlier: &LoopRun, at: usize, place: usize) -> usize {
    let (length, identical) = (current.items.len(), current.identical);
    // In the order of the list, the items in question are among the first `covered`.
    let (covered, known) = match (current.run.reversed, current.items.turned) {
        (false, _) => (identical, identical),
        (true, true) if length - identical.min(length) <= at + 1 => {
            ((earlier.len() - place).saturating_sub(1), length)
        }
        (true, _) => return 0,
    };
    match earlier.slots.until_first(covered).lasting {
        true => known,
        false => 0,
    }
}

/// How many of `count` items from `from` on are those of the earlier run from `there` on.
fn agreeing(
    current: &Current,
    earlier: &LoopRun,
    from: usize,
    there: usize,
    count: usize,
) -> usize {
    let agrees = |slot: &Slot, at: usize| {
        let item = current.items.get(at);
        slot.lasting && item.is_some_and(|item| same(item, &slot.item))
    };
    let places = from..from + count;

    match earlier.reversed {
        false => {
            let pairs = earlier.slots.skip(there).zip(places);
            pairs.take_while(|(slot, at)| agrees(slot, *at)).count()
        }
        true => {
            let mut pairs = (there..).zip(places);
            let differ = pairs.position(|(there, at)| {
                let slot = earlier.at(there);
                !slot.is_some_and(|slot| agrees(slot, at))
            });
            differ.unwrap_or(count)
        }
    }
}
