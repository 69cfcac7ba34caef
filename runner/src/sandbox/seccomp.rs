//! A seccomp filter for system calls that no build needs.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// System calls with their names, as Docker needs them.
type Calls = &'static [(&'static str, c_long)];

macro_rules! calls {
    ($($call:ident),* $(,)?) => { &[$((stringify!($call), libc::$call)),*] };
}

/// Debugging and reading other processes; mounting, and entering namespaces; kernel keys, programs
/// and modules; I/O rings, which bypass the filter; opening files by handle, which bypasses paths.
/// A process can still be created in new namespaces: this filter applies there, too, where it would
/// be root.
const FORBIDDEN: Calls = calls![
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_perf_event_open,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_open_tree,
    SYS_mount_setattr,
    SYS_setns,
    SYS_unshare,
    SYS_swapon,
    SYS_swapoff,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_bpf,
    SYS_userfaultfd,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_acct,
    SYS_quotactl,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
];

/// System V IPC: without a namespace, everything that another process of the user shares this way
/// could be read and overwritten.
const SHARED: Calls = calls![
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_shmdt,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_semget,
    SYS_semop,
    SYS_semctl,
    SYS_semtimedop,
];

/// These put bytes into the terminal as if they were typed.
const TERMINAL_INPUT: [u64; 2] = [libc::TIOCSTI, 0x541C /* TIOCLINUX */];

/// Socket families that no build needs, in addition to all that are newer than netlink: among them
/// the one that reaches the host of a virtual machine past every network namespace (`AF_VSOCK`),
/// and the kernel's cryptography. Unix, IPv4, IPv6 and netlink remain.
const OLD_FAMILIES: [u64; 12] = [3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15];
/// The newest family that a build may need.
const NETLINK: u64 = 16;

/// The bits of a socket's type without flags.
const SOCKET_TYPE: u64 = 0xF;

/// On x86-64 every call also has an x32 number, which a filter must list separately.
#[cfg(target_arch = "x86_64")]
const X32: c_long = 0x4000_0000;
/// `ptrace`, `kexec_load`, `process_vm_readv` and `process_vm_writev` have separate x32 numbers.
#[cfg(target_arch = "x86_64")]
const X32_FORBIDDEN: [c_long; 4] = [521, 528, 539, 540];
/// So does `ioctl`.
#[cfg(target_arch = "x86_64")]
const X32_IOCTL: c_long = 514;

/// Which sockets the filter itself must block. Without namespaces, nothing else isolates processes
/// from each other either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sockets {
    /// No further families: namespaces isolate the rest.
    Allowed,
    /// Unix sockets of the host: some daemons behind them (Docker's) grant the rights of root.
    Internet,
    /// All sockets; connected pairs between related processes are still possible.
    Denied,
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filter, compiled for the kernel. Forbidden calls fail with EPERM.
pub(super) fn filter(sockets: Sockets) -> Result<BpfProgram, String> {
    let rules = rules(sockets).map_err(|error| error.to_string())?;
    let arch = std::env::consts::ARCH.try_into().map_err(|_| "no seccomp on this machine".to_owned())?;
    let errno = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, errno, arch)
        .and_then(BpfProgram::try_from)
        .map_err(|error| error.to_string())
}

/// The filter in the byte format that bubblewrap reads.
pub(super) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let instruction = |filter: &seccompiler::sock_filter| {
        let [code0, code1] = filter.code.to_ne_bytes();
        let [k0, k1, k2, k3] = filter.k.to_ne_bytes();
        [code0, code1, filter.jt, filter.jf, k0, k1, k2, k3]
    };
    program.iter().flat_map(instruction).collect()
}

