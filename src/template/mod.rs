//! A chat template: compiled once, rendered many times, without Python.
//!
//! The source is normalised ([`lexical`]), parsed by minijinja, proved or rewritten node by node
//! ([`lower`]) and compiled to minijinja's instructions. [`ChatTemplate::render`] gives exactly the
//! text that `jinja2` gives as transformers configures it, or a [`Reason`]: a template outside the
//! proved language is refused at compile time, a value outside it stops the render before any text
//! leaves. Both are served by the reference.

mod lexical;
mod lower;
mod scope;

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::LazyLock;

use minijinja::machinery::{self, CodeGenerator, Instructions, ast};
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};

use crate::error::{Category, Reason};
use crate::semantics::{self, Unproved};

pub use lower::Refusal;

/// Name of the context entry that holds the texts for `strftime_now`; no template can spell it.
pub const CLOCK: &str = "strftime_now()";

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut env = semantics::environment();
    env.add_filter("op:defined", |value: Value| {
        if value.is_undefined() {
            Err(semantics::unproved("undefined-argument"))
        } else {
            Ok(value)
        }
    });
    env
});

static SYNTAX: LazyLock<SyntaxConfig> = LazyLock::new(|| {
    SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        // The trailing newline is already gone.
        .keep_trailing_newline(true)
        .build()
        .unwrap_or_default()
});

struct Program<'s> {
    instructions: Instructions<'s>,
    blocks: BTreeMap<&'s str, Instructions<'s>>,
    clock_formats: Vec<String>,
    size_hint: usize,
}

self_cell::self_cell!(
    struct Compiled {
        owner: String,
        #[covariant]
        dependent: Program,
    }
);

/// A compiled chat template. Immutable, shared between threads.
pub struct ChatTemplate {
    compiled: Compiled,
}

impl ChatTemplate {
    /// Compiles `source`, or says which construct is not proved equal to jinja2.
    pub fn compile(source: &str) -> Result<Self, Refusal> {
        let compiled = Compiled::try_new(lexical::normalize(source), |source| {
            let refuse = |construct: &str, line: Option<usize>| Refusal {
                construct: construct.to_owned(),
                line: line.unwrap_or(1),
            };
            lexical::check(source, &SYNTAX).map_err(|construct| refuse(construct, None))?;
            let tree = machinery::parse(source, "template", SYNTAX.clone())
                .map_err(|e| refuse("syntax", e.line()))?;
            let lowering = lower::lower(&tree)?;
            Ok(Program::generate(source, lowering))
        })?;
        Ok(ChatTemplate { compiled })
    }

    /// Formats that the template gives to `strftime_now`; [`CLOCK`] in the context maps each to its
    /// text at this moment.
    pub fn clock_formats(&self) -> &[String] {
        &self.compiled.borrow_dependent().clock_formats
    }

    /// Renders with `context`, a [`semantics::Dict`] of the template's variables.
    pub fn render(&self, context: Value) -> Result<String, Reason> {
        let program = self.compiled.borrow_dependent();
        let mut text = String::with_capacity(program.size_hint);
        let mut out = machinery::make_string_output(&mut text);
        let result = machinery::eval(
            &ENVIRONMENT,
            &program.instructions,
            context,
            &program.blocks,
            &mut out,
            AutoEscape::None,
        );
        match result {
            Ok(_) => {
                drop(out);
                Ok(text)
            }
            Err(error) => Err(render_reason(&error)),
        }
    }
}

impl<'s> Program<'s> {
    fn generate(source: &'s str, lowering: lower::Lowering<'s>) -> Self {
        let mut generator = CodeGenerator::new("template", source);
        let tree: &ast::Stmt<'s> = &lowering.tree;
        generator.compile_stmt(tree);
        let size_hint = generator.buffer_size_hint();
        let (instructions, blocks) = generator.finish();
        Program {
            instructions,
            blocks,
            clock_formats: lowering.clock_formats,
            size_hint,
        }
    }
}

/// Short and without contents: our own code if the error is ours, else minijinja's kind.
fn render_reason(error: &Error) -> Reason {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(Unproved(code)) = cause.downcast_ref::<Unproved>() {
            return Reason::new(Category::Render, *code);
        }
        source = cause.source();
    }
    let kind = match error.kind() {
        ErrorKind::UndefinedError => "undefined",
        ErrorKind::UnknownMethod => "unknown-method",
        ErrorKind::UnknownFunction => "unknown-function",
        ErrorKind::InvalidOperation => "invalid-operation",
        ErrorKind::OutOfFuel => "fuel",
        ErrorKind::CannotUnpack => "unpack",
        ErrorKind::TooManyArguments | ErrorKind::MissingArgument => "arguments",
        _ => "error",
    };
    Reason::new(Category::Render, kind)
}
