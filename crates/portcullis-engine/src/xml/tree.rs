//! The tree, and how the parser's events become one.

use portcullis_types::Span;

/// No node.
const NONE: u32 = u32::MAX;
/// The namespace that `xml:` stands for, whatever a document says.
const XML_NAMESPACE: &[u8] = b"http://www.w3.org/XML/1998/namespace";

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The document, node 0.
    Document,
    Element,
    Attribute,
    Text,
}

/// A node. Spans point into [`Tree::bytes`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// The node behind the last one below this one.
    pub(crate) end: u32,
    /// Its name without the prefix; empty for text.
    pub(crate) local: Span,
    /// Its namespace; empty if it is in none.
    pub(crate) namespace: Span,
    /// Of an element everything between its tags, markup left out.
    pub(crate) value: Span,
}

/// A document. Nodes are in document order: an element, its attributes, what is in it.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    /// All text, so that the text of an element is a piece of it.
    pub(crate) text: Vec<u8>,
    /// Names, namespaces and the values of attributes.
    pub(crate) bytes: Vec<u8>,
}

impl Tree {
    /// Bytes of memory that it takes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.text.capacity() + self.bytes.capacity()
    }
}

/// The reason why there is no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TooLarge {
    Nodes,
    Namespaces,
    Text,
}

impl TooLarge {
    pub(crate) fn message(self) -> &'static str {
        match self {
            TooLarge::Nodes => "XML: more nodes than are searched (100,000)",
            TooLarge::Namespaces => "XML: more namespaces at one place than are searched (256)",
            TooLarge::Text => "XML: more text in nested elements than is searched (64 MiB)",
        }
    }
}

/// Makes a tree of a parser's events.
#[derive(Debug)]
pub(crate) struct Builder {
    tree: Tree,
    /// The open elements, outermost first, and how many namespaces were in scope before each.
    open: Vec<(u32, usize)>,
    /// Prefix and namespace, innermost last.
    scope: Vec<(Span, Span)>,
    /// The newest element may still get attributes, so its names are not resolved.
    starting: bool,
    /// The last event was text: more of it belongs to the same node.
    in_text: bool,
    /// Sum of the lengths of all elements' texts.
    weight: usize,
    failed: Option<TooLarge>,
}

impl Builder {
    const NODES_MAX: usize = 100_000;
    const NAMESPACES_MAX: usize = 256;
    const WEIGHT_MAX: usize = 64 << 20;

