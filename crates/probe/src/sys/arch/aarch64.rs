//! The registers of 64-bit ARM.

use facts::Errno;

use super::Registers;
use crate::sys::ptrace::{read_registers, write_registers};

/// `NT_PRSTATUS` of linux/elf.h: the general registers.
const GENERAL: usize = 1;
/// `NT_ARM_SYSTEM_CALL` of linux/elf.h: the number of the call that is being entered.
const SYSTEM_CALL: usize = 0x404;
/// x0 to x30, the stack pointer, the program counter and the state: `user_pt_regs`.
type General = [u64; 34];
/// Where the number of a call stands.
const NUMBER: usize = 8;
/// The kernel puts 0 there at an entry and 1 at an exit, for the tracer to see
/// (arch/arm64/kernel/ptrace.c).
const DIRECTION: usize = 7;

fn general(thread: u32) -> Result<Option<General>, Errno> {
    let mut registers: General = [0; 34];
    let length = size_of_val(&registers);
    let whole = read_registers(thread, GENERAL, registers.as_mut_ptr().cast(), length)?;
    Ok((whole == length).then_some(registers))
}

pub(super) fn registers(thread: u32) -> Result<Option<Registers>, Errno> {
    let Some(registers) = general(thread)? else { return Ok(None) };
    let [x0, x1, x2, x3, x4, x5, ..] = registers;
    Ok(Some(Registers {
        number: registers.get(NUMBER).copied().unwrap_or(u64::MAX),
        arguments: [x0, x1, x2, x3, x4, x5],
        result: x0.cast_signed(),
        at_exit: registers.get(DIRECTION) == Some(&1),
    }))
}

pub(super) fn skip(thread: u32) -> Result<(), Errno> {
    let mut number: libc::c_int = -1;
    write_registers(thread, SYSTEM_CALL, (&raw mut number).cast(), size_of_val(&number))
}

pub(super) fn set_result(thread: u32, result: i64) -> Result<(), Errno> {
    let mut registers = general(thread)?.ok_or(Errno::ENOSYS)?;
    if let Some(first) = registers.first_mut() {
        *first = result.cast_unsigned();
    }
    write_registers(thread, GENERAL, registers.as_mut_ptr().cast(), size_of_val(&registers))
}

pub(super) fn stack_pointer_and_registers(thread: u32) -> Result<(u64, Vec<u64>), Errno> {
    /// Where the stack pointer stands, after x0 to x30.
    const STACK_POINTER: usize = 31;
    let all = general(thread)?.ok_or(Errno::ENOSYS)?;
    let pointer = all.get(STACK_POINTER).copied().unwrap_or(0);
    Ok((pointer, all.get(..STACK_POINTER).unwrap_or_default().to_vec()))
}
