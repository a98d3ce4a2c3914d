/* A libcuda that does what the variable MODE says: returns a code, hangs, crashes, or tries what
 * the real one does as root to the machine. Built by the tests that load it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static void tell(const char *what, int result) {
    fprintf(stderr, "%s=%s\n", what, result < 0 ? strerror(errno) : "done");
}

static void change_the_machine(void) {
    tell("mknod", mknod("/dev/nvidiactl", S_IFCHR | 0666, makedev(195, 255)));
    tell("mknod-elsewhere", mknod("/tmp/gpudx-node", S_IFCHR | 0666, makedev(1, 3)));
    tell("create", open("/dev/new", O_CREAT | O_RDWR, 0600));
    tell("chmod", chmod("/dev/nvidia0", 0600));
    tell("chown", chown("/dev/nvidia0", 1, 1));
    tell("unlink", unlink("/dev/nvidia0"));
    tell("rename", rename("/dev/nvidia0", "/dev/nvidia1"));
    tell("symlink", symlink("../nvidiactl", "/dev/char-link"));
    tell("helper", system("mknod /dev/nvidiactl c 195 255 2>/dev/null") == 0 ? 0 : -1);
    tell("open", open("/dev/nvidia0", O_RDWR));
}

int cuInit(unsigned flags) {
    const char *mode = getenv("MODE");
    if (mode == NULL) return 0;
    if (!strcmp(mode, "hang")) for (;;) pause();
    if (!strcmp(mode, "crash")) raise(SIGSEGV);
    if (!strcmp(mode, "exit")) exit(0);
    if (!strcmp(mode, "print")) { printf("{\"record\":\n"); fflush(stdout); }
    if (!strcmp(mode, "freeze")) open(getenv("FROZEN_FILE"), O_CREAT | O_WRONLY, 0644);
    if (!strcmp(mode, "change")) change_the_machine();
    return atoi(mode);
}

int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int room, int device) { strncpy(name, "Fake GPU", room); return 0; }
int cuDeviceGetPCIBusId(char *id, int room, int device) { strncpy(id, "0000:01:00.0", room); return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) { *value = which == 75 ? 9 : 0; return 0; }
