//! What happens to a plain piece before it is split: the backend's own normalizer, short-cut.
//!
//! Any normalizer is exact here, since the `tokenizers` crate's own is run. Three common ones are
//! done without it, as its alignments cost more than everything else: none; NFC over characters
//! that it provably leaves alone; and literal insertions and replacements, which are those of `str`.

use std::borrow::Cow;

use serde_json::Value;
use tokenizers::{NormalizedString, NormalizerWrapper};

/// The normalizer of a backend.
pub(super) struct Normalizer {
    wrapper: Option<NormalizerWrapper>,
    steps: Option<Vec<Step>>,
}

#[derive(Clone)]
enum Step {
    Nfc(tokenizers::normalizers::NFC),
    Prepend(String),
    Replace(String, String),
}

/// How a normalizer acts on a text in two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    /// It does nothing.
    Same,
    /// NFC, and nothing else.
    Composed,
    /// It puts something in front of the piece, and maps each character for itself.
    Mapped,
}

impl Normalizer {
    pub(super) fn new(wrapper: Option<&NormalizerWrapper>) -> Self {
        let json = serde_json::to_value(wrapper).unwrap_or_default();
        let mut steps = Vec::new();
        let known = wrapper.is_none() || read(&json, &mut steps);
        Normalizer {
            wrapper: wrapper.cloned(),
            steps: known.then_some(steps),
        }
    }

    /// A normalizer for those who do not tell `to` from `from`, if the last step of this one writes
    /// the one for the other: without that step.
    pub(super) fn before_writing(&self, from: &str, to: &str) -> Option<Normalizer> {
        let (last, before) = self.steps.as_ref()?.split_last()?;
        if !matches!(last, Step::Replace(a, b) if a == from && b == to) {
            return None;
        }
        let mut steps = before.to_vec();
        // What is put in front is seen by no other step: it may be spelled either way.
        if steps.iter().all(|step| matches!(step, Step::Prepend(_))) {
            for step in &mut steps {
                if let Step::Prepend(head) = step {
                    *head = head.replace(to, from);
                }
            }
        }
        Some(Normalizer {
            wrapper: None,
            steps: Some(steps),
        })
    }

    /// Whether every text is left as it is.
    pub(super) fn is_identity(&self) -> bool {
        self.steps.as_ref().is_some_and(Vec::is_empty)
    }

    /// Whether no text has a character `c` afterwards.
    pub(super) fn removes(&self, c: &str) -> bool {
        let mut removed = false;
        for step in self.steps.iter().flatten() {
            match step {
                Step::Replace(from, to) if from == c => removed = !to.contains(c),
                Step::Replace(_, to) | Step::Prepend(to) if to.contains(c) => removed = false,
                _ => {}
            }
        }
        removed
    }

    /// What becomes of a text in two parts; see [`Parts`].
    pub(super) fn parts(&self) -> Option<Parts> {
        let steps = self.steps.as_ref()?;
        if steps.iter().all(|step| matches!(step, Step::Nfc(_))) {
            return Some(if steps.is_empty() {
                Parts::Same
            } else {
                Parts::Composed
            });
        }
        let one = |text: &str| text.chars().count() == 1;
        let apart = steps.iter().all(|step| match step {
            Step::Prepend(_) => true,
            Step::Replace(from, to) => one(from) && !to.is_empty(),
            Step::Nfc(_) => false,
        });
        apart.then_some(Parts::Mapped)
    }

    /// What becomes of the rest of a piece whose beginning was normalized before: nothing is put in
    /// front of it.
    pub(super) fn apply_to_rest<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for step in self.steps.iter().flatten() {
            if let Step::Replace(from, to) = step
                && text.contains(from.as_str())
            {
                text = Cow::Owned(text.replace(from.as_str(), to));
            }
        }
        text
    }

    /// What becomes of a piece.
    pub(super) fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(steps) = &self.steps else {
            return match &self.wrapper {
                Some(wrapper) => Cow::Owned(run(wrapper, text)),
                None => Cow::Borrowed(text),
            };
        };
        let mut text = Cow::Borrowed(text);
        for step in steps {
            match step {
                Step::Nfc(nfc) => {
                    if !text.is_ascii() && !text.chars().all(stays) {
                        text = Cow::Owned(run(nfc, &text));
                    }
                }
                Step::Prepend(head) => {
                    if !text.is_empty() {
                        text = Cow::Owned(format!("{head}{text}"));
                    }
                }
                Step::Replace(from, to) => {
                    if text.contains(from.as_str()) {
                        text = Cow::Owned(text.replace(from.as_str(), to));
                    }
                }
            }
        }
        text
    }
}

/// The crate ignores the errors of a normalizer.
fn run(normalizer: &impl tokenizers::Normalizer, text: &str) -> String {
    let mut normalized = NormalizedString::from(text);
    let _ = normalizer.normalize(&mut normalized);
    normalized.get().to_owned()
}

