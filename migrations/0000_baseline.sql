-- Why: everything Longwatch keeps, in one file instead of the 10 migrations that made it, which took longer to read. Its
-- time in the journal is that of the last of them: a database that has them all has this file already and is not changed.
-- drizzle-kit wrote the tables, from db/schema/. What the schema language cannot say was added by hand: partitions,
-- functions and triggers, each with a comment. Columns stand in the order in which the migrations made them, so that a
-- dump of a new database and one of an older database are the same text. Locks: none that matter, everything is new.

-- Ingest: events, their records, what could not be read, and how far the copy of each zone and day has come.

-- By hand: partitioned by day, as raw_blocks is. Retention drops a day's tables instead of deleting rows.
create table waf_events (
  occurred_at timestamptz(3) not null,
  zone_id integer not null,
  log_id text collate "C" not null,
  route text not null,
  feature text,
  rule_id text,
  ip text,
  ja4 text,
  ua text,
  url text,
  asn text,
  country text,
  action text,
  message text,
  method text,
  request_id text,
  matched_key integer,
  facts smallint,
  constraint waf_events_zone_id_occurred_at_log_id_pk primary key (zone_id, occurred_at, log_id),
  constraint waf_events_route check (route in ('search', 'list'))
) partition by range (occurred_at);
create index waf_events_rule_time on waf_events (zone_id, rule_id, occurred_at);
create index waf_events_time_range on waf_events using brin (occurred_at);

-- By hand: an address as a network: itself, or what a masked one (203.0.113.*, 2001:db8:1:*) leaves open; null for any
-- other text. One plain expression, so that Postgres can inline and index it; each CASE keeps from inet what it would
-- refuse. Regular expressions only for the rarer forms: they take microseconds.
create function event_network(ip text) returns inet language sql immutable parallel safe as $$
  SELECT CASE translate(ip, '0123456789', '')
    WHEN '...' THEN CASE WHEN length(ip) <= 15 AND '.' || ip || '.' NOT LIKE '%..%' THEN
      CASE WHEN split_part(ip, '.', 1)::bigint < 256 AND split_part(ip, '.', 2)::bigint < 256 AND split_part(ip, '.', 3)::bigint < 256 AND split_part(ip, '.', 4)::bigint < 256 THEN
        CASE WHEN host((ip)::inet) = ip THEN ((ip) || '/32')::inet END END END
    WHEN '...*' THEN CASE WHEN ip LIKE '%.*' THEN
      CASE WHEN length(ip) <= 15 AND '.' || rtrim(ip, '*') || '0' || '.' NOT LIKE '%..%' THEN
      CASE WHEN split_part(rtrim(ip, '*') || '0', '.', 1)::bigint < 256 AND split_part(rtrim(ip, '*') || '0', '.', 2)::bigint < 256 AND split_part(rtrim(ip, '*') || '0', '.', 3)::bigint < 256 AND split_part(rtrim(ip, '*') || '0', '.', 4)::bigint < 256 THEN
        CASE WHEN host((rtrim(ip, '*') || '0')::inet) = rtrim(ip, '*') || '0' THEN ((rtrim(ip, '*') || '0') || '/24')::inet END END END END
    WHEN '..*.*' THEN CASE WHEN ip LIKE '%.*.*' THEN
      CASE WHEN length(ip) <= 15 AND '.' || rtrim(ip, '.*') || '.0.0' || '.' NOT LIKE '%..%' THEN
      CASE WHEN split_part(rtrim(ip, '.*') || '.0.0', '.', 1)::bigint < 256 AND split_part(rtrim(ip, '.*') || '.0.0', '.', 2)::bigint < 256 AND split_part(rtrim(ip, '.*') || '.0.0', '.', 3)::bigint < 256 AND split_part(rtrim(ip, '.*') || '.0.0', '.', 4)::bigint < 256 THEN
        CASE WHEN host((rtrim(ip, '.*') || '.0.0')::inet) = rtrim(ip, '.*') || '.0.0' THEN ((rtrim(ip, '.*') || '.0.0') || '/16')::inet END END END END
    ELSE CASE
      WHEN strpos(ip, ':') = 0 THEN NULL
      WHEN ip ~ ('^(?:(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}|(?:[0-9A-Fa-f]{1,4}:){1,7}:|:(?::[0-9A-Fa-f]{1,4}){1,7}|::'
          || '|(?:[0-9A-Fa-f]{1,4}:){1,6}:[0-9A-Fa-f]{1,4}|(?:[0-9A-Fa-f]{1,4}:){1,5}(?::[0-9A-Fa-f]{1,4}){1,2}'
          || '|(?:[0-9A-Fa-f]{1,4}:){1,4}(?::[0-9A-Fa-f]{1,4}){1,3}|(?:[0-9A-Fa-f]{1,4}:){1,3}(?::[0-9A-Fa-f]{1,4}){1,4}'
          || '|(?:[0-9A-Fa-f]{1,4}:){1,2}(?::[0-9A-Fa-f]{1,4}){1,5}|[0-9A-Fa-f]{1,4}:(?::[0-9A-Fa-f]{1,4}){1,6})$')
        THEN ip::inet
      WHEN ip ~ '^::(?:[Ff]{4}:)?(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(?:\.(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])){3}$'
        THEN ip::inet
      WHEN ip ~ '^[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,6}:?(?::\*)+$'
        THEN (regexp_replace(ip, ':?(:\*)+$', '') || CASE WHEN ip ~ '^(?:[0-9A-Fa-f]{1,4}:){7}' THEN ':0/' ELSE '::/' END
          || 16 * (length(regexp_replace(ip, '[^:]|:?(:\*)+$', '', 'g')) + 1))::inet
    END
  END
