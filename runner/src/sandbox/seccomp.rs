//! The system calls that no build needs, as a seccomp filter.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Debugging and reading other processes; mounts, and moving into namespaces; kernel keys, programs and modules;
/// rings, which do what the filter forbids; opening files by handle, past every path. A process can still be
/// born into namespaces of its own: this filter holds there too, where it would be root.
const FORBIDDEN: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_perf_event_open,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
];

/// Put bytes into the terminal as if they were typed.
const TERMINAL_INPUT: [u64; 2] = [libc::TIOCSTI, 0x541C /* TIOCLINUX */];

/// The bits of a socket's type that are not flags.
const SOCKET_TYPE: u64 = 0xF;

/// On x86-64 every call also has a number of the x32 interface, which a filter must name itself.
#[cfg(target_arch = "x86_64")]
const X32: c_long = 0x4000_0000;
/// `ptrace`, `kexec_load`, `process_vm_readv` and `process_vm_writev` have numbers of their own there.
#[cfg(target_arch = "x86_64")]
const X32_FORBIDDEN: [c_long; 4] = [521, 528, 539, 540];
/// So has `ioctl`.
#[cfg(target_arch = "x86_64")]
const X32_IOCTL: c_long = 514;

/// Which sockets the filter has to keep away by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sockets {
    /// None: namespaces do that.
    Allowed,
    /// Those of the machine itself: some daemons behind them (Docker's) give the rights of root.
    Internet,
    /// All; pairs between relatives can still be made.
    Denied,
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filter, ready for the kernel. What it forbids fails with EPERM.
pub(super) fn filter(sockets: Sockets) -> Result<BpfProgram, String> {
    let rules = rules(sockets).map_err(|error| error.to_string())?;
    let arch = std::env::consts::ARCH.try_into().map_err(|_| "no seccomp on this machine".to_owned())?;
    let errno = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, errno, arch)
        .and_then(BpfProgram::try_from)
        .map_err(|error| error.to_string())
}

/// The filter as the bytes that bubblewrap reads.
pub(super) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let instruction = |filter: &seccompiler::sock_filter| {
        let [code0, code1] = filter.code.to_ne_bytes();
        let [k0, k1, k2, k3] = filter.k.to_ne_bytes();
        [code0, code1, filter.jt, filter.jf, k0, k1, k2, k3]
    };
    program.iter().flat_map(instruction).collect()
}

fn rules(sockets: Sockets) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = FORBIDDEN.iter().map(|call| (*call, Vec::new())).collect();
    let typed = |request| equal(1, SeccompCmpOp::Eq, request);
    rules.insert(libc::SYS_ioctl, TERMINAL_INPUT.into_iter().map(typed).collect::<Result<_, _>>()?);
    if sockets == Sockets::Denied {
        rules.insert(libc::SYS_socket, Vec::new());
        rules.insert(libc::SYS_connect, Vec::new());
    }
    if sockets == Sockets::Internet {
        rules.insert(
            libc::SYS_socket,
            vec![equal(0, SeccompCmpOp::Eq, libc::AF_UNIX.cast_unsigned().into())?],
        );
    }
    if sockets != Sockets::Allowed {
        // A pair of datagram sockets could still send to any path.
        let datagram =
            equal(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), libc::SOCK_DGRAM.cast_unsigned().into())?;
        rules.insert(libc::SYS_socketpair, vec![datagram]);
    }
    #[cfg(target_arch = "x86_64")]
    add_x32(&mut rules);
    Ok(rules)
}

fn equal(argument: u8, how: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
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

    /// The calls that this filter denies, of some that otherwise nobody is denied, whatever else becomes of them.
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
        // The filter is the thread's, and gone with it.
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

    /// The numbers of `arch/x86/entry/syscalls/syscall_64.tbl` from 512 on, which are those of x32 alone.
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