    pub(crate) fn new() -> Builder {
        let document = Node {
            kind: Kind::Document,
            end: NONE,
            local: Span::default(),
            namespace: Span::default(),
            value: Span::default(),
        };
        Builder {
            tree: Tree { nodes: vec![document], ..Tree::default() },
            open: Vec::new(),
            scope: Vec::new(),
            starting: false,
            in_text: false,
            weight: 0,
            failed: None,
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.tree.held_bytes()
    }

    pub(crate) fn start(&mut self, name: &[u8]) {
        self.seal();
        let local = self.keep(name);
        let at = self.tree.text.len();
        if let Some(node) = self.push(Kind::Element, local, Span::new(at, at)) {
            self.open.push((node, self.scope.len()));
            self.starting = true;
        }
    }

    pub(crate) fn attribute(&mut self, name: &[u8], value: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        let prefix = match name.strip_prefix(b"xmlns") {
            Some(b"") => Some(&b""[..]),
            Some(rest) => rest.strip_prefix(b":"),
            None => None,
        };
        if let Some(prefix) = prefix {
            if self.scope.len() >= Self::NAMESPACES_MAX {
                return self.fail(TooLarge::Namespaces);
            }
            let declared = (self.keep(prefix), self.keep(value));
            return self.scope.push(declared);
        }
        let (local, value) = (self.keep(name), self.keep(value));
        self.push(Kind::Attribute, local, value);
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        self.seal();
        if self.failed.is_some() || self.open.is_empty() {
            return;
        }
        self.weight = self.weight.saturating_add(text.len().saturating_mul(self.open.len() + 1));
        if self.weight > Self::WEIGHT_MAX {
            return self.fail(TooLarge::Text);
        }
        let start = self.tree.text.len();
        self.tree.text.extend_from_slice(text);
        let end = self.tree.text.len();
        if std::mem::replace(&mut self.in_text, true) {
            if let Some(node) = self.tree.nodes.last_mut() {
                node.value.end = end as u32;
            }
        } else {
            self.push(Kind::Text, Span::default(), Span::new(start, end));
        }
    }

    pub(crate) fn end(&mut self) {
        self.seal();
        self.in_text = false;
        if self.failed.is_some() {
            return;
        }
        if let Some((node, scope)) = self.open.pop() {
            self.close(node);
            self.scope.truncate(scope);
        }
    }

    /// A comment or an instruction: text behind it is another node.
    pub(crate) fn other(&mut self) {
        self.seal();
        self.in_text = false;
    }

    /// The tree; elements that a broken document leaves open end with it. Nothing without a root element.
    pub(crate) fn finish(mut self) -> Result<Option<Tree>, TooLarge> {
        self.seal();
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        while let Some((node, _)) = self.open.pop() {
            self.close(node);
        }
        self.close(0);
        Ok((self.tree.nodes.len() > 1).then_some(self.tree))
    }

    fn close(&mut self, node: u32) {
        let (nodes, text) = (self.tree.nodes.len() as u32, self.tree.text.len() as u32);
        let node = &mut self.tree.nodes[node as usize];
        node.end = nodes;
        node.value.end = text;
    }

    fn fail(&mut self, why: TooLarge) {
        self.failed = Some(why);
        self.tree = Tree::default();
    }

    fn keep(&mut self, bytes: &[u8]) -> Span {
        if self.failed.is_some() {
            return Span::default();
        }
        let start = self.tree.bytes.len();
        self.tree.bytes.extend_from_slice(bytes);
        Span::new(start, self.tree.bytes.len())
    }

    fn push(&mut self, kind: Kind, local: Span, value: Span) -> Option<u32> {
        if self.failed.is_some() {
            return None;
        }
        if self.tree.nodes.len() >= Self::NODES_MAX {
            self.fail(TooLarge::Nodes);
            return None;
        }
        self.in_text = kind == Kind::Text;
        let at = self.tree.nodes.len() as u32;
        let namespace = Span::default();
        self.tree.nodes.push(Node { kind, end: at + 1, local, namespace, value });
        Some(at)
    }

    /// All attributes of the newest element are known, so names can be resolved.
    fn seal(&mut self) {
        if !std::mem::take(&mut self.starting) || self.failed.is_some() {
            return;
        }
        let Some(&(first, _)) = self.open.last() else { return };
        for at in first as usize..self.tree.nodes.len() {
            let Node { kind, local, .. } = self.tree.nodes[at];
            let name = local.of(&self.tree.bytes);
            let colon = memchr::memchr(b':', name);
            let prefix = Span { start: local.start, end: local.start + colon.unwrap_or(0) as u32 };
            // An attribute without a prefix is in no namespace.
            if colon.is_none() && kind == Kind::Attribute {
                continue;
            }
            let found = if prefix.of(&self.tree.bytes) == b"xml" {
                Some(self.keep(XML_NAMESPACE))
            } else {
                let wanted = prefix.of(&self.tree.bytes);
                let declared =
                    self.scope.iter().rev().find(|(prefix, _)| prefix.of(&self.tree.bytes) == wanted);
                declared.map(|(_, namespace)| *namespace)
            };
            let node = &mut self.tree.nodes[at];
            // A prefix that stands for nothing stays a part of the name, as in libxml2.
            if let Some(namespace) = found.filter(|namespace| namespace.end > namespace.start) {
                node.namespace = namespace;
                node.local.start += colon.map_or(0, |at| at as u32 + 1);
            }
        }
    }
}
