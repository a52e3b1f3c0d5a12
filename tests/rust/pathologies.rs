//! One run of a megabyte, and the texts on which the `tokenizers` crate itself gives up: its own result,
//! error or panic, and no other.
//!
//! With `TURNTRIE_THOROUGH` runs are a megabyte long.

use turntrie::engine::Engine;

use crate::harness::{Outcome, outcome};
use crate::zoo;

const UNITS: [&str; 14] = [
    "a",
    " ",
    "\n",
    "\t",
    "0",
    "é",
    "字",
    "👩\u{200d}",
    "a\u{301}",
    "the ",
    "ab",
    "A",
    " \n",
    "x1",
];

fn thorough() -> bool {
    std::env::var_os("TURNTRIE_THOROUGH").is_some()
}

#[test]
fn long_runs_are_encoded_as_the_crate_does() {
    let size = if thorough() { 1 << 20 } else { 40_000 };
    for name in ["byte-level, NFC", "byte-level, gaps", "Metaspace first"] {
        let engine = Engine::from_json(&zoo::named(name).json, 1 << 26).expect(name);
        for unit in UNITS {
            let count = size / unit.len();
            let (run, half) = (unit.repeat(count), unit.repeat(count / 2));
            let texts = [
                format!("<|im_start|>{run}"),
                format!("<|im_start|>{run}{unit} end<|im_end|>"),
                format!("<|im_start|>{half}!{run}"),
            ];
            for text in &texts {
                let want = engine.encode_full(text).expect("ids");
                let got = engine.encode(0, text).expect("ids").ids;
                assert!(got == want, "{name}: {size} bytes of {unit:?}");
            }
        }
    }
}

#[test]
fn what_the_regex_engine_gives_up_is_given_up() {
    let engine = Engine::from_json(&zoo::named("byte-level").json, 1 << 28).expect("an engine");
    for (count, gives_up) in [(3_000_000, false), (12_000_000, true)] {
        let text = format!("the user asked<|im_end|> x{}y\nthe end", " ".repeat(count));
        let want = outcome(|| engine.encode_full(&text));
        assert_eq!(want == Outcome::Panic, gives_up, "{count} blanks");
        let got = outcome(|| engine.encode(0, &text).map(|e| e.ids));
        assert!(got == want, "{count} blanks");
    }
    let text = "the user asked\nfor it";
    let want = engine.encode_full(text).expect("ids");
    assert_eq!(engine.encode(0, text).expect("ids").ids, want);
}