$$;

create table raw_blocks (
  first_at timestamptz(3) not null,
  last_at timestamptz(3) not null,
  zone_id integer not null,
  day date not null,
  entry_count integer not null,
  block_id uuid not null default gen_random_uuid(),
  log_id_hashes bytea not null,
  block bytea not null,
  constraint raw_blocks_zone_id_day_block_id_pk primary key (zone_id, day, block_id),
  constraint raw_blocks_hash_per_entry check (octet_length(log_id_hashes) = 8 * entry_count),
  constraint raw_blocks_time_order check (first_at <= last_at)
) partition by range (day);
create index raw_blocks_times on raw_blocks (zone_id, first_at, last_at);

create table quarantined_entries (
  id bigint generated always as identity primary key,
  received_at timestamptz not null default now(),
  zone_id integer not null,
  day date,
  route text not null,
  reason text not null,
  raw bytea not null,
  raw_hash bytea generated always as (sha256(raw)) stored,
  is_held boolean not null default false,
  constraint quarantined_entries_route check (route in ('search', 'list'))
);
create unique index quarantined_entries_content on quarantined_entries (zone_id, raw_hash);
create index quarantined_entries_held on quarantined_entries (id) where is_held;

create table ingest_cursors (
  fence bigint not null,
  started_at timestamptz not null,
  full_pass_started_at timestamptz,
  quiet_pass_started_at timestamptz,
  zone_id integer not null,
  day date not null,
  pass integer not null default 1,
  pages_seen integer not null default 0,
  new_entries integer not null default 0,
  continuation_token text,
  tail_token text,
  began_at_tail boolean not null default false,
  pass_result text,
  constraint ingest_cursors_zone_id_day_pk primary key (zone_id, day),
  constraint ingest_cursors_pass_result check (pass_result in ('full', 'short', 'looped', 'token_rejected', 'held'))
);

create table pages (
  read_at timestamptz not null default now(),
  first_at timestamptz(3),
  last_at timestamptz(3),
  zone_id integer not null,
  day date not null,
  pass integer not null,
  page integer not null,
  entries integer not null,
  new_entries integer not null,
  hash bytea not null,
  token_hash bytea,
  hours jsonb,
  constraint pages_zone_id_day_pass_page_pk primary key (zone_id, day, pass, page)
);

create table request_budgets (
  refilled_at timestamptz(3) not null,
  paused_until timestamptz(3),
  refused_since timestamptz(3),
  tokens double precision not null,
  zone_id integer,
  name text primary key
);

create table platform_health (
  watched_since timestamptz(3) not null,
  checked_at timestamptz(3),
  answered_at timestamptz(3),
  refused_since timestamptz(3),
  kept_since timestamptz(3),
  proven_days jsonb,
  zone_id integer primary key,
  kept_ms integer,
  kept_before_ms integer,
  refused_with text,
  rising_until timestamptz(3)
);

