//! Small tokenizers of each kind, made here: trained on a few sentences, or written by hand.
//!
//! Each is the JSON a live backend would give. The added tokens are chosen to collide: prefixes,
//! infixes and overlaps of one another, runs of whitespace, and every strip flag.

use serde_json::{Value, json};
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, PreTokenizerWrapper, Tokenizer, TokenizerImpl};
use tokenizers::{DecoderWrapper, NormalizerWrapper, PostProcessorWrapper};

/// A tokenizer of the zoo.
pub struct Animal {
    pub name: &'static str,
    pub json: String,
    /// Whether there are no cuts inside its plain text.
    pub seamless: bool,
}

/// Those without cuts inside plain text: what the fast encoder refuses, and normalized tokens that
/// strip blanks or stand in front of whole words.
const SEAMLESS: [&str; 9] = [
    "byte-level, prefix space",
    "byte-level, normalized tokens with flags",
    "byte-level, single_word",
    "Metaspace first, split",
    "Prepend, Replace, normalized tokens",
    "Strip, strips",
    "Unigram",
    "WordPiece",
    "WordLevel",
];

const SPLIT: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The last stage of a pipeline that splits off digits and ideographs before.
const THIRD: &str = r"[!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const CORPUS: &[&str] = &[
    "the user asked the assistant to call a tool and return the result of the function",
    "import os\nimport sys\n\ndef function(self, word):\n    return None\n",
    "function abab baba abba ab ba <tool>call</tool> hello world, don't we'll it's",
    "naïve café Straße Здравствуйте мир 日本語テスト 中文测试 12345 2024-01-02",
    "the quick brown fox jumps over the lazy dog; the end of the word norm normal",
];

/// All of them.
pub fn all() -> Vec<Animal> {
    let bytes = byte_level_model();
    let pieces = sentence_piece_model();
    let split = json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}]});
    let gpt2 = json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true});
    let metaspace = |scheme: &str, split: bool| json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": scheme, "split": split});
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"});
    let prepend = json!({"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u{2581}"}, replace]});
    let empty = json!({"type": "Sequence", "normalizers": []});
    let nfc = json!({"type": "NFC"});
    let lower = json!({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}]});
    let strip = json!({"type": "Strip", "strip_left": true, "strip_right": true});
    let none = Value::Null;

    let animal =
        |name, normalizer: &Value, pre_tokenizer: &Value, model: &Value, added: &[Value]| Animal {
            name,
            json: assemble(normalizer, pre_tokenizer, model, added),
            seamless: SEAMLESS.contains(&name),
        };
    vec![
        animal("byte-level", &none, &split, &bytes, &chat()),
        animal("byte-level, nested", &none, &split, &bytes, &nested()),
        animal("byte-level, NFC", &nfc, &split, &bytes, &nested()),
        animal("byte-level, strips", &none, &split, &bytes, &strips()),
        animal("byte-level, prefix space", &none, &gpt2, &bytes, &strips()),
        animal(
            "byte-level, normalized tokens",
            &empty,
            &split,
            &bytes,
            &normalized(),
        ),
        animal(
            "byte-level, normalized tokens with flags",
            &none,
            &split,
            &bytes,
            &normalized_strips(),
        ),
        animal(
            "byte-level, only normalized tokens",
            &none,
            &split,
            &bytes,
            &only_normalized(),
        ),
        animal(
            "byte-level, NFC, normalized tokens",
            &nfc,
            &split,
            &bytes,
            &normalized(),
        ),
        animal(
            "byte-level, single_word",
            &none,
            &split,
            &bytes,
            &single_word(),
        ),
        animal(
            "Metaspace first",
            &none,
            &metaspace("first", false),
            &pieces,
            &nested(),
        ),
        animal(
            "Metaspace always",
            &none,
            &metaspace("always", false),
            &pieces,
            &strips(),
        ),
        animal(
            "Metaspace never",
            &none,
            &metaspace("never", false),
            &pieces,
            &newlines(),
        ),
        animal(
            "Metaspace first, split",
            &none,
            &metaspace("first", true),
            &pieces,
            &normalized_strips(),
        ),
        animal("Prepend, Replace", &prepend, &none, &pieces, &nested()),
        animal(
            "Prepend, Replace, normalized tokens",
            &prepend,
            &none,
            &pieces,
            &normalized(),
        ),
        animal(
            "Replace, newline runs",
            &replace,
            &none,
            &pieces,
            &newlines(),
        ),
        animal(
            "Strip, strips",
            &strip,
            &metaspace("first", true),
            &pieces,
            &strips(),
        ),
        animal(
            "Unigram",
            &none,
            &metaspace("first", true),
            &unigram_model(),
            &nested(),
        ),
        animal(
            "WordPiece",
            &lower,
            &json!({"type": "BertPreTokenizer"}),
            &word_piece_model(),
            &normalized(),
        ),
        animal(
            "WordLevel",
            &none,
            &json!({"type": "Whitespace"}),
            &word_level_model(),
            &strips(),
        ),
        animal("no added tokens", &none, &split, &bytes, &[]),
        animal(
            "byte-level, three stages",
            &empty,
            &stages(&[r"\p{N}{1,3}", "[一-龥\u{3040}-ゟ゠-ヿ]+", THIRD]),
            &bytes,
            &normalized(),
        ),
        animal(
            "byte-level, gaps",
            &none,
            &stages(&[r"\p{N}{1,2}|\s+(?!\S)|\s"]),
            &bytes,
            &chat(),
        ),
        animal(
            "byte-level, line by line",
            &none,
            &stages(&[r"[\r\n]", SPLIT]),
            &bytes,
            &strips(),
        ),
        animal(
            "byte-level, matches only",
            &nfc,
            &json!({"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Removed", "invert": true},
                {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]}),
            &bytes,
            &strips(),
        ),
    ]
}

