//! Examples at the end of `--help` and of the manual pages. A test parses each of them, except
//! those of [`RACE_SHORT`].

/// Examples of `heapdrome race` in its short help.
pub const RACE_SHORT: &str = "\
Examples (all options: heapdrome race --help):
  heapdrome race ./program --with arguments
  heapdrome race -a system,jemalloc --prepare 'ninja -C build clean' -- ninja -C build";

/// Examples of `heapdrome race` in its long help and its manual page.
pub const RACE: &str = "\
heapdrome's options come before the command. Everything from the command's first word on belongs
to the command; `--` before it is optional. heapdrome starts no shell; for one, write sh -c 'LINE'.

Examples:
  heapdrome race ./program --with arguments
  heapdrome race jq . file.json
  heapdrome race -a system,mimalloc3,./mine.so --prepare 'ninja -C build clean' -- ninja -C build
  heapdrome race -a default --max-time 5m --json result.json -- ./program
  heapdrome race -w rptest -t 1,2,4 -- 16-1000
  heapdrome race -a default --sweep items=1000,10000 -- ./parse --items {items}
  heapdrome race -a system --sweep env:MALLOC_ARENA_MAX=1,2,4 -a jemalloc -- ./program
  heapdrome race --serve 'redis-server --save \"\"' --ready 'redis-cli ping' -- redis-benchmark -q
  heapdrome race --resume";

pub const SHOW: &str = "\
Examples:
  heapdrome show latest
  heapdrome show result.json --full
  heapdrome show result.json --deploy
  heapdrome show result.json --entrant mimalloc2
  heapdrome show result.json --markdown result.md --csv samples.csv --redact";

pub const REPORT: &str = "\
Examples:
  heapdrome report latest -o report.html
  heapdrome report result.json -o report.html
  heapdrome report before.json after.json -o both.html --redact
  heapdrome report results -o pages             # every result in a folder, and an index";

pub const PLOT: &str = "\
Examples:
  heapdrome plot latest -o plots
  heapdrome plot result.json -o plots --only ranking,time-memory --format svg";

pub const PROFILE: &str = "\
Examples:
  heapdrome profile app.trace
  heapdrome profile app.trace -o profile.html --csv profile.csv
  heapdrome profile app.trace --pprof heap.pb.gz --perfetto memory.json";

pub const ALLOCATORS: &str = "\
Examples:
  heapdrome allocators
  heapdrome allocators install mimalloc3 jemalloc
  heapdrome allocators add mine ./mine.so --env MINE_CACHE=64
  heapdrome allocators check mine";

pub const EXEC: &str = "\
Examples:
  heapdrome exec -a mimalloc3 -- ./program --with arguments
  heapdrome exec -a ./mine.so -- ./program";

pub const RECORD: &str = "\
Examples:
  heapdrome record -o app.trace -- ./program --with arguments
  heapdrome record --for 60s -- ./server
  heapdrome record -a mimalloc3 -o app.trace --force -- ./program

The trace is complete when the command and all processes that it started have ended, daemons
included. After Ctrl-C it is complete when the command has ended. A process that is already running
cannot be recorded.";

pub const REPLAY: &str = "\
Examples:
  heapdrome replay app.trace
  heapdrome replay app.trace --speed paced -a mimalloc3
  heapdrome replay library:redis -a ./mine.so
  heapdrome race --trace app.trace -a default";

pub const DOCTOR: &str = "\
Examples:
  heapdrome doctor
  heapdrome doctor --self-test";

pub const WORKLOADS: &str = "\
Examples:
  heapdrome workloads
  heapdrome workloads show rptest
  heapdrome workloads install redis";

pub const SUITE: &str = "\
Examples:
  heapdrome suite rpmalloc --quick
  heapdrome suite alloc-perf-test --estimate
  heapdrome suite traces --quick
  heapdrome suite all --quick --markdown report.md --json suite.json";

pub const PAGING: &str = "\
Examples:
  heapdrome paging check
  heapdrome paging throughput --quick
  heapdrome paging random --swap file:4G --ram 256M
  heapdrome paging clean";

pub const CACHE: &str = "\
Examples:
  heapdrome cache path
  heapdrome cache clean";

pub const SURVIVE: &str = "\
Examples:
  heapdrome survive -- ./program
  heapdrome survive -a system,mimalloc3 --runs 5 -- ./program --with arguments";

pub const TRACE: &str = "\
Examples:
  heapdrome trace info program.trace
  heapdrome trace check -a jemalloc,mimalloc3 program.trace -- ./program
  heapdrome trace cut program.trace --from 2s --to 5s -o part.trace
  heapdrome trace merge client.trace server.trace -o both.trace
  heapdrome trace export program.trace --to text
  heapdrome trace export program.trace --to malloc-bench --process 0 -o program.pb
  heapdrome trace library -o traces redis sqlite
  heapdrome trace shrink program.trace -a ./mine.so -o small.trace";