create table backfills (
  from_at timestamptz(3) not null,
  to_at timestamptz(3) not null,
  started_at timestamptz(3) not null,
  done_through timestamptz(3) not null,
  ended_at timestamptz(3),
  new_events bigint not null default 0,
  zone_id integer not null,
  route text not null,
  constraint backfills_zone_id_from_at_to_at_route_pk primary key (zone_id, from_at, to_at, route),
  constraint backfills_route check (route in ('list', 'search', 'export')),
  constraint backfills_span check (from_at < to_at)
);

-- Coverage: what is proven of every hour, and the contradictions that wait for an answer.

create table coverage_windows (
  starts_at timestamptz not null,
  searched_through timestamptz(3),
  last_new_at timestamptz(3),
  closing_search_at timestamptz(3),
  reconciled_at timestamptz(3),
  sealed_at timestamptz,
  reopened_at timestamptz(3),
  proof_from timestamptz(3),
  unresolved_since timestamptz(3),
  zone_id integer not null,
  upstream_count integer,
  missing_cells integer not null default 0,
  surplus_cells integer not null default 0,
  stored_count integer not null default 0,
  passes integer not null default 0,
  state text not null default 'open',
  gap_reason text,
  reopen_reason text,
  looks jsonb not null default '{}',
  evidence jsonb,
  constraint coverage_windows_zone_id_starts_at_pk primary key (zone_id, starts_at),
  constraint coverage_windows_state check (state in ('open', 'sealed', 'gap')),
  constraint coverage_windows_whole_hour check (extract(epoch from starts_at) % 3600 = 0),
  constraint coverage_windows_sealed_with_evidence check (
    state <> 'sealed' or (sealed_at is not null and evidence is not null)
  ),
  constraint coverage_windows_gap_has_reason check (state <> 'gap' or gap_reason is not null)
);

create table differing_cells (
  starts_at timestamptz not null,
  first_seen_at timestamptz(3) not null,
  last_seen_at timestamptz(3) not null,
  resolved_at timestamptz(3),
  next_repair_at timestamptz(3) not null,
  zone_id integer not null,
  upstream_count integer not null,
  stored_count integer not null,
  repairs integer not null default 0,
  rule_id text not null,
  constraint differing_cells_zone_id_starts_at_rule_id_pk primary key (zone_id, starts_at, rule_id),
  constraint differing_cells_whole_hour check (extract(epoch from starts_at) % 3600 = 0)
);
create index differing_cells_unresolved on differing_cells (zone_id, starts_at) where resolved_at is null;

create table zone_suspicions (
  since timestamptz(3) not null,
  last_seen_at timestamptz(3) not null,
  cleared_at timestamptz(3),
  zone_id integer not null,
  route text not null,
  is_whole boolean not null default false,
  reason text not null,
  constraint zone_suspicions_zone_id_route_pk primary key (zone_id, route),
  constraint zone_suspicions_route check (route in ('list', 'search', 'counts'))
);

create table event_aliases (
  other_at timestamptz(3) not null,
  kept_at timestamptz(3) not null,
  noted_at timestamptz(3) not null,
  zone_id integer not null,
  log_id text collate "C" not null,
  constraint event_aliases_zone_id_other_at_log_id_pk primary key (zone_id, other_at, log_id)
);
create index event_aliases_kept on event_aliases (zone_id, kept_at, log_id);

create table event_revisions (
  occurred_at timestamptz(3) not null,
  seen_at timestamptz(3) not null,
  accepted_at timestamptz(3),
  zone_id integer not null,
  log_id text collate "C" not null,
  field text not null,
  before text,
  after text,
  constraint event_revisions_zone_id_occurred_at_log_id_field_seen_at_pk
    primary key (zone_id, occurred_at, log_id, field, seen_at),
  constraint event_revisions_values check (field = 'withdrawn' or after is not null)
);
create index event_revisions_open on event_revisions (zone_id, occurred_at) where accepted_at is null;

