//! Which characters are in which set: asked, not looked up.
//!
//! `\p{L}` means what the Unicode tables of the regex engine inside the `tokenizers` crate say, and
//! those are older or newer than anybody else's. So each set of a pattern is run by that very engine
//! over a text of all characters, and the answer is kept: membership is exact by construction.
//!
//! Characters that no set of the pattern tells apart form a *class*; an automaton runs over classes.
//! A class is found through two tables (blocks of 128 characters, equal blocks stored once), ASCII
//! through one.
//!
//! Cost: a millisecond or two per set, once per process; tens of KB per pattern.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use tokenizers::utils::SysRegex;

use super::Refusal;

/// Sorted, disjoint ranges of characters, ends included.
pub(super) type Ranges = Vec<(u32, u32)>;

/// A set, by what decides membership.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Set {
    /// A regex that matches one character.
    Regex(String),
    /// `char::is_numeric`, which the pre-tokenizer `Digits` asks.
    Numeric,
}

/// Everything that is or may become a character lies below, but for the block of tags and private
/// use. Beyond, no property tells two characters apart; `tests` has the proof by exhaustion.
const DENSE: u32 = 0x4_0000;
const TAGS: std::ops::Range<u32> = 0xe_0000..0xe_0200;
const SPARSE: [u32; 5] = [0x4_0000, 0xd_fffd, 0xe_0200, 0xf_0000, 0x10_fffd];
const LAST: u32 = 0x10_ffff;

/// More sets than this are not told apart.
pub(super) const MOST_SETS: usize = 64;

fn probe_characters() -> impl Iterator<Item = char> {
    (0..DENSE).chain(TAGS).filter_map(char::from_u32)
}

/// A text of them, which is made where a set is asked for the first time.
type Probe = LazyCell<String>;

fn probe() -> Probe {
    LazyCell::new(|| probe_characters().collect())
}

/// The members of a set. Remembered for the life of the process: patterns share their sets.
///
/// Nobody waits for the memory: in a process that was forked while another thread used it, it stays
/// locked for ever.
fn members(set: &Set, probe: &Probe) -> Result<Arc<Ranges>, Refusal> {
    static KNOWN: Mutex<BTreeMap<Set, Arc<Ranges>>> = Mutex::new(BTreeMap::new());
    if let Ok(known) = KNOWN.try_lock()
        && let Some(ranges) = known.get(set)
    {
        return Ok(Arc::clone(ranges));
    }
    let ranges = Arc::new(match set {
        Set::Regex(source) => ask(source, probe)?,
        Set::Numeric => collect(char::is_numeric),
    });
    if let Ok(mut known) = KNOWN.try_lock() {
        known.insert(set.clone(), Arc::clone(&ranges));
    }
    Ok(ranges)
}

/// The members of a regex that matches one character, among those of `probe` and beyond.
fn ask(source: &str, probe: &str) -> Result<Ranges, Refusal> {
    let compile = |pattern: String| {
        SysRegex::new(&pattern)
            .map_err(|e| Refusal::new(format!("the set {source} cannot be compiled: {e}")))
    };
    let runs = compile(format!("(?:{source})+"))?;
    let first = |at: usize| probe[at..].chars().next().map_or(0, u32::from);
    let last = |at: usize| probe[..at].chars().next_back().map_or(0, u32::from);
    let mut ranges: Ranges = Vec::new();
    for (start, end) in runs.find_iter(probe) {
        if start == end {
            return Err(Refusal::new(format!("the set {source} matches nothing")));
        }
        push(&mut ranges, first(start), last(end));
    }
    let single = compile(source.to_owned())?;
    let mut beyond = SPARSE
        .iter()
        .filter_map(|&c| char::from_u32(c))
        .map(|c| single.find_iter(&c.to_string()).next().is_some());
    let all = beyond.next().unwrap_or(false);
    if beyond.any(|member| member != all) {
        return Err(Refusal::new(format!(
            "the set {source} tells unassigned and private characters apart"
        )));
    }
    Ok(with_sparse(&ranges, all))
}

/// The members of a predicate that no character beyond the probed ones satisfies.
fn collect(member: impl Fn(char) -> bool) -> Ranges {
    let mut ranges = Vec::new();
    for c in probe_characters().filter(|&c| member(c)) {
        push(&mut ranges, c.into(), c.into());
    }
    with_sparse(&ranges, false)
}

fn push(ranges: &mut Ranges, first: u32, last: u32) {
    match ranges.last_mut() {
        Some((_, end)) if *end + 1 >= first => *end = last,
        _ => ranges.push((first, last)),
    }
}

/// Corrects what lies beyond the probed characters: a run of the probe may span the gap.
fn with_sparse(ranges: &Ranges, member: bool) -> Ranges {
    let mut whole = Ranges::new();
    let clipped = |low: u32, high: u32| {
        ranges
            .iter()
            .filter(move |(a, b)| *a < high && *b >= low)
            .map(move |&(a, b)| (a.max(low), b.min(high - 1)))
    };
    for (a, b) in clipped(0, DENSE) {
        push(&mut whole, a, b);
    }
    if member {
        push(&mut whole, DENSE, TAGS.start - 1);
    }
    for (a, b) in clipped(TAGS.start, TAGS.end) {
        push(&mut whole, a, b);
    }
    if member {
        push(&mut whole, TAGS.end, LAST);
    }
    whole
}

/// The class of each character, for the sets of one pattern.
#[derive(Debug)]
pub(super) struct Classes {
    ascii: [u8; 128],
    /// Block of each 128 characters.
    blocks: Vec<u16>,
    /// Classes, 128 a block.
    table: Vec<u8>,
    /// Of each class: the sets it is in, as bits.
    membership: Vec<u64>,
}

