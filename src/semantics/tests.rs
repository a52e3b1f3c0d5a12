//! jinja2's tests.

use super::arguments::{Arguments, Raw};
use super::kind::Kind;
use super::{Result, arithmetic, budget, casing, compare, operators, text, unproved};
use minijinja::value::ValueKind;
use minijinja::{Environment, State, Value};
use std::cmp::Ordering;

/// A test: the tested value, then the arguments.
type Test = fn(&mut State, &[Value]) -> Result<bool>;

macro_rules! tests {
    ($($name:literal => $test:expr,)*) => {
        /// Names of the tests that a template may use.
        pub const NAMES: &[&str] = &[$($name),*];

        const TABLE: &[(&str, Test)] = &[$(($name, $test)),*];
    };
}

tests! {
    "!=" => |_, args| not_equal(args),
    "<" => |_, args| ordered(args, Ordering::is_lt),
    "<=" => |_, args| ordered(args, Ordering::is_le),
    "==" => |_, args| equal(args),
    ">" => |_, args| ordered(args, Ordering::is_gt),
    ">=" => |_, args| ordered(args, Ordering::is_ge),
    "boolean" => |_, args| is(args, |kind| matches!(kind, Kind::Bool(_))),
    "callable" => |_, args| callable(args),
    "defined" => |_, args| is(args, |kind| !matches!(kind, Kind::Undefined)),
    "divisibleby" => |_, args| divisible_by(args),
    "eq" => |_, args| equal(args),
    "equalto" => |_, args| equal(args),
    "escaped" => |_, args| is(args, |kind| matches!(kind, Kind::Markup(_))),
    "even" => |_, args| has_rest(args, 0),
    "false" => |_, args| is(args, |kind| matches!(kind, Kind::Bool(false))),
    "float" => |_, args| is(args, |kind| matches!(kind, Kind::Float(_))),
    "ge" => |_, args| ordered(args, Ordering::is_ge),
    "greaterthan" => |_, args| ordered(args, Ordering::is_gt),
    "gt" => |_, args| ordered(args, Ordering::is_gt),
    "in" => |_, args| pair(args).and_then(|[item, container]| compare::contains(container, item)),
    "integer" => |_, args| is(args, |kind| matches!(kind, Kind::Int(_))),
    "iterable" => |_, args| iterable(args),
    "le" => |_, args| ordered(args, Ordering::is_le),
    "lessthan" => |_, args| ordered(args, Ordering::is_lt),
    "lower" => |_, args| casing::is_lower(&text::str_of(only(args)?)?),
    "lt" => |_, args| ordered(args, Ordering::is_lt),
    "mapping" => |_, args| is(args, |kind| matches!(kind, Kind::Dict(_))),
    "ne" => |_, args| not_equal(args),
    "none" => |_, args| is(args, |kind| matches!(kind, Kind::None)),
    "number" => |_, args| is(args, |kind| {
        matches!(kind, Kind::Bool(_) | Kind::Int(_) | Kind::Float(_))
    }),
    "odd" => |_, args| has_rest(args, 1),
    "sameas" => |_, args| same(args),
    "sequence" => |_, args| is(args, |kind| {
        matches!(
            kind,
            Kind::Undefined | Kind::Str(_) | Kind::Markup(_) | Kind::List(_) | Kind::Tuple(_)
                | Kind::Dict(_) | Kind::Range(_)
        )
    }),
    "string" => |_, args| is(args, |kind| matches!(kind, Kind::Str(_) | Kind::Markup(_))),
    "true" => |_, args| is(args, |kind| matches!(kind, Kind::Bool(true))),
    "undefined" => |_, args| is(args, |kind| matches!(kind, Kind::Undefined)),
    "upper" => |_, args| casing::is_upper(&text::str_of(only(args)?)?),
}

/// Adds them to `env`.
pub fn install(env: &mut Environment<'static>) {
    for &(name, test) in TABLE {
        env.add_test(name, move |state: &mut State, args: Raw<'_>| {
            budget::reads(args.0)?;
            test(state, args.0)
        });
    }
}

/// The test of this name.
pub(super) fn find(name: &str) -> Option<Test> {
    let found = TABLE.iter().find(|(known, _)| *known == name);
    found.map(|(_, test)| *test)
}

fn only(args: &[Value]) -> Result<&Value> {
    Ok(&Arguments::of(args).only(1, 1)?[0])
}

fn pair(args: &[Value]) -> Result<[&Value; 2]> {
    match Arguments::of(args).only(2, 2)? {
        [left, right] => Ok([left, right]),
        _ => Err(unproved("arguments")),
    }
}

/// A test on the type alone. Of an object that we do not know only `defined`, which is what the
/// engine's functions are asked, can be said.
fn is(args: &[Value], test: fn(&Kind) -> bool) -> Result<bool> {
    let value = only(args)?;
    match Kind::of(value) {
        Kind::Other if value.kind() != ValueKind::Plain => Err(unproved("type")),
        kind => Ok(test(&kind)),
    }
}

