//! The fast encoder against the `tokenizers` crate, text by text, without trie or cuts.
//!
//! `TURNTRIE_STRINGS` sets the number of texts per tokenizer. Which tokenizers have a fast
//! encoder is asserted as well: a pipeline that is refused by mistake would pass every comparison.

use serde_json::{Value, json};
use tokenizers::Tokenizer;
use turntrie::encoder::{Encoder, Encoders};

use crate::harness::{self, Outcome, outcome};
use crate::rng::Rng;
use crate::texts::Writer;
use crate::zoo;

/// Compares `count` random texts; returns how many the fast encoder took.
pub fn compare(name: &str, encoders: &Encoders, writer: &Writer, seed: u64, count: usize) -> usize {
    let Ok(fast) = encoders.fast() else {
        return 0;
    };
    let mut rng = Rng::new(seed);
    let mut taken = 0;
    for round in 0..count {
        let text = match rng.below(10) {
            0 => any_characters(&mut rng),
            1 => writer.text(&mut rng, 120),
            n => writer.text(&mut rng, 2 * n),
        };
        let want = outcome(|| {
            let mut ids = Vec::new();
            encoders.oracle().encode(&text, &mut ids).map(|()| ids)
        });
        let mut got = vec![7];
        if fast.encode(&text, &mut got) {
            taken += 1;
            got.remove(0);
            assert_eq!(
                Outcome::Ids(got),
                want,
                "{name}, seed {seed}, round {round}: {text:?}"
            );
        } else {
            assert_eq!(got, [7], "{name}: something was left behind");
        }
    }
    taken
}

/// Compares `count` texts made of tokens of a byte-level vocabulary, those that begin or end inside of a
/// character first: what is missing of it is made up. Such tokens decide where a word may be taken
/// apart, and no text that somebody thinks up has many of them.
pub fn compare_tokens(name: &str, encoders: &Encoders, json: &str, seed: u64, count: usize) {
    let (Ok(fast), Ok(value)) = (encoders.fast(), serde_json::from_str::<Value>(json)) else {
        return;
    };
    let Some(vocabulary) = value["model"]["vocab"].as_object() else {
        return;
    };
    let spelled = |token: &String| token.chars().map(byte_of).collect::<Option<Vec<u8>>>();
    let tokens: Vec<Vec<u8>> = vocabulary.keys().filter_map(spelled).collect();
    let (whole, cut): (Vec<_>, Vec<_>) = tokens
        .into_iter()
        .filter(|token| !token.is_ascii())
        .partition(|token| str::from_utf8(token).is_ok());
    let mut rng = Rng::new(seed);
    for round in 0..count {
        let mut text = String::new();
        for _ in 0..rng.between(1, 4) {
            let from = if rng.chance(70) { &cut } else { &whole };
            if !from.is_empty() {
                let token = rng.pick(from).clone();
                text.extend(completed(&mut rng, &token));
            }
        }
        let mut want = Vec::new();
        encoders.oracle().encode(&text, &mut want).expect("ids");
        let mut got = Vec::new();
        assert!(fast.encode(&text, &mut got));
        assert_eq!(got, want, "{name}, seed {seed}, round {round}: {text:?}");
    }
}

/// The byte that a character of a byte-level vocabulary spells.
fn byte_of(c: char) -> Option<u8> {
    let printable = |b: &u8| matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let code = u32::from(c);
    match u8::try_from(code) {
        Ok(byte) => Some(byte).filter(printable),
        Err(_) => (0..=255).filter(|b| !printable(b)).nth(code as usize - 256),
    }
}

/// A text that has the bytes of a token inside, with made-up bytes before and behind.
fn completed(rng: &mut Rng, token: &[u8]) -> Option<String> {
    let continues = |byte: &u8| byte & 0xc0 == 0x80;
    let head = token.iter().take_while(|byte| continues(byte)).count();
    for _ in 0..200 {
        let mut bytes = Vec::new();
        if head > 0 {
            bytes.push(0xc2 + rng.below(0x33) as u8);
            bytes.extend((0..rng.below(3)).map(|_| 0x80 + rng.below(64) as u8));
        }
        bytes.extend_from_slice(token);
        bytes.extend((0..rng.below(4)).map(|_| 0x80 + rng.below(64) as u8));
        if let Ok(text) = String::from_utf8(bytes) {
            return Some(text);
        }
    }
    None
}

