//! Tests of requests, headers, device numbers, and swap that is made or refused. Plain folders
//! replace the kernel's folders.

use super::*;

#[test]
fn requests_are_read() {
    let file: SwapRequest = "file:8G".parse().expect("a request");
    assert_eq!(
        (file.kind, file.bytes),
        (SwapKind::File, Bytes::from_gib(8))
    );
    let zram: SwapRequest = "zram:512M".parse().expect("a request");
    assert_eq!(
        (zram.kind, zram.bytes),
        (SwapKind::Zram, Bytes::from_mib(512))
    );
    for wrong in [
        "",
        "8G",
        "disk:8G",
        "file:",
        "file:-1",
        "file:1M",
        "file:99999999999G",
    ] {
        assert!(wrong.parse::<SwapRequest>().is_err(), "{wrong}");
    }
}

#[test]
fn the_header_is_what_the_kernel_reads() {
    let first = header(Bytes(4096), 100);
    assert_eq!(first.len(), 4096);
    assert_eq!(&first[4086..], SWAP_MARK);
    assert_eq!(first[1028..1032], 99_u32.to_ne_bytes());
}

#[test]
fn a_kernel_without_zram_is_told_of_with_what_mends_it() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let refusal = || {
        let error = new_zram(home.path()).expect_err("no device").to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    let without = refusal();
    assert!(without.contains("modprobe zram") && without.contains("--swap file:8G"));
    fs::write(home.path().join("hot_add"), "7\n").expect("written");
    assert_eq!(new_zram(home.path()).expect("a number"), 7);
    fs::write(home.path().join("hot_add"), "none\n").expect("written");
    assert!(refusal().contains("--swap file:8G"));
}

#[test]
fn the_lowest_number_that_no_device_has_is_the_next() {
    let blocks = tempfile::tempdir().expect("a temporary folder");
    assert_eq!(free_number(blocks.path()), 0);
    for number in [0, 1, 3] {
        fs::create_dir(blocks.path().join(format!("zram{number}"))).expect("made");
    }
    assert_eq!(free_number(blocks.path()), 2);
}

#[test]
fn a_disk_without_room_is_told_of_and_nothing_is_made() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let (ledger, _) = Ledger::open(&home.path().join("state")).expect("opened");
    let error = Swap::make_file(Bytes(1 << 60), home.path(), &ledger).expect_err("too much");
    assert!(error.to_string().contains("--swap-folder"), "{error}");
    let count = fs::read_dir(home.path()).expect("read").count();
    assert_eq!(count, 1, "only the ledger's folder");
}

/// Returns an interface of plain folders in the layout of a kernel that accepts every request. Its
/// next device has number 5.
fn kernel(home: &Path) -> System {
    let system = System {
        shown: home.join("sys"),
        devices: home.join("dev"),
        swap_on: |_| Ok(()),
        ..System::real()
    };
    for (file, text) in [
        ("sys/block/zram5/disksize", "0\n"),
        ("sys/class/zram-control/hot_add", "5\n"),
        ("dev/zram5", ""),
    ] {
        let file = home.join(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        fs::write(file, text).expect("written");
    }
    system
}

fn no_memory() -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOMEM))
}

/// Returns the error of `make` on `system`. The error must be one line, and the ledger must be
/// empty afterwards.
fn told_of(
    system: &System,
    home: &Path,
    make: impl FnOnce(&Arc<Ledger>) -> Result<Swap, Error>,
) -> String {
    let state = home.join("state");
    let (ledger, _) = Ledger::open_on(system, &state).expect("opened");
    let error = make(&ledger).expect_err("refused").to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    drop(ledger);
    assert_eq!(fs::read_dir(&state).expect("read").count(), 0);
    error
}

#[test]
fn a_device_that_the_kernel_refuses_to_size_or_to_use_is_told_of_and_removed() {
    let refused = |change: fn(&mut System)| {
        let home = tempfile::tempdir().expect("a temporary folder");
        let mut system = kernel(home.path());
        change(&mut system);
        let error = told_of(&system, home.path(), |ledger| {
            Swap::make_zram(Bytes(1 << 20), ledger)
        });
        let removed = home.path().join("sys/class/zram-control/hot_remove");
        assert_eq!(fs::read_to_string(removed).expect("asked for"), "5");
        error
    };
    let no_size = refused(|system| {
        system.ask = |file, text| match file.ends_with("disksize") {
            true => no_memory(),
            false => fs::write(file, text),
        };
    });
    assert!(
        no_size.contains("of 1M (Cannot allocate memory") && no_size.contains("ask for less"),
        "{no_size}"
    );
    let unused = refused(|system| system.swap_on = |_| no_memory());
    assert!(
        unused.contains("does not take swap (Cannot allocate memory")
            && unused.contains("--swap file:8G"),
        "{unused}"
    );
    let unseen = refused(|system| system.devices.push("none"));
    assert!(unseen.contains("none/zram5: No such file"), "{unseen}");
}

#[test]
fn a_device_is_sized_formatted_and_removed_with_its_swap() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let (ledger, _) =
        Ledger::open_on(&kernel(home.path()), &home.path().join("state")).expect("opened");
    let swap = Swap::make_zram(Bytes(1 << 20), &ledger).expect("made");
    let read = |file: &str| fs::read(home.path().join(file));
    assert_eq!(read("sys/block/zram5/disksize").expect("sized"), b"1048576");
    assert!(read("dev/zram5").expect("formatted").ends_with(SWAP_MARK));
    assert!(read("sys/class/zram-control/hot_remove").is_err());
    swap.remove().expect("removed");
    let removed = read("sys/class/zram-control/hot_remove");
    assert_eq!(removed.expect("asked for"), b"5");
}

#[test]
fn a_file_that_the_kernel_does_not_swap_to_is_told_of_and_removed() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut system = kernel(home.path());
    system.swap_on = |file| match file.exists() {
        true => no_memory(),
        false => Ok(()),
    };
    let error = told_of(&system, home.path(), |ledger| {
        Swap::swap_to_new_file(Bytes(1 << 16), folder.path(), ledger)
    });
    assert!(
        error.contains("does not take swap (Cannot allocate memory")
            && error.contains("--swap-folder"),
        "{error}"
    );
    assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 0);
}
