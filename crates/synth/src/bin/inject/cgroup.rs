//! A device program on a cgroup v2.

use core::ffi::c_int;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// `struct bpf_insn`.
#[repr(C)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// The part of `union bpf_attr` that loads a program.
#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    address: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// The part of `union bpf_attr` that attaches one.
#[repr(C)]
struct Attach {
    target: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

const BPF_PROG_LOAD: c_int = 5;
const BPF_PROG_ATTACH: c_int = 8;
const PROG_TYPE_CGROUP_DEVICE: u32 = 15;
const CGROUP_DEVICE: u32 = 6;
const ALLOW_MULTI: u32 = 2;

/// Denies the majors in the cgroup at `folder` and moves this process there.
pub(crate) fn deny_and_join(folder: &str, majors: &[u32]) -> Result<(), String> {
    let told = |what: &str| format!("{what}: {}", std::io::Error::last_os_error());
    let cgroup = File::open(folder).map_err(|error| format!("{folder}: {error}"))?;
    if !majors.is_empty() {
        let program = load(majors);
        if program < 0 {
            return Err(told("loading the device program"));
        }
        let attach = Attach {
            target: cgroup.as_raw_fd().cast_unsigned(),
            program: program.cast_unsigned(),
            kind: CGROUP_DEVICE,
            flags: ALLOW_MULTI,
        };
        // SAFETY: the structure is what this command reads.
        let attached = unsafe {
            libc::syscall(libc::SYS_bpf, BPF_PROG_ATTACH, &raw const attach, size_of::<Attach>())
        };
        if attached != 0 {
            return Err(told("attaching the device program"));
        }
    }
    let members = Path::new(folder).join("cgroup.procs");
    std::fs::write(&members, "0").map_err(|error| format!("{}: {error}", members.display()))
}

/// Loads `r2 = context.major; r0 = 1; for each major: if r2 == major, r0 = 0; exit`.
fn load(majors: &[u32]) -> c_int {
    // Opcodes of linux/bpf.h: LDX MEM W, MOV64 K, JNE K, EXIT.
    const LOAD_WORD: u8 = 0x61;
    const MOVE: u8 = 0xb7;
    const JUMP_UNLESS: u8 = 0x55;
    const EXIT: u8 = 0x95;
    // `struct bpf_cgroup_dev_ctx` has access and type, then major, then minor.
    const MAJOR_AT: i16 = 4;
    let mut program = vec![
        Instruction { code: LOAD_WORD, registers: 0x12, offset: MAJOR_AT, value: 0 },
        Instruction { code: MOVE, registers: 0, offset: 0, value: 1 },
    ];
    for major in majors {
        let value = major.cast_signed();
        program.push(Instruction { code: JUMP_UNLESS, registers: 2, offset: 1, value });
        program.push(Instruction { code: MOVE, registers: 0, offset: 0, value: 0 });
    }
    program.push(Instruction { code: EXIT, registers: 0, offset: 0, value: 0 });
    let license = c"Apache-2.0";
    let load = Load {
        kind: PROG_TYPE_CGROUP_DEVICE,
        instructions: u32::try_from(program.len()).unwrap_or(0),
        address: program.as_ptr().addr() as u64,
        license: license.as_ptr().addr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    // SAFETY: the structure is what this command reads, and program and license outlive the call.
    let descriptor =
        unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const load, size_of::<Load>()) };
    c_int::try_from(descriptor).unwrap_or(-1)
}
