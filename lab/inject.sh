# Functions with which faults are set up. Sourced by bash as root, in a mount namespace that is
# private to one run and goes with it. WORK is a folder of that run, BIN the one of the programs.
set -eu

# A /dev of our own with all that the real one has; mount options such as nodev may be given.
fresh_dev() {
    local new="$WORK/dev"
    mkdir -p "$new"
    mount -t tmpfs -o "mode=755${1:+,$1}" lab "$new"
    cp -a -x /dev/. "$new/"
    local below
    for below in shm pts mqueue hugepages; do
        if mountpoint -q "/dev/$below"; then mount --rbind "/dev/$below" "$new/$below"; fi
    done
    mount --move "$new" /dev
}

# Takes nodes away, after fresh_dev.
absent() {
    local name
    for name in "$@"; do rm -rf /dev/$name; done
}

# Puts a character node of these numbers in a node's place: node NAME MAJOR MINOR.
node() {
    rm -f "/dev/$1"
    mknod -m 666 "/dev/$1" c "$2" "$3"
}

# The major that the kernel gave a name of /proc/devices.
major() {
    awk -v name="$1" '$2 == name { print $1; exit }' /proc/devices
}

# A process that the fault consists of: it runs beside the program and ends with the fault.
beside() {
    GPUDX_LAB_PART=1 "$@" &
}

# The driver library with this name, as the loader finds it: library libcuda.so.1
library() {
    local folder
    IFS=: read -ra folders <<< "${LD_LIBRARY_PATH:-}"
    for folder in "${folders[@]}"; do
        if [ -n "$folder" ] && [ -e "$folder/$1" ]; then readlink -f "$folder/$1"; return; fi
    done
    local found
    found=$(ldconfig -p | awk -v name="$1" '$1 == name && /x86-64|AArch64/ { print $NF; exit }')
    if [ -z "$found" ]; then echo "no $1 here" >&2; return 1; fi
    readlink -f "$found"
}

# Every file of this name that the loader could find: all_libraries 'libcuda.so*'
all_libraries() {
    local folder
    {
        tr : '\n' <<< "${LD_LIBRARY_PATH:-}"
        ldconfig -p | awk '$1 ~ /^lib(cuda|nvidia-ml)\.so/ { print $NF }' | xargs -r -n1 dirname
        printf '%s\n' /usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu /usr/lib64 /usr/lib
    } | sort -u | while read -r folder; do
        if [ -d "$folder" ]; then find "$folder" -maxdepth 1 -name "$1"; fi
    done
}

# Takes the libraries of these names from every folder in which the loader could find them. The
# folder is covered by one of links to all the others: hide_libraries 'libcuda.so*'
hide_libraries() {
    local pattern="$1" folder cover whole
    all_libraries "$pattern" | xargs -r -n1 dirname | xargs -r -n1 readlink -f | sort -u > "$WORK/folders"
    while read -r folder; do
        cover=$(mktemp -d "$WORK/cover.XXXX")
        whole=$(mktemp -d "$WORK/whole.XXXX")
        chmod 755 "$cover" "$whole"
        mount --bind "$folder" "$whole"
        find "$whole" -mindepth 1 -maxdepth 1 ! -name "$pattern" -exec ln -s -t "$cover" {} +
        mount --bind "$cover" "$folder"
    done < "$WORK/folders"
}

# A copy of a driver library in a folder of its own, under the names that the loader asks for:
# copy_library libcuda.so.1 FOLDER
copy_library() {
    mkdir -p "$2"
    chmod 755 "$WORK" "$2"
    cp "$(library "$1")" "$2/$1"
}

# Moves this shell to a cgroup v1 of its own whose devices controller denies a major.
deny_device_v1() {
    local folder="/sys/fs/cgroup/devices/gpudx-lab-$GPUDX_LAB_RUN"
    mkdir "$folder"
    echo "c $1:* rwm" > "$folder/devices.deny"
    echo $$ > "$folder/tasks"
}

# A kernel whose configuration has HMM, or lacks it, as far as /proc/config.gz tells.
kernel_with_hmm() {
    kernel_config 'CONFIG_HMM_MIRROR=y\nCONFIG_DEVICE_PRIVATE=y\n'
}
kernel_without_hmm() {
    kernel_config '# CONFIG_HMM_MIRROR is not set\n# CONFIG_DEVICE_PRIVATE is not set\n'
}
kernel_config() {
    printf "$1" | gzip > "$WORK/config.gz"
    chmod 644 "$WORK/config.gz"
    if [ ! -e /proc/config.gz ]; then echo "this kernel shows no configuration" >&2; return 1; fi
    mount --bind "$WORK/config.gz" /proc/config.gz
}
