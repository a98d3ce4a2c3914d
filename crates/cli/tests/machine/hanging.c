/* A program that hangs in one of the ways that look alike from outside: HOW FILE.
 *
 * storm: asks again and again by ioctl, as a library does that is told to.
 * busy: computes for ever.
 * spin: is for ever inside the kernel, which computes for it: one call takes most of a second.
 * flags: enters an ioctl, which on a frozen file system sleeps in state D.
 * fault: sleeps in an ioctl whose answer has nowhere to go, as one in UVM that waits.
 * lock: one thread takes the lock of the process's memory and sleeps while it holds it, so that
 *   whoever reads cmdline, maps or memory sleeps too; another is in an ioctl. The second file is
 *   what it maps.
 *
 * A line on standard output says that it is about to.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, UVM_RELEASE_VA = 2 };

static char *shared;
static char numbers[1 << 28];

/* Writing to a page of a frozen file sleeps in the fault. */
static void *touch(void *nothing) {
  shared[0] = 1;
  return nothing;
}

/* Unmapping that page takes the lock for writing and waits for the fault. */
static void *unmap(void *nothing) {
  sleep(1);
  munmap(shared, PAGE);
  return nothing;
}

static void set_flags(int file) {
  int flags = 0;
  ioctl(file, FS_IOC_SETFLAGS, &flags);
}

/* The answer goes to a page that somebody has to fill first, and nobody does. */
static void fault(int file) {
  int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  struct uffdio_api api = {.api = UFFD_API};
  ioctl(faults, UFFDIO_API, &api);
  char *page = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct uffdio_register range = {.range = {(unsigned long)page, PAGE},
                                  .mode = UFFDIO_REGISTER_MODE_MISSING};
  ioctl(faults, UFFDIO_REGISTER, &range);
  ioctl(file, UVM_RELEASE_VA, page);
}

static void spin(void) {
  int random = open("/dev/urandom", O_RDONLY);
  while (read(random, numbers, sizeof numbers) > 0) {
  }
}

static void lock(int file) {
  pthread_t thread;
  pthread_create(&thread, 0, touch, 0);
  pthread_create(&thread, 0, unmap, 0);
  sleep(2);
  set_flags(file);
}

int main(int count, char **words) {
  if (count < 3) return 64;
  const char *how = words[1];
  int file = open(words[2], O_RDWR);
  if (file < 0) return 1;
  if (!strcmp(how, "lock")) {
    shared = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    volatile char first = shared[0];
    (void)first;
  }
  puts("ready");
  fflush(stdout);
  /* Whoever freezes the file system says so by a line. */
  if (!strcmp(how, "lock") || !strcmp(how, "flags")) getchar();
  if (!strcmp(how, "storm"))
    for (;;) ioctl(file, 0xc020462a, 0);
  if (!strcmp(how, "busy"))
    for (volatile long turn = 0;; turn++) {
    }
  if (!strcmp(how, "flags")) set_flags(file);
  if (!strcmp(how, "fault")) fault(file);
  if (!strcmp(how, "spin")) spin();
  if (!strcmp(how, "lock")) lock(file);
  return 0;
}
