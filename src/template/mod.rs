//! A chat template: compiled once, rendered many times, without Python.
//!
//! The source is normalised ([`lexical`]), parsed by minijinja, proved or rewritten node by node
//! ([`lower`]) and compiled to minijinja's instructions. [`ChatTemplate::render`] gives exactly the
//! text that `jinja2` gives as transformers configures it, or a [`Reason`]: a template outside the
//! proved language is refused at compile time, a value outside it stops the render before any text
//! leaves. Both are served by the reference.

mod existence;
mod frames;
mod lexical;
mod lower;
pub mod reuse;
mod scope;
mod text;
mod tracker;

use std::collections::{BTreeMap, HashMap};
use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use minijinja::machinery::{self, CodeGenerator, Instructions, ast};
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};

use crate::call::Call;
use crate::error::{Category, Reason};
use crate::message::Messages;
use crate::sampler::Sampler;
use crate::semantics::{self, Dict, Unproved, budget};
use crate::shape::Words;

use lower::Form;
pub use lower::Refusal;
pub use reuse::{Run, Share};
pub use text::Text;
pub use tracker::Span;
use tracker::Tracked;

/// Index of a message, and where a part of a text that is its begins and ends, in characters.
pub type MessageSpan = (usize, usize, usize);

/// Instructions that a render may execute, for conversations of up to so many messages and as many
/// bytes as instructions: 64 bytes given to a filter cost the engine one. Templates may look at all
/// messages for each message; the last entry holds for every conversation.
const FUEL: [(usize, u64); 4] = [
    (400, 20_000_000),
    (1_200, 100_000_000),
    (3_000, 500_000_000),
    (usize::MAX, 2_500_000_000),
];

/// The environments, one for each entry of [`FUEL`].
static ENVIRONMENTS: LazyLock<[Environment<'static>; 4]> = LazyLock::new(|| {
    let mut env = semantics::environment();
    reuse::install(&mut env);
    env.add_filter("op:defined", |value: Value| {
        if value.is_undefined() {
            Err(semantics::unproved("undefined-argument"))
        } else {
            Ok(value)
        }
    });
    tracker::install(&mut env);
    FUEL.map(|(_, fuel)| {
        let mut env = env.clone();
        env.set_fuel(Some(fuel));
        env
    })
});

/// Bytes that a render may read and make, see [`budget`]: a constant, some copies of the whole
/// conversation, and one for each message (a template may collect its text step by step).
fn allowance(bytes: u64, count: usize) -> u64 {
    let count = count as u64;
    (256 << 20) + bytes.saturating_mul(64 + 2 * count) + 1024 * count.saturating_mul(count)
}

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
    /// The same with reusable loops, if there are any.
    reusing: Option<Instructions<'s>>,
    plans: Arc<[reuse::OwnedPlan]>,
    unplanned: Vec<(&'static str, usize)>,
    blocks: BTreeMap<&'s str, Instructions<'s>>,
    clock_formats: Vec<String>,
    words: Words,
    size_hint: usize,
}

self_cell::self_cell!(
    struct Compiled {
        owner: String,
        #[covariant]
        dependent: Program,
    }
);

/// A fault put in on purpose, to prove that verification would find it. Never in use otherwise.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The filter `trim` does nothing.
    Filter,
    /// Nothing is rewritten: the engine's own operators are at work.
    Gate,
    /// Iterations are reused for the same message, whatever else they read.
    Reuse,
}

static FAULTY_ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut env = ENVIRONMENTS[0].clone();
    env.add_filter("trim", |value: Value| value);
    env
});

/// A text that may have taken over iterations of an earlier render.
pub struct Again {
    /// The text.
    pub text: Text,
    /// How much was taken over.
    pub share: Share,
    /// What the next render can take over.
    pub run: Option<Arc<Run>>,
}

/// A compiled chat template. Immutable, shared between threads.
pub struct ChatTemplate {
    compiled: Compiled,
    /// The program that also tells where the texts of `generation` tags are, compiled when it is asked for.
    tracked: OnceLock<Result<Compiled, Refusal>>,
    markup: bool,
    generations: Vec<u32>,
    fault: Option<Fault>,
    runs: reuse::Runs,
    trust: reuse::Trust,
    /// Bytes of the last text, as a guess at the next one.
    last: AtomicUsize,
}

impl ChatTemplate {
    /// Compiles `source`, or says which construct is not proved equal to jinja2.
    pub fn compile(source: &str) -> Result<Self, Refusal> {
        Self::compile_with(source, None)
    }

