-- Queries of a shop's report: joins, groups, sorts of text, sums over windows, an index built in
-- memory, text concatenation, writing and parsing JSON. The last key of every sort is unique, so
-- that the output is identical in every run.
.bail on
pragma temp_store = memory;
pragma cache_size = -16384;

-- The customers who spent most.
select c.name, count(distinct o.id), sum(l.quantity * i.price) as spent
from customers c
join orders o on o.customer = c.id
join lines l on l.order_id = o.id
join items i on i.id = l.item
group by c.id order by spent desc, c.id limit 5;

-- The category with the highest turnover in each quarter.
select category, quarter, turnover from (
    select i.category, o.day / 91 as quarter, sum(l.quantity * i.price) as turnover,
           row_number() over (partition by o.day / 91
                              order by sum(l.quantity * i.price) desc, i.category) as place
    from lines l join orders o on o.id = l.order_id join items i on i.id = l.item
    group by i.category, o.day / 91)
where place = 1 order by quarter;

-- A sort by text without an index.
select count(*), sum(length(words)), max(words) from (
    select upper(o.note) || ' ' || c.name || ' ' || c.city as words
    from orders o join customers c on c.id = o.customer
    order by words desc, o.id);

-- A new index over text, in memory.
create temp table notes as
select o.id, c.city || ': ' || o.note || ' / ' || c.name as words
from orders o join customers c on c.id = o.customer;
create index temp.notes_by_words on notes (words, id);
select count(*), min(words), max(words) from notes where words > 'City 100';

-- Writes and parses JSON documents.
select count(*), sum(length(document)), sum(json_array_length(document, '$.lines')),
       sum(json_extract(document, '$.lines[0].quantity')) from (
    select json_object('order', o.id, 'customer', c.name, 'lines',
               json_group_array(json_object('item', i.title, 'quantity', l.quantity))) as document
    from orders o join customers c on c.id = o.customer
    join lines l on l.order_id = o.id join items i on i.id = l.item
    group by o.id);

-- Concatenates text in groups.
select sum(length(list)) from (
    select group_concat(i.title, '; ') as list
    from lines l join items i on i.id = l.item group by l.order_id);
