//! The queue of events.

use portcullis_binding::Events;

#[test]
fn number_and_bytes_are_bounded() {
    let events = Events::default();
    for _ in 0..10_010 {
        events.push("{}".to_owned());
    }
    assert_eq!((events.take().len(), events.dropped()), (10_000, 10));
    for _ in 0..65 {
        events.push("a".repeat(1 << 20));
    }
    assert_eq!((events.take().len(), events.dropped()), (64, 11));
    events.push("{}".to_owned());
    assert_eq!(events.take(), ["{}"]);
}
