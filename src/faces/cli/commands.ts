/** The summary of every command, and the operations of each subject. */
import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import type { Operation } from "#operations/operation.ts";
import { createProcessIo } from "./edge/edge-io.ts";
import { subjectCommand } from "./operations/operation-command.ts";
import type { StoreIo } from "./store/store-command.ts";

/** One sentence for each command that is not made from operations alone. The program's help loads nothing else. */
export const SUMMARIES = {
  start: "Run the service: copy events, detect spikes, raise alerts.",
  status: "Show whether the service runs, the stored events, and what needs attention.",
  doctor: "Examine platform, stores, disk, channels and files.",
  config: "Check and list the settings.",
  backup: "Write the database and the archive into one file.",
  restore: "Put a backup into an empty database.",
  migrate: "Bring the tables of a database to this version.",
  completion: "Print a completion script for your shell.",
  top: "Watch zones, firing alerts and the rules that changed most.",
  tail: "Print events as they are stored.",
  search: "Search and group everything that is kept.",
  export: "Write kept events to a file or a pipe.",
  channels: "List the channels, send test messages, and replay dead deliveries.",
  mcp: "Let an assistant investigate alerts, over stdio (Model Context Protocol).",
  backtest: "Show which alerts the spike detector would have raised.",
  verify: "Compare the stored data with the platform and with itself.",
  backfill: "Read a span of the last 72 hours again and store the missing events.",
  archive: "Old days as Parquet files: show, write, check, bring back.",
  "sign-in": "Print a link that signs in to the console once.",
  privacy: "Show the retention of personal data; make pseudonyms and rotate their key.",
  erase: "Erase the data of an IP address or a network.",
  edge: "Call the edge platform's API.",
  emulator: "Run an emulator of the edge platform: its eleven operations over seeded WAF traffic.",
} as const;

interface Subject {
  readonly description: string;
  readonly load: () => Promise<readonly Operation[]>;
}

/** The subjects whose command is made from operations only. A command loads the operations of its own subject. */
const SUBJECTS = {
  alerts: {
    description: "List, show, acknowledge, resolve and mark alerts.",
    load: async () => (await import("#alerts/operations/alerts.ts")).alertOperations,
  },
  audit: {
    description: "Show the audit trail.",
    load: async () => (await import("#people/audit-trail.ts")).auditOperations,
  },
  blocklist: {
    description: "Show the attackers that a firewall should block.",
    load: async () => [(await import("#detection/block-list/block-list.ts")).showBlockList],
  },
  coverage: {
    description: "Show whether every hour is complete.",
    load: async () => (await import("#proof/coverage/coverage.ts")).coverageOperations,
  },
  deliveries: {
    description: "List deliveries to the channels, and replay dead deliveries.",
    load: async () => (await import("#delivery/operations/deliveries.ts")).deliveryOperations,
  },
  digest: {
    description: "Show the digest of a week.",
    load: async () => [(await import("#health/digest.ts")).showDigest],
  },
  exclusion: {
    description: "Show what an exclusion of a rule would have silenced, and list proposed ones.",
    load: async () => [
      (await import("#detection/exclusions/try-exclusion.ts")).tryExclusion,
      (await import("#detection/exclusions/try-exclusion.ts")).listProposed,
    ],
  },
  explain: {
    description: "Say what an alert is, why, and what to do.",
    load: async () => [(await import("#alerts/operations/verdict.ts")).explainAlert],
  },
  forward: {
    description: "Show what has arrived at the destinations of forwarded events, and send or prove it again.",
    load: async () => (await import("#delivery/forwarding/forwarding.ts")).forwardOperations,
  },
  gaps: {
    description: "List the hours that are lost, and why.",
    load: async () => [(await import("#proof/coverage/gaps.ts")).listGaps],
  },
  jobs: {
    description: "Show when the background jobs run.",
    load: async () => [(await import("#health/service/jobs.ts")).listJobs],
  },
  keys: {
    description: "Create, list and revoke the keys of this service's own API.",
    load: async () => (await import("#people/keys/keys.ts")).keyOperations,
  },
  known: {
    description: "List, add and remove known sources, which raise no source alert.",
    load: async () => (await import("#detection/known-sources.ts")).knownOperations,
  },
  quarantine: {
    description: "List, show and try again entries of the platform that could not be stored.",
    load: async () => (await import("#ingest/quarantine.ts")).quarantineOperations,
  },
  review: {
    description: "Plan which rules of a zone should block, proven on days that the plan was not made from.",
    load: async () => (await import("#detection/review/saved-plans.ts")).reviewOperations,
  },
  rules: {
    description: "Rank rules, show a rule's counts and thresholds, and replay other settings.",
    load: async () => (await import("#detection/waf-rules/rules.ts")).ruleOperations,
  },
  silences: {
    description: "Add, list, extend and end silences.",
    load: async () => (await import("#alerts/silences/silences.ts")).silenceOperations,
  },
  spikes: {
    description: "List spikes and show one.",
    load: async () => (await import("#detection/waf-rules/spikes.ts")).spikeOperations,
  },
  trends: {
    description: "Count events over time.",
    load: async () => [(await import("#detection/waf-rules/rule-replay.ts")).showTrend],
  },
  zones: {
    description: "List zones and their state.",
    load: async () => [(await import("#health/service/zones.ts")).listZones],
  },
} satisfies Readonly<Record<string, Subject>>;

/** One sentence for each subject's command. */
export const SUBJECT_SUMMARIES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(SUBJECTS).map(([name, { description }]) => [name, description]),
);

/** Loads the operations of a subject and returns the function that creates its command. */
export async function loadSubject(name: keyof typeof SUBJECTS) {
  const { description, load } = SUBJECTS[name];
  const operations: readonly Operation[] = await load();
  return (readConfig: () => Config, io: StoreIo = createProcessIo()): Command =>
    subjectCommand(name, description, operations, readConfig, io);
}
