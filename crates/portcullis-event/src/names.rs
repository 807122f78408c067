//! The closed sets of words that an event uses. Metrics take their label values from the same tables.

/// Declares an enum whose variants have one lower-case name each, used in JSON, logs and metric labels.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type { $($(#[$variant_doc])* $variant,)* }

        impl $type {
            /// Every value, in declaration order; `ALL[v as usize] == v`.
            pub const ALL: &'static [$type] = &[$($type::$variant,)*];
            /// The names, in the order of `ALL`.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];

            /// The name in events, logs and metric labels.
            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                crate::wire::named(deserializer, |name| {
                    $type::NAMES.iter().position(|known| *known == name).map(|at| $type::ALL[at])
                })
            }
        }
    };
}

names! {
    /// The action on the transaction.
    Action {
        /// Nothing was found, or nothing that mattered.
        Pass "pass",
        /// Something was found and let through: below the threshold, or the engine only detects.
        Detect "detect",
        /// Answered with a block page.
        Deny "deny",
        /// Answered with a redirect.
        Redirect "redirect",
        /// The connection was closed without an answer.
        Drop "drop",
        /// Forwarded to another server than the route's.
        Proxy "proxy",
        /// Not a request that HTTP allows; answered by the codec (400, 414, 431, 501, 505).
        Refuse "refuse",
    }
}

names! {
    /// The kind of control that decides beside rules and the semantic detector.
    ControlKind {
        /// A rate limit.
        RateLimit "rate_limit",
        /// A list of denied clients, or that no list allows the client.
        DenyList "deny_list",
        /// A ban for what the client did before.
        Ban "ban",
        /// An inspection agent.
        Agent "agent",
        /// The process has too much to do, and the client's network takes the most of it.
        Overload "overload",
    }
}

names! {
    /// The outcome of an inspection agent.
    AgentOutcome {
        /// The exchange may proceed.
        Allow "allow",
        /// It is to be blocked.
        Block "block",
        /// It is to be redirected.
        Redirect "redirect",
        /// No decision: no connection, it broke, or what came was invalid.
        Failed "failed",
        /// No decision in time.
        Timeout "timeout",
        /// It was not asked, since it only failed lately.
        CircuitOpen "circuit_open",
        /// It was not asked, since too many waited for it.
        Queue "queue",
    }
}

names! {
    /// The detectors that ran.
    DetectionMode {
        /// SecLang rules.
        Crs "crs",
        /// The semantic detector.
        Semantic "semantic",
        /// Both, combined.
        Both "both",
        /// None.
        Off "off",
    }
}

names! {
    /// The outcome of the semantic detector's findings of one class.
    FindingOutcome {
        /// The request was blocked for them.
        Blocked "blocked",
        /// They pass the threshold; the request went on, for the engine only detects, their class is only
        /// logged or something else had decided.
        Detected "detected",
        /// They pass the threshold, but their class is off here, or an exclusion takes them out.
        Excluded "excluded",
        /// They stay below the threshold.
        Below "below",
    }
}

impl FindingOutcome {
    /// True if the findings pass the threshold and count.
    pub fn passes(self) -> bool {
        matches!(self, FindingOutcome::Blocked | FindingOutcome::Detected)
    }
}

names! {
    /// The engine mode: whether verdicts were enforced.
    EngineMode {
        /// `SecRuleEngine On`.
        Blocking "blocking",
        /// `SecRuleEngine DetectionOnly`.
        DetectionOnly "detection_only",
        /// `SecRuleEngine Off`: only refusals and upstream errors make events.
        Off "off",
    }
}

names! {
    /// The reason why bytes were not inspected.
    NotInspected {
        /// Beyond the body limit, under a policy that lets the rest pass.
        OverLimit "over_limit",
        /// The rules did not ask for bodies (`SecRequestBodyAccess Off`, `SecResponseBodyAccess Off`).
        BodyAccessOff "body_access_off",
        /// Response media type that is not in `SecResponseBodyMimeType`.
        MediaType "media_type",
        /// A content coding we do not decode.
        ContentCoding "content_coding",
        /// The rest of an uploaded text, which the semantic detector searches for code and scripts only.
        FileRest "file_rest",
        /// A body that is a file by what it is (a program, an archive, a database), which it searches for
        /// code and scripts only.
        FileTexts "file_texts",
        /// Values that would take more work than any benign ones; the semantic detector blocks for them
        /// (`protocol.work-limit`).
        WorkLimit "work_limit",
        /// The rest of a response after its release: held for the semantic detector alone, it does not wait
        /// where its upstream pauses or memory is short.
        Released "released",
        /// After a protocol upgrade, for instance WebSocket frames.
        Upgraded "upgraded",
        /// The client is in a list of those who are not inspected.
        Bypassed "bypassed",
        /// The engine is off for this site, route or transaction.
        EngineOff "engine_off",
        /// The engine failed and the exception policy let the transaction pass.
        EngineError "engine_error",
        /// The verdict was reached before these bytes were read.
        AfterVerdict "after_verdict",
        /// The server that asked for the verdict did not send them.
        NotSent "not_sent",
    }
}

