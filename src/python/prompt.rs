//! The ids of one prompt, handed out without a Python int per token unless a list is asked for.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList};

use super::lists::Lists;
use super::template::Rendered;
use crate::engine::Encoded;
use crate::error::Reason;
use crate::shape::Key;

/// Ids of one text, or the reason why the reference has to serve the call.
#[pyclass(frozen, module = "turntrie._native")]
pub struct Prompt {
    outcome: Result<(Rendered, Encoded), Reason>,
    lists: Arc<Lists>,
    mask: Option<Vec<bool>>,
}

impl Prompt {
    /// Wraps what the engine returned for a text.
    pub fn new(outcome: Result<(Rendered, Encoded), Reason>, lists: Arc<Lists>) -> Self {
        Prompt {
            outcome,
            lists,
            mask: None,
        }
    }

    /// The same with the mask of the tokens that `generation` tags wrote.
    pub fn with_mask(mut self, mask: Vec<bool>) -> Self {
        self.mask = Some(mask);
        self
    }

    /// A text that was not encoded.
    pub fn of_text(outcome: Result<Rendered, Reason>) -> Self {
        Prompt {
            outcome: outcome.map(|rendered| (rendered, Encoded::default())),
            lists: Arc::new(Lists::new(0, 0)),
            mask: None,
        }
    }

    fn ids(&self) -> &[u32] {
        self.outcome.as_ref().map_or(&[], |(_, e)| &e.ids)
    }

    fn from(&self, start: usize) -> &[u32] {
        self.ids().get(start..).unwrap_or_default()
    }
}

#[pymethods]
impl Prompt {
    /// Set if the reference has to serve the call; then there are no ids.
    #[getter]
    fn reason(&self) -> Option<String> {
        self.outcome.as_ref().err().map(Reason::to_string)
    }

    /// How many leading ids were taken from checkpoints of earlier texts.
    #[getter]
    fn kept(&self) -> usize {
        self.outcome.as_ref().map_or(0, |(_, e)| e.kept)
    }

    /// The rendered text.
    #[getter]
    fn text(&self) -> &str {
        self.outcome.as_ref().map_or("", |(r, _)| &r.text)
    }

    /// How many iterations of loops over messages were taken over from an earlier render, and how many
    /// were rendered; loops that cannot reuse any are not counted.
    #[getter]
    fn iterations(&self) -> (usize, usize) {
        self.outcome
            .as_ref()
            .map_or((0, 0), |(r, _)| (r.share.reused, r.share.rendered))
    }

    /// Shape keys of the call that were never checked against the reference, with the index of the
    /// message where each was met.
    #[getter]
    fn unseen(&self) -> Vec<(Key, usize)> {
        self.outcome
            .as_ref()
            .map(|(r, _)| r.unseen.clone())
            .unwrap_or_default()
    }

    fn __len__(&self) -> usize {
        self.ids().len()
    }

    /// Native-endian `uint32` ids from `start` on, as one writable buffer.
    #[pyo3(signature = (start = 0))]
    fn buffer<'py>(&self, py: Python<'py>, start: usize) -> PyResult<Bound<'py, PyByteArray>> {
        let ids = self.from(start);
        PyByteArray::new_with(py, size_of_val(ids), |bytes| {
            for (bytes, id) in bytes.chunks_exact_mut(4).zip(ids) {
                bytes.copy_from_slice(&id.to_ne_bytes());
            }
            Ok(())
        })
    }

    /// The ids from `start` on as a fresh list.
    #[pyo3(signature = (start = 0))]
    fn tolist<'py>(&self, py: Python<'py>, start: usize) -> PyResult<Bound<'py, PyList>> {
        self.lists.list(py, self.from(start), start == 0)
    }

    /// 1 for each id that a `generation` tag wrote, 0 for the others, as a fresh list; None if that was
    /// not asked for.
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let Some(mask) = &self.mask else {
            return Ok(None);
        };
        PyList::new(py, mask.iter().map(|covered| u8::from(*covered))).map(Some)
    }

    /// How many leading ids this prompt shares with `other`.
    fn common_prefix(&self, other: &Bound<'_, Prompt>) -> usize {
        let pairs = self.ids().iter().zip(other.get().ids());
        pairs.take_while(|(a, b)| a == b).count()
    }
}
