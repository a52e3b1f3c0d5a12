//! From the backend's JSON to a [`Bpe`], if its model is one that is understood.
//!
//! Two kinds are: *byte-level*, where each byte of a word is spelled as one character of a fixed
//! alphabet of 256, all in the vocabulary; and *character-level* with a complete `byte_fallback`, as
//! sentencepiece exports it. No word of either can meet an unknown token. Everything that would
//! change the rule (dropout, affixes, a missing byte) is refused with its name.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, MapAccess, SeqAccess, Visitor};

use super::pairs::Rule;
use super::{Bpe, Symbols};
use crate::encoder::Refusal;

/// The model of a backend, as its JSON spells it.
#[derive(Deserialize)]
pub(in crate::encoder) struct Model<'j> {
    #[serde(default)]
    dropout: Option<f64>,
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
    #[serde(default)]
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    #[serde(borrow)]
    vocab: Vocabulary<'j>,
    #[serde(borrow)]
    merges: Merges<'j>,
}

/// Tokens with their ids, in the order of the file.
struct Vocabulary<'j>(Vec<(Cow<'j, str>, u32)>);

/// Pairs of tokens, by rank.
struct Merges<'j>(Vec<(Cow<'j, str>, Cow<'j, str>)>);

impl<'j> Model<'j> {
    /// The model of a byte-level pipeline: words are given as they are, the model sees their bytes.
    pub(in crate::encoder) fn byte_level(&self) -> Result<Bpe, Refusal> {
        self.check()?;
        let alphabet = alphabet();
        let ids = self.ids();
        let mut bytes = Box::new([0; 256]);
        for (byte, &letter) in (0_u8..=255).zip(&alphabet) {
            match ids.get(letter.encode_utf8(&mut [0; 4]) as &str) {
                Some(&id) => bytes[usize::from(byte)] = id,
                // No text has these.
                None if matches!(byte, 0xc0 | 0xc1 | 0xf5..) => {}
                None => return Err(no_token(byte)),
            }
        }
        let spelled: HashMap<char, u8> = alphabet.into_iter().zip(0..=255).collect();
        // A token with other letters is out of reach, and so is one that is no text.
        let words = self.vocab.0.iter().filter_map(|(token, id)| {
            let word: Option<Vec<u8>> = token.chars().map(|c| spelled.get(&c).copied()).collect();
            let word = String::from_utf8(word?).ok()?;
            (!word.is_empty()).then(|| (word.into(), *id))
        });
        Bpe::new(
            Symbols::Bytes(bytes),
            self.rules(&ids)?,
            words.collect(),
            self.ignore_merges,
        )
    }

    /// The model of a pipeline that hands over characters, with the pairs of characters that occur in
    /// the result of some merge (see [`Joins`]).
    pub(in crate::encoder) fn characters(&self) -> Result<(Bpe, Joins), Refusal> {
        self.check()?;
        if !self.byte_fallback {
            return Err(Refusal::new(
                "characters that the vocabulary lacks become unknown tokens".into(),
            ));
        }
        if self.ignore_merges {
            return Err(Refusal::new(
                "the model has ignore_merges without bytes".into(),
            ));
        }
        let ids = self.ids();
        let mut bytes = Box::new([0; 256]);
        for (byte, slot) in (0_u8..=255).zip(bytes.iter_mut()) {
            let id = ids.get(format!("<0x{byte:02X}>").as_str());
            *slot = *id.ok_or_else(|| no_token(byte))?;
        }
        let rules = self.rules(&ids)?;
        let is_byte = |id: &u32| bytes.contains(id);
        if rules
            .iter()
            .any(|r| is_byte(&r.left) || is_byte(&r.right) || is_byte(&r.id))
        {
            return Err(Refusal::new(
                "a merge has a token that spells a byte".into(),
            ));
        }
        let mut tokens = HashMap::new();
        for (token, id) in &self.vocab.0 {
            let mut chars = token.chars();
            if let (Some(c), None) = (chars.next(), chars.next()) {
                tokens.insert(c, *id);
            }
        }
        let mut joins = Joins::default();
        for (left, right) in &self.merges.0 {
            joins.add(left, right);
        }
        let words = self.vocab.0.iter();
        let words = words.filter(|(token, _)| !token.is_empty());
        let words = words.map(|(token, id)| (token.as_ref().into(), *id));
        let bpe = Bpe::new(
            Symbols::Characters { tokens, bytes },
            rules,
            words.collect(),
            false,
        )?;
        Ok((bpe, joins))
    }

