//! The load self-check and the id oracle: quiet on sound engines, and they find what is put in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use turntrie::cuts::Weakness;
use turntrie::engine::{Encoded, Engine};
use turntrie::sampler::EVERY;
use turntrie::verify::{FAULT_MARK, Fault, Verified};

use crate::zoo;

#[test]
fn sound_engines_pass_the_self_check() {
    for animal in zoo::all() {
        let engine = Engine::from_json(&animal.json, 1 << 20).expect(animal.name);
        let seen = Verified::new(engine).expect(animal.name).verification();
        assert!(seen.checked > 20, "{}", animal.name);
        assert_eq!(
            (seen.different, seen.incremental),
            (0, true),
            "{}",
            animal.name
        );
    }
}

#[test]
fn a_broken_cut_fails_the_self_check() {
    for name in [
        "byte-level, nested",
        "Metaspace first",
        "byte-level, strips",
    ] {
        let json = zoo::named(name).json;
        let engine = Engine::weakened(&json, 1 << 20, Weakness::NoFrontier, None).expect(name);
        let verified = Verified::new(engine).expect(name);
        assert!(!verified.verification().incremental, "{name}");
        let text = "plain text";
        let encoded = Encoded::from(verified.trace(0, text).expect(name));
        let full = verified.engine().encode_full(text).expect(name);
        assert_eq!((encoded.ids, encoded.kept), (full, 0), "{name}");
    }
}

#[test]
fn the_id_oracle_finds_faults_within_the_stated_number_of_calls() {
    for fault in [Fault::Chunk, Fault::Trie, Fault::Encoder] {
        let json = zoo::named("byte-level, nested").json;
        let engine = Engine::from_json(&json, 1 << 20).expect("engine");
        let verified = Arc::new(Verified::new(engine).expect("engine").with_fault(fault));
        assert!(verified.verification().incremental, "{fault:?}");
        let mut text = String::new();
        // Warm from the second turn on; one look every EVERY texts, so two rounds are enough.
        for turn in 0..2 * EVERY {
            text.push_str(&format!("<|im_start|>turn {turn} {FAULT_MARK}<|im_end|>\n"));
            text.push_str(&"filler ".repeat(60));
            let trace = verified.trace(0, &text).expect("ids");
            verified.observe(|| (text.clone(), trace.ids_from(0)));
        }
        let deadline = Instant::now() + Duration::from_secs(30);
        while verified.verification().incremental && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let seen = verified.verification();
        assert!(!seen.incremental && seen.different > 0, "{fault:?}");
        let found = &verified.divergences()[0];
        assert_eq!(
            found.want,
            verified.engine().encode_full(&found.text).expect("ids")
        );
        assert_ne!(found.got, found.want);
    }
}
