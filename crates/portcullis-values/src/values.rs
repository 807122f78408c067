//! The values of a transaction: every byte once, every value with its name, every transformed form
//! remembered.

use std::collections::HashMap;
use std::hash::BuildHasher as _;

use portcullis_types::{Span, TextHash, Variable};

use crate::class::CLASS_COUNT;
use crate::{ChainId, Chains, Class};

const NONE: u32 = u32::MAX;

/// The base cost of a transformation, for any text; in units of work (about a nanosecond).
pub const TRANSFORMATION_UNITS: u64 = 20;

/// Names that are remembered while a body is read: lists of objects have the same ones again and again.
const NAMES: usize = 16;

/// Position of a value in a [`Values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueId(u32);

impl ValueId {
    /// No value: it must not be looked up.
    pub const NONE: ValueId = ValueId(NONE);
}

#[derive(Clone, Copy, Debug)]
struct Value {
    key: Span,
    data: Span,
    /// Newest entry of this value's list in [`Values::forms`].
    forms: u32,
}

/// A value after a transformation chain.
#[derive(Clone, Copy, Debug)]
struct Form {
    chain: ChainId,
    data: Span,
    next: u32,
}

/// Variables and classes with values that no caller has [taken note of](Values::take_fresh), a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fresh {
    /// By number of the variable.
    pub scalars: [u64; Variable::ALL.len().div_ceil(64)],
    /// By number of the class.
    pub classes: u64,
}

/// The state that [`Values::rewind`] restores.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    bytes: usize,
    forms: usize,
    value: ValueId,
    value_forms: u32,
}

/// All bytes and values of one transaction.
#[derive(Debug)]
pub struct Values {
    /// Every text: message parts, decoded values, forms, expanded macros. Spans point in here.
    bytes: Vec<u8>,
    values: Vec<Value>,
    classes: [Vec<u32>; CLASS_COUNT],
    /// Classes that have had a value, a bit for each.
    used: u64,
    scalars: [u32; Variable::ALL.len()],
    forms: Vec<Form>,
    scratch: Vec<u8>,
    /// The cost of transformations since [`Values::take_transformed`].
    transformed: u64,
    /// Names that came lately, by length and last byte.
    names: [Span; NAMES],
    /// Values of texts that rules made, by place and by text.
    made: Made,
    /// Grows with each value that rules have not made.
    news: u32,
    fresh: Fresh,
}

/// The values of [`Values::made`].
#[derive(Debug, Default)]
struct Made {
    /// A value for each place that was asked for.
    by_place: HashMap<Span, ValueId, TextHash>,
    /// The first value of a text, by its hash. Seeded anew for each store: clients choose the texts.
    by_text: HashMap<u64, ValueId>,
}

impl Made {
    fn reset(&mut self) {
        self.by_place.clear();
        self.by_place.shrink_to(1024);
        self.by_text.clear();
        self.by_text.shrink_to(1024);
    }
}

impl Default for Values {
    fn default() -> Self {
        Values {
            bytes: Vec::new(),
            values: Vec::new(),
            classes: std::array::from_fn(|_| Vec::new()),
            used: 0,
            scalars: [NONE; Variable::ALL.len()],
            forms: Vec::new(),
            scratch: Vec::new(),
            transformed: 0,
            names: [Span::default(); NAMES],
            made: Made::default(),
            news: 0,
            fresh: Fresh::default(),
        }
    }
}

impl Values {
    /// Bytes of memory that a name and a value take, beside their texts.
    pub const PAIR_BYTES: usize = 2 * (size_of::<Value>() + size_of::<u32>());

    /// Capacity in bytes above which buffers are given back between transactions.
    const KEPT_BYTES_MAX: usize = 1 << 20;