/// Reads the steps of a normalizer; false if one is not known.
fn read(json: &Value, steps: &mut Vec<Step>) -> bool {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match json["type"].as_str() {
        Some("Sequence") => json["normalizers"]
            .as_array()
            .is_some_and(|parts| parts.iter().all(|part| read(part, steps))),
        Some("NFC") => {
            steps.push(Step::Nfc(tokenizers::normalizers::NFC));
            true
        }
        Some("Prepend") => match text(&json["prepend"]) {
            Some(head) => {
                steps.push(Step::Prepend(head));
                true
            }
            None => false,
        },
        Some("Replace") => match (text(&json["pattern"]["String"]), text(&json["content"])) {
            (Some(from), Some(to)) if !from.is_empty() => {
                steps.push(Step::Replace(from, to));
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// Characters that NFC leaves alone wherever they stand: none of them decomposes or is reordered, and
/// none joins a character before it (`tests` has the proof by exhaustion). A text of nothing else is
/// its own NFC.
pub(crate) fn stays(c: char) -> bool {
    match u32::from(c) {
        // ASCII and Latin
        0..0x300
        // Cyrillic
        | 0x400..0x483
        // punctuation and currency
        | 0x2010..0x2100
        // arrows, mathematics, boxes, symbols, without two brackets that decompose
        | 0x2190..0x2329
        | 0x232b..0x2adc
        // CJK: punctuation, Hiragana, Katakana, ideographs, Hangul syllables, full width
        | 0x3001..0x302a
        | 0x3041..0x3099
        | 0x309b..0x3130
        | 0x3400..0xa000
        | 0xac00..0xd7a4
        | 0xff01..0xfff0
        // emoji
        | 0x1f300..0x1fb00 => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tokenizers::normalizers::{NFC, NFD};

    use super::{Normalizer, run, stays};

    #[test]
    fn what_stays_stays() {
        let all = || (0..=0x10_ffff).filter_map(char::from_u32);
        // Alone, behind and in front of others: not decomposed, not moved, not joined.
        let mut second = HashSet::new();
        for c in all() {
            let apart: Vec<char> = run(&NFD, &c.to_string()).chars().collect();
            second.extend(apart.iter().skip(1).copied());
            if stays(c) {
                assert_eq!(run(&NFC, &c.to_string()), c.to_string(), "{c:?}");
                let behind = format!("a\u{323}{c}\u{301}");
                assert_eq!(run(&NFD, &behind).chars().next(), Some('a'));
            }
        }
        for c in second {
            assert!(!stays(c), "{c:?} joins the character before it");
        }
        for pair in ["가\u{11a8}", "e\u{301}", "か\u{3099}"] {
            assert!(!pair.chars().all(stays), "{pair}");
        }
    }

    #[test]
    fn without_its_last_step_it_writes_the_same_but_for_spaces() {
        let mark = r#"{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}"#;
        for (before, known) in [
            ("", true),
            (r#"{"type": "Prepend", "prepend": "▁"},"#, true),
            (
                r#"{"type": "Prepend", "prepend": "▁ x"}, {"type": "NFC"},"#,
                true,
            ),
            (
                r#"{"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "_"},"#,
                true,
            ),
            (r#"{"type": "Lowercase"},"#, false),
        ] {
            let json = format!(r#"{{"type": "Sequence", "normalizers": [{before} {mark}]}}"#);
            let wrapper: tokenizers::NormalizerWrapper = serde_json::from_str(&json).expect(&json);
            let whole = Normalizer::new(Some(&wrapper));
            assert!(whole.before_writing("▁", " ").is_none());
            let early = whole.before_writing(" ", "▁");
            assert_eq!(early.is_some(), known, "{json}");
            let Some(early) = early else { continue };
            for text in ["", " ", "a  b", "▁a ▁", "É e\u{301} 漢字", "A\nB "] {
                let spaced = early.apply(text).replace('▁', " ");
                assert_eq!(
                    spaced,
                    whole.apply(text).replace('▁', " "),
                    "{json} {text:?}"
                );
            }
        }
    }

    #[test]
    fn steps_are_those_of_the_crate() {
        for json in [
            r#"{"type": "NFC"}"#,
            r#"{"type": "Prepend", "prepend": "_"}"#,
            r#"{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}"#,
            r#"{"type": "Replace", "pattern": {"Regex": " +"}, "content": "▁"}"#,
            r#"{"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}"#,
            r#"{"type": "Sequence", "normalizers": []}"#,
            r#"{"type": "Lowercase"}"#,
        ] {
            let wrapper: tokenizers::NormalizerWrapper = serde_json::from_str(json).expect(json);
            let ours = Normalizer::new(Some(&wrapper));
            for text in [
                "",
                " ",
                "a  b",
                "É e\u{301} 漢字 か\u{3099}",
                "가\u{11a8}",
                "A\nB",
            ] {
                assert_eq!(ours.apply(text), run(&wrapper, text), "{json} {text:?}");
            }
        }
    }
}
