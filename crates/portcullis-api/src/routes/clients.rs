//! `POST`, `DELETE /lists/{list}/clients`: addresses and networks on the lists of clients.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use portcullis_config::Network;
use portcullis_identity::Role;
use portcullis_revisions::{Change, ClientList, Edit, Scope};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::access::Principal;
use crate::changes::{Changed, Order, carry_out};
use crate::context::Context;
use crate::extract::{Body, Parameter, Params};
use crate::if_match::{IfMatch, NotThatDocument};
use crate::problem::{Kind, Problem};

/// A client for a list.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientOrder {
    /// An address or a network: `192.0.2.0/24`.
    client: String,
    /// A site: the lists that count there, its own or those of the document. Without it those of the
    /// document.
    site: Option<String>,
    /// A route of the site: the lists that count there.
    route: Option<String>,
    /// Why, for the list of revisions.
    #[schema(max_length = 1000)]
    reason: Option<String>,
    /// Only show what would change. Default: false.
    #[serde(default)]
    dry_run: bool,
}

/// Adds an address or network to a list of the document. Only an administrator adds to `bypass`, whose
/// clients are not inspected, and networks wider than /16 (IPv6: /32).
#[utoipa::path(post, path = "/lists/{list}/clients", tag = "lists", operation_id = "add_client",
    request_body = ClientOrder,
    params(("list" = String, Path, description = "`deny`, `allow` or `bypass`."),
        IfMatch),
    responses((status = 200, body = Changed, description = "It serves, or would.", headers(("ETag" = String))),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such list."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "It does not fit the document."),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "A value is not allowed."),
        NotThatDocument))]
pub(crate) async fn add(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(list): Parameter<String>,
    read: IfMatch,
    Body(order): Body<ClientOrder>,
) -> Result<Response, Problem> {
    let ClientOrder { client, site, route, reason, dry_run } = order;
    principal.check_site(site.as_deref())?;
    let list = of_name(&list, &client, &principal)?;
    let summary = format!("{client} added to the list {}", list.name());
    let change = Change::Edit(Edit::AddClient(Scope { site, route }, list, client));
    carry_out(&context, principal, read, Order { change, reason, dry_run, summary }).await
}

/// A client on a list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ClientQuery {
    /// The address or network as it is written in the document.
    client: String,
    /// A site: the lists that count there, its own or those of the document. Without it those of the
    /// document.
    site: Option<String>,
    /// A route of the site: the lists that count there.
    route: Option<String>,
    /// Why, for the list of revisions.
    #[param(max_length = 1000)]
    reason: Option<String>,
    /// Only show what would change. Default: false.
    #[serde(default)]
    dry_run: bool,
}

/// Removes an address or network from a list of the document.
#[utoipa::path(delete, path = "/lists/{list}/clients", tag = "lists", operation_id = "remove_client",
    params(("list" = String, Path, description = "`deny`, `allow` or `bypass`."), ClientQuery,
        IfMatch),
    responses((status = 200, body = Changed, description = "It is gone, or would be.",
            headers(("ETag" = String))),
        (status = 404, body = Problem, content_type = "application/problem+json",
            description = "There is no such list."),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "It is not on the list, or the document is in YAML."),
        NotThatDocument))]
pub(crate) async fn remove(
    State(context): State<Arc<Context>>,
    Extension(principal): Extension<Principal>,
    Parameter(list): Parameter<String>,
    Params(query): Params<ClientQuery>,
    read: IfMatch,
) -> Result<Response, Problem> {
    let ClientQuery { client, site, route, reason, dry_run } = query;
    principal.check_site(site.as_deref())?;
    let list = of_name(&list, &client, &principal)?;
    let summary = format!("{client} removed from the list {}", list.name());
    let change = Change::Edit(Edit::RemoveClient(Scope { site, route }, list, client));
    carry_out(&context, principal, read, Order { change, reason, dry_run, summary }).await
}

/// The shortest prefixes of networks, of IPv4 and IPv6, that one who is no administrator puts on a list or
/// takes off it: about what a provider has. A wider one decides who reaches the site at all.
const PREFIX_BITS_MIN: (u8, u8) = (16, 32);

/// The list of a name, if this role may change it for these clients.
fn of_name(name: &str, client: &str, principal: &Principal) -> Result<ClientList, Problem> {
    let found = ClientList::ALL.into_iter().find(|list| list.name() == name);
    let list =
        found.ok_or_else(|| Problem::with(Kind::NotFound, "the lists are `deny`, `allow` and `bypass`"))?;
    if list == ClientList::Bypass && principal.role < Role::Admin {
        return Err(Problem::with(
            Kind::Forbidden,
            "clients of this list are not inspected: it needs the role admin",
        ));
    }
    let is_wide = |network: Network| {
        let (of_v4, of_v6) = PREFIX_BITS_MIN;
        network.prefix() < if network.address().is_ipv4() { of_v4 } else { of_v6 }
    };
    // Invalid networks are reported by the check that follows.
    if principal.role < Role::Admin && client.parse().is_ok_and(is_wide) {
        let (of_v4, of_v6) = PREFIX_BITS_MIN;
        return Err(Problem::with(
            Kind::Forbidden,
            format!(
                "{client} is a large part of all clients: a network of less than {of_v4} bits (IPv6: {of_v6}) needs \
                 the role admin"
            ),
        ));
    }
    Ok(list)
}
