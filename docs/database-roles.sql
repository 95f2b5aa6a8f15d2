-- Makes two roles, each with only the rights that its process needs. Run this file as an administrator, connected to
-- Longwatch's database. Run it again after an update that asks for it. Then give each role a password: \password longwatch
--
--   longwatch        owns the tables: migrates them, makes and drops the partitions of days, erases.
--                    For LONGWATCH_ROLES=ingest,derive,... and for the commands.
--   longwatch_serve  answers queries: reads everything, writes the changes made over HTTP, alters no table, deletes nothing but saved views, known sources, plans, notes and custom conditions.
--                    For LONGWATCH_ROLES=http, with REDIS_URL; start the other process first, and after an update too.

do $$
begin
  if to_regrole('longwatch') is null then create role longwatch login; end if;
  if to_regrole('longwatch_serve') is null then create role longwatch_serve login; end if;
end $$;
alter role longwatch nosuperuser nocreatedb nocreaterole noreplication nobypassrls;
alter role longwatch_serve nosuperuser nocreatedb nocreaterole noreplication nobypassrls;

-- longwatch_serve may read every table that longwatch makes, now and later.
do $$ begin execute format('grant create on database %I to longwatch', current_database()); end $$;
grant usage, create on schema public to longwatch;
grant usage on schema public to longwatch_serve;
grant select on all tables in schema public to longwatch_serve;
-- Expensive searches wait while sessions of the other role copy events in bulk; this right lets them see those sessions.
grant pg_read_all_stats to longwatch_serve;
alter default privileges for role longwatch in schema public grant select on tables to longwatch_serve;
alter default privileges for role longwatch grant usage on schemas to longwatch_serve;

-- The part below needs the tables: run the file again after the first start.
do $$
begin
  if to_regclass('audit_entries') is null then return; end if;
  grant usage on schema drizzle to longwatch_serve;
  grant select on all tables in schema drizzle to longwatch_serve;
  -- Without update: a process that only answers cannot change an audit entry.
  grant insert on audit_entries, server_secrets, pseudonym_keys to longwatch_serve;
  grant insert, update on api_keys, alerts, alert_transitions, notifications, silences, spikes, advice, request_budgets,
    platform_health, leases, replicas, sessions, sign_in_tokens, saved_views, requested_runs,
    known_sources, review_plans, notes, custom_conditions
    to longwatch_serve;
  grant delete on saved_views, requested_runs, known_sources, review_plans, notes, custom_conditions to longwatch_serve;
  -- A search that finds a damaged file notes it.
  grant update (damage, damaged_at) on archive_files to longwatch_serve;
end $$;