const BLOCK: usize = 128;
// The last block is whole.
const _: () = assert!((LAST as usize + 1).is_multiple_of(BLOCK));

impl Classes {
    /// Tells characters apart by these sets.
    pub(super) fn of(sets: &[Set]) -> Result<Self, Refusal> {
        if sets.len() > MOST_SETS {
            return Err(Refusal::new("the split pattern has too many sets".into()));
        }
        let probe = probe();
        // Where the characters of each set begin and end. The ranges of a set are disjoint, so that a bit is set
        // at the one and gone at the other.
        let mut changes = Vec::new();
        for (index, set) in sets.iter().enumerate() {
            for &(first, last) in members(set, &probe)?.iter() {
                changes.extend([(first, 1_u64 << index), (last + 1, 1 << index)]);
            }
        }
        changes.sort_unstable();
        let mut changes = changes.into_iter().peekable();
        let mut membership: Vec<u64> = Vec::new();
        let mut stored: HashMap<[u8; BLOCK], u16> = HashMap::new();
        let mut blocks: Vec<u16> = Vec::with_capacity(LAST as usize / BLOCK + 1);
        let mut table = Vec::new();
        let mut inside = 0;
        let mut last = None;
        for start in (0..=LAST).step_by(BLOCK) {
            let mut classes = [0; BLOCK];
            let mut from = 0;
            while from < BLOCK {
                while let Some((_, set)) = changes.next_if(|&(at, _)| at <= start + from as u32) {
                    inside ^= set;
                }
                let known = membership.iter().position(|&sets| sets == inside);
                let class = known.unwrap_or_else(|| {
                    membership.push(inside);
                    membership.len() - 1
                });
                let class = u8::try_from(class).map_err(|_| {
                    Refusal::new("the split pattern tells too many classes apart".into())
                })?;
                let change = changes.peek().map_or(LAST + 1, |&(at, _)| at);
                let to = BLOCK.min((change - start) as usize);
                classes[from..to].fill(class);
                from = to;
            }
            // Most are like the one before.
            let id = match last {
                Some((block, id)) if block == classes => id,
                _ => {
                    let next = u16::try_from(stored.len()).unwrap_or(u16::MAX);
                    *stored.entry(classes).or_insert_with(|| {
                        table.extend_from_slice(&classes);
                        next
                    })
                }
            };
            last = Some((classes, id));
            blocks.push(id);
        }
        let mut ascii = [0; BLOCK];
        ascii.copy_from_slice(&table[..BLOCK]);
        Ok(Classes {
            ascii,
            blocks,
            table,
            membership,
        })
    }

    /// Number of classes.
    pub(super) fn len(&self) -> usize {
        self.membership.len()
    }

    /// Whether the characters of a class are in a set.
    pub(super) fn contains(&self, class: usize, set: usize) -> bool {
        self.membership[class] >> set & 1 == 1
    }

    /// The class of an ASCII character.
    #[inline]
    pub(super) fn of_ascii(&self, byte: u8) -> u8 {
        self.ascii[usize::from(byte & 127)]
    }

    /// The class of a character.
    #[inline]
    pub(super) fn of_char(&self, c: char) -> u8 {
        let c = c as usize;
        self.table[usize::from(self.blocks[c / BLOCK]) * BLOCK + c % BLOCK]
    }
}

#[cfg(test)]
mod tests {
    use super::{Classes, LAST, Ranges, Set, SysRegex, probe};

    fn ask(source: &str) -> Result<Ranges, super::Refusal> {
        super::ask(source, &probe())
    }

    /// The ends of all ranges of assigned characters in planes 4 to 13, 15 and 16: none.
    #[test]
    fn no_property_tells_sparse_characters_apart() {
        let everything: String = (0..=LAST).filter_map(char::from_u32).collect();
        for source in [
            r"\p{L}",
            r"\p{N}",
            r"\p{P}",
            r"\p{S}",
            r"\p{M}",
            r"\p{Lu}",
            r"\p{Ll}",
            r"\p{Lt}",
            r"\p{Lm}",
            r"\p{Lo}",
            r"\s",
            r"\w",
            r"\d",
            r"\p{Han}",
            r"[^\r\n\p{L}\p{N}]",
        ] {
            let regex = SysRegex::new(&format!("(?:{source})+")).expect(source);
            let classes = Classes::of(&[Set::Regex(source.to_owned())]).expect(source);
            let mut members = vec![false; everything.len()];
            for (start, end) in regex.find_iter(&everything) {
                members[start..end].fill(true);
            }
            for (at, c) in everything.char_indices() {
                let class = usize::from(classes.of_char(c));
                assert_eq!(classes.contains(class, 0), members[at], "{source} {c:?}");
            }
        }
        // Private use is told apart from unassigned characters, so this one is refused.
        assert!(ask(r"\p{Co}").is_err());
    }

    #[test]
    fn numeric_is_what_the_standard_library_says() {
        let classes = Classes::of(&[Set::Numeric]).expect("classes");
        for c in (0..=LAST).filter_map(char::from_u32) {
            let class = usize::from(classes.of_char(c));
            assert_eq!(classes.contains(class, 0), c.is_numeric(), "{c:?}");
        }
    }

    #[test]
    fn case_is_ignored_as_the_engine_does() {
        let members = ask("(?i:s)").expect("a set");
        assert_eq!(members, [(0x53, 0x53), (0x73, 0x73), (0x17f, 0x17f)]);
    }

    #[test]
    fn a_set_that_matches_nothing_is_refused() {
        assert!(ask("(?:a|)").is_err());
    }
}
