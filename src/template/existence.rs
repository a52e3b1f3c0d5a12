//! Loops that only look for something: `{% for x in xs %}{% if … x … %}{% set ns.found = true %}…`.
//!
//! Such a loop writes nothing, and what it sets does not depend on the item that it found. So it is the
//! same as one `if` whose condition is that some item fulfils the loop's. Jinja has no expression for
//! that; [`Condition`] is ours.
//!
//! *Why that is exact.* The body reads nothing but the item, and sets attributes of namespaces to
//! literals, each time to the same ones: done once or several times, what remains is the same, and so is
//! an error. The item's name is not seen outside of the loop, and is none of the namespaces that are set; nor
//! can the item itself be one, since no namespace is a value (`lower.rs` refuses that). `loop` is not read.

use minijinja::machinery::ast::{self, BinOpKind, Expr, Stmt, UnaryOpKind};

use crate::semantics::condition::{Condition, Part};

/// What a loop looks for, and what is done if it is found.
pub(super) struct Existence<'t, 's> {
    pub condition: Condition,
    /// The same as it is written.
    pub expr: &'t Expr<'s>,
    pub then: &'t [Stmt<'s>],
}

impl<'t, 's> Existence<'t, 's> {
    /// If the loop does nothing else.
    pub(super) fn of(s: &'t ast::ForLoop<'s>) -> Option<Self> {
        let Expr::Var(item) = &s.target else {
            return None;
        };
        let ([Stmt::IfCond(found)], None, []) = (&s.body[..], &s.filter_expr, &s.else_body[..])
        else {
            return None;
        };
        let sets_literals = found.true_body.iter().all(|stmt| match stmt {
            Stmt::Set(set) => {
                matches!(&set.expr, Expr::Const(_))
                    && matches!(&set.target, Expr::GetAttr(target)
                        if matches!(&target.expr, Expr::Var(namespace) if namespace.id != item.id))
            }
            _ => false,
        });
        if s.recursive || item.id == "loop" || !sets_literals || !found.false_body.is_empty() {
            return None;
        }
        Some(Existence {
            condition: condition(&found.expr, item.id)?,
            expr: &found.expr,
            then: &found.true_body,
        })
    }
}

fn condition(expr: &Expr<'_>, item: &str) -> Option<Condition> {
    let not = |condition| Condition::Not(Box::new(condition));
    match expr {
        Expr::UnaryOp(s) if matches!(s.op, UnaryOpKind::Not) => {
            Some(not(condition(&s.expr, item)?))
        }
        Expr::BinOp(s) => match s.op {
            BinOpKind::Eq => equal(&s.left, &s.right, item),
            BinOpKind::Ne => Some(not(equal(&s.left, &s.right, item)?)),
            BinOpKind::In => has(&s.left, &s.right, item),
            BinOpKind::ScAnd | BinOpKind::ScOr => {
                let [left, right] =
                    [&s.left, &s.right].map(|side| condition(side, item).map(Box::new));
                Some(match s.op {
                    BinOpKind::ScAnd => Condition::And(left?, right?),
                    _ => Condition::Or(left?, right?),
                })
            }
            _ => None,
        },
        other => Some(Condition::True(part(other, item)?)),
    }
}

/// `item.name == 'literal'`.
fn equal(left: &Expr<'_>, right: &Expr<'_>, item: &str) -> Option<Condition> {
    Some(Condition::Equal(part(left, item)?, literal(right)?))
}

/// `'literal' in item`.
fn has(left: &Expr<'_>, right: &Expr<'_>, item: &str) -> Option<Condition> {
    match right {
        Expr::Var(name) if name.id == item => Some(Condition::Has(literal(left)?)),
        _ => None,
    }
}

fn part(expr: &Expr<'_>, item: &str) -> Option<Part> {
    let is_item = |expr: &Expr<'_>| matches!(expr, Expr::Var(name) if name.id == item);
    match expr {
        Expr::GetAttr(s) if is_item(&s.expr) => Some(Part::attribute(s.name)),
        Expr::GetItem(s) if is_item(&s.expr) => Some(Part::item(literal(&s.subscript_expr)?)),
        _ => None,
    }
}

fn literal(expr: &Expr<'_>) -> Option<minijinja::Value> {
    match expr {
        Expr::Const(s) if s.value.as_str().is_some() => Some(s.value.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use minijinja::machinery::{self, ast::Stmt};

    use super::Existence;
    use crate::template::SYNTAX;

    fn is_existence(source: &str) -> bool {
        let parsed = machinery::parse(source, "test", SYNTAX.clone());
        let Ok(Stmt::Template(template)) = parsed else {
            panic!("no template: {source}");
        };
        let Some(Stmt::ForLoop(s)) = template.children.first() else {
            panic!("no loop: {source}");
        };
        Existence::of(s).is_some()
    }

    fn with(condition: &str, then: &str) -> String {
        format!("{{% for x in xs %}}{{% if {condition} %}}{then}{{% endif %}}{{% endfor %}}")
    }

    #[test]
    fn loops_that_look_for_something_are_recognised() {
        let set = "{% set ns.found = true %}";
        for condition in [
            "x.role == 'assistant' and 'tool_calls' not in x",
            "x['role'] != 'user' or not x.content",
            "'a' in x",
            "x.items",
        ] {
            assert!(is_existence(&with(condition, set)), "{condition}");
        }
        assert!(is_existence(&with("x.a", &set.repeat(2))));
        for condition in [
            "x",
            "x.a == y",
            "y.a",
            "x.a.b",
            "x.a == 1",
            "loop.first",
            "x.a is defined",
        ] {
            assert!(!is_existence(&with(condition, set)), "{condition}");
        }
        for then in [
            "{{ x }}",
            "{% set ns.a = x %}",
            "{% set x.a = 1 %}",
            "{% set a = 1 %}",
            " ",
        ] {
            assert!(!is_existence(&with("x.a", then)), "{then}");
        }
    }
}
