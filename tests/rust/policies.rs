//! What the static analysis says about each kind of tokenizer.

use serde_json::{Value, json};
use turntrie::cuts::{CutKind, CutPolicy};
use turntrie::engine::Engine;

use crate::zoo;

fn policy(name: &str) -> CutPolicy {
    CutPolicy::from_json(&zoo::named(name).json).expect(name)
}

fn edited(name: &str, edit: impl FnOnce(&mut Value)) -> CutPolicy {
    let mut value: Value = serde_json::from_str(&zoo::named(name).json).expect("JSON");
    edit(&mut value);
    CutPolicy::from_json(&value.to_string()).expect(name)
}

#[test]
fn normalized_tokens_need_an_identity_normalizer() {
    let with = policy("byte-level, normalized tokens");
    assert!(
        with.to_string()
            .contains("start of raw and of normalized added tokens")
    );
    assert!(with.refusals().is_empty());
    let without = policy("byte-level, NFC, normalized tokens");
    assert!(without.to_string().contains("start of raw added tokens"));
    assert_eq!(without.refusals().len(), 1);
    assert!(policy("byte-level, only normalized tokens").has_cuts());
    let inside = edited("byte-level, only normalized tokens", |v| {
        v["normalizer"] = json!({"type": "NFC"});
    });
    assert!(
        inside
            .to_string()
            .contains("cuts:          no added tokens; inside plain text")
    );
    assert_eq!(inside.refusals().len(), 1);
}

#[test]
fn no_cuts_come_with_a_reason() {
    for (policy, reason) in [
        (policy("byte-level, single_word"), "single_word"),
        (
            edited("no added tokens", |v| {
                v["normalizer"] = json!({"type": "Lowercase"})
            }),
            "no added tokens",
        ),
        (
            edited("byte-level", |v| v["model"]["dropout"] = json!(0.1)),
            "dropout",
        ),
    ] {
        assert!(!policy.has_cuts());
        assert!(
            policy.refusals().iter().any(|r| r.contains(reason)),
            "{policy}"
        );
        assert!(policy.to_string().contains(reason));
    }
}

#[test]
fn the_hold_back_is_that_of_the_longest_raw_token() {
    assert_eq!(policy("byte-level").hold_back(), "<|im_start|>".len() - 1);
    assert_eq!(policy("no added tokens").hold_back(), 0);
    assert_eq!(
        policy("Replace, newline runs").hold_back(),
        31 * '\u{2581}'.len_utf8() - 1
    );
}

#[test]
fn empty_and_repeated_contents_are_what_the_backend_makes_of_them() {
    let policy = edited("byte-level", |v| {
        let added = v["added_tokens"].as_array_mut().expect("added tokens");
        let mut empty = added[0].clone();
        empty["content"] = json!("");
        let mut again = added[0].clone();
        again["lstrip"] = json!(true);
        added.extend([empty, again]);
    });
    assert!(policy.has_cuts());
    // The later definition of a content wins.
    let cuts: Vec<_> = policy
        .cuts("a  <|im_start|>b", 0)
        .filter(|c| c.kind == CutKind::Raw)
        .map(|c| (c.at, c.anchor))
        .collect();
    assert_eq!(cuts, [(1, 3)]);
}

#[test]
fn a_strip_flag_moves_the_cut() {
    let policy = policy("byte-level, strips");
    let cuts = |text: &str| {
        policy
            .cuts(text, 0)
            .filter(|c| c.kind == CutKind::Raw)
            .map(|c| (c.at, c.anchor))
            .collect::<Vec<_>>()
    };
    assert_eq!(cuts("a \u{3000} <mask!>"), [(1, 6)]);
    assert_eq!(cuts("a<|asst|> x<tool>"), [(1, 1), (11, 11)]);
    // What `rstrip` took is not taken again.
    assert_eq!(cuts("<|asst|> \u{a0} <mask!>"), [(0, 0), (12, 12)]);
    // A token inside what `rstrip` swallowed is a cut; one that would be moved past itself is not,
    // and nothing is up to the end of the run.
    assert_eq!(
        cuts("<|asst|>\u{a0}\n\n\nx<tool>"),
        [(0, 0), (10, 10), (14, 14)]
    );
    assert_eq!(cuts("<|asst|>\u{a0} \n\u{a0}\nx<tool>"), [(0, 0), (16, 16)]);
}

