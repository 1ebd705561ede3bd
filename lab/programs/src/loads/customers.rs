//! Customers with their orders: the data of the loads that parse documents.

use crate::random::Random;

/// Words from which the names of customers and the tags of orders are made.
const WORDS: [&str; 8] = [
    "allocate", "release", "page", "arena", "slab", "magazine", "span", "class",
];

/// Customer with at most seven orders.
pub(super) struct Customer {
    pub(super) name: String,
    pub(super) city: String,
    pub(super) orders: Vec<Order>,
}

/// Order with at most three tags.
pub(super) struct Order {
    pub(super) number: u64,
    pub(super) price: u64,
    pub(super) tags: Vec<String>,
}

impl Customer {
    /// Draws the next customer.
    pub(super) fn draw(random: &mut Random) -> Self {
        let name = format!("{} {}", random.word(&WORDS), random.below(100_000));
        let city = format!("City {}", random.below(90));
        let count = random.below(8);
        let orders = (0..count).map(|_| Order::draw(random)).collect();
        Self { name, city, orders }
    }
}

impl Order {
    fn draw(random: &mut Random) -> Self {
        let (number, price) = (random.below(1_000_000), random.below(100_000));
        let count = random.below(4);
        let tag = |_| format!("{}-{}", random.word(&WORDS), random.below(500));
        Self {
            number,
            price,
            tags: (0..count).map(tag).collect(),
        }
    }
}
