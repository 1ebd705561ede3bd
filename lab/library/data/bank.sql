drop table if exists account, payment;
create table account (id integer primary key, owner text, balance numeric);
create table payment (id serial primary key, account integer, amount numeric, note text);
insert into account select n, 'owner ' || n, n % 1000 from generate_series(1, 2000) n;
insert into payment (account, amount, note)
    select n % 2000 + 1, n % 97, 'payment ' || n from generate_series(1, 4000) n;
create index on payment (account);
select owner, sum(amount), string_agg(note, ',') from account join payment on account.id = account
    group by owner order by 2 desc, 1 limit 10;
update account set balance = balance + (select sum(amount) from payment where account = account.id);
with recursive tree(n, path) as (
    select 1, array[1] union all select n + 1, path || n + 1 from tree where n < 200
) select count(*), max(array_length(path, 1)) from tree;
select json_agg(row_to_json(payment)) from payment where account < 100;
delete from payment where amount < 10;
