//! A class that several detectors look for: their findings add up, and each keeps its own kinds.

use portcullis_semantic::{
    Analysis, Class, Detector, Detectors, Found, Hint, Input, Level, Location, Place, Profile,
};
use portcullis_types::Span;

mod first {
    portcullis_semantic::kinds! {
        reference "https://example.org/";
        ONE "test.one" Error Quotable "what is not enough by itself";
    }
}

mod second {
    portcullis_semantic::kinds! {
        reference "https://example.org/";
        TWO "test.two" Error Quotable "what is not enough by itself, either";
    }
}

/// Finds its word.
#[derive(Debug)]
struct Word(&'static Profile);

static FIRST: Profile = Profile::new(Class::Code, first::KINDS).hints(&[Hint::text("one")]);
/// It asks for more than the first.
static SECOND: Profile =
    Profile::new(Class::Code, second::KINDS).hints(&[Hint::text("two")]).weights("bias\t-4.5\n");

impl Detector for Word {
    fn profile(&self) -> &'static Profile {
        self.0
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        found.add(first::ONE, Span::new(0, input.text.len()));
    }
}

#[test]
fn findings_of_all_detectors_of_a_class_add_up() {
    let detectors = Detectors::of(vec![Box::new(Word(&FIRST)), Box::new(Word(&SECOND))]).unwrap();
    let look = |text: &str| {
        let mut analysis = Analysis::new();
        analysis.value(&detectors, Location::of(Place::Query), text.as_bytes());
        let scores: Vec<_> = analysis.scores(&detectors).collect();
        let [score] = scores[..] else { panic!("{text}: {scores:?}") };
        let ids: Vec<&str> = analysis.findings_of(&detectors, &score).map(|found| found.kind.id).collect();
        let terms: f32 = analysis.terms(&detectors, &score).iter().map(|(_, weight)| weight).sum();
        assert!((terms - score.points).abs() < 1e-4, "{text}: {terms} {score:?}");
        (ids.join(" "), score.points, score.blocks(Level::Balanced))
    };
    assert_eq!(look("of one -"), ("test.one".to_owned(), -1.0, false));
    assert_eq!(look("of two -"), ("test.two".to_owned(), -2.0, false));
    assert_eq!(look("of one and two -"), ("test.one test.two".to_owned(), 1.5, true));
}

/// What is noted beside the detectors has the kind that was meant, not one of the same number.
#[test]
fn a_note_has_the_kind_of_its_table() {
    let detectors = Detectors::of(vec![Box::new(Word(&FIRST)), Box::new(Word(&SECOND))]).unwrap();
    let mut analysis = Analysis::new();
    analysis.note(&detectors, Location::of(Place::RawBody), second::KINDS, second::TWO, b"evidence");
    assert_eq!(analysis.findings()[0].kind.id, "test.two");
}

/// A class without a detector in the list of detectors is a name that finds nothing.
#[test]
fn every_class_has_a_detector() {
    let detectors = Detectors::new();
    let looked_for: Vec<Class> = detectors.kinds().map(|(_, class, _)| class).collect();
    let without: Vec<&str> =
        Class::ALL.iter().filter(|class| !looked_for.contains(class)).map(|class| class.name()).collect();
    assert!(without.is_empty(), "no detector in `detectors::all` is for {without:?}");
}