create table requested_runs (
  id bigint generated always as identity primary key,
  from_at timestamptz(3) not null,
  to_at timestamptz(3) not null,
  requested_at timestamptz(3) not null,
  started_at timestamptz(3),
  ended_at timestamptz(3),
  zone_id integer not null,
  starts integer not null default 0,
  percent integer not null default 0,
  with_ids boolean not null default false,
  kind text not null,
  requested_by text not null,
  step text,
  problem text,
  result jsonb,
  constraint requested_runs_kind check (kind in ('backfill', 'verify', 'verify-archive')),
  constraint requested_runs_span check (from_at < to_at)
);
create unique index requested_runs_unfinished on requested_runs (kind, zone_id, from_at, to_at, with_ids)
  where ended_at is null;
create index requested_runs_zone on requested_runs (zone_id, id);

-- Detection: counts of rules and of sources, and the spikes that were found in them.

create table dirty_buckets (
  minute timestamptz not null,
  zone_id integer not null,
  marks integer not null default 1,
  rule_id text not null,
  constraint dirty_buckets_zone_id_rule_id_minute_pk primary key (zone_id, rule_id, minute),
  constraint dirty_buckets_whole_minute check (extract(epoch from minute) % 60 = 0)
);

create table rule_buckets (
  starts_at timestamptz not null,
  zone_id integer not null,
  width integer not null,
  total integer not null,
  blocked integer not null default 0,
  logged integer not null default 0,
  challenged integer not null default 0,
  other integer not null default 0,
  rule_id text not null,
  constraint rule_buckets_zone_id_rule_id_width_starts_at_pk primary key (zone_id, rule_id, width, starts_at),
  constraint rule_buckets_width check (width in (60, 3600, 86400)),
  constraint rule_buckets_aligned check (extract(epoch from starts_at) % width = 0),
  constraint rule_buckets_adds_up check (total = blocked + logged + challenged + other)
);
create index rule_buckets_minutes on rule_buckets (starts_at) where width = 60;
create index rule_buckets_days on rule_buckets (zone_id, starts_at, rule_id) where width = 86400;

create table rule_peaks (
  starts_at timestamptz not null,
  zone_id integer not null,
  events integer not null,
  peak3 integer not null,
  peak15 integer not null,
  peak60 integer not null,
  rule_id text not null,
  constraint rule_peaks_zone_id_rule_id_starts_at_pk primary key (zone_id, rule_id, starts_at),
  constraint rule_peaks_whole_hour check (extract(epoch from starts_at) % 3600 = 0),
  constraint rule_peaks_nested check (peak3 <= peak15 and peak15 <= peak60 and peak60 > 0)
);

create table rule_metrics (
  fetched_at timestamptz not null default now(),
  zone_id integer not null,
  day date not null,
  total integer not null,
  blocked integer,
  logged integer,
  challenged integer,
  rule_id text not null,
  constraint rule_metrics_zone_id_rule_id_day_pk primary key (zone_id, rule_id, day)
);

create table rule_snapshots (
  asked_at timestamptz not null,
  due_at timestamptz not null,
  zone_id integer not null,
  rule_id text not null,
  error_code text,
  constraint rule_snapshots_zone_id_rule_id_pk primary key (zone_id, rule_id)
);

create table source_hours (
  starts_at timestamptz not null,
  zone_id integer not null,
  marks integer not null default 0,
  is_stale boolean not null default true,
  known text not null default '',
  peaks integer[],
  constraint source_hours_zone_id_starts_at_pk primary key (zone_id, starts_at),
  constraint source_hours_whole_hour check (extract(epoch from starts_at) % 3600 = 0),
  constraint source_hours_peaks check (cardinality(peaks) = 15)
);
create index source_hours_stale on source_hours (zone_id, starts_at) where is_stale;

create table source_usual (
  zone_id integer not null,
  day date not null,
  peak3 integer not null,
  peak15 integer not null,
  peak60 integer not null,
  address text collate "C" not null,
  constraint source_usual_zone_id_day_address_pk primary key (zone_id, day, address)
);

create table known_sources (
  id bigint generated always as identity primary key,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  zone_id integer,
  kind text not null,
  pattern text not null,
  reason text not null,
  created_by text not null,
  constraint known_sources_kind check (kind in ('ip', 'asn', 'ja4', 'ua'))
);

