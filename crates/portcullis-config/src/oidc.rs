//! `admin.oidc`: login to the admin API at an OpenID Connect provider.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::mistakes::Mistakes;
use crate::spanned::Spanned;
use crate::upstream::host_and_port;

/// Scopes unless told otherwise, beside `openid`.
const SCOPES: [&str; 2] = ["profile", "email"];
/// Sites that groups may be limited to, in all, and the bytes of the name of one.
const SITES_MAX: usize = 100;
const SITE_BYTES_MAX: usize = 200;
/// The claim with a user's groups unless told otherwise.
const ROLE_CLAIM: &str = "groups";
/// Characters of the name of a provider, which stands on a button.
const NAME_CHARACTERS_MAX: usize = 40;

/// Login to the admin API at an OpenID Connect provider, beside passwords.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawOidc {
    /// The provider's name: an `https` URL, as its `/.well-known/openid-configuration` spells it.
    pub issuer: Spanned<String>,
    /// The name under which the provider knows Portcullis.
    pub client_id: Spanned<String>,
    /// File with the secret that the provider gave the client, read at each login. Default: none, a public
    /// client.
    pub client_secret_file: Option<String>,
    /// Scopes to ask for, beside `openid`. Default: `["profile", "email"]`.
    pub scopes: Option<Vec<Spanned<String>>>,
    /// PEM file with the only authorities to trust when the provider is asked. Default: those of the system.
    pub ca: Option<Spanned<String>>,
    /// The URL of the console as browsers see it, without a path, such as `https://waf.internal:9443`; the
    /// provider sends them back to `/api/v1/login/oidc/callback` there. Default: by the request's `Host`.
    pub redirect: Option<Spanned<String>>,
    /// The provider's name on the console's button. Default: the host of `issuer`.
    pub name: Option<Spanned<String>>,
    /// The claim with a user's groups: a text or a list of texts; `realm_access.roles` is the member `roles`
    /// of `realm_access`. Default: `groups`.
    pub role_claim: Option<Spanned<String>>,
    /// Groups at the provider, by the role they give; the highest role counts, and without one there is no
    /// login.
    pub roles: Spanned<RawRoles>,
    /// Groups at the provider, by the site that their users are limited to; `*` stands for all sites. A user
    /// has the sites of all of their groups, and without one there is no login; administrators have all.
    /// Default: nobody is limited by groups.
    pub sites: Option<Spanned<BTreeMap<String, Vec<Spanned<String>>>>>,
}

/// Groups at the provider, by the role they give.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRoles {
    /// Groups whose users have the role `viewer`.
    #[serde(default)]
    pub viewer: Vec<Spanned<String>>,
    /// Groups whose users have the role `analyst`.
    #[serde(default)]
    pub analyst: Vec<Spanned<String>>,
    /// Groups whose users have the role `admin`.
    #[serde(default)]
    pub admin: Vec<Spanned<String>>,
}

/// Login to the admin API at an OpenID Connect provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oidc {
    /// The provider's name: `https`, or `http` on this machine.
    pub issuer: String,
    /// The name under which the provider knows us.
    pub client_id: String,
    /// File with the client's secret; none: a public client.
    pub client_secret_file: Option<PathBuf>,
    /// Scopes, `openid` first.
    pub scopes: Vec<String>,
    /// PEM file of the only authorities to trust.
    pub ca: Option<PathBuf>,
    /// The URL of the console, without a path or a final `/`; none: by the request's `Host`.
    pub redirect: Option<String>,
    /// The provider's name on a button.
    pub name: String,
    /// The claim with a user's groups, as it is written.
    pub role_claim: String,
    /// Groups by role.
    pub roles: OidcRoles,
    /// Groups by site, `*` for all; none: nobody is limited by groups.
    pub sites: Option<BTreeMap<String, Vec<String>>>,
}

/// Groups at the provider, by the role they give; one at least.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OidcRoles {
    /// Those of viewers.
    pub viewer: Vec<String>,
    /// Those of analysts.
    pub analyst: Vec<String>,
    /// Those of administrators.
    pub admin: Vec<String>,
}

/// `hosts` are the names under which the console may be asked.
pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: Option<RawOidc>, hosts: &[String]) -> Option<Oidc> {
    let raw = raw?;
    let host = issuer(mistakes, &raw.issuer);
    if let Some(ca) = raw.ca.as_ref().filter(|_| raw.issuer.starts_with("http://")) {
        mistakes.wrong_with_hint(
            ca.span.clone(),
            "`ca` requires a provider with TLS".to_string(),
            "write `https://` in `issuer` or drop `ca`".to_string(),
        );
    }
    if raw.client_id.is_empty() || raw.client_id.chars().any(char::is_control) {
        mistakes.wrong(raw.client_id.span.clone(), "`client_id` is not the name of a client".to_string());
    }
    let redirect = raw.redirect.and_then(|redirect| self::redirect(mistakes, &redirect, hosts));
    if let Some(name) = &raw.name {
        let length = name.chars().count();
        if !(1..=NAME_CHARACTERS_MAX).contains(&length) || name.chars().any(char::is_control) {
            let message = format!("`name` has 1 to {NAME_CHARACTERS_MAX} characters, in one line");
            mistakes.wrong(name.span.clone(), message);
        }
    }
    if let Some(claim) = raw.role_claim.as_ref().filter(|claim| claim.is_empty()) {
        mistakes.wrong_with_hint(
            claim.span.clone(),
            "`role_claim` is empty".to_string(),
            "name the claim with a user's groups, or drop it for `groups`".to_string(),
        );
    }
    Some(Oidc {
        name: raw.name.map_or(host, |name| name.value),
        issuer: raw.issuer.value,
        client_id: raw.client_id.value,
        client_secret_file: raw.client_secret_file.map(|file| mistakes.path(&file)),
        scopes: scopes(mistakes, raw.scopes),
        ca: raw.ca.map(|ca| mistakes.path(&ca)),
        redirect,
        role_claim: raw.role_claim.map_or_else(|| ROLE_CLAIM.to_string(), |claim| claim.value),
        roles: roles(mistakes, raw.roles),
        sites: raw.sites.map(|raw| sites(mistakes, raw)),
    })
}

