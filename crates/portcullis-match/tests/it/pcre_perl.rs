//! The backtracking machine against Perl's own engine: random patterns over a small alphabet, random values.
//! Runs where there is a `perl`, and says so where there is none.

use std::io::Write as _;
use std::process::{Command, Stdio};

use portcullis_match::{Budget, Pcre, RegexFlags};
use portcullis_testkit::random::Random;

const CASES: usize = 3_000;

fn pattern(random: &mut Random, depth: u32, groups: &mut u32) -> String {
    let mut out = String::new();
    for _ in 0..=random.below(3) {
        let kind = if depth == 0 { random.below(3) } else { random.below(12) };
        let closed = *groups;
        let atom = match kind {
            0 | 1 => random.pick(&["a", "b", "[ab]", "[^a]", ".", "c"]).to_owned(),
            2 if closed > 0 => format!("\\{}", 1 + random.below(closed as usize)),
            2 => random.pick(&["\\b", "^", "\\z", "\\B"]).to_owned(),
            3 | 4 => {
                let inner = pattern(random, depth - 1, groups);
                format!("(?:{inner}|{})", pattern(random, depth - 1, groups))
            }
            5 | 6 => {
                // Without groups inside, so that numbers are those of the order of opening.
                let mut inside = 0;
                let inner = pattern(random, depth - 1, &mut inside);
                if inside > 0 {
                    "(?:a)".to_owned()
                } else {
                    *groups += 1;
                    format!("({inner})")
                }
            }
            7 => format!("(?>{})", pattern(random, depth - 1, groups)),
            8 => format!("(?={})", pattern(random, depth - 1, groups)),
            9 => format!("(?!{})", pattern(random, 0, groups)),
            10 => format!(
                "{}{})",
                random.pick(&["(?<=", "(?<!"]),
                random.pick(&["a", "b", "ab", "a|bc", "[ab]c"])
            ),
            _ if closed > 0 => format!("(?({})a|b)", 1 + random.below(closed as usize)),
            _ => "c".to_owned(),
        };
        out.push_str(&atom);
        let repeats = !atom.starts_with("(?<")
            && !matches!(atom.as_str(), "\\b" | "^" | "\\z" | "\\B")
            && !atom.starts_with("(?=")
            && !atom.starts_with("(?!");
        if repeats {
            out.push_str(
                random.pick(&["", "", "", "*", "+", "?", "*?", "+?", "??", "{1,2}", "*+", "++", "?+", "{2}"]),
            );
        }
    }
    out
}

const SCRIPT: &str = r#"
use strict; no warnings; $| = 0;
while (my $line = <STDIN>) {
    chomp $line;
    my ($pattern, $hay) = split /\t/, $line, 2;
    my $compiled = eval { qr/$pattern/s };
    if (!defined $compiled) { print "error\n"; next; }
    if ($hay =~ $compiled) {
        my @groups = map { defined $-[$_] && defined $+[$_] ? "$-[$_]-$+[$_]" : "" } 0 .. $#+;
        print join(",", @groups), "\n";
    } else { print "none\n"; }
}
"#;

/// Perl 5.36 does not find `(?=b*?)[^a]` in `c`: its optimiser takes the first byte of an assertion for that
/// of the match.
fn wrong_in_perl(pattern: &str) -> bool {
    (pattern.contains("(?=") || pattern.contains("(?!"))
        && ["??", "*?", "+?", "?+", "*+"].iter().any(|q| pattern.contains(q))
}

#[test]
fn perl_agrees() {
    let mut random = Random::new(1);
    let mut cases = Vec::new();
    for _ in 0..CASES {
        let mut groups = 0;
        let pattern = pattern(&mut random, 2, &mut groups);
        let hay: String = (0..random.below(9)).map(|_| random.pick(&["a", "b", "c", "ab"])).collect();
        cases.push((pattern, hay));
    }
    let Ok(mut perl) =
        Command::new("perl").args(["-e", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    else {
        eprintln!("perl_agrees: skipped, there is no perl");
        return;
    };
    let input: String = cases.iter().map(|(pattern, hay)| format!("{pattern}\t{hay}\n")).collect();
    let mut stdin = perl.stdin.take().expect("piped");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = perl.wait_with_output().expect("perl ends");
    writer.join().expect("no panic").expect("perl reads all");
    let answers = String::from_utf8(output.stdout).expect("text");
    let mut compared = 0;
    let mut backtracking = 0;
    let mut wrong = Vec::new();
    for ((pattern, hay), answer) in cases.iter().zip(answers.lines()) {
        let Ok(compiled) = Pcre::new(pattern.as_bytes(), RegexFlags::default()) else { continue };
        if answer == "error" {
            continue;
        }
        let mut groups = [None; 10];
        let Ok(found) = compiled.search(hay.as_bytes(), 0, &mut Budget::default(), &mut groups) else {
            continue;
        };
        let mut ours: Vec<String> = groups
            .iter()
            .map(|span| span.map_or(String::new(), |s| format!("{}-{}", s.start, s.end)))
            .collect();
        let mut theirs: Vec<String> = answer.split(',').map(str::to_owned).collect();
        ours.truncate(theirs.len());
        for list in [&mut ours, &mut theirs] {
            while list.last().is_some_and(String::is_empty) {
                list.pop();
            }
        }
        if wrong_in_perl(pattern) {
            continue;
        }
        // Perl and PCRE themselves disagree about the groups of loops whose last round took nothing.
        if [")*", ")+", "){", ")?"].iter().any(|loops| pattern.contains(loops)) {
            ours.truncate(1);
            theirs.truncate(1);
        }
        compared += 1;
        backtracking += usize::from(compiled.backtracks());
        let agree = if answer == "none" { !found } else { found && ours == theirs };
        if !agree {
            wrong.push(format!("{pattern}  on {hay:?}: ours {ours:?}, Perl {answer}"));
        }
    }
    eprintln!("{compared} compared, {backtracking} of them backtracking");
    assert!(compared > CASES / 4 && backtracking > CASES / 8, "{compared}, {backtracking}");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}