/// Splits, one after another, and the bytes of what they leave.
fn stages(patterns: &[&str]) -> Value {
    let mut parts: Vec<Value> = patterns
        .iter()
        .map(|pattern| json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false}))
        .collect();
    parts.push(json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}));
    json!({"type": "Sequence", "pretokenizers": parts})
}

/// The one of that name.
pub fn named(name: &str) -> Animal {
    all()
        .into_iter()
        .find(|animal| animal.name == name)
        .unwrap_or_else(|| panic!("no {name} in the zoo"))
}

/// Contents of the added tokens, as the loaded tokenizer has them.
pub fn contents(tokenizer: &Tokenizer) -> Vec<String> {
    let mut contents: Vec<String> = tokenizer
        .get_added_tokens_decoder()
        .into_values()
        .map(|token: AddedToken| token.content)
        .collect();
    contents.sort();
    contents
}

fn assemble(normalizer: &Value, pre_tokenizer: &Value, model: &Value, added: &[Value]) -> String {
    let start = model["vocab"].as_object().map_or_else(
        || model["vocab"].as_array().map_or(0, Vec::len),
        serde_json::Map::len,
    );
    let added: Vec<Value> = added
        .iter()
        .enumerate()
        .map(|(i, token)| {
            let mut token = token.clone();
            token["id"] = json!(start + i);
            token
        })
        .collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": null,
        "decoder": null, "model": model,
    })
    .to_string()
}

/// An added token; `flags` holds `l`, `r` (strips), `w` (single word), `n` (normalized).
fn token(content: &str, flags: &str) -> Value {
    let flag = |c| flags.contains(c);
    json!({"id": 0, "content": content, "single_word": flag('w'), "lstrip": flag('l'),
        "rstrip": flag('r'), "normalized": flag('n'), "special": !flag('n')})
}

fn tokens(list: &[(&str, &str)]) -> Vec<Value> {
    list.iter()
        .map(|(content, flags)| token(content, flags))
        .collect()
}

fn chat() -> Vec<Value> {
    tokens(&[
        ("<|im_start|>", ""),
        ("<|im_end|>", ""),
        ("<think>", ""),
        ("</think>", ""),
        ("<tool>", ""),
    ])
}

fn nested() -> Vec<Value> {
    tokens(&[
        ("<|im_start|>", ""),
        ("<|im_end|>", ""),
        ("<tool>", ""),
        ("<tool>call", ""),
        ("<tool>calling", ""),
        ("q<tool>z", ""),
        ("<tool>z~", ""),
        ("abab", ""),
        ("baba", ""),
        ("b", ""),
        ("\n\n\n", ""),
        ("  <i>", ""),
        ("é", ""),
        ("字字", ""),
        ("\u{301}", ""),
        ("\u{2581}\u{2581}", ""),
        ("> </", ""),
    ])
}

fn strips() -> Vec<Value> {
    let mut all = nested();
    all.extend(tokens(&[
        ("<|asst|>", "r"),
        ("<mask!>", "l"),
        ("<both>", "lr"),
        ("<both>x", "l"),
        ("<both>xy", ""),
        ("\n\n", ""),
        ("\n", ""),
        (" \n", "l"),
        ("\t", "r"),
        ("\t<", "lr"),
        ("  ", ""),
    ]));
    all
}

fn newlines() -> Vec<Value> {
    let mut all = chat();
    for n in 1..=31 {
        all.push(token(&"\n".repeat(n), ""));
        all.push(token(&"\t".repeat(n), ""));
        if n > 1 {
            all.push(token(&"\u{2581}".repeat(n), ""));
        }
    }
    all.extend(tokens(&[
        ("<h1>", ""),
        ("</h1>", ""),
        ("<table>", ""),
        ("<", ""),
        ("\n<h1>", ""),
    ]));
    all
}

