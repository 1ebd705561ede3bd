use super::*;

const IDENTITY: Identity = Identity {
    seed: 9,
    size: 100,
    set: 3,
};

const FACTS: Facts = Facts {
    entries: 1,
    tally: Tally {
        records: 2,
        checksum: 3,
    },
    requested_bytes: 4,
};

/// Writes a file of three blocks into a temporary folder. The caller must keep the folder's handle.
fn written() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("set-003.bin");
    let mut writer = Writer::new(IDENTITY);
    for block in 0..3_u32 {
        writer.push(&vec![block; 40]).expect("serialised");
    }
    writer.write(&path, &Facts::default()).expect("written");
    writer.correct(&path, &FACTS).expect("written");
    let bytes = std::fs::read(&path).expect("readable");
    (folder, path, bytes)
}

fn read(path: &Path) -> Result<Vec<Vec<u32>>, CatalogError> {
    let mut reader = Reader::open(path, Some(IDENTITY))?;
    let mut blocks = Vec::new();
    while let Some(packed) = reader.next_block()? {
        blocks.push(packed.unpack()?);
    }
    Ok(blocks)
}

#[test]
fn what_is_written_is_read_back() {
    let (_folder, path, bytes) = written();
    let set = Reader::open(&path, None).expect("whole").set;
    assert_eq!((set.place.identity, set.facts), (IDENTITY, FACTS));
    assert_eq!(
        (set.data_bytes, set.file_bytes),
        (3 * 41, bytes.len() as u64)
    );
    let expected = vec![vec![0; 40], vec![1; 40], vec![2; 40]];
    assert_eq!(read(&path).expect("whole"), expected);
}

#[test]
fn a_change_of_any_byte_is_seen() {
    let (_folder, path, bytes) = written();
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        std::fs::write(&path, &changed).expect("written");
        let error = read(&path).expect_err("changed");
        assert_eq!(error.exit_status(), 2, "byte {place}: {error}");
    }
}

#[test]
fn a_file_cut_anywhere_is_damaged() {
    let (_folder, path, bytes) = written();
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).expect("written");
        let error = read(&path).expect_err("cut").to_string();
        let told = ["is damaged: it is truncated", "is damaged: it has"];
        assert!(told.iter().any(|told| error.contains(told)), "{error}");
    }
}

#[test]
fn blocks_that_changed_places_are_seen() {
    let (_folder, path, _) = written();
    let mut writer = Writer::new(IDENTITY);
    writer.push(&vec![1_u32; 40]).expect("serialised");
    writer.push(&vec![2_u32; 40]).expect("serialised");
    let half = writer.packed.len() / 2;
    writer.packed.rotate_left(half);
    std::fs::remove_file(&path).expect("removed");
    writer.write(&path, &FACTS).expect("written");
    let error = read(&path).expect_err("swapped").to_string();
    assert!(error.contains("checksum of block 0"), "{error}");
}

#[test]
fn another_data_set_version_or_program_is_told_apart() {
    let (_folder, path, bytes) = written();
    let other = Identity { set: 4, ..IDENTITY };
    let error = Reader::open(&path, Some(other)).err().expect("another set");
    assert!(error.to_string().contains("another data set"));
    let mut newer = bytes;
    newer[8] += 1;
    std::fs::write(&path, newer).expect("written");
    let error = read(&path).expect_err("newer").to_string();
    assert!(error.contains("data format 3"), "{error}");
    std::fs::write(&path, [0x7f; 200]).expect("written");
    let error = read(&path).expect_err("foreign").to_string();
    assert!(
        error.contains("is not a file of the catalog workload"),
        "{error}"
    );
}

#[test]
fn a_whole_block_that_cannot_be_unpacked_is_the_fault_of_memory() {
    let (_folder, path, _) = written();
    let mut reader = Reader::open(&path, Some(IDENTITY)).expect("whole");
    let mut packed = reader.next_block().expect("whole").expect("a block");
    packed.bytes.truncate(3);
    let error = packed.unpack::<Vec<u32>>().expect_err("changed");
    assert_eq!(error.exit_status(), 1);
}
