//! Persistent collections of the workers of an unmodified nginx: `SecDataDir`.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use crate::library::output;
use crate::nginx::{Nginx, PATIENCE, is_root};

const WORKERS: usize = 4;
const FILE: &str = "shared/portcullis.collections";

/// At most ten requests of a client in a minute; and at most five that find nothing.
fn rules(folder: &Path) -> String {
    // The workers have to get there, and only there may they write.
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    let shared = folder.join("shared");
    fs::create_dir(&shared).unwrap();
    if is_root() {
        output(Command::new("chown").arg("www-data").arg(&shared));
    }
    format!(
        "SecDataDir {}\n\
         SecAction \"id:100,phase:1,pass,nolog,initcol:ip=%{{REQUEST_HEADERS.X-Client}}\"\n\
         SecRule REQUEST_METHOD \"@streq POST\" \"id:101,phase:1,pass,nolog,skipAfter:END\"\n\
         SecAction \"id:102,phase:1,pass,nolog,setvar:ip.n=+1,expirevar:ip.n=60\"\n\
         SecRule IP:n \"@gt 10\" \"id:103,phase:1,deny,status:429,log,msg:'Too many'\"\n\
         SecMarker END\n\
         SecRule IP:misses \"@ge 5\" \"id:104,phase:1,deny,status:430,log,msg:'Guessing'\"\n\
         SecRule RESPONSE_STATUS \"@rx ^40[45]$\" \"id:105,phase:5,pass,nolog,setvar:ip.misses=+1\"\n",
        shared.display()
    )
}

fn start(test: &str) -> Option<Nginx> {
    Nginx::start_as(test, ("www-data", WORKERS), rules)
}

/// The statuses of the answers to requests of one client, one after the other, and who gave them.
fn ask(nginx: &Nginx, client: &str, count: usize) -> (Vec<u16>, HashSet<String>) {
    let answers = (0..count).map(|_| nginx.answer(&head("GET", client), ""));
    answers.map(|answer| (status(&answer), worker(&answer))).unzip()
}

fn head(method: &str, client: &str) -> String {
    format!("{method} / HTTP/1.1\r\nX-Client: {client}")
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}

fn worker(answer: &str) -> String {
    let line = answer.lines().find_map(|line| line.strip_prefix("X-Worker: "));
    line.unwrap_or_default().to_owned()
}

fn passed(count: usize, of: usize) -> Vec<u16> {
    [vec![200; count], vec![429; of - count]].concat()
}

#[test]
fn workers_count_together_over_reloads_and_restarts() {
    let Some(mut nginx) = start("shared collections of nginx") else { return };
    let (statuses, workers) = ask(&nginx, "a", 25);
    assert_eq!(statuses, passed(10, 25), "the eleventh is refused\n{}", nginx.log());
    assert!(workers.len() > 1, "one worker has answered all: {workers:?}");

    assert_eq!(ask(&nginx, "b", 6).0, passed(6, 6));
    nginx.reload();
    assert_eq!(ask(&nginx, "b", 6).0, passed(4, 6), "a reload keeps them\n{}", nginx.log());
    assert_eq!(ask(&nginx, "c", 6).0, passed(6, 6));
    nginx.restart();
    assert_eq!(ask(&nginx, "c", 6).0, passed(4, 6), "a restart keeps them\n{}", nginx.log());

    // What is counted when a request is over: another worker may answer the next one before that.
    let guesses = Cell::new(0);
    nginx.wait("each guess is counted", |nginx| {
        let status = status(&nginx.answer(&head("POST", "d"), "x=1"));
        guesses.set(guesses.get() + usize::from(status == 405));
        assert!(matches!(status, 405 | 430), "{status}\n{}", nginx.log());
        nginx.log().contains(&format!("`IP:misses' (Value: `{}' )", guesses.get()))
    });
    assert!(guesses.get() >= 5, "refused after {} guesses\n{}", guesses.get(), nginx.log());

    // The master, which is root, has made nothing.
    let found = fs::metadata(nginx.at(FILE)).unwrap();
    let folder = fs::metadata(nginx.at("shared")).unwrap();
    assert_eq!((found.uid(), found.mode() & 0o777), (folder.uid(), 0o600));
    let log = nginx.log();
    assert!(!log.contains("portcullis:"), "{log}");
    // Still no thread anywhere.
    for process in nginx.workers().into_iter().chain([nginx.process.id()]) {
        assert_eq!(fs::read_dir(format!("/proc/{process}/task")).unwrap().count(), 1, "threads of {process}");
    }
}

