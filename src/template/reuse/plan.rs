//! What an iteration of a message loop depends on, read from the syntax tree.
//!
//! The body of a loop is a program whose inputs can be listed: the item, attributes of `loop`, the
//! names it reads from outside, attributes of namespaces, and places of message lists. [`Plan::of`] lists
//! them, those of macros that are called included, or says why that is not possible. Two iterations
//! with equal inputs give the same text and the same namespaces, since nothing else can be read: values
//! are immutable, functions are pure (but for the clock, which is refused), and what a body sets ends
//! with the iteration, except for attributes of namespaces.
//!
//! An input is watched as coarsely as its use allows: of a comparison `loop.index0 > ns.last_query` only
//! which side is greater matters, so an old iteration is not affected by a query far behind it.
//!
//! Cost: a walk of the loop's body and of the macros it calls, once per template.

use std::collections::{HashMap, HashSet};

use minijinja::machinery::ast::{self, BinOpKind, CallArg, Expr, Spanned, Stmt};

use crate::semantics::functions;
use crate::template::scope::{Scope, each_target, leaves_loop, reads};

/// Inputs of the iterations of one loop. Names refer to the scope around the loop.
#[derive(Debug, Default)]
pub struct Plan<'s> {
    /// Variables whose values must be the same in all iterations.
    pub variables: Vec<&'s str>,
    /// Variables that are lists of messages, or marks in comparisons: looked at through `watches`.
    pub looked_into: Vec<&'s str>,
    /// Namespaces whose attributes are read or set.
    pub namespaces: Vec<&'s str>,
    /// What must be the same before an iteration for it to go the same way.
    pub watches: Vec<Watch<'s>>,
    /// Attributes of namespaces that an iteration may set.
    pub sets: Vec<Setting<'s>>,
    /// Whether the last message comes first: then an iteration is remembered by its place from the end.
    pub reversed: bool,
    /// Whether what it goes over is a whole list of messages turned round, which need not be made.
    pub turned: bool,
}

/// An attribute of a namespace that an iteration may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting<'s> {
    /// Name of the namespace.
    pub namespace: &'s str,
    /// Its place in [`Plan::namespaces`].
    pub at: usize,
    /// Name of the attribute.
    pub name: &'s str,
    /// Whether a macro may set it: that it does is not noted, so what it was before is an input.
    pub unnoted: bool,
}

/// One input of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch<'s> {
    /// `loop.first`.
    First,
    /// `loop.last`.
    Last,
    /// `loop.previtem` or `loop.nextitem`: an item at this distance.
    Item(isize),
    /// An element of a list of messages.
    Element(usize, Place),
    /// The length of the loop, or of a list of messages, less `loop.index0`, plus a number.
    Rest(Option<usize>, i64),
    /// An attribute of a namespace.
    Attribute(usize, &'s str),
    /// How `loop.index0 + shift` compares with a mark.
    Order(i64, Mark<'s>),
}

/// Which element of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this distance from `loop.index0`.
    Near(i64),
    /// At this index.
    At(i64),
}

/// An integer that positions are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark<'s> {
    /// Length of the loop, or of a list of messages.
    Length(Option<usize>),
    /// An attribute of a namespace.
    Attribute(usize, &'s str),
    /// A variable.
    Variable(usize),
}

/// Why a loop has no plan.
pub type Unplanned = &'static str;

/// What a whole template says about its names.
pub struct Names<'t, 's> {
    scope: &'t Scope<'s>,
    macros: HashMap<&'s str, &'t Spanned<ast::Macro<'s>>>,
    /// Variables that hold `messages` or a slice of it wherever they are set.
    lists: HashSet<&'s str>,
    /// Where macros and namespaces are made that every render makes.
    made: HashMap<&'s str, u32>,
}

