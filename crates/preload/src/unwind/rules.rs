//! The rules of `.eh_frame` for one address: where the caller's frame is, and where two of its
//! registers are stored.
//!
//! `gimli` reads the entries and their instructions. Registers that no walk needs are left out, so
//! that a row is a few words: the thread may have little stack left.

use gimli::{CallFrameInstruction, EhFrame, Register, UnwindSection as _};

use super::tables::{Bytes, Tables};

/// The registers by which frames are found, as DWARF numbers them.
#[cfg(target_arch = "x86_64")]
mod number {
    use gimli::Register;

    pub(super) const FRAME: Register = Register(6);
    pub(super) const STACK: Register = Register(7);
    pub(super) const RETURN: Register = Register(16);
}
#[cfg(target_arch = "aarch64")]
mod number {
    use gimli::Register;

    pub(super) const FRAME: Register = Register(29);
    pub(super) const STACK: Register = Register(31);
    pub(super) const RETURN: Register = Register(30);
}

/// Where a register's value in the caller is.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// In the register.
    Same,
    /// Nowhere; for the return address: there is no caller.
    Undefined,
    /// On the stack, that many bytes from the caller's frame.
    Offset(isize),
    /// Given by a rule that is not supported.
    Other,
}

/// The unwinding rules for an address.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// Whether `cfa_offset` is from the frame pointer, and not from the stack pointer.
    pub(super) cfa_is_of_frame: bool,
    /// The distance of the caller's frame; `None` if its rule is not supported.
    pub(super) cfa_offset: Option<isize>,
    pub(super) ra: Rule,
    pub(super) fp: Rule,
    /// Whether this is code that a signal handler returns to.
    pub(super) is_signal: bool,
}

/// Greatest nesting of remembered rows.
const DEPTH: usize = 4;

impl Rules {
    /// The rules for the address; `None` if the table has none, or uses unsupported instructions.
    #[inline(never)]
    pub(super) fn of(tables: &Tables, at: usize) -> Option<Self> {
        let Tables { frames, bases, .. } = tables;
        let entry = tables.entry(at)?;
        let mut rules = Self {
            cfa_is_of_frame: false,
            cfa_offset: None,
            // Without a rule, the return address is where the call has stored it: in a register,
            // which is known for the innermost function only.
            ra: Rule::Other,
            fp: Rule::Same,
            is_signal: entry.cie().is_signal_trampoline(),
        };
        if rules.is_signal {
            return Some(rules);
        }
        let (mut stack, mut depth) = ([rules; DEPTH], 0);
        let factor = isize::try_from(entry.cie().data_alignment_factor()).ok()?;
        let code_factor = entry.cie().code_alignment_factor();
        let mut now = entry.initial_address();
        let begin = entry.cie().instructions(frames, bases);
        let parts = [begin, entry.instructions(frames, bases)];
        let mut initial = rules;
        for (part, mut instructions) in parts.into_iter().enumerate() {
            if part == 1 {
                initial = rules;
            }
            while let Some(instruction) = instructions.next().ok()? {
                use CallFrameInstruction as I;
                match instruction {
                    I::AdvanceLoc { delta } => {
                        now = now.wrapping_add(u64::from(delta).wrapping_mul(code_factor));
                        if now > at as u64 {
                            return Some(rules);
                        }
                    }
                    I::SetLoc { address } => {
                        now = address;
                        if now > at as u64 {
                            return Some(rules);
                        }
                    }
                    I::RememberState => {
                        *stack.get_mut(depth)? = rules;
                        depth += 1;
                    }
                    I::RestoreState => {
                        depth = depth.checked_sub(1)?;
                        rules = stack[depth];
                    }
                    other => rules.apply(&other, &initial, factor)?,
                }
            }
        }
        Some(rules)
    }

    /// Applies one instruction that changes the row. `None` if it is not supported.
    fn apply(
        &mut self,
        instruction: &CallFrameInstruction<usize>,
        initial: &Self,
        factor: isize,
    ) -> Option<()> {
        use CallFrameInstruction as I;
        let signed = |offset: u64| isize::try_from(offset).ok();
        let factored = |offset: i64| isize::try_from(offset).ok()?.checked_mul(factor);
        match *instruction {
            I::DefCfa { register, offset } => self.define(register, signed(offset)),
            I::DefCfaSf { register, factored_offset } => {
                self.define(register, factored(factored_offset));
            }
            I::DefCfaRegister { register } => self.define(register, self.cfa_offset),
            I::DefCfaOffset { offset } => self.cfa_offset = signed(offset),
            I::DefCfaOffsetSf { factored_offset } => self.cfa_offset = factored(factored_offset),
            I::DefCfaExpression { .. } => self.cfa_offset = None,
            I::Undefined { register } => self.set(register, Rule::Undefined),
            I::SameValue { register } => self.set(register, Rule::Same),
            I::Offset { register, factored_offset } => {
                let offset = signed(factored_offset)?.checked_mul(factor)?;
                self.set(register, Rule::Offset(offset));
            }
            I::OffsetExtendedSf { register, factored_offset } => {
                self.set(register, Rule::Offset(factored(factored_offset)?));
            }
            I::Restore { register } if register == number::RETURN => self.ra = initial.ra,
            I::Restore { register } if register == number::FRAME => self.fp = initial.fp,
            I::ValOffset { register, .. }
            | I::ValOffsetSf { register, .. }
            | I::Register { dest_register: register, .. }
            | I::Expression { register, .. }
            | I::ValExpression { register, .. } => self.set(register, Rule::Other),
            // Rules of other registers. The signature of the return address is removed in any case.
            _ => {}
        }
        Some(())
    }

    fn define(&mut self, register: Register, offset: Option<isize>) {
        self.cfa_is_of_frame = register == number::FRAME;
        self.cfa_offset = offset.filter(|_| self.cfa_is_of_frame || register == number::STACK);
    }

    fn set(&mut self, register: Register, rule: Rule) {
        match register {
            number::RETURN => self.ra = rule,
            number::FRAME => self.fp = rule,
            _ => {}
        }
    }
}

impl Tables {
    /// The entry of the function at that address.
    fn entry(&self, at: usize) -> Option<gimli::FrameDescriptionEntry<Bytes>> {
        let Self { header, frames, bases } = self;
        let parsed = header.parse(bases, size_of::<usize>() as u8).ok()?;
        let table = parsed.table()?;
        table.fde_for_address(frames, bases, at as u64, EhFrame::cie_from_offset).ok()
    }

    /// Returns whether the table has a function at that address.
    pub(super) fn has(&self, at: usize) -> bool {
        self.entry(at).is_some()
    }
}
