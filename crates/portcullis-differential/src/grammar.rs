//! The language, as a grammar to draw rule sets from.

use portcullis_decode::Transformation;

use crate::Random;
use crate::rule_set::{Item, Link, RuleSet};
use crate::words::*;

/// A rule set. Everything a rule may say is drawn; what refers to other rules (ids, tags, markers) meets ones
/// that exist.
pub fn rule_set(random: &mut Random) -> RuleSet {
    let mut grammar = Grammar {
        count: 3 + random.below(9),
        random,
        items: Vec::new(),
        removed: false,
        defaults: [false; 5],
        collections: false,
    };
    grammar.settings();
    grammar.limits();
    grammar.collections();
    for id in 1..=grammar.count {
        if grammar.random.chance(15) {
            push(&mut grammar.items, format!("SecMarker M{id}"));
        }
        if grammar.random.chance(4) {
            grammar.default_action();
        }
        grammar.rule(id);
    }
    for _ in 0..grammar.random.below(3) {
        grammar.update();
    }
    RuleSet { items: grammar.items }
}

struct Grammar<'r> {
    random: &'r mut Random,
    items: Vec<Item>,
    count: usize,
    removed: bool,
    defaults: [bool; 5],
    collections: bool,
}

impl Grammar<'_> {
    fn settings(&mut self) {
        push(
            &mut self.items,
            format!("SecRuleEngine {}", if self.random.chance(50) { "On" } else { "DetectionOnly" }),
        );
        if self.random.chance(92) {
            push(&mut self.items, "SecRequestBodyAccess On");
        }
        if self.random.chance(70) {
            push(&mut self.items, "SecResponseBodyAccess On");
        }
        if self.random.chance(15) {
            push(
                &mut self.items,
                format!(
                    "SecResponseBodyMimeType {}",
                    self.random.pick(&["text/html image/png", "text/plain"])
                ),
            );
        }
        if self.random.chance(5) {
            push(&mut self.items, format!("SecArgumentSeparator {}", self.random.pick(&["&", ";"])));
        }
        if self.random.chance(5) {
            push(&mut self.items, format!("SecCookieFormat {}", self.random.below(2)));
        }
        if self.random.chance(25) {
            self.default_action();
        }
        if self.random.chance(20) {
            // And one with `MULTIPART`.
            let processor = match self.random.chance(7) {
                true => "MULTIPART",
                false => self.random.pick(&["XML", "JSON", "URLENCODED"]),
            };
            push(
                &mut self.items,
                format!(
                    "SecAction \"id:900,phase:1,pass,nolog,t:none,ctl:requestBodyProcessor={processor}\""
                ),
            );
        } else {
            push(
                &mut self.items,
                "SecRule REQUEST_HEADERS:Content-Type \"@rx (?i)^(?:application|text)/(?:[a-z+.-]*)xml\" \
                 \"id:901,phase:1,pass,nolog,t:none,ctl:requestBodyProcessor=XML\"",
            );
            push(
                &mut self.items,
                "SecRule REQUEST_HEADERS:Content-Type \"@rx (?i)^application/(?:[a-z+.-]*)json\" \
                 \"id:902,phase:1,pass,nolog,t:none,ctl:requestBodyProcessor=JSON\"",
            );
        }
        if self.random.chance(20) {
            push(
                &mut self.items,
                "SecAction \"id:903,phase:1,pass,nolog,t:none,ctl:forceRequestBodyVariable=On\"",
            );
        }
        push(&mut self.items, "SecAction \"id:904,phase:1,pass,nolog,t:none,setvar:tx.n=1,setvar:tx.s=ab\"");
    }

    /// Small enough for many bodies to be longer.
    fn limits(&mut self) {
        for (chance, word, sizes) in [
            (10, "SecRequestBodyLimit", [20, 60, 200]),
            (6, "SecRequestBodyNoFilesLimit", [10, 40, 150]),
            (8, "SecResponseBodyLimit", [1, 5, 100]),
        ] {
            if self.random.chance(chance) {
                let size = sizes[self.random.below(sizes.len())];
                push(&mut self.items, format!("{word} {size}"));
            }
        }
        for word in ["SecRequestBodyLimitAction", "SecResponseBodyLimitAction"] {
            if self.random.chance(50) {
                let action = self.random.pick(&["ProcessPartial", "Reject"]);
                push(&mut self.items, format!("{word} {action}"));
            }
        }
    }

    /// Records of this request alone: what lives on between requests is tested elsewhere, where there is one
    /// clock.
    fn collections(&mut self) {
        self.collections = self.random.chance(25);
        if self.collections {
            let opened = self.random.pick(&[
                "initcol:ip=%{UNIQUE_ID}",
                "initcol:ip=%{UNIQUE_ID},setvar:ip.n=3,setvar:ip.s=ab",
                "initcol:ip=%{UNIQUE_ID},initcol:global=%{UNIQUE_ID},setvar:ip.n=1,setvar:global.n=+5",
                "setsid:%{UNIQUE_ID},setvar:session.n=+1",
                "setvar:ip.n=1,initcol:ip=%{UNIQUE_ID},initcol:ip=x_%{UNIQUE_ID}",
            ]);
            push(&mut self.items, format!("SecAction \"id:905,phase:1,pass,nolog,t:none,{opened}\""));
        }
    }

    /// Both engines must read it alike: one that names a phase, and no transformation in ModSecurity 3's way.
    fn default_action(&mut self) {
        let phase = 1 + self.random.below(5);
        // ModSecurity 3 takes one for each phase.
        if self.defaults[phase - 1] && !self.random.chance(3) {
            return;
        }
        self.defaults[phase - 1] = true;
        let what = self.random.pick(&["pass", "pass", "deny", "deny,status:406"]);
        let what = if phase == 5 { "pass" } else { what };
        let log = self.random.pick(&["log,auditlog", "nolog,auditlog", "log"]);
        push(&mut self.items, format!("SecDefaultAction \"phase:{phase},{log},{what}\""));
    }

    fn rule(&mut self, id: usize) {
        let phase = [1, 1, 2, 2, 2, 2, 3, 4, 5][self.random.below(9)];
        let count = if self.random.chance(25) { 2 + self.random.below(2) } else { 1 };
        let mut links = Vec::new();
        for place in 0..count {
            let head = if place == 0 { self.head(id, phase, count) } else { String::new() };
            let mut actions = Vec::new();
            if place == 0 {
                actions.push(format!("tag:'t{}'", self.random.below(3)));
                actions.push(format!("msg:'m{}'", self.random.below(3)));
                if self.random.chance(20) {
                    actions.push(format!("logdata:'%{{{}}}'", self.random.pick(MACROS)));
                }
                if self.random.chance(40) {
                    actions.push(format!("severity:{}", 1 + self.random.below(6)));
                }
            }
            self.transformations(&mut actions);
            self.acts(&mut actions);
            // ModSecurity 3 takes no chain that a SecAction begins.
            let is_action = place == 0 && self.random.chance(if count == 1 { 8 } else { 1 });
            let targets = if is_action { Vec::new() } else { self.targets(phase) };
            if targets.iter().any(|target| target.starts_with("XML:") && target.contains("p:")) {
                actions.push("xmlns:p=http://u".to_owned());
            }
            let operator = self.operator();
            links.push(Link { name: (id as u32, place), targets, operator, head, actions });
        }
        self.items.push(Item::Rule(links));
    }

    fn head(&mut self, id: usize, phase: usize, links: usize) -> String {
        // ModSecurity 2 has no use for anything else in the last phase.
        let what = if phase == 5 { "pass" } else { self.random.pick(DISRUPTIVE) };
        let mut head = format!("id:{id},phase:{phase},{what}");
        if self.random.chance(12) && links == 1 {
            // Only markers that stand somewhere; a marker before the rule sends it to the end as well.
            let marker = match self.random.below(4) {
                0 | 1 => "END".to_owned(),
                2 => format!("M{}", id + 1),
                // A rule, which may be another phase's, removed, or not there.
                _ => (id + 1 + self.random.below(3)).to_string(),
            };
            // A phase that is skipped to its end is fine, but for the last one, which tells us what happened.
            if marker == "END" || (phase != 5 && self.random.chance(50)) {
                head.push_str(&format!(",skipAfter:{marker}"));
            }
        } else if self.random.chance(8) {
            head.push_str(&format!(",skip:{}", 1 + self.random.below(2)));
        }
        head
    }

    fn transformations(&mut self, actions: &mut Vec<String>) {
        if self.random.chance(50) {
            actions.push("t:none".to_owned());
        }
        for _ in 0..self.random.below(4) {
            let transformation = self.transformation();
            actions.push(format!("t:{transformation}"));
        }
    }

    fn transformation(&mut self) -> &'static str {
        match self.random.below(20) {
            0 => "none",
            // What most rules have.
            1..=3 => self.random.pick(&["lowercase", "urlDecodeUni"]),
            _ => {
                let known = Transformation::ALL[self.random.below(Transformation::ALL.len())];
                if IN_ONE_ONLY.contains(&known) { "lowercase" } else { known.name() }
            }
        }
    }

    fn targets(&mut self, phase: usize) -> Vec<String> {
        let mut list: Vec<String> = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let pool = if phase >= 3 && self.random.chance(50) { RESPONSE_TARGETS } else { TARGETS };
            let pool = if self.collections && self.random.chance(25) { COLLECTION_TARGETS } else { pool };
            let path = format!("XML:{}", self.random.pick(XPATHS));
            let target = if self.random.chance(6) { path.as_str() } else { self.random.pick(pool) };
            let counted = if is_countable(target) && self.random.chance(15) { "&" } else { "" };
            let target = format!("{counted}{target}");
            if !list.contains(&target) {
                list.push(target);
            }
        }
        if self.random.chance(20) {
            let exclusion = format!("!{}", self.random.pick(EXCLUSIONS));
            let at = if self.random.chance(70) { list.len() } else { self.random.below(list.len() + 1) };
            list.insert(at, exclusion);
        }
        list
    }

    fn operator(&mut self) -> String {
        let not = if self.random.chance(12) { "!" } else { "" };
        let operator = if self.random.chance(15) {
            let word = self.random.pick(WORDS);
            let name =
                self.random.pick(&["contains", "streq", "beginsWith", "endsWith", "within", "containsWord"]);
            if word.is_empty() { "@contains a".to_owned() } else { format!("@{name} {word}") }
        } else {
            self.random.pick(OPERATORS).to_owned()
        };
        // ModSecurity 2 makes an error of every value that is no address, and has no vote then.
        let not = if operator.starts_with("@ipMatch") && !self.random.chance(20) { "" } else { not };
        format!("{not}{operator}")
    }

    fn acts(&mut self, actions: &mut Vec<String>) {
        for _ in 0..self.random.below(4) {
            let pool = if self.collections && self.random.chance(35) { COLLECTION_ACTS } else { ACTS };
            let act = self.random.pick(pool);
            // It does nothing in ModSecurity 2 where there is no transformation.
            let transforms = actions.iter().rev().take_while(|a| *a != "t:none").any(|a| a.starts_with("t:"));
            if act != "multiMatch" || transforms || self.random.chance(20) {
                actions.push(act.to_owned());
            }
        }
        if self.random.chance(12) {
            let ctl = self.ctl();
            actions.push(format!("ctl:{ctl}"));
        }
    }

    fn ctl(&mut self) -> String {
        let id = 1 + self.random.below(self.count);
        let tag = self.random.below(3);
        // ModSecurity 3 refuses a rule set with `ByMsg`.
        let chosen = match self.random.chance(6) {
            true => "ByMsg",
            false => self.random.pick(&["ById", "ByTag"]),
        };
        let value = match chosen {
            "ById" => id.to_string(),
            "ByTag" => format!("t{tag}"),
            _ => format!("m{tag}"),
        };
        // The last one ModSecurity 3 does not know.
        let count = if self.random.chance(4) { 8 } else { 7 };
        match self.random.below(count) {
            0 => format!("ruleRemoveById={id}"),
            1 => format!("ruleRemoveById={}-{}", id, id + 2),
            2 => format!("ruleRemoveByTag=t{tag}"),
            3 | 4 => format!("ruleRemoveTarget{chosen}={value};{}", self.removed_target()),
            5 => format!("ruleEngine={}", self.random.pick(&["On", "DetectionOnly"])),
            6 => "requestBodyAccess=Off".to_owned(),
            _ => format!("ruleRemoveByMsg=m{tag}"),
        }
    }

    /// Every kind of target: a variable with or without a key, a regex, a path.
    fn removed_target(&mut self) -> String {
        // libmodsecurity takes no paths there, and with them no rule set.
        match self.random.below(28) {
            0 => format!("XML:{}", self.plain_path()),
            1 => self.random.pick(&["XML:/*", "XML://@*", "XML", "XML:/*"]).to_owned(),
            2..=9 => self.random.pick(EXCLUSIONS).to_owned(),
            _ => self.random.pick(TARGETS).to_owned(),
        }
    }

    /// A path that needs neither quotes nor a rule's namespaces.
    fn plain_path(&mut self) -> &'static str {
        let path = self.random.pick(XPATHS);
        if path.contains("p:") || path.contains(['\'', '|']) { "//b" } else { path }
    }

    fn update(&mut self) {
        let id = 1 + self.random.below(self.count);
        let n = self.random.below(3);
        let line = match self.random.below(if self.removed { 13 } else { 18 }) {
            0 => format!("SecRuleRemoveById {id}"),
            1 => format!("SecRuleRemoveById {id}-{}", id + 1),
            2 => format!("SecRuleRemoveByTag t{n}"),
            3 => format!("SecRuleRemoveByMsg m{n}"),
            4 => format!("SecRuleUpdateTargetById {id} \"!ARGS:a\""),
            5 => format!("SecRuleUpdateTargetById {id} \"ARGS_NAMES\""),
            6 => format!("SecRuleUpdateTargetByTag t{n} \"!REQUEST_COOKIES:a\""),
            7 => format!("SecRuleUpdateTargetByMsg m{n} \"!ARGS:b\""),
            8 => format!("SecRuleUpdateTargetById {id} \"!ARGS:/^b/\""),
            9 => format!("SecRuleUpdateTargetById {id} \"!XML:{}\"", self.plain_path()),
            10 => format!("SecRuleUpdateTargetByTag t{n} \"!XML://@*\""),
            11 => format!("SecRuleUpdateTargetById {id}:{n} \"!ARGS:b|ARGS_NAMES\""),
            12 => format!("SecRuleUpdateActionById {id}-{} \"deny\"", id + 1),
            // A rule that is gone cannot be changed.
            13 => format!("SecRuleUpdateActionById {id} \"deny,status:406\""),
            14 | 15 => format!("SecRuleUpdateActionById {id} \"block\""),
            16 => {
                let what = self.random.pick(DISRUPTIVE);
                format!("SecRuleUpdateActionById {id} \"block,{what}\"")
            }
            _ => format!("SecRuleUpdateActionById {id} \"pass,setvar:tx.updated=+1\""),
        };
        self.removed |= line.contains("Remove");
        push(&mut self.items, line);
    }
}

fn is_countable(target: &str) -> bool {
    const COLLECTIONS: &[&str] = &[
        "ARGS",
        "REQUEST_HEADERS",
        "REQUEST_COOKIES",
        "TX",
        "FILES",
        "RESPONSE_HEADERS",
        "MULTIPART_PART_HEADERS",
        "IP:",
    ];
    let name = target.split(':').next().unwrap_or(target);
    COLLECTIONS.iter().any(|known| name.starts_with(known)) && !name.ends_with("_SIZE")
}

fn push(items: &mut Vec<Item>, line: impl Into<String>) {
    items.push(Item::Line(line.into()));
}
