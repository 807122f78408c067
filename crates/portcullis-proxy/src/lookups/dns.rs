//! DNS messages: a question for the address of a name, and what an answer says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};

/// Seconds that an answer is good for, whatever its server says: at most an hour, at least one second.
const TTL_SECONDS_MAX: u32 = 3600;
/// Seconds for which an answer without a name is remembered, if it does not say.
const NEGATIVE_TTL_SECONDS: u32 = 60;

/// The answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The addresses, if there are any, and for how many seconds.
    Addresses(Vec<IpAddr>, u32),
    /// There is more than fits; it is to be had over TCP (RFC 7766).
    Truncated,
    /// It cannot say.
    Failed,
}

/// A kind of address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    fn record(self) -> QTYPE {
        QTYPE::TYPE(match self {
            Family::V4 => TYPE::A,
            Family::V6 => TYPE::AAAA,
        })
    }
}

/// The message that asks for the addresses of `name`.
pub(super) fn question(id: u16, name: &str, family: Family) -> Option<Vec<u8>> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name).ok()?;
    packet.questions.push(Question::new(name, family.record(), QCLASS::CLASS(CLASS::IN), false));
    packet.build_bytes_vec().ok()
}

/// Reads a message; `None` if it does not answer that question.
pub(super) fn reply(message: &[u8], id: u16, name: &str, family: Family) -> Option<Reply> {
    let packet = Packet::parse(message).ok()?;
    if packet.id() != id || !packet.has_flags(PacketFlag::RESPONSE) {
        return None;
    }
    let [question] = packet.questions.as_slice() else { return None };
    if !question.qname.to_string().eq_ignore_ascii_case(name) || question.qtype != family.record() {
        return None;
    }
    if packet.has_flags(PacketFlag::TRUNCATION) {
        // Some of the addresses are not the addresses.
        return Some(Reply::Truncated);
    }
    let ttl = |seconds: u32| seconds.clamp(1, TTL_SECONDS_MAX);
    // Behind an alias the record has another name, so names are not compared.
    let records = packet.answers.iter().filter_map(|record| {
        if let RData::A(a) = &record.rdata {
            Some((IpAddr::from(Ipv4Addr::from(a.address)), record.ttl))
        } else if let RData::AAAA(a) = &record.rdata {
            Some((IpAddr::from(Ipv6Addr::from(a.address)), record.ttl))
        } else {
            None
        }
    });
    let (addresses, seconds): (Vec<IpAddr>, Vec<u32>) = records.unzip();
    if let (RCODE::NoError, Some(seconds)) = (packet.rcode(), seconds.into_iter().min()) {
        return Some(Reply::Addresses(addresses, ttl(seconds)));
    }
    let negative = packet.name_servers.iter().find_map(|record| {
        if let RData::SOA(soa) = &record.rdata { Some(soa.minimum.min(record.ttl)) } else { None }
    });
    if let RCODE::NoError | RCODE::NameError = packet.rcode() {
        Some(Reply::Addresses(Vec::new(), ttl(negative.unwrap_or(NEGATIVE_TTL_SECONDS))))
    } else {
        Some(Reply::Failed)
    }
}

/// The servers of a `resolv.conf`; without one the server on this machine, as the C library does.
pub(super) fn name_servers(text: &str) -> Vec<SocketAddr> {
    let address = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let value = (words.next()? == "nameserver").then(|| words.next()).flatten()?;
        // An IPv6 address may name its network interface, which only local addresses need.
        value.split('%').next()?.parse::<IpAddr>().ok()
    };
    let mut servers: Vec<SocketAddr> =
        text.lines().filter_map(address).map(|ip| SocketAddr::new(ip, 53)).collect();
    if servers.is_empty() {
        servers.push(SocketAddr::from((Ipv4Addr::LOCALHOST, 53)));
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{A, CNAME, SOA};

    const NAME: &str = "2.0.0.127.list.example";

    fn answer(change: impl FnOnce(&mut Packet<'static>)) -> Option<Reply> {
        let mut packet = Packet::new_reply(7);
        let name = Name::new_unchecked(NAME);
        packet.questions.push(Question::new(name, QTYPE::TYPE(TYPE::A), QCLASS::CLASS(CLASS::IN), false));
        change(&mut packet);
        reply(&packet.build_bytes_vec_compressed().unwrap(), 7, NAME, Family::V4)
    }

    fn record(data: RData<'static>, ttl: u32) -> ResourceRecord<'static> {
        ResourceRecord::new(Name::new_unchecked("x.example"), CLASS::IN, ttl, data)
    }

    fn address() -> RData<'static> {
        RData::A(A::from(Ipv4Addr::new(127, 0, 0, 4)))
    }

    #[test]
    fn questions_read_back() {
        let bytes = question(0x1234, NAME, Family::V4).unwrap();
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!((packet.id(), packet.questions.len()), (0x1234, 1));
        assert_eq!(packet.questions[0].qname.to_string(), NAME);
        assert!(packet.has_flags(PacketFlag::RECURSION_DESIRED));
        assert_eq!(reply(&bytes, 0x1234, NAME, Family::V4), None, "a question is no answer");
    }

    #[test]
    fn answers() {
        let listed = Some(Reply::Addresses(vec![IpAddr::from([127, 0, 0, 4])], 300));
        assert_eq!(answer(|p| p.answers.push(record(address(), 300))), listed);
        let alias = RData::CNAME(CNAME(Name::new_unchecked("y.example")));
        assert_eq!(answer(|p| p.answers.extend([record(alias, 9), record(address(), 300)])), listed);
        assert_eq!(
            answer(|p| p.answers.push(record(address(), 1_000_000))),
            Some(Reply::Addresses(vec![IpAddr::from([127, 0, 0, 4])], 3600))
        );
        assert_eq!(answer(|_| ()), Some(Reply::Addresses(vec![], 60)));
        let soa = SOA {
            mname: Name::new_unchecked("a.example"),
            rname: Name::new_unchecked("b.example"),
            serial: 1,
            refresh: 1,
            retry: 1,
            expire: 1,
            minimum: 15,
        };
        let no_name = answer(|p| {
            *p.rcode_mut() = RCODE::NameError;
            p.name_servers.push(record(RData::SOA(soa), 1000));
        });
        assert_eq!(no_name, Some(Reply::Addresses(vec![], 15)));
        for code in [RCODE::ServerFailure, RCODE::Refused] {
            assert_eq!(answer(|p| *p.rcode_mut() = code), Some(Reply::Failed));
        }
        let truncated = answer(|p| {
            p.set_flags(PacketFlag::TRUNCATION);
            p.answers.push(record(address(), 300));
        });
        assert_eq!(truncated, Some(Reply::Truncated));
    }

    #[test]
    fn what_answers_another_question() {
        assert_eq!(answer(|p| p.set_id(8)), None);
        assert_eq!(answer(|p| p.questions.clear()), None);
        assert_eq!(answer(|p| p.questions[0].qname = Name::new_unchecked("z.example")), None);
        assert_eq!(reply(&[0xff; 40], 7, NAME, Family::V4), None);
        assert_eq!(reply(b"", 7, NAME, Family::V4), None);
    }

    #[test]
    fn servers_of_the_system() {
        let text = "# none\nsearch example\nnameserver 192.0.2.53\nnameserver  fe80::1%eth0\nnameserver x\n";
        let servers = name_servers(text);
        assert_eq!(servers, ["192.0.2.53:53".parse().unwrap(), "[fe80::1]:53".parse().unwrap()]);
        assert_eq!(name_servers(""), ["127.0.0.1:53".parse().unwrap()]);
    }
}
