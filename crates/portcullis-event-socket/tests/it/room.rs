//! Events of peers wait while the queues of this process have no room for them.

use std::sync::atomic::Ordering;

use portcullis_metrics::Registry;

use crate::common::{Place, event, forward};

#[test]
fn peers_wait_for_room() {
    let (place, registry) = (Place::new(), Registry::new());
    let _listener = place.open();
    let forward = forward(&place.path(), 8192, &registry);
    forward.sender().submit(event("first"));
    place.wait("the first is there", |place| place.ids().len() == 1);
    place.room.store(false, Ordering::Relaxed);
    let looks = || place.looks.load(Ordering::Relaxed);
    (0..500).for_each(|number| forward.sender().submit(event(&number.to_string())));
    let before = looks();
    place.wait("it looks for room, and takes nothing", |place| {
        assert_eq!(place.ids().len(), 1);
        looks() > before + 20
    });
    place.room.store(true, Ordering::Relaxed);
    place.wait("all are there", |place| place.ids().len() == 501);
    assert_eq!(forward.shutdown(std::time::Duration::from_secs(30)), 0);
}
