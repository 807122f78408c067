//! XPath on a list of nodes: every node is tried for every step. Follows XPath 1.0 and what
//! `xmlNodeGetContent` gives.

use std::collections::BTreeSet;

use bstr::{BString, ByteSlice};

/// A node; the list has them in document order. The first is the document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    kind: Kind,
    parent: Option<usize>,
    /// As written, with its prefix.
    name: BString,
    /// Of attributes and texts.
    value: BString,
    /// Declared here.
    spaces: Vec<(BString, BString)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Document,
    Element,
    Attribute,
    Text,
}

/// The nodes so far, and where the next one goes.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    nodes: Vec<Node>,
    open: Vec<usize>,
    in_text: bool,
}

impl Default for Document {
    fn default() -> Self {
        Document { nodes: vec![Node::default()], open: vec![0], in_text: false }
    }
}

impl Document {
    fn add(&mut self, kind: Kind, name: &[u8], value: &[u8]) {
        let parent = self.open.last().copied();
        self.nodes.push(Node { kind, parent, name: name.into(), value: value.into(), spaces: Vec::new() });
    }

    pub(crate) fn start(&mut self, name: &[u8]) {
        self.in_text = false;
        self.add(Kind::Element, name, b"");
        self.open.push(self.nodes.len() - 1);
    }

    pub(crate) fn attribute(&mut self, name: &[u8], value: &[u8]) {
        let prefix = if name == b"xmlns" { Some(&b""[..]) } else { name.strip_prefix(b"xmlns:") };
        match (prefix, self.open.last()) {
            (Some(prefix), Some(&element)) => self.nodes[element].spaces.push((prefix.into(), value.into())),
            _ => self.add(Kind::Attribute, name, value),
        }
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        if std::mem::replace(&mut self.in_text, true) {
            if let Some(node) = self.nodes.last_mut() {
                node.value.extend_from_slice(text);
            }
        } else {
            self.add(Kind::Text, b"", text);
        }
    }

    pub(crate) fn end(&mut self) {
        self.in_text = false;
        self.open.pop();
    }

    pub(crate) fn other(&mut self) {
        self.in_text = false;
    }

    fn is_in(&self, node: usize, element: usize) -> bool {
        let mut at = Some(node);
        while let Some(here) = at {
            if here == element {
                return true;
            }
            at = self.nodes[here].parent;
        }
        false
    }

    fn text_of(&self, node: usize) -> BString {
        if matches!(self.nodes[node].kind, Kind::Attribute | Kind::Text) {
            return self.nodes[node].value.clone();
        }
        let texts =
            (0..self.nodes.len()).filter(|&at| self.nodes[at].kind == Kind::Text && self.is_in(at, node));
        texts.flat_map(|at| self.nodes[at].value.to_vec()).collect::<Vec<u8>>().into()
    }

    /// Namespace and name of an element or attribute.
    fn full_name(&self, node: usize) -> (BString, BString) {
        let name = &self.nodes[node].name;
        let (prefix, local) = name.split_once_str(":").unwrap_or((b"", name));
        if prefix.is_empty() && self.nodes[node].kind == Kind::Attribute {
            return (BString::default(), name.clone());
        }
        if prefix == b"xml" {
            return ("http://www.w3.org/XML/1998/namespace".into(), local.into());
        }
        let mut at = Some(node);
        while let Some(here) = at {
            if let Some((_, uri)) = self.nodes[here].spaces.iter().rev().find(|(p, _)| *p == prefix) {
                return match uri.is_empty() {
                    true => (BString::default(), name.clone()),
                    false => (uri.clone(), local.into()),
                };
            }
            at = self.nodes[here].parent;
        }
        (BString::default(), name.clone())
    }

    /// The text of every node that the expression selects; the error names what is not understood.
    pub(crate) fn select(
        &self,
        expression: &str,
        spaces: &[(BString, BString)],
    ) -> Result<Vec<BString>, String> {
        Ok(self.nodes(expression, spaces)?.into_iter().map(|node| self.text_of(node)).collect())
    }

