//! The same property on real tokenizers, if there are any on this machine.
//!
//! `TURNTRIE_MODELS` names a folder with `*.json` (live backends) or `*/tokenizer.json`. Each model
//! is run with colliding added tokens; with `TURNTRIE_THOROUGH` also with normalized ones and as it is,
//! with default and with minimal segments and budgets. `TURNTRIE_ONLY` restricts the run to names that
//! contain it, `TURNTRIE_ROUNDS` sets the number of families of 60 texts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use turntrie::cuts::Weakness;
use turntrie::engine::Engine;

use crate::encoders;
use crate::harness::{self, Tally};
use crate::texts::Writer;
use crate::zoo;

#[test]
fn real_tokenizers() {
    let Some(folder) = std::env::var_os("TURNTRIE_MODELS") else {
        println!("TURNTRIE_MODELS is not set: no real tokenizers");
        return;
    };
    let only = std::env::var("TURNTRIE_ONLY").unwrap_or_default();
    let models: Vec<_> = models_in(Path::new(&folder))
        .into_iter()
        .filter(|(name, _)| name.contains(&only))
        .collect();
    assert!(!models.is_empty(), "no tokenizer in {}", folder.display());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let total = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((name, path)) = models.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let tally = run_model(name, path);
                    total.lock().expect("no panic").add(tally);
                }
            });
        }
    });
    println!(
        "{} models: {:?}",
        models.len(),
        total.lock().expect("no panic")
    );
}

/// Every engine of one model on random texts.
fn run_model(name: &str, path: &Path) -> Tally {
    let cases = harness::setting("TURNTRIE_ROUNDS", 1);
    let first = harness::setting("TURNTRIE_SEED", 1) as u64;
    let mut total = Tally::default();
    let json = fs::read_to_string(path).expect("a tokenizer file");
    // The worst of them is enough for every day.
    let all = std::env::var_os("TURNTRIE_THOROUGH").is_some();
    for (kind, json, budget, segment) in [
        (
            "torture",
            tortured(&json, "byte-level, strips"),
            1 << 28,
            Some(6),
        ),
        (
            "late",
            tortured(&json, "byte-level, normalized tokens"),
            1 << 28,
            Some(6),
        ),
        (
            "flags",
            tortured(&json, "byte-level, normalized tokens with flags"),
            1 << 28,
            Some(20),
        ),
        ("", json.clone(), 1 << 28, None),
        ("small", json.clone(), 30_000, Some(1)),
    ]
    .into_iter()
    .take(if all { 5 } else { 1 })
    {
        let engine = Engine::weakened(&json, budget, Weakness::None, segment).expect(name);
        let writer = Writer::new(&contents(&json));
        let texts = harness::setting("TURNTRIE_STRINGS", 50);
        encoders::compare_tokens(name, engine.encoders(), &json, first, texts);
        let fast = encoders::compare(name, engine.encoders(), &writer, first, texts);
        match engine.encoders().fast() {
            Ok(_) => assert!(fast > texts / 2, "{name} {kind}: {fast} of {texts}"),
            Err(why) => println!("{name:28} {kind:8} no fast encoder: {why}"),
        }
        let mut tally = Tally::default();
        for case in 0..cases {
            engine.clear();
            let size = 20 + 20 * (case % 5);
            let (part, difference) = harness::run(&engine, &writer, first + case as u64, 60, size);
            assert!(
                difference.is_none(),
                "{name} {kind}, seed {}:\n{}",
                first + case as u64,
                difference.unwrap_or_default()
            );
            tally.add(part);
        }
        println!("{name:28} {kind:8} {tally:?}");
        total.add(tally);
    }
    total
}

fn models_in(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut models = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.join("tokenizer.json").is_file() {
            models.push((name, path.join("tokenizer.json")));
        } else if path.extension().is_some_and(|e| e == "json") {
            models.push((name, path));
        }
    }
    models.sort();
    models
}

fn contents(json: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(json).expect("JSON");
    let added = value["added_tokens"].as_array().expect("added tokens");
    added
        .iter()
        .filter_map(|token| token["content"].as_str().map(str::to_owned))
        .collect()
}

/// The same tokenizer with the contradictory added tokens of an animal of the zoo as well.
fn tortured(json: &str, donor: &str) -> String {
    let mut value: Value = serde_json::from_str(json).expect("JSON");
    let donor: Value = serde_json::from_str(&zoo::named(donor).json).expect("JSON");
    let added = value["added_tokens"].as_array_mut().expect("added tokens");
    let mut next = 10_000_000;
    for token in donor["added_tokens"].as_array().expect("added tokens") {
        if added.iter().all(|t| t["content"] != token["content"]) {
            let mut token = token.clone();
            token["id"] = next.into();
            next += 1;
            added.push(token);
        }
    }
    value.to_string()
}
