//! Orders as one Slurm array on four nodes, while everything is killed now and then.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError::Timeout};
use std::thread;
use std::time::{Duration, Instant};

use code_commit_fixtures::server::Step;
use rustix::process::{Pid, Signal, getuid, kill_process};
use serde_json::json;

use crate::scene::{
    PROGRAM, Remote, Running, Scene, after, answers, command, port, product, run, scene, until,
};

const NODES: usize = 4;
/// What each answer costs by the vendor's own log: 1000 tokens of input and 100 of output, at 1.25 and 10 dollars a million.
const UNIT: i64 = 1000 * 1250 + 100 * 10_000;
/// Progress may take Slurm minutes.
const PATIENCE: Duration = Duration::from_mins(15);
const CONFIG: &str = "
ClusterName=test
SlurmctldHost=HOST(127.0.0.1)
SlurmctldPort=PORT
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=FOLDER/munge.socket,cred_expire=10
StateSaveLocation=FOLDER/state
SlurmdSpoolDir=FOLDER/spool-%n
SlurmdPidFile=FOLDER/slurmd-%n.pid
SlurmctldPidFile=FOLDER/slurmctld.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
JobRequeue=1
MaxArraySize=4096
MaxJobCount=20000
SlurmdTimeout=15
KillWait=5
SchedulerParameters=sched_interval=5,nohold_on_prolog_fail
NodeName=n[1-4] NodeHostname=HOST NodeAddr=127.0.0.1 Port=[NODES] CPUs=2 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
";

/// A controller and nodes on this machine.
struct Cluster {
    folder: PathBuf,
    controller: Running,
    nodes: Vec<Running>,
    _munge: Running,
}