    /// The same, as nodes.
    pub(crate) fn nodes(
        &self,
        expression: &str,
        spaces: &[(BString, BString)],
    ) -> Result<Vec<usize>, String> {
        let mut found = BTreeSet::new();
        for path in expression.split('|') {
            found.extend(self.path(path.trim(), spaces)?);
        }
        Ok(found.into_iter().collect())
    }

    fn path(&self, mut path: &str, spaces: &[(BString, BString)]) -> Result<BTreeSet<usize>, String> {
        let mut nodes = BTreeSet::from([0]);
        while let Some(rest) = path.strip_prefix('/') {
            let deep = rest.strip_prefix('/');
            let rest = deep.unwrap_or(rest);
            if deep.is_some() {
                let inner = |kind| matches!(kind, Kind::Document | Kind::Element);
                let all = 0..self.nodes.len();
                nodes = all
                    .filter(|&at| {
                        inner(self.nodes[at].kind) && nodes.iter().any(|&node| self.is_in(at, node))
                    })
                    .collect();
            }
            // Slashes in brackets are quoted texts.
            let mut depth = 0;
            let end = rest.find(|c| {
                depth += match c {
                    '[' => 1,
                    ']' => -1,
                    _ => 0,
                };
                c == '/' && depth == 0
            });
            let (step, after) = rest.split_at(end.unwrap_or(rest.len()));
            let (test, predicates) = step.split_at(step.find('[').unwrap_or(step.len()));
            let mut next = BTreeSet::new();
            for &context in &nodes {
                let mut here = self.below(context, test, spaces)?;
                for predicate in predicates.split('[').skip(1) {
                    here = self.filter(here, predicate.trim_end_matches(']'), spaces)?;
                }
                next.extend(here);
            }
            (nodes, path) = (next, after);
        }
        if path.is_empty() { Ok(nodes) } else { Err(format!("XPath {path}")) }
    }

    fn below(&self, context: usize, test: &str, spaces: &[(BString, BString)]) -> Result<Vec<usize>, String> {
        let children = (0..self.nodes.len()).filter(|&at| self.nodes[at].parent == Some(context));
        let children: Vec<usize> = children.collect();
        if test == "text()" {
            return Ok(children.into_iter().filter(|&at| self.nodes[at].kind == Kind::Text).collect());
        }
        let (kind, name) = match test.strip_prefix('@') {
            Some(name) => (Kind::Attribute, name),
            None => (Kind::Element, test),
        };
        let (uri, local) = match name.split_once(':') {
            None if name == "*" => (None, "*"),
            None => (Some(BString::default()), name),
            Some(("xml", local)) => (Some("http://www.w3.org/XML/1998/namespace".into()), local),
            Some((prefix, local)) => {
                let declared = spaces.iter().rev().find(|(p, _)| *p == prefix);
                (Some(declared.ok_or(format!("XPath prefix {prefix}"))?.1.clone()), local)
            }
        };
        let fits = |&at: &usize| {
            let (space, found) = self.full_name(at);
            self.nodes[at].kind == kind
                && uri.as_ref().is_none_or(|uri| *uri == space)
                && (local == "*" || found == local)
        };
        Ok(children.into_iter().filter(fits).collect())
    }

    fn filter(
        &self,
        nodes: Vec<usize>,
        predicate: &str,
        spaces: &[(BString, BString)],
    ) -> Result<Vec<usize>, String> {
        if predicate == "last()" {
            return Ok(nodes.last().copied().into_iter().collect());
        }
        if let Ok(position) = predicate.trim_start_matches("position()=").parse::<usize>() {
            return Ok(nodes.get(position.wrapping_sub(1)).copied().into_iter().collect());
        }
        let (test, value) = match predicate.split_once('=') {
            None => (predicate, None),
            Some((test, value)) => (test.trim(), Some(value.trim().trim_matches(['\'', '"']))),
        };
        let mut kept = Vec::new();
        for node in nodes {
            if test == "local-name()" {
                let name = self.full_name(node).1;
                kept.extend(value.is_some_and(|value| name == value).then_some(node));
                continue;
            }
            let candidates = if test == "." { vec![node] } else { self.below(node, test, spaces)? };
            if candidates.iter().any(|&at| value.is_none_or(|value| self.text_of(at) == value)) {
                kept.push(node);
            }
        }
        Ok(kept)
    }
}