    /// A template with a fault.
    #[doc(hidden)]
    pub fn compile_with(source: &str, fault: Option<Fault>) -> Result<Self, Refusal> {
        let source = lexical::normalize(source);
        let lexed = lexical::lex(&source, &SYNTAX).map_err(|construct| Refusal {
            construct: construct.to_owned(),
            line: 1,
        })?;
        let options = lower::Options {
            markup: lexed.markup,
            generations: &lexed.generations,
            form: Form::Plain,
        };
        Ok(ChatTemplate {
            compiled: Program::compile(lexed.source, options, fault)?,
            tracked: OnceLock::new(),
            markup: lexed.markup,
            generations: lexed.generations,
            fault,
            runs: reuse::Runs::default(),
            trust: reuse::Trust::default(),
            last: AtomicUsize::new(0),
        })
    }

    /// Formats that the template gives to `strftime_now`; the clock of a call maps each to its text.
    pub fn clock_formats(&self) -> &[String] {
        &self.compiled.borrow_dependent().clock_formats
    }

    /// How many loops over messages can take over iterations of earlier renders, and why others
    /// cannot, with their lines.
    pub fn loops(&self) -> (usize, Vec<(&'static str, usize)>) {
        let program = self.compiled.borrow_dependent();
        (program.plans.len(), program.unplanned.clone())
    }

    /// What the template can tell conversations apart by.
    pub fn words(&self) -> &Words {
        &self.compiled.borrow_dependent().words
    }

    /// Renders one call.
    ///
    /// # Errors
    /// Why the reference has to serve it.
    pub fn render(&self, call: &Call) -> Result<String, Reason> {
        let program = self.compiled.borrow_dependent();
        self.evaluate(program, &program.instructions, call)
    }

    /// Renders one call, taking over what an `earlier` render has, or what earlier calls of the same `space`
    /// rendered.
    ///
    /// # Errors
    /// Why the reference has to serve it.
    pub fn render_again(
        &self,
        call: &Call,
        space: u64,
        earlier: Option<&Arc<Run>>,
    ) -> Result<Again, Reason> {
        let program = self.compiled.borrow_dependent();
        let Some(reusing) = &program.reusing else {
            return self.render_anew(call);
        };
        // A variable of the caller may hide a function: plans take those for granted.
        let hides = |(name, _): &(Value, Value)| {
            name.as_str()
                .is_some_and(|name| semantics::functions::NAMES.contains(&name))
        };
        if call.messages().len() < reuse::FEWEST_MESSAGES
            || !self.trust.holds()
            || call.variables.entries().iter().any(hides)
        {
            return self.render_anew(call);
        }
        let earlier = earlier.filter(|run| run.is_of(space)).map(Arc::clone);
        let earlier = earlier.or_else(|| self.runs.closest(space, call.messages()));
        let render = || self.evaluate(program, reusing, call);
        let careless = self.fault == Some(Fault::Reuse);
        let walk = reuse::Walk::new(&program.plans, call, earlier.clone(), careless);
        let (output, outcome) = reuse::within(walk, call, space, render);
        let output = match output {
            // Something is not as the plan has it: no matter, the template can still be rendered.
            Err(reason) if reason == reuse::lost_reason() => return self.render_anew(call),
            output => output?,
        };
        let text = outcome.as_ref().and_then(|outcome| outcome.text(output));
        let (Some(outcome), Some(text)) = (outcome, text) else {
            return self.render_anew(call);
        };
        let run = Arc::new(outcome.run);
        self.runs.remember(&run, earlier.as_ref());
        Ok(Again {
            text,
            share: outcome.share,
            run: Some(run),
        })
    }

    fn render_anew(&self, call: &Call) -> Result<Again, Reason> {
        Ok(Again {
            text: self.render(call)?.into(),
            share: Share::default(),
            run: None,
        })
    }

    /// Lets a text that [`ChatTemplate::render_again`] made be compared with a whole render, if it is
    /// this call's turn. A difference ends all reuse for this template.
    pub fn observe(self: &Arc<Self>, call: &Call, text: &Text) {
        if self.trust.is_due() {
            let (call, got) = (call.past(), text.whole());
            Sampler::start(
                Arc::clone(self),
                |this| this.trust.sampler(),
                move |this| this.trust.judge(got, this.render(&call.again()).ok()),
            );
        }
    }

    /// What comparing reused texts with whole renders has shown.
    pub fn trust(&self) -> &reuse::Trust {
        &self.trust
    }

    /// Renders one call, and tells which parts of the text `generation` tags wrote, as a tracker that
    /// is `late` or not finds them, see [`tracker::within`].
    ///
    /// # Errors
    /// Why the reference has to serve it.
    pub fn render_tracked(&self, call: &Call, late: bool) -> Result<(String, Vec<Span>), Reason> {
        let (text, found) = self.track(call, late)?;
        Ok((text, found.spans))
    }

    /// Renders one call, and tells which parts of the text are which message's: its index, where it
    /// begins and where it ends, in characters, in the order of the text. A message may have several
    /// parts, or none; what no loop over messages writes is nobody's.
    ///
    /// # Errors
    /// Why the reference has to serve it.
    pub fn render_located(&self, call: &Call) -> Result<(String, Vec<MessageSpan>), Reason> {
        let (text, found) = self.track(call, false)?;
        Ok((text, located(&found.marks, call.messages())))
    }

    fn track(&self, call: &Call, late: bool) -> Result<(String, Tracked), Reason> {
        let compiled = self.tracked.get_or_init(|| {
            let options = lower::Options {
                markup: self.markup,
                generations: &self.generations,
                form: Form::Tracked,
            };
            Program::compile(self.compiled.borrow_owner().clone(), options, self.fault)
        });
        let refused = |r: &Refusal| Reason::new(Category::Template, r.construct.clone());
        let program = compiled.as_ref().map_err(refused)?.borrow_dependent();
        match tracker::within(late, || self.evaluate(program, &program.instructions, call))? {
            (text, Some(found)) => Ok((text, found)),
            (_, None) => Err(Reason::new(Category::Render, "generation")),
        }
    }

    fn evaluate(
        &self,
        program: &Program<'_>,
        instructions: &Instructions<'_>,
        call: &Call,
    ) -> Result<String, Reason> {
        let (bytes, count) = (call.messages().weight(), call.messages().len());
        let context = call.context();
        let guess = self.last.load(Ordering::Relaxed);
        let mut text = String::with_capacity(program.size_hint.max(guess + guess / 16));
        let mut out = machinery::make_string_output(&mut text);
        let environment = match self.fault {
            Some(Fault::Filter) => &FAULTY_ENVIRONMENT,
            _ => {
                let fits = |(most, fuel): &(usize, u64)| count <= *most && bytes <= *fuel;
                &ENVIRONMENTS[FUEL.iter().position(fits).unwrap_or(FUEL.len() - 1)]
            }
        };
        let result = budget::within(allowance(bytes, count), || {
            machinery::eval(
                environment,
                instructions,
                context,
                &program.blocks,
                &mut out,
                AutoEscape::None,
            )
        });
        match result {
            Ok(_) => {
                drop(out);
                self.last.store(text.len(), Ordering::Relaxed);
                Ok(text)
            }
            Err(error) => Err(render_reason(&error)),
        }
    }
}

impl<'s> Program<'s> {
    /// The program of a source that was read by [`lexical::lex`].
    fn compile(
        source: String,
        options: lower::Options<'_>,
        fault: Option<Fault>,
    ) -> Result<Compiled, Refusal> {
        Compiled::try_new(source, |source| {
            let syntax = |e: Error| Refusal {
                construct: "syntax".to_owned(),
                line: e.line().unwrap_or(1),
            };
            let tree = machinery::parse(source, "template", SYNTAX.clone()).map_err(syntax)?;
            let mut lowering = lower::lower(&tree, options)?;
            let mut reusing = None;
            if fault == Some(Fault::Gate) {
                lowering.tree = tree;
            } else if fault != Some(Fault::Filter)
                && options.form == Form::Plain
                && !lowering.plans.is_empty()
            {
                let options = lower::Options {
                    form: Form::Reusing,
                    ..options
                };
                reusing = Some(lower::lower(&tree, options)?.tree);
            }
            Ok(Program::generate(source, lowering, reusing.as_ref()))
        })
    }