create table spikes (
  id bigint generated always as identity primary key,
  opened_at timestamptz not null,
  closed_at timestamptz,
  last_active_at timestamptz not null,
  judged_through timestamptz not null,
  baseline double precision not null,
  threshold double precision not null,
  score double precision not null,
  peak integer not null,
  window_count integer not null,
  window_minutes integer not null,
  zone_id integer not null,
  rule_id text not null,
  severity text not null,
  kind text not null,
  addresses integer,
  graded_by text,
  is_shadow boolean not null default false,
  sources jsonb,
  mark text,
  marked_at timestamptz,
  evidence jsonb not null,
  incident text not null default '',
  member_of bigint constraint spikes_member_of_spikes_id_fk references spikes on delete set null,
  main_senders integer,
  is_late boolean not null default false,
  resolved_attackers text[] not null default '{}',
  changes jsonb,
  takes_over text,
  constraint spikes_mark check (
    mark in ('attack', 'misfire', 'scanner', 'broken-client', 'crawler', 'noise') and marked_at is not null or mark is null
  ),
  constraint spikes_close_after_open check (closed_at >= opened_at),
  constraint spikes_late_closed check (not is_late or closed_at is not null),
  constraint spikes_window check (window_minutes in (3, 15, 60)),
  constraint spikes_severity check (severity in ('warning', 'error', 'critical')),
  constraint spikes_kind check (kind in ('spike', 'new-rule', 'sources', 'action-change', 'silent-rule')),
  constraint spikes_sources check ((kind = 'sources') = (sources is not null)),
  constraint spikes_changes check ((kind = 'action-change' or kind = 'silent-rule') = (changes is not null)),
  constraint spikes_graded_by check (graded_by in ('addresses', 'score', 'both'))
);
-- Two detectors at a time must not open the same spike twice. A rule's spike has the empty incident.
create unique index spikes_open on spikes (zone_id, rule_id, incident) where closed_at is null;
create index spikes_opened on spikes (zone_id, opened_at);
create index spikes_closed on spikes (closed_at);
create index spikes_marked on spikes (zone_id, rule_id, opened_at) where mark is not null;
create index spikes_members on spikes (member_of) where member_of is not null;

create table judged_hours (
  starts_at timestamptz not null,
  rules_from timestamptz,
  rules_through timestamptz,
  is_live boolean not null default false,
  judged_at timestamptz,
  zone_id integer not null,
  events integer,
  judged_with text,
  constraint judged_hours_zone_id_starts_at_pk primary key (zone_id, starts_at),
  constraint judged_hours_whole_hour check (extract(epoch from starts_at) % 3600 = 0),
  constraint judged_hours_judged check ((judged_at is null) = (judged_with is null))
);

-- Verdicts: what a spike is, what is usual in its zone, and the exclusions that would have spared visitors.

create table verdicts (
  spike_id bigint not null constraint verdicts_spike_id_spikes_id_fk references spikes on delete cascade,
  judged_at timestamptz not null,
  zone_id integer not null,
  look text not null,
  said text not null,
  verdict jsonb not null,
  constraint verdicts_spike_id_look_pk primary key (spike_id, look),
  constraint verdicts_look check (look in ('first', 'minute', 'five-minutes', 'half-hour', 'six-hours', 'day')),
  constraint verdicts_said check (said in ('attack', 'misfire', 'scanner', 'broken-client', 'crawler', 'unclear'))
);
create index verdicts_judged on verdicts (zone_id, judged_at);

create table zone_usual (
  since timestamptz not null,
  zone_id integer not null,
  dimension text not null,
  value text collate "C" not null,
  constraint zone_usual_zone_id_dimension_value_pk primary key (zone_id, dimension, value),
  constraint zone_usual_dimension check (dimension in ('asn', 'ja4', 'path'))
);

create table exclusions (
  id bigint generated always as identity primary key,
  proposed_at timestamptz not null,
  followed_at timestamptz,
  spike_id bigint constraint exclusions_spike_id_spikes_id_fk references spikes on delete set null,
  zone_id integer not null,
  key text not null,
  clause jsonb not null
);
create unique index exclusions_clause on exclusions (zone_id, key);

-- Alerting: alerts with each of their transitions, the advice of the platform, silences.

