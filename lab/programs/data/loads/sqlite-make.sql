-- Fills a new database: a shop with customers, items, orders, and lines of orders. Every value is
-- computed from its row's number by a multiplicative hash, so that the database is identical on
-- every machine. heapdrome replaces ORDERS by the number of orders.
.bail on
pragma page_size = 4096;
pragma journal_mode = off;
pragma synchronous = off;

create table customers (id integer primary key, name text not null, city text not null);
create table items (id integer primary key, title text not null, category text not null,
                    price integer not null);
create table orders (id integer primary key, customer integer not null, day integer not null,
                     note text not null);
create table lines (id integer primary key, order_id integer not null, item integer not null,
                    quantity integer not null);

begin;
with recursive n(id) as (select 1 union all select id + 1 from n where id < ORDERS / 10)
insert into customers
select id, printf('Customer %08x', id * 2654435761 % 4294967296),
       printf('City %03d', id * 40503 % 65536 % 200)
from n;

with recursive n(id) as (select 1 union all select id + 1 from n where id < ORDERS / 20)
insert into items
select id, printf('Item %08x of the series %d', id * 2246822519 % 4294967296, id % 97),
       printf('Category %02d', id * 40503 % 65536 % 40), 100 + id * 2654435761 % 4294967296 % 9900
from n;

with recursive n(id) as (select 1 union all select id + 1 from n where id < ORDERS)
insert into orders
select id, 1 + id * 2654435761 % 4294967296 % (ORDERS / 10), id * 3266489917 % 4294967296 % 730,
       substr('left at the door, paid in cash, called twice, sent by post, ', 1,
              5 + id * 668265263 % 4294967296 % 50)
from n;

with recursive n(id) as (select 1 union all select id + 1 from n where id < ORDERS * 3)
insert into lines
select id, 1 + id * 2246822519 % 4294967296 % ORDERS,
       1 + id * 374761393 % 4294967296 % (ORDERS / 20), 1 + id * 3266489917 % 4294967296 % 9
from n;

create index orders_by_customer on orders (customer, day);
create index lines_by_order on lines (order_id);
commit;
