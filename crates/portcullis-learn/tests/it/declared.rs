//! Fields whose types are declared.

use std::sync::Arc;

use portcullis_learn::{
    DeclaredField, DeclaredFields, FieldPlace, Fields, Knowledge, Limits, Site, Source, Store, TypeSet,
    ValueType,
};

fn judged(fields: &mut Fields, declared: &Arc<DeclaredFields>, name: &str, value: &str) -> Option<String> {
    fields.clear();
    fields.declare(Arc::clone(declared));
    fields.note(FieldPlace::Query, name.as_bytes(), value.as_bytes());
    let (_, _, unusual) = fields.unusual().into_iter().next()?;
    Some(format!("{}: {} {}", unusual.evidence, unusual.kind.name(), unusual.syntax))
}

#[test]
fn judged_by_the_declaration() {
    let mut declared = DeclaredFields::default();
    let whole = DeclaredField::of_types(TypeSet::of(&[ValueType::Whole]), "declared");
    declared.add(FieldPlace::Query, b"id", whole.clone());
    declared.add(FieldPlace::Query, b"text", DeclaredField::open());
    let values = [&b"name"[..], b"7", b"-1 day"];
    let list = DeclaredField::of_types(TypeSet::default(), "list").with_values(values.into_iter());
    declared.add(FieldPlace::Query, b"sort", list);
    // What is declared twice may carry either.
    declared.add(FieldPlace::Query, b"both", whole);
    declared.add(FieldPlace::Query, b"both", DeclaredField::of_types(TypeSet::of(&[ValueType::Uuid]), "x"));
    let (declared, mut fields) = (Arc::new(declared), Fields::default());
    let mut check = |name: &str, value: &str| judged(&mut fields, &declared, name, value);
    for (name, value) in [
        ("id", "7"),
        ("text", "7' or (1=1)"),
        ("sort", "name"),
        ("sort", "-1 day"),
        ("sort", "8"),
        ("both", "7"),
        ("both", "123e4567-e89b-12d3-a456-426614174000"),
        ("other", "7' or (1=1)"),
    ] {
        assert_eq!(check(name, value), None, "{name}={value}");
    }
    assert_eq!(check("id", "x").unwrap(), "declared: word ");
    assert_eq!(check("ID[3]", "7'").unwrap(), "declared: line apostrophes");
    assert_eq!(check("sort", "-2 days").unwrap(), "list: line ");
    assert!(check("both", "x").is_some());
}

/// Nothing that was sent before a value hides it, and free text is not closed by what it has carried.
#[test]
fn beside_what_was_learned() {
    let (site, mut store, mut fields) = (Site::default(), Store::new(Limits::default()), Fields::default());
    for number in 0..400u32 {
        fields.clear();
        fields.note(FieldPlace::Query, b"text", number.to_string().as_bytes());
        fields.note(FieldPlace::Query, b"id", number.to_string().as_bytes());
        let source = Source { network: number % 40, day: number % 14, ..Source::default() };
        site.observe(source, b"GET", b"/item", &fields);
    }
    store.learn(&site.take());
    let knowledge = Arc::new(Knowledge::of(&store));
    let mut declared = DeclaredFields::default();
    declared.add(FieldPlace::Query, b"text", DeclaredField::open());
    declared.add(
        FieldPlace::Query,
        b"day",
        DeclaredField::of_types(TypeSet::of(&[ValueType::Date]), "declared"),
    );
    let declared = Arc::new(declared);
    let mut unusual = |is_declared: bool, pairs: &[(&str, &str)]| {
        fields.clear();
        fields.judge_by(Arc::clone(&knowledge), b"GET", b"/item");
        if is_declared {
            fields.declare(Arc::clone(&declared));
        }
        for number in 0..300 {
            fields.note(FieldPlace::Query, format!("p{number}").as_bytes(), b"x");
        }
        for (name, value) in pairs {
            fields.note(FieldPlace::Query, name.as_bytes(), value.as_bytes());
        }
        fields.unusual().len()
    };
    assert_eq!(unusual(false, &[("text", "a'")]), 1);
    assert_eq!(unusual(true, &[("text", "a'")]), 0);
    assert_eq!(unusual(true, &[("id", "a'")]), 1, "what is not declared is judged as before");
    assert_eq!(unusual(true, &[("day", "a'"), ("DAY", "b'")]), 1);
}
