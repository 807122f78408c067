//! The run: batches of rule sets with their requests, through every engine, every difference classified.

mod vote;

use std::time::Instant;

use portcullis_reference::Request;

use self::vote::{Pending, agrees};
use crate::classes::{Case, FIELDS_APART, Kind, Peer, classify};
use crate::engines::modsecurity2::ModSecurity2;
use crate::engines::modsecurity3::{Loaded, ModSecurity3};
use crate::engines::ours::{Ours, joined};
use crate::minimise::{Pair, minimise};
use crate::requests::Corpora;
use crate::seen::{Difference, Seen, difference};
use crate::summary::Summary;
use crate::{Random, RuleSet, request, rule_set};

/// What to run.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "differential", about = "Generated rules and requests through four engines")]
pub struct Options {
    /// Pairs of a rule set and a request, for each peer.
    #[arg(long, default_value_t = 20_000)]
    pub pairs: u64,
    /// Where to start.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Requests for each rule set.
    #[arg(long, default_value_t = 20)]
    pub requests: u64,
    /// Leave Apache out.
    #[arg(long)]
    pub no_modsecurity2: bool,
    /// Leave libmodsecurity out.
    #[arg(long)]
    pub no_modsecurity3: bool,
    /// Stop after so many differences that have no class.
    #[arg(long, default_value_t = 10)]
    pub unclassified_max: usize,
    /// Show differences as they came, not minimised.
    #[arg(long)]
    pub quick: bool,
    /// Show one of each class, too.
    #[arg(long)]
    pub examples: bool,
}

impl Default for Options {
    fn default() -> Options {
        <Options as clap::Parser>::parse_from(["differential"])
    }
}

/// Rule sets in one Apache.
const BATCH: u64 = 150;

/// Runs. The error is what kept it from running.
pub fn run(options: &Options) -> Result<Summary, String> {
    let corpora = Corpora::read().map_err(|error| error.to_string())?;
    let mut runner = Runner {
        three: if options.no_modsecurity3 { None } else { Some(ModSecurity3::new()?) },
        two: if options.no_modsecurity2 { None } else { Some(ModSecurity2::new()?) },
        summary: Summary::default(),
        options: options.clone(),
        shown: Vec::new(),
        pending: Vec::new(),
    };
    let mut seed = options.seed;
    let sets = options.pairs.div_ceil(options.requests);
    let end = options.seed + sets;
    let start = Instant::now();
    while seed < end && runner.summary.problems.len() < options.unclassified_max {
        let size = BATCH.min(end - seed);
        let batch: Vec<_> = (seed..seed + size).map(|seed| drawn(seed, options.requests, &corpora)).collect();
        runner.batch(seed, batch)?;
        seed += size;
        eprint!("\r{} of {sets} rule sets, {:.0} s ", seed - options.seed, start.elapsed().as_secs_f64());
    }
    eprintln!();
    runner.summary.crashes = runner.three.as_ref().map_or(0, |three| three.crashes);
    Ok(runner.summary)
}

fn drawn(seed: u64, requests: u64, corpora: &Corpora) -> (RuleSet, Vec<Request>) {
    let mut random = Random::new(seed);
    let rules = rule_set(&mut random);
    let requests = (0..requests).map(|_| request(&mut random, Some(corpora))).collect();
    (rules, requests)
}

struct Runner {
    three: Option<ModSecurity3>,
    two: Option<ModSecurity2>,
    summary: Summary,
    options: Options,
    shown: Vec<(Peer, &'static str)>,
    pending: Vec<Pending>,
}

impl Runner {
    fn batch(&mut self, first: u64, batch: Vec<(RuleSet, Vec<Request>)>) -> Result<(), String> {
        let twos = match &mut self.two {
            Some(two) => two.run(&batch)?.into_iter().map(Some).collect(),
            None => batch.iter().map(|_| None).collect::<Vec<_>>(),
        };
        for (seed, ((rules, requests), two)) in (first..).zip(batch.into_iter().zip(twos)) {
            let ours = match Ours::load(&rules.text()) {
                Ok(ours) => ours,
                Err(why) => {
                    self.problem(format!("seed {seed}: we refuse the rules\n{why}\n{}", rules.text()));
                    continue;
                }
            };
            let seen: Vec<Seen> = requests.iter().map(|request| ours.engine(request)).collect();
            let reference =
                requests.iter().zip(&seen).map(|(request, seen)| ours.reference(request, seen)).collect();
            self.compare(Peer::Reference, seed, &rules, &requests, &seen, reference, &[]);
            match &two {
                Some(Ok(theirs)) => {
                    let (requests, seen) = self.as_apache_shows(&ours, &requests, &seen, theirs);
                    self.compare(Peer::ModSecurity2, seed, &rules, &requests, &seen, theirs.clone(), &[]);
                }
                Some(Err(why)) => self.refused(Peer::ModSecurity2, why),
                None => {}
            }
            let votes = two.and_then(Result::ok).unwrap_or_default();
            self.three(seed, &rules, &requests, &seen, &votes);
        }
        self.vote()
    }

