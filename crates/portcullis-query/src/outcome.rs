use portcullis_event::{Action, Control, ControlKind, EngineMode, Event};

/// The outcome of a request, as the field `outcome` names it. An event about something else, such as an
/// upstream that failed, has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Rules, the semantic detector or an agent stopped it.
    Blocked,
    /// They would have, if verdicts were enforced.
    WouldBlock,
    /// It was not acceptable HTTP.
    Refused,
    /// A list, limit, ban or overload turned the client away, or would have.
    Control,
    /// Something was found that would not have stopped it: below a threshold, or of a class that only logs.
    Noted,
}

impl Outcome {
    /// The names, in the order of the variants.
    pub const NAMES: &'static [&'static str] = &["blocked", "would_block", "refused", "control", "noted"];

    /// Its name.
    pub fn name(self) -> &'static str {
        Outcome::NAMES[self as usize]
    }

    /// That of an event.
    pub fn of(event: &Event) -> Option<Outcome> {
        let verdict = &event.verdict;
        let control = verdict.control.as_ref();
        // Where the engine blocks, findings that decided nothing are those of classes that only log.
        let decided = verdict.rule_id.is_some() || verdict.class.is_some() || control.is_some_and(is_agent);
        let is_refusal =
            matches!(verdict.action, Action::Deny | Action::Redirect | Action::Drop | Action::Proxy);
        let is_detected = verdict.action == Action::Detect;
        if decided && is_detected && event.engine == EngineMode::DetectionOnly {
            return Some(Outcome::WouldBlock);
        }
        // A control that only logs decided nothing.
        if decided && is_refusal {
            return Some(Outcome::Blocked);
        }
        Outcome::of_request(verdict.action, control).or(is_detected.then_some(Outcome::Noted))
    }

    /// That of a request of which only the action and the control that decided are known; of one that was
    /// only detected, its event tells more.
    pub fn of_request(action: Action, control: Option<&Control>) -> Option<Outcome> {
        match action {
            Action::Refuse => Some(Outcome::Refused),
            Action::Pass => None,
            Action::Detect | Action::Deny | Action::Redirect | Action::Drop | Action::Proxy
                if control.is_some_and(|control| !is_agent(control)) =>
            {
                Some(Outcome::Control)
            }
            Action::Detect => None,
            Action::Deny | Action::Redirect | Action::Drop | Action::Proxy => Some(Outcome::Blocked),
        }
    }
}

/// Agents look at what was sent; the other controls look at who sent it.
fn is_agent(control: &Control) -> bool {
    control.by == ControlKind::Agent
}

#[cfg(test)]
mod tests {
    use portcullis_event::Timestamp;
    use portcullis_types::{Class, RuleId};

    use super::*;

    #[test]
    fn what_would_have_been_blocked_is_told_from_what_only_matched() {
        use Action::{Deny, Detect, Pass, Refuse};
        let outcome = |action, engine, change: fn(&mut Event)| {
            let mut event = Event::new("r", Timestamp::from_epoch_millis(0));
            (event.verdict.action, event.engine) = (action, engine);
            change(&mut event);
            Outcome::of(&event).map(Outcome::name)
        };
        let (on, only) = (EngineMode::Blocking, EngineMode::DetectionOnly);
        let rule = |event: &mut Event| event.verdict.rule_id = Some(RuleId(949_110));
        let class = |event: &mut Event| event.verdict.class = Some(Class::Sqli);
        let ban = |event: &mut Event| {
            event.verdict.control = Some(Control { by: ControlKind::Ban, name: "all".into() });
        };
        assert_eq!(outcome(Deny, on, rule), Some("blocked"));
        assert_eq!(outcome(Deny, on, ban), Some("control"));
        assert_eq!(outcome(Refuse, on, |_| ()), Some("refused"));
        assert_eq!(outcome(Pass, on, |_| ()), None);
        for decided in [rule, class] {
            assert_eq!(outcome(Detect, only, decided), Some("would_block"));
            assert_eq!(outcome(Detect, on, decided), Some("noted"), "a class that only logs");
        }
        assert_eq!(outcome(Detect, only, |_| ()), Some("noted"), "a match below the threshold");
        assert_eq!(outcome(Detect, on, ban), Some("control"), "one that only logs");
        assert_eq!(
            outcome(Deny, on, |event| {
                event.verdict.rule_id = Some(RuleId(1));
                event.verdict.control = Some(Control { by: ControlKind::RateLimit, name: "logged".into() });
            }),
            Some("blocked"),
        );
        let agent = |event: &mut Event| {
            event.verdict.control = Some(Control { by: ControlKind::Agent, name: "scanner".into() });
        };
        assert_eq!(outcome(Deny, on, agent), Some("blocked"));
        assert_eq!(outcome(Detect, only, agent), Some("would_block"));
    }
}
