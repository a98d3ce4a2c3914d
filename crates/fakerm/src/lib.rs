//! A stand-in for the kernel side of the NVIDIA driver, preloaded into a process.
//!
//! With `LD_PRELOAD=libfakerm.so` the *real* `libcuda.so.1` and `libnvidia-ml.so.1` run on a
//! machine that has neither a GPU nor the kernel module: `open`, `ioctl`, `stat` and their kin are
//! answered here for the driver's paths and go to the kernel untouched for all others. What the
//! libraries then do is their own doing, so a test that injects a fault sees the vendor's own
//! answer to it (`UVM_REGISTER_GPU` refused → `cuInit` 3).
//!
//! # Settings
//!
//! `GPUDX_FAKERM` is a list of settings with commas between them; each is `NAME=VALUE`:
//!
//! | setting | meaning |
//! |---|---|
//! | `version=550.163.01` | version of the pretended kernel module (this one when left out) |
//! | `gpus=2` | number of GPUs, 0 to 8 (1 when left out) |
//! | `chip=gh100` | `ga100` or `gh100` (`ga100` when left out: 535 knows no board newer than it well) |
//! | `hmm=0` | whether pageable memory is usable from the GPU, as UVM tells it (1 when left out) |
//! | `pass=1` | each open, ioctl and mmap is made of the kernel too, which refuses it, so that a tracer sees it; another answer is the tracer's and stands |
//! | `trace=/path` | append each driver call to this file, one a line, before it is answered |
//! | `node:/dev/nvidia-uvm=absent` | this node does not exist |
//! | `node:/dev/nvidia-uvm=511:0` | this node has these numbers; opening it gives `ENXIO` |
//! | `mode:/dev/nvidia-uvm=600` | this node shows that mode (666 when left out); an open is not refused for it |
//! | `hang:step=40` | the 40th driver call of the process never returns |
//! | `SITE=ACTION` | a fault, see below |
//!
//! Sites: `open:PATH`, `uvm:NAME` or `uvm:0x25`, `control:0x136` (an RM control command),
//! `alloc:0x80` (an RM class), `escape:0xd2` (another ioctl number of the control or GPU nodes).
//!
//! Actions: a number is the `NV_STATUS` that the call reports; a name such as `EPERM` is the errno
//! with which the call itself fails; `hang` sleeps for ever, `spin` burns the CPU for ever,
//! `dstate:PATH` writes to that path first (on a frozen file system: uninterruptible), `slow:MS`
//! answers after that many milliseconds, `crash` raises SIGSEGV, `value:N` overwrites the first
//! 32 bits of the answer, `version:TEXT` is the version that this one call tells.
//!
//! # How descriptors are told apart
//!
//! Opening a pretended path gives a memfd *named* after the path. Every hook that is given a
//! descriptor reads that name back from `/proc/self/fd`, so there is no table to keep: `dup`,
//! `fork`, `exec` and `close` need no care.
//!
//! # What is pretended
//!
//! The nodes and text files of `inventory.rs`. They show in `stat`, `open`, `access`, `readlink`,
//! `realpath` and `readdir`; not in `scandir`, `nftw` or `glob`, whose insides cannot be
//! interposed, and not to system calls made without libc. Making, removing and changing these
//! nodes (the libraries do so as root) succeeds and changes nothing.
//!
//! The variadic functions of libc (`open`, `ioctl`) are defined with fixed arguments: on the
//! calling conventions of x86-64 and aarch64 Linux the optional argument arrives in the same
//! register either way.

mod escape;
mod faults;
mod hooks;
mod inventory;
mod machine;
mod memory;
mod real;
mod rm;
mod settings;
mod stuck;
mod trace;
mod tree;
mod uvm;