fn normalized() -> Vec<Value> {
    let mut all = nested();
    all.extend(tokens(&[
        ("~norm~", "n"),
        ("z~q", "n"),
        ("q~no", "n"),
        ("~", "n"),
        ("<|user|>", "n"),
        ("<|user|><|im", "n"),
        ("user <tool", "n"),
        ("Norm", "n"),
        ("ab ", "n"),
        ("é\u{301}", "n"),
        ("call </", "n"),
    ]));
    all
}

fn normalized_strips() -> Vec<Value> {
    let mut all = strips();
    all.extend(tokens(&[
        ("~norm~", "nl"),
        ("z~q", "nr"),
        ("q~no", "nlr"),
        ("~", "nl"),
        ("<|user|>", "nlr"),
        (" ~", "n"),
        ("\r\n", "nl"),
        ("word ", "n"),
        ("a  ", "nr"),
        ("user <tool", "n"),
    ]));
    all
}

fn only_normalized() -> Vec<Value> {
    tokens(&[
        ("<|user|>", "n"),
        ("<|assistant|>", "n"),
        ("<|user|>x", "n"),
        ("~norm~", "n"),
        ("abab", "n"),
    ])
}

fn single_word() -> Vec<Value> {
    let mut all = strips();
    all.extend(tokens(&[
        ("word", "w"),
        ("<sw>", "w"),
        ("word word", "w"),
        ("norm", "wl"),
    ]));
    all
}

/// A byte-level BPE with a few hundred merges.
fn byte_level_model() -> Value {
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(600)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    trained(
        trainer,
        PreTokenizerWrapper::ByteLevel(ByteLevel::new(false, true, true)),
    )
}

/// A BPE over characters with metaspaces and a complete byte fallback.
fn sentence_piece_model() -> Value {
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(400)
        .build();
    let metaspace = json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": true});
    let metaspace = serde_json::from_value(metaspace).expect("a pre-tokenizer");
    let mut model = trained(trainer, metaspace);
    let vocab = model["vocab"].as_object_mut().expect("a vocabulary");
    let bytes = (0..256).map(|b| format!("<0x{b:02X}>"));
    for piece in std::iter::once("<unk>".to_owned()).chain(bytes) {
        let next = vocab.len();
        vocab.insert(piece, json!(next));
    }
    model["byte_fallback"] = json!(true);
    model["unk_token"] = json!("<unk>");
    model["fuse_unk"] = json!(true);
    model
}

fn trained(mut trainer: BpeTrainer, pre_tokenizer: PreTokenizerWrapper) -> Value {
    type Trained = TokenizerImpl<
        BPE,
        NormalizerWrapper,
        PreTokenizerWrapper,
        PostProcessorWrapper,
        DecoderWrapper,
    >;
    let mut tokenizer: Trained = TokenizerImpl::new(BPE::default());
    tokenizer.with_pre_tokenizer(Some(pre_tokenizer));
    tokenizer
        .train(&mut trainer, CORPUS.iter().copied())
        .expect("training");
    serde_json::to_value(tokenizer.get_model()).expect("a model")
}

fn unigram_model() -> Value {
    let mut vocab = vec![json!(["<unk>", 0.0])];
    for (i, piece) in [
        "\u{2581}",
        "a",
        "b",
        "ab",
        "e",
        "t",
        "h",
        "the",
        "\u{2581}the",
        "\u{2581}a",
        "o",
        "n",
        "no",
        "r",
        "m",
        "norm",
        "w",
        "word",
        "d",
        "s",
        "u",
        "us",
        "er",
    ]
    .iter()
    .enumerate()
    {
        vocab.push(json!([piece, -2.0 - i as f64 / 7.0]));
    }
    json!({"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": false})
}

fn word_piece_model() -> Value {
    let pieces = [
        "[UNK]", "the", "a", "b", "##b", "##a", "user", "##er", "us", "word", "norm", "##s",
        "call", ",", ".", "<", ">", "~", "tool",
    ];
    json!({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 20, "vocab": numbered(&pieces)})
}

fn word_level_model() -> Value {
    let words = [
        "[UNK]", "the", "a", "user", "word", "norm", "call", ",", ".", "<", ">", "tool", "of",
    ];
    json!({"type": "WordLevel", "unk_token": "[UNK]", "vocab": numbered(&words)})
}

fn numbered(pieces: &[&str]) -> Value {
    pieces
        .iter()
        .enumerate()
        .map(|(i, p)| ((*p).to_owned(), json!(i)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
