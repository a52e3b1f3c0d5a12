//! Long messages are many chunks: a change inside one costs a few of them, and nothing behind it.

use turntrie::cuts::{MIN_SEGMENT, Weakness};
use turntrie::engine::Engine;

use crate::harness::outcome;
use crate::rng::Rng;
use crate::zoo;

/// Pipelines with cuts inside plain text, of both kinds.
const NAMES: [&str; 5] = [
    "byte-level",
    "byte-level, NFC",
    "no added tokens",
    "Metaspace always",
    "Replace, newline runs",
];

/// The longest that a segment of ordinary text gets.
const LONGEST: usize = 4 * MIN_SEGMENT + 64;

/// Lines of words, none of them twice.
fn prose(rng: &mut Rng, bytes: usize) -> String {
    const WORDS: [&str; 12] = [
        "the", "user", "asked", "return", "function", "self", "word,", "norm.", "(café)", "it's",
        "fox", "x = 12",
    ];
    let mut text = String::new();
    while text.len() < bytes {
        for _ in 0..rng.between(3, 14) {
            text.push_str(rng.pick::<&str>(&WORDS));
            text.push(' ');
        }
        text.push_str(&rng.below(1_000_000).to_string());
        text.push('\n');
    }
    text
}

fn encoded_for(engine: &Engine, text: &str) -> usize {
    let before = engine.statistics().encoded_tokens;
    let ids = engine.encode(0, text).expect("ids").ids;
    assert_eq!(ids, engine.encode_full(text).expect("ids"));
    usize::try_from(engine.statistics().encoded_tokens - before).expect("few")
}

#[test]
fn an_edit_inside_a_long_text_costs_a_few_chunks() {
    for name in NAMES {
        let engine = Engine::from_json(&zoo::named(name).json, 1 << 26).expect(name);
        let mut rng = Rng::new(3);
        let text = prose(&mut rng, 60_000);
        let all = encoded_for(&engine, &text);
        let chunks = engine.statistics().chunks;
        assert!(chunks > text.len() / LONGEST, "{name}: {chunks} chunks");
        assert!(chunks < text.len() / MIN_SEGMENT, "{name}: {chunks} chunks");
        let tokens_of_chunks = |n: usize| n * LONGEST * all / text.len();
        for part in [0, 1, 2, 3] {
            let line = text[part * 15_000..].find('\n').expect("a line") + part * 15_000 + 1;
            let edited = format!("{}so then, {}", &text[..line], &text[line..]);
            let encoded = encoded_for(&engine, &edited);
            assert!(encoded < tokens_of_chunks(6), "{name}: {encoded} of {all}");
            let cut = format!("{}{}", &text[..line], &text[line + 3_000..]);
            let encoded = encoded_for(&engine, &cut);
            assert!(encoded < tokens_of_chunks(6), "{name}: {encoded} of {all}");
        }
        let grown = format!("{text}and so on");
        let encoded = encoded_for(&engine, &grown);
        assert!(
            encoded < tokens_of_chunks(1) + 10,
            "{name}: {encoded} of {all}"
        );
    }
}

#[test]
fn an_edit_near_the_front_of_a_long_chat_costs_its_message() {
    for name in ["byte-level", "Metaspace always"] {
        let engine = Engine::from_json(&zoo::named(name).json, 1 << 26).expect(name);
        let mut rng = Rng::new(5);
        let mut messages: Vec<String> = (0..400)
            .map(|_| {
                let bytes = [40, 200, 400, 1_500][rng.below(4)];
                format!("<|im_start|>user\n{}<|im_end|>\n", prose(&mut rng, bytes))
            })
            .collect();
        let all = encoded_for(&engine, &messages.concat());
        let bytes = messages.concat().len();
        for index in [3, 200, 396] {
            messages[index] = messages[index].replacen("the", "another", 1) + "!";
            let encoded = encoded_for(&engine, &messages.concat());
            let most = (messages[index].len() + 3 * LONGEST) * all / bytes;
            assert!(
                encoded < most,
                "{name}, {index}: {encoded}, not {most} of {all}"
            );
        }
    }
}

#[test]
fn what_the_fast_encoder_refuses_is_encoded_as_a_whole() {
    // The crate slices backwards, in the rest of a word that only the fast encoder could tell.
    let json = zoo::named("Metaspace always").json;
    let engine = Engine::weakened(&json, 1 << 20, Weakness::None, Some(1)).expect("an engine");
    let good = "the user asked\nthe assistant\nto call a function\n";
    let bad = format!("{good}x<|asst|>  \t \n \n  x<tool>y");
    let want = engine.encode_full(good).expect("ids");
    assert_eq!(engine.encode(0, good).expect("ids").ids, want);
    for _ in 0..2 {
        let full = outcome(|| engine.encode_full(&bad));
        assert_eq!(outcome(|| engine.encode(0, &bad).map(|e| e.ids)), full);
    }
    assert!(engine.encode(0, good).expect("ids").kept > 0);
}
