//! Names that jinja2 takes to be undefined although a variable of that name was given.
//!
//! jinja2 decides for each scope (template, loop body, `with`, macro, block) what a name means on
//! entry. A name that the scope sets, and does not itself read first, starts out undefined there; a
//! scope inside that reads it earlier finds it undefined, where the engine finds the variable of the
//! caller: `{% for x in y %}{{ a }}{% endfor %}{% set a = 1 %}`. [`check`] repeats jinja2's analysis
//! (`jinja2/idtracking.py`), which is peculiar about branches, and refuses a template where such a
//! name may be read before it is set. Cost: a few walks of the tree, once per template.

use std::collections::{HashMap, HashSet};

use minijinja::machinery::Span;
use minijinja::machinery::ast::{Expr, IfCond, Spanned, Stmt};

use super::scope::{each_read, each_target};

type Names<'s> = HashSet<&'s str>;

/// What a name is on entry of a scope.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Given by the caller, by a scope around, or by the scope itself (a parameter).
    Known,
    /// Undefined until the scope sets it.
    Undefined,
}

/// jinja2's `Symbols`: what one scope does to names.
#[derive(Clone)]
struct Symbols<'s, 'o> {
    /// Names that scopes around this one refer to.
    outer: &'o Names<'s>,
    start: HashMap<&'s str, Start>,
    stores: Names<'s>,
}

/// The place in `children`, a whole template, where a name is read that jinja2 takes to be undefined.
pub fn check(children: &[Stmt<'_>]) -> Result<(), Span> {
    scope(children, &[], &Names::new())
}

fn scope<'s>(body: &[Stmt<'s>], parameters: &[&'s str], outer: &Names<'s>) -> Result<(), Span> {
    let mut symbols = Symbols {
        outer,
        start: parameters
            .iter()
            .map(|name| (*name, Start::Known))
            .collect(),
        stores: parameters.iter().copied().collect(),
    };
    symbols.body(body);
    let undefined = |(name, start): (&&'s str, &Start)| {
        (*start == Start::Undefined && !parameters.contains(name)).then_some(*name)
    };
    let undefined: Names<'s> = symbols.start.iter().filter_map(undefined).collect();
    if !undefined.is_empty() {
        let mut set = parameters.iter().copied().collect();
        early(body, &mut set, &undefined)?;
    }
    let known: Names<'s> = outer.iter().chain(symbols.start.keys()).copied().collect();
    inner_scopes(body, &known)
}

/// Checks the scopes in `body`, whose names and those around it are `known`.
fn inner_scopes<'s>(body: &[Stmt<'s>], known: &Names<'s>) -> Result<(), Span> {
    for stmt in body {
        match stmt {
            Stmt::IfCond(s) => {
                inner_scopes(&s.true_body, known)?;
                inner_scopes(&s.false_body, known)?;
            }
            Stmt::ForLoop(s) => {
                let mut parameters = targets([&s.target]);
                parameters.push("loop");
                scope(&s.body, &parameters, known)?;
                scope(&s.else_body, &[], known)?;
            }
            Stmt::WithBlock(s) => {
                let parameters = targets(s.assignments.iter().map(|(target, _)| target));
                scope(&s.body, &parameters, known)?;
            }
            Stmt::FilterBlock(s) => scope(&s.body, &[], known)?,
            Stmt::SetBlock(s) => scope(&s.body, &[], known)?,
            Stmt::Macro(s) => scope(&s.body, &targets(&s.args), known)?,
            // Without a scope, or refused by the lowering.
            _ => {}
        }
    }
    Ok(())
}

fn targets<'a, 's: 'a>(targets: impl IntoIterator<Item = &'a Expr<'s>>) -> Vec<&'s str> {
    let mut names = Vec::new();
    for target in targets {
        each_target(target, &mut |name| names.push(name));
    }
    names
}

