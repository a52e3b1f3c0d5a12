//! Characters that are one token, found by two looks at a table.
//!
//! A table of blocks of 128 characters, empty ones stored once.

const BLOCK: usize = 128;
const LAST: usize = 0x10_ffff;

/// Tokens of single characters.
pub(super) struct Characters {
    /// Block of each 128 characters; the first is empty.
    blocks: Box<[u16]>,
    /// Ids plus one, 128 a block.
    ids: Vec<u32>,
}

impl Characters {
    /// A table of characters with ids; of two for one character the later counts.
    pub(super) fn new(tokens: impl Iterator<Item = (char, u32)>) -> Self {
        let mut characters = Characters {
            blocks: vec![0; LAST / BLOCK + 1].into(),
            ids: vec![0; BLOCK],
        };
        for (c, id) in tokens {
            let c = c as usize;
            let block = &mut characters.blocks[c / BLOCK];
            if *block == 0 {
                // There are 8704 blocks at most.
                *block = (characters.ids.len() / BLOCK) as u16;
                characters.ids.resize(characters.ids.len() + BLOCK, 0);
            }
            characters.ids[usize::from(*block) * BLOCK + c % BLOCK] = id + 1;
        }
        characters
    }

    /// The token of a character.
    #[inline]
    pub(super) fn get(&self, c: char) -> Option<u32> {
        let c = c as usize;
        let block = usize::from(self.blocks[c / BLOCK]);
        self.ids[block * BLOCK + c % BLOCK].checked_sub(1)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.blocks) + size_of_val(&*self.ids)
    }
}

#[cfg(test)]
mod tests {
    use super::Characters;

    #[test]
    fn finds_each_character_and_no_other() {
        let tokens = [('a', 3), ('b', 4), ('漢', 0), ('\u{10ffff}', 5), ('b', 6)];
        let characters = Characters::new(tokens.into_iter());
        for (c, id) in [('a', 3), ('b', 6), ('漢', 0), ('\u{10ffff}', 5)] {
            assert_eq!(characters.get(c), Some(id));
        }
        for c in ['c', '\0', '字', '\u{10fffe}', 'é'] {
            assert_eq!(characters.get(c), None);
        }
    }
}
