//! Messages converted once, for sessions that pass only what is new.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert;
use super::memo::{MEMO, Memo};
use crate::call::Call;
use crate::message::Growing;

/// A growing list of converted messages.
#[pyclass(frozen, module = "turntrie._native")]
pub struct Conversation {
    messages: Mutex<Growing>,
}

impl Conversation {
    fn locked(&self) -> MutexGuard<'_, Growing> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The messages so far; cheap, values are shared.
    pub fn snapshot(&self) -> Growing {
        self.locked().clone()
    }
}

#[pymethods]
impl Conversation {
    #[new]
    fn new() -> Self {
        Conversation {
            messages: Mutex::default(),
        }
    }

    /// Converts and appends `messages`; on a reason nothing was appended.
    fn extend(&self, messages: &Bound<'_, PyAny>, rules: u32) -> Option<String> {
        match convert::messages(messages, rules) {
            Ok(new) => {
                let mut locked = self.locked();
                new.iter().for_each(|message| locked.push(message.clone()));
                None
            }
            Err(reason) => Some(reason.to_string()),
        }
    }

    fn __len__(&self) -> usize {
        self.locked().messages().len()
    }
}

/// A call, with what is recognised from earlier ones.
pub fn call_of(
    messages: &Bound<'_, PyAny>,
    variables: &Bound<'_, PyDict>,
    clock: &Bound<'_, PyDict>,
    rules: u32,
) -> convert::Converted<Call> {
    let messages = messages_of(messages, rules, Some(&MEMO))?;
    convert::call(variables, clock, messages, Some(&MEMO))
}

/// The converted messages of a list, recognised by `memo`, or of a [`Conversation`].
pub fn messages_of(
    messages: &Bound<'_, PyAny>,
    rules: u32,
    memo: Option<&Memo>,
) -> convert::Converted<Growing> {
    match messages.cast_exact::<Conversation>() {
        Ok(conversation) => Ok(conversation.get().snapshot()),
        Err(_) => match memo {
            Some(memo) => memo.messages(messages, rules),
            None => convert::messages(messages, rules).map(Growing::from),
        },
    }
}
