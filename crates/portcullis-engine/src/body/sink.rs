//! Arguments, files and XML nodes that a parser finds, on their way into values.

use portcullis_http::body::{Arg, BodySink};
use portcullis_types::Span;
use portcullis_values::{ValueId, Values};

use crate::Class;
use crate::xml::Builder;

/// State that is kept between the events of a body.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) field: Span,
    pub(super) content: Option<Span>,
    /// By entry of `FILES_TMPNAMES`; nothing where the content is not kept.
    pub(super) contents: Vec<(ValueId, Span)>,
    pub(super) combined_size: u64,
    pub(super) xml_text: Vec<u8>,
    pub(super) is_xml: bool,
    /// Prefix of the names of kept files; `None` if files are not kept.
    pub(super) name: Option<String>,
    pub(super) tree: Option<Box<Builder>>,
    /// Bytes of the store up to which arguments are entered.
    pub(super) texts_max: usize,
    /// There were more.
    pub(super) is_full: bool,
}

impl Files {
    /// Bytes of memory that it takes, but for the tree.
    pub(super) fn held_bytes(&self) -> usize {
        self.xml_text.capacity() + self.contents.capacity() * size_of::<(ValueId, Span)>()
    }

    pub(super) fn store_xml(&mut self, store: &mut Values) {
        if std::mem::take(&mut self.is_xml) {
            let text = std::mem::take(&mut self.xml_text);
            let text = store.push(&text);
            store.add(Class::XmlText, Span::default(), text);
        }
    }
}

/// The value classes that store the arguments of one origin.
#[derive(Clone, Copy)]
pub(super) struct Classes {
    pub(super) values: Class,
    pub(super) names: Class,
    pub(super) value_readings: Class,
    pub(super) name_readings: Class,
}

pub(super) const QUERY: Classes = Classes {
    values: Class::ArgsGet,
    names: Class::ArgsGetNames,
    value_readings: Class::ArgsGetReadings,
    name_readings: Class::ArgsGetNamesReadings,
};

pub(super) const BODY: Classes = Classes {
    values: Class::ArgsPost,
    names: Class::ArgsPostNames,
    value_readings: Class::ArgsPostReadings,
    name_readings: Class::ArgsPostNamesReadings,
};

/// Enters what a parser finds into the store.
pub(super) struct Sink<'a> {
    pub(super) store: &'a mut Values,
    pub(super) classes: Classes,
    pub(super) files: Option<&'a mut Files>,
    pub(super) keep_files: bool,
    /// The span of the parsed bytes in the store, if they are in it.
    pub(super) at: Option<Span>,
}

impl<'a> Sink<'a> {
    pub(super) fn new(store: &'a mut Values, classes: Classes, keep_files: bool) -> Self {
        Sink { store, classes, files: None, keep_files, at: None }
    }

    pub(super) fn with_files(store: &'a mut Values, files: &'a mut Files, keep_files: bool) -> Self {
        Sink { store, classes: BODY, files: Some(files), keep_files, at: None }
    }
}

/// Enters the arguments that a parser finds as second readings, and nothing else.
pub(super) struct Readings<'a>(pub(super) Sink<'a>);

impl BodySink for Readings<'_> {
    fn arg(&mut self, arg: Arg<'_>) {
        self.0.arg_reading(arg.name, arg.value);
        self.0.name_reading(arg.name);
    }
}

impl Sink<'_> {
    fn tree(&mut self) -> Option<&mut Builder> {
        self.files.as_mut()?.tree.as_deref_mut()
    }

    /// True if another argument may be entered.
    fn has_room(&mut self) -> bool {
        let Some(files) = &mut self.files else { return true };
        files.is_full |= self.store.bytes().len() > files.texts_max;
        !files.is_full
    }
}

