//! What a table of `.eh_frame` says of one address: where the caller's frame is, and where two
//! registers are to be had.
//!
//! `gimli` reads the entries and their instructions. The registers that no walk needs are left out,
//! so that a row is a few words: the thread whose stack this is may have little of it.

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
    /// Nowhere; of the return address: there is no caller.
    Undefined,
    /// On the stack, that many bytes from the caller's frame.
    Offset(isize),
    /// Somewhere that is not understood here.
    Other,
}

/// The rules for an address.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// The caller's frame is so far from the frame pointer, and not from the stack pointer.
    pub(super) cfa_is_of_frame: bool,
    /// How far; `None` if that is said in a way that is not understood here.
    pub(super) cfa_offset: Option<isize>,
    pub(super) ra: Rule,
    pub(super) fp: Rule,
    /// A signal handler returns there.
    pub(super) is_signal: bool,
}

/// Rows that are put aside within one another.
const DEPTH: usize = 4;

impl Rules {
    /// Those for the address; `None` if the table does not say, or what is not understood.
    #[inline(never)]
    pub(super) fn of(tables: &Tables, at: usize) -> Option<Self> {
        let Tables { frames, bases, .. } = tables;
        let entry = tables.entry(at)?;
        let mut rules = Self {
            cfa_is_of_frame: false,
            cfa_offset: None,
            // Where no rule is, the address is where the call has left it: in a register, which
            // only the innermost function has.
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

    /// One instruction that changes the row. `None` if it can't be understood.
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
            // Those of other registers; the signature of the return address is taken off anyhow.
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
    /// The entry of the function that has that address.
    fn entry(&self, at: usize) -> Option<gimli::FrameDescriptionEntry<Bytes>> {
        let Self { header, frames, bases } = self;
        let parsed = header.parse(bases, size_of::<usize>() as u8).ok()?;
        let table = parsed.table()?;
        table.fde_for_address(frames, bases, at as u64, EhFrame::cie_from_offset).ok()
    }

    /// Whether a function has that address.
    pub(super) fn has(&self, at: usize) -> bool {
        self.entry(at).is_some()
    }
}
