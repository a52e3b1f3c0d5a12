//! Our scan for added tokens against the backend's own, piece by piece.
//!
//! The backend uses another automaton (`daachorse`) than we do (`aho-corasick`). Cuts must be
//! starts of its pieces, and all of them where no strip flag makes pieces overlap.

use tokenizers::{OffsetReferential, OffsetType, Tokenizer};
use turntrie::cuts::{CutKind, CutPolicy};
use turntrie::encoder::{Encoders, Part};

use crate::harness::{self, Outcome};
use crate::rng::Rng;
use crate::texts::Writer;
use crate::zoo;

/// Starts of the pieces of added tokens, raw ones apart from normalized ones.
fn pieces(tokenizer: &Tokenizer, text: &str) -> Vec<(usize, CutKind)> {
    let added = tokenizer.get_added_tokens_decoder();
    tokenizer
        .get_added_vocabulary()
        .extract_and_normalize(tokenizer.get_normalizer(), text)
        .get_splits(OffsetReferential::Original, OffsetType::Byte)
        .into_iter()
        .filter_map(|(_, (start, _), tokens)| {
            let token = &added[&tokens.as_ref()?.first()?.id];
            let kind = if token.normalized {
                CutKind::Normalized
            } else {
                CutKind::Raw
            };
            Some((start, kind))
        })
        .collect()
}

#[test]
fn cuts_are_the_backends_pieces() {
    let cases = 40 * harness::setting("TURNTRIE_ROUNDS", 8);
    for animal in zoo::all() {
        let tokenizer: Tokenizer = animal.json.parse().expect(animal.name);
        let policy = CutPolicy::from_json(&animal.json).expect(animal.name);
        if !policy.has_cuts() {
            continue;
        }
        let added = tokenizer.get_added_tokens_decoder();
        let overlapping = added.values().any(|t| t.rstrip);
        let refused = "normalized added tokens: the normalizer changes the text first";
        let normalized = !policy.refusals().iter().any(|r| r.contains(refused));
        let writer = Writer::new(&zoo::contents(&tokenizer));
        let mut rng = Rng::new(7);
        let mut cuts = 0;
        for _ in 0..cases {
            let size = rng.between(1, 60);
            let text = writer.text(&mut rng, size);
            if harness::outcome(|| {
                pieces(&tokenizer, &text);
                Ok(Vec::new())
            }) == Outcome::Panic
            {
                continue;
            }
            let mut want = pieces(&tokenizer, &text);
            want.retain(|(_, kind)| normalized || *kind == CutKind::Raw);
            let mut got: Vec<_> = policy.cuts(&text, 0).map(|c| (c.at, c.kind)).collect();
            assert!(
                got.windows(2).all(|w| w[0].0 < w[1].0),
                "{}: {text:?}",
                animal.name
            );
            // A scan that starts at a cut finds the rest of them.
            if let Some(&(at, _)) = got.get(rng.below(got.len().max(1))) {
                let rest: Vec<_> = policy.cuts(&text, at).map(|c| (c.at, c.kind)).collect();
                let rest: Vec<_> = rest.into_iter().filter(|c| c.0 > at).collect();
                let after: Vec<_> = got.iter().copied().filter(|c| c.0 > at).collect();
                assert_eq!(rest, after, "{}, from {at}: {text:?}", animal.name);
            }
            got.retain(|(_, kind)| matches!(kind, CutKind::Raw | CutKind::Normalized));
            if overlapping {
                assert!(
                    got.iter().all(|cut| want.contains(cut)),
                    "{}: {text:?}",
                    animal.name
                );
            } else {
                assert_eq!(got, want, "{}: {text:?}", animal.name);
            }
            cuts += got.len();
        }
        println!("{:45} {cuts} cuts", animal.name);
        let some = !zoo::contents(&tokenizer).is_empty();
        assert!(cuts > cases || !some, "{}", animal.name);
    }
}

#[test]
fn factors_at_every_cut() {
    let cases = 20 * harness::setting("TURNTRIE_ROUNDS", 8);
    for animal in zoo::all() {
        let seams = factor(&animal, cases);
        println!("{:45} {seams} seams", animal.name);
        assert_eq!(seams == 0, animal.seamless, "{}", animal.name);
    }
}

/// Encodes both sides of every cut for themselves; returns how many cuts were seams.
fn factor(animal: &zoo::Animal, cases: usize) -> usize {
    let encoders = Encoders::from_json(&animal.json).expect(animal.name);
    let tokenizer: Tokenizer = animal.json.parse().expect(animal.name);
    let policy = CutPolicy::of(&encoders).expect(animal.name);
    let writer = Writer::new(&zoo::contents(&tokenizer));
    let mut rng = Rng::new(11);
    let encode = |text: &str| {
        harness::outcome(|| {
            tokenizer
                .encode_fast(text, false)
                .map(|e| e.get_ids().to_vec())
                .map_err(|e| turntrie::error::Error::new(e.to_string()))
        })
    };
    let rest = |text: &str| {
        harness::outcome(|| {
            let part = Part { text, rest: true };
            let ids = encoders.encode_all(&[part])?;
            Ok(ids.into_iter().flatten().collect())
        })
    };
    let mut seams = 0;
    for _ in 0..cases {
        let size = rng.between(1, 30);
        let text = writer.text(&mut rng, size);
        let Outcome::Ids(want) = encode(&text) else {
            continue;
        };
        for cut in policy.cuts(&text, 0) {
            let seam = matches!(cut.kind, CutKind::Parted | CutKind::Unjoined);
            // Seams come by the hundred.
            if seam && rng.chance(80) {
                continue;
            }
            seams += usize::from(seam);
            let right = match cut.kind {
                CutKind::Unjoined => rest(&text[cut.at..]),
                _ => encode(&text[cut.at..]),
            };
            let (Outcome::Ids(mut left), Outcome::Ids(right)) = (encode(&text[..cut.at]), right)
            else {
                panic!("{}: a part of {text:?} cannot be encoded", animal.name);
            };
            left.extend(right);
            assert_eq!(left, want, "{}, {cut:?}: {text:?}", animal.name);
        }
    }
    seams
}
