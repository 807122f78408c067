//! Bytes of a body that grow piece by piece.

use std::ops::Deref;

use memmap2::{MmapMut, MmapOptions};

/// Longer bytes are kept in pages of their own.
const HEAP_BYTES_MAX: usize = 64 << 10;
/// Address space for the first of such pages; each step after it is [`ROOM_FACTOR`] times as large.
const ROOM_BYTES_MIN: usize = 1 << 20;
/// See [`ROOM_BYTES_MIN`].
const ROOM_FACTOR: usize = 16;
/// Unit in which memory is counted.
const PAGE_BYTES: usize = 4 << 10;

/// A growing sequence of bytes that takes the memory that it needs and no more, and returns it to the system
/// when it is dropped.
///
/// A `Vec` that doubles holds up to twice what is in it, leaves an old block behind with each step, and what
/// it frees stays with the allocator for a while. With the bodies of many clients this is several times what
/// they sent. So bytes beyond 64 KiB are kept outside of the allocator: a range of addresses is reserved, and
/// a page of it is taken when it is written to. Where the system gives no range (a limit of address space),
/// they stay in a `Vec`.
#[derive(Debug, Default)]
pub struct ByteBuf(Bytes);

#[derive(Debug)]
enum Bytes {
    Heap(Vec<u8>),
    Pages { pages: MmapMut, len: usize },
}

impl Default for Bytes {
    fn default() -> Self {
        Bytes::Heap(Vec::new())
    }
}

impl ByteBuf {
    /// No bytes.
    pub const fn new() -> ByteBuf {
        ByteBuf(Bytes::Heap(Vec::new()))
    }

    /// Adds `bytes` at the end.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let len = self.len() + bytes.len();
        if self.room() < len {
            self.grow(len);
        }
        match &mut self.0 {
            Bytes::Heap(heap) => heap.extend_from_slice(bytes),
            Bytes::Pages { pages, len: end } => {
                pages[*end..len].copy_from_slice(bytes);
                *end = len;
            }
        }
    }

    /// The length that fits where it is now.
    fn room(&self) -> usize {
        match &self.0 {
            Bytes::Heap(heap) => heap.capacity().min(HEAP_BYTES_MAX),
            Bytes::Pages { pages, .. } => pages.len(),
        }
    }

    /// Makes room for `len` bytes in all.
    fn grow(&mut self, len: usize) {
        if len > HEAP_BYTES_MAX
            && let Some(mut pages) = reserve(len)
        {
            let old = &self[..];
            let end = old.len();
            pages[..end].copy_from_slice(old);
            self.0 = Bytes::Pages { pages, len: end };
            return;
        }
        let heap = match &mut self.0 {
            Bytes::Heap(heap) => heap,
            Bytes::Pages { pages, len } => {
                let heap = pages[..*len].to_vec();
                self.0 = Bytes::Heap(heap);
                let Bytes::Heap(heap) = &mut self.0 else { return };
                heap
            }
        };
        heap.reserve(len - heap.len());
    }

    /// Reserves memory for what is expected to come: at most 64 KiB, which is what others say of it.
    pub fn expect(&mut self, bytes: usize) {
        if let Bytes::Heap(heap) = &mut self.0 {
            heap.reserve_exact(bytes.min(HEAP_BYTES_MAX).saturating_sub(heap.len()));
        }
    }

    /// Removes all bytes, and keeps a buffer of at most `kept` bytes.
    pub fn clear(&mut self, kept: usize) {
        match &mut self.0 {
            Bytes::Heap(heap) if heap.capacity() <= kept => heap.clear(),
            Bytes::Heap(_) | Bytes::Pages { .. } => *self = ByteBuf::new(),
        }
    }

    /// Bytes of memory that it takes.
    pub fn held_bytes(&self) -> usize {
        match &self.0 {
            Bytes::Heap(heap) => heap.capacity(),
            Bytes::Pages { len, .. } => len.next_multiple_of(PAGE_BYTES),
        }
    }
}

/// Reserves addresses for `len` bytes and more.
fn reserve(len: usize) -> Option<MmapMut> {
    let mut room = ROOM_BYTES_MIN;
    while room < len {
        room = room.checked_mul(ROOM_FACTOR)?;
    }
    let pages = MmapOptions::new().len(room).no_reserve_swap().map_anon().ok()?;
    // A huge page would take two MiB for the first byte.
    #[cfg(target_os = "linux")]
    let _ = pages.advise(memmap2::Advice::NoHugePage);
    Some(pages)
}

impl Deref for ByteBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Heap(heap) => heap,
            Bytes::Pages { pages, len } => &pages[..*len],
        }
    }
}

impl From<Vec<u8>> for ByteBuf {
    fn from(bytes: Vec<u8>) -> ByteBuf {
        ByteBuf(Bytes::Heap(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn holds_what_a_vec_holds(pieces in proptest::collection::vec((0usize..300_000, any::<u8>()), 0..12)) {
            let (mut bytes, mut expected) = (ByteBuf::new(), Vec::new());
            for (length, byte) in pieces {
                let piece = vec![byte; length];
                bytes.extend_from_slice(&piece);
                expected.extend_from_slice(&piece);
                prop_assert_eq!(&bytes[..], &expected[..]);
                prop_assert!(bytes.held_bytes() >= bytes.len());
                // What is small is doubled, what is large is not.
                prop_assert!(bytes.held_bytes() <= (2 * HEAP_BYTES_MAX).max(bytes.len() + PAGE_BYTES));
            }
            bytes.clear(1024);
            prop_assert!(bytes.is_empty() && bytes.held_bytes() <= 1024);
        }
    }

    #[test]
    fn what_is_expected_is_no_more_than_a_little() {
        let mut bytes = ByteBuf::new();
        bytes.expect(usize::MAX);
        assert_eq!(bytes.held_bytes(), HEAP_BYTES_MAX);
        bytes.extend_from_slice(&[1; HEAP_BYTES_MAX]);
        assert_eq!(bytes.held_bytes(), HEAP_BYTES_MAX);
    }

    /// A vector that became a buffer is moved to pages when it grows, whatever its length.
    #[test]
    fn goes_on_behind_a_vector() {
        for length in [10, HEAP_BYTES_MAX, 3 * HEAP_BYTES_MAX] {
            let mut bytes = ByteBuf::from(vec![1; length]);
            bytes.extend_from_slice(&[2]);
            assert_eq!((bytes.len(), bytes[length - 1], bytes[length]), (length + 1, 1, 2));
        }
    }
}
