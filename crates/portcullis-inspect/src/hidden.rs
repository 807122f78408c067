//! Masking of values in messages and events, for the `sanitise` actions of rules.

use portcullis_engine::{Class, HiddenIn};
use portcullis_event::{Event, Redactor, RedactorNames, RuleMatch};

use crate::inspection::Inspection;

/// Names and values that the rules hid.
pub(crate) struct Hidden<'a> {
    /// By these names.
    pub(crate) names: RedactorNames,
    /// These values, which have such names in the request.
    pub(crate) values: Vec<&'a [u8]>,
}

impl Inspection {
    /// Takes what the rules hid out of `found`.
    pub(crate) fn redact_hidden(&self, found: &mut Vec<RuleMatch>) {
        if self.transaction.audit().hidden.is_empty() && !self.transaction.audit().hide_all {
            return;
        }
        let mut event = Event::new("", self.time());
        event.matches = std::mem::take(found);
        self.hide_in_event(&mut event);
        *found = event.matches;
    }

    /// Takes the values of secret names out of `found`, wherever they stand in it.
    pub(crate) fn redact_matches(&self, found: &mut Vec<RuleMatch>) {
        let redactor = &self.inspector.redactor;
        let classes = [Class::ArgsGet, Class::ArgsPost].into_iter();
        let args = classes.flat_map(|class| self.transaction.values_of(class));
        let secrets: Vec<&[u8]> =
            args.filter(|(name, _)| redactor.is_secret_arg(name)).map(|(_, value)| value).collect();
        let mut event = Event::new("", self.time());
        event.matches = std::mem::take(found);
        redactor.redact_known(&mut event, &secrets);
        *found = event.matches;
    }

    /// Takes what the rules hid out of `event`.
    pub(crate) fn hide_in_event(&self, event: &mut Event) {
        if let Some(hidden) = self.hidden() {
            Redactor::new(&hidden.names).redact_known(event, &hidden.values);
        }
    }

    /// Names and values that the rules hid; none if they hid nothing.
    pub(crate) fn hidden(&self) -> Option<Hidden<'_>> {
        let state = self.transaction.audit();
        if state.hidden.is_empty() && !state.hide_all {
            return None;
        }
        let mut names = RedactorNames { headers: vec![], args: vec![], cookies: vec![], weak: vec![] };
        if state.hide_all {
            names.add_everywhere("*");
        }
        let mut values: Vec<&[u8]> = Vec::new();
        for hidden in &state.hidden {
            let name = String::from_utf8_lossy(&hidden.name).into_owned();
            let classes: &[Class] = match hidden.place {
                HiddenIn::Arg => &[Class::ArgsGet, Class::ArgsPost],
                HiddenIn::RequestHeader => &[Class::RequestHeaders],
                HiddenIn::ResponseHeader => &[Class::ResponseHeaders],
            };
            if let HiddenIn::Arg = hidden.place {
                names.args.push(name)
            } else if let HiddenIn::RequestHeader = hidden.place
                && name.eq_ignore_ascii_case("cookie")
            {
                names.add_everywhere("*cookie*")
            } else {
                names.headers.push(name)
            }
            for class in classes {
                let same = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(&hidden.name);
                values.extend(self.transaction.values_of(*class).filter(same).map(|(_, value)| value));
            }
        }
        Some(Hidden { names, values })
    }
}
