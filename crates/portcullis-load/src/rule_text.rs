//! The text of a rule as it stands in its file.

use std::path::Path;

use portcullis_seclang::ast::{Action, Directive};
use portcullis_seclang::{MemoryFiles, Root, limits, parse};
use portcullis_types::RuleId;

/// The text of the rule with this id that begins in this line of a file, with the links of its chain. None if
/// the file cannot be read, or holds another text there by now.
pub fn rule_text(file: &Path, line: u32, id: RuleId) -> Option<String> {
    let text = portcullis_files::read(file, limits::FILE_BYTES_MAX as u64).ok()?;
    // Files that it includes are not read.
    let parsed = parse(&[Root::Text { name: file.to_owned(), text }], &MemoryFiles::default());
    let begins = |span| u32::try_from(parsed.sources.position(span).line).is_ok_and(|at| at == line);
    let mut directives = parsed.document.directives.iter().skip_while(|each| !begins(each.span));
    let first = directives.next()?;
    let actions = |directive: &Directive| {
        let Directive::Rule(rule) = directive else { return Vec::new() };
        rule.actions.iter().map(|action| action.node.clone()).collect()
    };
    if !actions(&first.node).contains(&Action::Id(id)) {
        return None;
    }
    let mut last = first;
    while actions(&last.node).contains(&Action::Chain) {
        last = directives.next()?;
    }
    let text = parsed.sources.text(first.span.file);
    let text = text.get(first.span.span.start as usize..last.span.span.end as usize)?;
    Some(String::from_utf8_lossy(text).trim_end().to_owned())
}
