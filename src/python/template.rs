//! A compiled chat template, or the reason why there is none.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::conversation::{call_of, messages_of};
use super::convert;
use super::convert::{RULE_LATE_TRACKER, RULE_WATCH_IDS, RULE_WATCH_SHAPES};
use super::guard::guarded;
use super::prompt::Prompt;
use crate::call::{Call, PastCall};
use crate::error::{Category, Reason};
use crate::ledger::Ledger;
use crate::shape::Key;
use crate::template::{ChatTemplate, Fault, Refusal, Run, Share, Span, Text};

/// A chat template, compiled once. Never raises for a template it cannot serve: see `reason`.
#[pyclass(frozen, module = "turntrie._native")]
pub struct Template {
    compiled: Result<Arc<ChatTemplate>, (Reason, usize)>,
    ledger: Ledger,
}

/// A rendered text, and which aspects of its call were never checked.
#[derive(Default)]
pub struct Rendered {
    pub text: Text,
    pub unseen: Vec<(Key, usize)>,
    pub share: Share,
    /// What the next render can take over.
    pub run: Option<Arc<Run>>,
    /// Whether all aspects were looked at, and each was checked before.
    settled: bool,
}

impl From<Text> for Rendered {
    fn from(text: Text) -> Self {
        Rendered {
            text,
            ..Rendered::default()
        }
    }
}

/// An earlier call of the conversation and what came of it.
#[derive(Clone, Copy)]
pub struct Earlier<'a> {
    pub template: &'a Arc<ChatTemplate>,
    pub call: &'a PastCall,
    pub rendered: &'a Rendered,
}

impl Template {
    /// Renders `call`; `rules` say whether shapes are watched. With a `space`, iterations that earlier
    /// calls of the same space rendered are taken over, those of the `earlier` call first.
    pub fn render_call(
        &self,
        call: &Call,
        rules: u32,
        space: Option<u64>,
        earlier: Option<Earlier<'_>>,
    ) -> Result<Rendered, Reason> {
        let template = self.usable()?;
        let earlier = earlier.filter(|earlier| Arc::ptr_eq(earlier.template, template));
        let (unseen, settled) = self.unseen(template, call, rules, earlier)?;
        let again = guarded("render", || {
            let Some(space) = space else {
                return Ok(Rendered::from(Text::from(template.render(call)?)));
            };
            let run = earlier.and_then(|earlier| earlier.rendered.run.as_ref());
            let again = template.render_again(call, space, run)?;
            if rules & RULE_WATCH_IDS != 0 && again.share.reused > 0 {
                template.observe(call, &again.text);
            }
            Ok(Rendered {
                text: again.text,
                share: again.share,
                run: again.run,
                ..Rendered::default()
            })
        })?;
        Ok(Rendered {
            unseen,
            settled,
            ..again
        })
    }

    /// The same, and the parts of the text that `generation` tags wrote.
    pub fn render_tracked(&self, call: &Call, rules: u32) -> Result<(Rendered, Vec<Span>), Reason> {
        let template = self.usable()?;
        let (unseen, settled) = self.unseen(template, call, rules, None)?;
        let late = rules & RULE_LATE_TRACKER != 0;
        let (text, spans) = guarded("render", || template.render_tracked(call, late))?;
        let rendered = Rendered {
            unseen,
            settled,
            ..Rendered::from(Text::from(text))
        };
        Ok((rendered, spans))
    }

    /// The aspects of a call that were never checked, and whether there are none. Those of messages that an
    /// `earlier` call had, of which all were, are not looked at again.
    fn unseen(
        &self,
        template: &ChatTemplate,
        call: &Call,
        rules: u32,
        earlier: Option<Earlier<'_>>,
    ) -> Result<(Vec<(Key, usize)>, bool), Reason> {
        if rules & RULE_WATCH_SHAPES == 0 {
            return Ok((Vec::new(), false));
        }
        guarded("shape", || {
            let words = template.words();
            let covers = |earlier: &Earlier<'_>| {
                earlier.rendered.settled
                    && self.ledger.is_clean()
                    && earlier.call.variables().shape(words) == call.variables.shape(words)
            };
            let known = earlier
                .filter(covers)
                .map_or(0, |earlier| earlier.call.messages().common(call.messages()));
            let unseen = self.ledger.unseen(&call.shape(words, known), known)?;
            let settled = unseen.is_empty();
            Ok((unseen, settled))
        })
    }

    /// The compiled template, or why the reference serves it.
    pub fn usable(&self) -> Result<&Arc<ChatTemplate>, Reason> {
        self.compiled.as_ref().map_err(|(reason, _)| reason.clone())
    }
}

