//! A Redis server, loaded by its own benchmark through a socket in a private folder.

use heapdrome_packages::quoted;
use heapdrome_schema::{Better, Metric, Nanoseconds, Server};

use crate::request::{Request, words, write_file};
use crate::{Event, Prepared, ProgramError};

const SOCKET: &str = "redis.sock";

/// Configuration file of the server, which neither listens to a network nor writes to disk.
/// Debian's server is linked with jemalloc. With `jemalloc-bg-thread`, the server would start a
/// thread of jemalloc even under another allocator, so this setting is off.
const SETTINGS: &str = "\
port 0
unixsocket redis.sock
unixsocketperm 700
save \"\"
appendonly no
daemonize no
io-threads 1
jemalloc-bg-thread no
activedefrag no
";

/// Kinds of request whose rates are figures, and the names of those figures.
const RATES: [(&str, &str); 7] = [
    ("SET", "set_per_s"),
    ("GET", "get_per_s"),
    ("LPUSH", "lpush_per_s"),
    ("RPOP", "rpop_per_s"),
    ("SADD", "sadd_per_s"),
    ("HSET", "hset_per_s"),
    ("ZADD", "zadd_per_s"),
];

/// Maximum time until the server answers.
const READY_WITHIN: Nanoseconds = Nanoseconds(60_000_000_000);

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let [server, benchmark, client] = [0, 1, 2].map(|place| quoted(&request.tool(place)));
    let load = load(
        &benchmark,
        request.values.number("requests"),
        request.values.number("value_bytes"),
        request.values.number("pipeline"),
    );
    let input = request.input(&[SETTINGS, &load], on_event, &|folder| {
        write_file(&folder.join("redis.conf"), SETTINGS)?;
        write_file(&folder.join("load.sh"), &load)
    })?;
    // The shell is part of the load. Only the server runs under the allocator under test.
    let mut prepared = request.prepared(input, words(&["sh", "load.sh"]));
    prepared.server = Some(Server {
        serve: format!("exec {server} redis.conf"),
        ready: format!("{client} -s {SOCKET} ping"),
        ready_within: READY_WITHIN,
        idle: Server::IDLE,
    });
    prepared.metrics = RATES.map(metric).into();
    // Rates differ from run to run, and each run draws new keys.
    prepared.repeatable_output = false;
    Ok(prepared)
}

/// Returns the script of the load: it writes values of a thousand bytes and overwrites them with
/// values of the requested size, so that the heap has holes. Then it reads these values and uses
/// the other data types.
fn load(benchmark: &str, requests: u64, value_bytes: u64, pipeline: u64) -> String {
    let keys = (requests / 4).max(1);
    let step = |share: u64, bytes: u64, tests: &str| {
        let count = (requests / share).max(1);
        format!(
            "{benchmark} -s {SOCKET} -q -c 16 -P {pipeline} -r {keys} -n {count} -d {bytes} -t {tests}\n"
        )
    };
    [
        "set -e\n".to_owned(),
        step(2, 1000, "set"),
        step(1, value_bytes, "set"),
        step(1, value_bytes, "get"),
        step(2, value_bytes, "lpush,rpop,sadd,hset,zadd"),
    ]
    .concat()
}

fn metric((kind, name): (&str, &str)) -> Metric {
    Metric {
        name: name.to_owned(),
        // The word boundary keeps "SET" from matching the end of "HSET".
        pattern: format!(r"\b{kind}: ([0-9.]+) requests per second"),
        better: Better::Higher,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_has_every_kind_of_request_that_is_a_figure() {
        let load = load("redis-benchmark", 1000, 64, 16);
        for (kind, _) in RATES {
            assert!(load.contains(&kind.to_lowercase()), "{kind}");
        }
        assert!(load.contains("-r 250 -n 500 -d 1000 -t set\n"), "{load}");
        assert!(load.contains("-r 250 -n 1000 -d 64 -t get\n"), "{load}");
    }

    #[test]
    fn the_server_reaches_no_network_and_no_disk() {
        for line in ["port 0", "save \"\"", "appendonly no", "unixsocketperm 700"] {
            assert!(SETTINGS.lines().any(|it| it == line), "{line}");
        }
        assert!(SETTINGS.contains(SOCKET));
    }
}
