//! The extension module `turntrie._native`: extract, detach, call, wrap.
//!
//! One frozen class per file. Python objects are walked in [`convert`] and nowhere else; everything
//! after that runs detached from the interpreter, and no lock is held while waiting for it. A panic
//! below is caught in [`guard`] and becomes an ordinary reason for the reference to serve the call.

mod conversation;
mod convert;
mod engine;
mod guard;
mod lists;
mod memo;
mod prompt;
mod template;

use pyo3::prelude::*;

/// The native half of turntrie. Use the package `turntrie` instead.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::conversation::Conversation;
    #[pymodule_export]
    const RULE_ALIAS_REASONING: u32 = super::convert::RULE_ALIAS_REASONING;
    #[pymodule_export]
    const RULE_DROP_NULL: u32 = super::convert::RULE_DROP_NULL;
    #[pymodule_export]
    const RULE_LATE_TRACKER: u32 = super::convert::RULE_LATE_TRACKER;
    #[pymodule_export]
    const RULE_MASK_OVERLAP: u32 = super::convert::RULE_MASK_OVERLAP;
    #[pymodule_export]
    const RULE_WATCH_IDS: u32 = super::convert::RULE_WATCH_IDS;
    #[pymodule_export]
    const RULE_WATCH_SHAPES: u32 = super::convert::RULE_WATCH_SHAPES;
    #[pymodule_export]
    use super::engine::Engine;
    #[pymodule_export]
    use super::memo::forget;
    #[pymodule_export]
    use super::prompt::Prompt;
    #[pymodule_export]
    use super::template::Template;
}
