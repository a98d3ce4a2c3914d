use super::*;
use crate::model::task::Hang;
use crate::raw::{ItemName, RawItem, RawSet};

fn read(text: &str) -> Facts {
    let name = ItemName::Text("report.txt".to_owned());
    crate::extract(&RawSet::from_iter([RawItem::new(name, text.as_bytes())]))
}

fn file(path: &str, text: &str) -> RawItem {
    RawItem::new(ItemName::File(path.to_owned()), text.as_bytes())
}

const STACK: &str = "[<0>] rwsem_down_write_slowpath+0x2a1/0x5e0\n\
    [<0>] down_write+0x5b/0x70\n\
    [<0>] uvm_api_initialize+0x85/0x130 [nvidia_uvm]\n\
    [<0>] uvm_unlocked_ioctl_entry+0x6f/0x90 [nvidia_uvm]\n\
    [<0>] __x64_sys_ioctl+0xa0/0xe0\n";
const SYSCALL: &str =
    "16 0x9 0x30000001 0x7ffd1e8c3f20 0x0 0x0 0x7f0000000000 0x7ffd1e8c3e98 0x7f3b2c91a94f\n";

/// As the probe collects it.
fn live() -> Facts {
    let task = "/proc/8123/task/8130";
    let stat = "8130 (python3) D 8000 8123 8000 0 -1 0 0 0 0 0 12 30 0 0 20 0 9 0 900 0 0\n";
    let mut items = vec![
        file("/proc/uptime", "69.25 100.00\n"),
        file(&format!("{task}/stat"), stat),
        file(
            &format!("{task}/status"),
            "Name:\tpython3\nState:\tD (disk sleep)\nShdPnd:\t0000000000000100\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t1\n",
        ),
        file(&format!("{task}/stat"), stat),
        file(
            &format!("{task}/status"),
            "State:\tD (disk sleep)\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t1\n",
        ),
        file(&format!("{task}/wchan"), "rwsem_down_write_slowpath"),
        file(&format!("{task}/stack"), STACK),
        file(&format!("{task}/syscall"), SYSCALL),
        file("/proc/8123/fd/9", "/dev/nvidia-uvm"),
        file("/proc/8123/fd/1", "/dev/null"),
    ];
    let notes = "{\"record\":\"note\",\"key\":\"looks-apart-s\",\"value\":\"8130 0.300\"}\n";
    items.push(RawItem::new(
        ItemName::Probe { name: "stuck".to_owned(), trial: 1 },
        notes.as_bytes(),
    ));
    crate::extract(&items.into_iter().collect())
}

#[test]
fn a_live_look_gives_the_whole_picture() {
    let facts = live();
    let [task] = facts.tasks.as_slice() else { panic!("{:?}", facts.tasks) };
    let stuck = &task.stuck;
    assert_eq!(stuck.who(), "python3 (pid 8123, thread 8130)");
    assert_eq!(stuck.call.as_deref(), Some("ioctl UVM_INITIALIZE on /dev/nvidia-uvm"));
    assert_eq!(stuck.stack[2], "uvm_api_initialize [nvidia_uvm]");
    assert_eq!(stuck.descriptors, ["/dev/nvidia-uvm"]);
    assert_eq!((stuck.switches, stuck.age_s), (Some(0), Some(60.0)));
    assert_eq!((stuck.user_share, stuck.system_share), (Some(0.0), Some(0.0)));
    assert_eq!(Hang::of(stuck), Some(Hang::SleepsInKernel));
    assert!(stuck.kill_pending && task.surely_hangs() && stuck.is_in_driver());
}

/// The same data as a person pastes it leads to the same facts.
#[test]
fn a_pasted_look_says_the_same() {
    let facts = read(&format!(
        "root@pve:~# ps -eLo pid,tid,stat,wchan:32,comm | grep ' D'\n\
         \x20  8123    8130 Dl   rwsem_down_write_slowpath        python3\n\
         root@pve:~# ps -eLo pid,tid,stat,wchan:32,comm\n\
         \x20   PID     TID STAT WCHAN                            COMMAND\n\
         \x20  8123    8130 Dl   rwsem_down_write_slowpath        python3\n\
         \x20  8123    8123 Sl   futex_wait_queue                 python3\n\
         root@pve:~# cat /proc/8123/task/8130/stack\n{STACK}\
         root@pve:~# cat /proc/8123/task/8130/syscall\n{SYSCALL}\
         root@pve:~# ls -l /proc/8123/fd\ntotal 0\n\
         lrwx------ 1 root root 64 Nov 30 10:00 1 -> /dev/null\n\
         lrwx------ 1 root root 64 Nov 30 10:00 9 -> /dev/nvidia-uvm\n"
    ));
    let [task] = facts.tasks.as_slice() else { panic!("{:?}", facts.tasks) };
    let live = live().tasks.remove(0).stuck;
    let pasted = &task.stuck;
    assert_eq!(
        (pasted.pid, pasted.tid, &pasted.name, &pasted.state),
        (live.pid, live.tid, &live.name, &live.state)
    );
    assert_eq!(
        (&pasted.wchan, &pasted.stack, &pasted.call, &pasted.descriptors),
        (&live.wchan, &live.stack, &live.call, &live.descriptors)
    );
    assert_eq!(Hang::of(pasted), Hang::of(&live));
    assert!(facts.mentions_gpu);
}

