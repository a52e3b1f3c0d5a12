//! Proof that the tests can fail: each rule of the theorem, switched off, must be noticed.

use tokenizers::Tokenizer;
use turntrie::cuts::Weakness;
use turntrie::engine::Engine;

use crate::harness;
use crate::texts::Writer;
use crate::zoo;

/// Cases until one differs, or `None` after `cases`.
fn noticed_after(weakness: Weakness, name: &str, cases: u64) -> Option<u64> {
    let animal = zoo::named(name);
    let tokenizer: Tokenizer = animal.json.parse().expect(name);
    let writer = Writer::new(&zoo::contents(&tokenizer));
    let engine = Engine::weakened(&animal.json, 1 << 26, weakness, Some(1)).expect(animal.name);
    (1..=cases).find(|&seed| {
        engine.clear();
        let (_, difference) = harness::run(&engine, &writer, seed, 60, 12);
        difference.is_some()
    })
}

#[test]
fn every_rule_matters() {
    for (weakness, name) in [
        (Weakness::NoFrontier, "byte-level, nested"),
        (Weakness::NoFrontier, "Metaspace first"),
        (Weakness::NoAnchor, "byte-level, nested"),
        (Weakness::NoStripLeft, "byte-level, strips"),
        (Weakness::NoStripStop, "byte-level, strips"),
        (
            Weakness::NormalizedAlways,
            "Prepend, Replace, normalized tokens",
        ),
        (Weakness::NoSingleWord, "byte-level, single_word"),
        (Weakness::NoFrontier, "byte-level, gaps"),
        (Weakness::CrossedSeams, "byte-level"),
        (Weakness::CrossedSeams, "byte-level, three stages"),
        (Weakness::GluedSeams, "byte-level, gaps"),
        (Weakness::ComposedSeams, "byte-level, NFC"),
        (Weakness::LateSeams, "byte-level, normalized tokens"),
        (Weakness::BlankSeams, "byte-level, line by line"),
        (Weakness::JoinedSeams, "Metaspace never"),
        (Weakness::RestIsWhole, "Prepend, Replace"),
        (Weakness::RestIsWhole, "Metaspace always"),
    ] {
        let noticed = noticed_after(weakness, name, 300);
        println!("{weakness:?} in {name}: noticed after {noticed:?} cases");
        assert!(noticed.is_some(), "{weakness:?} in {name} went unnoticed");
        assert_eq!(
            noticed_after(Weakness::None, name, noticed.unwrap_or(0)),
            None,
            "{name} differs without a weakness"
        );
    }
}
