//! What all crates speak of: the revisions of the protocol in their order, its eras, and the transports. Names and facts of the
//! specification only; no messages, no I/O.

pub mod error_code;
pub mod meta;
pub mod methods;
mod revision;
mod transport;

pub use revision::{Era, EraChoice, Revision};
pub use transport::{Transport, TransportChoice};

/// A text that is none of the allowed names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown value `{found}`: expected one of {allowed}")]
pub struct ParseNameError {
    found: String,
    allowed: String,
}

/// Gives an enum its names: on the wire, in files and on command lines they are the same.
macro_rules! names {
    ($type:ident: $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// Its name, as `Display` writes it and `FromStr` reads it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::ParseNameError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    _ => Err($crate::ParseNameError { found: text.to_owned(), allowed: [$($name),+].join(", ") }),
                }
            }
        }
    };
}
use names;
