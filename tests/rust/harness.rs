//! One random case: an engine, a family of texts, and the oracle.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use turntrie::engine::Engine;
use turntrie::trace::Trace;

use crate::rng::Rng;
use crate::texts::{Family, Writer};

/// A number from the environment.
pub fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().map_or(default, |v| {
        v.parse()
            .unwrap_or_else(|_| panic!("{name} is not a number"))
    })
}

/// What became of one text: ids, an error, or a panic. The oracle may panic, and so may we then.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Ids(Vec<u32>),
    Error,
    Panic,
}

/// Runs `encode`, catching what the `tokenizers` crate may throw.
pub fn outcome(encode: impl FnOnce() -> Result<Vec<u32>, turntrie::error::Error>) -> Outcome {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // The crate's own panic, provoked on purpose by contradictory strip flags.
            if !info.to_string().contains("AddedVocabulary bad split")
                && !info.to_string().contains("tokenizers-0.")
            {
                usual(info);
            }
        }));
    });
    match panic::catch_unwind(AssertUnwindSafe(encode)) {
        Ok(Ok(ids)) => Outcome::Ids(ids),
        Ok(Err(_)) => Outcome::Error,
        Err(_) => Outcome::Panic,
    }
}

/// What a number of cases did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub comparisons: usize,
    pub differences: usize,
    pub kept: usize,
    pub ids: usize,
    pub panics: usize,
    pub resumed: usize,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.comparisons += other.comparisons;
        self.differences += other.differences;
        self.kept += other.kept;
        self.ids += other.ids;
        self.panics += other.panics;
        self.resumed += other.resumed;
    }
}

/// Compares one text; a difference is counted, and described on the first occasion.
pub fn compare(engine: &Engine, namespace: u64, text: &str, tally: &mut Tally) -> Option<String> {
    let want = outcome(|| engine.encode_full(text));
    compare_with(&want, engine, namespace, text, tally)
}

/// The same, if the oracle was asked already.
fn compare_with(
    want: &Outcome,
    engine: &Engine,
    namespace: u64,
    text: &str,
    tally: &mut Tally,
) -> Option<String> {
    let mut kept = 0;
    let got = outcome(|| {
        engine.encode(namespace, text).map(|encoded| {
            kept = encoded.kept;
            encoded.ids
        })
    });
    tally.comparisons += 1;
    tally.kept += kept;
    if let Outcome::Ids(ids) = want {
        tally.ids += ids.len();
        assert!(kept <= ids.len() || got != *want);
    }
    tally.panics += usize::from(*want == Outcome::Panic);
    if got == *want {
        return None;
    }
    tally.differences += 1;
    Some(format!("{text:?}\n  want {want:?}\n  got  {got:?}"))
}

/// The last text of a namespace, and what the next one can go on from.
type Last = Option<(String, Trace)>;

/// Lets `text` go on from the last one of its namespace, from some place that both have in common, and
/// remembers it in its place. Counted and described like [`compare`].
fn resume(
    want: &Outcome,
    engine: &Engine,
    namespace: u64,
    text: &str,
    last: &mut Last,
    rng: &mut Rng,
    tally: &mut Tally,
) -> Option<String> {
    let mut resumed = false;
    let got = outcome(|| {
        let found = match last {
            Some((before, trace)) => {
                let mut common = common_prefix(before, text);
                if rng.below(3) == 0 {
                    common = rng.below(common + 1);
                }
                while !text.is_char_boundary(common) {
                    common -= 1;
                }
                engine.resume(namespace, trace, common, |start| text[start..].to_owned())?
            }
            None => None,
        };
        resumed = found.is_some();
        let trace = match found {
            Some(trace) => trace,
            None => engine.trace(namespace, text)?,
        };
        let ids = trace.ids_from(0);
        if let Some((_, before)) = last {
            let pairs = before.ids_from(0).into_iter().zip(&ids);
            let common = pairs.take_while(|(a, b)| a == *b).count();
            assert_eq!(trace.common_prefix(before), common);
        }
        *last = Some((text.to_owned(), trace));
        Ok(ids)
    });
    tally.comparisons += 1;
    tally.resumed += usize::from(resumed);
    if got == *want {
        return None;
    }
    *last = None;
    tally.differences += 1;
    Some(format!(
        "resumed, {text:?}\n  want {want:?}\n  got  {got:?}"
    ))
}

fn common_prefix(a: &str, b: &str) -> usize {
    let pairs = a.bytes().zip(b.bytes());
    pairs.take_while(|(a, b)| a == b).count()
}

/// Feeds a family of `texts` texts to an engine, in up to three namespaces.
pub fn run(
    engine: &Engine,
    writer: &Writer,
    seed: u64,
    texts: usize,
    size: usize,
) -> (Tally, Option<String>) {
    let mut rng = Rng::new(seed);
    let mut tally = Tally::default();
    let mut first = None;
    let mut family = Family::new(writer, &mut rng, size);
    let namespaces = rng.between(1, 3);
    let mut last: [Last; 3] = Default::default();
    for _ in 0..texts {
        let text = family.next(&mut rng);
        let at = rng.below(namespaces);
        let namespace = at as u64;
        let want = outcome(|| engine.encode_full(&text));
        let difference = compare_with(&want, engine, namespace, &text, &mut tally);
        first = first.or(difference);
        // In a namespace of its own, where nobody has left checkpoints of this text.
        let (at, last) = (namespace + 3, &mut last[at]);
        let difference = resume(&want, engine, at, &text, last, &mut rng, &mut tally);
        first = first.or(difference);
        match rng.below(400) {
            0 => engine.clear(),
            1 => engine.drop_namespace(namespace + 3 * rng.below(2) as u64),
            _ => {}
        }
    }
    (tally, first)
}
