use std::sync::{Arc, LazyLock};

use portcullis_learn::{
    FieldPlace, KindIn, KindNews, Knowledge, OpeningState, Site, Source, Standing, Store,
};

use super::*;
use crate::detectors::field::Opens;
use crate::{Analysis, Detectors, Level};

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

/// A site that has issued every cookie.
#[derive(Debug)]
struct All;

impl crate::Issuer for All {
    fn has_issued(&self, _: &[u8], _: &[u8]) -> bool {
        true
    }
}

/// A site whose field `name` carries these kinds, as a person has said.
fn carried(name: &'static str, kinds: Vec<&'static str>) -> Knowledge {
    let (site, mut store) = (Site::default(), Store::default());
    let place = FieldPlace::Json;
    let found: Vec<_> = kinds.iter().map(|kind| KindIn { place, name: name.as_bytes(), kind }).collect();
    let source = Source { network: 1, session: None, day: 1, standing: Standing::Trusted };
    site.observe_kinds(source, b"POST", b"/", &found, KindNews::Carried);
    store.learn(&site.take());
    let ids: Vec<String> = store.openings().map(|(id, ..)| id).collect();
    assert_eq!(ids.len(), kinds.len());
    ids.iter().for_each(|id| assert!(store.decide(id, OpeningState::Live, 1)));
    Knowledge::of(&store)
}

impl Example {
    /// The ids of the exceptions that suppress something in it, and whether it is blocked.
    fn look(self) -> (Vec<&'static str>, bool) {
        let mut analysis = Analysis::new();
        let at = |place, name: &'static str| Location::new(place, name.as_bytes());
        match self {
            Json(name, value) => {
                analysis.value(&DETECTORS, at(Place::Json, name), value.as_bytes());
            }
            Query(name, value) => {
                analysis.value(&DETECTORS, at(Place::Query, name), value.as_bytes());
            }
            Body(media_type, body) => {
                analysis.request_body(&DETECTORS, media_type.as_bytes(), body);
            }
            Target(target) => {
                let fields = [(&b"Host"[..], &b"shop.example"[..])];
                analysis.request_head(&DETECTORS, b"GET", target.as_bytes(), fields.into_iter());
            }
            Referer(address) => {
                let fields = [(&b"Host"[..], &b"shop.example"[..]), (b"Referer", address.as_bytes())];
                analysis.request_head(&DETECTORS, b"GET", b"/", fields.into_iter());
            }
            Cookie(cookies) => {
                let fields = [(&b"Cookie"[..], cookies.as_bytes())];
                analysis.request_head(&DETECTORS, b"GET", b"/", fields.into_iter());
            }
            IssuedCookie(cookies) => {
                analysis.set_issuer(Arc::new(All));
                let fields = [(&b"Cookie"[..], cookies.as_bytes())];
                analysis.request_head(&DETECTORS, b"GET", b"/", fields.into_iter());
            }
            Opened(name, value) => {
                analysis.value(&DETECTORS, at(Place::Json, name), value.as_bytes());
                let kinds = analysis.findings().iter().map(|found| found.kind.id).collect();
                analysis.clear();
                analysis.open_fields(Opens::Safe);
                let knowledge = Arc::new(carried(name, kinds));
                analysis.fields().judge_by(knowledge, b"POST", b"/");
                analysis.value(&DETECTORS, at(Place::Json, name), value.as_bytes());
            }
            Page(body) => {
                analysis.value(&DETECTORS, Location::of(Place::ResponseBody), body.as_bytes());
            }
        }
        let rows = analysis.findings().iter().filter_map(|found| found.suppressed_by).collect();
        let worst = analysis.worst(&DETECTORS, Level::Balanced);
        (rows, worst.is_some_and(|worst| worst.blocks(Level::Balanced)))
    }
}

#[test]
fn each_exception_holds_and_ends() {
    let mut wrong = String::new();
    for row in EXCEPTIONS {
        let (rows, is_blocked) = row.benign.look();
        if !rows.contains(&row.id) || is_blocked {
            let _ = writeln!(wrong, "{}: suppressed by {rows:?}, blocked {is_blocked}", row.id);
        }
        if !row.attack.look().1 {
            let _ = writeln!(wrong, "{}: the attack passes", row.id);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The documentation has the table as it is.
#[test]
fn the_documentation_has_it() {
    let docs = include_str!("../../../../../docs/semantic.md");
    assert!(docs.contains(&markdown()), "docs/semantic.md lacks this table:\n{}", markdown());
}
