//! Many threads, one engine: exact, without waiting for each other for ever, and stored once.

use std::sync::Barrier;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokenizers::Tokenizer;
use turntrie::cuts::Weakness;
use turntrie::engine::Engine;

use crate::harness::{self, Tally};
use crate::rng::Rng;
use crate::texts::{Family, Writer};
use crate::zoo;

const THREADS: usize = 8;

/// Runs `work`, or fails if it takes longer than two minutes.
fn in_time(work: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let worker = thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    match finished.recv_timeout(Duration::from_secs(120)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the threads are stuck"),
        _ => worker.join().expect("the threads agree"),
    }
}

#[test]
fn threads_share_an_engine() {
    in_time(|| {
        for (name, budget) in [
            ("byte-level, nested", 1 << 26),
            ("Metaspace first", 4_000),
            ("byte-level, normalized tokens", 20_000),
        ] {
            let animal = zoo::named(name);
            let tokenizer: Tokenizer = animal.json.parse().expect(name);
            let writer = Writer::new(&zoo::contents(&tokenizer));
            let engine =
                Engine::weakened(&animal.json, budget, Weakness::None, Some(16)).expect(name);
            thread::scope(|scope| {
                for worker in 0..THREADS as u64 {
                    let (engine, writer) = (&engine, &writer);
                    scope.spawn(move || {
                        // Two threads each grow the same family at the same time.
                        let mut rng = Rng::new(worker / 2);
                        let mut family = Family::new(writer, &mut rng, 30);
                        let mut tally = Tally::default();
                        for i in 0..150 {
                            let text = family.next(&mut rng);
                            let difference = harness::compare(engine, 0, &text, &mut tally);
                            assert_eq!(difference, None, "{name}");
                            if worker == 0 && i % 50 == 49 {
                                engine.clear();
                            }
                        }
                    });
                }
            });
            assert!(engine.statistics().bytes <= budget);
        }
    });
}

#[test]
fn racing_threads_store_a_prefix_once() {
    in_time(|| {
        let animal = zoo::named("byte-level");
        let text: String = (0..200)
            .map(|i| format!("<|im_start|>user\n{i} the words{i}<|im_end|>\n"))
            .collect();
        let engine = || {
            Engine::weakened(&animal.json, 1 << 26, Weakness::None, Some(20)).expect("an engine")
        };
        let alone = engine();
        let want = alone.encode(0, &text).expect("ids");
        for _ in 0..10 {
            let shared = engine();
            let barrier = Barrier::new(THREADS);
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        barrier.wait();
                        assert_eq!(shared.encode(0, &text).expect("ids").ids, want.ids);
                    });
                }
            });
            let (a, b) = (alone.statistics(), shared.statistics());
            assert_eq!((a.nodes, a.chunks, a.bytes), (b.nodes, b.chunks, b.bytes));
        }
    });
}
