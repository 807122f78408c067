/// A command with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    count: usize,
    /// Each with its length before it.
    parts: Vec<u8>,
}

impl Command {
    /// The command of this name, such as `GET`.
    pub fn new(name: &str) -> Command {
        Command::default().arg(name.as_bytes())
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, part: &[u8]) -> Command {
        self.push(part);
        self
    }

    /// Adds an argument that is a number.
    #[must_use]
    pub fn number(self, number: impl Into<i128>) -> Command {
        self.arg(number.into().to_string().as_bytes())
    }

    /// Adds an argument.
    pub fn push(&mut self, part: &[u8]) {
        self.count += 1;
        self.parts.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        self.parts.extend_from_slice(part);
        self.parts.extend_from_slice(b"\r\n");
    }

    pub(crate) fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("*{}\r\n", self.count).as_bytes());
        out.extend_from_slice(&self.parts);
    }
}