create table alerts (
  id bigint generated always as identity primary key,
  fired_at timestamptz not null,
  acknowledged_at timestamptz,
  resolved_at timestamptz,
  spike_id bigint constraint alerts_spike_id_spikes_id_fk references spikes on delete set null,
  zone_id integer,
  transition integer not null default 1,
  state text not null default 'firing',
  kind text not null,
  fingerprint text not null,
  rule_id text,
  acknowledged_by text,
  transitions jsonb not null default '[]',
  details jsonb not null default '{}',
  constraint alerts_state check (state in ('firing', 'acknowledged', 'resolved')),
  constraint alerts_resolved_at check ((state = 'resolved') = (resolved_at is not null))
);
create index alerts_spike on alerts (spike_id);
create unique index alerts_open on alerts (fingerprint) where state <> 'resolved';

create table alert_transitions (
  id bigint generated always as identity primary key,
  alert_id bigint not null constraint alert_transitions_alert_id_alerts_id_fk references alerts on delete cascade,
  transition integer not null,
  entry jsonb not null,
  headline text,
  constraint alert_transitions_once unique (alert_id, transition)
);

-- By hand: clients that follow the alerts learn of every transition once and in order, over any replica.
create function record_alert_transition() returns trigger language plpgsql as $$
DECLARE
	said text;
BEGIN
	SELECT "details" #>> '{message,headline}' INTO said FROM "alerts" WHERE "id" = NEW."id";
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	-- Until this commits no other transaction gets a number, so that numbers appear in their order. It is asked for when
	-- the transaction has all its other locks: nobody who holds it waits for anybody.
	PERFORM pg_advisory_xact_lock(7603012);
	INSERT INTO "alert_transitions" ("alert_id", "transition", "entry", "headline")
	SELECT NEW."id", n, coalesce(NEW."transitions" -> (n - 1), '{}'), said
	FROM generate_series(CASE WHEN TG_OP = 'INSERT' THEN 1 ELSE OLD."transition" + 1 END, NEW."transition") AS n
	ORDER BY n
	ON CONFLICT ("alert_id", "transition") DO NOTHING;
	RETURN NULL;
END
$$;
create constraint trigger alerts_record_transition after insert or update of transition on alerts
  deferrable initially deferred for each row execute function record_alert_transition();

create table advice (
  asked_at timestamptz not null,
  spike_id bigint constraint advice_spike_id_spikes_id_fk references spikes on delete set null,
  zone_id integer not null,
  success boolean not null,
  rule_id text not null,
  text text,
  error_key text,
  constraint advice_zone_id_rule_id_asked_at_pk primary key (zone_id, rule_id, asked_at)
);

create table silences (
  id bigint generated always as identity primary key,
  created_at timestamptz not null default now(),
  starts_at timestamptz not null,
  expires_at timestamptz not null,
  created_by text not null,
  reason text not null,
  matchers jsonb not null,
  constraint silences_end_after_start check (expires_at > starts_at)
);

-- Delivery: the outbox, and whether each channel works.

create table notifications (
  id bigint generated always as identity primary key,
  alert_id bigint not null constraint notifications_alert_id_alerts_id_fk references alerts on delete cascade,
  created_at timestamptz not null default now(),
  next_attempt_at timestamptz not null default now(),
  delivered_at timestamptz,
  replayed_at timestamptz,
  transition integer not null,
  attempts integer not null default 0,
  reason text not null,
  channel text not null,
  state text not null default 'pending',
  dedupe_key text not null,
  provider_reference text,
  last_error text,
  digest_key text,
  stands_in_for text,
  content jsonb not null default '{}',
  constraint notifications_once unique (alert_id, transition, channel),
  constraint notifications_state check (state in ('pending', 'sending', 'delivered', 'undeliverable')),
  constraint notifications_reason check (
    reason in (
      'first', 'join', 'again', 'worse', 'repeat', 'advice', 'turned', 'verdict', 'acknowledged', 'settled', 'resolved'
    )
  )
);
create index notifications_due on notifications (next_attempt_at) where state in ('pending', 'sending');
create index notifications_given_up on notifications (channel) where state = 'undeliverable';
create index notifications_stand_ins on notifications (alert_id) where stands_in_for is not null;

create table channel_states (
  opened_at timestamptz,
  retry_at timestamptz not null default now(),
  spent_until timestamptz not null default now(),
  failures integer not null default 0,
  openings integer not null default 0,
  channel text primary key,
  state text not null default 'closed',
  last_error text,
  constraint channel_states_state check (state in ('closed', 'open', 'disabled'))
);

-- Forwarding: which minutes have changed, and what each destination has acknowledged of each hour.

