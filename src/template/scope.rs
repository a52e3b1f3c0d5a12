//! Which names are macros and namespaces, and whether macros see what they see in jinja2.
//!
//! jinja2 binds a macro's free names late, to the Python variables of the scope around it. minijinja
//! copies them into a closure when the macro is defined and updates the copy on later assignments in
//! the same scope, after an analysis of its own of which names are free. The two agree where a free
//! name gets its value before the macro, outside loops, and is not also assigned inside the macro;
//! anything else is refused. Macros are accepted at the top level of the template only, under one
//! name each, and a name that holds a namespace holds nothing else: then a name means one kind of
//! thing wherever it is read. Cost: one walk, once per template.

use std::collections::{HashMap, HashSet};

use minijinja::machinery::Span;
use minijinja::machinery::ast::{self, CallArg, Expr, Stmt};

use super::frames;
use crate::semantics::functions;

/// A rule of this module that the template breaks.
#[derive(Debug)]
pub struct Unscoped {
    /// What is refused.
    pub construct: &'static str,
    /// Where.
    pub span: Span,
}

/// Names that are not plain variables.
#[derive(Debug, Default)]
pub struct Scope<'s> {
    /// The parameters of each macro, and whether they have a default.
    macros: HashMap<&'s str, Vec<(&'s str, bool)>>,
    namespaces: HashSet<&'s str>,
}

/// One place where the template gives a name a value.
struct Assignment<'s> {
    name: &'s str,
    span: Span,
    namespace: bool,
    in_loop: bool,
    in_macro: bool,
}

#[derive(Default)]
struct Survey<'s> {
    assignments: Vec<Assignment<'s>>,
    macros: Vec<MacroUse<'s>>,
}

struct MacroUse<'s> {
    name: &'s str,
    span: Span,
    parameters: Vec<(&'s str, bool)>,
    /// Names read where nothing in the macro is sure to have bound them.
    free: HashSet<&'s str>,
    /// Names that the macro sets itself.
    set: HashSet<&'s str>,
}

impl<'s> Scope<'s> {
    /// The scope of a whole template.
    pub fn of(children: &[Stmt<'s>]) -> Result<Self, Unscoped> {
        frames::check(children).map_err(|span| Unscoped {
            construct: "scope:order",
            span,
        })?;
        let mut survey = Survey::default();
        survey.body(children, false, false)?;
        let mut scope = Scope::default();
        for m in &survey.macros {
            if functions::NAMES.contains(&m.name)
                || scope.macros.insert(m.name, m.parameters.clone()).is_some()
            {
                return Err(Unscoped {
                    construct: "macro:redefined",
                    span: m.span,
                });
            }
        }
        for a in &survey.assignments {
            if scope.macros.contains_key(a.name) || functions::NAMES.contains(&a.name) {
                return Err(Unscoped {
                    construct: "macro:redefined",
                    span: a.span,
                });
            }
            if a.namespace {
                scope.namespaces.insert(a.name);
            }
        }
        for a in &survey.assignments {
            if !a.namespace && scope.namespaces.contains(a.name) {
                return Err(Unscoped {
                    construct: "namespace:reassigned",
                    span: a.span,
                });
            }
        }
        for m in &survey.macros {
            for a in survey.assignments.iter().filter(|a| !a.in_macro) {
                let before = a.span.start_offset < m.span.start_offset && !a.in_loop;
                if m.free.contains(a.name) && (!before || m.set.contains(a.name)) {
                    return Err(Unscoped {
                        construct: "macro:closure",
                        span: m.span,
                    });
                }
            }
        }
        Ok(scope)
    }

    /// Whether `name` is a macro of the template.
    pub fn is_macro(&self, name: &str) -> bool {
        self.macros.contains_key(name)
    }

    /// Whether the `index`-th parameter of the macro `name` has a default.
    pub fn has_default(&self, name: &str, index: usize) -> bool {
        let parameters = self.macros.get(name);
        parameters.is_some_and(|p| p.get(index).is_some_and(|(_, default)| *default))
    }

    /// Whether the parameter `parameter` of the macro `name` has a default.
    pub fn has_named_default(&self, name: &str, parameter: &str) -> bool {
        let parameters = self.macros.get(name);
        parameters.is_some_and(|p| p.iter().any(|(n, default)| *n == parameter && *default))
    }

    /// Whether `name` holds a namespace wherever it is assigned.
    pub fn is_namespace(&self, name: &str) -> bool {
        self.namespaces.contains(name)
    }
}

/// Whether `expr` reads the variable `name`.
pub fn reads(expr: &Expr<'_>, name: &str) -> bool {
    let mut found = false;
    each_read(expr, &mut |read, _| found |= read == name);
    found
}

/// Whether `body` holds a `break` or `continue` of a loop around it.
pub fn leaves_loop(body: &[Stmt<'_>]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Break(_) | Stmt::Continue(_) => true,
        Stmt::IfCond(s) => leaves_loop(&s.true_body) || leaves_loop(&s.false_body),
        Stmt::WithBlock(s) => leaves_loop(&s.body),
        Stmt::FilterBlock(s) => leaves_loop(&s.body),
        Stmt::SetBlock(s) => leaves_loop(&s.body),
        // What stands in an `else` is outside of that loop.
        Stmt::ForLoop(s) => leaves_loop(&s.else_body),
        _ => false,
    })
}