impl Cluster {
    /// `None`, said aloud, where Slurm is missing or cannot be run.
    fn start(folder: &Path) -> Option<Self> {
        let programs = ["slurmctld", "slurmd", "munged"];
        let is_there = |name: &&str| Path::new("/usr/sbin").join(name).exists();
        if !getuid().is_root() || !programs.iter().all(is_there) {
            eprintln!(
                "SKIPPED: Slurm needs root and slurmctld slurmd slurm-client munge (apt-get install)"
            );
            return None;
        }
        let folder = folder.join("slurm");
        fs::create_dir_all(folder.join("state")).unwrap();
        let path = folder.display().to_string();
        let key = folder.join("munge.key");
        fs::write(&key, [7; 1024]).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o400)).unwrap();
        let files = ["key-file", "socket", "pid-file", "seed-file", "log-file"];
        let files =
            files.map(|flag| format!("--{flag}={path}/munge.{}", flag.trim_end_matches("-file")));
        let words = format!("--force --foreground {}", files.join(" "));
        let munge = Running::start(&mut command("munged", &words), &folder.join("munged.log"));
        until("munge", || {
            folder.join("munge.socket").exists().then_some(())
        });
        let ports = [(); NODES].map(|()| port().to_string()).join(",");
        let host = run(&mut command("hostname", "-s"));
        let config = CONFIG.replace("HOST", host.trim()).replace("NODES", &ports);
        let config = config
            .replace("FOLDER", &path)
            .replace("PORT", &port().to_string());
        fs::write(folder.join("slurm.conf"), config).unwrap();
        let controller = daemon(&folder, "slurmctld", "-D");
        let nodes = (0..NODES).map(|node| start_node(&folder, node)).collect();
        let cluster = Self {
            folder,
            controller,
            nodes,
            _munge: munge,
        };
        let all_idle = format!("{NODES} idle");
        until("nodes", || {
            (cluster.ask("sinfo", "-h -o %D:%T").trim() == all_idle.replace(' ', ":")).then_some(())
        });
        Some(cluster)
    }

    /// What one of Slurm's commands prints. The controller may be away.
    fn ask(&self, program: &str, words: &str) -> String {
        let mut command = command(program, words);
        let done = command
            .env("SLURM_CONF", self.folder.join("slurm.conf"))
            .output();
        String::from_utf8_lossy(&done.unwrap().stdout).into_owned()
    }

    fn submit(&self, scene: &Scene, remote: &Remote, orders: &[PathBuf]) {
        let (token, cache) = (self.folder.join("token"), self.folder.join("cache"));
        fs::write(&token, &scene.worker).unwrap();
        let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("engines/slurm/submit");
        let mut submit = command(engine, &format!("{} main", remote.url()));
        submit
            .args(orders)
            .args(["--", "--ntasks=1", "--output=/dev/null"]);
        let programs = Path::new(PROGRAM).parent().unwrap().display();
        submit.env(
            "PATH",
            format!("{programs}:{}", std::env::var("PATH").unwrap()),
        );
        let variables = [
            ("URL", scene.url.as_ref()),
            ("TOKEN_FILE", token.as_os_str()),
            ("MODEL", "gemini/gemini-2.5-pro".as_ref()),
            ("PROGRAM", product().as_os_str()),
            ("CACHE", cache.as_os_str()),
        ];
        for (name, value) in variables {
            submit.env(format!("CODE_COMMIT_GATEWAY_{name}"), value);
        }
        submit.env("SLURM_CONF", self.folder.join("slurm.conf"));
        run(submit.current_dir(&self.folder));
    }

    /// Processes of this cluster by a part of their command line; their environment names the cluster.
    fn processes(&self, part: &str) -> Vec<Pid> {
        let conf = format!("SLURM_CONF={}\0", self.folder.join("slurm.conf").display());
        let is_ours = |pid: &Pid| {
            let read = |name: &str| fs::read(format!("/proc/{}/{name}", pid.as_raw_nonzero()));
            let text = |name| String::from_utf8_lossy(&read(name).unwrap_or_default()).into_owned();
            text("cmdline").replace('\0', " ").contains(part) && text("environ").contains(&conf)
        };
        let all = fs::read_dir("/proc").unwrap().flatten();
        let all = all.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        all.filter(is_ours).collect()
    }

    fn kill_one(&self, part: &str, random: usize) {
        // Tasks come and go; in the end none is left.
        until("something to kill", || {
            let all = self.processes(part);
            let pid = all.get(random % all.len().max(1));
            let killed = pid.is_some_and(|pid| kill_process(*pid, Signal::KILL).is_ok());
            (killed || self.ask("squeue", "-h").is_empty()).then_some(())
        });
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.ask("scancel", "--user=root");
        thread::sleep(Duration::from_secs(1));
        for pid in self.processes("") {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn daemon(folder: &Path, program: &str, words: &str) -> Running {
    let mut command = command(program, words);
    command.env("SLURM_CONF", folder.join("slurm.conf"));
    Running::start(&mut command, &folder.join(format!("{program}.log")))
}

fn start_node(folder: &Path, node: usize) -> Running {
    daemon(folder, "slurmd", &format!("-D -N n{}", node + 1))
}

/// One of several things goes wrong.
fn fault(kind: usize, random: usize, cluster: &mut Cluster, scene: &mut Scene) -> &'static str {
    let node = random % NODES;
    match kind % 7 {
        0 => {
            cluster.nodes[node].kill();
            cluster.nodes[node] = start_node(&cluster.folder, node);
            "slurmd killed"
        }
        1 => {
            cluster.kill_one("slurmstepd", random);
            "slurmstepd killed"
        }
        2 => {
            cluster.kill_one("code-commit-gateway work", random);
            "work killed"
        }
        3 => {
            scene.restart();
            "serve killed"
        }
        4 => {
            cluster.controller.signal(Signal::TERM);
            cluster.controller.wait();
            cluster.controller = daemon(&cluster.folder, "slurmctld", "-D");
            "slurmctld restarted"
        }
        5 => {
            scene.postgres.stop_immediately();
            scene.postgres.begin();
            "PostgreSQL stopped by immediate"
        }
        _ => {
            // Its tasks begin elsewhere, while the old ones go on.
            cluster.nodes[node].signal(Signal::STOP);
            thread::sleep(Duration::from_secs(25));
            cluster.nodes[node].signal(Signal::CONT);
            "node away and back with its old tasks"
        }
    }
}

/// A number from the environment.
fn size(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |value| value.parse().unwrap())
}

fn finished(scene: &Scene) -> usize {
    let count = "SELECT count(*) FROM orders WHERE verdict IS NOT NULL";
    scene.postgres.query(count).parse().unwrap()
}