/// The host of the issuer.
fn issuer(mistakes: &mut Mistakes<'_>, text: &Spanned<String>) -> String {
    let (rest, is_tls) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(rest), _) => (rest, true),
        (_, Some(rest)) => (rest, false),
        _ => ("", false),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host_and_port(text, authority).map(|(host, _)| host.to_string()).unwrap_or_default();
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\"<>\\".contains(&byte));
    if host.is_empty() || !is_plain {
        mistakes.wrong_with_hint(
            text.span.clone(),
            format!("`{}` is not the name of a provider", text.value),
            "write the `issuer` of its `/.well-known/openid-configuration`, an `https` URL".to_string(),
        );
    } else if !is_tls && !is_loopback(&host) {
        mistakes.wrong_with_hint(
            text.span.clone(),
            format!("`{}`: logins over the network need TLS", text.value),
            "write an `https` URL; `http` is for a provider on this machine (127.0.0.1, localhost)"
                .to_string(),
        );
    }
    host
}

/// The URL of the console as browsers see it.
fn redirect(mistakes: &mut Mistakes<'_>, text: &Spanned<String>, hosts: &[String]) -> Option<String> {
    let base = text.strip_suffix('/').unwrap_or(text);
    let (rest, is_tls) = match (base.strip_prefix("https://"), base.strip_prefix("http://")) {
        (Some(rest), _) => (rest, true),
        (_, Some(rest)) => (rest, false),
        _ => ("", false),
    };
    let Some((host, _)) = host_and_port(text, rest).ok().filter(|_| rest.is_ascii()) else {
        mistakes.wrong_with_hint(
            text.span.clone(),
            format!("`{}` is not the URL of the console", text.value),
            "write `https://waf.internal:9443`, without a path".to_string(),
        );
        return None;
    };
    if !is_tls && !is_loopback(host) {
        mistakes.wrong_with_hint(
            text.span.clone(),
            "browsers keep a session only over TLS, or on this machine".to_string(),
            "write `https://` in `redirect`".to_string(),
        );
    }
    let lower = host.to_ascii_lowercase();
    if !is_loopback(host) && host.parse::<IpAddr>().is_err() && !hosts.contains(&lower) {
        mistakes.wrong_with_hint(
            text.span.clone(),
            format!("the console is not asked under the name `{host}`"),
            format!("add it to the names: `hosts = [\"{lower}\"]` in `admin`"),
        );
    }
    Some(base.to_string())
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback())
}

fn scopes(mistakes: &mut Mistakes<'_>, raw: Option<Vec<Spanned<String>>>) -> Vec<String> {
    let mut scopes = vec!["openid".to_string()];
    let Some(raw) = raw else {
        scopes.extend(SCOPES.map(str::to_string));
        return scopes;
    };
    for scope in raw {
        // RFC 6749, 3.3.
        let fits = |byte: u8| byte.is_ascii_graphic() && !b"\"\\".contains(&byte);
        if scope.is_empty() || !scope.bytes().all(fits) {
            mistakes.wrong(scope.span.clone(), format!("`{}` is not a scope", scope.value));
        }
        if !scopes.contains(&scope.value) {
            scopes.push(scope.value);
        }
    }
    scopes
}

fn sites(
    mistakes: &mut Mistakes<'_>,
    raw: Spanned<BTreeMap<String, Vec<Spanned<String>>>>,
) -> BTreeMap<String, Vec<String>> {
    let Spanned { value, span } = raw;
    let is_name =
        |name: &String| (1..=SITE_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
    if value.values().all(Vec::is_empty) || value.len() > SITES_MAX || !value.keys().all(is_name) {
        mistakes.wrong_with_hint(
            span,
            format!("`sites` names 1 to {SITES_MAX} sites with their groups"),
            "write `sites = { shop = [\"shop-team\"], \"*\" = [\"soc\"] }`".to_string(),
        );
    }
    let mut groups = |raw: Vec<Spanned<String>>| {
        for group in raw.iter().filter(|group| group.is_empty()) {
            mistakes.wrong(group.span.clone(), "a group has no name".to_string());
        }
        raw.into_iter().map(|group| group.value).collect()
    };
    value.into_iter().map(|(site, raw)| (site, groups(raw))).collect()
}

fn roles(mistakes: &mut Mistakes<'_>, raw: Spanned<RawRoles>) -> OidcRoles {
    let Spanned { value: RawRoles { viewer, analyst, admin }, span } = raw;
    if viewer.is_empty() && analyst.is_empty() && admin.is_empty() {
        mistakes.wrong_with_hint(
            span,
            "no group has a role, so nobody could log in".to_string(),
            "write `roles = { admin = [\"waf-admins\"] }`".to_string(),
        );
    }
    let mut seen: Vec<String> = Vec::new();
    let mut groups = |raw: Vec<Spanned<String>>| {
        for group in &raw {
            if group.is_empty() {
                mistakes.wrong(group.span.clone(), "a group has no name".to_string());
            } else if seen.contains(&group.value) {
                mistakes.wrong(group.span.clone(), format!("the group `{}` has a role already", group.value));
            }
            seen.push(group.value.clone());
        }
        raw.into_iter().map(|group| group.value).collect()
    };
    OidcRoles { viewer: groups(viewer), analyst: groups(analyst), admin: groups(admin) }
}
