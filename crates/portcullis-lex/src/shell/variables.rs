/// Assignments that are remembered: the last ones.
const ASSIGNMENTS_MAX: usize = 12;

/// Variables that the text itself sets (`a=ca;b=t;$a$b`), as it writes them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Variables<'t> {
    list: [(&'t [u8], &'t [u8]); ASSIGNMENTS_MAX],
    len: usize,
}

impl<'t> Variables<'t> {
    /// Remembers an assignment.
    pub fn set(&mut self, name: &'t [u8], value: &'t [u8]) {
        self.list[self.len % ASSIGNMENTS_MAX] = (name, value);
        self.len += 1;
    }

    /// The last value set, unexpanded.
    pub fn get(&self, name: &[u8]) -> Option<&'t [u8]> {
        let last = (self.len.saturating_sub(ASSIGNMENTS_MAX)..self.len).rev();
        let mut last = last.map(|at| self.list[at % ASSIGNMENTS_MAX]);
        last.find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// If `word` is `NAME=value`, both.
    pub fn assignment(word: &[u8]) -> Option<(&[u8], &[u8])> {
        let at = memchr::memchr(b'=', &word[..word.len().min(40)])?;
        let (name, value) = (&word[..at], &word[at + 1..]);
        let is_name = name.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
            && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
        is_name.then_some((name, value))
    }
}
