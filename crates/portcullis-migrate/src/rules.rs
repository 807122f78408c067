//! The rules of a site. Other servers have a rule set for each path; here a site has one, in which what
//! belongs to some paths stands in a `<LocationMatch>`, and routes may go without inspection.

use portcullis_seclang::{MemoryFiles, Root, SourceSpan, fits_a_place};

use crate::model::{PathMatch, Route, RuleKind, RuleSet, RuleSource, Site};
use crate::report::Ledger;

/// How rules are to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    /// They were written for ModSecurity 3.
    pub modsecurity3: bool,
    /// Folder of the CRS, for configurations that use one that was built in.
    pub crs: &'a str,
    /// The file of the CRS's settings in it.
    pub crs_setup: &'a str,
}

/// Makes the rules of a site from what holds for it and for its routes.
pub(crate) fn settle(site: &mut Site, reading: Reading<'_>, ledger: &mut Ledger) {
    let has_root =
        site.routes.iter().any(|route| route.path == crate::site::root() && route.is_unconditional());
    // Where every request has a route, the site's own settings only matter as what routes inherit.
    let itself = (!has_root && site.upstream.is_some() && site.settings.waf.on).then_some(&site.settings.waf);
    let inspected: Vec<&Route> =
        site.routes.iter().filter(|route| route.settings.waf.on && route.forwards()).collect();
    let sets: Vec<&[RuleSource]> = itself
        .into_iter()
        .map(|waf| &waf.rules[..])
        .chain(inspected.iter().map(|route| &route.settings.waf.rules[..]))
        .collect();
    let shared = sets.iter().skip(1).fold(sets.first().map_or(0, |first| first.len()), |length, set| {
        common_length(sets.first().map_or(&[][..], |first| first), set).min(length)
    });
    let base: Vec<RuleSource> = sets.first().map_or_else(Vec::new, |first| first[..shared].to_vec());
    let mut extras: Vec<(RuleSource, PathMatch)> = Vec::new();
    for route in &inspected {
        for source in &route.settings.waf.rules[shared..] {
            let extra = (source.clone(), route.path.clone());
            // Routes that differ by their conditions have the same rules.
            if !extras.contains(&extra) {
                extras.push(extra);
            }
        }
    }
    if let Some(waf) = itself {
        for source in &waf.rules[shared..] {
            extras.push((source.clone(), PathMatch::Prefix("/".to_owned())));
        }
    }
    let any = !sets.is_empty();
    for source in sets.iter().skip(1).flat_map(|set| &set[..shared]) {
        ledger.taken(source.entry, "rules of the site");
    }
    let mut builder = Builder { reading, parts: Vec::new() };
    for source in base {
        builder.whole(source, ledger);
    }
    for (source, path) in extras {
        builder.part(source, &path, ledger);
    }
    site.rules = builder.finish(reading.modsecurity3);
    // Whether the site is inspected at all; its routes say where it is not.
    site.settings.waf.on = any && site.rules.any();
    for route in site.routes.iter_mut().filter(|_| !site.settings.waf.on) {
        route.settings.waf.on = false;
    }
}

/// Settles rules that no request of any site meets.
pub(crate) fn unused(sites: &[Site], ledger: &mut Ledger) {
    for site in sites {
        let routes = site.routes.iter().map(|route| &route.settings.waf);
        for source in routes.chain([&site.settings.waf]).flat_map(|waf| &waf.rules) {
            ledger.left_if_unsettled(source.entry, "no request is inspected by it");
        }
    }
}

fn common_length(a: &[RuleSource], b: &[RuleSource]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A part of the rules, in the order of their files.
enum Part {
    File(String),
    OptionalFile(String),
    Crs,
    Text(String),
}

struct Builder<'a> {
    reading: Reading<'a>,
    parts: Vec<Part>,
}

