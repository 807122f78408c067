//! Deviations from the API that a site declares (`portcullis-declared`). No text shows them: who compares a
//! request with the declaration notes them ([`Analysis::note`](crate::Analysis)).

use crate::{Class, Detector, Found, Input, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/API-Security/editions/2023/en/0xa9-improper-inventory-management/";
    UNKNOWN_PATH "api.unknown-path" Error Active "the API declares no such path";
    METHOD "api.method" Error Active "the API declares the path without this method";
    UNKNOWN_PARAMETER "api.unknown-parameter" Error Active "the API declares no such parameter";
    PARAMETER "api.parameter" Error Active "the parameter is not as the API declares it";
    MISSING "api.missing" Error Active "the API requires a parameter or a body that is not there";
    CONTENT_TYPE "api.content-type" Error Active "the API declares no body of this media type";
    BODY "api.body" Error Active "the body is not as the API declares it";
    LIMIT "api.limit" Error Active "the request asks for more of the API than the site allows";
    READ_ONLY "api.read-only" Error Active "the API declares the property as read-only";
    SECURITY "api.security" Error Active "the request has none of the credentials that the API requires";
    STATUS "api.status" Error Active "the API declares no answer with this status";
    RESPONSE "api.response" Error Active "the answer is not as the API declares it";
    WRITE_ONLY "api.write-only" Error Active "the answer has a property that the API declares as write-only";
    UNCHECKED "api.unchecked" Notice Active "the body could not be compared with the declaration";
}

/// See the module.
#[derive(Debug)]
pub struct Api;

static PROFILE: Profile = Profile::new(Class::Api, KINDS).weights(include_str!("../../weights/api.tsv"));

impl Detector for Api {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, _place: Place) -> bool {
        false
    }

    fn detect(&self, _input: &Input<'_>, _found: &mut Found<'_>) {}
}
