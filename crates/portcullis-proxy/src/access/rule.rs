//! Rate limits that rules count requests in (`ctl:rateLimit`).

use portcullis_http::message::RequestHead;

use super::Denial;
use crate::connection::Connection;
use crate::route::Route;
use crate::transaction::Transaction;

/// Counts what the rules that have just run want to be counted. How the request is refused, if it comes too early and the engine
/// blocks here.
pub(crate) fn charge(
    connection: &Connection,
    transaction: &mut Transaction,
    route: &Route,
    head: &RequestHead,
) -> Option<Denial> {
    let charges = transaction.inspection.take_charges();
    if charges.is_empty() {
        return None;
    }
    let (client, access) = (transaction.visitor(), route.access.as_deref()?);
    let now = connection.worker.shared.clock(connection.began.instant);
    let mut refused = None;
    for charge in charges {
        let named = access.limits.iter().filter(|limit| *limit.name() == *charge.limit);
        for limit in named {
            let Some((noted, denial)) = limit.check(client, head, Some(&charge.key), now) else { continue };
            transaction.noted = Some(noted);
            refused = refused.or(denial);
        }
    }
    refused.filter(|_| transaction.inspection.is_blocking())
}
