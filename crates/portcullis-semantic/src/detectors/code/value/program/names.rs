//! Names that tell something of a program, whatever its language.

/// `__globals__`
pub(super) fn is_internal(name: &[u8]) -> bool {
    name.len() > 4 && name.starts_with(b"__") && name.ends_with(b"__")
}

/// A member of the object that Node.js keeps the machine below.
pub(super) fn is_deep_member(name: &[u8]) -> bool {
    matches!(name, b"env" | b"process" | b"mainModule" | b"application" | b"report")
}

/// A constant by its name.
pub(super) fn is_constant(name: &[u8]) -> bool {
    matches!(
        name,
        b"null"
            | b"NULL"
            | b"None"
            | b"nil"
            | b"true"
            | b"false"
            | b"True"
            | b"False"
            | b"TRUE"
            | b"FALSE"
            | b"PHP_EOL"
            | b"undefined"
    )
}

/// `getenv`, `env`, `environ`: a function that gives a variable of the system.
pub(super) fn is_variable_of_system(name: &[u8]) -> bool {
    matches!(
        name,
        b"getenv"
            | b"env"
            | b"environ"
            | b"get_env"
            | b"ini_get"
            | b"get_cfg_var"
            | b"constant"
            | b"setenv"
            | b"putenv"
    )
}

/// `fs')`, `node:vm')`: a module of Node.js that reaches files, programs, other machines or the engine.
pub(super) fn begins_with_module(text: &[u8]) -> bool {
    const MODULES: &[&[u8]] = words!("code", "node-modules");
    let Some(end) = memchr::memchr3(b'\'', b'"', b'`', text) else { return false };
    MODULES.contains(&text[..end].strip_prefix(b"node:").unwrap_or(&text[..end]))
}

/// `./config.json`: a module of a program, from where it stands in its folders.
pub(super) fn is_neighbour(name: &[u8]) -> bool {
    name.starts_with(b"./") || name.starts_with(b"../")
}

/// Loads what it is given, as a statement or as a function.
pub(super) fn loads(name: &[u8]) -> bool {
    matches!(name, b"include" | b"include_once" | b"require" | b"require_once" | b"import")
}
