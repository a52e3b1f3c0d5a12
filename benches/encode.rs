//! What a turn costs: a whole encode, an append, an edit, the walk alone, the scan alone.
//!
//! The chat is synthetic, about 100K tokens, in the style of ChatML. With `TURNTRIE_BENCH_MODEL`
//! (a `tokenizer.json`) a real tokenizer is measured, else a small byte-level one.
//! An *append* is the first call with a turn that the engine has never seen, as in a rollout.

#[path = "../tests/rust/rng.rs"]
#[allow(dead_code)] // The tests use more of it.
mod rng;
#[allow(dead_code)]
#[path = "../tests/rust/zoo.rs"]
mod zoo;

use std::fmt::Write;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rng::Rng;
use turntrie::cuts::Opening;
use turntrie::engine::Engine;

const BYTES: usize = 400_000;

fn tokenizer() -> String {
    match std::env::var_os("TURNTRIE_BENCH_MODEL") {
        Some(path) => std::fs::read_to_string(path).expect("a tokenizer file"),
        None => zoo::named("byte-level").json,
    }
}

/// One turn of words, code and numbers that occurs nowhere else.
fn turn(rng: &mut Rng, role: &str, words: usize) -> String {
    const WORDS: [&str; 16] = [
        "the",
        "function",
        "returns",
        "a",
        "list",
        "of",
        "user",
        "names;",
        "def",
        "parse(self):",
        "if",
        "not",
        "tokens:",
        "raise",
        "ValueError",
        "café",
    ];
    let mut text = format!("<|im_start|>{role}\n");
    for _ in 0..words {
        text.push_str(rng.pick::<&str>(&WORDS));
        match rng.below(12) {
            0 => text.push_str("\n    "),
            1 => {
                let _ = write!(text, " {} ", rng.below(100_000));
            }
            _ => text.push(' '),
        }
    }
    text + "<|im_end|>\n"
}

fn chat(rng: &mut Rng) -> String {
    let mut text = turn(rng, "system", 500);
    while text.len() < BYTES {
        text += &turn(rng, "user", 40);
        text += &turn(rng, "assistant", 120);
        text += &turn(rng, "tool", 400);
    }
    text
}

fn encode(c: &mut Criterion) {
    let json = tokenizer();
    let mut rng = Rng::new(1);
    let text = chat(&mut rng);
    let engine = Engine::from_json(&json, 1 << 28).expect("an engine");
    let ids = engine.encode(0, &text).expect("ids").ids;
    println!(
        "{} bytes, {} ids, {:?}",
        text.len(),
        ids.len(),
        engine.statistics()
    );

    let mut group = c.benchmark_group("encode");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.sample_size(10);
    group.bench_function("full", |b| b.iter(|| engine.encode_full(black_box(&text))));
    group.sample_size(50);
    group.bench_function("again", |b| b.iter(|| engine.encode(0, black_box(&text))));
    group.bench_function("append 1.5 KB", |b| {
        b.iter_batched(
            || text.clone() + &turn(&mut rng, "user", 40) + &turn(&mut rng, "assistant", 160),
            |text| engine.encode(0, black_box(&text)),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("edit at the front", |b| {
        b.iter_batched(
            || {
                engine.clear();
                engine.encode(0, &text).expect("ids");
                text.replacen("function", "method", 1)
            },
            |text| engine.encode(0, black_box(&text)),
            BatchSize::PerIteration,
        );
    });
    group.finish();

    let policy = engine.policy();
    let mut group = c.benchmark_group("cuts");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("segments", |b| {
        b.iter(|| policy.segments(black_box(&text), 0, Opening::Fixed).count())
    });
    group.bench_function("frontier", |b| {
        b.iter(|| policy.frontier(black_box(text.as_bytes()), text.len()))
    });
    group.finish();
}

criterion_group!(benches, encode);
criterion_main!(benches);
