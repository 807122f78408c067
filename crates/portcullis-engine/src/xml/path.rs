//! Location paths, and the nodes they select. Each step goes once over the nodes there are, so a path takes
//! time in proportion to its steps and the size of the document.

use portcullis_types::Span;

use super::tree::{Kind, Node, Tree};
use crate::plan::XmlPath;

/// Paths of which each selects nodes: `/a/b | //c/@d`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XPath {
    /// At least one.
    pub paths: Vec<Vec<Step>>,
    /// As it was written.
    pub text: Box<str>,
}

/// One step of a path, from a node to nodes below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// `//`: from the node itself and from everything below it.
    pub deep: bool,
    /// The nodes to select there.
    pub test: NodeTest,
    /// The predicates on those nodes, applied one after the other.
    pub predicates: Vec<Predicate>,
}

/// The test of a step: the nodes that it selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeTest {
    /// Child elements.
    Element(Name),
    /// Attributes.
    Attribute(Name),
    /// `text()`.
    Text,
}

/// A name test. `None`: any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The namespace; the empty one is none at all.
    pub namespace: Option<Box<[u8]>>,
    /// The name in it.
    pub local: Option<Box<[u8]>>,
}

/// A condition in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// `[2]`: the second of those that one node led to.
    Position(u32),
    /// `[last()]`.
    Last,
    /// `[@a]`, `[a]`, `[text()]`: there is one; with a value, one that has it.
    Has(NodeTest, Option<Box<[u8]>>),
    /// `[.='x']`: its own value.
    Is(Box<[u8]>),
    /// `[local-name()='x']`: its name, in whatever namespace.
    LocalName(Box<[u8]>),
}

impl Tree {
    /// The nodes that `path` selects, in document order.
    pub(crate) fn select(&self, path: &XPath) -> Vec<u32> {
        let mut all = Vec::new();
        for steps in &path.paths {
            let mut nodes = vec![0];
            for step in steps {
                nodes = self.step(&nodes, step);
            }
            all.extend(nodes);
        }
        if path.paths.len() > 1 {
            all.sort_unstable();
            all.dedup();
        }
        all
    }

    /// The same for any path.
    pub(crate) fn select_path(&self, path: &XmlPath) -> Vec<u32> {
        match path {
            XmlPath::Text => self.roots().collect(),
            XmlPath::Attributes => self.attributes().collect(),
            XmlPath::Search(path) => self.select(path),
        }
    }

    /// All attributes, in document order.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.nodes).filter(|(_, node)| node.kind == Kind::Attribute).map(|(at, _)| at)
    }

    /// True if `node` is the element that holds all others.
    pub(crate) fn is_root(&self, node: u32) -> bool {
        self.roots().any(|root| root == node)
    }

    fn roots(&self) -> impl Iterator<Item = u32> + '_ {
        let mut at = 1;
        std::iter::from_fn(move || {
            let node = at;
            at = self.nodes.get(node as usize)?.end;
            Some(node)
        })
        .filter(|&node| self.nodes[node as usize].kind == Kind::Element)
    }

    /// The text of a node: in [`Tree::text`], or for an attribute in [`Tree::bytes`].
    pub(crate) fn value(&self, node: u32) -> (&[u8], Span, bool) {
        let node = &self.nodes[node as usize];
        let in_text = node.kind != Kind::Attribute;
        let bytes = if in_text { &self.text } else { &self.bytes };
        (node.value.of(bytes), node.value, in_text)
    }

    fn step(&self, from: &[u32], step: &Step) -> Vec<u32> {
        let deep;
        let from = if step.deep {
            deep = self.with_descendants(from);
            &deep
        } else {
            from
        };
        let mut out = Vec::new();
        let mut sorted = true;
        for &context in from {
            let before = out.len();
            let candidates = self.below(context, &step.test);
            out.extend(candidates);
            for predicate in &step.predicates {
                self.keep_those(&mut out, before, predicate);
            }
            sorted &= before == 0 || out.get(before).is_none_or(|first| out[before - 1] < *first);
        }
        // What is below one node is distinct from what is below another, but may stand between.
        if !sorted {
            out.sort_unstable();
        }
        out
    }

    /// The nodes and all elements below them. `from` is in document order.
    fn with_descendants(&self, from: &[u32]) -> Vec<u32> {
        let mut out = Vec::new();
        let mut done = 0;
        for &node in from {
            let end = self.nodes[node as usize].end;
            let inner = node.max(done)..end;
            let is_inner = |at: &u32| matches!(self.nodes[*at as usize].kind, Kind::Document | Kind::Element);
            out.extend(inner.filter(is_inner));
            done = done.max(end);
        }
        out
    }

    /// Children or attributes of a node that pass the test.
    fn below<'t>(&'t self, context: u32, test: &'t NodeTest) -> impl Iterator<Item = u32> + 't {
        let node = self.nodes[context as usize];
        let is_parent = matches!(node.kind, Kind::Document | Kind::Element);
        let mut at = if is_parent { context + 1 } else { node.end };
        std::iter::from_fn(move || {
            while at < node.end {
                let candidate = at;
                let found = &self.nodes[candidate as usize];
                at = found.end;
                if self.passes(found, test) {
                    return Some(candidate);
                }
                // Attributes come first; behind them there are no more.
                if matches!(test, NodeTest::Attribute(_)) && found.kind != Kind::Attribute {
                    return None;
                }
            }
            None
        })
    }

    fn passes(&self, node: &Node, test: &NodeTest) -> bool {
        let named = |name: &Name| {
            name.namespace.as_ref().is_none_or(|wanted| node.namespace.of(&self.bytes) == &**wanted)
                && name.local.as_ref().is_none_or(|wanted| node.local.of(&self.bytes) == &**wanted)
        };
        match test {
            NodeTest::Element(name) => node.kind == Kind::Element && named(name),
            NodeTest::Attribute(name) => node.kind == Kind::Attribute && named(name),
            NodeTest::Text => node.kind == Kind::Text,
        }
    }

    /// Applies a predicate to those of `nodes` from `first` on, which one node led to.
    fn keep_those(&self, nodes: &mut Vec<u32>, first: usize, predicate: &Predicate) {
        match predicate {
            Predicate::Position(wanted) => {
                let at = first + (*wanted as usize).saturating_sub(1);
                let kept = nodes.get(at).copied().filter(|_| *wanted > 0);
                nodes.truncate(first);
                nodes.extend(kept);
            }
            Predicate::Last => {
                let kept = nodes.last().copied().filter(|_| nodes.len() > first);
                nodes.truncate(first);
                nodes.extend(kept);
            }
            Predicate::Has(test, value) => {
                let is = |node: u32| value.as_ref().is_none_or(|value| self.value(node).0 == &**value);
                retain_from(nodes, first, |node| self.below(node, test).any(is));
            }
            Predicate::Is(value) => retain_from(nodes, first, |node| self.value(node).0 == &**value),
            Predicate::LocalName(name) => {
                retain_from(nodes, first, |node| self.nodes[node as usize].local.of(&self.bytes) == &**name);
            }
        }
    }
}

/// Keeps those nodes from `first` on that pass.
fn retain_from(nodes: &mut Vec<u32>, first: usize, passes: impl Fn(u32) -> bool) {
    let mut kept = first;
    for at in first..nodes.len() {
        let node = nodes[at];
        if passes(node) {
            nodes[kept] = node;
            kept += 1;
        }
    }
    nodes.truncate(kept);
}
