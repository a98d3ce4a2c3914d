//! Stand-ins for `libcuda.so.1` and `libnvidia-ml.so.1` that do as they are told.
//!
//! One shared object has the symbols of both; a test copies it into a folder under the two names
//! (never as links to one file: the loader would take both names for the same library) and puts the
//! folder first in `LD_LIBRARY_PATH`. `synth::artifacts::fake_driver_folder` does just that.
//!
//! # Settings
//!
//! `GPUDX_FAKE` is a list of settings with commas between them; each is `NAME=VALUE`. One that
//! cannot be read ends the process with a message, so that a misspelled fault fails its test.
//!
//! What calls do, `NAME=ACT`:
//!
//! | name | call |
//! |---|---|
//! | `load`, `nvml.load` | the constructor of libcuda, of libnvidia-ml |
//! | `cuinit` | `cuInit` |
//! | `context` | `cuDevicePrimaryCtxRetain` and `cuCtxCreate` |
//! | `alloc` | `cuMemAlloc` |
//! | `copy` | `cuMemcpyHtoD` and `cuMemcpyDtoH`; `copy=wrong` brings back a wrong byte |
//! | `kernel` | `cuLaunchKernel`; `kernel=wrong` computes a wrong result |
//! | `cuda.FUNCTION` | any function of libcuda by its exported name |
//! | `nvml` | `nvmlInit` |
//! | `nvml.FUNCTION` | any function of NVML by its exported name |
//!
//! ACT is one of: a number (the code to return); `hang` (sleep for ever), `constructor-hang` (the
//! same), `hang-deaf` (the same with SIGTERM ignored), `spin` (burn the CPU for ever), `crash`
//! (SIGSEGV), `abort`, `exit:N`, `stop` (SIGSTOP to itself, then 0), `slow:MS` (0 after so long),
//! `dstate:PATH` (write to PATH, which on a frozen file system cannot be interrupted, then 0),
//! `flood` (write to stdout until that fails, then 0), `print:TEXT` (TEXT to stdout without a line
//! end, then 0), `fork` (leave a child of the same process group that holds stdout open for a
//! minute, then 0), `fork-away` (the same after setsid), `mischief:DIR` (see `mischief`),
//! `flaky:COUNTER:ACT:S/N` (a counter in the file COUNTER, shared by all processes, lets S of N
//! calls succeed and does ACT in the others; the first one fails).
//!
//! An act may depend on something: `NAME=CONDITION?ACT`, or several conditions with `&` between them,
//! which must all hold. CONDITION is `set:VARIABLE` (the variable is not empty), `gpu:INDEX` (the
//! device is visible by CUDA_VISIBLE_DEVICES), `user:UID` (the effective user), `traced`, `path:TEXT`
//! (the path of this copy of the library holds the text), `mapped:TEXT` (something of such a path is mapped), `files:N` (the soft limit of open files is
//! below N), or one of these after `!`. Of several acts of a name the last one whose conditions hold
//! counts.
//!
//! What is answered: `count=N` devices (1), `driver=590.48.01`, `cuda=13010`, `name=NVIDIA H200`,
//! `capability=9.0`, `computemode=N` (0), `fabric=N` (NVML's state, 0 not supported),
//! `addressing=N` (0 none, 1 HMM, 2 ATS), `mig=N` (0), `peers=N` (1: can access each other).
//! Of each GPU's condition NVML answers `pstate=N` (0), `link=5/5/16/16` (PCIe generation now and at
//! most, lanes now and at most), `utilization=N` (0), `ecc=N` (0), `rows=0/0/0` (replaced, pending,
//! failed), `field=ID:N` (a field of nvmlDeviceGetFieldValues; others are not supported), and of the
//! system `confidential=0/1` (on, ready).
//! `record=PATH` is where each act is written down before it is done (`act NAME`), and where `fork`
//! and `mischief` write what they did.

mod act;
mod condition;
mod cuda;
mod load;
mod mischief;
mod nvml;
mod put;
mod settings;