impl<'s> Symbols<'s, '_> {
    fn load(&mut self, expr: &Expr<'s>) {
        each_read(expr, &mut |name, _| self.load_name(name));
    }

    fn load_name(&mut self, name: &'s str) {
        if !self.outer.contains(name) {
            self.start.entry(name).or_insert(Start::Known);
        }
    }

    fn store(&mut self, name: &'s str) {
        self.stores.insert(name);
        let start = match self.outer.contains(name) {
            true => Start::Known,
            false => Start::Undefined,
        };
        self.start.entry(name).or_insert(start);
    }

    fn body(&mut self, body: &[Stmt<'s>]) {
        for stmt in body {
            match stmt {
                Stmt::EmitExpr(s) => self.load(&s.expr),
                Stmt::ForLoop(s) => self.load(&s.iter),
                Stmt::IfCond(s) => self.branches(s),
                Stmt::WithBlock(s) => s.assignments.iter().for_each(|(_, value)| self.load(value)),
                Stmt::Set(s) => {
                    self.load(&s.expr);
                    match &s.target {
                        Expr::GetAttr(attribute) => self.load(&attribute.expr),
                        target => each_target(target, &mut |name| self.store(name)),
                    }
                }
                Stmt::SetBlock(s) => each_target(&s.target, &mut |name| self.store(name)),
                Stmt::FilterBlock(s) => self.load(&s.filter),
                Stmt::Macro(s) => self.store(s.name),
                // Without names, or refused by the lowering.
                _ => {}
            }
        }
    }

    fn branches(&mut self, s: &Spanned<IfCond<'s>>) {
        self.load(&s.expr);
        let mut first = self.clone();
        first.body(&s.true_body);
        // The engine has no `elif`. An `if` alone in an `else` is taken for one: that makes more
        // names undefined, never fewer.
        let (mut others, mut last) = (self.clone(), self.clone());
        let mut rest = &s.false_body;
        while let [Stmt::IfCond(next)] = rest.as_slice() {
            others.load(&next.expr);
            let mut branch = others.clone();
            branch.body(&next.true_body);
            let (before, after) = (others.clone(), others.clone());
            others.merge([branch, before, after]);
            rest = &next.false_body;
        }
        last.body(rest);
        self.merge([first, others, last]);
    }

    /// jinja2's `branch_update`: a name that only some branches set is known.
    fn merge(&mut self, branches: [Self; 3]) {
        let mut count: HashMap<&'s str, usize> = HashMap::new();
        for branch in &branches {
            for name in branch.stores.difference(&self.stores) {
                *count.entry(name).or_default() += 1;
            }
        }
        for branch in branches {
            self.start.extend(branch.start);
            self.stores.extend(branch.stores);
        }
        for (name, count) in count {
            if count < 3 {
                self.start.insert(name, Start::Known);
            }
        }
    }
}

/// The place in `body` where one of `names` is read although it may not be in `set` yet.
fn early<'s>(body: &[Stmt<'s>], set: &mut Names<'s>, names: &Names<'s>) -> Result<(), Span> {
    let read = |expr: &Expr<'s>, set: &Names<'s>| {
        let mut found = Ok(());
        each_read(expr, &mut |name, span| {
            if names.contains(name) && !set.contains(name) {
                found = Err(span);
            }
        });
        found
    };
    let inside = |body: &[Stmt<'s>], more: Vec<&'s str>, set: &Names<'s>| {
        early(body, &mut set.iter().copied().chain(more).collect(), names)
    };
    let macros = || {
        body.iter().filter_map(|stmt| match stmt {
            Stmt::Macro(s) => Some(s.name),
            _ => None,
        })
    };
    for stmt in body {
        match stmt {
            Stmt::EmitExpr(s) => read(&s.expr, set)?,
            Stmt::Set(s) => {
                read(&s.expr, set)?;
                if let Expr::GetAttr(attribute) = &s.target {
                    read(&attribute.expr, set)?;
                }
                set.extend(targets([&s.target]));
            }
            Stmt::SetBlock(s) => {
                inside(&s.body, Vec::new(), set)?;
                if let Some(filter) = &s.filter {
                    read(filter, set)?;
                }
                set.extend(targets([&s.target]));
            }
            Stmt::IfCond(s) => {
                read(&s.expr, set)?;
                let mut other = set.clone();
                early(&s.true_body, set, names)?;
                early(&s.false_body, &mut other, names)?;
                set.retain(|name| other.contains(name));
            }
            Stmt::ForLoop(s) => {
                read(&s.iter, set)?;
                let bound = targets([&s.target]);
                if let Some(filter) = &s.filter_expr {
                    read(filter, &set.iter().chain(&bound).copied().collect())?;
                }
                inside(&s.body, bound, set)?;
                inside(&s.else_body, Vec::new(), set)?;
            }
            Stmt::WithBlock(s) => {
                for (_, value) in &s.assignments {
                    read(value, set)?;
                }
                let bound = targets(s.assignments.iter().map(|(target, _)| target));
                inside(&s.body, bound, set)?;
            }
            Stmt::FilterBlock(s) => {
                read(&s.filter, set)?;
                inside(&s.body, Vec::new(), set)?;
            }
            Stmt::Macro(s) => {
                // It runs later, when the macros that it calls exist; called too early, one of those
                // is no function to either engine.
                let mut bound = targets(&s.args);
                bound.extend(macros());
                inside(&s.body, bound, set)?;
                set.insert(s.name);
            }
            _ => {}
        }
    }
    Ok(())
}
