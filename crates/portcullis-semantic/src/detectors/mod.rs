//! The detectors. Adding one: a file (or folder) here with a type that is a [`Detector`], and its line in
//! [`all`].

pub mod protocol;
pub mod sqli;

use crate::Detector;

/// All detectors. One line each; the order is the order of explanations.
pub fn all() -> Vec<Box<dyn Detector>> {
    vec![Box::new(protocol::Protocol), Box::new(sqli::Sqli::new())]
}
