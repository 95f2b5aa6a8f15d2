/**
 * The closed lists of words and numbers that stand in more than one place: in the database, in schemas, on the faces.
 * Each is written here and nowhere else. test/model/kinds.test.ts compares schemas, check constraints, the console's
 * choices and the source with them.
 */

export * from "./review-kinds.ts";

/**
 * The kinds of spikes of one rule. `new-rule`: a rule that was first seen within a day is active. Less severe, because
 * there is no history to compare it with.
 */
export const RULE_SPIKE_KINDS = ["spike", "new-rule"] as const;
export type RuleSpikeKind = (typeof RULE_SPIKE_KINDS)[number];

/** The kinds of changes of a zone's rules. One spike names all rules that changed in the zone. */
export const CHANGE_KINDS = ["action-change", "silent-rule"] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** The kinds that the detectors open: `sources` for the source series, `custom-condition` for a condition of a person. */
export const SPIKE_KINDS = [...RULE_SPIKE_KINDS, "sources", ...CHANGE_KINDS, "custom-condition"] as const;
export type SpikeKind = (typeof SPIKE_KINDS)[number];

/**
 * The kinds that routes, silences and messages match. `late`: what was found in events that were copied after the fact.
 * `self`: an alert of Longwatch about itself.
 */
export const SUBJECT_KINDS = [...SPIKE_KINDS, "late", "self"] as const;

/** Every kind of a message. `weekly`: the digest of a week, which goes to the channels that the configuration names for it. */
export const MESSAGE_KINDS = [...SUBJECT_KINDS, "weekly"] as const;

/** Every kind of a stored alert. `group`: earlier versions had an alert for several rules. */
export const ALERT_KINDS = [...SPIKE_KINDS, "late", "group", "self", "weekly"] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

/**
 * The reasons, apart from a silence, why no channel is notified of an alert: another alert inhibits it, its rule is part of
 * another alert, people know of a misfire with which it began, too few addresses send its events, or it is of a rule that fell silent, which the weekly digest names. `group` is
 * of earlier versions.
 */
export const MUTES = [
  "inhibition",
  "incident",
  "misfire",
  "few-addresses",
  "first-day",
  "digest",
  "group",
] as const;
export type MuteKind = (typeof MUTES)[number];

/** Ascending, as `SEVERITIES`. */
export const SPIKE_SEVERITIES = ["warning", "error", "critical"] as const;
export type SpikeSeverity = (typeof SPIKE_SEVERITIES)[number];
export const SEVERITIES = ["info", ...SPIKE_SEVERITIES] as const;
export type Severity = (typeof SEVERITIES)[number];

/** The facts that decided the severity of a spike. */
export const GRADINGS = ["addresses", "score", "both"] as const;
export type GradedBy = (typeof GRADINGS)[number];

/**
 * Classes of an alert. misfire: a rule that matches legitimate visitors. broken-client: a client that repeats a request that
 * cannot succeed. crawler: a crawler whose operator is verified.
 */
export const VERDICT_CLASSES = ["attack", "misfire", "scanner", "broken-client", "crawler"] as const;
export type VerdictClass = (typeof VERDICT_CLASSES)[number];
export const VERDICTS = [...VERDICT_CLASSES, "unclear"] as const;
export type VerdictWord = (typeof VERDICTS)[number];

/** The verdicts that may lower a severity, if the configuration says so. */
export const LOWERING_VERDICTS = ["scanner", "broken-client"] as const satisfies readonly VerdictClass[];

/** The times at which the verdict of an alert is judged: when it opens, and 1, 5 and 30 minutes, 6 and 24 hours later. */
export const VERDICT_TIMES = ["first", "minute", "five-minutes", "half-hour", "six-hours", "day"] as const;
export type VerdictTime = (typeof VERDICT_TIMES)[number];

/** The numbers that a verdict is computed from. */
export const VERDICT_FEATURES = [
  "spread",
  "usualAsn",
  "usualJa4",
  "oneJa4",
  "dirty",
  "rulesPerIp",
  "protocol",
  "knownPath",
  "onePath",
  "session",
  "referer",
  "idiom",
  "repeat",
  "botUa",
  "tool",
  "program",
] as const;
export type VerdictFeature = (typeof VERDICT_FEATURES)[number];

/** The dimensions of which Longwatch knows the usual values of a zone. `path`: a path template. */
export const USUAL_DIMENSIONS = ["asn", "ja4", "path"] as const;
export type UsualDimension = (typeof USUAL_DIMENSIONS)[number];