#[test]
fn requests_at_the_same_time_are_counted_one_by_one() {
    let Some(nginx) = start("shared collections of nginx under many connections") else { return };
    let seen = Mutex::new((Vec::new(), HashSet::new()));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let (statuses, workers) = ask(&nginx, "crowd", 25);
                let mut seen = seen.lock().unwrap();
                seen.0.extend(statuses);
                seen.1.extend(workers);
            });
        }
    });
    let (mut statuses, workers) = seen.into_inner().unwrap();
    statuses.sort_unstable();
    assert!(workers.len() > 1, "one worker has answered all: {workers:?}");
    assert_eq!(statuses, passed(10, 400), "{}", nginx.log());
}

/// A rule that looks before it counts, behind bodies that came late.
#[test]
fn a_slow_body_is_judged_by_what_is_counted_when_it_is_there() {
    let rules = |folder: &Path| {
        let counted = rules(folder);
        let (settings, _) = counted.split_once("SecRule").unwrap();
        format!(
            "{settings}SecRequestBodyAccess On\n\
             SecRule IP:n \"@ge 10\" \"id:110,phase:2,deny,status:429,log,msg:'Too many'\"\n\
             SecAction \"id:111,phase:2,pass,nolog,setvar:ip.n=+1,expirevar:ip.n=60\"\n"
        )
    };
    let Some(nginx) = Nginx::start_as("slow bodies of nginx", ("www-data", WORKERS), rules) else { return };
    let head = "POST / HTTP/1.1\r\nHost: a.example\r\nX-Client: slow\r\nConnection: close\r\nContent-Length: 3\r\n\r\n";
    let parked: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", nginx.port)).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    // Time for phase 1 of each; without it the test would pass by chance, never fail.
    std::thread::sleep(Duration::from_millis(300));
    let answers = parked.into_iter().map(|mut stream| {
        stream.write_all(b"x=1").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        status(&answer)
    });
    let statuses: Vec<u16> = answers.collect();
    assert_eq!(statuses, [vec![405; 10], vec![429; 10]].concat(), "{}", nginx.log());
}

#[test]
fn a_worker_that_is_killed_holds_up_none_of_the_others() {
    let Some(nginx) = start("shared collections of nginx with killed workers") else { return };
    std::thread::scope(|scope| {
        let crowd = scope.spawn(|| {
            // A connection to a worker that is killed ends without an answer.
            (0..2_000).for_each(|number| drop(nginx.try_answer(&head("GET", &format!("{number}")), "")));
        });
        while !crowd.is_finished() {
            if let Some(worker) = nginx.workers().first() {
                let _ = Command::new("kill").args(["-KILL", &worker.to_string()]).status();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        crowd.join().unwrap();
    });
    nginx.wait("all workers are there again", |nginx| nginx.workers().len() == WORKERS);
    assert_eq!(ask(&nginx, "after", 25).0, passed(10, 25), "{}", nginx.log());
}

#[test]
fn a_folder_that_cannot_be_used_is_told() {
    let Some(nginx) = start("nginx -t with SecDataDir") else { return };
    // Behind the start: requests go on, each worker counts for itself, and the log says so.
    fs::remove_dir_all(nginx.at("shared")).unwrap();
    fs::write(nginx.at("shared"), "").unwrap();
    assert_eq!(ask(&nginx, "a", 3).0, passed(3, 3));
    nginx.wait("it is told", |nginx| nginx.log().contains("collections cannot be shared in "));
    // Before it: nothing starts.
    let said = nginx.check();
    let place =
        format!("Rules error. File: {}. Line: 9. Column: 1. SecDataDir: ", nginx.at("rules.conf").display());
    assert!(said.contains(&place) && said.contains("is not a folder. Hint: make it"), "{said}");
    fs::remove_file(nginx.at("shared")).unwrap();
    assert!(nginx.check().contains("No such file or directory"), "{}", nginx.check());
    if is_root() {
        fs::create_dir(nginx.at("shared")).unwrap();
        let said = nginx.check();
        assert!(said.contains("only root may write to ") && said.contains("test is successful"), "{said}");
    }
}
