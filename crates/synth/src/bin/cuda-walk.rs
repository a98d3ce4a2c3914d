//! Walks libcuda from `cuInit` to a checked kernel and prints `STEP CODE` for each step, ending
//! with `result ok` or `result wrong`; stops at the first code that is not 0.
#![expect(unsafe_code, reason = "a foreign library is loaded and called, in a test program only")]

use core::ffi::{CStr, c_int, c_uint, c_void};
use std::io::Write;
use std::process::ExitCode;
use std::ptr::{null, null_mut};

/// `data[i] = data[i] * 3 + i`.
const PTX: &CStr =
    c".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k(.param .u64 p){\
    .reg .u64 %rd<4>;.reg .u32 %r<4>;ld.param.u64 %rd1,[p];cvta.to.global.u64 %rd2,%rd1;\
    mov.u32 %r1,%tid.x;mul.wide.u32 %rd3,%r1,4;add.u64 %rd2,%rd2,%rd3;ld.global.u32 %r2,[%rd2];\
    mad.lo.u32 %r2,%r2,3,%r1;st.global.u32 [%rd2],%r2;ret;}\n";
const THREADS: u32 = 32;

type Pointer = *mut c_void;

fn main() -> ExitCode {
    // SAFETY: loading runs the library's constructors, which is what this program is for.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        return ExitCode::FAILURE;
    }
    let mut lines = Vec::new();
    // A step that fails ends the walk; what was walked is printed either way.
    let _ = walk(library, &mut lines);
    // A closed pipe is no concern of this program.
    let _ = std::io::stdout().write_all(lines.concat().as_bytes());
    ExitCode::SUCCESS
}

/// Calls one function of libcuda: name, types of its parameters, arguments.
macro_rules! call {
    ($library:expr, $lines:expr, $name:ident($($type:ty = $argument:expr),*)) => {{
        let name = stringify!($name);
        let symbol = std::ffi::CString::new(name).ok()?;
        let address = libc::dlsym($library, symbol.as_ptr());
        if address.is_null() {
            return None;
        }
        let function =
            core::mem::transmute::<Pointer, unsafe extern "C" fn($($type),*) -> c_int>(address);
        let code = function($($argument),*);
        $lines.push(format!("{name} {code}\n"));
        if code != 0 {
            return None;
        }
    }};
}

fn walk(library: Pointer, lines: &mut Vec<String>) -> Option<()> {
    let mut data: Vec<u32> = (0..THREADS).map(|index| index + 7).collect();
    let bytes = size_of_val(data.as_slice());
    // SAFETY: cuda.h declares these functions with these types, and all that is pointed to lives
    // until the end of this function.
    unsafe {
        let (mut context, mut module, mut function) = (null_mut(), null_mut(), null_mut());
        let mut address = 0_u64;
        call!(library, lines, cuInit(c_uint = 0));
        call!(library, lines, cuDevicePrimaryCtxRetain(*mut Pointer = &raw mut context, c_int = 0));
        call!(library, lines, cuCtxSetCurrent(Pointer = context));
        call!(library, lines, cuMemAlloc_v2(*mut u64 = &raw mut address, usize = bytes));
        let host = data.as_mut_ptr().cast::<c_void>();
        call!(library, lines, cuMemcpyHtoD_v2(u64 = address, Pointer = host, usize = bytes));
        let image = PTX.as_ptr().cast::<c_void>();
        call!(library, lines, cuModuleLoadData(*mut Pointer = &raw mut module, *const c_void = image));
        call!(library, lines, cuModuleGetFunction(
            *mut Pointer = &raw mut function, Pointer = module, *const i8 = c"k".as_ptr()));
        let mut parameters: [Pointer; 1] = [(&raw mut address).cast()];
        call!(library, lines, cuLaunchKernel(
            Pointer = function, c_uint = 1, c_uint = 1, c_uint = 1, c_uint = THREADS, c_uint = 1,
            c_uint = 1, c_uint = 0, Pointer = null_mut(), *mut Pointer = parameters.as_mut_ptr(),
            *const Pointer = null()));
        call!(library, lines, cuCtxSynchronize());
        call!(library, lines, cuMemcpyDtoH_v2(Pointer = host, u64 = address, usize = bytes));
        call!(library, lines, cuMemFree_v2(u64 = address));
    }
    let right = (0..THREADS).map(|index| (index + 7) * 3 + index).eq(data.iter().copied());
    lines.push(format!("result {}\n", if right { "ok" } else { "wrong" }));
    Some(())
}
