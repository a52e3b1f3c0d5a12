//! (stub, being written)

use minijinja::Environment;

/// Adds them to `env`.
pub fn install(env: &mut Environment<'static>) {
    let _ = env;
}

/// Names of the tests that a template may use.
pub const NAMES: &[&str] = &[];
