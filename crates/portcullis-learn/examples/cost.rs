//! The cost of learning for requests of three fields, to be counted by callgrind: `cost REQUESTS NETWORKS`.
//! Each field is known and closed. The difference between two runs is what the requests between them cost;
//! with few networks they show nothing new, with as many networks as requests each is handed on.
//!
//! ```text
//! cargo build --profile bench-quick -p portcullis-learn --example cost
//! cost=target/bench-quick/examples/cost
//! for n in 20000 120000; do valgrind --tool=callgrind --callgrind-out-file=/dev/null $cost $n 20; done
//! ```

use portcullis_learn::{FieldPlace, Fields, Knowledge, Limits, Site, Source, Store};

const FIELDS: [(&[u8], &[u8]); 3] = [(b"id", b"4711"), (b"sort", b"name"), (b"page", b"2")];

fn note(fields: &mut Fields) {
    for (name, value) in FIELDS {
        fields.note(FieldPlace::Query, name, value);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|number| number.parse::<u32>().expect("a number"));
    let (requests, networks) = (arguments.next().unwrap_or(20_000), arguments.next().unwrap_or(20));
    let (site, mut store, mut fields) = (Site::default(), Store::new(Limits::default()), Fields::default());
    for at in 0..560u32 {
        fields.clear();
        note(&mut fields);
        let source = Source { network: at % 40, day: at % 14, ..Source::default() };
        site.observe(source, b"GET", b"/shop/items", &fields);
    }
    store.learn(&site.take());
    assert_eq!(store.counts(), (3, 3), "all of them are closed");
    site.publish(Knowledge::of(&store));
    let (mut unusual, mut handed_on) = (0, 0);
    for at in 0..requests {
        fields.clear();
        fields.judge_by(site.knowledge(), b"GET", b"/shop/items");
        note(&mut fields);
        fields.set_own_hosts(|_| false);
        unusual += fields.unusual().len();
        let source = Source { network: at % networks.max(1), day: 15, ..Source::default() };
        site.observe(source, b"GET", b"/shop/items", &fields);
        if at % 1_000 == 999 {
            handed_on += site.take().len();
        }
    }
    assert_eq!(unusual, 0);
    let most =
        if networks < requests { requests as usize / 8 + networks as usize } else { requests as usize };
    assert!((1..=most).contains(&handed_on), "{handed_on} of {requests} requests were handed on");
}