impl<'t, 's> Names<'t, 's> {
    /// The names of a template.
    pub fn of(children: &'t [Stmt<'s>], scope: &'t Scope<'s>) -> Self {
        let mut macros = HashMap::new();
        let mut settings = Vec::new();
        survey(children, &mut macros, &mut settings);
        // The largest set of names that are set to members of it only.
        let mut lists: HashSet<&'s str> = settings.iter().map(|(name, _)| *name).collect();
        lists.insert("messages");
        loop {
            let is_list = |(_, value): &(&'s str, Option<&Expr<'s>>)| {
                value.is_some_and(|value| list_of(value, &lists).is_some())
            };
            let other: Vec<&'s str> = settings
                .iter()
                .filter(|setting| lists.contains(setting.0) && !is_list(setting))
                .map(|(name, _)| *name)
                .collect();
            if other.is_empty() {
                break;
            }
            other.iter().for_each(|name| {
                lists.remove(name);
            });
        }
        let mut made = HashMap::new();
        for child in children {
            match child {
                Stmt::Macro(s) => {
                    made.entry(s.name).or_insert(s.span().start_offset);
                }
                Stmt::Set(s) => {
                    if let (Expr::Var(name), Expr::Call(call)) = (&s.target, &s.expr)
                        && is_name(&call.expr, "namespace")
                    {
                        made.entry(name.id).or_insert(s.span().start_offset);
                    }
                }
                _ => {}
            }
        }
        Names {
            scope,
            macros,
            lists,
            made,
        }
    }

    /// Whether `expr` has to do with messages.
    pub fn is_about_messages(&self, expr: &Expr<'s>) -> bool {
        self.lists.iter().any(|list| reads(expr, list))
    }
}

/// The variable that a message list is taken from: the variable itself, or a slice of it.
fn list_of<'s>(expr: &Expr<'s>, lists: &HashSet<&'s str>) -> Option<&'s str> {
    match expr {
        Expr::Var(s) if lists.contains(s.id) => Some(s.id),
        Expr::Slice(s) => list_of(&s.expr, lists),
        _ => None,
    }
}

/// The list of which an expression is the whole, turned round: `list[::-1]`.
pub fn turned<'e, 's>(expr: &'e Expr<'s>) -> Option<&'e Expr<'s>> {
    let Expr::Slice(s) = expr else {
        return None;
    };
    let whole = s.start.is_none() && s.stop.is_none() && matches!(s.expr, Expr::Var(_));
    (whole && s.step.as_ref().and_then(integer) == Some(-1)).then_some(&s.expr)
}

/// Whether a slice of a message list turns it round.
fn is_reversed(expr: &Expr<'_>) -> bool {
    let Expr::Slice(s) = expr else {
        return false;
    };
    let backwards = s
        .step
        .as_ref()
        .and_then(integer)
        .is_some_and(|step| step < 0);
    backwards != is_reversed(&s.expr)
}

/// Collects the macros of a template and what its variables are set to (None: something unknown).
fn survey<'t, 's>(
    body: &'t [Stmt<'s>],
    macros: &mut HashMap<&'s str, &'t Spanned<ast::Macro<'s>>>,
    settings: &mut Vec<(&'s str, Option<&'t Expr<'s>>)>,
) {
    let unknown = |target: &Expr<'s>, settings: &mut Vec<_>| {
        each_target(target, &mut |name| settings.push((name, None)));
    };
    for stmt in body {
        match stmt {
            Stmt::Set(s) => match &s.target {
                Expr::Var(name) => settings.push((name.id, Some(&s.expr))),
                target => unknown(target, settings),
            },
            Stmt::SetBlock(s) => {
                unknown(&s.target, settings);
                survey(&s.body, macros, settings);
            }
            Stmt::ForLoop(s) => {
                unknown(&s.target, settings);
                survey(&s.body, macros, settings);
                survey(&s.else_body, macros, settings);
            }
            Stmt::IfCond(s) => {
                survey(&s.true_body, macros, settings);
                survey(&s.false_body, macros, settings);
            }
            Stmt::WithBlock(s) => {
                s.assignments.iter().for_each(|(t, _)| unknown(t, settings));
                survey(&s.body, macros, settings);
            }
            Stmt::FilterBlock(s) => survey(&s.body, macros, settings),
            Stmt::Macro(s) => {
                macros.insert(s.name, s);
                s.args.iter().for_each(|arg| unknown(arg, settings));
                survey(&s.body, macros, settings);
            }
            _ => {}
        }
    }
}

