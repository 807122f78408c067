//! The tree of a pattern to the intermediate form of the linear-time engine, where that is exact.

use regex_syntax::hir::{Capture, Class, ClassBytes, Hir, Look, Repetition};

use super::RegexError;
use super::cursor::error;
use super::node::{Greed, Node, is_empty, line_ending};
use super::parser::Parsed;

/// Groups above this number are matched but not captured: `TX:0` to `TX:9` is all SecLang can hold.
const CAPTURES_MAX: u32 = 9;

/// The form, or the first construct that needs backtracking.
pub(super) fn lower(parsed: &Parsed) -> Result<Hir, RegexError> {
    match &parsed.backtracks {
        Some((offset, what)) => error(*offset, format!("{what} cannot be matched in linear time")),
        None => Ok(node(&parsed.node)?.0),
    }
}

/// As [`lower`], after what is only written as if it needed backtracking has been written otherwise; `None`
/// if that is not all of it.
pub(super) fn lower_exactly(parsed: &Parsed) -> Option<Hir> {
    if parsed.backtracks.is_none() {
        return node(&parsed.node).ok().map(|(hir, _)| hir);
    }
    let mut tree = parsed.node.clone();
    simplify_possessive(&mut tree, true);
    is_regular(&tree).then(|| node(&tree).ok().map(|(hir, _)| hir)).flatten()
}

/// True if automata can run it.
fn is_regular(node: &Node) -> bool {
    match node {
        Node::Byte(_) | Node::Set(_) | Node::Look(_) | Node::EndOrNewline(_) | Node::LineEnding => true,
        Node::Repeat { node, greed, .. } => *greed != Greed::Possessive && is_regular(node),
        Node::Capture(_, node) => is_regular(node),
        Node::Concat(nodes) | Node::Alternate(nodes) => nodes.iter().all(is_regular),
        Node::Keep
        | Node::Atomic(_)
        | Node::LookAround { .. }
        | Node::BackReference { .. }
        | Node::Conditional { .. } => false,
    }
}

/// Replaces possessive repetitions of single bytes by greedy ones where both match the same: what follows
/// begins with none of the bytes that the repetition takes, so giving some back never helps; or nothing
/// follows that could want them.
fn simplify_possessive(tree: &mut Node, is_last: bool) {
    if let Node::Repeat { node, greed, .. } = tree {
        if *greed == Greed::Possessive && is_last && node.single_byte().is_some() {
            *greed = Greed::Greedy;
        }
        simplify_possessive(node, false);
    } else if let Node::Capture(_, node) = tree {
        simplify_possessive(node, is_last);
    } else if let Node::Alternate(nodes) = tree {
        nodes.iter_mut().for_each(|node| simplify_possessive(node, is_last));
    } else if let Node::Concat(nodes) = tree {
        for at in 0..nodes.len() {
            let (before, after) = nodes.split_at_mut(at + 1);
            let Some(node) = before.last_mut() else { continue };
            if let Node::Repeat { node: inner, greed: greed @ Greed::Possessive, .. } = node
                && let Some(taken) = inner.single_byte()
                && after.first().is_some_and(|next| begins_without(next, &taken))
            {
                *greed = Greed::Greedy;
            }
            simplify_possessive(node, is_last && after.is_empty());
        }
    }
}

/// True if whatever `node` matches cannot be followed to where a byte of `taken` comes next.
fn begins_without(node: &Node, taken: &ClassBytes) -> bool {
    if let Some(mut set) = node.single_byte() {
        set.intersect(taken);
        return set.ranges().is_empty();
    }
    if let Node::Repeat { node, min: 1.., .. } | Node::Capture(_, node) = node {
        begins_without(node, taken)
    } else if let Node::Concat(nodes) = node {
        nodes.first().is_some_and(|first| begins_without(first, taken))
    } else if let Node::Alternate(nodes) = node {
        nodes.iter().all(|node| begins_without(node, taken))
    } else {
        matches!(node, Node::Look(Look::End))
    }
}

/// The form, and where a `\Z` stands that ends it.
///
/// `\Z` is rendered as "the end, or one newline and the end", which consumes what PCRE only looks at: the
/// same verdict as long as nothing behind it wants that newline.
fn node(tree: &Node) -> Result<(Hir, Option<usize>), RegexError> {
    let plain = |hir| Ok((hir, None));
    match tree {
        Node::Byte(byte) => plain(Hir::literal([*byte])),
        Node::Set(set) => plain(Hir::class(Class::Bytes(set.clone()))),
        Node::Look(look) => plain(Hir::look(*look)),
        Node::LineEnding => plain(line_ending()),
        Node::EndOrNewline(offset) => {
            let newline = Hir::concat(vec![Hir::literal(*b"\n"), Hir::look(Look::End)]);
            Ok((Hir::alternation(vec![Hir::look(Look::End), newline]), Some(*offset)))
        }
        Node::Repeat { node: inner, min, max, greed, offset } => {
            let (sub, end) = node(inner)?;
            if end.is_some() && max.is_none_or(|max| max > 1) {
                return error(*offset, "what ends with `\\Z` cannot be repeated");
            }
            let greedy = *greed != Greed::Lazy;
            Ok((Hir::repetition(Repetition { min: *min, max: *max, greedy, sub: Box::new(sub) }), end))
        }
        Node::Capture(index, inner) => {
            let (sub, end) = node(inner)?;
            let hir = if *index <= CAPTURES_MAX {
                Hir::capture(Capture { index: *index, name: None, sub: Box::new(sub) })
            } else {
                sub
            };
            Ok((hir, end))
        }
        Node::Concat(nodes) => {
            let mut parts = Vec::with_capacity(nodes.len());
            let mut ended: Option<usize> = None;
            for inner in nodes {
                let (hir, end) = node(inner)?;
                if let Some(offset) = ended
                    && !is_empty(&hir)
                {
                    return error(
                        offset,
                        "`\\Z` is only supported at the end of the pattern; use `\\z` or `$`",
                    );
                }
                ended = ended.or(end);
                parts.push(hir);
            }
            Ok((Hir::concat(parts), ended))
        }
        Node::Alternate(nodes) => {
            let mut parts = Vec::with_capacity(nodes.len());
            let mut ended = None;
            for inner in nodes {
                let (hir, end) = node(inner)?;
                ended = ended.or(end);
                parts.push(hir);
            }
            Ok((Hir::alternation(parts), ended))
        }
        // The parser notes these, and `lower` refuses them by their place.
        Node::Keep
        | Node::Atomic(_)
        | Node::LookAround { .. }
        | Node::BackReference { .. }
        | Node::Conditional { .. } => error(0, "this construct cannot be matched in linear time"),
    }
}
