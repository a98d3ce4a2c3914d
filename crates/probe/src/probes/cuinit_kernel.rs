//! Beyond cuInit: a context, memory, copies that are compared, and one small kernel whose result
//! is compared.

use std::ffi::CStr;

use super::cuinit::{ask, no_text};
use crate::child::report::{Failure, Report};
use crate::sys::cuda::{Cuda, Device};
use crate::sys::cuda_context::DeviceMemory;

/// Bytes that are allocated.
const MEMORY_BYTES: usize = 64 * 1024;
/// Numbers that are copied there and back: all of the memory.
const NUMBERS: usize = MEMORY_BYTES / 4;
/// Threads of the kernel, one warp: each changes one number.
const THREADS: u32 = 32;

/// `x[i] = x[i] * 3 + i`, for every GPU since Maxwell: PTX 6.0 is compiled by the driver.
const PTX: &CStr = c"
.version 6.0
.target sm_50
.address_size 64
.visible .entry gpudx(.param .u64 memory) {
  .reg .u64 %address, %offset;
  .reg .u32 %index, %number;
  ld.param.u64 %address, [memory];
  cvta.to.global.u64 %address, %address;
  mov.u32 %index, %tid.x;
  mul.wide.u32 %offset, %index, 4;
  add.u64 %address, %address, %offset;
  ld.global.u32 %number, [%address];
  mad.lo.u32 %number, %number, 3, %index;
  st.global.u32 [%address], %number;
  ret;
}
";

/// Runs the stages of one device until one fails. What was taken is given back also then.
pub(super) fn run(report: &mut Report, cuda: &Cuda, device: Device, on: &str) -> Result<(), i64> {
    let on = Some(on);
    ask(report, "cuDevicePrimaryCtxRetain", on, || cuda.enter_context(device), no_text)?;
    let result = memory(report, cuda, on);
    let left = ask(report, "cuDevicePrimaryCtxRelease", on, || cuda.leave_context(device), no_text);
    result.and(left)
}

fn memory(report: &mut Report, cuda: &Cuda, on: Option<&str>) -> Result<(), i64> {
    let memory = ask(report, "cuMemAlloc", on, || cuda.allocate(MEMORY_BYTES), no_text)?;
    let result = copy(report, cuda, memory, on).and_then(|()| kernel(report, cuda, memory, on));
    let freed = ask(report, "cuMemFree", on, || cuda.free(memory), no_text);
    result.and(freed)
}

/// The number at an index: no two neighbors are alike, and none is what fresh memory may hold.
fn pattern(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(0).wrapping_mul(2_654_435_761) | 1
}

fn copy(
    report: &mut Report,
    cuda: &Cuda,
    memory: DeviceMemory,
    on: Option<&str>,
) -> Result<(), i64> {
    let sent: Vec<u32> = (0..NUMBERS).map(pattern).collect();
    ask(report, "cuMemcpyHtoD", on, || cuda.copy_to(memory, &sent), no_text)?;
    let mut received = vec![0; NUMBERS];
    ask(report, "cuMemcpyDtoH", on, || cuda.copy_from(memory, &mut received), no_text)?;
    compare(report, "compare-copy", on, &sent, &received)
}

fn kernel(
    report: &mut Report,
    cuda: &Cuda,
    memory: DeviceMemory,
    on: Option<&str>,
) -> Result<(), i64> {
    let kernel = ask(report, "cuModuleLoadData", on, || cuda.load_kernel(PTX, c"gpudx"), no_text)?;
    ask(report, "cuLaunchKernel", on, || cuda.launch(kernel, THREADS, memory), no_text)?;
    let threads = usize::try_from(THREADS).unwrap_or(0);
    let mut received = vec![0; threads];
    ask(report, "cuMemcpyDtoH", on, || cuda.copy_from(memory, &mut received), no_text)?;
    let expected: Vec<u32> = (0..threads)
        .map(|index| {
            let index_number = u32::try_from(index).unwrap_or(0);
            pattern(index).wrapping_mul(3).wrapping_add(index_number)
        })
        .collect();
    compare(report, "compare-kernel", on, &expected, &received)?;
    ask(report, "cuModuleUnload", on, || cuda.unload_kernel(kernel), no_text)
}

fn compare(
    report: &mut Report,
    call: &str,
    on: Option<&str>,
    expected: &[u32],
    received: &[u32],
) -> Result<(), i64> {
    let work = || {
        let wrong = expected.iter().zip(received).filter(|(a, b)| a != b).count();
        if wrong == 0 {
            return Ok(());
        }
        let text = Some(format!("{wrong} of {} numbers came back wrong", expected.len()));
        Err(Failure { code: 1, text })
    };
    report.call(call, on, work, |()| None)
}
