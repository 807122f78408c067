//! A set of file descriptors (`FileDescriptorSet` of `google/protobuf/descriptor.proto`) to messages, enums
//! and services.
//!
//! The set is itself a message of Protocol Buffers. Only what comparing needs is read; field numbers are
//! those of the public declaration.

use std::collections::{BTreeMap, HashMap};

use portcullis_lex::protobuf::{Content, NUMBER_MAX, field};

use super::{Enum, Grpc, Message, MessageField, Method, Type};
use crate::limits::{
    DESCRIPTOR_NAME_BYTES_MAX, DESCRIPTOR_PARTS_MAX, DOCUMENT_BYTES_MAX, DOCUMENT_DEPTH_MAX,
    DOCUMENT_VALUES_MAX, OPERATIONS_MAX,
};
use crate::problem::Problem;

/// True if the bytes of a file are such a set: fields of its only number to their end, the first of which is
/// a message with the name of a file. A text may begin with the same byte, a line end.
pub(crate) fn is_descriptor_set(bytes: &[u8]) -> bool {
    let mut at = 0;
    let mut first = None;
    while at < bytes.len() {
        let Some((found, next)) = field(bytes, at) else { return false };
        let (1, Content::Bytes(file)) = (found.number, found.content) else { return false };
        first.get_or_insert(file);
        at = next;
    }
    let Some(file) = first else { return false };
    let mut at = 0;
    while let Some((found, next)) = field(file, at) {
        if let (1, Content::Bytes(name)) = (found.number, found.content) {
            return std::str::from_utf8(name).is_ok();
        }
        at = next;
    }
    false
}

/// Compiles a set. All mistakes come at once, each with the full name of what has it.
pub(crate) fn compile(bytes: &[u8]) -> Result<(Grpc, Vec<Problem>), Vec<Problem>> {
    if bytes.len() > DOCUMENT_BYTES_MAX {
        let message = format!("the set of descriptors has more than {} MiB", DOCUMENT_BYTES_MAX >> 20);
        return Err(vec![Problem::new("", message)]);
    }
    let mut compiler = Compiler::default();
    // What is beyond a limit, or no descriptor, ends the reading: what follows would only repeat it.
    if let Err(problem) = compiler.set(bytes) {
        compiler.errors.push(problem);
        return Err(compiler.errors);
    }
    compiler.resolve();
    match compiler.errors.is_empty() {
        true => Ok((compiler.grpc, compiler.warnings)),
        false => Err(compiler.errors),
    }
}

/// What a name stands for.
#[derive(Clone, Copy)]
enum Named {
    Message(usize),
    Enum(usize),
}

/// A field whose type is not looked up yet.
struct Pending {
    /// The message that has it: by number, or by the name that an extension gives.
    of: Result<usize, String>,
    /// Its full name.
    name: String,
    declared: MessageField,
    number: u64,
    is_required: bool,
    type_name: String,
}

#[derive(Default)]
struct Compiler {
    grpc: Grpc,
    /// Messages and enums by their full names.
    names: HashMap<String, Named>,
    pending: Vec<Pending>,
    /// Services, with the names of the types that their methods take.
    methods: Vec<(String, String, String)>,
    parts: usize,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

/// What a file says of all that is in it.
#[derive(Clone, Copy)]
struct Features {
    /// Enums take no values but their own.
    has_closed_enums: bool,
    /// Messages in fields are written as groups.
    has_groups: bool,
}

impl Features {
    /// The same with what a `FeatureSet` replaces.
    fn with(mut self, set: Option<&[u8]>) -> Result<Features, &'static str> {
        for (number, content) in fields(set.unwrap_or_default())? {
            match (number, content) {
                (2, Content::Varint(kind)) => self.has_closed_enums = kind == 2,
                (5, Content::Varint(kind)) => self.has_groups = kind == 2,
                _ => {}
            }
        }
        Ok(self)
    }
}

impl Compiler {
    fn wrong(&mut self, name: &str, message: impl Into<String>) {
        self.errors.push(Problem::new(name, message));
    }

