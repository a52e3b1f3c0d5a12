//! Global functions: jinja2's own and those that transformers adds.

use super::arguments::{Arguments, Raw};
use super::dict::Dict;
use super::iterables::Range;
use super::kind::Kind;
use super::{Result, unproved};
use minijinja::{Environment, State, Value};

/// Names of the global functions that a template may call.
pub const NAMES: &[&str] = &[
    "dict",
    "namespace",
    "raise_exception",
    "range",
    "strftime_now",
];

/// Adds them to `env`.
pub fn install(env: &mut Environment<'static>) {
    env.add_function("dict", |args: Raw<'_>| {
        let dict = mapping(&Arguments::of(args.0))?;
        // The name of a parameter in transformers 5, of an entry in transformers 4.
        match dict.get("self") {
            Some(_) => Err(unproved("arguments")),
            None => Ok(Value::from_object(dict)),
        }
    });
    env.add_function("namespace", |args: Raw<'_>| {
        namespace(&Arguments::of(args.0))
    });
    env.add_function("raise_exception", |_: Raw<'_>| -> Result {
        Err(unproved("raised"))
    });
    env.add_function("range", |args: Raw<'_>| range(&Arguments::of(args.0)));
    env.add_function("strftime_now", |state: &mut State, args: Raw<'_>| {
        strftime_now(state, &Arguments::of(args.0))
    });
}

/// `dict(mapping_or_pairs, **keywords)`.
fn mapping(arguments: &Arguments) -> Result<Dict> {
    let mut pairs = match arguments.positional {
        [] => Vec::new(),
        [value] => match Kind::of(value) {
            Kind::Dict(dict) => dict.entries().to_vec(),
            Kind::List(items) | Kind::Tuple(items) => {
                items.iter().map(pair).collect::<Result<_>>()?
            }
            _ => return Err(unproved("arguments")),
        },
        _ => return Err(unproved("arguments")),
    };
    for (name, value) in arguments.keywords()? {
        pairs.push((Value::from(name), value));
    }
    Dict::from_pairs(pairs).ok_or_else(|| unproved("key"))
}

fn pair(value: &Value) -> Result<(Value, Value)> {
    match Kind::of(value) {
        Kind::List([key, value]) | Kind::Tuple([key, value]) => Ok((key.clone(), value.clone())),
        _ => Err(unproved("arguments")),
    }
}

/// `namespace(mapping_or_pairs, **keywords)`.
fn namespace(arguments: &Arguments) -> Result {
    // transformers 5 forbids names that begin with an underscore, 4 does not. One of our own keeps
    // a namespace without names true, as Python has it; no template can read it.
    const NEVER_EMPTY: &str = "__turntrie__";
    let mut entries = mapping(arguments)?.entries().to_vec();
    let is_private =
        |(name, _): &(Value, Value)| name.as_str().is_some_and(|name| name.starts_with('_'));
    if entries.iter().any(is_private) {
        return Err(unproved("attribute"));
    }
    entries.push((Value::from(NEVER_EMPTY), Value::from(())));
    minijinja::functions::namespace(Some(Value::from_object(Dict::new(entries)).into()))
}

/// `range(stop)` or `range(start, stop, step)`.
fn range(arguments: &Arguments) -> Result {
    let bound = |value: &Value| {
        let int = Kind::of(value).int().ok_or_else(|| unproved("operand"))?;
        i64::try_from(int).map_err(|_| unproved("int"))
    };
    let (start, stop, step) = match arguments.only(1, 3)? {
        [stop] => (0, bound(stop)?, 1),
        [start, stop] => (bound(start)?, bound(stop)?, 1),
        [start, stop, step] => (bound(start)?, bound(stop)?, bound(step)?),
        _ => return Err(unproved("arguments")),
    };
    let range = Range::new(start, stop, step).ok_or_else(|| unproved("range"))?;
    Ok(Value::from_object(range))
}

/// The caller evaluates the format in Python before it renders and leaves the text under this name,
/// which no template can spell.
const TIMES: &str = "strftime_now()";

fn strftime_now(state: &State, arguments: &Arguments) -> Result {
    let [format] = arguments.bind(["format"], 1)?;
    let times = state.lookup(TIMES).ok_or_else(|| unproved("strftime"))?;
    match (Kind::of(&times), format.as_ref().map(Kind::of)) {
        (Kind::Dict(times), Some(Kind::Str(format))) => times
            .get(format)
            .cloned()
            .ok_or_else(|| unproved("strftime")),
        _ => Err(unproved("strftime")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe::{called, dict, filter, function, keywords, list, none, tuple};
    use super::*;
    use minijinja::Environment;

    #[test]
    fn ranges() {
        let shown = |args: &[Value]| match called("range", args) {
            Ok(range) => filter("list", &[range]),
            Err(error) => super::super::probe::code(&error).to_owned(),
        };
        assert_eq!(shown(&[3.into()]), "[0, 1, 2]");
        assert_eq!(shown(&[5.into(), 0.into(), (-2).into()]), "[5, 3, 1]");
        assert_eq!(shown(&[1.into(), 0.into()]), "[]");
        assert_eq!(shown(&[true.into()]), "[0]");
        assert_eq!(shown(&[100_001.into()]), "range");
        assert_eq!(shown(&[0.into(), 1.into(), 0.into()]), "range");
        assert_eq!(shown(&[1.5.into()]), "operand");
        assert_eq!(
            shown(&[i64::MIN.into(), i64::MAX.into(), i64::MAX.into()]),
            { "[-9223372036854775808, -1, 9223372036854775806]" }
        );
    }

    #[test]
    fn dicts() {
        assert_eq!(function("dict", &[keywords([("a", 1)])]), "{'a': 1}");
        assert_eq!(
            function("dict", &[dict([("a", 1), ("b", 2)]), keywords([("a", 3)])]),
            "{'a': 3, 'b': 2}"
        );
        assert_eq!(function("dict", &[list([tuple(["k", "v"])])]), "{'k': 'v'}");
        assert_eq!(function("dict", &[list([tuple([1, 2])])]), "!key");
        assert_eq!(function("dict", &[none()]), "!arguments");
        assert_eq!(function("dict", &[keywords([("self", 1)])]), "!arguments");
        assert_eq!(
            function("namespace", &[keywords([("_a", 1)])]),
            "!attribute"
        );
    }

    #[test]
    fn the_clock_is_read_from_the_context() {
        let env: Environment<'static> = super::super::environment();
        let render = |format: &str| {
            let template = format!("{{{{ strftime_now('{format}') }}}}");
            let template = env.template_from_str(&template).unwrap();
            template.render(dict([(TIMES, dict([("%d %b", "26 Jul")]))]))
        };
        assert_eq!(render("%d %b").unwrap(), "26 Jul");
        assert!(render("%Y").is_err());
        assert_eq!(function("raise_exception", &["no".into()]), "!raised");
    }
}
