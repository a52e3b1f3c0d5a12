//! Ids as Python lists, without making what was made before.
//!
//! Two things make a list of 100,000 ids dear: a Python int for each, and a call into the interpreter
//! for each. The ints are those of one table, made once per tokenizer. And the ids of a turn begin
//! with those of the turn before: the latest lists are kept here, the longest common one is brought up
//! to date, and the caller gets a copy of it, which the interpreter makes in one go. So every list
//! handed out is fresh, and the kept one is never seen outside.
//!
//! Memory: 12 bytes a token for up to [`LISTS`] lists, bounded in bytes. Nobody waits: if another
//! thread is here, a list is made from scratch.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyList};

/// Lists that are kept.
const LISTS: usize = 8;
/// Shorter lists are made from scratch.
const SHORT: usize = 256;
/// Bytes a token in a kept list: the id, and the reference in the list.
const BYTES: usize = size_of::<u32>() + size_of::<usize>();

/// See the module.
pub struct Lists {
    size: usize,
    ints: PyOnceLock<Vec<Py<PyInt>>>,
    budget: usize,
    recent: Mutex<Vec<Kept>>,
}

struct Kept {
    ids: Vec<u32>,
    list: Py<PyList>,
}

impl Lists {
    /// For ids of `0..size`; keeps lists of `budget` bytes altogether.
    pub fn new(size: usize, budget: usize) -> Self {
        Lists {
            size,
            ints: PyOnceLock::new(),
            budget,
            recent: Mutex::new(Vec::new()),
        }
    }

    /// A fresh list of `ids`; with `whole` a later one may begin like it.
    pub fn list<'py>(
        &self,
        py: Python<'py>,
        ids: &[u32],
        whole: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        if !whole || ids.len() < SHORT || ids.len() * BYTES > self.budget {
            return self.anew(py, ids);
        }
        let Ok(mut recent) = self.recent.try_lock() else {
            return self.anew(py, ids);
        };
        let mut kept = take_longest(&mut recent, ids).unwrap_or_else(|| Kept {
            ids: Vec::new(),
            list: PyList::empty(py).unbind(),
        });
        let common = common_prefix(&kept.ids, ids);
        let list = kept.list.bind(py);
        // If these ids are only a beginning of the kept ones, those stay.
        if common < ids.len() {
            // What is new becomes a list of its own first: that is half of the calls for each id.
            let new = self.anew(py, &ids[common..])?;
            list.set_slice(common, list.len(), &new)?;
            kept.ids.truncate(common);
            kept.ids.extend_from_slice(&ids[common..]);
        }
        let fresh = list.get_slice(0, ids.len());
        recent.insert(0, kept);
        let mut bytes = 0;
        let within = recent.iter().take(LISTS).take_while(|kept| {
            bytes += kept.ids.len() * BYTES;
            bytes <= self.budget
        });
        let within = within.count();
        let dropped = recent.split_off(within);
        drop(recent);
        drop(dropped);
        Ok(fresh)
    }

    fn anew<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, ids.iter().map(|&id| self.int(py, id)))
    }

    /// Makes the table of ints, if there is none yet: a few milliseconds for a large vocabulary.
    pub fn prepare(&self, py: Python<'_>) -> &[Py<PyInt>] {
        self.ints.get_or_init(py, || {
            (0..self.size)
                .map(|id| PyInt::new(py, id).unbind())
                .collect()
        })
    }

    fn int(&self, py: Python<'_>, id: u32) -> Py<PyInt> {
        match self.prepare(py).get(id as usize) {
            Some(int) => int.clone_ref(py),
            // Vocabularies may have gaps, so an id can lie past their size.
            None => PyInt::new(py, id).unbind(),
        }
    }
}

/// Takes out the list that shares most ids with `ids`, if that is at least half of either.
fn take_longest(recent: &mut Vec<Kept>, ids: &[u32]) -> Option<Kept> {
    let shared = recent.iter().enumerate();
    let shared = shared.map(|(at, kept)| (common_prefix(&kept.ids, ids), at));
    let (common, at) = shared.max_by_key(|&(common, at)| (common, std::cmp::Reverse(at)))?;
    (2 * common >= ids.len().min(recent[at].ids.len())).then(|| recent.remove(at))
}

fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    const BLOCK: usize = 64;
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let start = blocks.take_while(|(x, y)| x == y).count() * BLOCK;
    let rest = a[start..].iter().zip(&b[start..]);
    start + rest.take_while(|(x, y)| x == y).count()
}
