//! Errors and panics of the `tokenizers` crate pass through and leave nothing half done.

use turntrie::cuts::Weakness;
use turntrie::engine::Engine;

use crate::harness::outcome;
use crate::zoo;

#[test]
fn an_error_leaves_the_trie_as_it_was() {
    // Without an unknown token, WordLevel refuses unknown words.
    let json = zoo::named("WordLevel").json.replace("\"[UNK]\":0,", "");
    let engine = Engine::weakened(&json, 1 << 20, Weakness::None, Some(10)).expect("an engine");
    let good = "<tool>the user of a tool<tool>the norm of the word<tool>the";
    let bad = format!("{good} call<tool>unheard of<tool>the user");
    let want = engine.encode_full(good).expect("ids");
    assert!(engine.encode_full(&bad).is_err());
    for _ in 0..3 {
        assert!(engine.encode(0, &bad).is_err());
        assert_eq!(engine.encode(0, good).expect("ids").ids, want);
    }
    engine.clear();
    assert!(engine.encode(0, &bad).is_err());
    assert_eq!(
        engine.statistics().nodes,
        0,
        "nothing is linked before everything is encoded"
    );
}

#[test]
fn a_panic_leaves_the_trie_as_it_was() {
    // `rstrip` swallows whitespace in which an `lstrip` token starts: the crate slices backwards.
    let json = zoo::named("byte-level, strips").json;
    let engine = Engine::weakened(&json, 1 << 20, Weakness::None, Some(1)).expect("an engine");
    let good = "<tool>abc<tool>the word<tool>x<|asst|> ";
    let bad = format!("{good}x<|asst|>  \t \n \n  x<tool>y");
    let want = engine.encode_full(good).expect("ids");
    let full = outcome(|| engine.encode_full(&bad));
    for _ in 0..3 {
        assert_eq!(outcome(|| engine.encode(0, &bad).map(|e| e.ids)), full);
        assert_eq!(engine.encode(0, good).expect("ids").ids, want);
    }
    assert!(engine.encode(0, good).expect("ids").kept > 0);
}
