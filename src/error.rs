//! Two ways in which a call does not produce ids, kept apart on purpose.
//!
//! A [`Reason`] is an ordinary value: the native path cannot *prove* that it would do what the
//! reference does, so the reference serves the call. Reasons are counted and shown to users, hence
//! short, stable and free of message contents: `template:do`, `value:surrogate`, `render:undefined`.
//!
//! An [`Error`] is misuse: a tokenizer file that cannot be read, a text that the `tokenizers` crate
//! refuses.

use std::borrow::Cow;
use std::fmt;

/// Why the reference serves a call. Displayed as `category:detail`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reason {
    category: Category,
    detail: Cow<'static, str>,
}

/// What kind of thing could not be proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// The chat template uses a construct that is not proved equal to jinja2.
    Template,
    /// A value given to the template has no native counterpart with Python's semantics.
    Value,
    /// Rendering failed; the reference decides whether that is an exception or a text.
    Render,
    /// The template does more than any template may; nobody serves the call.
    Limit,
    /// The tokenizer backend cannot be loaded or cannot encode this text.
    Tokenizer,
    /// A check found this path wrong; it is not taken again.
    Quarantine,
    /// The native code panicked.
    Panic,
}

impl Category {
    fn as_str(self) -> &'static str {
        match self {
            Category::Template => "template",
            Category::Value => "value",
            Category::Render => "render",
            Category::Limit => "limit",
            Category::Tokenizer => "tokenizer",
            Category::Quarantine => "quarantine",
            Category::Panic => "panic",
        }
    }
}

impl Reason {
    /// A reason of `category`; `detail` must not hold message contents.
    pub fn new(category: Category, detail: impl Into<Cow<'static, str>>) -> Self {
        Reason {
            category,
            detail: detail.into(),
        }
    }

    /// The kind of thing that could not be proved.
    pub fn category(&self) -> Category {
        self.category
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.category.as_str(), self.detail)
    }
}

/// Misuse: what was wrong, and where.
#[derive(Debug)]
pub struct Error(String);

impl Error {
    /// An error that reads `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Error(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
