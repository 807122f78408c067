//! Scripts that stand in a body of XML as elements: browsers run those of XHTML and SVG, whatever the
//! document is for.

/// Bytes of a script and of its address that are looked at.
const SCRIPT_BYTES_MAX: usize = 4 << 10;
const SOURCE_BYTES_MAX: usize = 512;
/// Bytes of prefixes that are remembered.
const PREFIX_BYTES_MAX: usize = 256;
/// The namespaces whose scripts run.
const PAGES: [&[u8]; 2] = [b"http://www.w3.org/1999/xhtml", b"http://www.w3.org/2000/svg"];

/// The script that is open, and the namespaces that the document has declared so far.
#[derive(Debug, Default)]
pub(crate) struct PageScripts {
    /// The prefixes that one of [`PAGES`] was declared for, each with a colon before it and a space behind;
    /// the default namespace has the empty one.
    prefixes: Vec<u8>,
    /// There were more of them: any may be one.
    is_full: bool,
    /// Elements that are open in the script.
    depth: usize,
    /// The name of the element that is open.
    name: Vec<u8>,
    /// A script element is open.
    is_open: bool,
    code: Vec<u8>,
    source: Vec<u8>,
}

impl PageScripts {
    pub fn begin(&mut self, name: &[u8]) {
        // Its text goes on behind elements in it.
        if self.is_open {
            self.depth += 1;
            return;
        }
        self.is_open = local(name) == b"script";
        self.depth = 0;
        self.name.clear();
        self.name.extend_from_slice(name);
        self.code.clear();
        self.source.clear();
    }

    pub fn attribute(&mut self, name: &[u8], value: &[u8]) {
        if let Some(prefix) = name.strip_prefix(b"xmlns") {
            let is_page = PAGES.contains(&value.trim_ascii());
            let prefix = prefix.strip_prefix(b":").unwrap_or(prefix);
            let has_room = self.prefixes.len() + prefix.len() < PREFIX_BYTES_MAX;
            self.is_full |= is_page && !has_room;
            if is_page && has_room && !self.has(prefix) {
                for part in [b":", prefix, b" "] {
                    self.prefixes.extend_from_slice(part);
                }
            }
        } else if self.is_open && matches!(local(name), b"src" | b"href") {
            self.source.clear();
            let address = value.iter().filter(|b| !matches!(b, b'"' | b'<' | b'>'));
            self.source.extend(address.take(SOURCE_BYTES_MAX));
        }
    }

    pub fn text(&mut self, text: &[u8]) {
        if self.is_open {
            let room = SCRIPT_BYTES_MAX.saturating_sub(self.code.len());
            self.code.extend_from_slice(&text[..text.len().min(room)]);
        }
    }

    /// True if the prefix of the open element, or that it has none, stands for a page's namespace somewhere
    /// in the document.
    fn is_of_page(&self) -> bool {
        let prefix = &self.name[..memchr::memrchr(b':', &self.name).unwrap_or(0)];
        self.is_full || self.has(prefix)
    }

    fn has(&self, prefix: &[u8]) -> bool {
        let mut prefixes = self.prefixes.split(|b| *b == b' ');
        prefixes.any(|known| known.strip_prefix(b":") == Some(prefix))
    }

    /// The script element that ends here, as markup, if a browser runs it.
    pub fn end(&mut self) -> Option<Vec<u8>> {
        if self.is_open && self.depth > 0 {
            self.depth -= 1;
            return None;
        }
        let is_script = std::mem::take(&mut self.is_open) && self.is_of_page();
        let has_code = !self.code.trim_ascii().is_empty();
        let parts: [&[u8]; 3] = match (is_script, has_code, self.source.is_empty()) {
            (true, _, false) => [b"<script src=\"", &self.source, b"\"></script>"],
            (true, true, true) => [b"<script>", &self.code, b"</script>"],
            _ => return None,
        };
        Some(parts.concat())
    }
}

/// A name without its prefix.
fn local(name: &[u8]) -> &[u8] {
    &name[memchr::memrchr(b':', name).map_or(0, |at| at + 1)..]
}
