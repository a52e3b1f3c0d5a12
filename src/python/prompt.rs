//! The ids of one prompt, handed out without a Python int per token unless a list is asked for.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList};

use super::engine::tokenizer_reason;
use super::guard::guarded;
use super::lists::Lists;
use super::template::{Earlier, Rendered};
use crate::call::PastCall;
use crate::error::Reason;
use crate::locate;
use crate::places;
use crate::shape::Key;
use crate::template::{ChatTemplate, MessageSpan};
use crate::trace::Trace;
use crate::verify::Verified;

/// Ids of one text, or the reason why the reference has to serve the call.
#[pyclass(frozen, module = "turntrie._native")]
pub struct Prompt {
    outcome: Result<(Rendered, Trace), Reason>,
    lists: Arc<Lists>,
    mask: Option<Vec<bool>>,
    origin: Option<Origin>,
}

/// What a prompt was made of, for whoever wants to know where its messages are, and for the next one.
pub struct Origin {
    pub template: Arc<ChatTemplate>,
    pub call: PastCall,
    pub engine: Arc<Verified>,
    pub namespace: u64,
}

/// Spans of messages, and the message index of each token as native-endian `int32`.
type Located<'py> = (Vec<MessageSpan>, Bound<'py, PyByteArray>);

impl Prompt {
    /// Wraps what the engine returned for a text.
    pub fn new(outcome: Result<(Rendered, Trace), Reason>, lists: Arc<Lists>) -> Self {
        Prompt {
            outcome,
            lists,
            mask: None,
            origin: None,
        }
    }

    /// The same with the mask of the tokens that `generation` tags wrote.
    pub fn with_mask(mut self, mask: Vec<bool>) -> Self {
        self.mask = Some(mask);
        self
    }

    /// The same with what it was made of.
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// A text that was not encoded.
    pub fn of_text(outcome: Result<Rendered, Reason>) -> Self {
        Prompt {
            outcome: outcome.map(|rendered| (rendered, Trace::default())),
            lists: Arc::new(Lists::new(0, 0)),
            mask: None,
            origin: None,
        }
    }

    /// What the next prompt of the same engine and namespace can take over.
    pub fn earlier(&self, engine: &Arc<Verified>, namespace: u64) -> Option<(Earlier<'_>, &Trace)> {
        let origin = self.origin.as_ref()?;
        let (rendered, trace) = self.outcome.as_ref().ok()?;
        let fits = Arc::ptr_eq(&origin.engine, engine) && origin.namespace == namespace;
        let earlier = Earlier {
            template: &origin.template,
            call: &origin.call,
            rendered,
        };
        fits.then_some((earlier, trace))
    }

    fn trace(&self) -> Option<&Trace> {
        self.outcome.as_ref().ok().map(|(_, trace)| trace)
    }
}

impl Origin {
    /// Spans and message indices; None unless text and ids come out as they were.
    fn locate(&self, text: &str, ids: &[u32]) -> Option<(Vec<MessageSpan>, Vec<i32>)> {
        let located = guarded("locate", || {
            let (again, spans) = self.template.render_located(&self.call.again())?;
            let asked = places::borders(spans.iter().map(|(_, start, end)| (*start, *end)));
            let engine = self.engine.engine();
            let (encoded, pieces) = engine.places(&again, &asked).map_err(tokenizer_reason)?;
            let same = again == text && encoded.ids == ids;
            Ok(same.then(|| (locate::message_index(&pieces, &spans), spans)))
        });
        let (index, spans) = located.ok()??;
        Some((spans, index))
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
        self.trace().map_or(0, Trace::kept)
    }

    /// The rendered text.
    #[getter]
    fn text(&self) -> String {
        let rendered = self.outcome.as_ref();
        rendered.map_or_else(|_| String::new(), |(rendered, _)| rendered.text.whole())
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

    /// Which parts of the text are which message's, `(message, start, end)` in characters, and the index
    /// of each token's message as a buffer of native-endian `int32`, -1 where it has none. None if that
    /// is not known. Renders the call again, and encodes segments in which messages begin or end.
    fn locate<'py>(&self, py: Python<'py>) -> PyResult<Option<Located<'py>>> {
        let (Some(origin), Ok((rendered, trace))) = (&self.origin, &self.outcome) else {
            return Ok(None);
        };
        let located = py.detach(|| origin.locate(&rendered.text.whole(), &trace.ids_from(0)));
        let Some((spans, index)) = located else {
            return Ok(None);
        };
        let buffer = PyByteArray::new_with(py, size_of_val(index.as_slice()), |bytes| {
            for (bytes, message) in bytes.chunks_exact_mut(4).zip(&index) {
                bytes.copy_from_slice(&message.to_ne_bytes());
            }
            Ok(())
        })?;
        Ok(Some((spans, buffer)))
    }

    fn __len__(&self) -> usize {
        self.trace().map_or(0, Trace::len)
    }

    /// Native-endian `uint32` ids from `start` on, as one writable buffer.
    #[pyo3(signature = (start = 0))]
    fn buffer<'py>(&self, py: Python<'py>, start: usize) -> PyResult<Bound<'py, PyByteArray>> {
        let length = self.__len__().saturating_sub(start);
        PyByteArray::new_with(py, length * size_of::<u32>(), |bytes| {
            let mut places = bytes.chunks_exact_mut(size_of::<u32>());
            if let Some(trace) = self.trace() {
                trace.each_from(start, |ids| {
                    for (id, bytes) in ids.iter().zip(places.by_ref()) {
                        bytes.copy_from_slice(&id.to_ne_bytes());
                    }
                });
            }
            Ok(())
        })
    }

    /// The ids from `start` on as a fresh list.
    #[pyo3(signature = (start = 0))]
    fn tolist<'py>(&self, py: Python<'py>, start: usize) -> PyResult<Bound<'py, PyList>> {
        let ids = self
            .trace()
            .map_or_else(Vec::new, |trace| trace.ids_from(start));
        self.lists.list(py, &ids, start == 0)
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
        let pair = (self.trace(), other.get().trace());
        match pair {
            (Some(ours), Some(theirs)) => ours.common_prefix(theirs),
            _ => 0,
        }
    }
}
