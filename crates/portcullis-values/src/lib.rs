//! The values of a message: every byte once, every value with its name, every transformed form remembered.
//!
//! ```text
//!   message ──> Values ──> class (ARGS_GET, ...) ──> value: name, text
//!                                                      │ ChainId: t:urlDecodeUni,t:lowercase
//!                                                      └──> form
//! ```
//!
//! [`Values`] has the texts of one transaction in one buffer; a value is two [spans](portcullis_types::Span)
//! into it. A SecLang collection is one [`Class`] or several. Chains are interned at load time ([`Chains`]);
//! the form of a value after a chain is made when it is first asked for.
//!
//! Not in this crate: rules, the readers of the values, and the parsers that find them in a message.
//!
//! ```
//! use portcullis_decode::Transformation;
//! use portcullis_values::{Chains, Class, Values};
//!
//! let mut chains = Chains::default();
//! let lowercase = chains.intern(&[Transformation::Lowercase]);
//! let mut values = Values::default();
//! values.add_pair(Class::ArgsGet, Class::ArgsGetNames, b"q", b"SELECT");
//! let value = values.class_value(Class::ArgsGet, 0);
//! let form = values.form(&chains, value, lowercase);
//! assert_eq!(values.text(form), b"select");
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod chains;
mod class;
mod values;

pub use chains::{ChainId, ChainNode, Chains};
pub use class::{CLASS_COUNT, Class, classes_of, readings_of};
pub use values::{Fresh, Mark, TRANSFORMATION_UNITS, ValueId, Values};
