//! The values of a transaction: every byte once, every value with its name, every transformed form remembered.

use portcullis_types::{Span, Variable};

use crate::{ChainId, Chains};

/// Values of one origin, in order of arrival. Collections of SecLang are one class or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Class {
    ArgsGet,
    ArgsGetNames,
    ArgsPost,
    ArgsPostNames,
    /// What [`ArgsGet`](Class::ArgsGet) and the three others are to other applications, where that differs: see
    /// `readings_of`.
    ArgsGetReadings,
    ArgsGetNamesReadings,
    ArgsPostReadings,
    ArgsPostNamesReadings,
    RequestHeaders,
    RequestHeadersNames,
    RequestCookies,
    RequestCookiesNames,
    Files,
    FilesNames,
    FilesSizes,
    FilesTmpContent,
    FilesTmpNames,
    Geo,
    MultipartFilename,
    MultipartName,
    MultipartPartHeaders,
    ResponseHeaders,
    ResponseHeadersNames,
    XmlText,
    /// Beside [`XmlText`](Class::XmlText), as the readings of arguments.
    XmlReadings,
    XmlAttributes,
    MatchedVars,
    MatchedVarsNames,
}

impl Class {
    /// All classes, by number.
    pub(crate) const ALL: [Class; CLASS_COUNT] = {
        use Class::*;
        [
            ArgsGet,
            ArgsGetNames,
            ArgsPost,
            ArgsPostNames,
            ArgsGetReadings,
            ArgsGetNamesReadings,
            ArgsPostReadings,
            ArgsPostNamesReadings,
            RequestHeaders,
            RequestHeadersNames,
            RequestCookies,
            RequestCookiesNames,
            Files,
            FilesNames,
            FilesSizes,
            FilesTmpContent,
            FilesTmpNames,
            Geo,
            MultipartFilename,
            MultipartName,
            MultipartPartHeaders,
            ResponseHeaders,
            ResponseHeadersNames,
            XmlText,
            XmlReadings,
            XmlAttributes,
            MatchedVars,
            MatchedVarsNames,
        ]
    };
}

pub(crate) const CLASS_COUNT: usize = Class::MatchedVarsNames as usize + 1;

/// The classes of a collection's second readings: rules test them, nothing counts them and no macro shows them.
pub(crate) fn readings_of(variable: Variable) -> &'static [Class] {
    use Class::*;
    match variable {
        Variable::Args => &[ArgsGetReadings, ArgsPostReadings],
        Variable::ArgsNames => &[ArgsGetNamesReadings, ArgsPostNamesReadings],
        Variable::ArgsGet => &[ArgsGetReadings],
        Variable::ArgsGetNames => &[ArgsGetNamesReadings],
        Variable::ArgsPost => &[ArgsPostReadings],
        Variable::ArgsPostNames => &[ArgsPostNamesReadings],
        _ => &[],
    }
}

/// The classes that make up a collection; none for variables that are not stored as classes.
pub(crate) fn classes_of(variable: Variable) -> &'static [Class] {
    use Class::*;
    match variable {
        Variable::Args => &[ArgsGet, ArgsPost],
        Variable::ArgsNames => &[ArgsGetNames, ArgsPostNames],
        Variable::ArgsGet => &[ArgsGet],
        Variable::ArgsGetNames => &[ArgsGetNames],
        Variable::ArgsPost => &[ArgsPost],
        Variable::ArgsPostNames => &[ArgsPostNames],
        Variable::RequestHeaders => &[RequestHeaders],
        Variable::RequestHeadersNames => &[RequestHeadersNames],
        Variable::RequestCookies => &[RequestCookies],
        Variable::RequestCookiesNames => &[RequestCookiesNames],
        Variable::Files => &[Files],
        Variable::FilesNames => &[FilesNames],
        Variable::FilesSizes => &[FilesSizes],
        Variable::FilesTmpContent => &[FilesTmpContent],
        Variable::FilesTmpnames => &[FilesTmpNames],
        Variable::Geo => &[Geo],
        Variable::MultipartFilename => &[MultipartFilename],
        Variable::MultipartName => &[MultipartName],
        Variable::MultipartPartHeaders => &[MultipartPartHeaders],
        Variable::ResponseHeaders => &[ResponseHeaders],
        Variable::ResponseHeadersNames => &[ResponseHeadersNames],
        Variable::MatchedVars => &[MatchedVars],
        Variable::MatchedVarsNames => &[MatchedVarsNames],
        _ => &[],
    }
}

