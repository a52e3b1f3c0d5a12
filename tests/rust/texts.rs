//! Adversarial texts: everything a cut could get wrong, densely.
//!
//! Added tokens whole, cut in two and glued together, runs of whitespace, line ends of all kinds,
//! combining marks, digits, emoji, CJK, and the metaspace character itself. `Family` grows a tree of
//! texts from one another the way conversations do, and in ways they should not.

use crate::rng::Rng;

const WORDS: &[&str] = &[
    "the",
    "of",
    "and",
    "user",
    "assistant",
    "system",
    "abab",
    "ab",
    "ba",
    "function",
    "return",
    "import",
    "None",
    "self",
    "getElementById",
    "HTTPServer",
    "SCREAMING_SNAKE",
    "naïve",
    "café",
    "Straße",
    "Ångström",
    "Здравствуйте",
    "мир",
    "שלום",
    "مرحبا",
    "नमस्ते",
    "สวัสดี",
    "안녕하세요",
    "日本語テスト",
    "漢字かな交じり",
    "中文测试",
    "ελληνικά",
    "word",
    "q",
    "z",
    "a",
    "x",
    "norm",
];
const SPACES: &[&str] = &[
    " ",
    " ",
    " ",
    "  ",
    "   ",
    "    ",
    "\n",
    "\n",
    "\n\n",
    "\n\n\n",
    "\n\n\n\n\n\n\n",
    "\t",
    "\t\t",
    "\r\n",
    "\r\n\r\n",
    "\r",
    " \n",
    "\n ",
    "\n\n    ",
    "\n\t",
    "\u{a0} ",
    "\u{3000}",
    "\u{b}",
    "\u{c}",
    "\u{85}",
    "\u{2028}",
    "                                        ",
    "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
];
const MARKS: &[&str] = &[
    "e\u{301}",
    "a\u{308}\u{301}",
    "\u{338}",
    "<\u{338}",
    ">\u{338}",
    "\u{1100}\u{1161}\u{11a8}",
    "\u{ac00}\u{11a8}",
    "\u{915}\u{94d}\u{937}",
    "👩\u{200d}💻",
    "👨\u{200d}👩\u{200d}👧",
    "🇫🇷",
    "❤\u{fe0f}",
    "\u{200b}",
    "\u{feff}",
    "\u{ad}",
    "\0",
    "\u{1f}",
    "\u{7f}",
    "\u{17f}",
    "\u{130}",
    "\u{df}",
    "\u{212b}",
    "\u{2126}",
    "\u{f900}",
    "\u{3099}",
    "\u{304b}\u{3099}",
    "\u{20000}",
    "\u{e000}",
    "\u{fffd}",
    "\u{344}",
    "\u{2581}",
    "\u{2581}\u{2581}",
    "\u{1680}",
    "\u{180e}",
    "\u{202f}",
    "½",
    "Ⅷ",
    "１２",
    "٣٤",
];
const PUNCTUATION: &[&str] = &[
    "!", "\"", "#", "'", "(", ")", ",", "-", ".", "/", ":", ";", "<", "=", ">", "?", "[", "]", "_",
    "{", "|", "}", "~", "...", "=>", "::", "//", "<!--", "-->", "> </", "></", "{}", ";\n\n", "。",
    "，", "'s", "'re", "'LL", "don't", "<|", "|>", "<tool", "~no", "~q",
];

/// Makes random texts for a tokenizer with these added tokens.
pub struct Writer {
    contents: Vec<String>,
}

impl Writer {
    pub fn new(contents: &[String]) -> Self {
        // Models with thousands of reserved tokens: a few of those are enough.
        let dull = |c: &str| {
            ["unused", "reserved", "place", "extra_"]
                .iter()
                .any(|d| c.contains(d))
        };
        let mut kept: Vec<String> = contents.iter().filter(|c| !dull(c)).cloned().collect();
        kept.extend(contents.iter().filter(|c| dull(c)).take(8).cloned());
        kept.push("<none>".to_owned());
        Writer { contents: kept }
    }