#[pymethods]
impl Template {
    #[new]
    fn new(py: Python<'_>, source: &str) -> Self {
        let compiled = py.detach(|| {
            guarded("compile", || Ok(ChatTemplate::compile(source)))
                .map_err(|reason| (reason, 1))
                .and_then(|compiled| {
                    compiled
                        .map(Arc::new)
                        .map_err(|Refusal { construct, line }| {
                            (Reason::new(Category::Template, construct), line)
                        })
                })
        });
        Template {
            compiled,
            ledger: Ledger::default(),
        }
    }

    /// A template with a fault put in, for tests of the verification: `filter`, `gate` or `reuse`.
    #[staticmethod]
    fn with_fault(source: &str, fault: &str) -> PyResult<Self> {
        let fault = match fault {
            "filter" => Fault::Filter,
            "gate" => Fault::Gate,
            "reuse" => Fault::Reuse,
            other => return Err(PyValueError::new_err(format!("no such fault: {other}"))),
        };
        let compiled = ChatTemplate::compile_with(source, Some(fault))
            .map(Arc::new)
            .map_err(|r| (Reason::new(Category::Template, r.construct), r.line));
        Ok(Template {
            compiled,
            ledger: Ledger::default(),
        })
    }

    /// `template:<construct>` if the reference has to serve this template.
    #[getter]
    fn reason(&self) -> Option<String> {
        self.compiled.as_ref().err().map(|(r, _)| r.to_string())
    }

    /// Line of the construct named by `reason`.
    #[getter]
    fn line(&self) -> Option<usize> {
        self.compiled.as_ref().err().map(|(_, line)| *line)
    }

    /// The literal formats that the template gives to `strftime_now`.
    #[getter]
    fn clock_formats(&self) -> Vec<String> {
        self.compiled
            .as_ref()
            .map(|t| t.clock_formats().to_vec())
            .unwrap_or_default()
    }

    /// How many loops over messages can reuse iterations, and why others cannot, with their lines.
    #[getter]
    fn loops(&self) -> (usize, Vec<(&'static str, usize)>) {
        self.compiled
            .as_ref()
            .map(|template| template.loops())
            .unwrap_or_default()
    }

    /// What comparing texts of reused iterations with whole renders showed: how many were, how many
    /// differed, and whether iterations are still reused.
    fn verification(&self) -> (u64, usize, bool) {
        self.compiled.as_ref().map_or((0, 0, false), |template| {
            let trust = template.trust();
            (trust.checked(), trust.different(), trust.holds())
        })
    }

    /// The first texts that differed: `(text, text of a whole render)`; None if that failed.
    fn differences(&self) -> Vec<(String, Option<String>)> {
        let differences = self.compiled.as_ref().map(|t| t.trust().differences());
        let differences = differences.unwrap_or_default().into_iter();
        differences.map(|d| (d.got, d.want)).collect()
    }

    /// Renders a conversation without encoding it. With a `space`, iterations that earlier calls of the
    /// same space rendered are taken over.
    #[pyo3(signature = (messages, variables, clock, rules, space = None))]
    fn render(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        variables: &Bound<'_, PyDict>,
        clock: &Bound<'_, PyDict>,
        rules: u32,
        space: Option<u64>,
    ) -> Prompt {
        let outcome = self.usable().and_then(|_| {
            let call = call_of(messages, variables, clock, rules)?;
            py.detach(|| self.render_call(&call, rules, space, None))
        });
        Prompt::of_text(outcome)
    }

    /// Renders a conversation, and tells which parts of the text, in characters, `generation` tags wrote.
    fn spans(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        variables: &Bound<'_, PyDict>,
        clock: &Bound<'_, PyDict>,
        rules: u32,
    ) -> (Prompt, Vec<Span>) {
        let outcome = self.usable().and_then(|_| {
            let call = call_of(messages, variables, clock, rules)?;
            py.detach(|| self.render_tracked(&call, rules))
        });
        match outcome {
            Ok((rendered, spans)) => (Prompt::of_text(Ok(rendered)), spans),
            Err(reason) => (Prompt::of_text(Err(reason)), Vec::new()),
        }
    }

    /// All shape keys of a call; none if it cannot be native.
    fn shape(
        &self,
        messages: &Bound<'_, PyAny>,
        variables: &Bound<'_, PyDict>,
        rules: u32,
    ) -> Vec<Key> {
        let clock = PyDict::new(messages.py());
        let keys = self.usable().and_then(|template| {
            let call = convert::call(variables, &clock, messages_of(messages, rules, None)?, None)?;
            Ok(call.shape(template.words(), 0))
        });
        keys.unwrap_or_default()
    }

    /// Notes that calls with these shape keys gave the reference's text.
    fn accept(&self, keys: Vec<Key>) {
        self.ledger.accept(&keys);
    }

    /// Sends every call with one of these shape keys to the reference from now on.
    fn quarantine(&self, keys: Vec<Key>) {
        self.ledger.quarantine(&keys);
    }

    /// How many shape keys were accepted, and how many are in quarantine.
    fn shapes(&self) -> (usize, usize) {
        self.ledger.sizes()
    }
}