    /// Requests with several fields of a name, and what we make of them, as if they were one; a pair that
    /// differs only without this is counted.
    fn as_apache_shows(
        &mut self,
        engine: &Ours,
        requests: &[Request],
        seen: &[Seen],
        theirs: &[Option<Seen>],
    ) -> (Vec<Request>, Vec<Seen>) {
        let (mut requests, mut seen) = (requests.to_vec(), seen.to_vec());
        for ((request, ours), theirs) in requests.iter_mut().zip(&mut seen).zip(theirs) {
            let Some(joined) = joined(request) else { continue };
            let apart = std::mem::replace(ours, engine.engine(&joined));
            *request = joined;
            if let Some(theirs) = theirs
                && difference(&apart, theirs).is_some()
                && difference(ours, theirs).is_none()
            {
                self.count(Peer::ModSecurity2, Kind::Choice, FIELDS_APART, false);
            }
        }
        (requests, seen)
    }

    fn count(&mut self, peer: Peer, kind: Kind, name: &'static str, with_modsecurity2: bool) {
        let tally = self.summary.classes.entry((peer, kind, name)).or_default();
        tally.all += 1;
        tally.with_modsecurity2 += u64::from(with_modsecurity2);
    }

    fn three(
        &mut self,
        seed: u64,
        rules: &RuleSet,
        requests: &[Request],
        seen: &[Seen],
        votes: &[Option<Seen>],
    ) {
        let Some(three) = &mut self.three else { return };
        match three.load(rules) {
            Loaded::Yes => {
                let theirs = requests.iter().map(|request| three.run(request)).collect();
                self.compare(Peer::ModSecurity3, seed, rules, requests, seen, theirs, votes);
            }
            Loaded::Refused(why) => self.refused(Peer::ModSecurity3, &why),
            Loaded::Crashed => self.refused(Peer::ModSecurity3, "the child ended"),
        }
    }

    fn refused(&mut self, peer: Peer, why: &str) {
        let mut lines = why.lines().filter(|line| !line.is_empty() && !line.starts_with("AH00526"));
        let why = lines.next().unwrap_or_default();
        let why = why.rsplit("Column: ").next().unwrap_or(why);
        let is_number = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit());
        let words = why.split(' ').filter(|word| !is_number(word.trim_end_matches(['.', ':'])));
        let why = words.collect::<Vec<_>>().join(" ");
        *self.summary.refused.entry((peer, why)).or_default() += 1;
    }

    #[allow(clippy::too_many_arguments)]
    fn compare(
        &mut self,
        peer: Peer,
        seed: u64,
        rules: &RuleSet,
        requests: &[Request],
        ours: &[Seen],
        theirs: Vec<Option<Seen>>,
        votes: &[Option<Seen>],
    ) {
        let votes = votes.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        for (((request, ours), theirs), vote) in requests.iter().zip(ours).zip(theirs).zip(votes) {
            let count = self.summary.peers.entry(peer).or_default();
            let Some(theirs) = theirs else {
                count.lost += 1;
                continue;
            };
            count.pairs += 1;
            count.matches += ours.trace.len().min(theirs.trace.len()) as u64;
            match difference(ours, &theirs) {
                None => count.same += 1,
                Some(difference) => {
                    self.differs(peer, seed, (rules, request), (ours, &theirs), &difference, vote);
                }
            }
        }
    }