    fn generate(
        source: &'s str,
        lowering: lower::Lowering<'s>,
        reusing: Option<&ast::Stmt<'s>>,
    ) -> Self {
        let compile = |tree: &ast::Stmt<'s>| {
            let mut generator = CodeGenerator::new("template", source);
            generator.compile_stmt(tree);
            let size_hint = generator.buffer_size_hint();
            let (instructions, blocks) = generator.finish();
            (instructions, blocks, size_hint)
        };
        let (instructions, blocks, size_hint) = compile(&lowering.tree);
        Program {
            instructions,
            reusing: reusing.map(|tree| compile(tree).0),
            plans: lowering.plans.iter().map(reuse::OwnedPlan::from).collect(),
            unplanned: lowering.unplanned,
            blocks,
            clock_formats: lowering.clock_formats,
            words: lowering.words,
            size_hint,
        }
    }
}

/// The parts of a text between marks, by the message that is the item of the iteration.
fn located(marks: &[(Option<Value>, usize)], messages: &Messages) -> Vec<MessageSpan> {
    let object = |value: &Value| value.downcast_object_ref::<Dict>().map(std::ptr::from_ref);
    let mut places: HashMap<*const Dict, Vec<usize>> = HashMap::new();
    for (place, message) in messages.iter().enumerate() {
        if let Some(object) = object(message.value()) {
            places.entry(object).or_default().push(place);
        }
    }
    let mut spans = Vec::new();
    // An object may stand for several messages: the next one is meant, as a rule.
    let mut next = 0;
    for (at, (item, start)) in marks.iter().enumerate() {
        let Some(item) = item else {
            next = 0;
            continue;
        };
        let found = object(item).and_then(|object| places.get(&object));
        let found = found.and_then(|places| {
            let ahead = places.iter().find(|place| **place >= next);
            ahead.or(places.first()).copied()
        });
        if let Some(message) = found
            && let Some((_, end)) = marks.get(at + 1)
        {
            next = message + 1;
            if start < end {
                spans.push((message, *start, *end));
            }
        }
    }
    spans
}