/// Characters from everywhere: assigned or not, any plane.
fn any_characters(rng: &mut Rng) -> String {
    let most = [0x80, 0x800, 0x3000, 0x1_0000, 0x3_0000, 0x11_0000][rng.below(6)];
    let count = rng.between(1, 60);
    let mut text = String::new();
    for _ in 0..count {
        let block = rng.below(most) & !15;
        for _ in 0..rng.between(1, 4) {
            text.extend(char::from_u32((block + rng.below(16)) as u32));
        }
        if rng.chance(30) {
            text.push_str(rng.pick::<&str>(&[" ", "\n", "a", "'s", "7"]));
        }
    }
    text
}

#[test]
fn the_zoo() {
    let count = harness::setting("TURNTRIE_STRINGS", 250);
    let mut refused = Vec::new();
    for animal in zoo::all() {
        let encoders = Encoders::from_json(&animal.json).expect(animal.name);
        let tokenizer: Tokenizer = animal.json.parse().expect(animal.name);
        let writer = Writer::new(&zoo::contents(&tokenizer));
        match encoders.fast() {
            Ok(_) => {
                assert_eq!(encoders.name(), "turntrie");
                let taken = compare(animal.name, &encoders, &writer, 1, count);
                println!("{:45} {taken} of {count}", animal.name);
                assert!(taken > count / 2, "{}: {taken} of {count}", animal.name);
            }
            Err(why) => {
                assert_eq!(encoders.name(), "tokenizers");
                println!("{:45} {why}", animal.name);
                refused.push(animal.name);
            }
        }
    }
    let expected = [
        "byte-level, prefix space",
        "byte-level, single_word",
        "Metaspace first, split",
        "Strip, strips",
        "Unigram",
        "WordPiece",
        "WordLevel",
    ];
    assert_eq!(refused, expected);
}

#[test]
fn long_runs_and_long_texts() {
    let sizes = [63, 64, 65, 5000];
    for animal in zoo::all() {
        let encoders = Encoders::from_json(&animal.json).expect(animal.name);
        let Ok(fast) = encoders.fast() else {
            continue;
        };
        for unit in [
            "a",
            " ",
            "\n",
            "ab",
            "0",
            "字",
            "é",
            "👩\u{200d}",
            "\u{301}",
            "the ",
        ] {
            for size in sizes {
                let text = unit.repeat(size);
                let mut want = Vec::new();
                encoders.oracle().encode(&text, &mut want).expect("ids");
                let mut got = Vec::new();
                assert!(fast.encode(&text, &mut got));
                assert!(got == want, "{}: {size} times {unit:?}", animal.name);
            }
        }
        assert!(!fast.encode(&"a ".repeat(1 << 21), &mut Vec::new()));
    }
}

#[test]
fn a_piece_that_the_normalizer_empties_is_dropped() {
    for name in ["Metaspace always", "Metaspace first", "byte-level"] {
        let mut value: Value = serde_json::from_str(&zoo::named(name).json).expect("JSON");
        value["normalizer"] = json!({"type": "Strip", "strip_left": true, "strip_right": true});
        let encoders = Encoders::from_json(&value.to_string()).expect(name);
        let Ok(fast) = encoders.fast() else {
            // Which piece comes first is not asked behind a normalizer.
            assert_eq!(name, "Metaspace first");
            continue;
        };
        let token = value["added_tokens"][0]["content"].as_str().expect("text");
        for text in [
            "",
            " ",
            " \n ",
            " a ",
            &format!("{token}  {token} b {token} "),
        ] {
            let mut want = Vec::new();
            encoders.oracle().encode(text, &mut want).expect("ids");
            let mut got = Vec::new();
            assert!(fast.encode(text, &mut got));
            assert_eq!(got, want, "{name}: {text:?}");
        }
    }
}

