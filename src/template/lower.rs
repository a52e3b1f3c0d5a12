//! Gate and lowering in one walk: every node of the syntax tree either means in minijinja what it
//! means in jinja2, or is rewritten into a call of [`crate::semantics`], or refuses the template.
//!
//! *Why a rewrite.* Operators cannot be overridden in minijinja, and some differ from Python without
//! an error (`'a' < 1`, `1e16 ~ ''`, `None[1:]`, `d['items']`). The tree is public, so it is rebuilt
//! with such an operator spelled as a filter with a name no template can write (`op:lt`). Filters,
//! because the virtual machine resolves them once per render and no template variable can shadow
//! them.
//!
//! *Why anything stays native.* Speed, where the operands rule out a difference: `'<|im_start|>' + x`
//! is a concatenation or an error in both engines.
//!
//! *What is refused* is named in the reason (`template:filter:pprint`). The walk is exhaustive: a new
//! node kind in a new minijinja does not compile until somebody decides what it means.

use std::collections::HashSet;

use minijinja::Value;
use minijinja::machinery::Span;
use minijinja::machinery::ast::{self, BinOpKind, CallArg, CompareOpKind, Expr, Spanned, Stmt};
use minijinja::value::ValueKind;

use super::existence::Existence;
use super::reuse::plan::{Names, Plan, Setting, turned};
use super::scope::Scope;
use crate::semantics::{filters, functions, methods, tests};
use crate::shape::{Search, Words};

/// What made the reference serve the template, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The construct, for example `filter:pprint`.
    pub construct: String,
    /// Line in the template, counted from one.
    pub line: usize,
}

type Lowered<T> = Result<T, Refusal>;

fn refuse<T>(construct: impl Into<String>, span: Span) -> Lowered<T> {
    Err(Refusal {
        construct: construct.into(),
        line: usize::from(span.start_line),
    })
}

/// The lowered tree of a template, and the literal formats it gives to `strftime_now`.
pub struct Lowering<'s> {
    /// The tree to compile.
    pub tree: Stmt<'s>,
    /// Formats whose text the caller has to supply at each render.
    pub clock_formats: Vec<String>,
    /// What the template can tell conversations apart by.
    pub words: Words,
    /// Of the loops whose iterations may be reused, by the number that the tree calls them.
    pub plans: Vec<Plan<'s>>,
    /// Why other loops over messages have no plan, with their lines.
    pub unplanned: Vec<(&'static str, usize)>,
}

/// Which of two equivalent trees to make.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As the template is written.
    Plain,
    /// With loops over messages whose iterations can be reused, see [`reuse`](super::reuse).
    Reusing,
    /// With `generation` tags and loops over messages that tell the [`tracker`](super::tracker) where
    /// their texts are.
    Tracked,
}

/// What the lowering has to know besides the tree.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Whether a value can be a `Markup`.
    pub markup: bool,
    /// Where the tags stand that were `generation`, sorted.
    pub generations: &'a [u32],
    /// Which tree to make.
    pub form: Form,
}

/// Proves or rewrites every node of `tree`.
pub fn lower<'s>(tree: &Stmt<'s>, options: Options<'_>) -> Lowered<Lowering<'s>> {
    let Stmt::Template(template) = tree else {
        return refuse("syntax", Span::default());
    };
    let scope = Scope::of(&template.children).map_err(|e| Refusal {
        construct: e.construct.into(),
        line: usize::from(e.span.start_line),
    })?;
    // What stands in an `else` is outside of that loop; the engine's parser lets it pass.
    if super::scope::leaves_loop(&template.children) {
        return refuse("syntax", template.span());
    }
    let names = Names::of(&template.children, &scope);
    let mut walk = Walk {
        scope: &scope,
        names: &names,
        in_output: true,
        in_branch: false,
        collected: false,
        options,
        clock_formats: Vec::new(),
        words: Words::default(),
        plans: Vec::new(),
        unplanned: Vec::new(),
        noted: Vec::new(),
        uncounted: false,
    };
    let children = walk.body(&template.children)?;
    Ok(Lowering {
        tree: Stmt::Template(Spanned::new(ast::Template { children }, template.span())),
        clock_formats: walk.clock_formats,
        words: walk.words,
        plans: walk.plans,
        unplanned: walk.unplanned,
    })
}

/// What is known about an expression without running it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Static {
    Str,
    Int,
    Unknown,
}

/// Names that jinja2 or Python gives a meaning of its own.
const SPECIAL_NAMES: &[&str] = &[
    "self", "super", "caller", "varargs", "kwargs", "lipsum", "cycler", "joiner",
];

/// Attributes of `loop` that mean the same in both engines.
const LOOP_ATTRIBUTES: &[&str] = &[
    "index",
    "index0",
    "revindex",
    "revindex0",
    "first",
    "last",
    "length",
    "previtem",
    "nextitem",
    "depth",
    "depth0",
];

/// Methods whose first argument a text is searched for.
const SEARCH_METHODS: &[&str] = &[
    "split",
    "rsplit",
    "find",
    "rfind",
    "index",
    "rindex",
    "count",
    "replace",
    "partition",
    "rpartition",
];

/// Filters and tests of jinja2 that are not proved. A template may name them where it does not get.
const UNPROVED_FILTERS: &[&str] = &[
    "attr",
    "filesizeformat",
    "forceescape",
    "groupby",
    "pprint",
    "random",
    "striptags",
    "urlencode",
    "urlize",
    "wordwrap",
    "xmlattr",
];
const UNPROVED_TESTS: &[&str] = &["filter", "test"];

