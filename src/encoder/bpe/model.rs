//! From the backend's JSON to a [`Bpe`], if its model is one that is understood.
//!
//! Two kinds are: *byte-level*, where each byte of a word is spelled as one character of a fixed
//! alphabet of 256, all in the vocabulary; and *character-level* with a complete `byte_fallback`, as
//! sentencepiece exports it. No word of either can meet an unknown token. Everything that would
//! change the rule (dropout, affixes, a missing byte) is refused with its name.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, MapAccess, SeqAccess, Visitor};

use super::Bpe;
use super::characters::Characters;
use super::joins::Joins;
use super::pairs::{MOST_MERGES, MOST_SYMBOLS, Rule};
use super::words::Tokens;
use crate::encoder::Refusal;
use crate::encoder::fast::SPACE;

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

/// Where in a vocabulary each token stands.
struct Places<'m> {
    vocab: &'m [(Cow<'m, str>, u32)],
    tokens: Tokens,
}

impl Places<'_> {
    fn of(&self, token: &str) -> Option<usize> {
        let place = self.tokens.get_word(token.as_bytes());
        place.map(|place| place as usize)
    }

    fn id(&self, token: &str) -> Option<u32> {
        self.of(token).map(|place| self.vocab[place].1)
    }
}

/// Pairs of tokens, by rank.
struct Merges<'j>(Vec<(Cow<'j, str>, Cow<'j, str>)>);

impl<'j> Model<'j> {
    /// The model of a byte-level pipeline: words are given as they are, the model sees their bytes.
    pub(in crate::encoder) fn byte_level(&self) -> Result<Bpe, Refusal> {
        self.check()?;
        let alphabet = alphabet();
        let places = self.places()?;
        let mut bytes = Box::new([0; 256]);
        for (byte, &letter) in (0_u8..=255).zip(&alphabet) {
            match places.id(letter.encode_utf8(&mut [0; 4])) {
                Some(id) => bytes[usize::from(byte)] = id,
                // No text has these.
                None if matches!(byte, 0xc0 | 0xc1 | 0xf5..) => {}
                None => return Err(no_token(byte)),
            }
        }
        let spelled = Characters::new(alphabet.into_iter().zip(0..=255));
        let rules = self.rules(&places)?;
        // A token with other letters is out of reach. All bytes are put behind each other: asking for a piece of
        // memory for each token takes long.
        let mut spellings = Vec::new();
        let mut spelled_tokens = Vec::with_capacity(self.vocab.0.len());
        for (token, id) in &self.vocab.0 {
            let start = spellings.len();
            let spell = |c| spelled.get(c).map(|byte| byte as u8);
            if token
                .chars()
                .all(|c| spell(c).map(|byte| spellings.push(byte)).is_some())
            {
                spelled_tokens.push((start..spellings.len(), *id));
            } else {
                spellings.truncate(start);
            }
        }
        let tokens = spelled_tokens.into_iter();
        let tokens = tokens.map(|(range, id)| (&spellings[range], id));
        let tokens: Vec<(&[u8], u32)> = tokens.filter(|(word, _)| !word.is_empty()).collect();
        let joins = joins(&rules, tokens.iter().copied());
        // And so is a word that is no text.
        let words = tokens.into_iter();
        let words = words.filter_map(|(word, id)| Some((str::from_utf8(word).ok()?, id)));
        let words = words.collect();
        Ok(Bpe::of_bytes(
            bytes,
            rules,
            joins,
            words,
            self.ignore_merges,
        ))
    }