/// Short and without contents: our own code if the error is ours, else minijinja's kind.
fn render_reason(error: &Error) -> Reason {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(Unproved(code)) = cause.downcast_ref::<Unproved>() {
            if *code == budget::EXCEEDED {
                return Reason::new(Category::Limit, "work");
            }
            return Reason::new(Category::Render, *code);
        }
        source = cause.source();
    }
    let kind = match error.kind() {
        ErrorKind::UndefinedError => "undefined",
        ErrorKind::UnknownMethod => "unknown-method",
        ErrorKind::UnknownFunction => "unknown-function",
        ErrorKind::InvalidOperation => "invalid-operation",
        ErrorKind::OutOfFuel => return Reason::new(Category::Limit, "work"),
        ErrorKind::CannotUnpack => "unpack",
        ErrorKind::TooManyArguments | ErrorKind::MissingArgument => "arguments",
        _ => "error",
    };
    Reason::new(Category::Render, kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Message, Variables};

    fn refusal(source: &str) -> Option<String> {
        ChatTemplate::compile(source).err().map(|r| r.construct)
    }

    /// Each construct that may differ is refused by name; what is next to it is not.
    #[test]
    fn refused_constructs_are_named() {
        for (source, construct) in [
            ("{% do x.append(1) %}", "do"),
            ("{% call m() %}x{% endcall %}", "call"),
            ("{% autoescape true %}x{% endautoescape %}", "autoescape"),
            ("{% include 'x' %}", "syntax"),
            ("{% block x %}{% endblock %}", "syntax"),
            ("{% generation a=1 %}x{% endgeneration %}", "generation"),
            (
                "{% for a in b %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
                "generation:break",
            ),
            (
                "{% for a in b %}{% filter upper %}{% break %}{% endfilter %}{% endfor %}",
                "block:break",
            ),
            (
                "{% for a in b %}{% filter upper %}{% for c in a %}{% else %}{% break %}{% endfor %}{% endfilter %}{% endfor %}",
                "block:break",
            ),
            (
                "{% for a in b %}{% for c in a %}{% else %}{% continue %}{% endfor %}{% else %}x{% endfor %}",
                "for:else",
            ),
            (
                "{% for a in b %}{% set x %}{% continue %}{% endset %}{% endfor %}",
                "block:break",
            ),
            ("{{ x +}}", "syntax"),
            ("{% for a, in x %}{% endfor %}", "syntax"),
            ("{% for in x %}{% endfor %}", "syntax"),
            ("{% macro m(a,) %}{% endmacro %}", "syntax"),
            ("{{ x is defined is true }}", "syntax"),
            ("{{ x is not defined is true }}", "syntax"),
            ("{{ 1 is eq -1 }}", "syntax"),
            ("{{ 1 is not eq +1 }}", "syntax"),
            (
                "{% for a in b %}{% else %}{% break %}{% endfor %}",
                "syntax",
            ),
            (
                "{% macro m() %}{% for a in b %}{% else %}{% break %}{% endfor %}{% endmacro %}",
                "syntax",
            ),
            (
                "{% for a in b %}{% for c in a %}{% else %}{% set d = 1 %}{% break %}{% endfor %}{% endfor %}",
                "for:else",
            ),
            ("{% set n = namespace(a=1, a=1) %}", "call:repeated"),
            ("{{ x|join(d=1, d=2) }}", "call:repeated"),
            ("{{ x is eq(b=1, b=2) }}", "call:repeated"),
            ("{{ x.split(sep=1, sep=2) }}", "call:repeated"),
            (
                "{% macro m(a) %}{% endmacro %}{{ m(a=1, a=2) }}",
                "call:repeated",
            ),
            ("{% macro m(a, a) %}{% endmacro %}", "macro:repeated"),
            ("{% macro true() %}{% endmacro %}", "assign:true"),
            ("{% macro loop() %}{% endmacro %}", "assign:loop"),
            ("{{ {[]: 1} }}", "dict:key"),
            ("{{ {(1, []): 1} }}", "dict:key"),
            ("{{ {([] and x): 1} }}", "dict:key"),
            ("{{ {([] if 1 else x): 1} }}", "dict:key"),
            ("{{ {'ab'|list: 1} }}", "dict:key"),
            ("{{ {[[]][0]: 1} }}", "dict:key"),
            ("{{ 10 ** 5000 }}", "constant"),
            ("{{ 9 ** 9 ** 9 }}", "constant"),
            ("{{ 9 ** 9 * 9 }}", "constant"),
            ("{{ 9*9*9*9*9*9*9*9*9 }}", "constant"),
            ("{{ 1000000000000000000000000.0 }}", "number"),
            (
                "{% for x in y %}{{ a }}{% endfor %}{% set a = 1 %}",
                "scope:order",
            ),
            (
                "{% for x in y if a %}{% endfor %}{% set a = 1 %}",
                "scope:order",
            ),
            ("{% set a %}{{ a }}{% endset %}", "scope:order"),
            (
                "{% generation %}{{ a }}{% endgeneration %}{% set a = 1 %}",
                "scope:order",
            ),
            (
                "{% for x in y %}{% with b=1 %}{{ a }}{% endwith %}{% set a = 1 %}{% endfor %}",
                "scope:order",
            ),
            (
                "{% if b %}{{ a }}{% set a = 1 %}{% elif c %}{% set a = 2 %}{% else %}{% set a = 3 %}{% endif %}",
                "scope:order",
            ),
            ("{% raw %}x{% endraw %}", "raw"),
            ("{% with a=1, b=a %}x{% endwith %}", "with:several"),
            ("{% for a in b recursive %}x{% endfor %}", "for:recursive"),
            (
                "{% for a in b %}{% with c=1 %}{% break %}{% endwith %}{% endfor %}",
                "with:break",
            ),
            (
                "{% for a in b %}{% continue %}{% else %}x{% endfor %}",
                "for:else",
            ),
            (
                "{% for a in b if loop %}x{% endfor %}",
                "for:loop-in-filter",
            ),
            ("{% for a in b %}{{ loop }}{% endfor %}", "name:loop"),
            (
                "{% for a in b %}{{ loop.cycle('x') }}{% endfor %}",
                "loop:call",
            ),
            (
                "{% for a in b %}{{ loop.changed }}{% endfor %}",
                "loop:changed",
            ),
            ("{% set loop = 1 %}", "syntax"),
            ("{% set caller = 1 %}", "assign:caller"),
            ("{% set n = namespace() %}{{ n }}", "namespace:value"),
            ("{% set n = namespace() %}{{ n['a'] }}", "namespace:item"),
            (
                "{% set n = namespace() %}{{ n._a }}",
                "namespace:underscore",
            ),
            (
                "{% set n = namespace() %}{% set n._a = 1 %}",
                "namespace:underscore",
            ),
            (
                "{% set n = namespace() %}{% set n = 1 %}",
                "namespace:reassigned",
            ),
            ("{{ namespace() }}", "namespace:value"),
            ("{{ x|nosuch }}", "filter:nosuch"),
            ("{{ x is nosuch }}", "test:nosuch"),
            (
                "{% if y %}{% for a in b %}{{ x|nosuch }}{% endfor %}{% endif %}",
                "filter:nosuch",
            ),
            (
                "{% if y %}{% set z %}{{ x is nosuch }}{% endset %}{% endif %}",
                "test:nosuch",
            ),
            ("{{ caller() }}", "function:caller"),
            ("{{ x[0]() }}", "call:expression"),
            ("{{ lipsum }}", "name:lipsum"),
            ("{{ self.x }}", "name:self"),
            ("{{ 1 < x.y < 3 }}", "compare:chain"),
            (
                "{% macro m(a) %}{{ a }}{% endmacro %}{{ m }}",
                "macro:value",
            ),
            (
                "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*x) }}",
                "call:splat",
            ),
            ("{% macro m(a=b) %}{{ a }}{% endmacro %}", "macro:default"),
            (
                "{% macro m() %}{% endmacro %}{% macro m() %}{% endmacro %}",
                "macro:redefined",
            ),
            ("{% macro m() %}{{ varargs }}{% endmacro %}", "name:varargs"),
            (
                "{% for a in b %}{% macro m() %}{% endmacro %}{% endfor %}",
                "macro:nested",
            ),
            (
                "{% macro m() %}{{ y }}{% endmacro %}{% set y = 1 %}",
                "scope:order",
            ),
            (
                "{% set y = 1 %}{% macro m() %}{% if z %}{% set y = 2 %}{% endif %}{{ y }}{% endmacro %}",
                "macro:closure",
            ),
        ] {
            assert_eq!(refusal(source).as_deref(), Some(construct), "{source}");
        }
    }

    #[test]
    fn what_python_would_not_nest_is_refused() {
        let nested = |open: &str, close: &str, n| open.repeat(n) + "x" + &close.repeat(n);
        for (open, close, most) in [
            ("{% for a in b %}", "{% endfor %}", 15),
            ("{% if a %}", "{% endif %}", 40),
            ("{% generation %}", "{% endgeneration %}", 40),
        ] {
            assert_eq!(refusal(&nested(open, close, most)), None, "{open}");
            let refused = refusal(&nested(open, close, most + 1));
            assert_eq!(refused.as_deref(), Some("size"), "{open}");
        }
        let branches = "{% if a %}".to_owned() + &"{% elif b %}".repeat(100) + "{% endif %}";
        assert_eq!(refusal(&branches.repeat(2)), None);
    }

    /// jinja2 knows these, or accepts them there, as long as they are not reached.
    #[test]
    fn what_may_not_be_reached_compiles() {
        for source in [
            "{% if x %}{{ x|nosuch }}{% elif x is nosuch %}{% endif %}",
            "{% for a in b %}{% if x %}{{ x|nosuch(a) }}{% endif %}{% endfor %}",
            "{{ (x|nosuch) if x else 1 }}",
            "{{ x|pprint }}{{ x is filter }}{{ x.nosuch() }}{{ nosuch(1) }}",
        ] {
            assert_eq!(refusal(source), None, "{source}");
        }
    }

    #[test]
    fn what_is_next_to_refused_constructs_compiles() {
        for source in [
            "{{ {1: 2, -1: 2, 'a': 3, ('b' ~ 'c'): 4, (1, 2): 5, x: 6, x.y: 7, none: 8} }}",
            "{{ 2 ** x }}{{ 7 ** 2 }}{{ 2 * 3 / 4 }}{{ 1.5 }}",
            "{{ x is eq(-1) }}{{ x is eq 1 is true }}{{ (x is defined) - 1 }}{{ not x - 1 }}",
            "{% macro m(a, b=1) %}{% endmacro %}{{ m(1, b=2,) }}",
            "{% for a in b %}{% for c in a %}{% else %}{% break %}{% endfor %}{% endfor %}",
        ] {
            assert_eq!(refusal(source), None, "{source}");
        }
    }

    #[test]
    fn names_that_are_read_first_may_be_set_later() {
        for source in [
            "{{ a }}{% for x in y %}{{ a }}{% endfor %}{% set a = 1 %}",
            "{% for x in y %}{{ a }}{% set a = 1 %}{{ a }}{% endfor %}{{ a }}",
            "{% if not a is defined %}{% set a = 1 %}{% endif %}{{ a }}",
            "{% if b %}{% set a = 1 %}{% endif %}{% for x in y %}{{ a }}{% endfor %}",
            "{% if b %}{% set a = 1 %}{% else %}{% set a = 2 %}{% endif %}{% for x in y %}{{ a }}{% endfor %}",
            "{% for a in y %}{{ a }}{% endfor %}{% set a = 1 %}",
            "{% set a = 1 %}{% for x in y %}{{ a }}{% endfor %}",
        ] {
            assert_eq!(refusal(source), None, "{source}");
        }
    }

    #[test]
    fn the_line_of_a_refusal_is_that_of_the_construct() {
        let refusal = ChatTemplate::compile("a\n{{ b }}\n{{ c|nosuch }}").err();
        assert_eq!(refusal.map(|r| r.line), Some(3));
    }

    #[test]
    fn macros_with_names_of_their_own_compile() {
        for source in [
            "{% macro m(a, b=1) %}{% for x in a %}{{ x }}{% endfor %}{% endmacro %}{{ m([1]) }}",
            "{% set y = 1 %}{% macro m() %}{{ y }}{% endmacro %}{{ m() }}",
            "{% macro m(message) %}{{ message }}{% endmacro %}{% for message in messages %}{{ m(message) }}{% endfor %}",
        ] {
            assert_eq!(refusal(source), None, "{source}");
        }
    }

    fn conversation(turns: usize) -> Call {
        let message = |at: usize| {
            let role = ["user", "assistant", "tool"][at % 3];
            let fields = [
                ("role", role.to_owned()),
                ("content", format!("message {at}")),
            ];
            let fields = fields.map(|(name, value)| (Value::from(name), Value::from(value)));
            Message::new(Dict::new(fields.to_vec()))
        };
        let messages: Messages = (0..turns).map(message).collect();
        Call {
            conversation: messages.into(),
            variables: crate::message::Variables::new(Vec::new()),
            clock: Arc::new(Dict::new(Vec::new())),
        }
    }

    /// A turn compares the inputs of a few iterations, however many there are.
    #[test]
    fn iterations_are_taken_over_in_stretches() {
        for (source, loops) in [
            ("{% for m in messages %}{{ m.content }};{% endfor %}", 1),
            (
                "{% for m in messages %}{{ loop.index }}{{ m.content }}{% if loop.last %}!{% endif %}{% endfor %}",
                1,
            ),
            (
                "{% for m in messages %}{% if loop.previtem %}{{ loop.previtem.role }}{% endif %}{{ m.content }}{% if loop.nextitem is undefined %}.{% endif %}{% endfor %}",
                1,
            ),
            (
                "{% set ns = namespace(last=messages|length - 1, seen=false) %}{% for m in messages[::-1] %}{% if not ns.seen and m.role == 'user' %}{% set ns.seen = true %}{% endif %}{% endfor %}{% for m in messages %}{% if loop.index0 > ns.last - 3 %}>{% endif %}{{ m.content }}{% endfor %}",
                2,
            ),
        ] {
            let template = ChatTemplate::compile(source).ok().unwrap();
            let mut before: Option<Again> = None;
            for turns in [200, 202, 204] {
                let call = conversation(turns);
                let run = before.as_ref().and_then(|again| again.run.as_ref());
                let again = template.render_again(&call, 0, run).unwrap();
                assert_eq!(
                    again.text.whole(),
                    template.render(&call).unwrap(),
                    "{source}"
                );
                let share = again.share;
                assert_eq!(share.reused + share.rendered, loops * turns, "{source}");
                if let Some(before) = before {
                    assert!(share.compared <= 10 * loops, "{source}: {share:?}");
                    let shared = again.text.shared_with(&before.text);
                    assert!(shared > before.text.len() / 10 * 9, "{source}: {shared}");
                }
                before = Some(again);
            }
        }
    }

    /// A turn that only adds shares all but its end with the one before, without a look at what they share.
    #[test]
    fn turns_go_on_from_each_other() {
        for source in [
            "{% for m in messages %}{{ m.content }};{% endfor %}",
            // The first iteration looks at the last message.
            "{% for m in messages %}{% if messages[loop.index0 - 1].role != 'x' %}{{ m.content }}{% endif %}{% endfor %}",
            "{% set ns = namespace(at=0) %}{% for m in messages[::-1] %}{% if m.role == 'user' %}{% set ns.at = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}{{ m.content }}{% if loop.last %}!{% endif %}{% endfor %}{{ ns.at }}",
        ] {
            let template = ChatTemplate::compile(source).ok().unwrap();
            let mut call = conversation(200);
            let mut before: Option<Arc<Run>> = None;
            for turn in 0..20 {
                let again = template.render_again(&call, 0, before.as_ref()).unwrap();
                let want = template.render(&call).unwrap();
                assert_eq!(again.text.whole(), want, "{source}");
                let run = again.run.unwrap();
                if let Some(before) = before {
                    for pair in run.loops.iter().zip(&before.loops) {
                        let (Some(now), Some(then)) = pair else {
                            panic!("{source}: a loop did not run");
                        };
                        let common = now.slots.common(&then.slots);
                        assert!(common + 1 >= then.slots.len(), "{source}, {turn}: {common}");
                    }
                }
                before = Some(run);
                for message in conversation(3).messages().iter() {
                    call.conversation.push(message.clone());
                }
            }
        }
    }

    #[test]
    fn what_is_dumped_again_is_taken_over() {
        let source = "{{ tools|tojson }}{{ tools|tojson(indent=2) }}{{ tools|tojson(indent=3) }}{% for m in messages %}{{ m.content }}{% endfor %}";
        let template = ChatTemplate::compile(source).ok().unwrap();
        let mut call = conversation(5);
        let tools = Dict::new(vec![(
            Value::from("name"),
            Value::from("a tool with a name that is not short"),
        )]);
        call.variables = Variables::new(vec![(Value::from("tools"), Value::from_object(tools))]);
        let mut known: Option<Arc<Run>> = None;
        for _ in 0..3 {
            let again = template.render_again(&call, 0, known.as_ref()).unwrap();
            assert_eq!(again.text.whole(), template.render(&call).unwrap());
            let run = again.run.unwrap();
            assert_eq!(run.dumps.len(), 3);
            if let Some(known) = known {
                for (a, b) in run.dumps.iter().zip(&known.dumps) {
                    assert_eq!(a.text().as_ptr(), b.text().as_ptr());
                }
            }
            known = Some(run);
        }
    }

    /// An iteration that came out as before keeps its place, but no large message alive that it once saw.
    #[test]
    fn what_an_iteration_saw_once_is_not_kept_for_long() {
        let source = "{% for m in messages %}{% if messages[loop.index0 - 1].role != m.role %}[{% endif %}{{ m.role }}{% endfor %}";
        let said = |content: Arc<str>| {
            let fields = [
                ("role", Value::from("tool")),
                ("content", Value::from(content)),
            ];
            let fields = fields.map(|(name, value)| (Value::from(name), value));
            Message::new(Dict::new(fields.to_vec()))
        };
        for (size, held) in [(8 << 20, false), (1 << 18, true)] {
            let template = ChatTemplate::compile(source).ok().unwrap();
            let messages = conversation(2).messages().clone();
            let mut call = conversation(2);
            let large: Arc<str> = "x".repeat(size).into();
            let mut before: Option<Arc<Run>> = None;
            for content in [Arc::clone(&large), "small".into(), "other".into()] {
                call.conversation = messages.clone().into();
                call.conversation.push(said(content));
                let again = template.render_again(&call, 0, before.as_ref()).unwrap();
                assert_eq!(again.text.whole(), template.render(&call).unwrap());
                before = again.run;
            }
            // It knows earlier runs, too.
            drop(template);
            let run = before.unwrap();
            let bytes = run.loops[0].as_ref().unwrap().bytes();
            // What is held is counted.
            assert_eq!(bytes > size, held, "{size}: {bytes}");
            assert_eq!(Arc::strong_count(&large) > 1, held, "{size}");
        }
    }

    /// Iterations that come out as before one after another: their inputs do not pile up beside the run.
    #[test]
    fn inputs_beside_a_run_are_few() {
        let source = "{% for m in messages %}{% if messages[loop.index0 + 1] is defined and messages[loop.index0 + 1].content == 'x' %}!{% endif %}{{ m.role }}{% endfor %}";
        let template = ChatTemplate::compile(source).ok().unwrap();
        let messages: Vec<Message> = conversation(40).messages().iter().cloned().collect();
        let other: Vec<Message> = conversation(80)
            .messages()
            .iter()
            .skip(40)
            .cloned()
            .collect();
        let mut before: Option<Arc<Run>> = None;
        for changed in 1..40 {
            let mut call = conversation(0);
            for (at, message) in messages.iter().enumerate() {
                let message = match at <= changed && at % 3 == 0 {
                    true => &other[at],
                    false => message,
                };
                call.conversation.push(message.clone());
            }
            let again = template.render_again(&call, 0, before.as_ref()).unwrap();
            assert_eq!(again.text.whole(), template.render(&call).unwrap());
            let run = again.run.unwrap();
            assert!(run.loops[0].as_ref().unwrap().anew.len() <= 4);
            before = Some(run);
        }
    }
}
