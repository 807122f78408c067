//! Nodes that share a limit by leases, in simulated time: how far they go beyond it, and that they use it. A
//! failure names its seed.

use std::time::Duration;

use portcullis_access::{Grant, Key, Leases, Order, Taken};
use portcullis_balance::Random;

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// The keeper of the tokens, in the place of Redis.
struct Keeper {
    interval: u64,
    burst: u64,
    tat: u64,
}

impl Keeper {
    fn serve(&mut self, order: Order, now: u64) -> Grant {
        let tat = self.tat.max(now) + order.debt * self.interval;
        let room = (now + self.burst * self.interval).saturating_sub(tat) / self.interval;
        let tokens = room.min(order.want);
        self.tat = tat + tokens * self.interval;
        match room {
            0 => Grant::None(Duration::from_nanos(tat - now - (self.burst - 1) * self.interval)),
            _ => Grant::Tokens(tokens),
        }
    }
}

struct Node {
    leases: Leases,
    key: Key,
    /// Answers on their way, with the time they come.
    coming: Vec<(u64, Order, Grant)>,
}

/// Returns the number of requests that `nodes` nodes let through in `seconds`, offered `offered` requests a
/// second each.
fn run(
    random: &mut Random,
    nodes: usize,
    rate: u64,
    burst: u64,
    offered: u64,
    seconds: u64,
) -> (u64, u64, u64) {
    let mut keeper = Keeper { interval: SECOND / rate, burst, tat: 0 };
    let mut all: Vec<Node> = (0..nodes)
        .map(|_| {
            let leases = Leases::new(burst, 64);
            let key = leases.table().key([b"client".as_slice()]);
            Node { leases, key, coming: Vec::new() }
        })
        .collect();
    let most = all[0].leases.most();
    let (mut now, mut admitted, mut asked) = (SECOND, 0, 0);
    let end = now + seconds * SECOND;
    while now < end {
        now += 1 + random.below(2 * SECOND / (offered * nodes as u64));
        let node = &mut all[random.below(nodes as u64) as usize];
        let (ready, later) = node.coming.iter().partition::<Vec<_>, _>(|(at, ..)| *at <= now);
        node.coming = later;
        for (_, order, grant) in ready {
            node.leases.settle(node.key, order, grant, now);
        }
        let (taken, asks) = node.leases.take(node.key, now);
        admitted += u64::from(taken == Taken::Admitted);
        if asks {
            asked += 1;
            let order = node.leases.order(node.key, now);
            let answered = now + MILLISECOND + random.below(10 * MILLISECOND);
            node.coming.push((answered, order, keeper.serve(order, now)));
        }
    }
    (admitted, asked, most)
}

#[test]
fn nodes_share_a_limit_within_the_stated_error() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let nodes = 1 + random.below(4) as usize;
        let rate = 50 + random.below(2000);
        let burst = rate.div_ceil(2 + random.below(4));
        // Together two to six times what may come.
        let offered = rate * (2 + random.below(5)) / nodes as u64 + 1;
        let seconds = 20;
        let (admitted, asked, most) = run(&mut random, nodes, rate, burst, offered, seconds);
        let right = rate * seconds + burst;
        // Credit goes beyond the limit and is paid for later; leases that were not used are missing.
        let beyond = nodes as u64 * most;
        let context =
            format!("seed {seed}: {nodes} nodes, {admitted} of {right}, lease {most}, {asked} asked");
        assert!(admitted <= right + beyond, "{context}");
        assert!(admitted + beyond + right / 10 >= right, "{context}");
        assert!(asked * 2 <= admitted + 50 || most < 16, "{context}: leases are ahead of requests");
    }
}

#[test]
fn a_client_below_the_limit_is_let_through() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let nodes = 1 + random.below(3) as usize;
        let rate = 100 + random.below(400);
        let offered = (rate / 2 / nodes as u64).max(1);
        let (admitted, ..) = run(&mut random, nodes, rate, rate, offered, 20);
        assert!(admitted * 100 >= offered * nodes as u64 * 20 * 95, "seed {seed}: {admitted}");
    }
}

#[test]
fn who_asks_now_and_then_pays_for_what_he_asks() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        // Four in an hour, one each fifteen minutes, now at this node, now at that.
        let mut keeper = Keeper { interval: 900 * SECOND, burst: 4, tat: 0 };
        let nodes: Vec<Leases> = (0..3).map(|_| Leases::new(4, 64)).collect();
        let (mut now, mut admitted) = (SECOND, 0);
        for _ in 0..40 {
            let leases = &nodes[random.below(3) as usize];
            let key = leases.table().key([b"client".as_slice()]);
            let (taken, asks) = leases.take(key, now);
            admitted += u64::from(taken == Taken::Admitted);
            if asks {
                let order = leases.order(key, now);
                leases.settle(key, order, keeper.serve(order, now), now + MILLISECOND);
            }
            now += 901 * SECOND;
        }
        assert_eq!(admitted, 40, "seed {seed}");
        // In a hurry: what is left of the burst, and one on credit at each node.
        let hurry = (0..40).filter(|at| {
            let leases = &nodes[at % 3];
            let key = leases.table().key([b"client".as_slice()]);
            let (taken, asks) = leases.take(key, now);
            if asks {
                let order = leases.order(key, now);
                leases.settle(key, order, keeper.serve(order, now), now);
            }
            now += SECOND / 2;
            taken == Taken::Admitted
        });
        let hurry = hurry.count();
        assert!((3..=4 + 3).contains(&hurry), "seed {seed}: {hurry}");
    }
}

#[test]
fn without_an_answer_credit_ends() {
    let leases = Leases::new(40, 64);
    let key = leases.table().key([b"client".as_slice()]);
    assert_eq!(leases.most(), 10);
    let results: Vec<_> = (0..12).map(|_| leases.take(key, SECOND)).collect();
    assert_eq!(results[0], (Taken::Admitted, true));
    assert!(results[1..10].iter().all(|result| *result == (Taken::Admitted, false)));
    assert_eq!(results[10..], [(Taken::Unknown, false); 2]);
    // Asked again after a second; what is owed stays owed.
    assert_eq!(leases.take(key, 3 * SECOND), (Taken::Unknown, true));
    let order = leases.order(key, 3 * SECOND);
    assert_eq!(order, Order { debt: 10, want: 10 });
    leases.fail(key, 3 * SECOND);
    assert_eq!(leases.take(key, 3 * SECOND), (Taken::Unknown, true));
    leases.settle(key, order, Grant::None(Duration::from_millis(35)), 3 * SECOND);
    assert_eq!(leases.take(key, 3 * SECOND).0, Taken::Refused(Duration::from_millis(40)));
    // Paid.
    assert_eq!(leases.take(key, 4 * SECOND), (Taken::Admitted, true));
    assert_eq!(leases.order(key, 4 * SECOND), Order { debt: 1, want: 0 });
}
