//! Exclusions on trial: the policy decides without them; where it stops a request, the request is looked at
//! once more by the policy that they would make.
//!
//! A policy without such exclusions keeps nothing and does nothing here. One that has some keeps the request
//! as it was shown; it is looked at again only if it was stopped, and for something that they name.

use std::sync::Arc;

use portcullis_engine::{Class, NoCollections};
use portcullis_http::message::{BodyFraming, RequestHead};
use portcullis_types::{ByteBuf, Phase, Place, Variable};

use crate::exchange::Step;
use crate::excluded::Excluded;
use crate::inspection::Inspection;
use crate::inspector::{Inspector, Scratch};
use crate::pattern::glob;
use crate::rule_exclusions::RuleExclusion;

/// Results of a request for the exclusions on trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trial {
    /// Those whose field the request has, on their path.
    pub seen: Excluded,
    /// Those that name something for which it was stopped, and what would have become of it with all of them.
    pub tried: Option<(Excluded, TrialResult)>,
}

/// Hypothetical outcome of a request that was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialResult {
    /// It would have passed, and nothing else was found in it.
    Passes,
    /// It would have passed, although something was found in it that no exclusion names: perhaps an attack.
    Lost,
    /// It would have been stopped all the same.
    Stopped,
    /// It was not seen to its end, so nobody knows.
    Unknown,
}

/// A request as it was shown.
#[derive(Debug)]
pub(crate) struct Shown {
    head: RequestHead,
    body: ByteBuf,
    /// It ended, and with less than all of it.
    ended: Option<bool>,
    /// There was more than a head and a body that was held.
    is_more: bool,
}

impl Shown {
    pub(crate) fn new(head: &RequestHead) -> Box<Shown> {
        Box::new(Shown { head: head.clone(), body: ByteBuf::new(), ended: None, is_more: false })
    }

    pub(crate) fn body(&mut self, chunk: &[u8]) {
        self.body.extend_from_slice(chunk);
    }

    /// Drops the body.
    pub(crate) fn forget(&mut self) {
        (self.body, self.is_more) = (ByteBuf::new(), true);
    }

    pub(crate) fn end(&mut self, truncated: bool) {
        self.ended = Some(truncated);
    }

    /// Trailers, or an upload that goes on.
    pub(crate) fn more(&mut self) {
        self.is_more = true;
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.body.held_bytes() + self.head.received_len()
    }

    /// Its end, if it was seen as a whole.
    fn is_whole(&self) -> bool {
        !self.is_more && (self.ended.is_some() || self.head.framing() == BodyFraming::None)
    }
}

impl Inspector {
    /// The same, with a second opinion on what its exclusions on trial would let through. To be called last.
    pub fn with_trials(mut self) -> Inspector {
        let of_detector = self.semantic.as_ref().is_some_and(|semantic| semantic.policy.has_trials());
        let of_rules = self.rule_exclusions.as_ref().is_some_and(|rules| rules.has_trials());
        if !of_detector && !of_rules {
            return self;
        }
        let mut other = self.aside(Arc::clone(&self.redactor), Arc::new(NoCollections));
        if let Some(semantic) = &mut other.semantic {
            semantic.policy = Arc::new(semantic.policy.enforced());
        }
        other.rule_exclusions = other.rule_exclusions.map(|rules| Arc::new(rules.enforced()));
        self.second = Some(Arc::new(other));
        self
    }
}

impl Inspection {
    /// Results of the request for the exclusions on trial; none: there are none.
    pub(crate) fn trial(&self) -> Option<Trial> {
        let second = self.inspector.second.as_ref()?;
        let shown = self.shown.as_ref()?;
        let seen = self.seen_fields(&shown.head);
        let touched = self.touched();
        let is_stopped = self.interruption.is_some() && self.phase <= Phase::RequestBody;
        if !is_stopped || touched == Excluded::default() {
            return Some(Trial { seen, tried: None });
        }
        if !shown.is_whole() {
            return Some(Trial { seen, tried: Some((touched, TrialResult::Unknown)) });
        }
        let (result, used) = self.look_again(second, shown);
        let named = self.on_trial(touched, used);
        Some(Trial { seen, tried: Some((named, result)) })
    }

    /// The exclusions on trial of both, each once: what stopped the request first hides what would have
    /// stopped it next.
    fn on_trial(&self, mut touched: Excluded, used: Excluded) -> Excluded {
        let semantic = self.semantic.as_ref().map(|semantic| &semantic.semantic.policy);
        let rules = self.inspector.rule_exclusions.as_ref();
        let of_detector = used.semantic.into_iter().filter(|number| !touched.semantic.contains(number));
        let of_detector =
            of_detector.filter(|number| semantic.is_some_and(|policy| policy.is_on_trial(*number)));
        let of_detector: Vec<u32> = of_detector.collect();
        let of_rules = used.rules.into_iter().filter(|number| !touched.rules.contains(number));
        let of_rules = of_rules.filter(|number| rules.is_some_and(|rules| rules.is_on_trial(*number)));
        let of_rules: Vec<u32> = of_rules.collect();
        touched.semantic.extend(of_detector);
        touched.rules.extend(of_rules);
        touched
    }