impl Builder<'_> {
    /// Rules that hold for the whole site.
    fn whole(&mut self, source: RuleSource, ledger: &mut Ledger) {
        match source.kind {
            RuleKind::File { path, optional } => {
                ledger.taken(source.entry, "rules of the site");
                self.file(path, optional);
            }
            RuleKind::Crs => {
                ledger.taken(source.entry, format!("the CRS in {}", self.reading.crs));
                self.crs();
            }
            RuleKind::Inline(text) => {
                ledger.taken(source.entry, "rules of the site");
                self.parts.push(Part::Text(dedented(&text)));
            }
        }
    }

    /// Rules that hold for some paths.
    fn part(&mut self, source: RuleSource, path: &PathMatch, ledger: &mut Ledger) {
        match source.kind {
            RuleKind::File { path, optional } => {
                ledger.changed(
                    source.entry,
                    "these rules hold for the whole site, since a site has one set of rules",
                );
                self.file(path, optional);
            }
            RuleKind::Crs => {
                ledger.changed(
                    source.entry,
                    "the CRS holds for the whole site, since a site has one set of rules",
                );
                self.crs();
            }
            RuleKind::Inline(text) if *path == PathMatch::Prefix("/".to_owned()) => {
                ledger
                    .changed(source.entry, "these rules hold for the whole site, other locations of it, too");
                self.parts.push(Part::Text(dedented(&text)));
            }
            RuleKind::Inline(text) => {
                let note = "rules of the site, in a `<LocationMatch>`";
                match unfit_for_a_place(&text).as_slice() {
                    [] => ledger.taken(source.entry, note),
                    unfit => ledger.changed(
                        source.entry,
                        format!(
                            "{note}, but {}, which cannot be said of a part of the site",
                            unfit.join(", ")
                        ),
                    ),
                }
                let section =
                    format!("<LocationMatch {}>\n{}\n</LocationMatch>", pattern(path), dedented(&text));
                self.parts.push(Part::Text(section));
            }
        }
    }

    fn file(&mut self, path: String, optional: bool) {
        let known =
            |part: &Part| matches!(part, Part::File(known) | Part::OptionalFile(known) if *known == path);
        if !self.parts.iter().any(known) {
            self.parts.push(if optional { Part::OptionalFile(path) } else { Part::File(path) });
        }
    }

    fn crs(&mut self) {
        if !self.parts.iter().any(|part| matches!(part, Part::Crs)) {
            self.parts.push(Part::Crs);
        }
    }

    /// Files, the CRS, files, text, in this order, is what a site says with keys; any other order is kept by
    /// `Include` in its text.
    fn finish(self, modsecurity3: bool) -> RuleSet {
        let mut rules = RuleSet { modsecurity3, ..RuleSet::default() };
        let stage = |part: &Part| match part {
            Part::File(_) => 0,
            Part::Crs => 1,
            Part::OptionalFile(_) | Part::Text(_) => 2,
        };
        let has_crs = self.parts.iter().any(|part| matches!(part, Part::Crs));
        // Files may stand on both sides of the CRS.
        let mut last = 0;
        let ordered = self.parts.iter().all(|part| {
            let stage = stage(part);
            let fits = stage >= last || (stage == 0 && last == 1);
            last = last.max(stage);
            fits
        });
        if !ordered {
            rules.directives = self.as_text();
            return rules;
        }
        let mut before_crs = has_crs;
        let mut texts = Vec::new();
        for part in self.parts {
            match part {
                Part::File(path) if before_crs => rules.setup.push(path),
                Part::File(path) => rules.include.push(path),
                Part::OptionalFile(path) => texts.push(format!("IncludeOptional {}", argument(&path))),
                Part::Crs => {
                    before_crs = false;
                    rules.crs = Some(self.reading.crs.to_owned());
                }
                Part::Text(text) => texts.push(text),
            }
        }
        rules.directives = joined(&texts);
        rules
    }

    fn as_text(&self) -> String {
        let crs = self.reading.crs;
        let texts: Vec<String> = self
            .parts
            .iter()
            .map(|part| match part {
                Part::File(path) => format!("Include {}", argument(path)),
                Part::OptionalFile(path) => format!("IncludeOptional {}", argument(path)),
                Part::Crs => format!(
                    "Include {}\nInclude {}",
                    argument(self.reading.crs_setup),
                    argument(&format!("{crs}/rules/*.conf"))
                ),
                Part::Text(text) => text.clone(),
            })
            .collect();
        joined(&texts)
    }
}

/// The names of the directives in a text of rules that a section for a place cannot have: it would leave them
/// out.
pub(crate) fn unfit_for_a_place(text: &str) -> Vec<String> {
    let root = Root::Text { name: "rules".into(), text: text.as_bytes().to_vec() };
    let parsed = portcullis_seclang::parse(&[root], &MemoryFiles::default());
    let mut names = Vec::new();
    for directive in parsed.document.directives.iter().filter(|one| !fits_a_place(&one.node)) {
        let SourceSpan { file, span } = directive.span;
        let text = parsed.sources.text(file).get(span.start as usize..).unwrap_or_default();
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        let name = String::from_utf8_lossy(&text[..end]).into_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A text without the lines around it and the indentation that all of its lines have.
fn dedented(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(0);
    let last = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
    let lines = lines.get(first..last).unwrap_or_default();
    let blanks = |line: &&&str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let indentation =
        lines.iter().filter(|line| !line.is_empty()).map(|line| blanks(&line)).min().unwrap_or(0);
    let lines: Vec<&str> = lines.iter().map(|line| line.get(indentation..).unwrap_or_default()).collect();
    lines.join("\n")
}

fn joined(texts: &[String]) -> String {
    if texts.is_empty() { String::new() } else { texts.join("\n") + "\n" }
}

/// A file name as SecLang has it.
fn argument(path: &str) -> String {
    if path.contains([' ', '\t', '"', '\'']) { format!("\"{path}\"") } else { path.to_owned() }
}

/// The argument of `<LocationMatch>`.
fn pattern(path: &PathMatch) -> String {
    let pattern = match path {
        PathMatch::Prefix(prefix) => format!("^{}", escaped(prefix)),
        PathMatch::Exact(path) => format!("^{}$", escaped(path)),
        PathMatch::Pattern(pattern) => pattern.clone(),
    };
    format!("\"{pattern}\"")
}

/// A text as a regular expression that matches it alone.
pub(crate) fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() && !"/-_\"'<>%&,;:=@~!`".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}
