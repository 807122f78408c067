//! gRPC: the services of a set of file descriptors, and calls beside them.
//!
//! A call names its method in the path. Its messages are walked field by field, without recursion: what each
//! field may carry its declaration says, and nothing is built from them.

mod compare;
mod descriptor;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use portcullis_types::Place;

use crate::api::{Api, Aspect, Deviation, Head, Kind, OperationId, Told, of_path};
use crate::field::{Field, FieldType, Form};
use crate::limits::{DESCRIPTOR_PARTS_MAX, FIELD_DEPTH_MAX, FIELDS_MAX};
use crate::parameter::{decoded, pairs};
use crate::path::Paths;
use crate::problem::Problem;

pub(crate) use descriptor::is_descriptor_set;

/// Services, and the messages that their methods take.
#[derive(Debug, Default)]
pub(crate) struct Grpc {
    messages: Vec<Message>,
    enums: Vec<Enum>,
    services: BTreeSet<String>,
    methods: Vec<Method>,
    /// Methods by the paths of their calls.
    paths: HashMap<String, usize>,
}

#[derive(Debug, Default)]
struct Message {
    name: String,
    fields: BTreeMap<u64, MessageField>,
    required: Vec<u64>,
}

#[derive(Debug)]
struct MessageField {
    name: String,
    of: Type,
    is_repeated: bool,
}

#[derive(Debug)]
struct Enum {
    name: String,
    /// Sorted.
    values: Vec<i32>,
    is_closed: bool,
}

#[derive(Debug, Default)]
struct Method {
    /// Its full name.
    name: String,
    /// The message that it takes.
    input: usize,
    /// It takes any number of them.
    streams: bool,
    fields: Vec<Field>,
}

/// What a field carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Double,
    Float,
    /// Whole numbers of any length.
    Whole,
    /// Those that fit 32 bits, with or without a sign.
    Whole32,
    /// The same with the sign in the lowest bit.
    Signed32,
    Fixed64,
    Fixed32,
    Boolean,
    Text,
    Bytes,
    Message(usize),
    Enum(usize),
    /// Not read.
    Group,
}

impl Type {
    /// The type by its number in a descriptor; messages and enums are still to be looked up.
    fn of(number: u64) -> Option<Type> {
        Some(match number {
            1 => Type::Double,
            2 => Type::Float,
            3 | 4 | 18 => Type::Whole,
            5 | 13 => Type::Whole32,
            6 | 16 => Type::Fixed64,
            7 | 15 => Type::Fixed32,
            8 => Type::Boolean,
            9 => Type::Text,
            10 => Type::Group,
            11 => Type::Message(usize::MAX),
            12 => Type::Bytes,
            14 => Type::Enum(usize::MAX),
            17 => Type::Signed32,
            _ => return None,
        })
    }

    /// What is known of a text in its place.
    fn form(self) -> Option<Form> {
        let of = |kind| Some(Form { types: vec![kind], ..Form::default() });
        match self {
            Type::Text => Some(Form { is_text: true, ..Form::default() }),
            Type::Double | Type::Float => of(FieldType::Number),
            Type::Boolean => of(FieldType::Boolean),
            Type::Bytes | Type::Message(_) | Type::Group => None,
            Type::Whole | Type::Whole32 | Type::Signed32 | Type::Fixed64 | Type::Fixed32 | Type::Enum(_) => {
                of(FieldType::Whole)
            }
        }
    }
}

/// Compiles a set of file descriptors.
pub(crate) fn compile(bytes: &[u8]) -> Result<Api, Vec<Problem>> {
    let (grpc, warnings) = descriptor::compile(bytes)?;
    Ok(Api {
        paths: Paths::new(),
        templates: Vec::new(),
        operations: Vec::new(),
        rpc: None,
        graphql: None,
        grpc: Some(grpc),
        warnings,
    })
}

impl Grpc {
    /// The numbers of services and of methods.
    pub fn counts(&self) -> (usize, usize) {
        (self.services.len(), self.methods.len())
    }