impl<'s> Plan<'s> {
    /// The inputs of a loop that runs outside of other loops, macros and captured blocks.
    ///
    /// # Errors
    /// Why its iterations cannot be reused.
    pub fn of(s: &Spanned<ast::ForLoop<'s>>, names: &Names<'_, 's>) -> Result<Self, Unplanned> {
        if list_of(&s.iter, &names.lists).is_none() {
            return Err("iterates:other");
        }
        let Expr::Var(target) = &s.target else {
            return Err("iterates:tuple");
        };
        if s.filter_expr.is_some() {
            // The engine gives `loop` other lengths then.
            return Err("iterates:filtered");
        }
        if !s.else_body.is_empty() || leaves_loop(&s.body) {
            return Err("iterates:left");
        }
        let mut reader = Reader {
            names,
            start: s.span().start_offset,
            plan: Plan {
                reversed: is_reversed(&s.iter),
                turned: turned(&s.iter).is_some(),
                ..Plan::default()
            },
            bound: vec![target.id, "loop"],
            loops: 0,
            in_macro: false,
            macros: HashSet::new(),
        };
        reader.body(&s.body)?;
        Ok(reader.plan)
    }
}

struct Reader<'n, 't, 's> {
    names: &'n Names<'t, 's>,
    /// Where the loop stands.
    start: u32,
    plan: Plan<'s>,
    /// Names that the iteration itself gives a value before they are read.
    bound: Vec<&'s str>,
    /// Loops around, within the iteration.
    loops: usize,
    in_macro: bool,
    macros: HashSet<&'s str>,
}

fn place<T: PartialEq>(items: &mut Vec<T>, item: T) -> usize {
    items
        .iter()
        .position(|known| *known == item)
        .unwrap_or_else(|| {
            items.push(item);
            items.len() - 1
        })
}