create table changed_minutes (
  minute timestamptz not null,
  seq bigserial not null,
  zone_id integer not null,
  constraint changed_minutes_zone_id_minute_pk primary key (zone_id, minute),
  constraint changed_minutes_whole_minute check (extract(epoch from minute) % 60 = 0)
);
create index changed_minutes_order on changed_minutes (zone_id, seq);

create table forward_destinations (
  seen_at timestamptz not null,
  acknowledged_at timestamptz,
  failing_since timestamptz,
  retry_at timestamptz,
  failures integer not null default 0,
  is_refused boolean not null default false,
  destination text primary key,
  last_error text,
  constraint forward_destinations_failing check ((failing_since is null) = (last_error is null))
);

create table forward_cursors (
  since timestamptz not null,
  seq bigint not null,
  zone_id integer not null,
  destination text not null,
  constraint forward_cursors_destination_zone_id_pk primary key (destination, zone_id)
);

create table forward_hours (
  starts_at timestamptz not null,
  look_from timestamptz(3),
  look_to timestamptz(3),
  look_at timestamptz,
  acknowledged_at timestamptz,
  proven_at timestamptz,
  sent_again_at timestamptz,
  zone_id integer not null,
  acknowledged integer not null default 0,
  stored integer,
  counted integer,
  is_closed boolean not null default false,
  arrival text not null default 'open',
  destination text not null,
  constraint forward_hours_destination_zone_id_starts_at_pk primary key (destination, zone_id, starts_at),
  constraint forward_hours_arrival check (arrival in ('open', 'arrived', 'differs')),
  constraint forward_hours_whole_hour check (extract(epoch from starts_at) % 3600 = 0),
  constraint forward_hours_look check (num_nulls(look_from, look_to, look_at) % 3 = 0)
);
create index forward_hours_looks on forward_hours (destination, zone_id, look_at) where look_at is not null;
create index forward_hours_open on forward_hours (destination, zone_id, starts_at) where arrival <> 'arrived';

create table forward_receipts (
  first_at timestamptz(3) not null,
  last_at timestamptz(3) not null,
  starts_at timestamptz not null,
  id bigserial not null,
  zone_id integer not null,
  destination text not null,
  receipts bytea not null,
  constraint forward_receipts_destination_zone_id_starts_at_id_pk primary key (destination, zone_id, starts_at, id),
  -- Twelve bytes an event.
  constraint forward_receipts_whole check (octet_length(receipts) % 12 = 0)
);

create table forward_refusals (
  occurred_at timestamptz(3) not null,
  refused_at timestamptz not null,
  zone_id integer not null,
  destination text not null,
  log_id text collate "C" not null,
  receipt bytea not null,
  reason text not null,
  constraint forward_refusals_destination_zone_id_occurred_at_log_id_pk
    primary key (destination, zone_id, occurred_at, log_id)
);

-- Archive: which Parquet files are valid. Their content is not in the database.

create table archive_files (
  written_at timestamptz not null default now(),
  checked_at timestamptz not null default now(),
  uploaded_at timestamptz,
  retired_at timestamptz,
  damaged_at timestamptz,
  first_at timestamptz(3),
  last_at timestamptz(3),
  bytes bigint not null,
  zone_id integer not null,
  day date not null,
  rows integer not null,
  format integer not null,
  hours integer[] not null,
  sum numeric not null,
  kind text not null,
  damage text,
  sha256 text not null,
  path text not null,
  constraint archive_files_zone_id_day_kind_sha256_pk primary key (zone_id, day, kind, sha256),
  constraint archive_files_kind check (kind in ('events', 'records')),
  constraint archive_files_sha256 check (sha256 ~ '^[0-9a-f]{64}$'),
  constraint archive_files_hours check (cardinality(hours) = 24),
  constraint archive_files_times check ((rows = 0) = (first_at is null) and first_at <= last_at)
);
create unique index archive_files_valid on archive_files (zone_id, day, kind) where retired_at is null;
create index archive_files_day on archive_files (day);

-- Privacy: keys of pseudonyms, erasures, and what waits for a missing key.

create table pseudonym_keys (
  adopted_at timestamptz not null default now(),
  retired_at timestamptz,
  key_id text primary key,
  missing_at timestamptz,
  missing_because text
);
create unique index pseudonym_keys_current on pseudonym_keys ((true)) where retired_at is null;