/**
 * narrow: covers nine tenths of a misfire. partial: covers half of it or more. one-parameter: the same parameter on many
 * paths. Only narrow ones are proposed; the others are shown.
 */
export const EXCLUSION_FORMS = ["narrow", "partial", "one-parameter", "refused"] as const;

/** Events that an exclusion silences: those of its clause, its rule in the whole zone, or every rule on its path. */
export const EXCLUSION_REACHES = ["clause", "rule", "path"] as const;
export type ExclusionReach = (typeof EXCLUSION_REACHES)[number];
/** The languages in which an exclusion is written for the platform. */
export const EXCLUSION_TOOLS = ["text", "curl", "terraform"] as const;

/** A person's verdict on a spike. noise: no attack, without a reason. */
export const MARKS = [...VERDICT_CLASSES, "noise"] as const;
export type Mark = (typeof MARKS)[number];
/** The results of marking an alert. */
export const MARK_RESULTS = ["done", "unchanged"] as const;

export const UNRESOLVED_STATES = ["firing", "acknowledged"] as const;
export const ALERT_STATES = [...UNRESOLVED_STATES, "resolved"] as const;
export type AlertState = (typeof ALERT_STATES)[number];
/** The words that ask for alerts by state. */
export const ASKED_ALERT_STATES = [...ALERT_STATES, "all"] as const;

/** Acts of people that end nothing. */
export const PERSONS_REASONS = ["acknowledged", "assigned", "commented"] as const;

/**
 * The reasons of transitions. join: an incident has new attackers. again: it was calm, and a second wave has begun. turned: the
 * verdict is another one now. settled: what rose goes on, and is usual from now on. resolved: it is back to the usual rate.
 * The last three are a person's acts that end nothing; every other reason is the service's decision. `verdict` is of earlier versions.
 */
export const REASONS = [
  "first",
  "join",
  "again",
  "worse",
  "repeat",
  "advice",
  "turned",
  "verdict",
  "settled",
  "resolved",
  ...PERSONS_REASONS,
] as const;
export type NotifyReason = Exclude<(typeof REASONS)[number], (typeof PERSONS_REASONS)[number] | "verdict">;

/** State of the platform's advice on an alert. */
export const ADVICE_STATES = ["pending", "present", "unavailable"] as const;
export type AdviceState = (typeof ADVICE_STATES)[number];

/** `worst`: firing alerts first, then acknowledged ones, each by severity, and the newest of one severity first. */
export const ALERT_SORTS = ["worst", "newest"] as const;
export type AlertSort = (typeof ALERT_SORTS)[number];

/** The acts of a person on alerts. */
export const ALERT_ACTS = ["ack", "resolve", "silence", "mark", "assign", "comment"] as const;
export type AlertAct = (typeof ALERT_ACTS)[number];
/** The acts that change the state of an alert. */
export type StateAct = "ack" | "resolve";

/** The results of an act on an alert. `noted`: the alert had that state already, and the note was added. */
export const ACT_RESULTS = ["done", "noted", "unchanged", "refused"] as const;

/** The result of a route of the routing tree for an alert. */
export const ROUTE_VERDICTS = ["taken", "passed on", "no match", "skipped"] as const;
export type RouteVerdict = (typeof ROUTE_VERDICTS)[number];

/** The states of silences that are not over. Alertmanager's words. */
export const LASTING_SILENCE_STATES = ["active", "pending"] as const;
export const SILENCE_STATES = [...LASTING_SILENCE_STATES, "expired"] as const;
export type SilenceState = (typeof SILENCE_STATES)[number];
/** The words that ask for silences by state. */
export const ASKED_SILENCE_STATES = [...SILENCE_STATES, "all"] as const;

/** The results of ending a silence. `over`: it had ended already. */
export const SILENCE_ENDINGS = ["expired", "over"] as const;
export type SilenceEnding = (typeof SILENCE_ENDINGS)[number];

/** The facts of an alert that a silence names, the narrowest first. */
export const SILENCE_SCOPES = ["source", "rule", "zone"] as const;
export type SilenceScope = (typeof SILENCE_SCOPES)[number];

/** The stored states of a notification. */
export const NOTIFICATION_STATES = ["pending", "sending", "delivered", "undeliverable"] as const;

/**
 * State of a delivery. dead: given up although it should have been sent. needless: another message said the same, or
 * the message resolved an alert that the channel was never notified of.
 */