    /// The model of a pipeline that hands over characters. With `spaced`, it writes U+2581 for each
    /// space, and words are given with spaces for both.
    pub(in crate::encoder) fn characters(&self, spaced: bool) -> Result<Bpe, Refusal> {
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
        let places = self.places()?;
        let mut bytes = Box::new([0; 256]);
        for (byte, slot) in (0_u8..=255).zip(bytes.iter_mut()) {
            let id = places.id(&format!("<0x{byte:02X}>"));
            *slot = id.ok_or_else(|| no_token(byte))?;
        }
        let rules = self.rules(&places)?;
        let mut is_byte = vec![false; MOST_SYMBOLS as usize];
        bytes.iter().for_each(|id| is_byte[*id as usize] = true);
        let mut merged = rules.iter().flat_map(|r| [r.left, r.right, r.id]);
        if merged.any(|id| is_byte[id as usize]) {
            return Err(Refusal::new(
                "a merge has a token that spells a byte".into(),
            ));
        }
        if spaced && places.of(SPACE.encode_utf8(&mut [0; 4])).is_none() {
            return Err(Refusal::new("the vocabulary has no U+2581".into()));
        }
        let mut spellings = String::new();
        let mut spelled = Vec::with_capacity(self.vocab.0.len());
        for (token, id) in &self.vocab.0 {
            // Out of reach.
            if token.is_empty() || spaced && token.contains(' ') {
                continue;
            }
            let start = spellings.len();
            if spaced {
                for part in token.split_inclusive(SPACE) {
                    let text = part.strip_suffix(SPACE);
                    spellings.push_str(text.unwrap_or(part));
                    spellings.push_str(if text.is_some() { " " } else { "" });
                }
            } else {
                spellings.push_str(token);
            }
            spelled.push((start..spellings.len(), *id));
        }
        let words: Vec<(&str, u32)> = spelled
            .into_iter()
            .map(|(range, id)| (&spellings[range], id))
            .collect();
        let tokens = Characters::new(words.iter().filter_map(|(word, id)| {
            let mut chars = word.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Some((c, *id)),
                _ => None,
            }
        }));
        let joins = joins(
            &rules,
            words.iter().map(|(word, id)| (word.as_bytes(), *id)),
        );
        Ok(Bpe::of_characters(tokens, bytes, rules, joins, words))
    }

    fn check(&self) -> Result<(), Refusal> {
        let affix = |affix: &Option<String>| affix.as_ref().is_some_and(|a| !a.is_empty());
        if self.dropout.is_some_and(|p| p != 0.0) {
            Err(Refusal::new("the model drops merges at random".into()))
        } else if affix(&self.continuing_subword_prefix) || affix(&self.end_of_word_suffix) {
            Err(Refusal::new("the model marks parts of words".into()))
        } else if self.vocab.0.len() >= MOST_SYMBOLS as usize
            || self.vocab.0.iter().any(|(_, id)| *id >= MOST_SYMBOLS)
        {
            Err(Refusal::new("the vocabulary has ids from 2^21 on".into()))
        } else if self.has_an_id_twice() {
            Err(Refusal::new("the vocabulary has an id twice".into()))
        } else if self.merges.0.len() >= MOST_MERGES {
            Err(Refusal::new("the model has too many merges".into()))
        } else {
            Ok(())
        }
    }

    /// Whether two tokens have the same id, below [`MOST_SYMBOLS`]. What is said of the text of an id would
    /// not hold then ([`joins`](super::joins), [`runs`](super::runs)).
    fn has_an_id_twice(&self) -> bool {
        let mut seen = vec![false; MOST_SYMBOLS as usize];
        let mut ids = self.vocab.0.iter().map(|(_, id)| *id as usize);
        ids.any(|id| std::mem::replace(&mut seen[id], true))
    }

    fn places(&self) -> Result<Places<'_>, Refusal> {
        let tokens = self.vocab.0.iter().map(|(token, _)| token.as_bytes());
        let tokens = Tokens::new(tokens.zip(0..).collect());
        if tokens.len() < self.vocab.0.len() {
            return Err(Refusal::new("the vocabulary has a token twice".into()));
        }
        Ok(Places {
            vocab: &self.vocab.0,
            tokens,
        })
    }

    fn rules(&self, places: &Places<'_>) -> Result<Vec<Rule>, Refusal> {
        let missing = || Refusal::new("a merge has a token that is not there".into());
        let mut joined = String::new();
        // Most vocabularies list what merges become in the order of the merges.
        let mut expected = 0;
        let merges = self.merges.0.iter().map(|(left, right)| {
            let next = self.vocab.0.get(expected);
            let follows =
                next.is_some_and(|(token, _)| token.strip_prefix(&**left) == Some(&**right));
            if !follows {
                joined.clear();
                joined.push_str(left);
                joined.push_str(right);
                expected = places.of(&joined).ok_or_else(missing)?;
            }
            let (_, id) = self.vocab.0[expected];
            expected += 1;
            Ok(Rule {
                left: places.id(left).ok_or_else(missing)?,
                right: places.id(right).ok_or_else(missing)?,
                id,
            })
        });
        merges.collect()
    }
}

/// What the results of the rules join, found among the tokens.
fn joins<'t>(rules: &[Rule], tokens: impl Iterator<Item = (&'t [u8], u32)>) -> Joins {
    let most = rules.iter().map(|rule| rule.id as usize + 1).max();
    let mut results = vec![false; most.unwrap_or(0)];
    for rule in rules {
        results[rule.id as usize] = true;
    }
    let is_result = |id: u32| results.get(id as usize).copied().unwrap_or(false);
    Joins::new(tokens.filter_map(|(token, id)| is_result(id).then_some(token)))
}

fn no_token(byte: u8) -> Refusal {
    Refusal::new(format!(
        "the vocabulary has no token for the byte {byte:#04x}"
    ))
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

    use super::alphabet;

    #[test]
    fn the_alphabet_is_that_of_the_crate() {
        let ours: BTreeSet<char> = alphabet().into_iter().collect();
        let theirs: BTreeSet<char> = ByteLevel::alphabet().into_iter().collect();
        assert_eq!(ours, theirs);
        assert_eq!(alphabet()[usize::from(b' ')], 'Ġ');
        assert_eq!(alphabet()[usize::from(b'\n')], 'Ċ');
        assert_eq!(alphabet()[0xad], 'Ń');
    }
}
