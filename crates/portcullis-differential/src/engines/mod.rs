//! The engines that are compared.

pub mod modsecurity2;
pub mod modsecurity3;
pub mod ours;
