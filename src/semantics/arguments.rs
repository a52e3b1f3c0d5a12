//! Binding call arguments to parameter names, as Python does.
//!
//! minijinja passes keywords as one map after the positional arguments.

use super::{Result, unproved};
use minijinja::value::{ArgType, Kwargs};
use minijinja::{State, Value};

/// The arguments of a filter, test or function as they stand on the stack: no copies.
pub(crate) struct Raw<'a>(pub(crate) &'a [Value]);

impl<'a> ArgType<'a> for Raw<'_> {
    type Output = Raw<'a>;

    fn from_value(_: Option<&'a Value>) -> Result<Self::Output> {
        Err(unproved("arguments"))
    }

    fn from_state_and_values(
        _: Option<&'a State>,
        values: &'a [Value],
        offset: usize,
    ) -> Result<(Self::Output, usize)> {
        let rest = values.get(offset..).unwrap_or_default();
        Ok((Raw(rest), rest.len()))
    }

    fn from_state_and_values_mut(
        _: Option<&State>,
        values: &'a [Value],
        offset: usize,
    ) -> Result<(Self::Output, usize)> {
        let rest = values.get(offset..).unwrap_or_default();
        Ok((Raw(rest), rest.len()))
    }
}

/// Positional and keyword arguments of a call.
pub(super) struct Arguments<'a> {
    pub(super) positional: &'a [Value],
    pub(super) keywords: Option<Kwargs>,
}

impl<'a> Arguments<'a> {
    /// Splits `args`.
    pub(super) fn of(args: &'a [Value]) -> Self {
        if let Some((last, positional)) = args.split_last()
            && last.is_kwargs()
        {
            return Arguments {
                positional,
                keywords: Kwargs::try_from(last.clone()).ok(),
            };
        }
        Arguments {
            positional: args,
            keywords: None,
        }
    }

    /// The keywords in the order in which they were given.
    pub(super) fn keywords(&self) -> Result<Vec<(&str, Value)>> {
        let Some(keywords) = &self.keywords else {
            return Ok(Vec::new());
        };
        let names = keywords.args();
        names.map(|name| Ok((name, keywords.peek(name)?))).collect()
    }

    /// The arguments of a function with parameters `names`, of which the first `required` have no
    /// default. An error where Python raises a `TypeError`.
    pub(super) fn bind<const N: usize>(
        &self,
        names: [&str; N],
        required: usize,
    ) -> Result<[Option<Value>; N]> {
        let mut bound = [const { None }; N];
        if self.positional.len() > N {
            return Err(unproved("arguments"));
        }
        for (slot, value) in bound.iter_mut().zip(self.positional) {
            *slot = Some(value.clone());
        }
        for (name, value) in self.keywords()? {
            let slot = names.iter().position(|known| *known == name);
            match slot.map(|at| &mut bound[at]) {
                Some(slot @ None) => *slot = Some(value),
                _ => return Err(unproved("arguments")),
            }
        }
        if bound.iter().take(required).any(Option::is_none) {
            return Err(unproved("arguments"));
        }
        Ok(bound)
    }

    /// The arguments of a function without keywords that takes `least` to `most` of them.
    pub(super) fn only(&self, least: usize, most: usize) -> Result<&'a [Value]> {
        let given = self.positional.len();
        if self.keywords.is_some() || given < least || given > most {
            return Err(unproved("arguments"));
        }
        Ok(self.positional)
    }
}
