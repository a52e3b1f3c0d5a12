//! One tokenizer backend with its checkpoints, called without the interpreter lock.

use std::num::NonZero;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::conversation::call_of;
use super::convert::{RULE_MASK_OVERLAP, RULE_WATCH_IDS};
use super::guard::guarded;
use super::lists::Lists;
use super::prompt::{Origin, Prompt};
use super::template::{Rendered, Template};
use crate::cuts::Weakness;
use crate::encoder::{Encoder, FastEncoder};
use crate::engine;
use crate::error::{Category, Error, Reason};
use crate::mask;
use crate::places;
use crate::template::Text;
use crate::trace::Trace;
use crate::verify::{Fault, Verified};

/// Which part of the budget for checkpoints lists may take on top of it.
const LISTS_SHARE: usize = 8;

/// Encoder, cut policy and checkpoints of one backend.
#[pyclass(frozen, module = "turntrie._native")]
pub struct Engine {
    inner: Arc<Verified>,
    lists: Arc<Lists>,
}

type Different = (String, Vec<u32>, Vec<u32>, Option<usize>);

pub fn tokenizer_reason(_: Error) -> Reason {
    Reason::new(Category::Tokenizer, "encode")
}

impl Engine {
    fn of(inner: Verified) -> Self {
        Engine {
            lists: Arc::new(Lists::new(
                inner.engine().vocab_size(),
                inner.engine().budget() / LISTS_SHARE,
            )),
            inner: Arc::new(inner),
        }
    }

    fn prompt_of(&self, outcome: Result<(Rendered, Trace), Reason>) -> Prompt {
        Prompt::new(outcome, Arc::clone(&self.lists))
    }

    /// The ids of a text; with an `earlier` one of the same namespace, without a look at most of what they
    /// have in common.
    fn encode_text(
        &self,
        namespace: u64,
        text: &Text,
        rules: u32,
        earlier: Option<(&Text, &Trace)>,
    ) -> Result<Trace, Reason> {
        let trace = guarded("encode", || {
            let resumed = earlier.map(|(earlier, trace)| {
                let common = text.shared_with(earlier);
                let text_from = |start| text.starting_at(start);
                self.inner.resume(namespace, trace, common, text_from)
            });
            if let Some(trace) = resumed.transpose().map_err(tokenizer_reason)?.flatten() {
                return Ok(trace);
            }
            let trace = self.inner.trace(namespace, &text.whole());
            trace.map_err(tokenizer_reason)
        })?;
        if rules & RULE_WATCH_IDS != 0 {
            self.inner.observe(|| (text.whole(), trace.ids_from(0)));
        }
        Ok(trace)
    }
}

