//! The routes, a file for each kind of object.

pub(crate) mod advise;
pub(crate) mod audit;
pub(crate) mod bans;
pub(crate) mod check;
pub(crate) mod clients;
pub(crate) mod config;
pub(crate) mod events;
pub(crate) mod exclusions;
pub(crate) mod explain;
pub(crate) mod facets;
pub(crate) mod live;
pub(crate) mod login;
pub(crate) mod oidc;
pub(crate) mod page;
pub(crate) mod reload;
pub(crate) mod replay;
pub(crate) mod revisions;
pub(crate) mod rules;
pub(crate) mod setup;
pub(crate) mod site_settings;
pub(crate) mod statistics;
pub(crate) mod status;
pub(crate) mod stream;
pub(crate) mod tokens;
pub(crate) mod totp;
pub(crate) mod users;