names! {
    /// The way by which the exchange came, where it did not come through the proxy.
    IntegrationKind {
        /// A subrequest: nginx `auth_request`, Caddy `forward_auth`, Traefik ForwardAuth.
        ForwardAuth "forward_auth",
        /// HAProxy's Stream Processing Offload Protocol.
        Spop "spop",
        /// Envoy's external authorization.
        ExtAuthz "ext_authz",
        /// Envoy's external processing.
        ExtProc "ext_proc",
        /// The engine as a library in the application's process.
        Embedded "embedded",
        /// Our library in place of libmodsecurity: nginx and its module, and other programs that load it.
        Libmodsecurity "libmodsecurity",
    }
}

names! {
    /// A part of an exchange that the server which asked for the verdict did not show.
    BlindSpot {
        /// The body of the request.
        RequestBody "request_body",
        /// The rest of a request body that was cut.
        RequestBodyCut "request_body_cut",
        /// The request body went upstream piece by piece, before the verdict on it.
        RequestBodyStreamed "request_body_streamed",
        /// The response.
        Response "response",
        /// The body of the response.
        ResponseBody "response_body",
        /// The rest of a response body that was cut.
        ResponseBodyCut "response_body_cut",
        /// The response body went to the client piece by piece, before the verdict on it.
        ResponseBodyStreamed "response_body_streamed",
    }
}

names! {
    /// The kind of error between the proxy and an upstream.
    UpstreamError {
        /// No endpoint is configured or alive.
        NoEndpoint "no_endpoint",
        /// All endpoints have as many requests as they may, and the queue is full or did not move in time.
        Overloaded "overloaded",
        /// The name did not resolve.
        Dns "dns",
        /// The connection was refused or failed.
        Connect "connect",
        /// The connection was not established in time.
        ConnectTimeout "connect_timeout",
        /// The TLS handshake or certificate check failed.
        Tls "tls",
        /// Closed or reset before a complete response head.
        Closed "closed",
        /// Writing the request failed.
        Write "write",
        /// No response head in time.
        ResponseTimeout "response_timeout",
        /// The answer is not an HTTP response.
        InvalidResponse "invalid_response",
        /// The body broke off after the head had been forwarded.
        BodyTruncated "body_truncated",
    }
}

names! {
    /// A condition under which inspection could not do its full work.
    ExceptionCause {
        /// Request body over its limit.
        RequestBodyOverLimit "request_body_over_limit",
        /// Response body over its limit.
        ResponseBodyOverLimit "response_body_over_limit",
        /// A body that its parser could not read.
        UndecodableBody "undecodable_body",
        /// A body that rules would change went as it was, or in part: coded, partial, or over a limit of
        /// rewriting.
        BodyNotRewritten "body_not_rewritten",
        /// A bug in our code, caught.
        EngineError "engine_error",
        /// Time or work budget spent.
        BudgetSpent "budget_spent",
        /// A lookup that rules asked for (DNS, virus scanner) gave no answer.
        LookupFailed "lookup_failed",
        /// An inspection agent gave no decision.
        AgentFailed "agent_failed",
    }
}

names! {
    /// The policy that decided about an exception.
    ExceptionPolicy {
        /// Let pass.
        Open "open",
        /// Refused.
        Closed "closed",
        /// Inspected without blocking.
        DetectOnly "detect_only",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_order_of_the_variants() {
        assert_eq!(Action::NAMES.len(), Action::ALL.len());
        for (i, &v) in NotInspected::ALL.iter().enumerate() {
            assert_eq!(v as usize, i);
            assert_eq!(v.to_string(), NotInspected::NAMES[i]);
        }
        assert_eq!(Action::Refuse.name(), "refuse");
    }
}
