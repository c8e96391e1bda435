//! Unwinds a copied stack, with the tables for exceptions: `.eh_frame` ("DWARF Debugging
//! Information Format", version 5, section 6.4; System V ABI, AMD64, 3.7).
//!
//! Only addresses within the copy are read, whatever a table or a register contains: so it does not
//! matter where the thread was interrupted, for example in the middle of a switch of stacks.
//! Unwinding ends at the first frame that is not understood. On a fiber that is its first function:
//! the stack of its thread begins behind it.

use antiphon_linux::glance::modules::{Module, with_module};
use antiphon_linux::glance::{Glance, INSTRUCTION_POINTER, REGISTERS, STACK_POINTER};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, NativeEndian, Register, RegisterRule,
    UnwindContext, UnwindSection as _, UnwindTableRow,
};

/// The register number that the tables use for the return address.
const RETURN: usize = INSTRUCTION_POINTER;
/// Maximum number of frames.
const MOST: usize = 256;

/// A frame, and the stack copy that contains it.
struct Frame<'a> {
    registers: [u64; REGISTERS],
    base: u64,
    stack: &'a [u8],
}

/// Returns the address where the thread was, and the return addresses of its calls, innermost
/// first.
pub(super) fn addresses(glance: &Glance) -> Vec<u64> {
    let Glance { registers, stack } = glance;
    let base = registers[STACK_POINTER];
    let mut frame = Frame { registers: *registers, base, stack };
    let (mut found, mut context) = (Vec::new(), UnwindContext::new());
    let mut into = 0;
    while found.len() < MOST && frame.registers[RETURN] != 0 {
        let at = frame.registers[RETURN];
        found.push(at);
        // A return address may be the first address of the next function.
        let inside = at - into;
        let next =
            with_module(inside, |module| frame.caller(module, inside, &mut context)).flatten();
        let Some((caller, is_exact)) = next else { break };
        into = u64::from(!is_exact);
        frame.registers = caller;
    }
    found
}

impl Frame<'_> {
    /// Returns the registers of the frame's caller, and whether a signal interrupted the caller
    /// there.
    fn caller(
        &self,
        module: &Module<'_>,
        at: u64,
        context: &mut UnwindContext<usize>,
    ) -> Option<([u64; REGISTERS], bool)> {
        let (header_at, header) = module.frame_header()?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(header_at);
        let header = EhFrameHdr::new(header, NativeEndian).parse(&bases, 8).ok()?;
        let (frames_at, frames) = module.from(header.eh_frame_ptr().direct().ok()?)?;
        let bases = bases.set_eh_frame(frames_at);
        let frames: EhFrame<EndianSlice<'_, NativeEndian>> = EhFrame::new(frames, NativeEndian);
        let cie = EhFrame::cie_from_offset;
        let entry = header.table()?.fde_for_address(&frames, &bases, at, cie).ok()?;
        let row = entry.unwind_info_for_address(&frames, &bases, context, at).ok()?;
        Some((self.follow(row)?, entry.is_signal_trampoline()))
    }

    fn follow(&self, row: &UnwindTableRow<usize>) -> Option<[u64; REGISTERS]> {
        let end = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.registers.get(usize::from(register.0))?.checked_add_signed(*offset)?
            }
            CfaRule::Expression(_) => return None,
        };
        // Each frame lies above the one that it called.
        if end <= self.registers[STACK_POINTER] {
            return None;
        }
        let mut caller = self.registers;
        for (number, value) in caller.iter_mut().enumerate() {
            *value = match row.register(Register(number as u16)) {
                Some(RegisterRule::Offset(offset)) => self.read(end.checked_add_signed(offset)?)?,
                Some(RegisterRule::ValOffset(offset)) => end.checked_add_signed(offset)?,
                Some(RegisterRule::Register(other)) => *self.registers.get(usize::from(other.0))?,
                // The outermost frame has no return address.
                _ if number == RETURN => return None,
                // The register is unchanged; or its value is unknown, and few callers need it.
                _ => *value,
            };
        }
        caller[STACK_POINTER] = end;
        Some(caller)
    }

    fn read(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.base)?).ok()?;
        let word = self.stack.get(at..at.checked_add(8)?)?;
        Some(u64::from_ne_bytes(word.try_into().ok()?))
    }
}
