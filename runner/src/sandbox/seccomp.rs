//! The seccomp filters: a list of the system calls that a command may use, and arguments that it may not.

use std::collections::BTreeMap;
use std::num::TryFromIntError;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

mod calls;
mod modes;

use calls::{ALLOWED, FORBIDDEN, SHARED};

/// These put bytes into the terminal as if they were typed. By number: not every C library names them, and the type of
/// their names depends on it.
const TERMINAL_INPUT: [u64; 2] = [0x5412 /* TIOCSTI */, 0x541C /* TIOCLINUX */];

/// The socket families that a build may need: Unix, IPv4, IPv6 and netlink. Not the one that reaches the host of a
/// virtual machine past every network namespace (`AF_VSOCK`), and not the kernel's cryptography.
const FAMILIES: [u64; 4] = [UNIX, 2, 10, 16];

/// The family of the sockets that connect related processes.
const UNIX: u64 = 1;

/// The bits of a socket's type without flags.
const SOCKET_TYPE: u64 = 0xF;

/// The types of Unix sockets that lead to their peer alone: streams, and sequences of packets. All others are datagram
/// sockets, or none.
const CONNECTED: [u64; 2] = [1, 5];

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

/// The size of a file, and open files.
const GIVEN_LIMITS: [u64; 2] = [1 /* RLIMIT_FSIZE */, 7 /* RLIMIT_NOFILE */];