export const DELIVERY_STATES = ["pending", "sending", "delivered", "dead", "needless"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** The stored states of a channel's circuit. An open circuit whose next message is a probe is shown as half-open. */
export const CIRCUIT_STATES = ["closed", "open", "disabled"] as const;
export type CircuitState = (typeof CIRCUIT_STATES)[number];

/** The stored states of an hour of a zone. */
export const HOUR_STATES = ["open", "sealed", "gap"] as const;
export type HourState = (typeof HOUR_STATES)[number];

/** Whether an hour has arrived at a destination of forwarded events. differs: sent twice, and still not the same. */
export const ARRIVALS = ["open", "arrived", "differs"] as const;
export type Arrival = (typeof ARRIVALS)[number];

/** waiting: nothing was sent yet. refused: it fails until a person changes something, such as a wrong token. */
export const DESTINATION_STATES = ["works", "waiting", "failing", "refused"] as const;
export type DestinationState = (typeof DESTINATION_STATES)[number];

/**
 * Status of an hour. sealed: proven complete. searched: read to its end, not yet proven. open: still to be read. gap:
 * the platform has forgotten the hour, and it was never proven complete. imported: no gap, and not proven. unwatched: a gap
 * that nobody could have prevented. "not yet": the hour has not begun.
 */
export const HOUR_STATUSES = [
  "sealed",
  "searched",
  "open",
  "gap",
  "imported",
  "unwatched",
  "not yet",
] as const;
export type HourStatus = (typeof HOUR_STATUSES)[number];

/** The routes of the platform that show events. */
export const EVENT_ROUTES = ["search", "list"] as const;
export type EventRoute = (typeof EVENT_ROUTES)[number];
/** The routes that show an hour: its events or their counts. */
export const LOOK_ROUTES = ["list", "search", "counts"] as const;
export type LookRoute = (typeof LOOK_ROUTES)[number];
export const BACKFILL_ROUTES = ["list", "search", "export"] as const;
export type BackfillRoute = (typeof BACKFILL_ROUTES)[number];

/**
 * Result of a pass. `looped`: a token was repeated, so the pass may not have shown every page. `held`: a page was held
 * back, because it showed none of the zone's known events.
 */
export const PASS_RESULTS = ["full", "short", "looped", "token_rejected", "held"] as const;
export type PassResult = (typeof PASS_RESULTS)[number];

/** The runs that a person can start over the API. */
export const RUN_KINDS = ["backfill", "verify", "verify-archive"] as const;
export type RunKind = (typeof RUN_KINDS)[number];

/** The kinds of archive files. */
export const ARCHIVE_KINDS = ["events", "records"] as const;
export type ArchiveKind = (typeof ARCHIVE_KINDS)[number];

/** The four classes of actions that buckets count. */
export const ACTION_CLASSES = ["blocked", "challenged", "logged", "other"] as const;
export type ActionClass = (typeof ACTION_CLASSES)[number];

/** Bucket widths in seconds, finest first. Every width is a multiple of the one before. */
export const BUCKET_WIDTHS = [60, 3_600, 86_400] as const;
export type BucketWidth = (typeof BUCKET_WIDTHS)[number];
/** The names of `BUCKET_WIDTHS`, in their order. */
export const WIDTH_NAMES = ["minute", "hour", "day"] as const;
export type WidthName = (typeof WIDTH_NAMES)[number];

/** Window lengths in minutes. A series is judged by the counts of its last 3, 15 and 60 closed minutes. */
export const WINDOWS = [3, 15, 60] as const;
export type WindowMinutes = (typeof WINDOWS)[number];

/** Dimensions of filters and groups, with the platform's names (platform API spec 2.3). */
export const DIMENSIONS = [
  "feature",
  "ruleId",
  "ip",
  "ja4",
  "ua",
  "url",
  "asn",
  "country",
  "action",
] as const;
export type Dimension = (typeof DIMENSIONS)[number];
export const OPERATORS = ["eq", "in", "contains", "cidr", "wildcard"] as const;
export type Operator = (typeof OPERATORS)[number];

/** The dimensions of a spike's evidence. */
export const EVIDENCE_DIMENSIONS = ["ip", "asn", "country", "path", "ua", "ja4", "action"] as const;
export type EvidenceDimension = (typeof EVIDENCE_DIMENSIONS)[number];

/** The properties besides zone and rule by which alerts can be matched. */
export const SOURCE_TRAITS = ["ip", "asn", "country", "ja4", "ua", "url"] as const;
export type SourceTrait = (typeof SOURCE_TRAITS)[number];

/** The properties by which a source can be named as known. */
export const KNOWN_KINDS = ["ip", "asn", "ja4", "ua"] as const;
export type KnownKind = (typeof KNOWN_KINDS)[number];

/**
 * The series of a zone that count sources: the largest number of different members behind one key. Counting distinct
 * things keeps one broken client, which is one address on one or two rules, however many events it causes, from
 * looking like an attack.
 */
export const SOURCE_KINDS = [
  "rules_per_ip",
  "ips_per_ja4",
  "ips_per_url",
  "ips_per_ua",
  "ips_per_asn",
] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];

