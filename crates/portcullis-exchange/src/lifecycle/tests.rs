//! Properties of every exchange, for every kind of server. Panics are real: their messages are in the output.

use std::net::{Ipv4Addr, SocketAddr};

use portcullis_config::OpenOrClosed;
use portcullis_event::{ExceptionCause, ExceptionPolicy, NotInspected, Redactor};
use portcullis_http::message::RequestHead;
use portcullis_inspect::{BodyLimitAction, BodyPlan, Interruption, PolicyNames, Step};

use super::*;

fn finish(life: &mut Lifecycle, uninspected: NotInspected) -> Finished {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 80));
    life.finish(&Facts {
        head: &RequestHead::default(),
        names: &PolicyNames { site: "shop".into(), route: "/".into(), generation: 3 },
        generation: 3,
        inspector: None,
        exclusions: None,
        redactor: &Redactor::none(),
        request_id: "a",
        epoch_millis: 0,
        client: address,
        server: address,
        tls: false,
        uninspected,
    })
}

#[test]
fn a_bug_is_settled_by_the_failure_policy_and_reported() {
    let (open, closed) = (OpenOrClosed::Open, OpenOrClosed::Closed);
    let deny = Step::Interrupt(Interruption::Deny { status: 500 });
    for (engine_error, step, policy) in
        [(open, Step::Continue, ExceptionPolicy::Open), (closed, deny, ExceptionPolicy::Closed)]
    {
        let failure = Failure { engine_error, ..Failure::default() };
        let mut life = Lifecycle::begin(failure, WorkClock::WALL, || panic!("a bug"));
        assert_eq!(life.health(), Health::Broken);
        assert_eq!(life.request_head(&RequestHead::default(), None), step);
        assert_eq!((life.request_body_plan(), life.response_end(false)), (BodyPlan::Skip, step.clone()));
        if step != Step::Continue {
            life.reject(500, "a reason", Action::Deny);
        }
        life.logging(Instant::now(), Duration::from_micros(7));
        let finished = finish(&mut life, NotInspected::EngineOff);
        let event = finished.event.expect("an event");
        let noted: Vec<_> = event.exceptions.iter().map(|each| (each.cause, each.policy)).collect();
        assert_eq!(noted, [(ExceptionCause::EngineError, policy)]);
        assert_eq!((event.policy_generation, event.duration_us), (3, 7));
        let reason = if step == Step::Continue { "" } else { "a reason" };
        assert_eq!((finished.action, &*event.verdict.reason), (event.verdict.action, reason));
        assert_eq!(finished.action == Action::Deny, step != Step::Continue);
    }
}

#[test]
fn what_no_inspection_saw_is_silent_unless_something_came_of_it() {
    let bypassed = NotInspected::Bypassed;
    assert!(finish(&mut Lifecycle::default(), bypassed).event.is_none());
    let rejected = |uninspected| {
        let mut life = Lifecycle::default();
        life.reject(429, "too many requests", Action::Deny);
        finish(&mut life, uninspected)
    };
    assert!(rejected(bypassed).event.is_some_and(|event| event.verdict.reason == "too many requests"));
    // The control that refused it makes the event.
    assert!(rejected(NotInspected::AfterVerdict).event.is_none());
}

#[test]
fn however_a_body_is_cut_as_much_of_it_is_shown() {
    let plan = BodyPlan::Hold { limit_bytes: 10, over_limit: BodyLimitAction::Reject };
    for pieces in [&[12][..], &[10, 2], &[11, 1], &[3, 3, 3, 3], &[0, 9, 1, 0, 2]] {
        let mut shown = Shown::default();
        let taken: Vec<_> = pieces.iter().map(|length| shown.take(*length, plan)).collect();
        assert_eq!((shown.bytes, taken.iter().map(|(fits, _)| fits).sum::<usize>()), (10, 10), "{pieces:?}");
        let beyond: Vec<_> = taken.iter().filter_map(|(_, beyond)| *beyond).collect();
        assert_eq!(beyond.iter().filter(|beyond| beyond.is_first).count(), 1, "{pieces:?}");
        assert!(shown.is_truncated && beyond[0].is_first && beyond[0].limit_bytes == 10, "{pieces:?}");
    }
    let mut shown = Shown::default();
    assert!(shown.take(10, plan).1.is_none() && !shown.is_truncated);
    assert_eq!(shown.take(5, BodyPlan::Skip).0, 0);
}
