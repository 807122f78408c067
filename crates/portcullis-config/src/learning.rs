//! The learning of what the fields of a site carry.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::Network;
use crate::mistakes::Mistakes;
use crate::spanned::Spanned;
use crate::values::number;

/// What parameters, fields of forms and values of JSON carry is learned from requests that were answered
/// well.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// What happens to a value of another type than all that a well-known field has carried. Default:
    /// `detect`.
    pub unusual: Option<Unusual>,
    /// Fields that are learned; more are counted. Each takes up to 12 KiB of memory, most take 1 KiB.
    /// Default: 2000.
    #[schemars(range(min = 100, max = 50_000))]
    pub max: Option<Spanned<u32>>,
    /// Networks of clients from which a field must have been sent before it counts as well known. With fewer
    /// than eleven, a sender with ten networks can teach. Default: 30.
    #[schemars(range(min = 2, max = 10_000))]
    pub networks: Option<Spanned<u32>>,
    /// Days on which it must have been sent. Default: 7.
    #[schemars(range(min = 1, max = 60))]
    pub days: Option<Spanned<u32>>,
    /// The kinds of findings that a field may be opened for, as many of its users send them. Default: `safe`.
    pub open: Option<OpenedKinds>,
    /// They count for nothing without a person, after a time on trial in which no request was let through
    /// that had something else in it. Default: `false`, a person accepts them (`portcullis learned accept`).
    pub auto: Option<Spanned<bool>>,
    /// Days on trial with `auto`. Default: 7.
    #[schemars(range(min = 1, max = 60))]
    pub trial_days: Option<Spanned<u32>>,
    /// Those whose work teaches at once: 100 values close a field, three open it. Default: nobody.
    pub trusted: Option<Spanned<RawTrusted>>,
}

/// Clients whose work teaches at once.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTrusted {
    /// Their networks: `10.0.0.0/8`, or an address.
    #[serde(default)]
    pub networks: Vec<Spanned<String>>,
    /// A header field of the answers that they get. The application writes it for users that it knows; what
    /// a client sends says nothing.
    pub answer_header: Option<RawAnswerHeader>,
}

/// A header field of answers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAnswerHeader {
    /// Its name.
    pub name: Spanned<String>,
    /// Its value; `*` stands for any text.
    pub value: Spanned<String>,
}

/// The kinds of findings that a field may be opened for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpenedKinds {
    /// None.
    None,
    /// Those of text that shows, stores or is code, but none that acts wherever it stands (lookups of log4j,
    /// serialised objects, markup that runs), ends the value's own place in a statement or command line, or
    /// hides what it is.
    #[default]
    Safe,
    /// All.
    All,
}

/// What happens to values that are unlike their field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unusual {
    /// They are not looked for.
    Off,
    /// An event reports them.
    #[default]
    Detect,
    /// Those with signs of code that the field never had, and those in which something else was found, are
    /// refused. All others are reported.
    Block,
}

/// The learning of what the fields of a site carry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LearnedFields {
    /// The name of the site.
    pub site: String,
    /// What happens to values that are unlike their field.
    pub unusual: Unusual,
    /// Fields that are learned.
    pub max: usize,
    /// Networks from which a well-known field has been sent.
    pub networks: u64,
    /// Days on which it has been.
    pub days: u32,
    /// The kinds of findings that fields may be opened for.
    pub open: OpenedKinds,
    /// Days on trial after which they count for nothing without a person.
    pub auto: Option<u32>,
    /// Networks whose work teaches at once.
    pub trusted_networks: Vec<Network>,
    /// Name and pattern of the value of a header field of answers to those whose work does.
    pub trusted_answer: Option<(String, String)>,
}

pub(crate) fn check(mistakes: &mut Mistakes<'_>, site: &str, raw: &Raw) -> LearnedFields {
    let auto = raw.auto.as_ref().filter(|auto| auto.value);
    if let (Some(days), None) = (&raw.trial_days, auto) {
        mistakes.wrong_with_hint(
            days.span.clone(),
            "`trial_days` has no effect without `auto = true`".to_string(),
            "add it, or drop this".to_string(),
        );
    }
    if let (Some(auto), Some(OpenedKinds::None)) = (auto, raw.open) {
        mistakes.wrong_with_hint(
            auto.span.clone(),
            "`auto` has no effect with `open = \"none\"`: no field is opened".to_string(),
            "drop one of them".to_string(),
        );
    }
    let (trusted_networks, trusted_answer) = trusted(mistakes, raw);
    let mut within = |raw: &Option<Spanned<u32>>, range, name, default| {
        number(mistakes, raw.clone(), range, name, default)
    };
    let trial_days = within(&raw.trial_days, 1..=60, "trial_days", 7);
    LearnedFields {
        site: site.to_owned(),
        unusual: raw.unusual.unwrap_or_default(),
        max: within(&raw.max, 100..=50_000, "max", 2_000) as usize,
        networks: within(&raw.networks, 2..=10_000, "networks", 30).into(),
        days: within(&raw.days, 1..=60, "days", 7),
        open: raw.open.unwrap_or_default(),
        auto: auto.map(|_| trial_days),
        trusted_networks,
        trusted_answer,
    }
}

fn trusted(mistakes: &mut Mistakes<'_>, raw: &Raw) -> (Vec<Network>, Option<(String, String)>) {
    let Some(Spanned { value: RawTrusted { networks, answer_header }, span }) = &raw.trusted else {
        return (Vec::new(), None);
    };
    if networks.is_empty() && answer_header.is_none() {
        mistakes.wrong_with_hint(
            span.clone(),
            "`trusted` names nobody".to_string(),
            "name `networks` or an `answer_header`, or drop it".to_string(),
        );
    }
    let mut known = Vec::new();
    for text in networks {
        match text.value.parse::<Network>() {
            Ok(network) if network.prefix() == 0 => mistakes.wrong_with_hint(
                text.span.clone(),
                format!("`{}` is everybody, attackers among them", text.value),
                "name the networks of those whose work is benign".to_string(),
            ),
            Ok(network) => known.push(network),
            Err(message) => mistakes.wrong(text.span.clone(), message),
        }
    }
    let answer = answer_header.as_ref().and_then(|RawAnswerHeader { name, value }| {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.value.is_empty() || !name.value.bytes().all(is_token) {
            mistakes.wrong(name.span.clone(), format!("`{}` is no name of a header field", name.value));
            return None;
        }
        if value.value.trim_matches('*').is_empty() {
            mistakes.wrong_with_hint(
                value.span.clone(),
                "this pattern fits any value".to_string(),
                "say which value the application writes for those whom it knows".to_string(),
            );
        }
        Some((name.value.to_ascii_lowercase(), value.value.clone()))
    });
    (known, answer)
}