    fn differs(
        &mut self,
        peer: Peer,
        seed: u64,
        (rules, request): (&RuleSet, &Request),
        (ours, theirs): (&Seen, &Seen),
        difference: &Difference,
        vote: Option<&Seen>,
    ) {
        let outvoted = vote.is_some_and(|vote| agrees(ours, vote, difference));
        // One of a rule set is enough to look at.
        if self.summary.unclassified.contains(&(peer, seed)) {
            return;
        }
        let case = Case { rules, request, ours, theirs, difference, outvoted, minimal: false };
        let mut class = classify(peer, &case);
        let mut pair = (rules.clone(), request.clone());
        let mut shown = (difference.clone(), ours.clone(), theirs.clone());
        if class.is_none()
            || (self.options.examples && !self.shown.contains(&(peer, class.map_or("", |c| c.name))))
        {
            if class.is_none() && self.summary.problems.len() >= self.options.unclassified_max {
                return;
            }
            let rounds = match peer {
                _ if self.options.quick => 0,
                // Each takes an Apache.
                Peer::ModSecurity2 => 12,
                Peer::Reference | Peer::ModSecurity3 => 300,
            };
            let name = class.map(|class| class.name);
            // The pair that is then put to the vote need not be minimal, only without what the two
            // ModSecuritys disagree about.
            let reduced = self.reduced(peer, &pair, difference, name);
            let minimal = reduced.is_none() && !self.options.quick;
            pair = match reduced {
                Some(pair) => pair,
                None => minimise(pair, rounds, |pairs| self.first_like(peer, pairs, difference, name)),
            };
            if let Some((ours, theirs)) = self.both(peer, std::slice::from_ref(&pair)).pop().flatten()
                && let Some(difference) = crate::seen::difference(&ours, &theirs)
            {
                if class.is_none() {
                    let (rules, request) = (&pair.0, &pair.1);
                    let case = Case {
                        rules,
                        request,
                        ours: &ours,
                        theirs: &theirs,
                        difference: &difference,
                        outvoted: false,
                        minimal,
                    };
                    class = classify(peer, &case);
                }
                shown = (difference, ours, theirs);
            }
        }
        let text = || {
            let (difference, ours, theirs) = &shown;
            let request = String::from_utf8_lossy(&crate::wire(&pair.1)).into_owned();
            let list = |seen: &Seen| {
                seen.trace.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n    ")
                    + &format!("\n    {:?} {:?}", seen.interruption, seen.tx)
            };
            format!(
                "{peer:?}, seed {seed}: {difference}\n{}--\n{request}\n--\n  ours:\n    {}\n  theirs:\n    {}\n",
                pair.0.text(),
                list(ours),
                list(theirs)
            )
        };
        if let Some(class) = class
            && self.options.examples
            && !self.shown.contains(&(peer, class.name))
        {
            self.shown.push((peer, class.name));
            println!("== {}: {}", class.name, text());
        }
        match class {
            Some(class) if peer != Peer::ModSecurity3 || outvoted => {
                self.count(peer, class.kind, class.name, outvoted);
            }
            _ if peer == Peer::ModSecurity3 && self.two.is_some() => {
                let text = if class.is_none() { text() } else { String::new() };
                // A known difference need not be reduced, but ModSecurity 2 may agree where less is in its
                // way.
                if let Some(name) = class.map(|class| class.name)
                    && let Some(smaller) = self.reduced(peer, &pair, difference, Some(name))
                    && let Some((ours, theirs)) =
                        self.both(peer, std::slice::from_ref(&smaller)).pop().flatten()
                    && let Some(difference) = crate::seen::difference(&ours, &theirs)
                {
                    shown = (difference, ours, theirs);
                    pair = smaller;
                }
                let (difference, ours, _) = shown;
                self.pending.push(Pending { seed, pair, difference, ours, class, text });
            }
            Some(class) => self.count(peer, class.kind, class.name, false),
            None => {
                let text = text();
                self.summary.unclassified.insert((peer, seed));
                self.problem(text);
            }
        }
    }

    fn problem(&mut self, text: String) {
        println!("== unclassified: {text}");
        self.summary.problems.push(text);
    }

    /// The first pair that shows a difference like `wanted`, of the class called `name`.
    fn first_like(
        &mut self,
        peer: Peer,
        pairs: &[Pair],
        wanted: &Difference,
        name: Option<&str>,
    ) -> Option<usize> {
        let shows = |pair: &Pair, found: Option<(Seen, Seen)>| {
            let Some((ours, theirs)) = found else { return false };
            difference(&ours, &theirs).is_some_and(|difference| {
                let (rules, request) = (&pair.0, &pair.1);
                let case = Case {
                    rules,
                    request,
                    ours: &ours,
                    theirs: &theirs,
                    difference: &difference,
                    outvoted: false,
                    minimal: false,
                };
                difference.is_like(wanted) && classify(peer, &case).map(|class| class.name) == name
            })
        };
        // One Apache for all of them; the others are quick, and most often an early one does.
        if peer == Peer::ModSecurity2 {
            let all = self.both(peer, pairs);
            return pairs.iter().zip(all).position(|(pair, found)| shows(pair, found));
        }
        pairs.iter().position(|pair| {
            let found = self.both(peer, std::slice::from_ref(pair)).pop().flatten();
            shows(pair, found)
        })
    }

    /// Returns the results of this engine and of the peer for each pair.
    fn both(&mut self, peer: Peer, pairs: &[Pair]) -> Vec<Option<(Seen, Seen)>> {
        let theirs: Vec<Option<Seen>> = match peer {
            Peer::Reference => {
                let one = |(rules, request): &Pair| {
                    let ours = Ours::load(&rules.text()).ok()?;
                    ours.reference(request, &ours.engine(request))
                };
                pairs.iter().map(one).collect()
            }
            Peer::ModSecurity3 => {
                let Some(three) = &mut self.three else { return Vec::new() };
                let mut one = |(rules, request): &Pair| {
                    if let Loaded::Yes = three.load(rules) { three.run(request) } else { None }
                };
                pairs.iter().map(&mut one).collect()
            }
            Peer::ModSecurity2 => {
                let Some(two) = &mut self.two else { return Vec::new() };
                let batch: Vec<_> =
                    pairs.iter().map(|(rules, request)| (rules.clone(), vec![request.clone()])).collect();
                match two.run(&batch) {
                    Ok(results) => results.into_iter().map(|result| result.ok()?.pop()?).collect(),
                    Err(_) => return vec![None; pairs.len()],
                }
            }
        };
        let both = |((rules, request), theirs): (&Pair, Option<Seen>)| {
            Some((Ours::load(&rules.text()).ok()?.engine(request), theirs?))
        };
        pairs.iter().zip(theirs).map(both).collect()
    }
}
