//! Memory that is given back. mimalloc, which the program uses, returns memory to the system when it is asked
//! for some, thread by thread; so an idle process would keep what a flood has taken.

/// Asks the allocator for blocks of all sizes and gives them back. None of them is written to.
pub(crate) fn touch() {
    let sizes = (4..20).flat_map(|bits| (4..8).map(move |quarters| quarters << bits >> 2));
    for bytes in sizes.chain([1 << 20, 32 << 20]) {
        let mut block = Vec::<u8>::new();
        // Without such an allocator there is nothing to give back.
        let _ = block.try_reserve_exact(bytes);
        drop(std::hint::black_box(block));
    }
}
