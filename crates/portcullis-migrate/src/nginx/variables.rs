//! nginx's variables as placeholders of documents.

use crate::text;

/// A header value, or `None` if it has a variable that documents do not know.
pub(crate) fn value(text: &str) -> Option<String> {
    text::template(text, |name| known(name).map(str::to_owned))
}

/// The target of a redirect of a server with this name and scheme, where patterns have so many groups.
pub(crate) fn target(
    text: &str,
    server: Option<&str>,
    scheme: Option<&str>,
    groups: Option<usize>,
) -> Option<String> {
    let text = text.replace("$uri$is_args$args", "$request_uri");
    let target = text::template(&text, |name| match name {
        "server_name" => server.map(str::to_owned),
        "scheme" => scheme.map(str::to_owned),
        digit
            if digit
                .parse::<usize>()
                .is_ok_and(|number| number <= 9 && groups.is_some_and(|all| number <= all)) =>
        {
            Some(format!("${digit}"))
        }
        name => known(name).map(str::to_owned),
    })?;
    ["https://", "http://", "/"].iter().any(|start| target.starts_with(start)).then_some(target)
}

fn known(name: &str) -> Option<&'static str> {
    Some(match name {
        "host" | "http_host" => "{host}",
        "remote_addr" | "realip_remote_addr" => "{client}",
        "request_uri" => "{uri}",
        "uri" | "document_uri" => "{path}",
        "request_id" => "{request_id}",
        "geoip_country_code" | "geoip2_data_country_code" => "{country}",
        "ssl_client_s_dn" => "{client_cert_subject}",
        "ssl_client_i_dn" => "{client_cert_issuer}",
        "ssl_client_serial" => "{client_cert_serial}",
        _ => return None,
    })
}