const NONE: u32 = u32::MAX;

/// What a transformation costs, whatever the text; see [`crate::work`].
pub(crate) const TRANSFORMATION_UNITS: u64 = 20;

/// Names that are remembered while a body is read: lists of objects have the same ones again and again.
const NAMES: usize = 16;

/// Position of a value in a [`Store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueId(pub(crate) u32);

#[derive(Clone, Copy, Debug)]
struct Value {
    key: Span,
    data: Span,
    /// Newest entry of this value's list in [`Store::forms`].
    forms: u32,
}

/// A value after a transformation chain.
#[derive(Clone, Copy, Debug)]
struct Form {
    chain: ChainId,
    data: Span,
    next: u32,
}

/// Variables and classes with values that the prefilter has not looked at, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fresh {
    pub(crate) scalars: [u64; Variable::ALL.len().div_ceil(64)],
    pub(crate) classes: u64,
}

/// What [`Store::rewind`] goes back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    bytes: usize,
    forms: usize,
    value: ValueId,
    value_forms: u32,
}

/// All bytes and values of one transaction.
#[derive(Debug)]
pub(crate) struct Store {
    /// Every text: message parts, decoded values, forms, expanded macros. Spans point in here.
    pub(crate) bytes: Vec<u8>,
    values: Vec<Value>,
    classes: [Vec<u32>; CLASS_COUNT],
    /// Classes that have had a value, a bit for each.
    used: u64,
    scalars: [u32; Variable::ALL.len()],
    forms: Vec<Form>,
    scratch: Vec<u8>,
    /// What transformations have cost since [`Store::take_transformed`].
    transformed: u64,
    /// Names that came lately, by length and last byte.
    names: [Span; NAMES],
    /// Grows with each value that rules have not made.
    news: u32,
    fresh: Fresh,
}

impl Default for Store {
    fn default() -> Self {
        Store {
            bytes: Vec::new(),
            values: Vec::new(),
            classes: std::array::from_fn(|_| Vec::new()),
            used: 0,
            scalars: [NONE; Variable::ALL.len()],
            forms: Vec::new(),
            scratch: Vec::new(),
            transformed: 0,
            names: [Span::default(); NAMES],
            news: 0,
            fresh: Fresh::default(),
        }
    }
}

impl Store {
    /// Capacity in bytes above which buffers are given back between transactions.
    const KEPT_BYTES_MAX: usize = 1 << 20;

    /// Empties the store but for these bytes, keeping reasonable buffers.
    pub(crate) fn reset(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.shrink_to(Self::KEPT_BYTES_MAX);
        self.bytes.extend_from_slice(bytes);
        self.values.clear();
        self.values.shrink_to(Self::KEPT_BYTES_MAX / 32);
        while self.used != 0 {
            let class = &mut self.classes[self.used.trailing_zeros() as usize];
            class.clear();
            class.shrink_to(4096);
            self.used &= self.used - 1;
        }
        self.scalars.fill(NONE);
        self.forms.clear();
        self.forms.shrink_to(Self::KEPT_BYTES_MAX / 32);
        self.scratch.clear();
        self.scratch.shrink_to(Self::KEPT_BYTES_MAX);
        self.transformed = 0;
        self.names = [Span::default(); NAMES];
        self.news = 0;
        self.fresh = Fresh::default();
    }