    /// Compares the head of a call. The path is taken as it was sent: servers do not decode it.
    pub fn head<'r, F>(&self, head: &Head<'r, F>, found: &mut Told<'_>) -> Option<OperationId> {
        let method = std::str::from_utf8(head.path).ok().and_then(|path| self.paths.get(path)).copied();
        let Some(method) = method else {
            let service = std::str::from_utf8(head.path)
                .ok()
                .and_then(|path| path.strip_prefix('/')?.rsplit_once('/'))
                .and_then(|(service, _)| self.services.get(service));
            let (rule, pointer) = match service {
                Some(service) => ("is no method of the service", service.clone()),
                None => ("is not declared", String::new()),
            };
            found.push(of_path(Kind::UnknownPath, rule.to_owned(), pointer));
            return None;
        };
        // What browsers ask before calls to other origins is no call.
        if head.method == b"OPTIONS" {
            return None;
        }
        let pointer = || self.methods[method].name.clone();
        if head.method != b"POST" {
            let mut deviation = of_path(Kind::Method, "must be POST".to_owned(), pointer());
            deviation.place = Place::Method;
            found.push(deviation);
        }
        for pair in pairs(head.query.unwrap_or_default()) {
            if !found.has_room(Aspect::UnknownParameter) {
                break;
            }
            found.push(Deviation {
                aspect: Aspect::UnknownParameter,
                kind: Kind::UnknownParameter,
                place: Place::Query,
                name: decoded(pair.name).into_owned(),
                rule: "is not declared: calls of gRPC have no query".to_owned(),
                pointer: pointer(),
            });
        }
        Some(OperationId::numbered(method))
    }

    /// The fields of the messages of each method that are known by their types.
    pub fn fields(&self) -> impl Iterator<Item = &[Field]> {
        self.methods.iter().map(|method| method.fields.as_slice())
    }

    /// The name of the field to which these numbers lead from the message of an operation, or of the
    /// innermost one on the way that is declared.
    pub fn name(&self, operation: OperationId, path: &[u64]) -> Option<String> {
        let mut message = self.methods.get(operation.number())?.input;
        let mut name = String::new();
        for number in path {
            let Some(field) = self.messages[message].fields.get(number) else { break };
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&field.name);
            let Type::Message(next) = field.of else { break };
            message = next;
        }
        (!name.is_empty()).then_some(name)
    }

    /// The field to which these numbers lead from the message of an operation carries messages.
    pub fn has_message(&self, operation: OperationId, path: &[u64]) -> bool {
        let Some(mut message) = self.methods.get(operation.number()).map(|method| method.input) else {
            return false;
        };
        for number in path {
            match self.messages[message].fields.get(number).map(|field| field.of) {
                Some(Type::Message(next)) => message = next,
                _ => return false,
            }
        }
        true
    }

    /// Finds the fields of all methods that are known by their types.
    fn find_fields(&mut self) {
        let mut known: HashMap<usize, Vec<Field>> = HashMap::new();
        let mut left = DESCRIPTOR_PARTS_MAX;
        for number in 0..self.methods.len() {
            let input = self.methods[number].input;
            let fields = known.entry(input).or_insert_with(|| self.fields_of(input));
            let Some(fewer) = left.checked_sub(fields.len()) else { return };
            left = fewer;
            self.methods[number].fields = fields.clone();
        }
    }

    fn fields_of(&self, message: usize) -> Vec<Field> {
        let (mut fields, mut left) = (Vec::new(), FIELDS_MAX);
        let mut open = vec![(message, String::new(), 1)];
        while let Some((number, above, depth)) = open.pop() {
            let message = &self.messages[number];
            for field in message.fields.values() {
                // Where there are more than are looked at, a name may be there once more with another type.
                let Some(fewer) = left.checked_sub(1) else { return Vec::new() };
                left = fewer;
                let name =
                    if above.is_empty() { field.name.clone() } else { format!("{above}.{}", field.name) };
                if let Some(form) = field.of.form() {
                    let pointer = format!("{}.{}", message.name, field.name);
                    fields.push(Field { place: Place::Json, name, form, pointer });
                } else if let Type::Message(next) = field.of
                    && depth < FIELD_DEPTH_MAX
                {
                    open.push((next, name, depth + 1));
                }
            }
        }
        fields
    }
}
