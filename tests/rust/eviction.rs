//! The budget holds, what is used stays, and forgetting is complete.

use tokenizers::Tokenizer;
use turntrie::cuts::Weakness;
use turntrie::engine::Engine;

use crate::harness::{self, Tally};
use crate::rng::Rng;
use crate::texts::{Family, Writer};
use crate::zoo;

const NAME: &str = "byte-level, nested";

fn engine(budget: usize) -> Engine {
    Engine::weakened(&zoo::named(NAME).json, budget, Weakness::None, Some(40)).expect(NAME)
}

fn writer() -> Writer {
    let tokenizer: Tokenizer = zoo::named(NAME).json.parse().expect(NAME);
    Writer::new(&zoo::contents(&tokenizer))
}

/// A chat of `turns` turns that all differ between chats of different `topic`.
fn chat(topic: &str, turns: usize) -> String {
    (0..turns)
        .map(|turn| format!("<|im_start|>user\n{topic} the {turn} of the words and more words, {turn} times<|im_end|>\n"))
        .collect()
}

#[test]
fn the_budget_holds_at_every_moment() {
    let writer = writer();
    for budget in [0, 500, 2_000, 10_000, 100_000] {
        let engine = engine(budget);
        let mut rng = Rng::new(budget as u64);
        let mut family = Family::new(&writer, &mut rng, 40);
        let mut tally = Tally::default();
        for _ in 0..300 {
            let text = family.next(&mut rng);
            let difference = harness::compare(&engine, rng.below(3) as u64, &text, &mut tally);
            assert_eq!(difference, None);
            let statistics = engine.statistics();
            assert!(statistics.bytes <= budget, "{statistics:?}");
            assert_eq!(
                statistics.nodes == 0,
                statistics.bytes == 0,
                "{statistics:?}"
            );
        }
        let statistics = engine.statistics();
        assert_eq!(statistics.texts, 300);
        assert_eq!(statistics.kept_tokens as usize, tally.kept);
        assert!(
            budget == 0 || budget > 10_000 || statistics.evictions > 0,
            "{statistics:?}"
        );
        assert!(budget > 0 || (statistics.nodes == 0 && statistics.kept_tokens == 0));
    }
}

#[test]
fn the_least_recently_used_goes_first() {
    let engine = engine(60_000);
    let kept = |topic: &str| engine.encode(0, &chat(topic, 40)).expect("ids").kept;
    kept("wanted");
    for round in 0..40 {
        kept(&format!("other {round}"));
        assert!(
            kept("wanted") > 500,
            "round {round}: {:?}",
            engine.statistics()
        );
    }
    assert!(engine.statistics().evictions > 500);
    assert!(kept("other 0") < 100);
}

#[test]
fn forgetting_is_complete() {
    let engine = engine(1 << 20);
    let text = chat("a", 20);
    for namespace in 0..3 {
        assert_eq!(
            engine.encode(namespace, &text).expect("ids").kept,
            0,
            "namespaces share nothing"
        );
    }
    let one = engine.statistics();
    engine.drop_namespace(1);
    engine.drop_namespace(77);
    assert_eq!(engine.statistics().nodes * 3, one.nodes * 2);
    assert_eq!(engine.encode(1, &text).expect("ids").kept, 0);
    assert!(engine.encode(0, &text).expect("ids").kept > 100);
    engine.clear();
    let none = engine.statistics();
    assert_eq!((none.nodes, none.chunks, none.bytes), (0, 0, 0));
    assert_eq!(engine.encode(0, &text).expect("ids").kept, 0);
}

#[test]
fn an_edit_at_the_front_encodes_the_edit_only() {
    let engine = engine(1 << 20);
    let text = chat("a", 50);
    engine.encode(0, &text).expect("ids");
    let before = engine.statistics();
    let edited = text.replacen("words", "letters", 1);
    let ids = engine.encode(0, &edited).expect("ids").ids;
    let after = engine.statistics();
    assert_eq!(ids, engine.encode_full(&edited).expect("ids"));
    let encoded = after.encoded_tokens - before.encoded_tokens;
    assert!(encoded < 120, "{encoded} of {}", ids.len());
    let new = after.chunks - before.chunks;
    assert!((1..=2).contains(&new), "{new} chunks");
}

#[test]
fn a_path_of_a_million_bytes_needs_no_stack() {
    let engine =
        Engine::weakened(&zoo::named(NAME).json, 1 << 30, Weakness::None, Some(1)).expect(NAME);
    let text = "<tool>b".repeat(150_000);
    let run = move || {
        let first = engine.encode(0, &text).expect("ids");
        assert!(engine.statistics().nodes > 140_000);
        assert!(engine.statistics().chunks < 10);
        let second = engine.encode(0, &text).expect("ids");
        assert_eq!(first.ids, second.ids);
        assert!(second.kept > 290_000);
        engine.drop_namespace(0);
        assert_eq!(engine.statistics().bytes, 0);
        engine.encode(0, &text).expect("ids");
        drop(engine);
    };
    std::thread::Builder::new()
        .stack_size(128 * 1024)
        .spawn(run)
        .expect("a thread")
        .join()
        .expect("no overflow");
}