    fn token<'a>(&'a self, rng: &mut Rng) -> &'a str {
        rng.pick::<String>(&self.contents)
    }

    /// The beginning or the end of an added token.
    fn part(&self, rng: &mut Rng) -> String {
        let chars: Vec<char> = self.token(rng).chars().collect();
        let at = rng.between(0, chars.len());
        let part = if rng.chance(70) {
            &chars[..at]
        } else {
            &chars[at..]
        };
        part.iter().collect()
    }

    fn fragment(&self, rng: &mut Rng) -> String {
        match rng.below(100) {
            0..30 => (*rng.pick(WORDS)).to_owned(),
            30..48 => (*rng.pick(SPACES)).to_owned(),
            48..56 => (*rng.pick(PUNCTUATION)).to_owned(),
            56..60 => (rng.next() % 10u64.pow(rng.between(1, 9) as u32)).to_string(),
            60..66 => (*rng.pick(MARKS)).to_owned(),
            66..82 => self.token(rng).to_owned(),
            82..90 => self.part(rng),
            90..93 => {
                let letter = *rng.pick(&["a", "A", "ab", "é", "字", "=", "0", " ", "\n"]);
                letter.repeat(rng.between(5, 60))
            }
            93..95 => {
                char::from_u32(rng.below(0x2FFFF) as u32).map_or_else(String::new, String::from)
            }
            _ => {
                let mut sentence = String::new();
                for _ in 0..rng.between(3, 9) {
                    sentence.push_str(rng.pick::<&str>(WORDS));
                    sentence.push(' ');
                }
                sentence
            }
        }
    }

    pub fn text(&self, rng: &mut Rng, fragments: usize) -> String {
        (0..fragments).map(|_| self.fragment(rng)).collect()
    }
}

/// A growing tree of related texts.
pub struct Family<'w> {
    writer: &'w Writer,
    texts: Vec<String>,
    size: usize,
}

impl<'w> Family<'w> {
    /// Texts of about `size` fragments.
    pub fn new(writer: &'w Writer, rng: &mut Rng, size: usize) -> Self {
        let first = writer.text(rng, size);
        Family {
            writer,
            texts: vec![first],
            size,
        }
    }

    /// The next text: mostly a relative of an earlier one.
    pub fn next(&mut self, rng: &mut Rng) -> String {
        let newest = self.texts.len() - 1;
        let from = if rng.chance(60) {
            newest
        } else {
            rng.below(self.texts.len())
        };
        let old = &self.texts[from];
        let w = self.writer;
        let text = match rng.below(100) {
            // A conversation goes on.
            0..40 => {
                let grow = rng.between(0, 8);
                old.clone() + &w.text(rng, grow)
            }
            // An added token is completed, or turns out to be something else.
            40..52 => {
                let token = w.token(rng).to_owned();
                let at = boundary(&token, rng.below(token.len() + 1));
                let mut text = old.clone();
                text.push_str(&token[..at]);
                self.texts.push(text.clone());
                if rng.chance(50) {
                    text.push_str(&token[at..]);
                }
                let more = rng.between(0, 3);
                text + &w.text(rng, more)
            }
            // Cut short.
            52..60 => old[..boundary(old, rng.below(old.len() + 1))].to_owned(),
            // Another tail.
            60..72 => {
                let at = boundary(old, rng.below(old.len() + 1));
                let more = rng.between(0, 10);
                old[..at].to_owned() + &w.text(rng, more)
            }
            // Something inserted, replaced or deleted in the middle.
            72..90 => {
                let a = boundary(old, rng.below(old.len() + 1));
                let b = boundary(old, (a + rng.below(40)).min(old.len())).max(a);
                let b = if rng.chance(30) { a } else { b };
                let more = rng.between(0, 2);
                old[..a].to_owned() + &w.text(rng, more) + &old[b..]
            }
            // Two texts glued together.
            90..95 => {
                let other = &self.texts[rng.below(self.texts.len())];
                let a = boundary(old, rng.below(old.len() + 1));
                let b = boundary(other, rng.below(other.len() + 1));
                old[..a].to_owned() + &other[b..]
            }
            // Again.
            95..98 => old.clone(),
            _ => w.text(rng, self.size),
        };
        // Growth without end would make the oracle slow.
        let text = if text.len() > 60 * self.size {
            text[..boundary(&text, 30 * self.size)].to_owned()
        } else {
            text
        };
        self.texts.push(text.clone());
        text
    }
}

/// The character boundary at or before `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|&i| text.is_char_boundary(i))
        .unwrap_or(0)
}
