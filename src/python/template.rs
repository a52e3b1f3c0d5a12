//! A compiled chat template, or the reason why there is none.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::conversation::messages_of;
use super::convert;
use super::guard::guarded;
use crate::error::{Category, Reason};
use crate::template::{ChatTemplate, Refusal};

/// A chat template, compiled once. Never raises for a template it cannot serve: see `reason`.
#[pyclass(frozen, module = "turntrie._native")]
pub struct Template {
    compiled: Result<ChatTemplate, (Reason, usize)>,
}

impl Template {
    /// The compiled template, or why the reference serves it.
    pub fn compiled(&self) -> Result<&ChatTemplate, Reason> {
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
                    compiled.map_err(|Refusal { construct, line }| {
                        (Reason::new(Category::Template, construct), line)
                    })
                })
        });
        Template { compiled }
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

    /// Renders to `(text, None)`, or `(None, reason)` if the reference has to.
    fn render(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        variables: &Bound<'_, PyDict>,
        clock: &Bound<'_, PyDict>,
        rules: u32,
    ) -> (Option<String>, Option<String>) {
        let rendered = self.compiled().and_then(|template| {
            let context = convert::context(variables, clock, messages_of(messages, rules)?)?;
            py.detach(|| guarded("render", || template.render(context)))
        });
        match rendered {
            Ok(text) => (Some(text), None),
            Err(reason) => (None, Some(reason.to_string())),
        }
    }
}
