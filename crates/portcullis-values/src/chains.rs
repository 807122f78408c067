//! Transformation chains as a prefix tree.

use std::collections::HashMap;
use std::sync::Arc;

use portcullis_decode::{Transformation, UnicodeMap};
use portcullis_types::ByteSet;

/// A transformation chain of a plan: a node of the prefix tree [`Chains`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChainId(pub u32);

impl ChainId {
    /// The chain without a transformation.
    pub const IDENTITY: ChainId = ChainId(0);
}

/// A chain as a longer one sees it.
#[derive(Clone, Debug)]
pub struct ChainNode {
    /// The chain without its last transformation.
    pub parent: ChainId,
    /// That transformation.
    pub last: Transformation,
    /// Bytes of the parent's form that let `last` act.
    pub triggers: ByteSet,
}

/// All transformation chains of a plan as a prefix tree: chains that begin alike share the work of the
/// beginning.
#[derive(Clone, Debug, Default)]
pub struct Chains {
    /// The map that `t:urlDecodeUni` decodes `%uXXXX` with.
    pub unicode_map: Option<Arc<UnicodeMap>>,
    nodes: Vec<ChainNode>,
    index: HashMap<(ChainId, Transformation), ChainId>,
}

impl Chains {
    /// The chain that applies `transformations` in order, added if it is new.
    pub fn intern(&mut self, transformations: &[Transformation]) -> ChainId {
        transformations.iter().fold(ChainId::IDENTITY, |parent, &last| self.extend(parent, last))
    }

    fn extend(&mut self, parent: ChainId, last: Transformation) -> ChainId {
        let nodes = &mut self.nodes;
        *self.index.entry((parent, last)).or_insert_with(|| {
            nodes.push(ChainNode { parent, last, triggers: last.triggers() });
            ChainId(nodes.len() as u32)
        })
    }

    /// Returns the last node of a chain; `None` for the empty chain.
    pub fn node(&self, chain: ChainId) -> Option<&ChainNode> {
        self.nodes.get((chain.0 as usize).checked_sub(1)?)
    }

    /// The transformations of `chain`, first to last.
    pub fn transformations(&self, chain: ChainId) -> Vec<Transformation> {
        let mut names = Vec::new();
        let mut at = chain;
        while let Some(node) = self.node(at) {
            names.push(node.last);
            at = node.parent;
        }
        names.reverse();
        names
    }

    /// Number of distinct chains, the empty one not counted.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True if no chain has a transformation.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}
