//! Values that shells complete from a list that is too long for the help. The list rejects nothing: what is wrong with a value is told by
//! whoever reads it, with what may have been meant.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use std::ffi::OsStr;

/// A parser, and the values that it may be given.
#[derive(Clone)]
pub(crate) struct Offered<P> {
    parser: P,
    values: fn() -> Vec<String>,
}

/// Offers values to completions. The flag needs `hide_possible_values` as well.
pub(crate) fn offered<P: TypedValueParser>(parser: P, values: fn() -> Vec<String>) -> Offered<P> {
    Offered { parser, values }
}

impl<P: TypedValueParser> TypedValueParser for Offered<P> {
    type Value = P::Value;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<P::Value, Error> {
        self.parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.values)().into_iter().map(PossibleValue::new)))
    }
}