#[test]
fn an_array_under_faults_loses_nothing_and_its_money_is_the_vendors() {
    let (orders, faults) = (size("GATEWAY_ORDERS", 24), size("GATEWAY_FAULTS", 7));
    let usage =
        json!({ "promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100 });
    let usage = Some(usage);
    let mut scene = scene!(
        answers(
            orders,
            &Step {
                usage,
                ..after(2000)
            }
        ),
        ""
    );
    let Some(mut cluster) = Cluster::start(scene.folder.path()) else {
        return;
    };
    let remote = Remote::new();
    let files: Vec<_> = (0..orders).map(|number| remote.order(number)).collect();
    // Enough for all reservations at once, for some that are counted in full, and for the answers.
    scene.admin(&format!("cap all {}", 12 + faults * 6 + orders / 100));
    let begun = Instant::now();
    cluster.submit(&scene, &remote, &files);
    let mut done = BTreeMap::new();
    let mut look = scene.postgres.client("psql", "-XqAt");
    look.args([
        "-c",
        "SELECT count(*) FROM budgets WHERE held + spent > cap",
    ]);
    thread::scope(|all| {
        // The watch ends with the other side, also where the test fails.
        let (running, over) = mpsc::channel::<()>();
        let watch = all.spawn(move || {
            let mut looks = 0;
            while over.recv_timeout(Duration::from_millis(200)) == Err(Timeout) {
                let found = look.output().unwrap().stdout;
                // The database may be away.
                assert!(matches!(&*found, b"" | b"0\n"), "a cap is passed");
                looks += usize::from(!found.is_empty());
            }
            looks
        });
        let mut random = 88_172_645_463_325_252_usize;
        for number in 0..faults {
            // Spread over the run.
            until_finished(&cluster, &scene, orders * number * 4 / (faults * 5));
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let what = fault(number, random >> 33, &mut cluster, &mut scene);
            let (seconds, so_far) = (begun.elapsed().as_secs(), finished(&scene));
            eprintln!("{seconds:5} s  {so_far:4} of {orders}  {what}");
            *done.entry(what).or_insert(0) += 1;
        }
        until_finished(&cluster, &scene, orders);
        drop(running);
        eprintln!("{} looks at the caps", watch.join().unwrap());
    });
    eprintln!(
        "{orders} orders in {} s, {done:?}",
        begun.elapsed().as_secs()
    );
    check(&scene, &remote, orders);
}

fn until_finished(cluster: &Cluster, scene: &Scene, count: usize) {
    let waiting = Instant::now();
    while finished(scene) < count {
        let queue = || cluster.ask("squeue", "-r");
        assert!(waiting.elapsed() < PATIENCE, "no progress: {}", queue());
        thread::sleep(Duration::from_millis(300));
    }
}

/// Each order has one result whose commit is in the remote, and the account is the vendor's log.
fn check(scene: &Scene, remote: &Remote, orders: usize) {
    let query = |what: &str| scene.postgres.query(&format!("SELECT {what}"));
    let open = "SELECT count(*) FROM calls WHERE state = 'open'";
    scene.postgres.until(open, "0");
    let results = scene.table("results");
    assert_eq!(results.len(), orders);
    let listed = remote.git("for-each-ref --format=%(refname)=%(objectname) refs/code-commit/");
    let refs: BTreeMap<_, _> = listed
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    for result in &results {
        assert_eq!(result["verdict"], "passed", "{result}");
        let reference = result["reference"].as_str().unwrap();
        assert_eq!(
            refs.get(reference).copied(),
            result["commit"].as_str(),
            "{result}"
        );
    }
    let count = |states: &str| {
        let count = query(&format!("count(*) FROM calls WHERE state IN ({states})"));
        count.parse::<usize>().unwrap()
    };
    let (paid, unknown) = (count("'answered', 'again', 'wasted'"), count("'unknown'"));
    let requests = scene.asked();
    let attempts = query("sum(attempts) FROM orders");
    eprintln!(
        "{attempts} attempts, {requests} requests at the vendor, {paid} answers stored, {unknown} unknown"
    );
    // All others are reservations.
    assert!((paid..=paid + unknown).contains(&requests));
    let doubtful = unknown + count("'again'");
    // What was paid twice is listed.
    assert!(requests - orders <= doubtful);
    assert_eq!(scene.table("costs --doubtful").len(), doubtful);
    let known =
        query("sum(cost), sum(input_tokens), sum(output_tokens) FROM calls WHERE cost IS NOT NULL");
    let cost = i64::try_from(paid).unwrap() * UNIT;
    // To the token.
    assert_eq!(known, format!("{cost}|{}|{}", paid * 1000, paid * 100));
    let in_full = query("coalesce(sum(reserved), 0) FROM calls WHERE state = 'unknown'");
    assert_eq!(scene.money(), (0, cost + in_full.parse::<i64>().unwrap()));
}

#[test]
fn a_task_comes_back_after_75_and_not_after_scancel() {
    let scene = scene!(answers(1, &after(0)).rule("order-", after(60_000)), "");
    let Some(cluster) = Cluster::start(scene.folder.path()) else {
        return;
    };
    let remote = Remote::new();
    let is_empty = || cluster.ask("squeue", "-h").is_empty().then_some(());
    let field = |name: &str| Some(scene.table("results").first()?[name].to_string());
    scene.admin("cap all 0");
    cluster.submit(&scene, &remote, &[remote.order(0)]);
    until("attempt without money", || {
        field("reason")?.contains("ended with 4").then_some(())
    });
    scene.admin("cap all none");
    until("next attempt", || {
        field("verdict")?.contains("passed").then_some(())
    });
    until("end of the task", is_empty);
    cluster.submit(&scene, &remote, &[remote.order(1)]);
    scene.vendor.wait_for_requests(2);
    cluster.ask("scancel", "--user=root");
    until("end of the task", is_empty);
    // It would be back at once, waiting for its turn.
    assert_eq!(cluster.ask("squeue", "-h"), "");
    assert!(scene.table("results")[1]["verdict"] == "-");
}