    /// Empties the store, keeping reasonable buffers: it may wait long for its next transaction.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(Self::KEPT_BYTES_MAX);
        self.values.clear();
        self.values.shrink_to(Self::KEPT_BYTES_MAX / 32);
        while self.used != 0 {
            let class = &mut self.classes[self.used.trailing_zeros() as usize];
            class.clear();
            class.shrink_to(4096);
            self.used &= self.used - 1;
        }
        self.forms.clear();
        self.forms.shrink_to(Self::KEPT_BYTES_MAX / 32);
        self.scratch.clear();
        self.scratch.shrink_to(Self::KEPT_BYTES_MAX);
    }

    /// Empties the store but for these bytes, keeping reasonable buffers.
    pub fn reset(&mut self, bytes: &[u8]) {
        self.clear();
        self.bytes.extend_from_slice(bytes);
        self.scalars.fill(NONE);
        self.transformed = 0;
        self.names = [Span::default(); NAMES];
        self.made.reset();
        self.news = 0;
        self.fresh = Fresh::default();
    }

    /// Bytes of memory that it takes.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.values.capacity() * size_of::<Value>()
            + self.forms.capacity() * size_of::<Form>()
            + self.classes.iter().map(|class| class.capacity() * size_of::<u32>()).sum::<usize>()
            + self.scratch.capacity()
    }

    /// Reserves memory for `pairs` more under these classes, whose texts take `bytes`.
    pub fn expect_pairs(&mut self, (values, names): (Class, Class), pairs: usize, bytes: usize) {
        self.bytes.reserve_exact(bytes);
        self.values.reserve_exact(2 * pairs);
        for class in [values, names] {
            self.classes[class as usize].reserve_exact(pairs);
        }
    }

    /// Keeps `text` and says where it is.
    pub fn push(&mut self, text: &[u8]) -> Span {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        Span::new(start, self.bytes.len())
    }

    /// As [`push`](Self::push), but what stands at `place` already is not kept again.
    pub fn push_at(&mut self, text: &[u8], place: Span) -> Span {
        if self.text(place) == text { place } else { self.push(text) }
    }

    /// As [`push_at`](Self::push_at), but one of the names that came lately is kept once.
    fn push_name(&mut self, name: &[u8], place: Span) -> Span {
        let last = name.last().copied().unwrap_or_default();
        let number = (name.len() ^ usize::from(last)) % NAMES;
        if self.text(self.names[number]) != name {
            self.names[number] = self.push_at(name, place);
        }
        self.names[number]
    }

    /// The bytes at `span`.
    pub fn text(&self, span: Span) -> &[u8] {
        span.of(&self.bytes)
    }

    /// The same, for who puts texts behind them. Nothing that is there may change.
    pub fn texts_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// All bytes that are kept: what spans point into.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, at the end.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Takes back what was [pushed](Self::push) last: `span` and all behind it.
    pub fn pop(&mut self, span: Span) {
        self.bytes.truncate(span.start as usize);
    }

    /// A value that belongs to no class: made up for one evaluation.
    pub fn temporary(&mut self, key: Span, data: Span) -> ValueId {
        self.values.push(Value { key, data, forms: NONE });
        ValueId(self.values.len() as u32 - 1)
    }

    /// The value of a text that a rule made and that stays where it is: one for all such texts that are the
    /// same, so that its forms are made once for all callers. It has the name under which it was asked for
    /// first.
    pub fn made(&mut self, key: Span, data: Span) -> ValueId {
        if let Some(&known) = self.made.by_place.get(&data) {
            return known;
        }
        let hash = self.made.by_text.hasher().hash_one(self.text(data));
        let same = self.made.by_text.get(&hash).copied();
        let value = match same.filter(|&known| self.text(self.data(known)) == self.text(data)) {
            Some(known) => known,
            None => {
                let new = self.temporary(key, data);
                self.made.by_text.insert(hash, new);
                new
            }
        };
        self.made.by_place.insert(data, value);
        value
    }

    /// A value with its name, entered under a class.
    pub fn add(&mut self, class: Class, key: Span, data: Span) -> ValueId {
        let id = self.temporary(key, data);
        self.enter(class, id);
        id
    }

    #[inline]
    fn enter(&mut self, class: Class, id: ValueId) {
        self.classes[class as usize].push(id.0);
        self.news += u32::from(!matches!(class, Class::MatchedVars | Class::MatchedVarsNames));
        self.fresh.classes |= 1 << class as u32;
        self.used |= 1 << class as u32;
    }

    /// A name and a value, entered under both of their classes.
    pub fn add_pair(&mut self, values: Class, names: Class, name: &[u8], value: &[u8]) {
        self.add_pair_at(values, names, (name, Span::default()), (value, Span::default()));
    }

    /// The same for a name and a value that may stand at these places already.
    pub fn add_pair_at(&mut self, values: Class, names: Class, name: (&[u8], Span), value: (&[u8], Span)) {
        let name = self.push_name(name.0, name.1);
        let value = self.push_at(value.0, value.1);
        let id = self.values.len() as u32;
        let entry = |data| Value { key: name, data, forms: NONE };
        self.values.extend_from_slice(&[entry(value), entry(name)]);
        self.enter(values, ValueId(id));
        self.enter(names, ValueId(id + 1));
    }

    /// The values of a class, in order of arrival.
    pub fn class(&self, class: Class) -> impl ExactSizeIterator<Item = ValueId> + DoubleEndedIterator + '_ {
        self.classes[class as usize].iter().map(|&id| ValueId(id))
    }

    /// The value of a class at this place, which must be below [`class_len`](Self::class_len).
    pub fn class_value(&self, class: Class, at: usize) -> ValueId {
        ValueId(self.classes[class as usize][at])
    }

    /// Returns the number of values in a class.
    pub fn class_len(&self, class: Class) -> usize {
        self.classes[class as usize].len()
    }

    /// Forgets the values of a class.
    pub fn clear_class(&mut self, class: Class) {
        self.classes[class as usize].clear();
    }

    /// Gives a variable its one value.
    pub fn set_scalar(&mut self, variable: Variable, text: &[u8]) {
        let span = self.push(text);
        self.set_scalar_span(variable, span);
    }

    /// The same for a value that is kept already.
    pub fn set_scalar_span(&mut self, variable: Variable, span: Span) {
        let id = self.temporary(Span::default(), span);
        self.scalars[variable as usize] = id.0;
        self.news += 1;
        self.fresh.scalars[variable as usize / 64] |= 1 << (variable as u32 % 64);
    }

    /// The same number as before if no value has come since.
    pub fn news(&self) -> u32 {
        self.news
    }

    /// Returns the values that were added since the last call.
    pub fn take_fresh(&mut self) -> Fresh {
        std::mem::take(&mut self.fresh)
    }

    /// The value of a variable that has one.
    pub fn scalar(&self, variable: Variable) -> Option<ValueId> {
        let id = self.scalars[variable as usize];
        (id != NONE).then_some(ValueId(id))
    }

    /// The name of a value.
    pub fn key(&self, value: ValueId) -> Span {
        self.values[value.0 as usize].key
    }

    /// The text of a value.
    pub fn data(&self, value: ValueId) -> Span {
        self.values[value.0 as usize].data
    }

    /// The form of `value` after `chain`, made now if it is new.
    pub fn form(&mut self, chains: &Chains, value: ValueId, chain: ChainId) -> Span {
        if chain == ChainId::IDENTITY {
            return self.data(value);
        }
        let mut at = self.values[value.0 as usize].forms;
        while at != NONE {
            let form = self.forms[at as usize];
            if form.chain == chain {
                return form.data;
            }
            at = form.next;
        }
        let data = self.new_form(chains, value, chain);
        let next = self.values[value.0 as usize].forms;
        self.values[value.0 as usize].forms = self.forms.len() as u32;
        self.forms.push(Form { chain, data, next });
        data
    }

    /// Recursion depth is the length of the chain, which the plan bounds.
    fn new_form(&mut self, chains: &Chains, value: ValueId, chain: ChainId) -> Span {
        let Some(node) = chains.node(chain) else { return self.data(value) };
        let parent = self.form(chains, value, node.parent);
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        self.transformed += TRANSFORMATION_UNITS + parent.len() as u64;
        let changed = node.last.apply_with(parent.of(&self.bytes), chains.unicode_map.as_deref(), &mut out);
        let data = if changed { self.push(&out) } else { parent };
        self.scratch = out;
        data
    }

    /// Returns the cost of transformations since the last call.
    pub fn take_transformed(&mut self) -> u64 {
        std::mem::take(&mut self.transformed)
    }

    /// A point to go back to if the forms made after it for `value` turn out not to be needed.
    pub fn mark(&self, value: ValueId) -> Mark {
        Mark {
            bytes: self.bytes.len(),
            forms: self.forms.len(),
            value,
            value_forms: self.values[value.0 as usize].forms,
        }
    }

    /// Forgets everything stored since `mark`. Only forms of the marked value may have been made since.
    pub fn rewind(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        self.forms.truncate(mark.forms);
        self.values[mark.value.0 as usize].forms = mark.value_forms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_rules_made_are_one_value_if_they_are_the_same() {
        let mut values = Values::default();
        let (key, first) = (values.push(b"k"), values.push(b"text"));
        let (second, other) = (values.push(b"text"), values.push(b"Text"));
        let value = values.made(key, first);
        assert_eq!((values.made(key, first), values.made(key, second)), (value, value));
        let differs = values.made(key, other);
        assert_ne!(differs, value);
        assert_eq!(values.text(values.data(differs)), b"Text");
        // The next message begins without them, though its texts stand at the same places.
        values.reset(b"kTEXT");
        let again = values.made(key, first);
        assert_eq!(values.text(values.data(again)), b"TEXT");
    }

    #[test]
    fn names_that_come_again_are_kept_once() {
        let mut values = Values::default();
        let entered = |values: &mut Values, name: &str| {
            values.add_pair(Class::ArgsPost, Class::ArgsPostNames, name.as_bytes(), b"value");
            let last = values.class_value(Class::ArgsPostNames, values.class_len(Class::ArgsPostNames) - 1);
            assert_eq!(values.text(values.data(last)), name.as_bytes());
            values.data(last)
        };
        let first = entered(&mut values, "items.sku");
        // Of the same length, with the same last byte.
        let other = entered(&mut values, "items.sxu");
        assert_ne!(first, other);
        assert_eq!(entered(&mut values, "items.sxu"), other);
        assert_ne!(entered(&mut values, "items.sku"), other);
        entered(&mut values, "");
        // Names of every length and last byte, some of which share a place.
        for round in 0..300usize {
            entered(&mut values, &format!("{}{}", "n".repeat(round % 40), round % 7));
        }
        let names = values.class_len(Class::ArgsPostNames);
        assert_eq!((names, values.class_len(Class::ArgsPost)), (305, 305));
        // Bytes left of one transaction do not reach the next.
        values.reset(b"others' bytes");
        assert_eq!(entered(&mut values, "items.sku").start, 13);
    }
}
