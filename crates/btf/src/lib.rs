//! Whether a kernel's type information (BTF) allows a scheduler of sched_ext to be loaded.
//!
//! A program in the kernel calls functions of the kernel by their types, as the kernel's BTF
//! describes them. Some kernels are built with a tool (pahole before 1.31) that describes a few of
//! these functions, which ones is chance, with an argument that only the kernel passes: `aux`, a
//! pointer to `bpf_prog_aux`. Then libbpf refuses the program with a message about two types that
//! do not fit. [`Kernel::broken`] finds these functions by name.

mod parse;

pub use parse::Malformed;

use parse::{FUNC, FUNC_PROTO, PTR, STRUCT, Types};

/// The type whose pointer is the argument that only the kernel passes.
const HIDDEN: &str = "bpf_prog_aux";
/// The beginning of the names of the functions that schedulers call.
const PREFIX: &str = "scx_bpf_";
/// The end of the names of the functions that do have the argument.
const TWIN: &str = "_impl";

/// What a kernel says about itself.
#[derive(Debug)]
pub struct Kernel<'a> {
    types: Types<'a>,
}

impl<'a> Kernel<'a> {
    /// Reads a kernel's BTF: the content of `/sys/kernel/btf/vmlinux`, or of the section `.BTF` of
    /// a kernel's file.
    ///
    /// # Errors
    ///
    /// If it is not BTF, or is cut off.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        Ok(Self { types: Types::read(bytes)? })
    }

    /// Returns whether the kernel has a function of that name.
    #[must_use]
    pub fn has(&self, function: &str) -> bool {
        self.functions().any(|(name, _)| name == function)
    }

    /// Returns whether the kernel has schedulers that are programs.
    #[must_use]
    pub fn has_sched_ext(&self) -> bool {
        self.types.all().any(|one| one.kind == STRUCT && one.name == "sched_ext_ops")
    }

    /// Returns the functions for schedulers that are described with an argument too many, by name.
    #[must_use]
    pub fn broken(&self) -> Vec<&'a str> {
        let called = self.functions().filter(|(name, _)| {
            name.trim_start_matches('_').starts_with(PREFIX) && !name.ends_with(TWIN)
        });
        let mut names: Vec<_> = called
            .filter(|(_, prototype)| self.takes_hidden(*prototype))
            .map(|(name, _)| name)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn functions(&self) -> impl Iterator<Item = (&'a str, u32)> {
        self.types.all().filter(|one| one.kind == FUNC).map(|one| (one.name, one.of))
    }

    fn takes_hidden(&self, prototype: u32) -> bool {
        let Some(prototype) = self.types.get(prototype).filter(|one| one.kind == FUNC_PROTO) else {
            return false;
        };
        prototype.parameters().any(|kind| {
            let pointer = self.types.get(kind).filter(|one| one.kind == PTR);
            let to = pointer.and_then(|pointer| self.types.get(pointer.of));
            to.is_some_and(|to| to.kind == STRUCT && to.name == HIDDEN)
        })
    }
}

#[cfg(test)]
mod tests;
