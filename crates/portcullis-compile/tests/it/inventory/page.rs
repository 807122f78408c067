//! The reference page, from the tables.

use portcullis_decode::Transformation;
use portcullis_seclang::actions::{ActionName, CtlOption};
use portcullis_seclang::availability::{Need, availability};
use portcullis_seclang::directives::DirectiveName;
use portcullis_seclang::operators::OperatorName;
use portcullis_seclang::standing::{self, Standing};
use portcullis_types::{Phase, Variable};

const HEAD: &str = "# SecLang reference

Every word of the ModSecurity 2.9 and 3 references, and what Coraza has beyond them. This page is made from the tables
that the program itself reads (`UPDATE_GOLDEN=1 cargo test -p portcullis-compile --test it inventory`); a test tries
each word. [seclang.md](seclang.md) explains what is particular to this program.
";

struct Row {
    name: String,
    meaning: String,
    standing: Standing,
}

fn row(name: String, meaning: &str, standing: Standing) -> Row {
    Row { name, meaning: meaning.to_owned(), standing }
}

pub fn page() -> String {
    let aliases = |names: &[&str]| names.iter().map(|alias| format!(" (`{alias}`)")).collect::<String>();
    let mut out = HEAD.to_owned();
    let directives = DirectiveName::ALL
        .iter()
        .map(|&d| row(format!("`{}`", d.name()), d.meaning(), standing::directive(d)));
    section("Directives", directives.collect(), &mut out);
    let variables = Variable::ALL.iter().map(|&v| {
        let other: Vec<&str> =
            Variable::ALIASES.iter().filter(|(_, of)| *of == v).map(|(alias, _)| *alias).collect();
        row(format!("`{}`{}", v.name(), aliases(&other)), "", standing::variable(v))
    });
    section("Variables", variables.collect(), &mut out);
    availability_table(&mut out);
    let operators = OperatorName::ALL.iter().map(|&o| {
        row(format!("`@{}`{}", o.name(), aliases(o.aliases())), o.meaning(), standing::operator(o))
    });
    section("Operators", operators.collect(), &mut out);
    let transformations = Transformation::ALL
        .iter()
        .map(|&t| row(format!("`t:{}`", t.name()), "", standing::transformation(t)));
    section("Transformations", transformations.collect(), &mut out);
    let actions = ActionName::ALL
        .iter()
        .map(|&a| row(format!("`{}`{}", a.name(), aliases(a.aliases())), a.meaning(), standing::action(a)));
    section("Actions", actions.collect(), &mut out);
    let options =
        CtlOption::ALL.iter().map(|&o| row(format!("`ctl:{}`", o.name()), o.meaning(), standing::ctl(o)));
    section("Options of `ctl`", options.collect(), &mut out);
    out
}

/// The variables that not every rule can read, by the phase and by what they need.
fn availability_table(out: &mut String) {
    let mut rows: Vec<(String, String, Vec<&str>)> = Vec::new();
    for &variable in Variable::ALL {
        let available = availability(variable);
        if matches!(standing::variable(variable), Standing::Refused(_) | Standing::Vain(_)) {
            continue;
        }
        let needs = match available.needs {
            None if available.from == Phase::RequestHeaders => continue,
            None => String::new(),
            Some(Need::RequestBody) => "`SecRequestBodyAccess On`".to_owned(),
            Some(Need::ResponseBody) => "`SecResponseBodyAccess On`".to_owned(),
            Some(Need::Opened(_)) => {
                "`initcol` of the collection, `setsid`, `setuid` or `setrsc`, in a rule before".to_owned()
            }
            Some(Need::GeoLookup) => "`@geoLookup` in a rule before".to_owned(),
            Some(Need::Set) => "`setvar` of the key or `capture`, in a rule before".to_owned(),
        };
        let from = available.from.number().to_string();
        let name = variable.name();
        match rows.iter_mut().find(|row| row.0 == from && row.1 == needs) {
            Some(row) => row.2.push(name),
            None => rows.push((from, needs, vec![name])),
        }
    }
    rows.sort();
    out.push_str("\nNot every rule can read them; `portcullis check` warns about rules that are too early or lack something:\n\n");
    out.push_str("| variables | from phase | what they need |\n|---|---|---|\n");
    for (from, needs, names) in rows {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        out.push_str(&format!("| {} | {from} | {needs} |\n", names.join(", ")));
    }
}

fn section(title: &str, rows: Vec<Row>, out: &mut String) {
    out.push_str(&format!("\n## {title}\n"));
    let works: Vec<&Row> = rows.iter().filter(|row| row.standing == Standing::Works).collect();
    if !works.is_empty() {
        out.push_str("\nWork as in ModSecurity 2:\n\n");
        if works.iter().all(|row| row.meaning.is_empty()) {
            let names: Vec<&str> = works.iter().map(|row| row.name.as_str()).collect();
            out.push_str(&wrapped(&format!("{}.", names.join(", "))));
        } else {
            out.push_str("| word | meaning |\n|---|---|\n");
            works.iter().for_each(|row| out.push_str(&format!("| {} | {} |\n", row.name, row.meaning)));
        }
    }
    let mut table = |heading: &str, text: &dyn Fn(&Row) -> Option<String>| {
        let lines: Vec<String> =
            rows.iter().filter_map(|row| Some(format!("| {} | {} |\n", row.name, text(row)?))).collect();
        if !lines.is_empty() {
            out.push_str(&format!("\n{heading}\n\n| word | |\n|---|---|\n{}", lines.concat()));
        }
    };
    let sentence = |text: &str| {
        let mut chars = text.chars();
        let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
        format!("{first}{}.", chars.as_str())
    };
    let meaning =
        |row: &Row| if row.meaning.is_empty() { String::new() } else { format!("{} ", row.meaning) };
    table("Work differently:", &|row| match row.standing {
        Standing::Differs(how) => Some(format!("{}{}", meaning(row), sentence(how))),
        _ => None,
    });
    table("Read with a warning, since they change nothing here:", &|row| match row.standing {
        Standing::NoEffect(why) => Some(sentence(why)),
        _ => None,
    });
    table(
        "Of ModSecurity 2, read with a warning; a rule with it finds nothing, an action is not carried out:",
        &|row| match row.standing {
            Standing::Vain(refusal) => {
                Some(format!("{} Instead: {}.", sentence(refusal.why), refusal.instead))
            }
            _ => None,
        },
    );
    table("Refused, and what to do instead:", &|row| match row.standing {
        Standing::Refused(refusal) => {
            Some(format!("{} Instead: {}.", sentence(refusal.why), refusal.instead))
        }
        _ => None,
    });
}

/// A paragraph in lines of at most 120 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        match line.len() + 1 + word.len() {
            length if length <= 120 && !line.is_empty() => *line += &format!(" {word}"),
            _ if line.is_empty() => *line += word,
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n") + "\n"
}