    /// Counts something that is declared.
    fn count(&mut self, name: &str) -> Result<(), Problem> {
        self.parts += 1;
        if self.parts > DESCRIPTOR_PARTS_MAX {
            let message = format!(
                "the set has more than {DESCRIPTOR_PARTS_MAX} messages, fields, enums, values and methods"
            );
            return Err(Problem::new(name, message));
        }
        Ok(())
    }

    fn set(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        let files = fields(bytes).map_err(|message| Problem::new("", message))?;
        let mut known = BTreeMap::new();
        for (number, (_, content)) in files.into_iter().enumerate() {
            let Content::Bytes(file) = content else { continue };
            let name = self.file(file, number)?;
            if known.insert(name.clone(), number).is_some() {
                self.wrong(&name, "the file is there twice");
            }
        }
        Ok(())
    }

    fn file(&mut self, bytes: &[u8], number: usize) -> Result<String, Problem> {
        let at = format!("file {number}");
        let problem = |message: &str| Problem::new(at.as_str(), message);
        let members = fields(bytes).map_err(problem)?;
        let name = text(&members, 1).map_err(problem)?;
        let name = if name.is_empty() { at.clone() } else { name };
        let problem = |message: &str| Problem::new(name.as_str(), message);
        let package = text(&members, 2).map_err(problem)?;
        let is_package = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        if !package.chars().all(is_package) {
            return Err(problem(&format!("`{}` is no package", package.escape_debug())));
        }
        let syntax = text(&members, 12).map_err(problem)?;
        let is_old = match syntax.as_str() {
            "" | "proto2" => true,
            "proto3" | "editions" => false,
            other => return Err(problem(&format!("the syntax `{}` is unknown", other.escape_debug()))),
        };
        let features = Features { has_closed_enums: is_old, has_groups: false };
        let features = features.with(options(&members, 8, 50).map_err(problem)?).map_err(problem)?;
        self.types(&members, [4, 5, 7], &package, features, 1)?;
        for service in all(&members, 6) {
            self.service(service, &package)?;
        }
        Ok(name)
    }