#[test]
fn the_watchdog_names_tasks_and_their_stacks() {
    let facts = read(
        "[  484.1] INFO: task python3:8130 blocked for more than 120 seconds.\n\
         [  484.1]       Tainted: P           OE      6.8.12-9-pve #1\n\
         [  484.1] \"echo 0 > /proc/sys/kernel/hung_task_timeout_secs\" disables this message.\n\
         [  484.1] task:python3  state:D stack:0 pid:8130 tgid:8123 ppid:1 flags:0x00004002\n\
         [  484.1] Call Trace:\n[  484.1]  <TASK>\n\
         [  484.1]  __schedule+0x4c9/0x1440\n[  484.1]  schedule+0x27/0xf0\n\
         [  484.1]  down_write+0x5b/0x70\n[  484.1]  ? srso_alias_return_thunk+0x5/0xfbef5\n\
         [  484.1]  uvm_api_initialize+0x85/0x130 [nvidia_uvm]\n\
         [  484.1]  </TASK>\n\
         [  484.2] INFO: task nvidia-smi:9000 blocked for more than 241 seconds.\n\
         [  484.2]  down_read+0x5b/0x70\n\
         [  484.2]  os_acquire_rwlock_read+0x1/0x2 [nvidia]\n",
    );
    let [one, two] = facts.tasks.as_slice() else { panic!("{:?}", facts.tasks) };
    assert_eq!(one.stuck.stack, ["down_write", "uvm_api_initialize [nvidia_uvm]"]);
    assert_eq!((one.watched_s, two.watched_s), (Some(120), Some(241)));
    assert_eq!(two.stuck.stack, ["down_read", "os_acquire_rwlock_read [nvidia]"]);
    assert!(one.from_log && one.surely_hangs());
}

#[test]
fn tasks_that_wait_for_the_same_are_told() {
    let stack = "[<0>] down+0x1/0x2\n[<0>] os_acquire_mutex+0x1/0x2 [nvidia]\n[<0>] x+0x1/0x2\n";
    let other = "[<0>] schedule_timeout+0x1/0x2\n[<0>] rm_init_adapter+0x1/0x2 [nvidia]\n";
    let items = [("7", stack), ("8", stack), ("9", other)];
    let items = items.map(|(pid, text)| file(&format!("/proc/{pid}/stack"), text));
    let facts = crate::extract(&items.into_iter().collect());
    let places: Vec<_> = facts.tasks.iter().map(|task| task.stuck.same_place.clone()).collect();
    assert_eq!(places, [vec![8], vec![7], vec![]]);
}

#[test]
fn what_could_not_be_read_names_its_privilege() {
    let denied = |path: &str| {
        let state = crate::raw::RawState::Denied(crate::observed::Errno(1));
        RawItem::with_state(ItemName::File(path.to_owned()), state)
    };
    let stat = "7 (nvidia-smi) D 1 7 7 0 -1 0 0 0 0 0 12 30 0 0 20 0 9 0 900 0 0\n";
    let items = [file("/proc/7/stat", stat), denied("/proc/7/stack"), denied("/proc/7/fd")];
    let facts = crate::extract(&items.into_iter().collect());
    let refused = &facts.tasks[0].stuck.not_readable;
    assert!(refused[0].starts_with("stack (EPERM): needs CAP_SYS_ADMIN"), "{refused:?}");
    assert!(refused[1].contains("root sees which nodes it holds"), "{refused:?}");
    assert!(facts.tasks[0].stuck.concerns_driver(), "it is one of NVIDIA's programs");
}

/// Two looks at a task that runs, without the time between them: what the processor was used for.
#[test]
fn pasted_looks_tell_a_spin_from_a_loop() {
    let line = |user: u32, system: u32| {
        format!("7 (p) R 1 7 7 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 9 0 900 0 0\n")
    };
    for (user, system, expected) in [
        (0, 100, Hang::SpinsInKernel),
        (40, 60, Hang::RepeatsCalls),
        (100, 1, Hang::BusyInUserSpace),
    ] {
        let items = [line(12, 30), line(12 + user, 30 + system)];
        let items = items.map(|text| file("/proc/7/stat", &text));
        let facts = crate::extract(&items.into_iter().collect());
        assert_eq!(Hang::of(&facts.tasks[0].stuck), Some(expected), "{user} {system}");
    }
}

#[test]
fn a_stack_without_a_name_and_placeholders() {
    let facts = read(&format!("it is stuck here:\n\n{STACK}\nany idea?\n"));
    assert_eq!(facts.tasks[0].stuck.stack[1], "down_write");
    assert_eq!(facts.tasks[0].origin.line, 3);
    let facts =
        read(&format!("$ cat /proc/$PID/stack\n{STACK}$ cat /proc/$PID/syscall\n{SYSCALL}"));
    let [task] = facts.tasks.as_slice() else { panic!("{:?}", facts.tasks) };
    assert_eq!(task.stuck.call.as_deref(), Some("ioctl UVM_INITIALIZE on /dev/nvidia-uvm"));
    assert!(read("$ cat /proc/driver/nvidia/version\nx\n").tasks.is_empty());
}