/// `libc` has no name for it everywhere.
const SET_LIMIT: i64 = if cfg!(target_arch = "x86_64") {
    160
} else {
    164
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters, compiled for the kernel, in the order in which they are installed. By the first one, calls that are not
/// listed fail with ENOSYS, also by the second number that each has on x86-64 (x32), and those that are forbidden with
/// EPERM; by the second one, those that are forbidden with these arguments. It also ends a process that uses the calls of
/// another architecture.
pub(super) fn filters(sockets: Sockets) -> Result<[BpfProgram; 2], String> {
    let refused = |error: i32| SeccompAction::Errno(error.cast_unsigned());
    let shared = if sockets == Sockets::Allowed {
        &[]
    } else {
        SHARED
    };
    let forbidden = FORBIDDEN
        .iter()
        .chain(shared)
        .map(|(_, call)| (*call, refused(libc::EPERM)));
    let allowed = ALLOWED
        .into_iter()
        .flatten()
        .map(|(_, call)| (*call, SeccompAction::Allow));
    let rules = rules(sockets).map_err(|error| error.to_string())?;
    Ok([
        by_number(allowed.chain(forbidden), refused(libc::ENOSYS).into())
            .map_err(|error| error.to_string())?,
        compiled(rules, SeccompAction::Allow, refused(libc::EPERM))?,
    ])
}

/// `struct seccomp_data` begins with the number of the call.
const LOAD_NUMBER: sock_filter = sock_filter {
    code: 0x20, /* BPF_LD | BPF_W | BPF_ABS */
    jt: 0,
    jf: 0,
    k: 0,
};

/// The filter that looks only at numbers, as a search tree: when it is installed, the kernel runs it once for each
/// number, which takes a list of hundreds of comparisons a millisecond. Of two actions for one call the last one counts.
fn by_number(
    calls: impl Iterator<Item = (i64, SeccompAction)>,
    otherwise: u32,
) -> Result<BpfProgram, TryFromIntError> {
    let mut starts = BTreeMap::from([(0, otherwise)]);
    for (call, action) in calls.collect::<BTreeMap<_, _>>() {
        let call = u32::try_from(call)?;
        starts.extend([(call, action.into()), (call + 1, otherwise)]);
    }
    let mut ranges: Vec<(u32, u32)> = starts.into_iter().collect();
    ranges.dedup_by_key(|(_, action)| *action);
    Ok([vec![LOAD_NUMBER], search(&ranges)?].concat())
}

/// Takes the first number of each range, and its action.
fn search(ranges: &[(u32, u32)]) -> Result<BpfProgram, TryFromIntError> {
    let (low, high) = ranges.split_at(ranges.len() / 2);
    Ok(match (low, high) {
        ([_, ..], [(first, _), ..]) => {
            let low = search(low)?;
            let jump = u8::try_from(low.len())?;
            let from = sock_filter {
                code: 0x35, /* BPF_JMP | BPF_JGE */
                jt: jump,
                jf: 0,
                k: *first,
            };
            [vec![from], low, search(high)?].concat()
        }
        _ => high
            .iter()
            .map(|&(_, action)| sock_filter {
                code: 0x06, /* BPF_RET */
                jt: 0,
                jf: 0,
                k: action,
            })
            .collect(),
    })
}

fn compiled(
    rules: Rules,
    otherwise: SeccompAction,
    matching: SeccompAction,
) -> Result<BpfProgram, String> {
    let arch = std::env::consts::ARCH
        .try_into()
        .map_err(|_| "no seccomp on this machine".to_owned())?;
    SeccompFilter::new(rules, otherwise, matching, arch)
        .and_then(BpfProgram::try_from)
        .map_err(|error| error.to_string())
}

/// Restricts this thread and all that it starts; also forbids to gain rights by starting a program.
pub(super) fn install(filters: &[BpfProgram]) -> Result<(), String> {
    filters
        .iter()
        .try_for_each(|filter| seccompiler::apply_filter(filter))
        .map_err(|error| error.to_string())
}

/// The filter in Docker's format, as one list. It replaces Docker's own profile, which before version 23
/// allows sockets of every family and I/O rings. Like Docker's, it does not allow new namespaces: a namespace created
/// in a container exposes more of the kernel. Before version 23, Docker answers EPERM for what is not listed.
pub(super) fn docker_profile() -> String {
    let rule = |names: &str, action: &str, arguments: &str| {
        format!(r#"{{"names":["{names}"],"action":"SCMP_ACT_{action},"args":[{arguments}]}}"#)
    };
    let allowed = |names: &str, arguments: &str| rule(names, r#"ALLOW""#, arguments);
    let refused = |name: &str, error: i32| rule(name, &format!(r#"ERRNO","errnoRet":{error}"#), "");
    let masked = |index: u8, mask: u64, value: u64| {
        format!(
            r#"{{"index":{index},"op":"SCMP_CMP_MASKED_EQ","value":{mask},"valueTwo":{value}}}"#
        )
    };
    let name = |call: &str| call.trim_start_matches("SYS_").to_owned();
    let names: Vec<String> = ALLOWED
        .into_iter()
        .flatten()
        .map(|(call, _)| name(call))
        .collect();
    let whole: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !BY_ARGUMENT.contains(name))
        .collect();
    let families = FAMILIES.map(|family| allowed("socket", &masked(0, u64::MAX, family)));
    let namespaces = NEW_NAMESPACES
        .iter()
        .fold(0, |all, flag| all | u64::from(flag.cast_unsigned()));
    let requests =
        all_but(TERMINAL_INPUT).map(|(mask, value)| allowed("ioctl", &masked(1, mask, value)));
    let forbidden = FORBIDDEN
        .iter()
        .map(|(call, _)| refused(&name(call), libc::EPERM));
    let rules = [
        allowed(&whole.join("\",\""), ""),
        allowed("clone", &masked(0, namespaces, 0)),
        allowed("socketpair", &masked(0, u64::MAX, UNIX)),
        // An older Docker would answer EPERM, which no program takes for a reason to use `clone`.
        refused("clone3", libc::ENOSYS),
    ];
    let rules: Vec<String> = rules
        .into_iter()
        .chain(families)
        .chain(requests)
        .chain(forbidden)
        .collect();
    let (otherwise, rules) = (libc::ENOSYS, rules.join(","));
    format!(
        r#"{{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":{otherwise},"syscalls":[{rules}]}}"#
    )
}

/// The calls that depend on their arguments.
const BY_ARGUMENT: [&str; 4] = ["clone", "ioctl", "socket", "socketpair"];

/// Masks and values: a number of 32 bits has one of these values below its mask if and only if it is neither of two. In a
/// profile, conditions on one argument are alternatives, so that "neither" cannot be said.
fn all_but([one, other]: [u64; 2]) -> impl Iterator<Item = (u64, u64)> {
    let differ = one ^ other;
    let common = (0..32)
        .map(|bit| 1 << bit)
        .filter(move |bit| differ & bit == 0);
    let unlike_both = common.map(move |bit| (bit, !one & bit));
    let mixed = (0..=differ).filter(move |value| {
        value & !differ == 0 && ![one, other].map(|own| own & differ).contains(value)
    });
    unlike_both.chain(mixed.map(move |value| (differ, value)))
}

/// Flags of `clone`. In a user namespace, a process has rights that expose more of the kernel.
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
    let mut rules = modes::set_user_id()?;
    let typed = |request| compared(1, SeccompCmpOp::Eq, request);
    rules.insert(
        libc::SYS_ioctl,
        TERMINAL_INPUT
            .into_iter()
            .map(typed)
            .collect::<Result<_, _>>()?,
    );
    let foreign = FAMILIES.map(|family| condition(0, SeccompCmpOp::Ne, family));
    let mut families = vec![SeccompRule::new(
        foreign.into_iter().collect::<Result<_, _>>()?,
    )?];
    match sockets {
        Sockets::Allowed => {}
        Sockets::Internet => {
            families.push(compared(0, SeccompCmpOp::Eq, UNIX)?);
        }
        // A call without conditions is denied with any arguments.
        Sockets::Denied => {
            families.clear();
            rules.insert(libc::SYS_connect, Vec::new());
        }
    }
    rules.insert(libc::SYS_socket, families);
    let mut pairs = vec![compared(0, SeccompCmpOp::Ne, UNIX)?];
    if sockets != Sockets::Allowed {
        // A pair of datagram sockets could still send to any path.
        let others = (0..=SOCKET_TYPE).filter(|kind| !CONNECTED.contains(kind));
        let others = others.map(|kind| compared(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), kind));
        pairs.extend(others.collect::<Result<Vec<_>, _>>()?);
        rules.extend(limits()?);
    }
    rules.insert(libc::SYS_socketpair, pairs);
    let namespaces = NEW_NAMESPACES.map(|flag| u64::from(flag.cast_unsigned()));
    let namespaces = namespaces.map(|flag| compared(0, SeccompCmpOp::MaskedEq(flag), flag));
    rules.insert(
        libc::SYS_clone,
        namespaces.into_iter().collect::<Result<_, _>>()?,
    );
    Ok(rules)
}

/// With a limit, any process of the user could be ended, including the harness. A process passes 0 to set its own: not
/// those that the harness gives it, as it may do so only when the process runs already.
fn limits() -> Result<Rules, seccompiler::BackendError> {
    let sets = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let given = |argument| GIVEN_LIMITS.map(|limit| condition(argument, SeccompCmpOp::Eq, limit));
    let own = given(0)
        .into_iter()
        .map(|limit| SeccompRule::new(vec![limit?]));
    let any = given(1)
        .into_iter()
        .map(|limit| SeccompRule::new(vec![limit?, sets.clone()]));
    let any = any.chain([compared(0, SeccompCmpOp::Ne, 0)]);
    Ok([
        (SET_LIMIT, own.collect::<Result<_, _>>()?),
        (libc::SYS_prlimit64, any.collect::<Result<_, _>>()?),
    ]
    .into())
}

fn compared(
    argument: u8,
    how: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![condition(argument, how, value)?])
}

fn condition(
    argument: u8,
    how: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value)
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
        let (own, earlier) = (
            pidfd_open(getpid(), PidfdFlags::empty()).unwrap(),
            UnixDatagram::unbound().unwrap(),
        );
        let try_all = move || {
            if let Some(sockets) = sockets {
                install(&filters(sockets).unwrap()).unwrap();
            }
            let tried: [(_, io::Result<()>); 7] = [
                ("chroot", chroot("/no/such/folder").map_err(Into::into)),
                (
                    "pidfd_getfd",
                    pidfd_getfd(own, i32::MAX, PidfdGetfdFlags::empty())
                        .map(drop)
                        .map_err(Into::into),
                ),
                ("unix socket", UnixDatagram::unbound().map(drop)),
                ("internet socket", UdpSocket::bind("127.0.0.1:0").map(drop)),
                ("connect", earlier.connect("/no/such/socket")),
                ("pair of streams", UnixStream::pair().map(drop)),
                ("pair for datagrams", UnixDatagram::pair().map(drop)),
            ];
            let is_denied = |done: &io::Result<()>| {
                done.as_ref()
                    .is_err_and(|error| error.raw_os_error() == Some(libc::EPERM))
            };
            tried
                .into_iter()
                .filter(|(_, done)| is_denied(done))
                .map(|(name, _)| name)
                .collect()
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
        let all = [
            "chroot",
            "pidfd_getfd",
            "unix socket",
            "internet socket",
            "connect",
            "pair for datagrams",
        ];
        assert_eq!(denied(Some(Sockets::Denied)), all);
    }

    #[test]
    fn the_filter_by_number_gives_each_call_its_action_in_a_few_steps() {
        let allowed = ALLOWED
            .into_iter()
            .flatten()
            .map(|(_, call)| (*call, SeccompAction::Allow));
        let forbidden = FORBIDDEN
            .iter()
            .map(|(_, call)| (*call, SeccompAction::Trap));
        let expected: BTreeMap<_, _> = allowed.chain(forbidden).collect();
        let program = by_number(expected.clone().into_iter(), SeccompAction::Log.into()).unwrap();
        for call in (0..1000).chain([u32::MAX, 0x4000_0000, 0x4000_0000 + 1]) {
            let (mut at, mut steps) = (1, 0);
            while program[at].code == 0x35 {
                at += 1 + usize::from(if call >= program[at].k {
                    program[at].jt
                } else {
                    0
                });
                steps += 1;
            }
            let action = expected
                .get(&i64::from(call))
                .unwrap_or(&SeccompAction::Log);
            assert!(
                program[at].k == u32::from(action.clone()) && steps < 10,
                "{call}: {steps}"
            );
        }
    }

    #[test]
    fn all_but_two_numbers_have_one_of_the_values() {
        let [one, other] = TERMINAL_INPUT;
        let fits = |number: u64| all_but([one, other]).any(|(mask, value)| number & mask == value);
        assert!(!fits(one) && !fits(other) && !fits(one | 1 << 32));
        let near = (0..32).map(|bit| one ^ (1 << bit)).chain(0x5400..0x5500);
        assert!(
            near.filter(|number| ![one, other].contains(number))
                .all(fits)
        );
    }
}
