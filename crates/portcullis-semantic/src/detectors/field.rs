//! Values unlike those that their field has carried on this site. No text shows that: what the site has
//! learned does (`portcullis-learn`), and who asks it notes what it says
//! ([`Analysis::note`](crate::Analysis)).

use crate::{Class, Detector, Found, Input, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/vulnerabilities/Improper_Data_Validation";
    UNUSUAL "field.unusual" Error Active "the value is of another type than all that the field has carried";
    SYNTAX "field.unusual-syntax" Critical Active "the value is of another type than all that the field has carried, and has signs of code that it never had";
    SUSPICIOUS "field.unusual-suspicious" Critical Active "the value is of another type than all that the field has carried, and something else was found in it";
}

/// See the module.
#[derive(Debug)]
pub struct Field;

static PROFILE: Profile = Profile::new(Class::Field, KINDS).weights(include_str!("../../weights/field.tsv"));

impl Detector for Field {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, _place: Place) -> bool {
        false
    }

    fn detect(&self, _input: &Input<'_>, _found: &mut Found<'_>) {}
}
