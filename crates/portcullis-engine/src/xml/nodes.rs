//! The values of XML targets, and exclusions with a path: they take away the nodes that their path selects,
//! and nothing else.
//!
//! ModSecurity 2.9 compares names here, and every value of `XML` has the same: `!XML://@*` takes all of XML
//! away as soon as there is one attribute, and `ctl:ruleRemoveTargetById=1;XML://@*` takes nothing away.
//! Neither is what was written.

use portcullis_types::{Span, Variable};

use crate::Class;
use crate::collect::Item;
use crate::execution::Execution;
use crate::plan::{KeyFilter, RuleIndex, XmlPath};

/// The node that a value of an XML target is the text of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum XmlOrigin {
    /// It is not from an XML target with a path.
    None,
    /// `/*`: the root element.
    Root,
    /// `//@*`: the attribute at this place among all.
    Attribute(u32),
    /// A node of the tree.
    Node(u32),
}

/// The nodes that a path selects.
struct Selected<'p> {
    path: &'p XmlPath,
    /// In document order.
    nodes: Vec<u32>,
    /// One of them is a root element.
    has_root: bool,
    /// By place among all attributes; empty where none is selected.
    attributes: Vec<bool>,
}

impl Selected<'_> {
    fn has(&self, origin: XmlOrigin) -> bool {
        match origin {
            XmlOrigin::None => false,
            XmlOrigin::Root => *self.path == XmlPath::Text || self.has_root,
            XmlOrigin::Attribute(at) => {
                *self.path == XmlPath::Attributes
                    || self.attributes.get(at as usize).is_some_and(|selected| *selected)
            }
            XmlOrigin::Node(node) => self.nodes.binary_search(&node).is_ok(),
        }
    }
}

impl Execution<'_> {
    pub(crate) fn collect_xml(&mut self, filter: &KeyFilter, items: &mut Vec<Item>) {
        let push = |items: &mut Vec<Item>, value, node| {
            items.push(Item { node, ..Item::new(Variable::Xml, Span::default(), value) });
        };
        match filter {
            KeyFilter::Xml(XmlPath::Attributes) => {
                for (value, at) in self.message.store.class(Class::XmlAttributes).zip(0..) {
                    push(items, value, XmlOrigin::Attribute(at));
                }
            }
            KeyFilter::Xml(XmlPath::Text) => {
                for value in self.message.store.class(Class::XmlText) {
                    push(items, value, XmlOrigin::Root);
                }
            }
            KeyFilter::Xml(XmlPath::Search(path)) => {
                for (node, data) in self.message.body.search(path) {
                    let value = self.message.store.temporary(Span::default(), data);
                    push(items, value, XmlOrigin::Node(node));
                }
            }
            // As in ModSecurity 2, where operators that take the document itself look at this.
            KeyFilter::All | KeyFilter::Key(_) | KeyFilter::Regex(_) => {
                if self.message.store.class_len(Class::XmlText) > 0 {
                    let data = self.message.store.push(b"[XML document tree]");
                    let value = self.message.store.temporary(Span::default(), data);
                    push(items, value, XmlOrigin::None);
                }
            }
        }
    }

    /// The other readings of the text of the document.
    pub(crate) fn collect_xml_readings(&self, items: &mut Vec<Item>) {
        for value in self.message.store.class(Class::XmlReadings) {
            let item = Item::new(Variable::Xml, Span::default(), value);
            items.push(Item { node: XmlOrigin::Root, ..item });
        }
    }

    /// Takes the nodes that `path` selects from what the link at `at` of `rule` looks at.
    pub(crate) fn take_away_nodes(
        &mut self,
        rule: RuleIndex,
        at: u32,
        path: &XmlPath,
        items: &mut Vec<Item>,
    ) {
        if items.iter().all(|item| item.node == XmlOrigin::None) {
            return;
        }
        let selected = self.selected(path);
        items.retain(|item| {
            let gone = selected.has(item.node);
            if gone {
                self.trace_excluded(rule, at, item);
            }
            !gone
        });
    }

    /// The same for the paths that `ctl:ruleRemoveTarget...` has taken from `rule` by the time that its first
    /// link begins.
    pub(crate) fn take_away_removed_nodes(&mut self, rule: RuleIndex, items: &mut Vec<Item>) {
        for place in 0..self.vars.ctl.removed_targets.len() {
            let removal = &self.plan.ctl_targets[self.vars.ctl.removed_targets[place] as usize];
            if let KeyFilter::Xml(path) = &removal.filter
                && removal.rules.contains(rule.0)
            {
                self.take_away_nodes(rule, 0, path, items);
            }
        }
    }

    fn selected<'p>(&self, path: &'p XmlPath) -> Selected<'p> {
        let mut selected = Selected { path, nodes: Vec::new(), has_root: false, attributes: Vec::new() };
        if let Some(tree) = self.message.body.tree() {
            selected.nodes = tree.select_path(path);
            selected.has_root = selected.nodes.iter().any(|&node| tree.is_root(node));
            let attributes = tree.attributes().map(|node| selected.nodes.binary_search(&node).is_ok());
            selected.attributes = attributes.collect();
        }
        selected
    }
}