    fn check(&self) -> Result<(), Refusal> {
        let affix = |affix: &Option<String>| affix.as_ref().is_some_and(|a| !a.is_empty());
        if self.dropout.is_some_and(|p| p != 0.0) {
            Err(Refusal::new("the model drops merges at random".into()))
        } else if affix(&self.continuing_subword_prefix) || affix(&self.end_of_word_suffix) {
            Err(Refusal::new("the model marks parts of words".into()))
        } else {
            Ok(())
        }
    }

    fn ids(&self) -> HashMap<&str, u32> {
        let tokens = self.vocab.0.iter();
        tokens.map(|(token, id)| (token.as_ref(), *id)).collect()
    }

    fn rules(&self, ids: &HashMap<&str, u32>) -> Result<Vec<Rule>, Refusal> {
        let id = |token: &str| {
            ids.get(token)
                .copied()
                .ok_or_else(|| Refusal::new("a merge has a token that is not there".into()))
        };
        let mut joined = String::new();
        let merges = self.merges.0.iter().map(|(left, right)| {
            joined.clear();
            joined.push_str(left);
            joined.push_str(right);
            Ok(Rule {
                left: id(left)?,
                right: id(right)?,
                id: id(&joined)?,
            })
        });
        merges.collect()
    }
}

fn no_token(byte: u8) -> Refusal {
    Refusal::new(format!(
        "the vocabulary has no token for the byte {byte:#04x}"
    ))
}

/// Pairs of neighbouring characters inside results of merges.
///
/// No merge ever joins two characters that stand side by side in no result, so a word may be taken
/// apart between them: each side evolves as if it were alone. Only pairs of ASCII characters and of
/// one other, U+2581 (which sentencepiece writes for a space), are told apart; all others count as
/// joined.
pub(in crate::encoder) struct Joins(Box<[bool; SIDE * SIDE]>);

const SIDE: usize = 129;
const SPACE: char = '\u{2581}';

impl Default for Joins {
    fn default() -> Self {
        Joins(Box::new([false; SIDE * SIDE]))
    }
}

impl Joins {
    fn index(c: char) -> Option<usize> {
        match c {
            SPACE => Some(128),
            c if c.is_ascii() => Some(c as usize),
            _ => None,
        }
    }

    fn add(&mut self, left: &str, right: &str) {
        let mut before: Option<char> = None;
        for c in left.chars().chain(right.chars()) {
            if let (Some(a), Some(b)) = (before.and_then(Self::index), Self::index(c)) {
                self.0[a * SIDE + b] = true;
            }
            before = Some(c);
        }
    }

    /// Whether no merge joins these two where they stand side by side.
    pub(in crate::encoder) fn apart(&self, left: char, right: char) -> bool {
        match (Self::index(left), Self::index(right)) {
            (Some(a), Some(b)) => !self.0[a * SIDE + b],
            _ => false,
        }
    }

    /// Calls `word` for each part of `text` that no merge reaches out of.
    pub(in crate::encoder) fn split<'t>(&self, text: &'t str, mut word: impl FnMut(&'t str)) {
        let mut start = 0;
        let mut before: Option<usize> = None;
        for (at, c) in text.char_indices() {
            let index = Self::index(c);
            if let (Some(a), Some(b)) = (before, index)
                && !self.0[a * SIDE + b]
            {
                word(&text[start..at]);
                start = at;
            }
            before = index;
        }
        if start < text.len() {
            word(&text[start..]);
        }
    }
}