#[test]
fn tokens_with_spaces_are_out_of_reach_where_spaces_are_marked() {
    for name in ["Metaspace always", "Metaspace never", "Prepend, Replace"] {
        let mut value: Value = serde_json::from_str(&zoo::named(name).json).expect("JSON");
        let model = &mut value["model"];
        let tokens = model["vocab"].as_object_mut().expect("tokens");
        let next = tokens.len();
        // They look like those with U+2581, which come first and last in the table.
        for (token, id) in [" ", " t", " a", "a "].into_iter().zip(next..) {
            tokens.insert(token.to_owned(), id.into());
        }
        let merges = model["merges"].as_array_mut().expect("merges");
        merges.insert(0, json!([" ", "t"]));
        merges.push(json!([" ", "a"]));
        merges.push(json!(["a", " "]));
        let encoders = Encoders::from_json(&value.to_string()).expect(name);
        assert!(encoders.fast().is_ok(), "{name}");
        let contents = zoo::contents(&value.to_string().parse().expect(name));
        let taken = compare(name, &encoders, &Writer::new(&contents), 4, 500);
        assert!(taken > 250, "{name}: {taken}");

        let tokens = value["model"]["vocab"].as_object_mut().expect("tokens");
        let id = tokens.remove("\u{2581}").expect("a token");
        tokens.insert("out of the way".to_owned(), id);
        value["model"]["merges"] = json!([]);
        let encoders = Encoders::from_json(&value.to_string()).expect(name);
        let why = encoders.fast().err().map(ToString::to_string);
        assert_eq!(
            why.as_deref(),
            Some("the vocabulary has no U+2581"),
            "{name}"
        );
    }
}

#[test]
fn a_token_listed_twice_is_left_to_the_crate() {
    let json = zoo::named("byte-level").json;
    let once = r#""vocab":{"#;
    assert_eq!(json.matches(once).count(), 1);
    let twice = json
        .replace(once, r#""vocab":{"the":599,"#)
        .replace(r#""ignore_merges":false"#, r#""ignore_merges":true"#);
    assert_eq!(twice.matches(r#""the":"#).count(), 2);
    let encoders = Encoders::from_json(&twice).expect("a backend");
    let why = encoders.fast().err().map(ToString::to_string);
    assert_eq!(why.as_deref(), Some("the vocabulary has a token twice"));
}

#[test]
fn an_id_of_two_tokens_is_left_to_the_crate() {
    let json = zoo::named("byte-level").json;
    let twice = json.replace(r#""vocab":{"#, r#""vocab":{"never seen":0,"#);
    let encoders = Encoders::from_json(&twice).expect("a backend");
    let why = encoders.fast().err().map(ToString::to_string);
    assert_eq!(why.as_deref(), Some("the vocabulary has an id twice"));
}

#[test]
fn a_split_that_begins_with_a_loop_forgets_no_match() {
    let mut value: Value = serde_json::from_str(&zoo::named("byte-level").json).expect("JSON");
    value["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": r"\s*[\r\n]+"}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
    ]});
    let model = &mut value["model"];
    let tokens = model["vocab"].as_object_mut().expect("tokens");
    let next = tokens.len();
    tokens.insert("ĊĠ".to_owned(), next.into());
    model["merges"]
        .as_array_mut()
        .expect("merges")
        .insert(0, json!(["Ċ", "Ġ"]));
    let encoders = Encoders::from_json(&value.to_string()).expect("a backend");
    let fast = encoders.fast().expect("a fast encoder");
    for text in ["\n y", "x\n  y", "\n\n  y", " \n \n y\n", "x \n"] {
        let mut want = Vec::new();
        encoders.oracle().encode(text, &mut want).expect("ids");
        let mut got = Vec::new();
        assert!(fast.encode(text, &mut got));
        assert_eq!(got, want, "{text:?}");
    }
}
