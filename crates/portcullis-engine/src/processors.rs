//! `REQBODY_PROCESSOR` has few values, so what a link says of each is worked out at load time.

use crate::operator::Captures;
use crate::patterns::Patterns;
use crate::plan::Link;
use crate::settings::{BodyProcessor, Settings};
use crate::template::Template;

/// The possible parsers of a request body; `None` if nothing parses it.
const PROCESSORS: [Option<BodyProcessor>; 5] = [
    None,
    Some(BodyProcessor::UrlEncoded),
    Some(BodyProcessor::Multipart),
    Some(BodyProcessor::Json),
    Some(BodyProcessor::Xml),
];

/// The processors that a link matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Processors(u8);

impl Processors {
    /// Those of a link whose answer depends on nothing else.
    pub(crate) fn of(link: &Link, settings: &Settings) -> Processors {
        let argument = link.operator.argument().and_then(Template::as_literal).unwrap_or_default();
        let (mut found, mut patterns) = (Captures::default(), Patterns::new(settings));
        let matches = |processor: &Option<BodyProcessor>| {
            let name = processor.map_or("", BodyProcessor::name).as_bytes();
            link.operator.test(name, argument, false, &mut found, &mut patterns) != link.negated
        };
        let bits = PROCESSORS.iter().map(matches).enumerate();
        Processors(bits.fold(0, |all, (at, matches)| all | u8::from(matches) << at))
    }

    pub(crate) fn has(self, processor: Option<BodyProcessor>) -> bool {
        PROCESSORS.iter().position(|one| *one == processor).is_some_and(|at| self.0 >> at & 1 == 1)
    }
}
