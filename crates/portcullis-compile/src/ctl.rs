//! `ctl:` actions: rule sets and exclusions are resolved here, so that a request only sets bits.

use portcullis_engine::{Act, BodyProcessor, CtlTarget, Plan, RuleSet};
use portcullis_seclang::ast::{Ctl, RuleSelector, Target};
use portcullis_seclang::settings as seclang;
use portcullis_seclang::standing::{self, Standing};

use crate::draft::{Draft, Matcher};
use crate::settings;

/// The act of `ctl`, or why there is none. `drafts` are all rules that will run, by rule index.
pub(crate) fn act(ctl: &Ctl, drafts: &[&Draft<'_>], plan: &mut Plan) -> Result<Act, String> {
    let rules = |selector: RuleSelector| -> Result<RuleSet, String> {
        let matcher = Matcher::new(&selector)?;
        let mut set = RuleSet::new();
        for (index, draft) in (0..).zip(drafts) {
            if matcher.selects(draft) {
                set.insert(index);
            }
        }
        Ok(set)
    };
    let removal = |set: RuleSet, plan: &mut Plan| {
        plan.ctl_removals.push(set);
        Ok(Act::RemoveRules(plan.ctl_removals.len() as u32 - 1))
    };
    match ctl {
        Ctl::RuleRemoveById(ids) => removal(rules(RuleSelector::Ids(ids.clone()))?, plan),
        Ctl::RuleRemoveByTag(tag) => removal(rules(RuleSelector::Tag(tag.clone()))?, plan),
        Ctl::RuleRemoveByMsg(msg) => removal(rules(RuleSelector::Msg(msg.clone()))?, plan),
        Ctl::RuleRemoveTargetById { ids, target } => {
            exclusion(rules(RuleSelector::Ids(ids.clone()))?, target, plan)
        }
        Ctl::RuleRemoveTargetByTag { tag, target } => {
            exclusion(rules(RuleSelector::Tag(tag.clone()))?, target, plan)
        }
        Ctl::RuleRemoveTargetByMsg { msg, target } => {
            exclusion(rules(RuleSelector::Msg(msg.clone()))?, target, plan)
        }
        Ctl::RuleEngine(engine) => Ok(Act::RuleEngine(settings::rule_engine(*engine))),
        Ctl::RequestBodyProcessor(processor) => Ok(Act::BodyProcessor(body_processor(*processor))),
        Ctl::ForceRequestBodyVariable(on) => Ok(Act::ForceRequestBodyVariable(*on)),
        Ctl::ParseXmlIntoArgs(args) => Ok(Act::XmlArgs(settings::xml_args(*args))),
        Ctl::RequestBodyAccess(on) => Ok(Act::RequestBodyAccess(*on)),
        Ctl::RequestBodyLimit(bytes) => Ok(Act::RequestBodyLimit(*bytes)),
        Ctl::ResponseBodyAccess(on) => Ok(Act::ResponseBodyAccess(*on)),
        Ctl::ResponseBodyLimit(bytes) => Ok(Act::ResponseBodyLimit(*bytes)),
        // It has a text to be taken apart (`Lowering::rate_limit`), and the others are refused before this
        // (`refusal`).
        Ctl::RateLimit { .. }
        | Ctl::AuditEngine(_)
        | Ctl::AuditLogParts(_)
        | Ctl::DebugLogLevel(_)
        | Ctl::HashEngine(_)
        | Ctl::HashEnforcement(_) => Err("this ctl option is not supported".to_owned()),
    }
}

/// Message and hint, if the option is one of ModSecurity 2 that does nothing here.
pub(crate) fn without_effect(ctl: &Ctl) -> Option<(String, String)> {
    let option = ctl.option()?;
    if let Standing::Vain(refusal) = standing::ctl(option) {
        Some((format!("ctl:{} has no effect: {}", option.name(), refusal.why), refusal.instead.to_owned()))
    } else {
        None
    }
}

fn exclusion(rules: RuleSet, target: &Target, plan: &mut Plan) -> Result<Act, String> {
    let filter = crate::targets::filter(target, &[]).map_err(|error| error.0)?;
    plan.ctl_targets.push(CtlTarget { rules, variable: target.variable, filter });
    Ok(Act::RemoveTarget(plan.ctl_targets.len() as u32 - 1))
}

fn body_processor(processor: seclang::BodyProcessor) -> BodyProcessor {
    match processor {
        seclang::BodyProcessor::UrlEncoded => BodyProcessor::UrlEncoded,
        seclang::BodyProcessor::Multipart => BodyProcessor::Multipart,
        seclang::BodyProcessor::Json => BodyProcessor::Json,
        seclang::BodyProcessor::Xml => BodyProcessor::Xml,
    }
}