/// How byte-level vocabularies spell each byte: printable characters of Latin-1 as themselves, the
/// others, in order, as the characters from U+0100 on (GPT-2's `bytes_to_unicode`).
fn alphabet() -> [char; 256] {
    let mut letters = ['\0'; 256];
    let mut next = 256;
    for (byte, letter) in (0_u32..).zip(&mut letters) {
        let printable = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        let code = if printable {
            byte
        } else {
            next += 1;
            next - 1
        };
        *letter = char::from_u32(code).unwrap_or_default();
    }
    letters
}

impl<'de: 'j, 'j> Deserialize<'de> for Vocabulary<'j> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tokens<'j>(PhantomData<&'j ()>);
        impl<'de: 'j, 'j> Visitor<'de> for Tokens<'j> {
            type Value = Vocabulary<'j>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of tokens to ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut tokens = Vec::with_capacity(map.size_hint().unwrap_or(1 << 17));
                while let Some((Text(token), id)) = map.next_entry()? {
                    tokens.push((token, id));
                }
                Ok(Vocabulary(tokens))
            }
        }
        deserializer.deserialize_map(Tokens(PhantomData))
    }
}

impl<'de: 'j, 'j> Deserialize<'de> for Merges<'j> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs<'j>(PhantomData<&'j ()>);
        impl<'de: 'j, 'j> Visitor<'de> for Pairs<'j> {
            type Value = Merges<'j>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of pairs of tokens")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut merges = Vec::with_capacity(seq.size_hint().unwrap_or(1 << 17));
                while let Some(Pair(left, right)) = seq.next_element()? {
                    merges.push((left, right));
                }
                Ok(Merges(merges))
            }
        }
        deserializer.deserialize_seq(Pairs(PhantomData))
    }
}

/// A string, borrowed from the JSON where it is spelled without escapes.
#[derive(Deserialize)]
struct Text<'j>(#[serde(borrow)] Cow<'j, str>);

/// A merge: a list of two tokens, or in older files both in one string with a space between.
struct Pair<'j>(Cow<'j, str>, Cow<'j, str>);

impl<'de: 'j, 'j> Deserialize<'de> for Pair<'j> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<'j>(PhantomData<&'j ()>);
        impl<'de: 'j, 'j> Visitor<'de> for Either<'j> {
            type Value = Pair<'j>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("two tokens")
            }

            fn visit_borrowed_str<E: de::Error>(self, pair: &'de str) -> Result<Pair<'j>, E> {
                let (left, right) = halves(pair)?;
                Ok(Pair(left.into(), right.into()))
            }

            fn visit_str<E: de::Error>(self, pair: &str) -> Result<Pair<'j>, E> {
                let (left, right) = halves(pair)?;
                Ok(Pair(left.to_owned().into(), right.to_owned().into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Pair<'j>, A::Error> {
                match (seq.next_element()?, seq.next_element()?) {
                    (Some(Text(left)), Some(Text(right))) => Ok(Pair(left, right)),
                    _ => Err(de::Error::invalid_length(1, &self)),
                }
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

fn halves<E: de::Error>(pair: &str) -> Result<(&str, &str), E> {
    match pair.split_once(' ') {
        Some((left, right)) if !right.contains(' ') => Ok((left, right)),
        _ => Err(E::custom("a merge is not two tokens")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tokenizers::pre_tokenizers::byte_level::ByteLevel;

    use super::{Joins, alphabet};

    #[test]
    fn the_alphabet_is_that_of_the_crate() {
        let ours: BTreeSet<char> = alphabet().into_iter().collect();
        let theirs: BTreeSet<char> = ByteLevel::alphabet().into_iter().collect();
        assert_eq!(ours, theirs);
        assert_eq!(alphabet()[usize::from(b' ')], 'Ġ');
        assert_eq!(alphabet()[usize::from(b'\n')], 'Ċ');
        assert_eq!(alphabet()[0xad], 'Ń');
    }

    #[test]
    fn words_part_where_no_merge_joins() {
        let mut joins = Joins::default();
        joins.add("\u{2581}a", "b");
        joins.add("b", "é");
        let mut words = Vec::new();
        joins.split("\u{2581}ab\u{2581}aébbéaa", |word| words.push(word));
        assert_eq!(words, ["\u{2581}ab", "\u{2581}aéb", "béa", "a"]);
    }
}
