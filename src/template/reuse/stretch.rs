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
//! Cost: a comparison of two pointers for each item, once in a run.

use super::cache::LoopRun;
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
    let at = current.run.slots.len();
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
    let (length, earlier_length) = (current.items.len(), aligned(earlier.slots.len()));
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
                            let pair = (current.items.get(at), earlier.slots.get(at));
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
    let known = current.agrees.max(at + 1);
    if known < most {
        let there = known - at + place;
        let there = earlier.slots.focus().narrow(there..there + most - known);
        let pairs = current.items.skip(known).zip(there);
        let agree = pairs.take_while(|(item, slot)| slot.lasting && same(item, &slot.item));
        current.agrees = known + agree.count();
    }
    Some(end.min(current.agrees.max(at + 1).saturating_sub(ahead)))
}
