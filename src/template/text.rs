//! A rendered text, in pieces that it shares with earlier ones.
//!
//! What the engine wrote is a piece of its own; the iterations of a loop that can be
//! [reused](super::reuse) are shared with the renders that they come from. So the text of a turn costs what is
//! new in it, and how far two texts agree shows without a look at what they share. In a row it is made
//! for who wants it, in full or from some place on.

use std::sync::Arc;

use super::reuse::Slots;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pieces: Vec<Piece>,
    length: usize,
}

#[derive(Clone, Debug)]
enum Piece {
    Own(String),
    Iterations(Slots),
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        let mut whole = Text::default();
        whole.push(text);
        whole
    }
}

impl Text {
    /// Goes on with a text.
    pub fn push(&mut self, text: String) {
        self.length += text.len();
        self.pieces.push(Piece::Own(text));
    }

    /// Goes on with the texts of iterations.
    pub fn push_iterations(&mut self, slots: Slots) {
        self.length += slots.until().text;
        self.pieces.push(Piece::Iterations(slots));
    }

    /// Bytes of the text.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no character.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The whole text in a row.
    pub fn whole(&self) -> String {
        self.starting_at(0)
    }

    /// The text from a byte on, which must not lie within a character.
    pub fn starting_at(&self, start: usize) -> String {
        // From the end, as what is asked for is short.
        let mut parts: Vec<&str> = Vec::new();
        let mut end = self.length;
        'pieces: for piece in self.pieces.iter().rev() {
            let mut add = |text| {
                parts.push(text);
                end -= text.len();
                end <= start
            };
            match piece {
                Piece::Own(text) => {
                    if add(text.as_str()) {
                        break;
                    }
                }
                Piece::Iterations(slots) => {
                    for slot in slots.iter().rev() {
                        if add(slot.entry.text.as_str().unwrap_or_default()) {
                            break 'pieces;
                        }
                    }
                }
            }
        }
        let mut text = String::with_capacity(self.length.saturating_sub(start));
        let mut skip = start.saturating_sub(end);
        for part in parts.iter().rev() {
            text.push_str(part.get(skip..).unwrap_or_default());
            skip = 0;
        }
        text
    }

    /// A number of leading bytes that both texts have in common, found without reading what they share:
    /// iterations that are others are compared by their texts. No character is parted. There may be more.
    pub fn shared_with(&self, other: &Text) -> usize {
        let mut shared = 0;
        for pair in self.pieces.iter().zip(&other.pieces) {
            match pair {
                (Piece::Own(a), Piece::Own(b)) if a == b => shared += a.len(),
                (Piece::Iterations(a), Piece::Iterations(b)) => {
                    let known = a.common(b);
                    let pairs = a.skip(known).zip(b.skip(known));
                    let same = pairs.take_while(|(a, b)| {
                        Arc::ptr_eq(&a.entry, &b.entry) || a.entry.text == b.entry.text
                    });
                    let same = a.until_first(known + same.count()).text;
                    shared += same;
                    // Those that are left may have written nothing.
                    if same != a.until().text || same != b.until().text {
                        break;
                    }
                }
                _ => break,
            }
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::super::reuse::slot_of_text;
    use super::*;

    fn slots(texts: &[&str]) -> Slots {
        let mut slots = Slots::default();
        texts.iter().for_each(|text| slots.push(slot_of_text(text)));
        slots
    }

    fn text(pieces: &[&[&str]]) -> Text {
        let mut text = Text::default();
        for (at, piece) in pieces.iter().enumerate() {
            match at % 2 {
                0 => text.push(piece.concat()),
                _ => text.push_iterations(slots(piece)),
            }
        }
        text
    }

    #[test]
    fn ends_are_those_of_the_whole() {
        let pieces: &[&[&str]] = &[
            &["head "],
            &["one ", "", "two "],
            &["between "],
            &[],
            &["tail"],
        ];
        let text = text(pieces);
        let whole = pieces.concat().concat();
        assert_eq!((text.whole(), text.len()), (whole.clone(), whole.len()));
        for start in 0..=whole.len() {
            assert_eq!(text.starting_at(start), whole[start..], "{start}");
        }
    }

    /// What is shared ends with the first iteration that says something else.
    #[test]
    fn shared_bytes_end_where_texts_differ() {
        let first = text(&[&["head "], &["one ", "two "], &["tail"]]);
        assert_eq!(first.shared_with(&first.clone()), first.len());
        let mut grown = Text::default();
        grown.push("head ".to_owned());
        let Piece::Iterations(known) = &first.pieces[1] else {
            panic!("iterations");
        };
        let mut more = known.clone();
        more.push(slot_of_text("three "));
        grown.push_iterations(more);
        grown.push("tail".to_owned());
        assert_eq!(grown.shared_with(&first), "head one two ".len());
        assert_eq!(first.shared_with(&grown), "head one two ".len());
        for (first, shared) in [("one ", "head one two three "), ("eno ", "head ")] {
            let other = text(&[&["head "], &[first, "two ", "three "]]);
            assert_eq!(other.shared_with(&grown), shared.len());
        }
        assert_eq!(Text::from("hea".to_owned()).shared_with(&grown), 0);
        // Loops of other lengths that wrote nothing.
        let (short, long) = ([""], ["", "", ""]);
        let [short, long] = [&short[..], &long].map(|loops| text(&[&["head "], loops, &["tail"]]));
        assert_eq!(short.shared_with(&long), "head tail".len());
    }
}
