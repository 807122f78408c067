//! Makes a rule set and a request smaller while they still show the same.

use portcullis_reference::Request;

use crate::rule_set::{Item, RuleSet};

/// A rule set with a request.
pub type Pair = (RuleSet, Request);

/// Takes away what can go. `shows` gets smaller pairs, the boldest first, and says which is the first that
/// still shows the difference. At most `rounds` of them are asked for, since one against Apache takes a
/// second.
pub fn minimise(pair: Pair, rounds: usize, mut shows: impl FnMut(&[Pair]) -> Option<usize>) -> Pair {
    let mut best = pair;
    for _ in 0..rounds {
        let smaller = candidates(&best);
        match shows(&smaller) {
            Some(at) => best = smaller.into_iter().nth(at).unwrap_or(best),
            None => break,
        }
    }
    best
}

fn candidates((rules, request): &Pair) -> Vec<Pair> {
    let mut out: Vec<Pair> = Vec::new();
    let count = rules.items.len();
    let mut size = count / 2;
    while size > 0 {
        for start in (0..count).step_by(size) {
            let mut smaller = rules.clone();
            // Without it each engine has a default of its own.
            let mut at = 0;
            smaller.items.retain(|item| {
                at += 1;
                !(start..start + size).contains(&(at - 1)) || is_engine(item)
            });
            if smaller == *rules {
                continue;
            }
            out.push((smaller, request.clone()));
        }
        size /= 2;
    }
    out.extend(requests(request).into_iter().map(|request| (rules.clone(), request)));
    for (at, item) in rules.items.iter().enumerate() {
        let Item::Rule(links) = item else { continue };
        let mut with = |links: Vec<_>| {
            let mut smaller = rules.clone();
            smaller.items[at] = Item::Rule(links);
            out.push((smaller, request.clone()));
        };
        if links.len() > 1 {
            with(links[..links.len() - 1].to_vec());
        }
        for (place, link) in links.iter().enumerate() {
            for action in 0..link.actions.len() {
                let mut links = links.clone();
                links[place].actions.remove(action);
                with(links);
            }
            for target in (0..link.targets.len()).filter(|_| link.targets.len() > 1) {
                let mut links = links.clone();
                links[place].targets.remove(target);
                if !links[place].targets.iter().all(|target| target.starts_with('!')) {
                    with(links);
                }
            }
            for always in ["@unconditionalMatch", "@rx ^"] {
                if link.operator != "@unconditionalMatch"
                    && !link.operator.starts_with('!')
                    && link.operator != always
                {
                    let mut links = links.clone();
                    links[place].operator = always.to_owned();
                    with(links);
                }
            }
        }
    }
    out
}

fn is_engine(item: &Item) -> bool {
    matches!(item, Item::Line(line) if line.starts_with("SecRuleEngine"))
}

fn requests(request: &Request) -> Vec<Request> {
    let mut out = Vec::new();
    if request.body.is_some() {
        let mut smaller = request.clone();
        smaller.body = None;
        smaller.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with(b"content-"));
        out.push(smaller);
    }
    for at in 0..request.headers.len() {
        let name = request.headers[at].0.to_ascii_lowercase();
        if [&b"content-length"[..], b"host", b"connection", b"x-answer"].contains(&name.as_slice()) {
            continue;
        }
        let mut smaller = request.clone();
        smaller.headers.remove(at);
        out.push(smaller);
    }
    for (start, end) in pieces(&request.uri, b"?&") {
        let mut uri = request.uri.to_vec();
        uri.drain(start..end);
        let mut smaller = request.clone();
        smaller.line = [&request.method, b" ".as_slice(), &uri, b" ", &request.protocol].concat().into();
        smaller.uri = uri.into();
        out.push(smaller);
    }
    if let Some(body) = &request.body {
        for (start, end) in pieces(body, b"&\n") {
            let mut shorter = body.to_vec();
            shorter.drain(start..end);
            let mut smaller = request.clone();
            for (name, value) in &mut smaller.headers {
                if name.eq_ignore_ascii_case(b"Content-Length") {
                    *value = shorter.len().to_string().into();
                }
            }
            smaller.body = Some(shorter.into());
            out.push(smaller);
        }
    }
    out
}

/// From each of `marks` to the next.
fn pieces(text: &[u8], marks: &[u8]) -> Vec<(usize, usize)> {
    let starts: Vec<usize> =
        text.iter().enumerate().filter(|(_, byte)| marks.contains(byte)).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().copied().zip(ends).collect()
}
