//! Messages that two readers read differently. What is found here is noted while a body is taken apart; no
//! text is looked at.

use crate::{ByteGroups, Class, Detector, Found, Input, Place, Profile, kinds};

kinds! {
    reference "https://www.rfc-editor.org/rfc/rfc9110#name-content-type";
    UNREADABLE_BODY "protocol.unreadable-body" Warning "the body is not what its type says, or breaks its rules";
    HIDDEN_CHARSET "protocol.hidden-charset" Critical "the body says it is in a character set in which ASCII has other bytes (EBCDIC, UTF-7)";
    WORK_LIMIT "protocol.work-limit" Critical "looking at the message would take more work than honest ones need; the rest of this value was not looked at";
    AMBIGUOUS_BODY "protocol.ambiguous-body" Warning "another reader could take other values from the body";
}

/// See the module.
#[derive(Debug)]
pub struct Protocol;

static PROFILE: Profile = Profile::new(Class::Protocol, KINDS).needs(ByteGroups::NONE);

impl Detector for Protocol {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, _place: Place) -> bool {
        false
    }

    fn detect(&self, _input: &Input<'_>, _found: &mut Found<'_>) {}
}