    /// The messages, enums and extensions in a file or a message, by the numbers that these have there.
    fn types(
        &mut self,
        members: &[(u64, Content<'_>)],
        [messages, enums, extensions]: [u64; 3],
        scope: &str,
        features: Features,
        depth: usize,
    ) -> Result<(), Problem> {
        if depth > DOCUMENT_DEPTH_MAX {
            let message = format!("the set has more than {DOCUMENT_DEPTH_MAX} messages inside each other");
            return Err(Problem::new(scope, message));
        }
        for message in all(members, messages) {
            self.message(message, scope, features, depth)?;
        }
        for declared in all(members, enums) {
            self.of_enum(declared, scope, features)?;
        }
        for extension in all(members, extensions) {
            self.field(extension, scope, None, features)?;
        }
        Ok(())
    }

    fn message(
        &mut self,
        bytes: &[u8],
        scope: &str,
        features: Features,
        depth: usize,
    ) -> Result<(), Problem> {
        let (members, name) = named(bytes, scope)?;
        self.count(&name)?;
        let problem = |message: &str| Problem::new(name.as_str(), message);
        let features = features.with(options(&members, 7, 12).map_err(problem)?).map_err(problem)?;
        let number = self.grpc.messages.len();
        self.grpc.messages.push(Message { name: name.clone(), ..Message::default() });
        self.add(&name, Named::Message(number));
        for declared in all(&members, 2) {
            self.field(declared, &name, Some(number), features)?;
        }
        self.types(&members, [3, 4, 6], &name, features, depth + 1)
    }

    fn add(&mut self, name: &str, named: Named) {
        if self.names.insert(name.to_owned(), named).is_some() {
            self.wrong(name, "the name is declared twice");
        }
    }

    /// A field of the message `of`, or an extension of the one that it names.
    fn field(
        &mut self,
        bytes: &[u8],
        scope: &str,
        of: Option<usize>,
        features: Features,
    ) -> Result<(), Problem> {
        let (members, full) = named(bytes, scope)?;
        self.count(&full)?;
        let problem = |message: &str| Problem::new(full.as_str(), message);
        let features = features.with(options(&members, 8, 21).map_err(problem)?).map_err(problem)?;
        let name = match of {
            Some(_) => text(&members, 1).map_err(problem)?,
            None => format!("[{full}]"),
        };
        let of = match of {
            Some(number) => Ok(number),
            None => Err(text(&members, 2).map_err(problem)?),
        };
        let number = whole(&members, 3).unwrap_or(0);
        if number == 0 || number > NUMBER_MAX {
            self.wrong(&full, format!("a field has a number from 1 to {NUMBER_MAX}"));
        }
        let type_name = text(&members, 6).map_err(problem)?;
        let kind = match whole(&members, 5) {
            Some(11) if features.has_groups => Some(Type::Group),
            Some(kind) => Type::of(kind),
            None => None,
        };
        let Some(kind) = kind else {
            self.wrong(&full, "the field has no type that is known");
            return Ok(());
        };
        let label = whole(&members, 4);
        let declared = MessageField { name, of: kind, is_repeated: label == Some(3) };
        let is_required = label == Some(2);
        self.pending.push(Pending { of, name: full, declared, number, is_required, type_name });
        Ok(())
    }

    fn of_enum(&mut self, bytes: &[u8], scope: &str, features: Features) -> Result<(), Problem> {
        let (members, name) = named(bytes, scope)?;
        self.count(&name)?;
        let problem = |message: &str| Problem::new(name.as_str(), message);
        let features = features.with(options(&members, 3, 7).map_err(problem)?).map_err(problem)?;
        let mut values = Vec::new();
        for value in all(&members, 2) {
            self.count(&name)?;
            let members = fields(value).map_err(problem)?;
            // A number of 32 bits, written with as many as 64.
            values.push(whole(&members, 2).unwrap_or(0) as u32 as i32);
        }
        values.sort_unstable();
        let number = self.grpc.enums.len();
        self.grpc.enums.push(Enum { name: name.clone(), values, is_closed: features.has_closed_enums });
        self.add(&name, Named::Enum(number));
        Ok(())
    }

    fn service(&mut self, bytes: &[u8], package: &str) -> Result<(), Problem> {
        let (members, service) = named(bytes, package)?;
        self.count(&service)?;
        if !self.grpc.services.insert(service.clone()) {
            self.wrong(&service, "the service is declared twice");
        }
        for method in all(&members, 2) {
            let (members, full) = named(method, &service)?;
            self.count(&full)?;
            let problem = |message: &str| Problem::new(full.as_str(), message);
            let name = text(&members, 1).map_err(problem)?;
            let input = text(&members, 2).map_err(problem)?;
            let path = format!("/{service}/{name}");
            if self.grpc.methods.len() == OPERATIONS_MAX {
                return Err(problem(&format!("the set has more than {OPERATIONS_MAX} methods")));
            }
            let number = self.grpc.methods.len();
            let streams = whole(&members, 5) == Some(1);
            self.grpc.methods.push(Method { name: full.clone(), streams, ..Method::default() });
            if self.grpc.paths.insert(path, number).is_some() {
                self.wrong(&full, "the method is declared twice");
            }
            self.methods.push((full, input, service.clone()));
        }
        Ok(())
    }

    /// Looks the types of fields and methods up.
    fn resolve(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            self.take_field(pending);
        }
        for (number, (full, input, _)) in std::mem::take(&mut self.methods).into_iter().enumerate() {
            match self.named(&input) {
                Some(Named::Message(message)) => self.grpc.methods[number].input = message,
                _ => self.missing(&full, &input),
            }
        }
        if self.grpc.methods.is_empty() && self.errors.is_empty() {
            self.wrong("", "the set declares no method of a service");
        }
        if self.errors.is_empty() {
            self.grpc.find_fields();
        }
    }

    fn take_field(&mut self, pending: Pending) {
        let Pending { of, name, mut declared, number, is_required, type_name } = pending;
        match (declared.of, self.named(&type_name)) {
            (Type::Message(_), Some(Named::Message(message))) => declared.of = Type::Message(message),
            (Type::Enum(_), Some(Named::Enum(number))) => declared.of = Type::Enum(number),
            (Type::Message(_) | Type::Enum(_), _) => return self.missing(&name, &type_name),
            (Type::Group, _) => {
                let message = "groups are not read: a request with this field is reported";
                self.warnings.push(Problem::new(name.as_str(), message));
            }
            _ => {}
        }
        let of = match of {
            Ok(message) => message,
            Err(extended) => match self.named(&extended) {
                Some(Named::Message(message)) => message,
                _ => return self.missing(&name, &extended),
            },
        };
        let message = &mut self.grpc.messages[of];
        if let Some(other) = message.fields.insert(number, declared) {
            let message = format!("the number {number} is that of `{}`, too", other.name);
            self.wrong(&name, message);
        } else if is_required {
            message.required.push(number);
        }
    }

    fn named(&self, name: &str) -> Option<Named> {
        self.names.get(name.strip_prefix('.')?).copied()
    }

    fn missing(&mut self, name: &str, wanted: &str) {
        let wanted = wanted.escape_debug();
        let message =
            format!("the type `{wanted}` is not in the set: write it with its imports (`--include_imports`)");
        self.wrong(name, message);
    }
}

/// The fields of a message, with the name of what it declares, inside `scope`.
fn named<'m>(bytes: &'m [u8], scope: &str) -> Result<(Vec<(u64, Content<'m>)>, String), Problem> {
    let problem = |message: &str| Problem::new(scope, message);
    let members = fields(bytes).map_err(problem)?;
    let name = text(&members, 1).map_err(problem)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(problem(&format!("`{}` is no name", name.escape_debug())));
    }
    // Each thing that is declared holds its whole name.
    if scope.len() + name.len() >= DESCRIPTOR_NAME_BYTES_MAX {
        let start = &scope[..scope.floor_char_boundary(64)];
        let message =
            format!("a name has more than {DESCRIPTOR_NAME_BYTES_MAX} bytes with what it is declared in");
        return Err(Problem::new(start, message));
    }
    let full = if scope.is_empty() { name } else { format!("{scope}.{name}") };
    Ok((members, full))
}

