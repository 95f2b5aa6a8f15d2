-- Two roles in place of one, neither of which may do more than its process needs. Run it as an administrator, connected to
-- Longwatch's database; again after an update that says so. Then give each a password: \password longwatch
--
--   longwatch        owns the tables: migrates them, makes and drops the partitions of days, erases.
--                    For LONGWATCH_ROLES=ingest,derive,... and for the commands.
--   longwatch_serve  answers: reads everything, writes what is done over HTTP, changes no table, deletes nothing.
--                    For LONGWATCH_ROLES=http, with REDIS_URL; start the other process first, and after an update too.

do $$
begin
  if to_regrole('longwatch') is null then create role longwatch login; end if;
  if to_regrole('longwatch_serve') is null then create role longwatch_serve login; end if;
end $$;
alter role longwatch nosuperuser nocreatedb nocreaterole noreplication nobypassrls;
alter role longwatch_serve nosuperuser nocreatedb nocreaterole noreplication nobypassrls;

-- What longwatch makes, now and later, longwatch_serve may read.
do $$ begin execute format('grant create on database %I to longwatch', current_database()); end $$;
grant usage, create on schema public to longwatch;
grant usage on schema public to longwatch_serve;
grant select on all tables in schema public to longwatch_serve;
-- To see whether the other's sessions are at work, when costly searches step back.
grant pg_read_all_stats to longwatch_serve;
alter default privileges for role longwatch in schema public grant select on tables to longwatch_serve;
alter default privileges for role longwatch grant usage on schemas to longwatch_serve;

-- The part below needs the tables: run the file once more after the first start.
do $$
begin
  if to_regclass('audit_entries') is null then return; end if;
  grant usage on schema drizzle to longwatch_serve;
  grant select on all tables in schema drizzle to longwatch_serve;
  -- Without update: nobody who only answers can change what was entered.
  grant insert on audit_entries, server_secrets, pseudonym_keys to longwatch_serve;
  grant insert, update on api_keys, alerts, alert_transitions, notifications, silences, spikes, advice, request_budgets,
    platform_health, leases, replicas to longwatch_serve;
end $$;
