//! One tokenizer backend with its checkpoints, called without the interpreter lock.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::conversation::messages_of;
use super::convert;
use super::guard::guarded;
use super::prompt::{IntTable, Prompt};
use super::template::Template;
use crate::engine::{self, Encoded};
use crate::error::{Category, Error, Reason};

/// Encoder, cut policy and checkpoints of one backend.
#[pyclass(frozen, module = "turntrie._native")]
pub struct Engine {
    inner: engine::Engine,
    table: Arc<IntTable>,
}

fn tokenizer_reason(_: Error) -> Reason {
    Reason::new(Category::Tokenizer, "encode")
}

impl Engine {
    fn prompt_of(&self, outcome: Result<(String, Encoded), Reason>) -> Prompt {
        Prompt::new(outcome, Arc::clone(&self.table))
    }
}

#[pymethods]
impl Engine {
    /// Loads what `backend_tokenizer.to_str()` returned; `budget` bounds the checkpoints in bytes.
    ///
    /// Raises `ValueError` for a backend that cannot be loaded.
    #[new]
    fn new(py: Python<'_>, backend_json: &str, budget: usize) -> PyResult<Self> {
        let inner = py
            .detach(|| {
                guarded("load", || {
                    Ok(engine::Engine::from_json(backend_json, budget))
                })
            })
            .map_err(|reason| PyValueError::new_err(reason.to_string()))?
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let table = Arc::new(IntTable::new(inner.vocab_size()));
        Ok(Engine { inner, table })
    }

    /// Number of ids, added tokens included.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.inner.vocab_size()
    }

    /// Renders and encodes a conversation.
    #[allow(clippy::too_many_arguments)] // The call's whole input, flat on purpose: one crossing.
    fn prompt(
        &self,
        py: Python<'_>,
        template: &Bound<'_, Template>,
        messages: &Bound<'_, PyAny>,
        variables: &Bound<'_, PyDict>,
        clock: &Bound<'_, PyDict>,
        rules: u32,
        namespace: u64,
    ) -> Prompt {
        let outcome = template.get().compiled().and_then(|template| {
            let context = convert::context(variables, clock, messages_of(messages, rules)?)?;
            py.detach(|| {
                let text = guarded("render", || template.render(context))?;
                let encoded = guarded("encode", || {
                    self.inner
                        .encode(namespace, &text)
                        .map_err(tokenizer_reason)
                })?;
                Ok((text, encoded))
            })
        });
        self.prompt_of(outcome)
    }

    /// Encodes a text, with checkpoints.
    fn encode(&self, py: Python<'_>, text: String, namespace: u64) -> Prompt {
        let encoded = py.detach(|| {
            guarded("encode", || {
                self.inner
                    .encode(namespace, &text)
                    .map_err(tokenizer_reason)
            })
        });
        self.prompt_of(encoded.map(|encoded| (text, encoded)))
    }

    /// Encodes a text in one call of the `tokenizers` crate: the oracle.
    fn encode_full(&self, py: Python<'_>, text: String) -> Prompt {
        let encoded = py.detach(|| {
            guarded("encode", || {
                self.inner.encode_full(&text).map_err(tokenizer_reason)
            })
        });
        self.prompt_of(encoded.map(|ids| (text, Encoded { ids, kept: 0 })))
    }
}
