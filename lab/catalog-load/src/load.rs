//! Loads one data set on an executor: one task reads blocks ahead, another converts them to maps,
//! and a third joins the maps.

use std::sync::Arc;

use smol::Executor;
use smol::channel::{self, Sender};
use smol::future::yield_now;

use crate::error::CatalogError;
use crate::file::{Packed, Place, Reader};
use crate::join::{Joined, Loaded, join};
use crate::model::Details;

/// Executor on which any thread can spawn tasks.
pub(crate) type Pool = Arc<Executor<'static>>;

/// Maximum number of blocks that wait to be unpacked after they were read.
const READ_AHEAD: usize = 2;

/// Loads and joins a data set.
///
/// # Errors
/// Returns an error if the file of the data set cannot be read, is foreign, damaged or of another
/// version, or memory has changed.
pub(crate) async fn load_and_join(pool: Pool, place: Place) -> Result<Joined, CatalogError> {
    let loaded = pool.spawn(load(Arc::clone(&pool), place)).await?;
    Ok(pool.spawn(join(loaded)).await)
}

/// Loads a data set into ordered maps.
async fn load(pool: Pool, place: Place) -> Result<Loaded, CatalogError> {
    let reader = Reader::open(&place.path, Some(place.identity))?;
    let (sender, receiver) = channel::bounded(READ_AHEAD);
    let reading = pool.spawn(read_ahead(reader, sender));
    let mut loaded: Option<Loaded> = None;
    while let Ok(packed) = receiver.recv().await {
        match &mut loaded {
            None => {
                loaded = Some(Loaded {
                    index: packed.unpack()?,
                    details: Details::new(),
                });
            }
            Some(loaded) => loaded.details.extend(packed.unpack::<Details>()?),
        }
        yield_now().await;
    }
    reading.await?;
    loaded.ok_or_else(|| CatalogError::Damaged {
        path: place.path,
        reason: "it has no blocks".to_owned(),
    })
}

/// Reads the blocks of a file. File reads block the thread on purpose: the data come from the page
/// cache, and a thread pool for files would add further allocating threads.
async fn read_ahead(mut reader: Reader, sender: Sender<Packed>) -> Result<(), CatalogError> {
    while let Some(packed) = reader.next_block()? {
        // If unpacking failed, the receiver is dropped and the unpacking task returns its error.
        if sender.send(packed).await.is_err() {
            break;
        }
    }
    Ok(())
}