impl BodySink for Sink<'_> {
    fn arg(&mut self, arg: Arg<'_>) {
        if !self.has_room() {
            return;
        }
        let Classes { values, names, .. } = self.classes;
        let Some(at) = self.at else { return self.store.add_pair(values, names, arg.name, arg.value) };
        // Where the two stand if nothing in them is encoded.
        let value = at.start as usize + arg.raw_value.start as usize;
        let name_end = value.saturating_sub(1);
        let name = Span::new(name_end.saturating_sub(arg.name.len()), name_end);
        let value = Span::new(value, value + arg.value.len());
        self.store.add_pair_at(values, names, (arg.name, name), (arg.value, value));
    }

    fn arg_reading(&mut self, name: &[u8], value: &[u8]) {
        if !self.has_room() {
            return;
        }
        let name = self.store.push(name);
        let value = self.store.push(value);
        self.store.add(self.classes.value_readings, name, value);
    }

    fn name_reading(&mut self, name: &[u8]) {
        if !self.has_room() {
            return;
        }
        let name = self.store.push(name);
        self.store.add(self.classes.name_readings, name, name);
    }

    fn xml_reading(&mut self, text: &[u8]) {
        let text = self.store.push(text);
        self.store.add(Class::XmlReadings, Span::default(), text);
    }

    fn part(&mut self, name: &[u8], filename: Option<&[u8]>) {
        let name = self.store.push(name);
        self.store.add(Class::MultipartName, name, name);
        if let Some(filename) = filename {
            let filename = self.store.push(filename);
            self.store.add(Class::MultipartFilename, name, filename);
        }
    }

    fn part_header(&mut self, part_name: &[u8], line: &[u8]) {
        let key = self.store.push(part_name);
        let line = self.store.push(line);
        self.store.add(Class::MultipartPartHeaders, key, line);
    }

    fn file_begin(&mut self, field_name: &[u8], filename: &[u8]) {
        let field = self.store.push(field_name);
        let filename = self.store.push(filename);
        self.store.add(Class::Files, field, filename);
        self.store.add(Class::FilesNames, field, field);
        if let Some(files) = &mut self.files {
            files.field = field;
            files.content = None;
        }
    }

    fn file_data(&mut self, data: &[u8]) {
        let Some(files) = self.files.as_mut().filter(|_| self.keep_files) else { return };
        let piece = self.store.push(data);
        // Nothing else is stored while a file's data comes, so the pieces are neighbours.
        let start = files.content.map_or(piece.start, |content| content.start);
        files.content = Some(Span { start, end: piece.end });
    }

    fn file_end(&mut self, size: u64) {
        let Some(files) = &mut self.files else { return };
        files.combined_size += size;
        let (field, content) = (files.field, files.content.take());
        let text = self.store.push(size.to_string().as_bytes());
        self.store.add(Class::FilesSizes, field, text);
        // A file beyond `SecUploadFileLimit` has a size and no content: it is not kept, and has no name to be
        // scanned by.
        if let Some(content) = content.or_else(|| (self.keep_files && size == 0).then(Span::default)) {
            self.store.add(Class::FilesTmpContent, field, content);
            let name = match &files.name {
                Some(name) => format!("{name}-{}", files.contents.len()),
                // It is not kept: a name to speak of the upload by.
                None => format!("upload-{}", files.contents.len() + 1),
            };
            let name = self.store.push(name.as_bytes());
            files.contents.push((self.store.add(Class::FilesTmpNames, field, name), content));
        }
    }

    fn xml_start(&mut self, name: &[u8]) {
        if let Some(files) = &mut self.files {
            files.is_xml = true;
        }
        if let Some(tree) = self.tree() {
            tree.start(name);
        }
    }

    fn xml_end(&mut self, _name: &[u8]) {
        if let Some(tree) = self.tree() {
            tree.end();
        }
    }

    fn xml_comment(&mut self, _text: &[u8]) {
        if let Some(tree) = self.tree() {
            tree.other();
        }
    }

    fn xml_instruction(&mut self, _target: &[u8], _data: &[u8]) {
        if let Some(tree) = self.tree() {
            tree.other();
        }
    }

    fn xml_attribute(&mut self, name: &[u8], value: &[u8]) {
        if let Some(tree) = self.tree() {
            tree.attribute(name, value);
        }
        // Namespace declarations are no attributes to XPath.
        if name == b"xmlns" || name.starts_with(b"xmlns:") {
            return;
        }
        let value = self.store.push(value);
        self.store.add(Class::XmlAttributes, Span::default(), value);
    }

    fn xml_text(&mut self, text: &[u8]) {
        if let Some(files) = &mut self.files {
            files.xml_text.extend_from_slice(text);
        }
        if let Some(tree) = self.tree() {
            tree.text(text);
        }
    }
}