#[pymethods]
impl Engine {
    /// Loads what `backend_tokenizer.to_str()` returned; `budget` bounds the checkpoints in bytes,
    /// `threads` the threads that encode at a time in this process (by default its processors).
    ///
    /// Raises `ValueError` for a backend that cannot be loaded.
    #[new]
    #[pyo3(signature = (backend_json, budget, threads = None))]
    fn new(
        py: Python<'_>,
        backend_json: &str,
        budget: usize,
        threads: Option<NonZero<usize>>,
    ) -> PyResult<Self> {
        let load = || {
            Verified::new(match threads {
                Some(threads) => engine::Engine::load(backend_json, budget, threads)?,
                None => engine::Engine::from_json(backend_json, budget)?,
            })
        };
        let inner = py
            .detach(|| guarded("load", || Ok(load())))
            .map_err(|reason| PyValueError::new_err(reason.to_string()))?
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Engine::of(inner))
    }

    /// An engine with a fault put in, for tests of the verification: `cut`, `chunk`, `trie` or `encoder`.
    #[staticmethod]
    fn with_fault(backend_json: &str, budget: usize, fault: &str) -> PyResult<Self> {
        let (weakness, fault) = match fault {
            "cut" => (Weakness::NoFrontier, None),
            "chunk" => (Weakness::None, Some(Fault::Chunk)),
            "trie" => (Weakness::None, Some(Fault::Trie)),
            "encoder" => (Weakness::None, Some(Fault::Encoder)),
            other => return Err(PyValueError::new_err(format!("no such fault: {other}"))),
        };
        let inner = engine::Engine::weakened(backend_json, budget, weakness, None)
            .and_then(Verified::new)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Engine::of(match fault {
            Some(fault) => inner.with_fault(fault),
            None => inner,
        }))
    }

    /// Number of ids, added tokens included.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.inner.engine().vocab_size()
    }

    /// The derived cut policy, for people.
    fn describe(&self) -> String {
        let engine = self.inner.engine();
        format!("{}\n{}", engine.encoders(), engine.policy())
    }

    /// Seconds that loading took: the `tokenizers` crate, the tables of the fast encoder.
    fn loading(&self) -> (f64, f64) {
        let [parse, tables] = self.inner.engine().encoders().loading();
        (parse.as_secs_f64(), tables.as_secs_f64())
    }

    /// Makes what the first list would otherwise pay for.
    fn prepare_lists(&self, py: Python<'_>) {
        self.lists.prepare(py);
    }

    /// A text for a first call that nobody waits for: of words of the vocabulary, and some it lacks.
    fn familiar(&self) -> String {
        let fast = self.inner.engine().encoders().fast();
        fast.map_or_else(|_| String::new(), FastEncoder::familiar)
    }

    /// The encoder's name, and the bytes of its own tables.
    fn encoder(&self) -> (&'static str, usize) {
        let encoders = self.inner.engine().encoders();
        (
            encoders.name(),
            encoders.fast().map_or(0, FastEncoder::bytes),
        )
    }

    /// What is held and what was done so far, by name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let s = self.inner.statistics();
        let stats = PyDict::new(py);
        stats.set_item("nodes", s.nodes)?;
        stats.set_item("chunks", s.chunks)?;
        stats.set_item("bytes", s.bytes)?;
        stats.set_item("budget", s.budget)?;
        stats.set_item("evictions", s.evictions)?;
        stats.set_item("texts", s.texts)?;
        stats.set_item("hits", s.hits)?;
        stats.set_item("kept_tokens", s.kept_tokens)?;
        stats.set_item("shared_tokens", s.shared_tokens)?;
        stats.set_item("encoded_tokens", s.encoded_tokens)?;
        Ok(stats)
    }

    /// What the id oracle saw: texts encoded again in full, texts that differed, and whether
    /// incremental encoding is still on.
    fn verification(&self) -> (u64, usize, bool) {
        let v = self.inner.verification();
        (v.checked, v.different, v.incremental)
    }

    /// The first texts whose ids differed: `(text, ids, ids of a full encode, character where they part)`.
    fn divergences(&self) -> Vec<Different> {
        let divergences = self.inner.divergences().into_iter();
        divergences
            .map(|d| (d.text, d.got, d.want, d.offset))
            .collect()
    }

    /// Forgets all checkpoints.
    fn clear(&self, py: Python<'_>) {
        py.detach(|| self.inner.engine().clear());
    }

    /// Forgets the checkpoints of one namespace.
    fn drop_namespace(&self, py: Python<'_>, namespace: u64) {
        py.detach(|| self.inner.engine().drop_namespace(namespace));
    }

    /// Renders and encodes a conversation. What it has in common with the `previous` prompt of a conversation
    /// is taken over from there.
    #[pyo3(signature = (template, messages, variables, clock, rules, namespace, previous = None))]
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
        previous: Option<&Bound<'_, Prompt>>,
    ) -> Prompt {
        let template = template.get();
        let earlier = previous.and_then(|prompt| prompt.get().earlier(&self.inner, namespace));
        let outcome = template.usable().and_then(|usable| {
            let call = call_of(messages, variables, clock, rules)?;
            py.detach(|| {
                let before = earlier.map(|(earlier, _)| earlier);
                let rendered = template.render_call(&call, rules, Some(namespace), before)?;
                let before = earlier.map(|(earlier, trace)| (&earlier.rendered.text, trace));
                let trace = self.encode_text(namespace, &rendered.text, rules, before)?;
                let origin = Origin {
                    template: Arc::clone(usable),
                    call: call.past(),
                    engine: Arc::clone(&self.inner),
                    namespace,
                };
                Ok(((rendered, trace), origin))
            })
        });
        match outcome {
            Ok((prompt, origin)) => self.prompt_of(Ok(prompt)).with_origin(origin),
            Err(reason) => self.prompt_of(Err(reason)),
        }
    }

    /// Renders and encodes a conversation, without checkpoints, with the mask of what `generation` tags wrote.
    fn masked(
        &self,
        py: Python<'_>,
        template: &Bound<'_, Template>,
        messages: &Bound<'_, PyAny>,
        variables: &Bound<'_, PyDict>,
        clock: &Bound<'_, PyDict>,
        rules: u32,
    ) -> Prompt {
        let template = template.get();
        let outcome = template.usable().and_then(|_| {
            let call = call_of(messages, variables, clock, rules)?;
            py.detach(|| {
                let (rendered, spans) = template.render_tracked(&call, rules)?;
                let asked = places::borders(spans.iter().copied());
                let (encoded, pieces) = guarded("encode", || {
                    let engine = self.inner.engine();
                    engine
                        .places(&rendered.text.whole(), &asked)
                        .map_err(tokenizer_reason)
                })?;
                let rule = match rules & RULE_MASK_OVERLAP {
                    0 => mask::Rule::Ends,
                    _ => mask::Rule::Overlap,
                };
                let mask = mask::mask(&pieces, &spans, rule)
                    .ok_or_else(|| Reason::new(Category::Render, "empty-generation"))?;
                Ok(((rendered, Trace::from(encoded.ids)), mask))
            })
        });
        match outcome {
            Ok((prompt, mask)) => self.prompt_of(Ok(prompt)).with_mask(mask),
            Err(reason) => self.prompt_of(Err(reason)),
        }
    }

    /// Encodes a text, with checkpoints.
    fn encode(&self, py: Python<'_>, text: String, namespace: u64, rules: u32) -> Prompt {
        let text = Text::from(text);
        let trace = py.detach(|| self.encode_text(namespace, &text, rules, None));
        self.prompt_of(trace.map(|trace| (Rendered::from(text), trace)))
    }

    /// Encodes a text in one call of the `tokenizers` crate: the oracle.
    fn encode_full(&self, py: Python<'_>, text: String) -> Prompt {
        let encoded = py.detach(|| {
            guarded("encode", || {
                self.inner
                    .engine()
                    .encode_full(&text)
                    .map_err(tokenizer_reason)
            })
        });
        self.prompt_of(encoded.map(|ids| (Rendered::from(Text::from(text)), Trace::from(ids))))
    }
}
