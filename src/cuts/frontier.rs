//! The frontier: how far back the end of a common text may still be the beginning of a token.
//!
//! If two texts agree on their first `l` bytes, a raw added token that starts before `l` may end
//! beyond it in one of them only. The frontier is the smallest start where that could happen. It is
//! found by asking, for each of the last `longest - 1` positions, whether the bytes from there to
//! `l` are a proper prefix of a token: binary search in the sorted contents.
//!
//! O(longest · log tokens · comparison) per question: microseconds, asked once or twice per text.

/// The contents of all raw added tokens, sorted.
pub(super) struct Frontier {
    contents: Vec<Box<[u8]>>,
    longest: usize,
}

impl Frontier {
    pub(super) fn new<'c>(contents: impl Iterator<Item = &'c str>) -> Self {
        let mut contents: Vec<Box<[u8]>> = contents.map(|c| c.as_bytes().into()).collect();
        contents.sort_unstable();
        let longest = contents.iter().map(|c| c.len()).max().unwrap_or(0);
        Frontier { contents, longest }
    }

    /// Length of the longest content in bytes.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// The smallest `s < length` such that `text[s..length]` is a proper prefix of a content, else
    /// `length`.
    pub(super) fn of(&self, text: &[u8], length: usize) -> usize {
        let first = length.saturating_sub(self.longest.saturating_sub(1));
        (first..length)
            .find(|&s| self.begins_longer(&text[s..length]))
            .unwrap_or(length)
    }

    /// Whether a content begins with `bytes` and is longer.
    fn begins_longer(&self, bytes: &[u8]) -> bool {
        // What is greater than `bytes` and begins with it comes right behind it in the order.
        let next = self.contents.partition_point(|c| &**c <= bytes);
        self.contents
            .get(next)
            .is_some_and(|c| c.starts_with(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::Frontier;

    fn frontier(contents: &[&str], text: &str) -> usize {
        Frontier::new(contents.iter().copied()).of(text.as_bytes(), text.len())
    }

    #[test]
    fn holds_back_the_beginning_of_a_token() {
        assert_eq!(frontier(&["<tool>"], "hello <to"), 6);
        assert_eq!(frontier(&["<tool>"], "hello <tp"), 9);
        assert_eq!(frontier(&["<tool>"], "hello <tool>"), 12);
        assert_eq!(frontier(&["<tool>", "<tool>call"], "hello <tool>"), 6);
        assert_eq!(frontier(&["abab", "baba"], "xab"), 1);
        assert_eq!(frontier(&["\n", "\n\n", "\n\n\n"], "x\n\n"), 1);
        assert_eq!(frontier(&["\n", "\n\n", "\n\n\n"], "x\n\n\n"), 2);
    }

    #[test]
    fn of_nothing_is_the_end() {
        assert_eq!(frontier(&[], "abc"), 3);
        assert_eq!(frontier(&["<a>"], ""), 0);
        assert_eq!(frontier(&["a"], "aaa"), 3);
    }

    #[test]
    fn a_shorter_content_in_between_hides_nothing() {
        // "<b" lies between "<a" and "<bc" in the order, and is not longer than itself.
        assert_eq!(frontier(&["<a", "<b", "<bc"], "<b"), 0);
        assert_eq!(frontier(&["<a", "<b"], "<b"), 2);
    }
}
