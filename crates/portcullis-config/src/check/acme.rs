//! Names for certificates by ACME.

use crate::acme::is_domain;
use crate::checked::{Listener, Site};
use crate::host::HostPattern;
use crate::mistakes::Mistakes;

/// Completes the names of listeners, once their sites are known. `asked`: where each listener asks for
/// certificates, if it does, and whether it names them itself.
pub(super) fn names(
    mistakes: &mut Mistakes<'_>,
    listeners: &mut [Listener],
    sites: &[Site],
    asked: Vec<Option<(std::ops::Range<usize>, bool)>>,
    has_account: bool,
) {
    for (listener, asked) in listeners.iter_mut().zip(asked) {
        let (Some((span, named)), Some(tls)) = (asked, &mut listener.tls) else { continue };
        if !has_account {
            mistakes.wrong_with_hint(
                span.clone(),
                "certificates by ACME require an account".to_string(),
                "add `[acme]` with `state = \"FOLDER\"` and `terms_agreed = true`".to_string(),
            );
        }
        if named {
            continue;
        }
        for host in listener.sites.iter().filter_map(|site| sites.get(*site)).flat_map(|site| &site.hosts) {
            match host {
                HostPattern::Exact(name) if is_domain(name) && !tls.acme.contains(name) => {
                    tls.acme.push(name.clone());
                }
                HostPattern::Any | HostPattern::Exact(_) | HostPattern::Under(_) => {}
            }
        }
        if tls.acme.is_empty() {
            mistakes.wrong_with_hint(
                span,
                format!("no site of the listener `{}` has an exact host name", listener.name),
                "name those to have a certificate for in `acme = { domains = [...] }`".to_string(),
            );
        }
    }
}