/// The fields of a message of the set.
fn fields(message: &[u8]) -> Result<Vec<(u64, Content<'_>)>, &'static str> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < message.len() {
        let (found, next) = field(message, at).ok_or("this is no descriptor: it ends inside a field")?;
        if all.len() == DOCUMENT_VALUES_MAX {
            return Err("this has more than 1,000,000 fields");
        }
        all.push((found.number, found.content));
        at = next;
    }
    Ok(all)
}

fn all<'m>(members: &[(u64, Content<'m>)], number: u64) -> impl Iterator<Item = &'m [u8]> {
    members
        .iter()
        .filter(move |(known, _)| *known == number)
        .filter_map(|(_, content)| if let Content::Bytes(bytes) = content { Some(*bytes) } else { None })
}

/// The text in a field; of several the last one counts.
fn text(members: &[(u64, Content<'_>)], number: u64) -> Result<String, &'static str> {
    let bytes = all(members, number).last().unwrap_or_default();
    let text = std::str::from_utf8(bytes).map_err(|_| "this is no descriptor: a name is not UTF-8")?;
    Ok(text.to_owned())
}

fn whole(members: &[(u64, Content<'_>)], number: u64) -> Option<u64> {
    members
        .iter()
        .rev()
        .filter(|(known, _)| *known == number)
        .find_map(|(_, content)| if let Content::Varint(value) = content { Some(*value) } else { None })
}

/// The `FeatureSet` in the options of something.
fn options<'m>(
    members: &[(u64, Content<'m>)],
    options: u64,
    features: u64,
) -> Result<Option<&'m [u8]>, &'static str> {
    match all(members, options).last() {
        Some(options) => Ok(all(&fields(options)?, features).last()),
        None => Ok(None),
    }
}