#[test]
fn cuts_inside_plain_text_need_a_proof() {
    for (name, kind) in [
        ("byte-level", CutKind::Parted),
        ("no added tokens", CutKind::Parted),
        ("byte-level, three stages", CutKind::Parted),
        ("byte-level, gaps", CutKind::Parted),
        ("Replace, newline runs", CutKind::Unjoined),
        ("Metaspace first", CutKind::Unjoined),
        ("Prepend, Replace", CutKind::Unjoined),
    ] {
        let policy = policy(name);
        let kinds: Vec<_> = policy
            .cuts("the fox, 12 (of 3) jumps", 0)
            .map(|c| c.kind)
            .collect();
        assert!(kinds.contains(&kind), "{name}: {kinds:?}");
    }
    let normalizer = |json: Value| edited("byte-level", |v| v["normalizer"] = json);
    let splitting = |pattern: &str| {
        edited("byte-level", |v| {
            v["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = json!(pattern);
        })
    };
    for (policy, reason) in [
        (
            normalizer(json!({"type": "NFKC"})),
            "more than one character",
        ),
        (
            normalizer(json!({"type": "Prepend", "prepend": "_"})),
            "writes other characters",
        ),
        (
            policy("byte-level, normalized tokens with flags"),
            "strip blanks",
        ),
        (policy("Prepend, Replace, normalized tokens"), "begins anew"),
        (
            edited("Replace, newline runs", |v| {
                v["normalizer"]["pattern"]["String"] = json!("ab");
            }),
            "more than one character",
        ),
        (
            edited("Metaspace never", |v| {
                v["normalizer"] = json!({"type": "NFC"})
            }),
            "composes characters",
        ),
        (policy("Unigram"), "not a BPE"),
        (splitting(r"(?<=a)b|\s+"), "unknown kind"),
        (splitting(r"[\s\S]+"), "always parted"),
    ] {
        let inside = |r: &&String| r.starts_with("not inside plain text: ");
        let refusal = policy.refusals().iter().find(inside).expect(reason);
        assert!(refusal.contains(reason), "{reason}: {refusal}");
        let seams = policy
            .cuts("the fox, 12 (of 3) jumps", 0)
            .filter(|c| matches!(c.kind, CutKind::Parted | CutKind::Unjoined));
        assert_eq!(seams.count(), 0, "{reason}");
    }
}

#[test]
fn pairs_are_those_that_the_split_parts() {
    let policy = policy("byte-level");
    let parted = |text: &str, at: usize| policy.cuts(text, 0).any(|cut| cut.at == at);
    for (text, at) in [
        ("word word", 4),
        ("word\nword", 4),
        ("word.word", 4),
        ("a1b", 1),
        ("a1b", 2),
        ("(1)", 1),
        ("字。字", 3),
        ("1 a", 1),
        (" \na", 2),
        (".\n1", 2),
    ] {
        assert!(parted(text, at), "{text:?} at {at}");
    }
    for (text, at) in [
        ("word word", 2),
        ("a  b", 2),
        ("a \nb", 2),
        (".word", 1),
        (".\n.", 1),
        ("12 ", 1),
        ("字字", 3),
        ("\n.", 0),
        ("\n a", 1),
        ("a", 0),
    ] {
        assert!(!parted(text, at), "{text:?} at {at}");
    }
}

#[test]
fn a_broken_backend_is_an_error() {
    assert!(CutPolicy::from_json("{}").is_err());
    assert!(Engine::from_json("not JSON", 0).is_err());
}

#[test]
fn the_engine_describes_itself() {
    let engine = Engine::from_json(&zoo::named("byte-level").json, 1 << 20).expect("an engine");
    let description = engine.policy().to_string();
    assert!(
        description.contains("Sequence(Split, ByteLevel)"),
        "{description}"
    );
    assert!(engine.vocab_size() > 300);
}