struct Walk<'t, 's> {
    scope: &'t Scope<'s>,
    names: &'t Names<'t, 's>,
    options: Options<'t>,
    /// Whether what is written here goes straight into the output, once at most.
    in_output: bool,
    /// Whether this is where jinja2 accepts a filter that it does not know, until it is reached: right
    /// in a branch of an `if`, not in a loop or another scope inside of one.
    in_branch: bool,
    /// Whether what is written here is collected to become a value, not written to the text.
    collected: bool,
    clock_formats: Vec<String>,
    words: Words,
    plans: Vec<Plan<'s>>,
    unplanned: Vec<(&'static str, usize)>,
    /// Attributes of namespaces whose setting is noted here, as a plan calls them.
    noted: Vec<Setting<'s>>,
    /// Whether `loop` is that of a loop whose iterations may be taken over: the engine does not count those.
    uncounted: bool,
}

impl<'s> Walk<'_, 's> {
    fn body(&mut self, body: &[Stmt<'s>]) -> Lowered<Vec<Stmt<'s>>> {
        let mut lowered = Vec::with_capacity(body.len());
        for stmt in body {
            let plans = self.plans.len();
            lowered.push(self.stmt(stmt)?);
            let Stmt::ForLoop(s) = stmt else {
                continue;
            };
            // A loop whose texts are collected leaves a mark in the output; a tracked one tells its end.
            let end = match self.options.form {
                Form::Reusing if self.plans.len() > plans => "op:done",
                Form::Tracked if self.located(s).is_some() => "op:ends",
                _ => continue,
            };
            let nothing = constant(Value::from(()), s.span());
            lowered.push(emitted(operator(end, nothing, vec![], s.span()), s.span()));
        }
        Ok(lowered)
    }

    /// The item of a loop whose iterations can be told apart in the output. Whether it is a message shows
    /// when it runs.
    fn located(&self, s: &ast::ForLoop<'s>) -> Option<&'s str> {
        match &s.target {
            Expr::Var(item) if self.in_output && self.is_counted() => Some(item.id),
            _ => None,
        }
    }

    /// What `lower` makes where [`Walk::in_branch`] is as given.
    fn within<T>(
        &mut self,
        in_branch: bool,
        lower: impl FnOnce(&mut Self) -> Lowered<T>,
    ) -> Lowered<T> {
        let before = std::mem::replace(&mut self.in_branch, in_branch);
        let lowered = lower(self);
        self.in_branch = before;
        lowered
    }

    /// The body of a scope.
    fn scoped(&mut self, body: &[Stmt<'s>]) -> Lowered<Vec<Stmt<'s>>> {
        self.within(false, |walk| walk.body(body))
    }

    /// What `lower` makes of something that runs several times, elsewhere, or with its text collected.
    fn apart<T>(&mut self, lower: impl FnOnce(&mut Self) -> Lowered<T>) -> Lowered<T> {
        let before = std::mem::replace(&mut self.in_output, false);
        let lowered = lower(self);
        self.in_output = before;
        lowered
    }

    fn stmt(&mut self, stmt: &Stmt<'s>) -> Lowered<Stmt<'s>> {
        Ok(match stmt {
            Stmt::Template(s) => return refuse("template", s.span()),
            Stmt::EmitRaw(s) if self.is_counted() && !s.raw.is_empty() => {
                let text = constant(Value::from(s.raw), s.span());
                let expr = self.counted(text, s.span());
                emitted(expr, s.span())
            }
            Stmt::EmitRaw(s) => Stmt::EmitRaw(Spanned::new(ast::EmitRaw { raw: s.raw }, s.span())),
            Stmt::EmitExpr(s) => {
                let value = self.expr(&s.expr)?;
                emitted(self.counted(value, s.span()), s.span())
            }
            Stmt::ForLoop(s) => self.for_loop(s)?,
            Stmt::IfCond(s) => self.within(true, |walk| {
                let lowered = ast::IfCond {
                    expr: walk.expr(&s.expr)?,
                    true_body: walk.body(&s.true_body)?,
                    false_body: walk.body(&s.false_body)?,
                };
                Ok(Stmt::IfCond(Spanned::new(lowered, s.span())))
            })?,
            Stmt::WithBlock(s) => {
                // The body of a `generation` tag is a function to jinja2: no loop reaches into it. And
                // the engine does not close the scope of a `with` that a loop is left from.
                let is_generation = self.options.generations.contains(&s.span().start_offset);
                if super::scope::leaves_loop(&s.body) {
                    let tag = if is_generation { "generation" } else { "with" };
                    return refuse(format!("{tag}:break"), s.span());
                }
                if is_generation && (self.options.form == Form::Tracked) {
                    let name = filter_of_block("op:generation", None, s.span());
                    let filter = self.counted(name, s.span());
                    return self.filter_block(filter, &s.body, s.span(), s.span());
                }
                // jinja2 evaluates all values of one `with` in the outer scope, minijinja one by one.
                if s.assignments.len() > 1 {
                    return refuse("with:several", s.span());
                }
                let mut assignments = Vec::new();
                for (target, value) in &s.assignments {
                    assignments.push((self.target(target)?, self.expr(value)?));
                }
                let body = match assignments.is_empty() {
                    true => self.scoped(&s.body)?,
                    // Names of its own: a plan would take them for those around.
                    false => self.apart(|walk| walk.scoped(&s.body))?,
                };
                Stmt::WithBlock(Spanned::new(ast::WithBlock { assignments, body }, s.span()))
            }
            Stmt::Set(s) => {
                let expr = match &s.target {
                    Expr::Var(_) => self.assigned(&s.expr)?,
                    _ => kept(&s.expr, self.expr(&s.expr)?),
                };
                let set = ast::Set {
                    target: self.target(&s.target)?,
                    expr: self.noted(&s.target, expr),
                };
                Stmt::Set(Spanned::new(set, s.span()))
            }
            Stmt::SetBlock(s) => {
                let filter = match &s.filter {
                    Some(filter) => Some(self.within(false, |walk| walk.filter_chain(filter))?),
                    None => None,
                };
                Stmt::SetBlock(Spanned::new(
                    ast::SetBlock {
                        target: self.target(&s.target)?,
                        filter,
                        body: self.captured(&s.body, s.span())?,
                    },
                    s.span(),
                ))
            }
            Stmt::FilterBlock(s) => {
                // Applied inside the scope of the block, in jinja2, which writes what comes of it as it
                // is: anything but a text is an error.
                let filter = self.within(false, |walk| walk.filter_chain(&s.filter))?;
                let filter = filter_of_block("op:text", Some(filter), s.filter_span);
                let filter = self.counted(filter, s.filter_span);
                self.filter_block(filter, &s.body, s.filter_span, s.span())?
            }
            Stmt::Macro(s) => {
                let constant =
                    |name| matches!(name, "none" | "None" | "true" | "True" | "false" | "False");
                if constant(s.name) || s.name == "loop" || SPECIAL_NAMES.contains(&s.name) {
                    return refuse(format!("assign:{}", s.name), s.span());
                }
                if super::scope::leaves_loop(&s.body) {
                    return refuse("syntax", s.span());
                }
                let mut names = HashSet::new();
                let mut repeated = false;
                for arg in &s.args {
                    super::scope::each_target(arg, &mut |name| repeated |= !names.insert(name));
                }
                if repeated {
                    return refuse("macro:repeated", s.span());
                }
                let mut args = Vec::new();
                for arg in &s.args {
                    args.push(self.target(arg)?);
                }
                let mut defaults = Vec::new();
                for default in &s.defaults {
                    // minijinja evaluates defaults from the right, jinja2 from the left.
                    if !matches!(default, Expr::Const(_)) {
                        return refuse("macro:default", default.span());
                    }
                    defaults.push(self.expr(default)?);
                }
                Stmt::Macro(Spanned::new(
                    ast::Macro {
                        name: s.name,
                        args,
                        defaults,
                        // Called from anywhere: a plan takes what is set here for an input.
                        body: self.apart(|walk| walk.collected(&s.body))?,
                    },
                    s.span(),
                ))
            }
            Stmt::Continue(s) => Stmt::Continue(Spanned::new(ast::Continue, s.span())),
            Stmt::Break(s) => Stmt::Break(Spanned::new(ast::Break, s.span())),
            Stmt::CallBlock(s) => return refuse("call", s.span()),
            Stmt::AutoEscape(s) => return refuse("autoescape", s.span()),
            Stmt::Do(s) => return refuse("do", s.span()),
        })
    }

    /// The body of a `filter` or `set` block. To jinja2 it is a scope of its own, which the engine
    /// gives to `with`; and it is no place to leave a loop from, since its text is being collected.
    fn captured(&mut self, body: &[Stmt<'s>], span: Span) -> Lowered<Vec<Stmt<'s>>> {
        if super::scope::leaves_loop(body) {
            return refuse("block:break", span);
        }
        let scope = ast::WithBlock {
            assignments: Vec::new(),
            body: self.apart(|walk| walk.collected(body))?,
        };
        Ok(vec![Stmt::WithBlock(Spanned::new(scope, span))])
    }

    /// The body of a scope whose text becomes a value.
    fn collected(&mut self, body: &[Stmt<'s>]) -> Lowered<Vec<Stmt<'s>>> {
        let before = std::mem::replace(&mut self.collected, true);
        let lowered = self.scoped(body);
        self.collected = before;
        lowered
    }

    /// Whether what is written here is written to the text, and the tracker wants to know.
    fn is_counted(&self) -> bool {
        (self.options.form == Form::Tracked) && !self.collected
    }

    /// What is about to be written, told to the tracker if it wants to know.
    fn counted(&self, value: Expr<'s>, span: Span) -> Expr<'s> {
        match self.is_counted() {
            true => filter_of_block("op:written", Some(value), span),
            false => value,
        }
    }

    /// A block whose text goes through lowered filters.
    fn filter_block(
        &mut self,
        filter: Expr<'s>,
        body: &[Stmt<'s>],
        filter_span: Span,
        span: Span,
    ) -> Lowered<Stmt<'s>> {
        let body = self.captured(body, span)?;
        let block = ast::FilterBlock {
            filter,
            filter_span,
            body,
        };
        Ok(Stmt::FilterBlock(Spanned::new(block, span)))
    }

    fn for_loop(&mut self, s: &Spanned<ast::ForLoop<'s>>) -> Lowered<Stmt<'s>> {
        if s.recursive {
            return refuse("for:recursive", s.span());
        }
        // An iteration that is left early does not count for jinja2's `else`.
        if !s.else_body.is_empty() && super::scope::leaves_loop(&s.body) {
            return refuse("for:else", s.span());
        }
        let filter_expr = match &s.filter_expr {
            // `loop` is not defined in the condition of jinja2's loop.
            Some(filter) if super::scope::reads(filter, "loop") => {
                return refuse("for:loop-in-filter", filter.span());
            }
            // jinja2 evaluates it as the loop goes on, the engine before the loop.
            Some(filter) if (self.options.form == Form::Tracked) && self.calls_macro(filter) => {
                return refuse("for:macro-in-filter", filter.span());
            }
            Some(filter) => Some(self.within(false, |walk| walk.expr(filter))?),
            None => None,
        };
        // The `else` is a scope of its own, which the engine does not close where a loop is left from.
        if sets_names(&s.else_body) && super::scope::leaves_loop(&s.else_body) {
            return refuse("for:else", s.span());
        }
        let plan = match self.in_output {
            true => Plan::of(s, self.names),
            false => Err("captured"),
        };
        // One that is taken over from call to call costs less than a search.
        if !self.in_output
            && let Some(existence) = Existence::of(s)
        {
            self.note_unplanned("captured", s);
            return self.existence(s, existence);
        }
        let iter = match turned(&s.iter) {
            Some(list) if plan.is_ok() && self.options.form == Form::Reusing => self.expr(list)?,
            _ => self.expr(&s.iter)?,
        };
        let noted = match (&plan, self.options.form) {
            (Ok(plan), Form::Reusing) => plan.sets.clone(),
            _ => self.noted.clone(),
        };
        let around = std::mem::replace(&mut self.noted, noted);
        let target = self.target(&s.target)?;
        let uncounted = plan.is_ok() && self.options.form == Form::Reusing;
        let outside = std::mem::replace(&mut self.uncounted, uncounted);
        let body = self.apart(|walk| walk.scoped(&s.body))?;
        self.uncounted = outside;
        let mut else_body = self.apart(|walk| walk.scoped(&s.else_body))?;
        if sets_names(&s.else_body) {
            let scope = ast::WithBlock {
                assignments: Vec::new(),
                body: else_body,
            };
            else_body = vec![Stmt::WithBlock(Spanned::new(scope, s.span()))];
        }
        let mut lowered = ast::ForLoop {
            target,
            iter: operator("op:iter", iter, vec![], s.iter.span()),
            filter_expr,
            recursive: false,
            body,
            else_body,
        };
        self.noted = around;
        if let Some(item) = self.located(s) {
            let begins = operator("op:begins", var(item, s.span()), vec![], s.span());
            lowered.body.insert(0, emitted(begins, s.span()));
        }
        match plan {
            Ok(plan) => {
                if self.options.form == Form::Reusing {
                    lowered = reusing(lowered, &plan, self.plans.len(), s.span());
                }
                self.plans.push(plan);
            }
            Err(reason) => self.note_unplanned(reason, s),
        }
        Ok(Stmt::ForLoop(Spanned::new(lowered, s.span())))
    }

    /// Says why a loop over messages has no plan.
    fn note_unplanned(&mut self, reason: &'static str, s: &Spanned<ast::ForLoop<'s>>) {
        if self.names.is_about_messages(&s.iter) {
            let line = usize::from(s.span().start_line);
            self.unplanned.push((reason, line));
        }
    }

    /// A loop that only looks for something, as the `if` that it amounts to.
    fn existence(
        &mut self,
        s: &Spanned<ast::ForLoop<'s>>,
        existence: Existence<'_, 's>,
    ) -> Lowered<Stmt<'s>> {
        let iter = self.expr(&s.iter)?;
        // What is proved is the loop as it is written.
        self.target(&s.target)?;
        self.within(true, |walk| walk.expr(existence.expr))?;
        let true_body = self.within(true, |walk| walk.body(existence.then))?;
        let condition = constant(Value::from_object(existence.condition), s.span());
        let found = ast::IfCond {
            expr: operator("op:any", iter, vec![condition], s.iter.span()),
            true_body,
            false_body: Vec::new(),
        };
        Ok(Stmt::IfCond(Spanned::new(found, s.span())))
    }

    fn calls_macro(&self, expr: &Expr<'s>) -> bool {
        let mut found = false;
        super::scope::each_read(expr, &mut |name, _| found |= self.scope.is_macro(name));
        found
    }

    /// An assignment target: a name, names to unpack into, or an attribute of a namespace.
    fn target(&mut self, target: &Expr<'s>) -> Lowered<Expr<'s>> {
        Ok(match target {
            Expr::Var(s) if s.id == "loop" || SPECIAL_NAMES.contains(&s.id) => {
                return refuse(format!("assign:{}", s.id), s.span());
            }
            Expr::Var(s) => var(s.id, s.span()),
            Expr::List(s) if s.items.is_empty() => return refuse("syntax", s.span()),
            Expr::List(s) => {
                let mut items = Vec::new();
                for item in &s.items {
                    items.push(self.target(item)?);
                }
                Expr::List(Spanned::new(ast::List { items }, s.span()))
            }
            Expr::Tuple(s) => {
                let mut items = Vec::new();
                for item in &s.items {
                    items.push(self.target(item)?);
                }
                Expr::Tuple(Spanned::new(ast::Tuple { items }, s.span()))
            }
            // Newer transformers refuse namespace names with a leading underscore, older do not.
            Expr::GetAttr(s) if s.name.starts_with('_') => {
                return refuse("namespace:underscore", s.span());
            }
            Expr::GetAttr(s) => match &s.expr {
                Expr::Var(base) => Expr::GetAttr(Spanned::new(
                    ast::GetAttr {
                        expr: var(base.id, base.span()),
                        name: s.name,
                    },
                    s.span(),
                )),
                other => return refuse("assign:expression", other.span()),
            },
            other => return refuse("assign:expression", other.span()),
        })
    }

    /// A value that is set, and that it is, if a plan wants to know.
    fn noted(&self, target: &Expr<'s>, value: Expr<'s>) -> Expr<'s> {
        let Expr::GetAttr(attribute) = target else {
            return value;
        };
        let is_it = |setting: &Setting<'s>| {
            setting.name == attribute.name
                && matches!(&attribute.expr, Expr::Var(base) if base.id == setting.namespace)
        };
        let span = attribute.span();
        match self.noted.iter().position(is_it) {
            Some(index) => {
                let index = constant(Value::from(index), span);
                operator("op:sets", value, vec![index], span)
            }
            None => value,
        }
    }

    /// The right-hand side of a `set`: the one place where a namespace may be made.
    fn assigned(&mut self, expr: &Expr<'s>) -> Lowered<Expr<'s>> {
        if let Expr::Call(call) = expr
            && let Expr::Var(name) = &call.expr
            && name.id == "namespace"
        {
            let args = self.kept_args(&call.args)?;
            return Ok(Expr::Call(Spanned::new(
                ast::Call {
                    expr: var(name.id, name.span()),
                    args,
                },
                call.span(),
            )));
        }
        Ok(kept(expr, self.expr(expr)?))
    }

    fn expr(&mut self, expr: &Expr<'s>) -> Lowered<Expr<'s>> {
        Ok(match expr {
            Expr::Var(s) => {
                self.readable(s.id, s.span())?;
                var(s.id, s.span())
            }
            Expr::Const(s) => {
                // jinja2 writes constants into Python code, where an infinite one is no number.
                if f64::try_from(s.value.clone()).is_ok_and(|n| !n.is_finite()) {
                    return refuse("number", s.span());
                }
                if let Some(text) = s.value.as_str() {
                    self.words.name(text);
                }
                constant(s.value.clone(), s.span())
            }
            Expr::Slice(s) => {
                let mut args = Vec::new();
                for bound in [&s.start, &s.stop, &s.step] {
                    args.push(match bound {
                        Some(bound) => self.expr(bound)?,
                        None => constant(Value::from(()), s.span()),
                    });
                }
                operator("op:slice", self.expr(&s.expr)?, args, s.span())
            }
            Expr::UnaryOp(s) => match (&s.op, &s.expr) {
                (ast::UnaryOpKind::Not, inner) => Expr::UnaryOp(Spanned::new(
                    ast::UnaryOp {
                        op: ast::UnaryOpKind::Not,
                        expr: self.expr(inner)?,
                    },
                    s.span(),
                )),
                (ast::UnaryOpKind::Neg, inner) => {
                    operator("op:neg", self.expr(inner)?, vec![], s.span())
                }
            },
            Expr::BinOp(s) => self.binary(s)?,
            Expr::Compare(s) => self.chain(s)?,
            Expr::IfExpr(s) => self.within(true, |walk| {
                let false_expr = match &s.false_expr {
                    Some(e) => Some(walk.expr(e)?),
                    None => None,
                };
                let lowered = ast::IfExpr {
                    test_expr: walk.expr(&s.test_expr)?,
                    true_expr: walk.expr(&s.true_expr)?,
                    false_expr,
                };
                Ok(Expr::IfExpr(Spanned::new(lowered, s.span())))
            })?,
            Expr::Filter(s) => {
                let Some(value) = &s.expr else {
                    return refuse("filter:chain", s.span());
                };
                let value = self.expr(value)?;
                self.filter(s, Some(value))?
            }
            Expr::Test(s) => self.test(s)?,
            Expr::GetAttr(s) => self.attribute(s)?,
            Expr::GetItem(s) => self.item(s)?,
            Expr::Call(s) => self.call(s)?,
            Expr::List(s) => {
                let mut items = Vec::new();
                for item in &s.items {
                    items.push(self.expr(item)?);
                }
                Expr::List(Spanned::new(ast::List { items }, s.span()))
            }
            Expr::Tuple(s) => {
                let mut items = Vec::new();
                for item in &s.items {
                    items.push(self.expr(item)?);
                }
                Expr::Tuple(Spanned::new(ast::Tuple { items }, s.span()))
            }
            Expr::Map(s) => {
                let mut items = Vec::new();
                for (key, value) in s.keys.iter().zip(&s.values) {
                    // Made by jinja2 as it compiles: a key without a hash is an error even where it is not reached.
                    if is_constant(key) && !is_hashable(key) {
                        return refuse("dict:key", key.span());
                    }
                    items.push(self.expr(key)?);
                    items.push(self.expr(value)?);
                }
                let pairs = Expr::List(Spanned::new(ast::List { items }, s.span()));
                operator("op:dict", pairs, vec![], s.span())
            }
        })
    }

    /// A name used as a value. `loop`, a namespace, a macro or a global function have identity,
    /// printed forms and truth values of their own; they are only accepted where those do not show.
    fn readable(&self, name: &str, span: Span) -> Lowered<()> {
        if name == "loop" {
            return refuse("name:loop", span);
        }
        if self.scope.is_namespace(name) {
            return refuse("namespace:value", span);
        }
        if self.scope.is_macro(name) {
            return refuse("macro:value", span);
        }
        if SPECIAL_NAMES.contains(&name) || functions::NAMES.contains(&name) {
            return refuse(format!("name:{name}"), span);
        }
        Ok(())
    }

    fn binary(&mut self, s: &Spanned<ast::BinOp<'s>>) -> Lowered<Expr<'s>> {
        // Computed by jinja2 as it compiles, and written into Python code: too long a number, or an
        // infinite one, is an error even where it is not reached.
        let multiplies = matches!(
            s.op,
            BinOpKind::Pow | BinOpKind::Mul | BinOpKind::Div | BinOpKind::FloorDiv
        );
        if multiplies && is_constant(&s.left) && is_constant(&s.right) {
            let long = match s.op {
                BinOpKind::Pow => !is_small_power(s),
                _ => factors(&s.left) + factors(&s.right) > MAX_FACTORS,
            };
            if long {
                return refuse("constant", s.span());
            }
        }
        let kinds = (static_type(&s.left), static_type(&s.right));
        let either_str = kinds.0 == Static::Str || kinds.1 == Static::Str;
        let both = |kind| kinds == (kind, kind);
        let name = match s.op {
            BinOpKind::ScAnd | BinOpKind::ScOr => None,
            // A string on one side leaves a concatenation or an error, in both engines; but a `Markup`
            // on the other side would escape it.
            BinOpKind::Add if either_str && !self.options.markup => None,
            BinOpKind::Concat if both(Static::Str) => None,
            // Equality with a string is false for every other type, in both engines.
            BinOpKind::Eq | BinOpKind::Ne if either_str => None,
            BinOpKind::Eq
            | BinOpKind::Ne
            | BinOpKind::Lt
            | BinOpKind::Lte
            | BinOpKind::Gt
            | BinOpKind::Gte
            | BinOpKind::Add
            | BinOpKind::Sub
                if both(Static::Int) =>
            {
                None
            }
            BinOpKind::Eq => Some("op:eq"),
            BinOpKind::Ne => Some("op:ne"),
            BinOpKind::Lt => Some("op:lt"),
            BinOpKind::Lte => Some("op:le"),
            BinOpKind::Gt => Some("op:gt"),
            BinOpKind::Gte => Some("op:ge"),
            BinOpKind::Add => Some("op:add"),
            BinOpKind::Sub => Some("op:sub"),
            BinOpKind::Mul => Some("op:mul"),
            BinOpKind::Div => Some("op:div"),
            BinOpKind::FloorDiv => Some("op:floordiv"),
            BinOpKind::Rem => Some("op:mod"),
            BinOpKind::Pow => Some("op:pow"),
            BinOpKind::Concat => Some("op:concat"),
            BinOpKind::In => Some("op:in"),
        };
        if matches!(s.op, BinOpKind::In) {
            self.search(Search::Anywhere, &s.left);
        }
        let (left, right) = (self.expr(&s.left)?, self.expr(&s.right)?);
        Ok(match name {
            Some(name) => operator(name, left, vec![right], s.span()),
            None => Expr::BinOp(Spanned::new(
                ast::BinOp {
                    op: s.op,
                    left,
                    right,
                },
                s.span(),
            )),
        })
    }

    /// `a < b < c` is `a < b and b < c` with `b` evaluated once. Spelled with `b` twice here, so only
    /// where evaluating it again shows nothing.
    fn chain(&mut self, s: &Spanned<ast::Compare<'s>>) -> Lowered<Expr<'s>> {
        let mut result: Option<Expr<'s>> = None;
        let mut left = &s.expr;
        for (i, op) in s.ops.iter().enumerate() {
            if i + 1 < s.ops.len() && !matches!(op.expr, Expr::Var(_) | Expr::Const(_)) {
                return refuse("compare:chain", s.span());
            }
            let name = match op.op {
                CompareOpKind::Eq => "op:eq",
                CompareOpKind::Ne => "op:ne",
                CompareOpKind::Lt => "op:lt",
                CompareOpKind::Lte => "op:le",
                CompareOpKind::Gt => "op:gt",
                CompareOpKind::Gte => "op:ge",
                CompareOpKind::In => "op:in",
                CompareOpKind::NotIn => "op:not_in",
            };
            let link = operator(name, self.expr(left)?, vec![self.expr(&op.expr)?], s.span());
            result = Some(match result {
                None => link,
                Some(before) => Expr::BinOp(Spanned::new(
                    ast::BinOp {
                        op: BinOpKind::ScAnd,
                        left: before,
                        right: link,
                    },
                    s.span(),
                )),
            });
            left = &op.expr;
        }
        match result {
            Some(expr) => Ok(expr),
            None => refuse("compare:chain", s.span()),
        }
    }

    /// The filters of `{% filter %}` and `{% set %}` blocks: a chain that ends in the block's text.
    fn filter_chain(&mut self, expr: &Expr<'s>) -> Lowered<Expr<'s>> {
        let Expr::Filter(s) = expr else {
            return refuse("filter:chain", expr.span());
        };
        let value = match &s.expr {
            Some(inner) => Some(self.filter_chain(inner)?),
            None => None,
        };
        self.filter(s, value)
    }

    fn filter(
        &mut self,
        s: &Spanned<ast::Filter<'s>>,
        value: Option<Expr<'s>>,
    ) -> Lowered<Expr<'s>> {
        if !filters::NAMES.contains(&s.name) {
            if !(self.in_branch || UNPROVED_FILTERS.contains(&s.name)) {
                return refuse(format!("filter:{}", s.name), s.span());
            }
            let args = self.args(&s.args)?;
            return Ok(deferred("filter", value, args, s.span()));
        }
        // What a block writes has no identity to be recognised by.
        let dumps = self.options.form == Form::Reusing && s.name == "tojson";
        Ok(Expr::Filter(Spanned::new(
            ast::Filter {
                name: if dumps && value.is_some() {
                    "op:dump"
                } else {
                    s.name
                },
                expr: value,
                args: self.args(&s.args)?,
            },
            s.span(),
        )))
    }

    fn test(&mut self, s: &Spanned<ast::Test<'s>>) -> Lowered<Expr<'s>> {
        if !tests::NAMES.contains(&s.name) {
            if !(self.in_branch || UNPROVED_TESTS.contains(&s.name)) {
                return refuse(format!("test:{}", s.name), s.span());
            }
            let (value, args) = (self.expr(&s.expr)?, self.args(&s.args)?);
            return Ok(deferred("test", Some(value), args, s.span()));
        }
        let expr = match &s.expr {
            // Whether a macro, a global or a namespace is defined can be asked of it.
            Expr::Var(name)
                if matches!(s.name, "defined" | "undefined")
                    && name.id != "loop"
                    && !SPECIAL_NAMES.contains(&name.id) =>
            {
                var(name.id, name.span())
            }
            other => self.expr(other)?,
        };
        Ok(Expr::Test(Spanned::new(
            ast::Test {
                name: s.name,
                expr,
                args: self.args(&s.args)?,
            },
            s.span(),
        )))
    }

    /// Notes a literal string that texts are searched for.
    fn search(&mut self, search: Search, needle: &Expr<'s>) {
        if let Expr::Const(s) = needle
            && let Some(text) = s.value.as_str()
        {
            self.words.search(search, text);
        }
    }

    fn attribute(&mut self, s: &Spanned<ast::GetAttr<'s>>) -> Lowered<Expr<'s>> {
        self.words.name(s.name);
        if let Expr::Var(base) = &s.expr {
            let native = Expr::GetAttr(Spanned::new(
                ast::GetAttr {
                    expr: var(base.id, base.span()),
                    name: s.name,
                },
                s.span(),
            ));
            if base.id == "loop" {
                if LOOP_ATTRIBUTES.contains(&s.name) {
                    // The depth of a loop that runs outside of others does not change.
                    if self.uncounted && !matches!(s.name, "depth" | "depth0") {
                        let name = constant(Value::from(s.name), s.span());
                        return Ok(operator("op:at", name, vec![], s.span()));
                    }
                    return Ok(native);
                }
                return refuse(format!("loop:{}", s.name), s.span());
            }
            if self.scope.is_namespace(base.id) {
                if s.name.starts_with('_') {
                    return refuse("namespace:underscore", s.span());
                }
                return Ok(native);
            }
        }
        let base = self.expr(&s.expr)?;
        if methods::is_attribute_name(s.name) {
            // Python's own attributes win over keys; which types have them shows at run time.
            let name = constant(Value::from(s.name), s.span());
            return Ok(operator("op:attribute", base, vec![name], s.span()));
        }
        Ok(Expr::GetAttr(Spanned::new(
            ast::GetAttr {
                expr: base,
                name: s.name,
            },
            s.span(),
        )))
    }

    fn item(&mut self, s: &Spanned<ast::GetItem<'s>>) -> Lowered<Expr<'s>> {
        if let Expr::Var(base) = &s.expr
            && (base.id == "loop" || self.scope.is_namespace(base.id))
        {
            return refuse("namespace:item", s.span());
        }
        let base = self.expr(&s.expr)?;
        let subscript_expr = self.expr(&s.subscript_expr)?;
        // A literal key that no Python type has as an attribute: found, or undefined, in both.
        if let Expr::Const(key) = &s.subscript_expr
            && key
                .value
                .as_str()
                .is_some_and(|key| !methods::is_attribute_name(key))
        {
            return Ok(Expr::GetItem(Spanned::new(
                ast::GetItem {
                    expr: base,
                    subscript_expr,
                },
                s.span(),
            )));
        }
        Ok(operator("op:item", base, vec![subscript_expr], s.span()))
    }

    fn call(&mut self, s: &Spanned<ast::Call<'s>>) -> Lowered<Expr<'s>> {
        let callee = match &s.expr {
            Expr::Var(name) => {
                if name.id == "namespace" {
                    return refuse("namespace:value", s.span());
                }
                let is_macro = self.scope.is_macro(name.id);
                if !is_macro && !functions::NAMES.contains(&name.id) {
                    if name.id == "loop" || SPECIAL_NAMES.contains(&name.id) {
                        return refuse(format!("function:{}", name.id), s.span());
                    }
                    let args = self.args(&s.args)?;
                    return Ok(deferred("function", None, args, s.span()));
                }
                if name.id == "strftime_now" {
                    self.clock_format(s);
                }
                if is_macro {
                    return self.macro_call(name, s);
                }
                var(name.id, name.span())
            }
            Expr::GetAttr(method) => {
                if let Expr::Var(base) = &method.expr
                    && (base.id == "loop" || self.scope.is_namespace(base.id))
                {
                    return refuse(format!("{}:call", base.id), s.span());
                }
                if !methods::is_method_name(method.name) {
                    let (object, args) = (self.expr(&method.expr)?, self.args(&s.args)?);
                    return Ok(deferred("method", Some(object), args, s.span()));
                }
                if let Some(CallArg::Pos(needle)) = s.args.first() {
                    match method.name {
                        "startswith" | "removeprefix" => self.search(Search::Start, needle),
                        "endswith" | "removesuffix" => self.search(Search::End, needle),
                        name if SEARCH_METHODS.contains(&name) => {
                            self.search(Search::Anywhere, needle);
                        }
                        _ => {}
                    }
                }
                Expr::GetAttr(Spanned::new(
                    ast::GetAttr {
                        expr: self.expr(&method.expr)?,
                        name: method.name,
                    },
                    method.span(),
                ))
            }
            other => return refuse("call:expression", other.span()),
        };
        Ok(Expr::Call(Spanned::new(
            ast::Call {
                expr: callee,
                args: self.args(&s.args)?,
            },
            s.span(),
        )))
    }

    /// A call of a macro. jinja2 uses a default where an argument is missing, minijinja also where it
    /// is undefined: for a parameter with a default, an undefined argument goes to the reference.
    fn macro_call(
        &mut self,
        name: &Spanned<ast::Var<'s>>,
        s: &Spanned<ast::Call<'s>>,
    ) -> Lowered<Expr<'s>> {
        let args = self.kept_args(&s.args)?.into_iter().enumerate();
        let defined = |e: Expr<'s>| {
            let span = e.span();
            operator("op:defined", e, vec![], span)
        };
        let args = args
            .map(|(i, arg)| match arg {
                CallArg::Pos(e) if self.scope.has_default(name.id, i) => CallArg::Pos(defined(e)),
                CallArg::Kwarg(parameter, e)
                    if self.scope.has_named_default(name.id, parameter) =>
                {
                    CallArg::Kwarg(parameter, defined(e))
                }
                arg => arg,
            })
            .collect();
        Ok(Expr::Call(Spanned::new(
            ast::Call {
                expr: var(name.id, name.span()),
                args,
            },
            s.span(),
        )))
    }

    fn clock_format(&mut self, s: &Spanned<ast::Call<'s>>) {
        if let [CallArg::Pos(Expr::Const(format))] = &s.args[..]
            && let Some(format) = format.value.as_str()
            && !self.clock_formats.iter().any(|known| known == format)
        {
            self.clock_formats.push(format.to_owned());
        }
    }

    /// Arguments that outlive the call.
    fn kept_args(&mut self, args: &[CallArg<'s>]) -> Lowered<Vec<CallArg<'s>>> {
        let lowered = self.args(args)?.into_iter().zip(args);
        let keep = |(lowered, arg): (CallArg<'s>, &CallArg<'s>)| match (lowered, arg) {
            (CallArg::Pos(e), CallArg::Pos(original)) => CallArg::Pos(kept(original, e)),
            (CallArg::Kwarg(name, e), CallArg::Kwarg(_, original)) => {
                CallArg::Kwarg(name, kept(original, e))
            }
            (lowered, _) => lowered,
        };
        Ok(lowered.map(keep).collect())
    }

    fn args(&mut self, args: &[CallArg<'s>]) -> Lowered<Vec<CallArg<'s>>> {
        let mut keywords = HashSet::new();
        for arg in args {
            // An error of the Python code that jinja2 makes.
            if let CallArg::Kwarg(name, value) = arg
                && !keywords.insert(*name)
            {
                return refuse("call:repeated", value.span());
            }
        }
        args.iter()
            .map(|arg| {
                Ok(match arg {
                    CallArg::Pos(e) => CallArg::Pos(self.expr(e)?),
                    CallArg::Kwarg(name, e) => CallArg::Kwarg(name, self.expr(e)?),
                    CallArg::PosSplat(e) | CallArg::KwargSplat(e) => {
                        return refuse("call:splat", e.span());
                    }
                })
            })
            .collect()
    }
}

/// The loop that [`reuse`](super::reuse) describes, but for the mark behind it.
fn reusing<'s>(
    lowered: ast::ForLoop<'s>,
    plan: &Plan<'s>,
    number: usize,
    span: Span,
) -> ast::ForLoop<'s> {
    let Expr::Var(target) = &lowered.target else {
        return lowered;
    };
    let item = var(target.id, span);
    let namespaces = || plan.namespaces.iter().map(|name| var(name, span)).collect();
    let mut inputs = vec![constant(Value::from(number), span)];
    let names = plan.variables.iter().chain(&plan.looked_into);
    inputs.extend(names.map(|name| var(name, span)));
    let rendered = Stmt::FilterBlock(Spanned::new(
        ast::FilterBlock {
            filter: Expr::Filter(Spanned::new(
                ast::Filter {
                    name: "op:note",
                    expr: None,
                    args: positional(namespaces()),
                },
                span,
            )),
            filter_span: span,
            body: lowered.body,
        },
        span,
    ));
    let restored = plan.sets.iter().enumerate().map(|(index, setting)| {
        let index = || constant(Value::from(index), span);
        let target = ast::GetAttr {
            expr: var(setting.namespace, span),
            name: setting.name,
        };
        let set = ast::Set {
            target: Expr::GetAttr(Spanned::new(target, span)),
            expr: operator("op:after", index(), vec![], span),
        };
        let if_set = ast::IfCond {
            expr: operator("op:was_set", index(), vec![], span),
            true_body: vec![Stmt::Set(Spanned::new(set, span))],
            false_body: Vec::new(),
        };
        Stmt::IfCond(Spanned::new(if_set, span))
    });
    let choice = ast::IfCond {
        expr: operator("op:fresh", item, namespaces(), span),
        true_body: vec![rendered],
        false_body: restored.collect(),
    };
    ast::ForLoop {
        iter: operator("op:loop", lowered.iter, inputs, span),
        body: vec![Stmt::IfCond(Spanned::new(choice, span))],
        ..lowered
    }
}

fn emitted<'s>(expr: Expr<'s>, span: Span) -> Stmt<'s> {
    Stmt::EmitExpr(Spanned::new(ast::EmitExpr { expr }, span))
}

fn positional<'s>(args: Vec<Expr<'s>>) -> Vec<CallArg<'s>> {
    args.into_iter().map(CallArg::Pos).collect()
}

fn var<'s>(id: &'s str, span: Span) -> Expr<'s> {
    Expr::Var(Spanned::new(ast::Var { id }, span))
}

fn constant<'s>(value: Value, span: Span) -> Expr<'s> {
    Expr::Const(Spanned::new(ast::Const { value }, span))
}

/// A filter of a block; without `value`, the first in a chain, for which the engine takes the text.
fn filter_of_block<'s>(name: &'s str, value: Option<Expr<'s>>, span: Span) -> Expr<'s> {
    Expr::Filter(Spanned::new(
        ast::Filter {
            name,
            expr: value,
            args: Vec::new(),
        },
        span,
    ))
}

fn operator<'s>(name: &'s str, value: Expr<'s>, args: Vec<Expr<'s>>, span: Span) -> Expr<'s> {
    Expr::Filter(Spanned::new(
        ast::Filter {
            name,
            expr: Some(value),
            args: positional(args),
        },
        span,
    ))
}

/// What is not proved, but wrong only if it is reached: then the reference serves the call.
fn deferred<'s>(
    what: &'static str,
    value: Option<Expr<'s>>,
    mut args: Vec<CallArg<'s>>,
    span: Span,
) -> Expr<'s> {
    if let Some(value) = value {
        args.insert(0, CallArg::Pos(value));
    }
    Expr::Filter(Spanned::new(
        ast::Filter {
            name: "op:defer",
            expr: Some(constant(Value::from(what), span)),
            args,
        },
        span,
    ))
}

/// `lowered`, or the error that it nests too deep. What a template keeps from one step to the next
/// passes here, unless `original` says that it holds nothing new: a name, an attribute, a text.
fn kept<'s>(original: &Expr<'s>, lowered: Expr<'s>) -> Expr<'s> {
    if !builds(original) {
        return lowered;
    }
    let span = original.span();
    operator("op:keep", lowered, vec![], span)
}

/// Whether an expression may put a value into a new container.
fn builds(expr: &Expr<'_>) -> bool {
    match expr {
        Expr::Var(_) | Expr::Const(_) | Expr::UnaryOp(_) | Expr::Test(_) | Expr::Compare(_) => {
            false
        }
        Expr::GetAttr(s) => builds(&s.expr),
        Expr::GetItem(s) => builds(&s.expr),
        Expr::Slice(s) => builds(&s.expr),
        Expr::BinOp(s) if matches!(s.op, BinOpKind::Concat) => false,
        Expr::BinOp(s) => builds(&s.left) || builds(&s.right),
        Expr::IfExpr(s) => builds(&s.true_expr) || s.false_expr.as_ref().is_some_and(builds),
        Expr::Filter(_) => static_type(expr) == Static::Unknown,
        // Macros and methods of texts make texts, but a method's name does not say whose it is.
        Expr::Call(s) => !matches!(&s.expr, Expr::Var(name) if name.id != "dict"),
        Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => true,
    }
}

/// Whether `body` sets names of the scope that it is in.
fn sets_names(body: &[Stmt<'_>]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Set(_) | Stmt::SetBlock(_) => true,
        Stmt::IfCond(s) => sets_names(&s.true_body) || sets_names(&s.false_body),
        _ => false,
    })
}

/// Whether jinja2 may compute an expression as it compiles (`jinja2/optimizer.py`).
fn is_constant(expr: &Expr<'_>) -> bool {
    let optional = |e: &Option<Expr<'_>>| e.as_ref().is_none_or(is_constant);
    match expr {
        Expr::Const(_) => true,
        Expr::Var(_) | Expr::Call(_) => false,
        Expr::UnaryOp(s) => is_constant(&s.expr),
        // Where one side settles it, the other is not looked at.
        Expr::BinOp(s) => match s.op {
            BinOpKind::ScAnd | BinOpKind::ScOr => is_constant(&s.left),
            _ => is_constant(&s.left) && is_constant(&s.right),
        },
        Expr::IfExpr(s) => is_constant(&s.test_expr),
        // As above: some links of a chain.
        Expr::Compare(s) => is_constant(&s.expr),
        Expr::Filter(s) => s.expr.as_ref().is_some_and(is_constant),
        Expr::Test(s) => is_constant(&s.expr),
        Expr::GetAttr(s) => is_constant(&s.expr),
        Expr::GetItem(s) => is_constant(&s.expr) && is_constant(&s.subscript_expr),
        Expr::Slice(s) => {
            is_constant(&s.expr) && [&s.start, &s.stop, &s.step].into_iter().all(optional)
        }
        Expr::List(s) => s.items.iter().all(is_constant),
        Expr::Tuple(s) => s.items.iter().all(is_constant),
        Expr::Map(s) => s.keys.iter().chain(&s.values).all(is_constant),
    }
}

/// Whether the syntax alone says that a value can be the key of a dict.
fn is_hashable(expr: &Expr<'_>) -> bool {
    match expr {
        Expr::Const(s) => !matches!(s.value.kind(), ValueKind::Seq | ValueKind::Map),
        Expr::UnaryOp(s) => is_hashable(&s.expr),
        Expr::Tuple(s) => s.items.iter().all(is_hashable),
        Expr::Test(_) | Expr::Compare(_) => true,
        _ => static_type(expr) != Static::Unknown,
    }
}

/// The most numbers in a constant product: of numbers as long as the lexer takes them, those are far
/// from infinite, and from what Python prints.
const MAX_FACTORS: usize = 8;

/// Whether a power is one of small numbers, both written out.
fn is_small_power(s: &ast::BinOp<'_>) -> bool {
    let at_most = |expr: &Expr<'_>, most: i64| match expr {
        Expr::Const(c) if c.value.is_integer() => {
            i64::try_from(c.value.clone()).is_ok_and(|n| n <= most)
        }
        _ => false,
    };
    at_most(&s.left, 1000) && at_most(&s.right, 64)
}

fn factors(expr: &Expr<'_>) -> usize {
    match expr {
        Expr::BinOp(s) if matches!(s.op, BinOpKind::Pow) => MAX_FACTORS,
        Expr::BinOp(s) => factors(&s.left) + factors(&s.right),
        Expr::UnaryOp(s) => factors(&s.expr),
        Expr::IfExpr(s) => factors(&s.true_expr) + s.false_expr.as_ref().map_or(0, |e| factors(e)),
        Expr::Filter(s) => s.expr.as_ref().map_or(0, |e| factors(e)),
        Expr::GetItem(s) => factors(&s.expr),
        Expr::GetAttr(s) => factors(&s.expr),
        Expr::List(s) => s.items.iter().map(factors).sum(),
        Expr::Tuple(s) => s.items.iter().map(factors).sum(),
        _ => 1,
    }
}

/// The type of an expression where the syntax alone settles it. If the expression fails instead, the
/// operator around it does not run.
fn static_type(expr: &Expr<'_>) -> Static {
    match expr {
        Expr::Const(s) => match s.value.kind() {
            ValueKind::String => Static::Str,
            ValueKind::Number if s.value.is_integer() => Static::Int,
            _ => Static::Unknown,
        },
        Expr::BinOp(s) => match s.op {
            BinOpKind::Concat => Static::Str,
            BinOpKind::Add => match (static_type(&s.left), static_type(&s.right)) {
                (Static::Str, _) | (_, Static::Str) => Static::Str,
                (Static::Int, Static::Int) => Static::Int,
                _ => Static::Unknown,
            },
            BinOpKind::Sub => match (static_type(&s.left), static_type(&s.right)) {
                (Static::Int, Static::Int) => Static::Int,
                _ => Static::Unknown,
            },
            _ => Static::Unknown,
        },
        Expr::Filter(s) => match s.name {
            "tojson" | "trim" | "string" | "upper" | "lower" | "join" => Static::Str,
            "length" | "count" => Static::Int,
            _ => Static::Unknown,
        },
        Expr::GetAttr(s) => match &s.expr {
            Expr::Var(base)
                if base.id == "loop"
                    && matches!(
                        s.name,
                        "index" | "index0" | "revindex" | "revindex0" | "length"
                    ) =>
            {
                Static::Int
            }
            _ => Static::Unknown,
        },
        _ => Static::Unknown,
    }
}