    /// The exclusions on trial whose field this request has.
    fn seen_fields(&self, head: &RequestHead) -> Excluded {
        let (path, now) = (head.path(), self.connection.epoch_millis);
        let semantic = self.semantic.as_ref().map(|semantic| {
            let on_trial = semantic.semantic.policy.trials(path, now);
            let has = |(_, place, name): &(u32, Option<Place>, Option<&str>)| self.has_value(*place, *name);
            on_trial.filter(has).map(|(number, ..)| number).collect()
        });
        let rules = self.inspector.rule_exclusions.as_ref().map(|rules| {
            let has = |(_, each): &(u32, &RuleExclusion)| self.has_target(each);
            rules.trials(path, now).filter(has).map(|(number, _)| number).collect()
        });
        Excluded { semantic: semantic.unwrap_or_default(), rules: rules.unwrap_or_default() }
    }

    /// True if the request has a value of this name there; also for places whose values have no names.
    fn has_value(&self, place: Option<Place>, name: Option<&str>) -> bool {
        let classes: &[Class] = match place {
            Some(Place::Query) => &[Class::ArgsGet],
            Some(Place::Form | Place::MultipartField | Place::Json) => &[Class::ArgsPost],
            Some(Place::Cookie) => &[Class::RequestCookies],
            Some(Place::Header) => &[Class::RequestHeaders],
            None => &[Class::ArgsGet, Class::ArgsPost, Class::RequestCookies, Class::RequestHeaders],
            Some(_) => return true,
        };
        self.has_name(classes, name)
    }

    fn has_target(&self, exclusion: &RuleExclusion) -> bool {
        let classes: &[Class] = match exclusion.variable {
            Some(Variable::Args) => &[Class::ArgsGet, Class::ArgsPost],
            Some(Variable::ArgsGet) => &[Class::ArgsGet],
            Some(Variable::ArgsPost) => &[Class::ArgsPost],
            Some(Variable::RequestCookies) => &[Class::RequestCookies],
            Some(Variable::RequestHeaders) => &[Class::RequestHeaders],
            _ => return true,
        };
        self.has_name(classes, exclusion.name.as_deref())
    }

    fn has_name(&self, classes: &[Class], name: Option<&str>) -> bool {
        let Some(name) = name else { return true };
        let is_it = |key: &[u8]| {
            // The engine names values of JSON by their way from the root.
            let short = key.strip_prefix(b"json.").unwrap_or(key);
            glob(name.as_bytes(), key, true) || glob(name.as_bytes(), short, true)
        };
        classes.iter().flat_map(|class| self.transaction.values_of(*class)).any(|(key, _)| is_it(key))
    }

    /// The exclusions on trial that name something for which the request could have been stopped.
    fn touched(&self) -> Excluded {
        let rules = self.inspector.rule_exclusions.as_ref();
        let is_on_trial = |number: &&u32| rules.is_some_and(|rules| rules.is_on_trial(**number));
        Excluded {
            semantic: self.semantic.as_ref().map(|semantic| semantic.touched_trials()).unwrap_or_default(),
            rules: self.transaction.exempted().iter().filter(is_on_trial).copied().collect(),
        }
    }

    /// Inspects the request once more, by the policy with the exclusions; also tells which of all took
    /// something away.
    fn look_again(&self, second: &Arc<Inspector>, shown: &Shown) -> (TrialResult, Excluded) {
        let mut connection = self.connection.clone();
        connection.keep_request_bytes = 0;
        let mut again = second.begin(&self.names, connection, Scratch::default());
        again.issued.clone_from(&self.issued);
        let result = match again.runs_through(shown, self.agent_score) {
            false => TrialResult::Stopped,
            true => {
                let finds = again.semantic.as_ref().is_some_and(|semantic| semantic.finds_more());
                let matches = again.transaction.matches().iter().any(|found| found.log);
                if finds || matches { TrialResult::Lost } else { TrialResult::Passes }
            }
        };
        (result, again.excluded())
    }

    /// The request phases; true if nothing stops the request.
    fn runs_through(&mut self, shown: &Shown, agent_score: u32) -> bool {
        let step = self.request_head(&shown.head, None);
        if self.settled(step) != Step::Continue {
            return false;
        }
        if agent_score > 0 {
            self.add_agent_score(agent_score);
        }
        self.request_body(&shown.body);
        let step = self.request_end(shown.ended.unwrap_or(false));
        self.settled(step) == Step::Continue && !self.refuses_request_body()
    }

    /// Lookups are not asked a second time.
    fn settled(&mut self, mut step: Step) -> Step {
        while step == Step::Ask {
            step = self.resume();
        }
        step
    }
}