/// The filter with namespaces in Docker's format. It replaces Docker's own profile, which before
/// version 23 allows sockets of every family and I/O rings. Like Docker's, it does not allow new
/// namespaces: a namespace created in a container exposes more of the kernel.
pub(super) fn docker_profile() -> String {
    let rule = |names: &str, errno: i32, argument: &str| {
        format!(r#"{{"names":["{names}"],"action":"SCMP_ACT_ERRNO","errnoRet":{errno},"args":[{argument}]}}"#)
    };
    let argument = |index: u8, how: &str, value: u64| {
        format!(r#"{{"index":{index},"op":"SCMP_CMP_{how}","value":{value},"valueTwo":{value}}}"#)
    };
    let forbidden = FORBIDDEN.iter().map(|(name, _)| rule(name.trim_start_matches("SYS_"), libc::EPERM, ""));
    let typed = TERMINAL_INPUT.iter().map(|request| rule("ioctl", libc::EPERM, &argument(1, "EQ", *request)));
    let old = OLD_FAMILIES.iter().map(|family| rule("socket", libc::EPERM, &argument(0, "EQ", *family)));
    let newer = rule("socket", libc::EPERM, &argument(0, "GT", NETLINK));
    let born = NEW_NAMESPACES.iter().map(|flag| u64::from(flag.cast_unsigned()));
    let born = born.map(|flag| rule("clone", libc::EPERM, &argument(0, "MASKED_EQ", flag)));
    // Its flags are in memory, where a filter cannot read them; programs that are told that it does
    // not exist use `clone`.
    let unseen = rule("clone3", libc::ENOSYS, "");
    let rules: Vec<String> = forbidden.chain(typed).chain(old).chain(born).chain([newer, unseen]).collect();
    format!(r#"{{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{}]}}"#, rules.join(","))
}

/// Flags of `clone`.
const NEW_NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

fn rules(sockets: Sockets) -> Result<Rules, seccompiler::BackendError> {
    let whole = |calls: Calls| calls.iter().map(|(_, call)| (*call, Vec::new()));
    let mut rules: Rules = whole(FORBIDDEN).collect();
    let typed = |request| compared(1, SeccompCmpOp::Eq, request);
    rules.insert(libc::SYS_ioctl, TERMINAL_INPUT.into_iter().map(typed).collect::<Result<_, _>>()?);
    let mut families = vec![compared(0, SeccompCmpOp::Gt, NETLINK)?];
    for family in OLD_FAMILIES {
        families.push(compared(0, SeccompCmpOp::Eq, family)?);
    }
    match sockets {
        Sockets::Allowed => {}
        Sockets::Internet => {
            families.push(compared(0, SeccompCmpOp::Eq, libc::AF_UNIX.cast_unsigned().into())?);
        }
        // A call without conditions is denied with any arguments.
        Sockets::Denied => {
            families.clear();
            rules.insert(libc::SYS_connect, Vec::new());
        }
    }
    rules.insert(libc::SYS_socket, families);
    if sockets != Sockets::Allowed {
        rules.extend(whole(SHARED));
        // With a limit, any process of the user could be ended, including the harness. A process
        // passes 0 to set its own limits.
        rules.insert(libc::SYS_prlimit64, vec![compared(0, SeccompCmpOp::Ne, 0)?]);
    }
    if sockets != Sockets::Allowed {
        // A pair of datagram sockets could still send to any path.
        let datagram =
            compared(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), libc::SOCK_DGRAM.cast_unsigned().into())?;
        rules.insert(libc::SYS_socketpair, vec![datagram]);
    }
    #[cfg(target_arch = "x86_64")]
    add_x32(&mut rules);
    Ok(rules)
}

fn compared(argument: u8, how: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value)?])
}

#[cfg(target_arch = "x86_64")]
fn add_x32(rules: &mut Rules) {
    let twins: Vec<_> = rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
    rules.extend(twins);
    if let Some(typed) = rules.get(&libc::SYS_ioctl).cloned() {
        rules.insert(X32_IOCTL | X32, typed);
    }
    rules.extend(X32_FORBIDDEN.map(|call| (call | X32, Vec::new())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, chroot, getpid, pidfd_getfd, pidfd_open};
    use std::io;
    use std::net::UdpSocket;
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::thread;

    /// Which of some calls, otherwise allowed to everyone, this filter denies; their other effects do not
    /// matter.
    fn denied(sockets: Option<Sockets>) -> Vec<&'static str> {
        let (own, earlier) =
            (pidfd_open(getpid(), PidfdFlags::empty()).unwrap(), UnixDatagram::unbound().unwrap());
        let try_all = move || {
            if let Some(sockets) = sockets {
                seccompiler::apply_filter(&filter(sockets).unwrap()).unwrap();
            }
            let tried: [(_, io::Result<()>); 7] = [
                ("chroot", chroot("/no/such/folder").map_err(Into::into)),
                (
                    "pidfd_getfd",
                    pidfd_getfd(own, i32::MAX, PidfdGetfdFlags::empty()).map(drop).map_err(Into::into),
                ),
                ("unix socket", UnixDatagram::unbound().map(drop)),
                ("internet socket", UdpSocket::bind("127.0.0.1:0").map(drop)),
                ("connect", earlier.connect("/no/such/socket")),
                ("pair of streams", UnixStream::pair().map(drop)),
                ("pair for datagrams", UnixDatagram::pair().map(drop)),
            ];
            let is_denied = |done: &io::Result<()>| {
                done.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EPERM))
            };
            tried.into_iter().filter(|(_, done)| is_denied(done)).map(|(name, _)| name).collect()
        };
        // The filter applies to this thread, and ends with it.
        thread::spawn(try_all).join().unwrap()
    }

    #[test]
    fn each_filter_denies_its_calls_and_no_others() {
        assert_eq!(denied(None), [""; 0]);
        assert_eq!(denied(Some(Sockets::Allowed)), ["chroot", "pidfd_getfd"]);
        let machine = ["chroot", "pidfd_getfd", "unix socket", "pair for datagrams"];
        assert_eq!(denied(Some(Sockets::Internet)), machine);
        let all =
            ["chroot", "pidfd_getfd", "unix socket", "internet socket", "connect", "pair for datagrams"];
        assert_eq!(denied(Some(Sockets::Denied)), all);
    }

    /// The numbers of `arch/x86/entry/syscalls/syscall_64.tbl` from 512 on, which are only for x32.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_call_that_has_another_number_for_x32_is_denied_by_that_too() {
        let both = [
            (libc::SYS_ioctl, 514),
            (libc::SYS_ptrace, 521),
            (libc::SYS_kexec_load, 528),
            (libc::SYS_process_vm_readv, 539),
            (libc::SYS_process_vm_writev, 540),
        ];
        let rules = rules(Sockets::Allowed).unwrap();
        for (usual, x32) in both {
            let of = |number: c_long| rules.get(&number).map(|rules| format!("{rules:?}"));
            assert!(of(usual).is_some() && of(usual) == of(x32 | X32), "{usual} and {x32}");
        }
    }
}