create table pseudonymised_days (
  done_at timestamptz not null default now(),
  events bigint not null,
  day date primary key,
  key_id text not null
);

create table erasures (
  id bigint generated always as identity primary key,
  requested_at timestamptz(3) not null,
  until_at timestamptz(3) not null,
  ended_at timestamptz(3),
  zone_id integer,
  family integer not null,
  prefix integer not null,
  include_masked boolean not null,
  key_id text not null,
  hash bytea not null,
  masked_hash bytea,
  masked_prefix integer,
  counts jsonb not null,
  constraint erasures_once unique nulls not distinct (zone_id, key_id, hash, include_masked),
  constraint erasures_family check (family in (4, 6))
);
create index erasures_until on erasures (until_at);

create table held_events (
  occurred_at timestamptz(3) not null,
  zone_id integer not null,
  log_id text collate "C" not null,
  route text not null,
  feature text,
  rule_id text,
  ip text,
  ja4 text,
  ua text,
  url text,
  asn text,
  country text,
  action text,
  message text,
  held_at timestamptz not null default now(),
  method text,
  request_id text,
  matched_key integer,
  facts smallint,
  constraint held_events_zone_id_occurred_at_log_id_pk primary key (zone_id, occurred_at, log_id),
  constraint held_events_route check (route in ('search', 'list'))
);

create table held_blocks (
  first_at timestamptz(3) not null,
  last_at timestamptz(3) not null,
  held_at timestamptz not null default now(),
  zone_id integer not null,
  day date not null,
  entry_count integer not null,
  block_id uuid not null default gen_random_uuid(),
  log_id_hashes bytea not null,
  block bytea not null,
  constraint held_blocks_zone_id_day_block_id_pk primary key (zone_id, day, block_id)
);
create index held_blocks_times on held_blocks (zone_id, first_at, last_at);

-- Keys: who may ask, who is signed in, and who did what.

create table api_keys (
  id bigint generated always as identity primary key,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  is_masked boolean not null default false,
  key_id text not null,
  parent_key_id text,
  name text not null,
  key_hash bytea not null,
  roles text[] not null,
  zone_ids integer[],
  constraint api_keys_key_id unique (key_id),
  constraint api_keys_key_hash unique (key_hash)
);

create table sessions (
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  ended_at timestamptz,
  id text primary key,
  key_id text not null,
  user_agent text not null,
  token_hash bytea not null,
  token_ends_at timestamptz,
  is_masked boolean,
  person_name text,
  id_token text,
  roles text[],
  zone_ids integer[],
  claims jsonb,
  constraint sessions_token_hash unique (token_hash)
);
create index sessions_key on sessions (key_id);

create table sign_in_tokens (
  expires_at timestamptz not null,
  used_at timestamptz,
  key_id text not null,
  token_hash bytea primary key
);

create table saved_views (
  id bigint generated always as identity primary key,
  created_at timestamptz not null default now(),
  changed_at timestamptz not null default now(),
  is_shared boolean not null,
  key_id text not null,
  created_by text not null,
  page text not null,
  name text not null,
  state text not null
);
create index saved_views_key on saved_views (key_id);

create table server_secrets (
  created_at timestamptz not null default now(),
  name text primary key,
  secret bytea not null
);

create table audit_entries (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null,
  action text not null,
  subject text not null,
  details jsonb not null default '{}'
);
create index audit_entries_at on audit_entries (at);

-- By hand: the audit trail can only be added to.
create function refuse_audit_change() returns trigger language plpgsql as $$
BEGIN
	RAISE EXCEPTION 'audit_entries can only be added to' USING ERRCODE = '42501';
END;
$$;
create trigger audit_entries_no_change before update or delete or truncate on audit_entries
  for each statement execute function refuse_audit_change();

-- Service: which process does a job, and which processes are alive.

create table leases (
  fence bigint not null default 0,
  expires_at timestamptz,
  due_at timestamptz,
  name text primary key,
  holder text
);

create table replicas (
  started_at timestamptz(3) not null default now(),
  seen_at timestamptz(3) not null default now(),
  stopped_at timestamptz(3),
  pid integer not null,
  id text primary key,
  host text not null,
  version text not null,
  roles text[] not null,
  zone_ids integer[] not null,
  ticks jsonb not null default '{}'
);