    /// Bytes of memory that it takes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.values.capacity() * size_of::<Value>()
            + self.forms.capacity() * size_of::<Form>()
            + self.scratch.capacity()
    }

    /// Keeps `text` and says where it is.
    pub(crate) fn push(&mut self, text: &[u8]) -> Span {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        Span::new(start, self.bytes.len())
    }

    /// As [`push`](Self::push), but what stands at `place` already is not kept again.
    pub(crate) fn push_at(&mut self, text: &[u8], place: Span) -> Span {
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

    pub(crate) fn text(&self, span: Span) -> &[u8] {
        span.of(&self.bytes)
    }

    /// A value that belongs to no class: made up for one evaluation.
    pub(crate) fn temporary(&mut self, key: Span, data: Span) -> ValueId {
        self.values.push(Value { key, data, forms: NONE });
        ValueId(self.values.len() as u32 - 1)
    }

    pub(crate) fn add(&mut self, class: Class, key: Span, data: Span) -> ValueId {
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
    pub(crate) fn add_pair(&mut self, values: Class, names: Class, name: &[u8], value: &[u8]) {
        self.add_pair_at(values, names, (name, Span::default()), (value, Span::default()));
    }

    /// The same for a name and a value that may stand at these places already.
    pub(crate) fn add_pair_at(
        &mut self,
        values: Class,
        names: Class,
        name: (&[u8], Span),
        value: (&[u8], Span),
    ) {
        let name = self.push_name(name.0, name.1);
        let value = self.push_at(value.0, value.1);
        let id = self.values.len() as u32;
        let entry = |data| Value { key: name, data, forms: NONE };
        self.values.extend_from_slice(&[entry(value), entry(name)]);
        self.enter(values, ValueId(id));
        self.enter(names, ValueId(id + 1));
    }

    pub(crate) fn class(
        &self,
        class: Class,
    ) -> impl ExactSizeIterator<Item = ValueId> + DoubleEndedIterator + '_ {
        self.classes[class as usize].iter().map(|&id| ValueId(id))
    }

    pub(crate) fn class_value(&self, class: Class, at: usize) -> ValueId {
        ValueId(self.classes[class as usize][at])
    }

    pub(crate) fn class_len(&self, class: Class) -> usize {
        self.classes[class as usize].len()
    }

    pub(crate) fn clear_class(&mut self, class: Class) {
        self.classes[class as usize].clear();
    }

    pub(crate) fn set_scalar(&mut self, variable: Variable, text: &[u8]) {
        let span = self.push(text);
        self.set_scalar_span(variable, span);
    }

    pub(crate) fn set_scalar_span(&mut self, variable: Variable, span: Span) {
        let id = self.temporary(Span::default(), span);
        self.scalars[variable as usize] = id.0;
        self.news += 1;
        self.fresh.scalars[variable as usize / 64] |= 1 << (variable as u32 % 64);
    }

    /// The same number as before if no value has come since.
    pub(crate) fn news(&self) -> u32 {
        self.news
    }

    /// What has come since the last call.
    pub(crate) fn take_fresh(&mut self) -> Fresh {
        std::mem::take(&mut self.fresh)
    }

    pub(crate) fn scalar(&self, variable: Variable) -> Option<ValueId> {
        let id = self.scalars[variable as usize];
        (id != NONE).then_some(ValueId(id))
    }

    pub(crate) fn key(&self, value: ValueId) -> Span {
        self.values[value.0 as usize].key
    }

    pub(crate) fn data(&self, value: ValueId) -> Span {
        self.values[value.0 as usize].data
    }

    /// The form of `value` after `chain`, made now if it is new.
    pub(crate) fn form(&mut self, chains: &Chains, value: ValueId, chain: ChainId) -> Span {
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

    /// What transformations have cost since the last call.
    pub(crate) fn take_transformed(&mut self) -> u64 {
        std::mem::take(&mut self.transformed)
    }

    /// A point to go back to if the forms made after it for `value` turn out not to be needed.
    pub(crate) fn mark(&self, value: ValueId) -> Mark {
        Mark {
            bytes: self.bytes.len(),
            forms: self.forms.len(),
            value,
            value_forms: self.values[value.0 as usize].forms,
        }
    }

    /// Forgets everything stored since `mark`. Only forms of the marked value may have been made since.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        self.forms.truncate(mark.forms);
        self.values[mark.value.0 as usize].forms = mark.value_forms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_come_again_are_kept_once() {
        let mut store = Store::default();
        let entered = |store: &mut Store, name: &str| {
            store.add_pair(Class::ArgsPost, Class::ArgsPostNames, name.as_bytes(), b"value");
            let last = store.class_value(Class::ArgsPostNames, store.class_len(Class::ArgsPostNames) - 1);
            assert_eq!(store.text(store.data(last)), name.as_bytes());
            store.data(last)
        };
        let first = entered(&mut store, "items.sku");
        // Of the same length, with the same last byte.
        let other = entered(&mut store, "items.sxu");
        assert_ne!(first, other);
        assert_eq!(entered(&mut store, "items.sxu"), other);
        assert_ne!(entered(&mut store, "items.sku"), other);
        entered(&mut store, "");
        // Names of every length and last byte, some of which share a place.
        for round in 0..300usize {
            entered(&mut store, &format!("{}{}", "n".repeat(round % 40), round % 7));
        }
        let names = store.class_len(Class::ArgsPostNames);
        assert_eq!((names, store.class_len(Class::ArgsPost)), (305, 305));
        // What is left of a transaction is nothing to the next.
        store.reset(b"others' bytes");
        assert_eq!(entered(&mut store, "items.sku").start, 13);
    }
}
