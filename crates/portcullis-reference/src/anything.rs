//! Rules with every word of the language, drawn from its tables: variables, macros, operators, actions, `ctl`
//! options and transformations.
//!
//! They mean nothing. Whatever they say, loading them and running them has to end, in bounded memory.

use portcullis_decode::Transformation;
use portcullis_seclang::actions::{ActionName, CtlOption};
use portcullis_seclang::operators::{Argument, OperatorName};
use portcullis_types::{Shape, Variable};

/// Chooses: from 0 to one less than it is given.
pub type Choose<'c> = &'c mut dyn FnMut(usize) -> usize;

/// Settings, and one entry for each rule: a text with all links of it.
pub fn settings_and_rules(modsecurity3: bool, choose: Choose<'_>) -> (String, Vec<String>) {
    let mut make = Make { choose };
    let settings = make.settings(modsecurity3);
    let count = 1 + make.below(8);
    let mut rules: Vec<String> = (1..=count).map(|id| make.rule(id, count)).collect();
    for _ in 0..make.below(3) {
        rules.push(make.update(count));
    }
    (settings, rules)
}

/// Keys that something has, or may have.
const KEYS: &[&str] = &[
    "a",
    "b",
    "0",
    "1",
    "10",
    "id",
    "msg",
    "logdata",
    "severity",
    "rev",
    "key",
    "n",
    "x",
    "Content-Type",
    "",
    "a.b",
    "/a/",
    "/./",
    "/*",
    "//@*",
    "is_new",
    "_%{tx.n}",
];
/// Those of rules whose texts are made of others.
const MIXED: &[Variable] = &[
    Variable::Rule,
    Variable::Rule,
    Variable::Tx,
    Variable::Tx,
    Variable::MatchedVar,
    Variable::MatchedVarName,
    Variable::MatchedVars,
    Variable::Args,
    Variable::Ip,
    Variable::Env,
    Variable::RequestBody,
];
const WORDS: &[&str] =
    &["a", "b", "ab", "1", "-1", "x y", "/", "é", "0", "\\\\", "|", "(", "[a-z]*", ".", "=", "a=b"];
const PATTERNS: &[&str] =
    &["a", ".", "^.*$", "(a)(b)?", "(.)\\1", "\\1(a)", "(?=a)a", "(?i)A", "[^a]", "(a|b)*c", "x*", "\\d+"];

struct Make<'c> {
    choose: Choose<'c>,
}