fn callable(args: &[Value]) -> Result<bool> {
    let value = only(args)?;
    Ok(match Kind::of(value) {
        // Plain objects are the global functions.
        Kind::Other if value.kind() != ValueKind::Plain => return Err(unproved("type")),
        Kind::Undefined | Kind::Loop | Kind::Macro | Kind::Other => true,
        _ => false,
    })
}

fn iterable(args: &[Value]) -> Result<bool> {
    is(args, |kind| {
        !matches!(
            kind,
            Kind::None
                | Kind::Bool(_)
                | Kind::Int(_)
                | Kind::Float(_)
                | Kind::Namespace
                | Kind::Macro
                | Kind::Other
        )
    })
}

fn equal(args: &[Value]) -> Result<bool> {
    let [left, right] = pair(args)?;
    compare::equal(left, right)
}

fn not_equal(args: &[Value]) -> Result<bool> {
    equal(args).map(|equal| !equal)
}

fn ordered(args: &[Value], test: fn(Ordering) -> bool) -> Result<bool> {
    let [left, right] = pair(args)?;
    operators::ordered(left, right, test).map(|value| value.is_true())
}

fn has_rest(args: &[Value], rest: i64) -> Result<bool> {
    let modulo = arithmetic::modulo(only(args)?, &Value::from(2))?;
    compare::equal(&modulo, &Value::from(rest))
}

fn divisible_by(args: &[Value]) -> Result<bool> {
    let [value, divisor] = Arguments::of(args).bind(["value", "num"], 2)?;
    let (Some(value), Some(divisor)) = (value, divisor) else {
        return Err(unproved("arguments"));
    };
    compare::equal(&arithmetic::modulo(&value, &divisor)?, &Value::from(0))
}

/// Identity, where it is certain: of singletons.
fn same(args: &[Value]) -> Result<bool> {
    let [value, other] = Arguments::of(args).bind(["value", "other"], 2)?;
    let (Some(value), Some(other)) = (value, other) else {
        return Err(unproved("arguments"));
    };
    match (Kind::of(&value), Kind::of(&other)) {
        (Kind::None, Kind::None) => Ok(true),
        (Kind::Bool(a), Kind::Bool(b)) => Ok(a == b),
        (Kind::None | Kind::Bool(_), _) | (_, Kind::None | Kind::Bool(_)) => Ok(false),
        _ => Err(unproved("identity")),
    }
}

#[cfg(test)]
mod unit_tests {
    use super::super::probe::{called, dict, filtered, list, none, test, tuple};
    use super::*;

    #[test]
    fn types() {
        let values = [
            (Value::UNDEFINED, "undefined sequence iterable callable"),
            (none(), "none defined"),
            (Value::from(true), "boolean true number defined"),
            (Value::from(0), "integer number defined"),
            (Value::from(1.5), "float number defined"),
            (Value::from("a"), "string sequence iterable defined"),
            (
                Value::from_safe_string("a".into()),
                "string sequence iterable escaped defined",
            ),
            (list([1]), "sequence iterable defined"),
            (tuple([1]), "sequence iterable defined"),
            (dict([("a", 1)]), "mapping sequence iterable defined"),
            (
                filtered("map", &[list([1]), "string".into()]).unwrap(),
                "iterable defined",
            ),
            (
                called("range", &[1.into()]).unwrap(),
                "sequence iterable defined",
            ),
            (called("namespace", &[]).unwrap(), "defined"),
        ];
        let names = "undefined none boolean true false integer number float string sequence \
                     iterable callable mapping escaped defined";
        for (value, true_of) in values {
            for name in names.split_whitespace() {
                let expected = true_of.split(' ').any(|test| test == name);
                let found = test(name, std::slice::from_ref(&value));
                assert_eq!(
                    found,
                    if expected { "True" } else { "False" },
                    "{value} is {name}"
                );
            }
        }
    }

    #[test]
    fn values() {
        let table: [(&str, Vec<Value>, &str); 14] = [
            ("odd", vec![3.0.into()], "True"),
            ("even", vec![(-3).into()], "False"),
            ("odd", vec!["a".into()], "!printf"),
            ("divisibleby", vec![9.into(), 3.into()], "True"),
            ("divisibleby", vec![9.into(), 0.into()], "!zero_division"),
            ("eq", vec![1.into(), true.into()], "True"),
            ("ne", vec![1.into(), "1".into()], "True"),
            ("gt", vec![1.into(), "1".into()], "!compare"),
            ("lessthan", vec!["a".into(), "b".into()], "True"),
            ("in", vec![1.into(), list([1])], "True"),
            ("sameas", vec![1.into(), true.into()], "False"),
            ("sameas", vec![1.into(), 1.into()], "!identity"),
            ("lower", vec![true.into()], "False"),
            ("upper", vec!["ÉA".into()], "True"),
        ];
        for (name, args, expected) in table {
            assert_eq!(test(name, &args), expected, "{name} {args:?}");
        }
    }
}
