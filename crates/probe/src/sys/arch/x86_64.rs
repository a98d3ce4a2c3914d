//! The registers of x86-64.

use facts::Errno;

use super::Registers;
use crate::sys::ptrace::{read_registers, write_registers};

/// `NT_PRSTATUS` of linux/elf.h: the general registers.
const GENERAL: usize = 1;

fn general(thread: u32) -> Result<Option<libc::user_regs_struct>, Errno> {
    // SAFETY: plain integers, for which zeros are a value.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let length = size_of_val(&registers);
    let whole = read_registers(thread, GENERAL, (&raw mut registers).cast(), length)?;
    Ok((whole == length).then_some(registers))
}

fn set_general(thread: u32, registers: &mut libc::user_regs_struct) -> Result<(), Errno> {
    let length = size_of_val(registers);
    write_registers(thread, GENERAL, std::ptr::from_mut(registers).cast(), length)
}

pub(super) fn registers(thread: u32) -> Result<Option<Registers>, Errno> {
    let Some(registers) = general(thread)? else { return Ok(None) };
    let result = registers.rax.cast_signed();
    Ok(Some(Registers {
        number: registers.orig_rax,
        arguments: [
            registers.rdi,
            registers.rsi,
            registers.rdx,
            registers.r10,
            registers.r8,
            registers.r9,
        ],
        result,
        // The kernel puts ENOSYS there on entry, and no call that is looked at answers it.
        at_exit: result != -i64::from(libc::ENOSYS),
    }))
}

pub(super) fn skip(thread: u32) -> Result<(), Errno> {
    let mut registers = general(thread)?.ok_or(Errno::ENOSYS)?;
    registers.orig_rax = u64::MAX;
    set_general(thread, &mut registers)
}

pub(super) fn set_result(thread: u32, result: i64) -> Result<(), Errno> {
    let mut registers = general(thread)?.ok_or(Errno::ENOSYS)?;
    registers.rax = result.cast_unsigned();
    set_general(thread, &mut registers)
}

pub(super) fn stack_pointer_and_registers(thread: u32) -> Result<(u64, Vec<u64>), Errno> {
    let all = general(thread)?.ok_or(Errno::ENOSYS)?;
    let registers = vec![
        all.rdi, all.rsi, all.rdx, all.r10, all.rcx, all.r8, all.r9, all.rbx, all.rbp, all.r12,
        all.r13, all.r14, all.r15, all.r11, all.rax,
    ];
    Ok((all.rsp, registers))
}
