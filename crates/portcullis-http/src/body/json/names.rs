//! The names of values inside a JSON text, kept as one growing and shrinking path.

use std::io::Write;

/// The naming scheme of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JsonNames {
    /// `a.b`; elements of `a` are all `a.a`; a top-level array's elements are `array.array`.
    #[default]
    ModSecurity2,
    /// `json.a.b`; elements of `a` are `json.a.array_0`, `json.a.array_1`.
    ModSecurity3,
}

/// The open containers and the name of the value that is being read.
#[derive(Debug)]
pub(super) struct Names {
    style: JsonNames,
    /// Name of the current value, or of the innermost container while it has no current value.
    path: Vec<u8>,
    /// The start of the last component of `path`.
    component: usize,
    open: Vec<Container>,
}

#[derive(Debug)]
struct Container {
    object: bool,
    /// Length of the container's own name.
    path_len: usize,
    component: usize,
    /// Elements so far.
    count: u64,
}

impl Names {
    pub(super) fn new(style: JsonNames) -> Self {
        let mut names = Names { style, path: Vec::new(), component: 0, open: Vec::new() };
        names.restart();
        names
    }

    /// A top-level value begins.
    pub(super) fn restart(&mut self) {
        self.path.clear();
        self.component = 0;
        if self.style == JsonNames::ModSecurity3 {
            self.path.extend_from_slice(b"json");
        }
    }

    /// The current value's name.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    /// True outside all containers.
    pub(super) fn at_top(&self) -> bool {
        self.open.is_empty()
    }

    /// True if the innermost container is an object.
    pub(super) fn in_object(&self) -> bool {
        self.open.last().is_some_and(|container| container.object)
    }

    /// Containers that count: for ModSecurity 2 a top-level object does not.
    pub(super) fn depth(&self) -> usize {
        let starts_below = self.style == JsonNames::ModSecurity2
            && self.open.first().is_some_and(|container| container.object);
        self.open.len() - usize::from(starts_below)
    }

    /// An object's key was read.
    pub(super) fn key(&mut self, key: &[u8]) {
        let Some(container) = self.open.last() else { return };
        self.path.truncate(container.path_len);
        if self.open.len() > 1 || self.style == JsonNames::ModSecurity3 {
            self.path.push(b'.');
        }
        self.component = self.path.len();
        self.path.extend_from_slice(key);
    }

    /// A value starts: names it if it is an element of an array.
    #[inline]
    pub(super) fn before_value(&mut self) {
        if !self.in_object() {
            self.before_element();
        }
    }

    fn before_element(&mut self) {
        let Some(container) = self.open.last_mut() else { return };
        let index = container.count;
        container.count += 1;
        match self.style {
            JsonNames::ModSecurity2 if index == 0 => {
                let component = self.component..self.path.len();
                self.path.push(b'.');
                self.component = self.path.len();
                self.path.extend_from_within(component);
            }
            // The path is back to the name the elements share.
            JsonNames::ModSecurity2 => {}
            JsonNames::ModSecurity3 => {
                self.path.truncate(container.path_len);
                // Writing to a vector cannot fail.
                let _ = write!(self.path, ".array_{index}");
            }
        }
    }

    /// The current value is a container and starts.
    pub(super) fn open(&mut self, object: bool) {
        if self.open.is_empty() && !object && self.style == JsonNames::ModSecurity2 {
            self.path.extend_from_slice(b"array");
        }
        self.open.push(Container { object, path_len: self.path.len(), component: self.component, count: 0 });
    }

    /// The innermost container ends: its own name is the current one again.
    pub(super) fn close(&mut self) {
        if let Some(container) = self.open.pop() {
            self.path.truncate(container.path_len);
            self.component = container.component;
        }
    }
}
