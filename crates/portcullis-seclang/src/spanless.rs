//! Comparing trees without the places they were read from.

use crate::ast::{Action, Directive, Document, Spanned, Target};
use crate::source::SourceSpan;

impl Document {
    /// The same tree with every place at the start of the first file, so that `==` compares what the trees
    /// say only.
    pub fn without_spans(mut self) -> Document {
        for directive in &mut self.directives {
            directive.span = SourceSpan::default();
            match &mut directive.node {
                Directive::Rule(rule) => {
                    if let Some(condition) = &mut rule.condition {
                        targets(&mut condition.targets);
                        condition.operator.span = SourceSpan::default();
                    }
                    actions(&mut rule.actions);
                }
                Directive::Script { actions: list, .. } | Directive::DefaultAction(list) => actions(list),
                Directive::UpdateAction { actions: list, .. } => actions(list),
                Directive::UpdateTarget { targets: list, replaced, .. } => {
                    targets(list);
                    if let Some(replaced) = replaced {
                        targets(replaced);
                    }
                }
                Directive::Marker(_)
                | Directive::RemoveById(_)
                | Directive::RemoveByTag(_)
                | Directive::RemoveByMsg(_)
                | Directive::Setting(_) => {}
            }
        }
        self
    }

    /// True if both say the same, wherever they were read from.
    pub fn says_the_same_as(&self, other: &Document) -> bool {
        self.clone().without_spans() == other.clone().without_spans()
    }
}

fn targets(list: &mut [Spanned<Target>]) {
    list.iter_mut().for_each(|target| target.span = SourceSpan::default());
}

fn actions(list: &mut [Spanned<Action>]) {
    list.iter_mut().for_each(|action| action.span = SourceSpan::default());
}
