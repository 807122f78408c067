//! The variables that tell what was wrong with a body.

use portcullis_http::body::MultipartFlags;
use portcullis_types::Variable;
use portcullis_values::Values;

use crate::scalars::is_flag;

/// Gives every flag its value, so that a rule can ask for it whatever the body was.
pub(super) fn set_flags(store: &mut Values, flags: &MultipartFlags) {
    for (variable, on) in [
        (Variable::MultipartBoundaryQuoted, flags.boundary_quoted),
        (Variable::MultipartBoundaryWhitespace, flags.boundary_whitespace),
        (Variable::MultipartDataBefore, flags.data_before),
        (Variable::MultipartDataAfter, flags.data_after),
        (Variable::MultipartHeaderFolding, flags.header_folding),
        (Variable::MultipartInvalidHeaderFolding, flags.invalid_header_folding),
        (Variable::MultipartLfLine, flags.lf_line),
        (Variable::MultipartCrlfLine, flags.crlf_line),
        (Variable::MultipartCrlfLfLines, flags.crlf_lf_lines()),
        (Variable::MultipartMissingSemicolon, flags.missing_semicolon),
        (Variable::MultipartInvalidQuoting, flags.invalid_quoting),
        (Variable::MultipartInvalidPart, flags.invalid_part),
        (Variable::MultipartFileLimitExceeded, flags.file_limit_exceeded),
        (Variable::MultipartUnmatchedBoundary, flags.unmatched_boundary()),
        (Variable::MultipartStrictError, flags.strict_error()),
    ] {
        set_flag(store, variable, on);
    }
}

/// Sets a flag to 1 or 0; a flag that counts as 0 while unset stays unset rather than being set to 0.
pub(super) fn set_flag(store: &mut Values, variable: Variable, on: bool) {
    if on || !is_flag(variable) || store.scalar(variable).is_some() {
        store.set_scalar(variable, if on { b"1" } else { b"0" });
    }
}

pub(super) fn set_error(store: &mut Values, message: &str) {
    for (variable, text) in [
        (Variable::ReqbodyError, "1"),
        (Variable::ReqbodyProcessorError, "1"),
        (Variable::ReqbodyErrorMsg, message),
        (Variable::ReqbodyProcessorErrorMsg, message),
    ] {
        store.set_scalar(variable, text.as_bytes());
    }
}
