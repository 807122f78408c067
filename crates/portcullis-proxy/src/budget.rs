//! Memory for held bodies: one budget for each worker, so that many slow uploads cannot take the machine.

use std::cell::Cell;
use std::rc::Rc;

/// The bytes a worker may hold in bodies at one time.
pub(crate) struct Budget {
    max: Cell<u64>,
    used: Cell<u64>,
}

/// Bytes taken from a [`Budget`]; they go back when it is dropped.
pub(crate) struct Held {
    budget: Rc<Budget>,
    bytes: u64,
}

impl Budget {
    /// A budget of `max` bytes.
    pub(crate) fn new(max: u64) -> Self {
        Budget { max: Cell::new(max), used: Cell::new(0) }
    }

    /// Changes the size; what is held stays held.
    pub(crate) fn resize(&self, max: u64) {
        self.max.set(max);
    }

    /// An empty share.
    pub(crate) fn share(self: &Rc<Self>) -> Held {
        Held { budget: Rc::clone(self), bytes: 0 }
    }
}

impl Held {
    /// Takes `bytes` more, or says no and takes nothing.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let used = self.budget.used.get().saturating_add(bytes as u64);
        if used > self.budget.max.get() {
            return false;
        }
        self.budget.used.set(used);
        self.bytes += bytes as u64;
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.used.set(self.budget.used.get() - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_back_what_was_taken() {
        let budget = Rc::new(Budget::new(10));
        let mut a = budget.share();
        let mut b = budget.share();
        assert!(a.grow(6) && !b.grow(5) && b.grow(4) && !a.grow(1));
        drop(a);
        assert!(b.grow(6));
        drop(b);
        assert_eq!(budget.used.get(), 0);
    }
}
