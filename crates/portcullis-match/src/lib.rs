//! Matching primitives of the operators: regexes, word sets, address sets, byte ranges.