impl<'s> Survey<'s> {
    fn body(&mut self, body: &[Stmt<'s>], in_loop: bool, in_macro: bool) -> Result<(), Unscoped> {
        for stmt in body {
            self.stmt(stmt, in_loop, in_macro)?;
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt<'s>, in_loop: bool, in_macro: bool) -> Result<(), Unscoped> {
        match stmt {
            Stmt::ForLoop(s) => {
                self.assign(&s.target, s.span(), false, true, in_macro);
                self.body(&s.body, true, in_macro)?;
                self.body(&s.else_body, true, in_macro)
            }
            Stmt::IfCond(s) => {
                self.body(&s.true_body, in_loop, in_macro)?;
                self.body(&s.false_body, in_loop, in_macro)
            }
            // The scopes of `with`, `filter` and block `set` end like a loop's.
            Stmt::WithBlock(s) => {
                for (target, _) in &s.assignments {
                    self.assign(target, s.span(), false, true, in_macro);
                }
                self.body(&s.body, true, in_macro)
            }
            Stmt::FilterBlock(s) => self.body(&s.body, true, in_macro),
            Stmt::SetBlock(s) => {
                self.assign(&s.target, s.span(), false, in_loop, in_macro);
                self.body(&s.body, true, in_macro)
            }
            Stmt::Set(s) => {
                let namespace = is_namespace_call(&s.expr);
                self.assign(&s.target, s.span(), namespace, in_loop, in_macro);
                Ok(())
            }
            Stmt::Macro(s) => {
                if in_loop || in_macro {
                    return Err(Unscoped {
                        construct: "macro:nested",
                        span: s.span(),
                    });
                }
                for arg in &s.args {
                    self.assign(arg, s.span(), false, false, true);
                }
                self.macros.push(MacroUse::of(s));
                self.body(&s.body, false, true)
            }
            _ => Ok(()),
        }
    }

    fn assign(
        &mut self,
        target: &Expr<'s>,
        span: Span,
        namespace: bool,
        in_loop: bool,
        in_macro: bool,
    ) {
        each_target(target, &mut |name| {
            self.assignments.push(Assignment {
                name,
                span,
                namespace,
                in_loop,
                in_macro,
            });
        });
    }
}

impl<'s> MacroUse<'s> {
    fn of(s: &ast::Spanned<ast::Macro<'s>>) -> Self {
        let mut names = Vec::new();
        for arg in &s.args {
            each_target(arg, &mut |name| names.push(name));
        }
        let without = names.len().saturating_sub(s.defaults.len());
        let parameters = names.iter().enumerate();
        let mut found = MacroUse {
            name: s.name,
            span: s.span(),
            parameters: parameters.map(|(i, name)| (*name, i >= without)).collect(),
            free: HashSet::new(),
            set: HashSet::new(),
        };
        let mut bound = names;
        for default in &s.defaults {
            found.read(default, &bound);
        }
        found.body(&s.body, &mut bound);
        found
    }

    fn read(&mut self, expr: &Expr<'s>, bound: &[&'s str]) {
        each_read(expr, &mut |name, _| {
            if !bound.contains(&name) {
                self.free.insert(name);
            }
        });
    }

    fn body(&mut self, body: &[Stmt<'s>], bound: &mut Vec<&'s str>) {
        for stmt in body {
            match stmt {
                Stmt::EmitExpr(s) => self.read(&s.expr, bound),
                Stmt::Set(s) => {
                    self.read(&s.expr, bound);
                    self.set(&s.target, bound);
                }
                Stmt::SetBlock(s) => {
                    if let Some(filter) = &s.filter {
                        self.read(filter, bound);
                    }
                    self.inner(&s.body, bound);
                    self.set(&s.target, bound);
                }
                Stmt::IfCond(s) => {
                    self.read(&s.expr, bound);
                    self.inner(&s.true_body, bound);
                    self.inner(&s.false_body, bound);
                }
                Stmt::ForLoop(s) => {
                    self.read(&s.iter, bound);
                    let outside = bound.len();
                    each_target(&s.target, &mut |name| bound.push(name));
                    bound.push("loop");
                    if let Some(filter) = &s.filter_expr {
                        self.read(filter, bound);
                    }
                    self.body(&s.body, bound);
                    bound.truncate(outside);
                    self.inner(&s.else_body, bound);
                }
                Stmt::WithBlock(s) => {
                    let outside = bound.len();
                    for (target, value) in &s.assignments {
                        self.read(value, bound);
                        each_target(target, &mut |name| bound.push(name));
                    }
                    self.body(&s.body, bound);
                    bound.truncate(outside);
                }
                Stmt::FilterBlock(s) => {
                    self.read(&s.filter, bound);
                    self.inner(&s.body, bound);
                }
                // Refused by the lowering, or without names.
                _ => {}
            }
        }
    }

    /// A branch or an inner scope: what it binds is bound only until it ends, since whether it runs
    /// shows at run time.
    fn inner(&mut self, body: &[Stmt<'s>], bound: &mut Vec<&'s str>) {
        let outside = bound.len();
        self.body(body, bound);
        bound.truncate(outside);
    }

    fn set(&mut self, target: &Expr<'s>, bound: &mut Vec<&'s str>) {
        if let Expr::GetAttr(attribute) = target {
            self.read(&attribute.expr, bound);
        }
        each_target(target, &mut |name| {
            self.set.insert(name);
            bound.push(name);
        });
    }
}

fn is_namespace_call(expr: &Expr<'_>) -> bool {
    matches!(expr, Expr::Call(call) if matches!(&call.expr, Expr::Var(name) if name.id == "namespace"))
}

/// Calls `f` with each name that an assignment to `target` sets.
pub fn each_target<'s>(target: &Expr<'s>, f: &mut dyn FnMut(&'s str)) {
    match target {
        Expr::Var(s) => f(s.id),
        Expr::List(s) => s.items.iter().for_each(|item| each_target(item, f)),
        Expr::Tuple(s) => s.items.iter().for_each(|item| each_target(item, f)),
        _ => {}
    }
}

/// Calls `f` with each name that `expr` reads.
pub fn each_read<'s>(expr: &Expr<'s>, f: &mut dyn FnMut(&'s str, Span)) {
    match expr {
        Expr::Var(s) => f(s.id, s.span()),
        Expr::Const(_) => {}
        Expr::Slice(s) => {
            each_read(&s.expr, f);
            for bound in [&s.start, &s.stop, &s.step].into_iter().flatten() {
                each_read(bound, f);
            }
        }
        Expr::UnaryOp(s) => each_read(&s.expr, f),
        Expr::BinOp(s) => {
            each_read(&s.left, f);
            each_read(&s.right, f);
        }
        Expr::Compare(s) => {
            each_read(&s.expr, f);
            s.ops.iter().for_each(|op| each_read(&op.expr, f));
        }
        Expr::IfExpr(s) => {
            each_read(&s.test_expr, f);
            each_read(&s.true_expr, f);
            if let Some(e) = &s.false_expr {
                each_read(e, f);
            }
        }
        Expr::Filter(s) => {
            if let Some(e) = &s.expr {
                each_read(e, f);
            }
            each_argument(&s.args, f);
        }
        Expr::Test(s) => {
            each_read(&s.expr, f);
            each_argument(&s.args, f);
        }
        Expr::GetAttr(s) => each_read(&s.expr, f),
        Expr::GetItem(s) => {
            each_read(&s.expr, f);
            each_read(&s.subscript_expr, f);
        }
        Expr::Call(s) => {
            each_read(&s.expr, f);
            each_argument(&s.args, f);
        }
        Expr::List(s) => s.items.iter().for_each(|item| each_read(item, f)),
        Expr::Tuple(s) => s.items.iter().for_each(|item| each_read(item, f)),
        Expr::Map(s) => {
            s.keys.iter().for_each(|key| each_read(key, f));
            s.values.iter().for_each(|value| each_read(value, f));
        }
    }
}

fn each_argument<'s>(args: &[CallArg<'s>], f: &mut dyn FnMut(&'s str, Span)) {
    for arg in args {
        match arg {
            CallArg::Pos(e)
            | CallArg::Kwarg(_, e)
            | CallArg::PosSplat(e)
            | CallArg::KwargSplat(e) => each_read(e, f),
        }
    }
}
