/// The five phases of a transaction, in SecLang's numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// 1: request line and headers are known.
    RequestHeaders = 1,
    /// 2: the request body is known.
    RequestBody = 2,
    /// 3: response status and headers are known.
    ResponseHeaders = 3,
    /// 4: the response body is known.
    ResponseBody = 4,
    /// 5: after the response; cannot interrupt.
    Logging = 5,
}

impl Phase {
    /// All phases in order.
    pub const ALL: [Phase; 5] = [
        Phase::RequestHeaders,
        Phase::RequestBody,
        Phase::ResponseHeaders,
        Phase::ResponseBody,
        Phase::Logging,
    ];

    /// The phase with SecLang number `n` (1 to 5).
    pub fn from_number(n: u8) -> Option<Phase> {
        Phase::ALL.get(usize::from(n).checked_sub(1)?).copied()
    }

    /// SecLang number, 1 to 5.
    pub fn number(self) -> u8 {
        self as u8
    }
}
