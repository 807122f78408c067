//! Rules of nested scopes of a server's configuration, such as nginx's `http`, `server` and `location`, read
//! as libmodsecurity merges them.
//!
//! The rules of an inner scope run before those of the scopes around it, while its settings count last. What
//! removes or changes rules counts for all rules, wherever it stands.

use portcullis_compile::Patterns;
use portcullis_seclang::ast::{Directive, Document, Spanned};
use portcullis_seclang::{Diagnostic, FileId, Files, Level, Root, Sources, parse};

use crate::Loaded;

/// A mistake in a rule text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file, or the name of the text.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// One sentence without a full stop.
    pub message: String,
    /// The fix.
    pub hint: Option<String>,
}

/// Reads, parses and compiles the rules of `scopes`, the innermost first, through `files`.
pub fn load_scopes(
    scopes: &[&[Root]],
    files: &dyn Files,
    patterns: &Patterns,
) -> Result<Loaded, Vec<Mistake>> {
    // An empty text before each scope, the outermost first, tells later which scope a directive is of.
    let mut roots = Vec::new();
    for scope in scopes.iter().rev() {
        roots.push(Root::Text { name: BOUNDARY.into(), text: Vec::new() });
        roots.extend_from_slice(scope);
    }
    let mut parsed = parse(&roots, files);
    if !parsed.has_errors() {
        let sources = &parsed.sources;
        let boundaries: Vec<FileId> = sources.files().filter(|file| is_boundary(sources, *file)).collect();
        parsed.document = merged(parsed.document, &boundaries);
    }
    let compiled = portcullis_compile::compile_sharing(&parsed.document, &parsed.sources, files, patterns);
    let diagnostics: Vec<Diagnostic> = parsed.diagnostics.into_iter().chain(compiled.diagnostics).collect();
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Level::Error);
    let mistakes: Vec<Mistake> = errors.map(|error| mistake(error, &parsed.sources)).collect();
    let of = |level: Level| {
        let chosen = diagnostics.iter().filter(move |one| one.severity == level);
        chosen.map(|diagnostic| diagnostic.render(&parsed.sources)).collect()
    };
    match compiled.plan {
        Some(plan) if mistakes.is_empty() => Ok(Loaded {
            plan: plan.into(),
            warnings: of(Level::Warning),
            notes: of(Level::Note),
            document: parsed.document,
            sources: parsed.sources,
        }),
        _ => Err(mistakes),
    }
}

const BOUNDARY: &str = "<scope>";

fn is_boundary(sources: &Sources, file: FileId) -> bool {
    sources.path(file).as_os_str() == BOUNDARY && sources.text(file).is_empty()
}

/// The directives of all scopes in the order that counts; `boundaries` are the texts before them, the
/// outermost scope's first.
fn merged(document: Document, boundaries: &[FileId]) -> Document {
    let mut settings = Vec::new();
    let mut changes = Vec::new();
    let mut rules: Vec<Vec<Spanned<Directive>>> = vec![Vec::new(); boundaries.len().max(1)];
    for directive in document.directives {
        let scope = boundaries.partition_point(|boundary| *boundary < directive.span.file).saturating_sub(1);
        match directive.node {
            Directive::Setting(_) => settings.push(directive),
            Directive::Rule(_)
            | Directive::Script { .. }
            | Directive::Marker(_)
            | Directive::DefaultAction(_) => {
                rules[scope].push(directive);
            }
            Directive::RemoveById(_)
            | Directive::RemoveByTag(_)
            | Directive::RemoveByMsg(_)
            | Directive::UpdateTarget { .. }
            | Directive::UpdateAction { .. } => changes.push(directive),
        }
    }
    let mut directives = settings;
    while let Some(scope) = rules.pop() {
        // What the scopes around it say of default actions holds until it says otherwise.
        let defaults = rules.iter().flatten().filter(|each| matches!(each.node, Directive::DefaultAction(_)));
        directives.extend(defaults.cloned());
        directives.extend(scope);
    }
    directives.extend(changes);
    Document { directives, ..document }
}

fn mistake(error: &Diagnostic, sources: &Sources) -> Mistake {
    let position = sources.position(error.span);
    let mut message = error.message.clone();
    if let Some((span, related)) = &error.related {
        let (file, line) = (sources.path(span.file).display(), sources.position(*span).line);
        message.push_str(&format!(" ({related}: {file}:{line})"));
    }
    Mistake {
        file: sources.path(error.span.file).display().to_string(),
        line: position.line,
        column: position.column,
        message,
        hint: error.hint.clone(),
    }
}
