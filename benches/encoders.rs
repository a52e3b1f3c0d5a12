//! Encoders side by side: MB/s on a first text and on later ones, by kind of text; load times.
//!
//!     TURNTRIE_MODELS=DIR cargo bench --bench encoders [-- NAME...]
//!
//! `DIR` holds `*/tokenizer.json` or `*.json`. Texts are generated, 4 KB each, none twice: code, log
//! lines, prose, CJK. *First* is the first text after loading; the other figure is the median of
//! 200 further ones. Times are CPU time of the thread that encodes. Every text is compared.

#[path = "../tests/rust/rng.rs"]
#[allow(dead_code)]
mod rng;

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use rng::Rng;
use turntrie::encoder::{Encoder, FastEncoder, HfEncoder};

const TEXTS: usize = 200;
const BYTES: usize = 4096;

fn main() {
    let only: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let Some(folder) = std::env::var_os("TURNTRIE_MODELS") else {
        println!("TURNTRIE_MODELS is not set: nothing to measure");
        return;
    };
    let mut models: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path())
        .map(|path| {
            if path.is_dir() {
                path.join("tokenizer.json")
            } else {
                path
            }
        })
        .filter(|path| {
            only.is_empty()
                || only
                    .iter()
                    .any(|name| path.to_string_lossy().contains(name))
        })
        .collect();
    models.sort();
    println!(
        "{:24} {:6} {:>8} {:>8} {:>8} {:>8} {:>6}   load ms: crate, ours; table MB",
        "model", "text", "crate", "first", "later", "worst", "ratio"
    );
    for path in models {
        measure(&path);
    }
}

fn measure(path: &PathBuf) {
    let json = fs::read_to_string(path).expect("a tokenizer");
    let start = now();
    let oracle = HfEncoder::from_json(&json).expect("a tokenizer");
    let loaded = now() - start;
    let start = now();
    let fast = FastEncoder::new(&json, &oracle);
    let ours = now() - start;
    let name = path
        .parent()
        .filter(|_| path.ends_with("tokenizer.json"))
        .unwrap_or(path);
    let name = name
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let fast = match fast {
        Ok(fast) => fast,
        Err(why) => {
            println!("{name:24} no fast encoder: {why}");
            return;
        }
    };
    for (kind, write) in KINDS {
        let mut rng = Rng::new(11);
        let texts: Vec<String> = (0..=TEXTS).map(|_| text(&mut rng, write)).collect();
        let mut crate_times = Vec::new();
        let mut our_times = Vec::new();
        for text in &texts {
            let mut want = Vec::with_capacity(BYTES);
            let start = now();
            oracle.encode(text, &mut want).expect("ids");
            crate_times.push((now() - start) / text.len() as f64);
            let mut got = Vec::with_capacity(BYTES);
            let start = now();
            assert!(fast.encode(text, &mut got));
            our_times.push((now() - start) / text.len() as f64);
            assert!(got == want, "{name} {kind}: {text:?}");
        }
        let speed = |time: f64| 1e-6 / time;
        let first = our_times[0];
        let (crate_time, our_time) = (median(&mut crate_times[1..]), median(&mut our_times[1..]));
        let worst = our_times[1..].iter().copied().fold(0.0, f64::max);
        println!(
            "{name:24} {kind:6} {:8.1} {:8.1} {:8.1} {:8.1} {:5.1}x   {:.0} {:.0} {:.1}",
            speed(crate_time),
            speed(first),
            speed(our_time),
            speed(worst),
            crate_time / our_time,
            loaded * 1e3,
            ours * 1e3,
            fast.bytes() as f64 / 1e6
        );
    }
}

/// CPU time of this thread in seconds: what other processes do does not count.
fn now() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to the struct it is given, and to nothing else.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

type Line = fn(&mut Rng, &mut String);
const KINDS: [(&str, Line); 4] = [("code", code), ("log", log), ("prose", prose), ("cjk", cjk)];

fn text(rng: &mut Rng, line: Line) -> String {
    let mut text = String::new();
    while text.len() < BYTES {
        line(rng, &mut text);
    }
    text
}

/// A word of two to four syllables: thousands of them, most of them no token.
fn word(rng: &mut Rng) -> String {
    const SYLLABLES: [&str; 32] = [
        "in", "ter", "con", "pro", "ment", "able", "re", "ver", "sion", "ta", "ble", "com", "mit",
        "val", "ue", "ist", "ory", "fig", "ure", "lo", "ad", "er", "sta", "tus", "mes", "sage",
        "to", "ken", "set", "get", "par", "se",
    ];
    (0..rng.between(1, 4))
        .map(|_| *rng.pick::<&str>(&SYLLABLES))
        .collect()
}

fn code(rng: &mut Rng, text: &mut String) {
    let indent = "    ".repeat(rng.below(4));
    let (a, b, c) = (word(rng), word(rng), word(rng));
    let n = rng.below(1000);
    let _ = match rng.below(6) {
        0 => writeln!(
            text,
            "{indent}def {a}_{b}(self, {c}: int = {n}) -> list[str]:"
        ),
        1 => writeln!(
            text,
            "{indent}if {a}.{b} is not None and {c}[{n}] != \"{a}\":"
        ),
        2 => writeln!(text, "{indent}{a}.{b}({c}={n}, key=lambda x: x.{c})"),
        3 => writeln!(
            text,
            "{indent}return [{a} for {a} in {b} if {a}.{c} >= {n}]"
        ),
        4 => writeln!(text, "{indent}# {a} the {b} of each {c}, see {a}.py:{n}\n"),
        _ => writeln!(text, "{indent}raise ValueError(f\"{{{a}}} {b} {c}\")"),
    };
}

fn log(rng: &mut Rng, text: &mut String) {
    let (a, b) = (word(rng), word(rng));
    let (x, y) = (rng.next(), rng.next());
    let _ = writeln!(
        text,
        "2026-11-{:02}T{:02}:{:02}:{:02}.{:06}Z INFO {a}::{b} request_id={x:016x}-{y:08x} status={} took {} ms",
        1 + x % 28,
        x % 24,
        y % 60,
        x % 60,
        x % 1_000_000,
        200 + y % 300,
        y % 10_000
    );
}

fn prose(rng: &mut Rng, text: &mut String) {
    for _ in 0..rng.between(6, 20) {
        text.push_str(&word(rng));
        text.push_str(rng.pick::<&str>(&[" ", " ", " ", ", ", " the ", " of "]));
    }
    text.push_str(rng.pick::<&str>(&[".\n", ". ", "?\n\n", "! "]));
}

fn cjk(rng: &mut Rng, text: &mut String) {
    for _ in 0..rng.between(4, 30) {
        let c = match rng.below(10) {
            0..7 => 0x4e00 + rng.below(0x1500),
            7 | 8 => 0x3042 + rng.below(80),
            _ => 0xac00 + rng.below(2000),
        };
        text.extend(char::from_u32(c as u32));
    }
    text.push_str(rng.pick::<&str>(&["。", "，", "、", "\n", " ", "！"]));
}
