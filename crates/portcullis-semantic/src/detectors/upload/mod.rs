//! Malicious uploads.
//!
//! What it does: looks at names of uploaded files (extensions that a server runs, also in the middle of a
//! name or before a byte that a server cuts off; names that a server obeys) and at their content: code of a
//! web server's language, what a web shell needs (a request's value and a call that runs it), images with
//! code in them, drawings with scripts or commands.
//!
//! Why it is dangerous: a file that the server runs is a command line for its sender.
//!
//! References: <https://owasp.org/www-community/vulnerabilities/Unrestricted_File_Upload>,
//! <https://capec.mitre.org/data/definitions/1.html>.

mod content;
mod name;
#[cfg(test)]
mod tests;

use self::name::Names;
use super::xss::Scripts;
use super::{code, command, document};
use crate::{ByteGroups, Class, Detector, Found, Input, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/vulnerabilities/Unrestricted_File_Upload";
    SERVER_NAME "upload.server-name" Critical Active "a file that web servers run, by its extension";
    SERVER_NAME_WEAK "upload.server-name-weak" Warning Active
        "a file that some web servers run, by its extension";
    DISGUISED_NAME "upload.disguised-name" Critical Active
        "an extension that web servers run, hidden after another one or after bytes that are cut off";
    OBEYED_NAME "upload.obeyed-name" Critical Active "a file that servers obey, by its name";
    PROGRAM_NAME "upload.program-name" Warning Active "a program, by its extension";
    WEB_SHELL "upload.web-shell" Critical Active
        "code of a web server's language that runs what a request brings";
    SERVER_CODE "upload.server-code" Error Active
        "code of a web server's language that runs or decodes something";
    SERVER_CODE_TAG "upload.server-code-tag" Warning Active "code of a web server's language";
    POLYGLOT "upload.polyglot" Critical Active
        "an image, document or archive with code of a web server's language in it";
    PHAR "upload.phar" Critical Active "an archive whose objects PHP makes when it is opened";
    SVG_SCRIPT "upload.svg-script" Critical Active "a drawing with a script";
    PAGE_SCRIPT "upload.page-script" Critical Active
        "a page whose script opens dialogs, or sends what the browser keeps for the site";
    IMAGE_COMMAND "upload.image-command" Critical Active
        "a drawing whose reader runs commands or reads files";
    OBEYED_CONTENT "upload.obeyed-content" Critical Active "directives that make a web server run more files";
}

/// See the module.
#[derive(Debug)]
pub struct Upload {
    names: Names,
    scripts: Scripts,
    shell: command::Names,
}

impl Upload {
    /// The detector with its data.
    pub fn new() -> Upload {
        Upload { names: Names::new(), scripts: Scripts::new(), shell: command::Names::new() }
    }
}

impl Default for Upload {
    fn default() -> Self {
        Upload::new()
    }
}

/// The finding is that servers run a file of this name.
pub(crate) fn is_server_name(finding: &crate::Finding) -> bool {
    finding.class == Class::Upload && finding.kind.id == KINDS[usize::from(SERVER_NAME.0)].id
}

/// The file with these `contents`, all of it, is a source of PHP that a server may run: it runs, reads and
/// sends nothing, whatever a request gives it.
pub(crate) fn is_harmless(contents: &[u8]) -> bool {
    let location = crate::Location::of(Place::FileContent);
    document::Document::of(location, contents).is_php && code::is_harmless(contents)
}

/// A name's dot, or a line of directives or a tag in a content.
static PROFILE: Profile = Profile::new(Class::Upload, KINDS).needs(ByteGroups::of(b".<\n%|_="));

impl Detector for Upload {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, place: Place) -> bool {
        matches!(place, Place::FileName | Place::FileContent)
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        if input.location.place == Place::FileName {
            self.names.look(input.text, found);
        } else if !input.is_json {
            let text = input.text;
            let is_application = input.document.is_php
                && found.may_read(code::PHP_READINGS * text.len())
                && !code::runs_input(text, &self.shell);
            content::look(text, input.groups, is_application, &self.scripts, found);
        }
    }
}
