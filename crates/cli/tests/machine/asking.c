/* A program that opens files in place of the driver's nodes and asks them what a start of CUDA
 * asks: from its first thread, from another thread, and from a child, one after the other. With an
 * argument, its last question is one that is never answered, while another thread goes on asking.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };

static int control;

static void *of_a_thread(void *nothing) {
  char alloc[48] = {0};
  ioctl(control, 0xc030462b, alloc);
  return nothing;
}

static void of_a_child(void) {
  char version[72] = {0};
  int again = dup(control);
  ioctl(again, 0xc04846d2, version);
  close(again);
}

static void *goes_on(void *nothing) {
  sleep(1);
  of_a_thread(nothing);
  return nothing;
}

static void never_answered(int uvm) {
  int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  struct uffdio_api api = {.api = UFFD_API};
  ioctl(faults, UFFDIO_API, &api);
  char *page = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct uffdio_register range = {.range = {(unsigned long)page, PAGE},
                                  .mode = UFFDIO_REGISTER_MODE_MISSING};
  ioctl(faults, UFFDIO_REGISTER, &range);
  ioctl(uvm, 2, page);
}

int main(int count, char **words) {
  (void)words;
  char bytes[64] = {0};
  control = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
  open("/dev/nvidia7", O_RDWR | O_CLOEXEC);
  memcpy(bytes + 8, "\x14\x02\0\0", 4);
  ioctl(control, 0xc020462a, bytes);
  ioctl(control, 0xc0104629, bytes);
  ioctl(control, 0xc00446ff, bytes);
  int uvm = open("/dev/nvidia-uvm", O_RDWR | O_CLOEXEC);
  ioctl(uvm, 0x30000001, bytes);
  ioctl(uvm, 0x25, bytes);
  pthread_t thread;
  pthread_create(&thread, 0, of_a_thread, 0);
  pthread_join(thread, 0);
  pid_t child = fork();
  if (child == 0) {
    of_a_child();
    _exit(0);
  }
  waitpid(child, 0, 0);
  if (count > 1) {
    pthread_create(&thread, 0, goes_on, 0);
    never_answered(uvm);
  }
  close(uvm);
  return 0;
}