impl Make<'_> {
    fn below(&mut self, count: usize) -> usize {
        (self.choose)(count)
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        let at = self.below(list.len());
        list[at]
    }

    /// Once in so many cases.
    fn rarely(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn settings(&mut self, modsecurity3: bool) -> String {
        let engine = self.one_of(&["On", "DetectionOnly"]);
        let mut text = format!(
            "SecRuleEngine {engine}\nSecRequestBodyAccess On\nSecResponseBodyAccess On\nSecContentInjection On\n\
             SecStreamInBodyInspection On\nSecStreamOutBodyInspection On\n"
        );
        if modsecurity3 {
            text.push_str("SecCompatibility ModSecurity3\n");
        }
        if self.rarely(3) {
            text.push_str("SecExpansionLimit 40 200\n");
        }
        if self.rarely(2) {
            let processor = self.one_of(&["XML", "JSON", "MULTIPART", "URLENCODED"]);
            text.push_str(&format!(
                "SecAction \"id:900,phase:1,pass,nolog,ctl:requestBodyProcessor={processor}\"\n"
            ));
        }
        if self.rarely(2) {
            text.push_str(
                "SecAction \"id:901,phase:1,pass,nolog,initcol:ip=a,initcol:global=b,setsid:c,setuid:d,setrsc:e\"\n",
            );
        }
        text
    }

    fn variable(&mut self) -> Variable {
        if self.rarely(2) { self.one_of(MIXED) } else { self.one_of(Variable::ALL) }
    }

    /// A text with macros.
    fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..1 + self.below(4) {
            if self.rarely(3) {
                text.push_str(self.one_of(WORDS));
                continue;
            }
            let variable = self.variable();
            let name = variable.name();
            let key = self.one_of(KEYS);
            let macro_ = match (variable.shape(), self.below(4)) {
                (Shape::Scalar, 1..) | (_, 0) => format!("%{{{name}}}"),
                (_, 1) => format!("%{{{name}:{key}}}"),
                _ => format!("%{{{name}.{key}}}"),
            };
            text.push_str(&macro_);
        }
        text
    }

    fn target(&mut self) -> String {
        let variable = self.variable();
        let name = variable.name();
        let key = self.one_of(KEYS);
        let sign = match self.below(8) {
            0 => "&",
            1 => "!",
            _ => "",
        };
        match (variable.shape(), self.below(3)) {
            (Shape::Scalar, _) | (_, 0) => format!("{sign}{name}"),
            (Shape::Xpath, _) => format!("{sign}{name}:{}", self.one_of(&["/*", "//@*", "//a", "/a/b[1]"])),
            _ => format!("{sign}{name}:{key}"),
        }
    }

    fn operator(&mut self) -> String {
        let operator = self.one_of(OperatorName::ALL);
        let name = operator.name();
        let not = if self.rarely(6) { "!" } else { "" };
        let argument = match operator.argument() {
            Argument::None => String::new(),
            Argument::Regex => match self.below(3) {
                0 => format!("{}{}", self.one_of(PATTERNS), self.text()),
                _ => self.one_of(PATTERNS).to_owned(),
            },
            Argument::Text if operator == OperatorName::Rsub => {
                format!("s/{}/{}/{}", self.one_of(PATTERNS), self.text(), self.one_of(&["", "i", "d"]))
            }
            Argument::Text | Argument::Number => self.text(),
            Argument::Words => "a ab b".to_owned(),
            Argument::Addresses => "10.0.0.0/8,::1".to_owned(),
            Argument::File => "words.txt".to_owned(),
            Argument::Bytes => self.one_of(&["32-126", "x", "", "0-255"]).to_owned(),
        };
        format!("{not}@{name} {argument}")
    }

    fn rule(&mut self, id: usize, count: usize) -> String {
        let mut text = String::new();
        let links = if self.rarely(4) { 2 + self.below(2) } else { 1 };
        for link in 0..links {
            let mut actions = Vec::new();
            if link == 0 {
                actions.push(format!("id:{id},phase:{}", 1 + self.below(5)));
                // What most rules have, with all macros in it.
                actions.push(format!("msg:'{}',logdata:'{}'", self.text(), self.text()));
            }
            for _ in 0..self.below(6) {
                let action = self.one_of(ActionName::ALL);
                actions.extend(self.action(action, count));
            }
            if link + 1 < links {
                actions.push("chain".to_owned());
            }
            let actions = actions.join(",");
            if link == 0 && self.rarely(8) {
                text.push_str(&format!("SecAction \"{actions}\"\n"));
                continue;
            }
            let targets: Vec<String> = (0..1 + self.below(3)).map(|_| self.target()).collect();
            let operator = self.operator();
            text.push_str(&format!("SecRule {} \"{operator}\" \"{actions}\"\n", targets.join("|")));
        }
        text
    }

    /// `None` for those that a rule has once.
    fn action(&mut self, action: ActionName, count: usize) -> Option<String> {
        let name = action.name();
        Some(match action {
            ActionName::Id | ActionName::Phase | ActionName::Chain | ActionName::Marker => return None,
            ActionName::Accuracy | ActionName::Maturity => format!("{name}:{}", 1 + self.below(9)),
            ActionName::Severity => format!("{name}:{}", self.below(8)),
            ActionName::Status => format!("{name}:{}", 400 + self.below(100)),
            ActionName::Skip => format!("{name}:{}", 1 + self.below(3)),
            ActionName::SkipAfter => format!("{name}:{}", 1 + self.below(count)),
            ActionName::T => format!("{name}:{}", self.transformation()),
            ActionName::Allow => format!("{name}:{}", self.one_of(&["phase", "request"])),
            ActionName::SetVar | ActionName::ExpireVar | ActionName::DeprecateVar => {
                let collection =
                    self.one_of(&["tx", "tx", "tx", "ip", "global", "session", "user", "resource"]);
                let key = if self.rarely(3) { self.text() } else { self.one_of(KEYS).to_owned() };
                let sign = self.one_of(&["=", "=", "=+", "=-", "!"]);
                match sign {
                    "!" => format!("{name}:'!{collection}.{key}'"),
                    sign => format!("{name}:'{collection}.{key}{sign}{}'", self.text()),
                }
            }
            ActionName::InitCol => {
                let collection = self.one_of(&["ip", "global", "resource", "session", "user"]);
                format!("{name}:'{collection}={}'", self.text())
            }
            ActionName::SetEnv => format!("{name}:'{}={}'", self.one_of(KEYS), self.text()),
            ActionName::Ctl => format!("{name}:{}", self.ctl(count)),
            ActionName::Proxy => format!("{name}:'http://h/{}'", self.text()),
            ActionName::Redirect => format!("{name}:'http://h/{}'", self.text()),
            ActionName::Xmlns => format!("{name}:p=http://u"),
            ActionName::AuditLog
            | ActionName::Block
            | ActionName::Capture
            | ActionName::Deny
            | ActionName::Drop
            | ActionName::Log
            | ActionName::MultiMatch
            | ActionName::NoAuditLog
            | ActionName::NoLog
            | ActionName::Pass
            | ActionName::SanitiseMatched => name.to_owned(),
            ActionName::Append
            | ActionName::Exec
            | ActionName::LogData
            | ActionName::Msg
            | ActionName::Pause
            | ActionName::Prepend
            | ActionName::Rev
            | ActionName::SanitiseArg
            | ActionName::SanitiseMatchedBytes
            | ActionName::SanitiseRequestHeader
            | ActionName::SanitiseResponseHeader
            | ActionName::SetRsc
            | ActionName::SetSid
            | ActionName::SetUid
            | ActionName::Tag
            | ActionName::Ver => format!("{name}:'{}'", self.text()),
        })
    }

    fn transformation(&mut self) -> &'static str {
        if self.rarely(6) { "none" } else { self.one_of(Transformation::ALL).name() }
    }

    fn ctl(&mut self, count: usize) -> String {
        let option = self.one_of(CtlOption::ALL);
        let name = option.name();
        let id = 1 + self.below(count);
        let value = match option {
            CtlOption::RuleRemoveById => id.to_string(),
            CtlOption::RuleRemoveByMsg | CtlOption::RuleRemoveByTag => self.one_of(PATTERNS).to_owned(),
            CtlOption::RuleRemoveTargetById => format!("{id};{}", self.target()),
            CtlOption::RuleRemoveTargetByMsg | CtlOption::RuleRemoveTargetByTag => {
                format!("{};{}", self.one_of(PATTERNS), self.target())
            }
            CtlOption::RequestBodyLimit | CtlOption::ResponseBodyLimit => "100".to_owned(),
            CtlOption::RequestBodyProcessor => self.one_of(&["XML", "JSON"]).to_owned(),
            CtlOption::AuditLogParts => "+E".to_owned(),
            CtlOption::DebugLogLevel => "3".to_owned(),
            CtlOption::RateLimit => format!("r;{}", self.text()),
            CtlOption::AuditEngine
            | CtlOption::ForceRequestBodyVariable
            | CtlOption::ForceResponseBodyVariable
            | CtlOption::HashEnforcement
            | CtlOption::HashEngine
            | CtlOption::ParseXmlIntoArgs
            | CtlOption::RequestBodyAccess
            | CtlOption::ResponseBodyAccess
            | CtlOption::ResponseBodyProcessor
            | CtlOption::RuleEngine => self.one_of(&["On", "Off"]).to_owned(),
        };
        format!("{name}={value}")
    }

    fn update(&mut self, count: usize) -> String {
        let id = 1 + self.below(count);
        match self.below(6) {
            0 => format!("SecRuleRemoveById {id}\n"),
            1 => format!("SecRuleUpdateTargetById {id} \"{}\"\n", self.target()),
            2 => format!("SecRuleUpdateTargetById {id}:{} \"{}\"\n", self.below(3), self.target()),
            3 => format!("SecRuleUpdateActionById {id} \"block\"\n"),
            4 => format!("SecRuleUpdateActionById {id} \"msg:'{}'\"\n", self.text()),
            _ => format!("SecRuleUpdateActionById {id}:1 \"setvar:'tx.a={}'\"\n", self.text()),
        }
    }
}