impl<'s> Reader<'_, '_, 's> {
    fn body(&mut self, body: &[Stmt<'s>]) -> Result<(), Unplanned> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    /// A branch or an inner scope: what it binds is bound only until it ends.
    fn inner(&mut self, body: &[Stmt<'s>]) -> Result<(), Unplanned> {
        let outside = self.bound.len();
        self.body(body)?;
        self.bound.truncate(outside);
        Ok(())
    }

    fn bind(&mut self, target: &Expr<'s>) {
        each_target(target, &mut |name| self.bound.push(name));
    }

    fn stmt(&mut self, stmt: &Stmt<'s>) -> Result<(), Unplanned> {
        match stmt {
            Stmt::EmitRaw(_) | Stmt::Continue(_) | Stmt::Break(_) => Ok(()),
            Stmt::EmitExpr(s) => self.expr(&s.expr),
            Stmt::IfCond(s) => {
                self.expr(&s.expr)?;
                self.inner(&s.true_body)?;
                self.inner(&s.false_body)
            }
            Stmt::Set(s) => {
                match &s.expr {
                    // A namespace of the iteration's own. Its name could also stand for one outside.
                    Expr::Call(call) if is_name(&call.expr, "namespace") => {
                        return Err("namespace:within");
                    }
                    value => self.expr(value)?,
                }
                match &s.target {
                    Expr::GetAttr(attribute) => {
                        let Expr::Var(base) = &attribute.expr else {
                            return Err("assigns:other");
                        };
                        let at = self.namespace(base.id)?;
                        self.sets(base.id, at, attribute.name);
                    }
                    target => {
                        only_names(target)?;
                        self.bind(target);
                    }
                }
                Ok(())
            }
            Stmt::SetBlock(s) => {
                only_names(&s.target)?;
                self.inner(&s.body)?;
                if let Some(filter) = &s.filter {
                    self.expr(filter)?;
                }
                self.bind(&s.target);
                Ok(())
            }
            Stmt::FilterBlock(s) => {
                self.inner(&s.body)?;
                self.expr(&s.filter)
            }
            Stmt::WithBlock(s) => {
                let outside = self.bound.len();
                for (target, value) in &s.assignments {
                    self.expr(value)?;
                    only_names(target)?;
                    self.bind(target);
                }
                self.body(&s.body)?;
                self.bound.truncate(outside);
                Ok(())
            }
            Stmt::ForLoop(s) => {
                self.expr(&s.iter)?;
                let outside = self.bound.len();
                only_names(&s.target)?;
                self.bind(&s.target);
                self.loops += 1;
                if let Some(filter) = &s.filter_expr {
                    self.expr(filter)?;
                }
                self.body(&s.body)?;
                self.loops -= 1;
                self.bound.truncate(outside);
                self.inner(&s.else_body)
            }
            Stmt::Template(_)
            | Stmt::Macro(_)
            | Stmt::CallBlock(_)
            | Stmt::AutoEscape(_)
            | Stmt::Do(_) => Err("statement:other"),
        }
    }

    fn watch(&mut self, watch: Watch<'s>) {
        place(&mut self.plan.watches, watch);
    }

    fn sets(&mut self, namespace: &'s str, at: usize, name: &'s str) {
        let unnoted = self.in_macro;
        if unnoted {
            self.watch(Watch::Attribute(at, name));
        }
        let mut known = self.plan.sets.iter_mut();
        match known.find(|known| known.at == at && known.name == name) {
            Some(known) => known.unnoted |= unnoted,
            None => self.plan.sets.push(Setting {
                namespace,
                at,
                name,
                unnoted,
            }),
        }
    }

    fn namespace(&mut self, name: &'s str) -> Result<usize, Unplanned> {
        // Whether a name that is bound here stands for a namespace outside is not followed up.
        if self.bound.contains(&name) || !self.names.scope.is_namespace(name) {
            return Err("namespace:within");
        }
        self.is_made(name)?;
        Ok(place(&mut self.plan.namespaces, name))
    }

    /// A macro or namespace is no input if every render has made it before the loop.
    fn is_made(&self, name: &str) -> Result<(), Unplanned> {
        match self.names.made.get(name) {
            Some(made) if *made < self.start => Ok(()),
            _ => Err("name:conditional"),
        }
    }

    /// Whether `name` is a list of messages from outside.
    fn is_list(&self, name: &str) -> bool {
        self.names.lists.contains(name) && !self.bound.contains(&name)
    }

    fn expr(&mut self, expr: &Expr<'s>) -> Result<(), Unplanned> {
        match expr {
            Expr::Const(_) => Ok(()),
            Expr::Var(s) => self.variable(s.id),
            Expr::GetAttr(s) => match &s.expr {
                Expr::Var(base) if base.id == "loop" => self.loop_attribute(s.name),
                Expr::Var(base) if self.names.scope.is_namespace(base.id) => {
                    let at = self.namespace(base.id)?;
                    self.watch(Watch::Attribute(at, s.name));
                    Ok(())
                }
                base => self.expr(base),
            },
            Expr::GetItem(s) => {
                if let Expr::Var(base) = &s.expr
                    && self.is_list(base.id)
                {
                    return match self.element(&s.subscript_expr) {
                        Some(element) => {
                            let list = place(&mut self.plan.looked_into, base.id);
                            self.watch(Watch::Element(list, element));
                            Ok(())
                        }
                        None => Err("reads:history"),
                    };
                }
                self.expr(&s.expr)?;
                self.expr(&s.subscript_expr)
            }
            Expr::Filter(s) => {
                if let Some(Expr::Var(base)) = &s.expr
                    && self.is_list(base.id)
                    && s.args.is_empty()
                {
                    let list = place(&mut self.plan.looked_into, base.id);
                    self.watch(match s.name {
                        // It is another one at every turn.
                        "length" | "count" => return Err("reads:length"),
                        "first" => Watch::Element(list, Place::At(0)),
                        "last" => Watch::Element(list, Place::At(-1)),
                        _ => return Err("reads:history"),
                    });
                    return Ok(());
                }
                if let Some(value) = &s.expr {
                    self.expr(value)?;
                }
                self.arguments(&s.args)
            }
            Expr::Test(s) => {
                self.expr(&s.expr)?;
                self.arguments(&s.args)
            }
            Expr::Call(s) => self.call(s),
            Expr::BinOp(s) => {
                if is_comparison(s.op) && self.compared(&s.left, &s.right) {
                    return Ok(());
                }
                if matches!(s.op, BinOpKind::Sub)
                    && let Some(shift) = self.position(&s.right)
                    && let Some((Mark::Length(list), by)) = self.mark(&s.left)
                    && let Some(shift) = by.checked_sub(shift)
                {
                    self.watch(Watch::Rest(list, shift));
                    return Ok(());
                }
                self.expr(&s.left)?;
                self.expr(&s.right)
            }
            Expr::Compare(s) => {
                self.expr(&s.expr)?;
                s.ops.iter().try_for_each(|op| self.expr(&op.expr))
            }
            Expr::UnaryOp(s) => self.expr(&s.expr),
            Expr::IfExpr(s) => {
                self.expr(&s.test_expr)?;
                self.expr(&s.true_expr)?;
                s.false_expr.as_ref().map_or(Ok(()), |e| self.expr(e))
            }
            Expr::Slice(s) => {
                self.expr(&s.expr)?;
                let bounds = [&s.start, &s.stop, &s.step];
                bounds.into_iter().flatten().try_for_each(|e| self.expr(e))
            }
            Expr::List(s) => s.items.iter().try_for_each(|e| self.expr(e)),
            Expr::Tuple(s) => s.items.iter().try_for_each(|e| self.expr(e)),
            Expr::Map(s) => {
                let mut parts = s.keys.iter().chain(&s.values);
                parts.try_for_each(|e| self.expr(e))
            }
        }
    }

    fn variable(&mut self, name: &'s str) -> Result<(), Unplanned> {
        if self.bound.contains(&name) {
            return Ok(());
        }
        if self.names.lists.contains(name) {
            return Err("reads:history");
        }
        if self.names.scope.is_macro(name) || self.names.scope.is_namespace(name) {
            return self.is_made(name);
        }
        // Functions are the same in every render; calls that hide one do not come here.
        if !functions::NAMES.contains(&name) {
            place(&mut self.plan.variables, name);
        }
        Ok(())
    }

    fn loop_attribute(&mut self, name: &str) -> Result<(), Unplanned> {
        if self.loops > 0 {
            return Ok(());
        }
        if self.in_macro {
            return Err("loop:macro");
        }
        match name {
            // The place of an iteration is what it is remembered by, from the start or from the end.
            "depth" | "depth0" => {}
            "last" | "revindex" | "revindex0" if self.plan.reversed => {}
            "index" | "index0" | "first" if !self.plan.reversed => {}
            "index" | "index0" => return Err("reads:index"),
            "first" => self.watch(Watch::First),
            "last" => self.watch(Watch::Last),
            "nextitem" => self.watch(Watch::Item(1)),
            "previtem" => self.watch(Watch::Item(-1)),
            _ => return Err("reads:length"),
        }
        Ok(())
    }

    fn arguments(&mut self, args: &[CallArg<'s>]) -> Result<(), Unplanned> {
        args.iter().try_for_each(|arg| match arg {
            CallArg::Pos(e)
            | CallArg::Kwarg(_, e)
            | CallArg::PosSplat(e)
            | CallArg::KwargSplat(e) => self.expr(e),
        })
    }

    fn call(&mut self, s: &Spanned<ast::Call<'s>>) -> Result<(), Unplanned> {
        self.arguments(&s.args)?;
        let Expr::Var(name) = &s.expr else {
            return self.expr(&s.expr);
        };
        if matches!(name.id, "strftime_now" | "namespace") {
            return Err("calls:impure");
        }
        let Some(called) = self.names.macros.get(name.id).copied() else {
            // A function, or what ends the render.
            return Ok(());
        };
        self.is_made(name.id)?;
        if !self.macros.insert(name.id) {
            return Ok(());
        }
        let mut parameters = Vec::new();
        for arg in &called.args {
            each_target(arg, &mut |name| parameters.push(name));
        }
        let bound = std::mem::replace(&mut self.bound, parameters);
        let (loops, in_macro) = (self.loops, self.in_macro);
        (self.loops, self.in_macro) = (0, true);
        self.body(&called.body)?;
        (self.loops, self.in_macro) = (loops, in_macro);
        self.bound = bound;
        Ok(())
    }

    /// The element that a subscript of a message list means.
    fn element(&self, subscript: &Expr<'s>) -> Option<Place> {
        if let Some(shift) = self.position(subscript) {
            return Some(Place::Near(shift));
        }
        integer(subscript).map(Place::At)
    }

    /// `loop.index0 + shift`, of the loop itself.
    fn position(&self, expr: &Expr<'s>) -> Option<i64> {
        match expr {
            Expr::GetAttr(s) if is_name(&s.expr, "loop") && self.loops == 0 && !self.in_macro => {
                match s.name {
                    "index0" => Some(0),
                    "index" => Some(1),
                    _ => None,
                }
            }
            _ => shifted(expr).and_then(|(base, by)| self.position(base)?.checked_add(by)),
        }
    }

    /// Notes a comparison of a position with a mark; false if it is none.
    fn compared(&mut self, left: &Expr<'s>, right: &Expr<'s>) -> bool {
        let sides = [(left, right), (right, left)];
        for (position, mark) in sides {
            if let Some(shift) = self.position(position)
                && let Some((mark, by)) = self.mark(mark)
                && let Some(shift) = shift.checked_sub(by)
                // Backwards, positions move. The iteration may change these marks before it compares.
                && (!self.plan.reversed || matches!(mark, Mark::Length(_)))
            {
                self.watch(Watch::Order(shift, mark));
                return true;
            }
        }
        false
    }

    /// A mark and what is added to it.
    fn mark(&mut self, expr: &Expr<'s>) -> Option<(Mark<'s>, i64)> {
        let mark = match expr {
            Expr::GetAttr(s) => match &s.expr {
                Expr::Var(base) if base.id == "loop" && self.loops == 0 && !self.in_macro => {
                    (s.name == "length").then_some(Mark::Length(None))?
                }
                Expr::Var(base)
                    if self.names.scope.is_namespace(base.id) && !self.bound.contains(&base.id) =>
                {
                    Mark::Attribute(self.namespace(base.id).ok()?, s.name)
                }
                _ => return None,
            },
            Expr::Filter(s) if matches!(s.name, "length" | "count") && s.args.is_empty() => {
                match &s.expr {
                    Some(Expr::Var(base)) if self.is_list(base.id) => {
                        Mark::Length(Some(place(&mut self.plan.looked_into, base.id)))
                    }
                    _ => return None,
                }
            }
            Expr::Var(s)
                if !self.bound.contains(&s.id)
                    && !self.names.lists.contains(s.id)
                    && !self.names.scope.is_namespace(s.id)
                    && !self.names.scope.is_macro(s.id) =>
            {
                Mark::Variable(place(&mut self.plan.looked_into, s.id))
            }
            _ => {
                let (base, by) = shifted(expr)?;
                let (mark, before) = self.mark(base)?;
                return Some((mark, before.checked_add(by)?));
            }
        };
        Some((mark, 0))
    }
}

/// Whether a target sets names only. (Attributes of namespaces are noted where they are set one by one.)
fn only_names(target: &Expr<'_>) -> Result<(), Unplanned> {
    match target {
        Expr::Var(_) => Ok(()),
        Expr::List(s) => s.items.iter().try_for_each(only_names),
        Expr::Tuple(s) => s.items.iter().try_for_each(only_names),
        _ => Err("assigns:other"),
    }
}

fn is_name(expr: &Expr<'_>, name: &str) -> bool {
    matches!(expr, Expr::Var(s) if s.id == name)
}

fn is_comparison(op: BinOpKind) -> bool {
    matches!(
        op,
        BinOpKind::Eq
            | BinOpKind::Ne
            | BinOpKind::Lt
            | BinOpKind::Lte
            | BinOpKind::Gt
            | BinOpKind::Gte
    )
}

/// An integer literal, with its sign.
fn integer(expr: &Expr<'_>) -> Option<i64> {
    match expr {
        Expr::Const(s) if s.value.is_integer() => s.value.as_i64(),
        Expr::UnaryOp(s) if matches!(s.op, ast::UnaryOpKind::Neg) => {
            integer(&s.expr)?.checked_neg()
        }
        _ => None,
    }
}

/// `base + c` or `base - c`, with an integer literal.
fn shifted<'e, 's>(expr: &'e Expr<'s>) -> Option<(&'e Expr<'s>, i64)> {
    let Expr::BinOp(s) = expr else {
        return None;
    };
    match s.op {
        BinOpKind::Add => match (integer(&s.left), integer(&s.right)) {
            (None, Some(by)) => Some((&s.left, by)),
            (Some(by), None) => Some((&s.right, by)),
            _ => None,
        },
        BinOpKind::Sub => Some((&s.left, integer(&s.right)?.checked_neg()?)),
        _ => None,
    }
}