/**
 * How a key became part of an incident. opened: it opened the incident. joined: it shares events, a network or a tool with
 * it. apart: it shares nothing with it, and has none of its own. facet: another view of an attacker that is named already.
 */
export const ATTACKER_ROLES = ["opened", "joined", "apart", "facet"] as const;
export type AttackerRole = (typeof ATTACKER_ROLES)[number];

export const ATTACKER_STATES = ["active", "quiet", "resolved"] as const;

/** `shadow`: source series are judged and stored, and nothing is sent. */
export const SOURCE_MODES = ["on", "shadow", "off"] as const;
export type SourceMode = (typeof SOURCE_MODES)[number];

export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Weekday = (typeof WEEKDAYS)[number];

/** The roles of keys. Each may do what the ones before it may. `feed` is for firewalls: it fetches block lists only. */
export const ROLES = ["feed", "reader", "exporter", "operator", "admin"] as const;
export type Role = (typeof ROLES)[number];
/** The roles of people, who see the console. */
export const PERSON_ROLES = ["reader", "exporter", "operator", "admin"] as const satisfies readonly Role[];
export const SCOPES = ["feed", "read", "export", "act", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** The roles of processes without which nothing is copied, detected or sent. */
export const WORKER_ROLES = ["ingest", "derive", "alerts"] as const;
export const PROCESS_ROLES = [...WORKER_ROLES, "http"] as const;
export type ProcessRole = (typeof PROCESS_ROLES)[number];

export const HEALTH_STATES = ["ok", "degraded", "failing"] as const;
export type HealthState = (typeof HEALTH_STATES)[number];

export const RULE_SORTS = ["total", "blocked", "lastSeen", "rule"] as const;
export type RuleSort = (typeof RULE_SORTS)[number];

/** The labels that an inhibition may want its alerts to have in common. */
export const EQUAL_LABELS = ["zone", "rule"] as const;
export type EqualLabel = (typeof EQUAL_LABELS)[number];

/** The handling of critical alerts in quiet hours: `tell` notifies, `hold` delays. */
export const QUIET_CRITICAL = ["tell", "hold"] as const;
export type QuietCritical = (typeof QUIET_CRITICAL)[number];

/** State of a process. stopped: the process was stopped. silent: it no longer writes life signs; it may have been killed. */
export const REPLICA_STATES = ["alive", "stopped", "silent"] as const;
export type ReplicaState = (typeof REPLICA_STATES)[number];

/** The results of the last run of a tick's job. */
export const LAST_RESULTS = ["done", "nothing to do", "failed"] as const;
export type LastResult = (typeof LAST_RESULTS)[number];

/** IP versions. */
export const ADDRESS_FAMILIES = [4, 6] as const;
export type AddressFamily = (typeof ADDRESS_FAMILIES)[number];

/** archive: files of the archive had a part in the answer. events: only the database had. */
export const SEARCH_SOURCES = ["archive", "events"] as const;
export type SearchSource = (typeof SEARCH_SOURCES)[number];

/** The formats of one event: the record as received, Longwatch's own names of the fields, or OCSF. */
export const EVENT_FORMATS = ["raw", "event", "ocsf"] as const;
export type EventFormat = (typeof EVENT_FORMATS)[number];

/** The forms of an export. ocsf: NDJSON of OCSF objects. */
export const EXPORT_FORMS = ["csv", "ndjson", "parquet", "ocsf"] as const;
export type ExportFormName = (typeof EXPORT_FORMS)[number];

/** The formats of an alert on the webhook channel. */
export const ALERT_FORMATS = ["standard", "ocsf"] as const;
export type AlertFormat = (typeof ALERT_FORMATS)[number];

/** Whether the platform accepts the key of an account, or has answered 429. */
export const ACCOUNT_STATES = ["ok", "refused", "paused"] as const;
