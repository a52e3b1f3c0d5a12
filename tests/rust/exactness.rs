//! The promise: whatever was encoded before, the ids are those of the whole text.

use tokenizers::Tokenizer;
use turntrie::cuts::Weakness;
use turntrie::engine::Engine;

use crate::harness::{self, Tally};
use crate::texts::Writer;
use crate::zoo;

/// Budgets from none at all over a handful of nodes to plenty, and segment lengths.
pub const BUDGETS: [usize; 5] = [1 << 26, 1 << 26, 20_000, 3_000, 0];
pub const SEGMENTS: [usize; 4] = [1, 16, 64, 256];

#[test]
fn every_tokenizer_of_the_zoo() {
    let cases = harness::setting("TURNTRIE_ROUNDS", 5);
    let first = harness::setting("TURNTRIE_SEED", 1) as u64;
    for animal in zoo::all() {
        let tokenizer: Tokenizer = animal.json.parse().expect(animal.name);
        let writer = Writer::new(&zoo::contents(&tokenizer));
        let mut tally = Tally::default();
        for case in 0..cases {
            let seed = first + case as u64;
            let engine = Engine::weakened(
                &animal.json,
                BUDGETS[case % BUDGETS.len()],
                Weakness::None,
                Some(SEGMENTS[case % SEGMENTS.len()]),
            )
            .expect(animal.name);
            let (part, difference) = harness::run(&engine, &writer, seed, 60, 8 + 4 * (case % 9));
            assert!(
                difference.is_none(),
                "{}, seed {seed}:\n{}",
                animal.name,
                difference.unwrap_or_default()
            );
            tally.add(part);
        }
        println!("{:45} {tally:?}", animal.name);
        let cuts = turntrie::cuts::CutPolicy::from_json(&animal.json)
            .expect(animal.name)
            .has_cuts();
        assert!(
            !cuts || tally.kept > tally.ids / 20,
            "{}: nothing was kept",
            animal.name
        );
        assert!(
            !cuts || tally.resumed > 10,
            "{}: nothing went on from another text",
            animal.name
        );
        assert!(
            cuts || tally.kept == 0,
            "{}: kept without cuts",
            animal.name
        );
    }
}
