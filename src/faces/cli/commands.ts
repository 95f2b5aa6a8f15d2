/** Every command of the program: its heading, its summary, and how it is loaded. */
import type { Command } from "commander";
import { readRuntimeFile } from "#app/runtime-file.ts";
import {
  type Config,
  listSettings,
  parseConfig,
  parseConfigElsewhere,
  parseServiceConfig,
  requireEdge,
} from "#config/config.ts";
import type { Operation } from "#operations/operation.ts";
import { adoptServiceFile, parseConfigOfService, useRunningEmulator } from "./config/config-of-service.ts";
import { createProcessIo } from "./edge/edge-io.ts";
import { subjectCommand } from "./operations/operation-command.ts";
import type { StoreIo } from "./store/store-command.ts";

const readConfig = () => useRunningEmulator(parseConfigOfService(process.env));

const readServiceConfig = () => parseServiceConfig(process.env);

/** The settings of this environment with the configuration file of the running service. Every mistake in it counts. */
function examine() {
  const { env, found } = adoptServiceFile(process.env);
  const parse = found?.from === "service" ? parseConfigElsewhere : parseConfig;
  return { config: useRunningEmulator(parse(env)), configFile: found?.file ?? null, env };
}

interface ListedCommand {
  /** One sentence. The program's help loads nothing else. */
  readonly summary: string;
  /** Loads the command, and with it the whole service. */
  readonly load: (name: string) => Promise<Command>;
  /** The operations that the command is made of; null for a command with a file of its own. */
  readonly loadOperations: (() => Promise<readonly Operation[]>) | null;
}

function written(summary: string, load: () => Promise<Command>): ListedCommand {
  return { summary, load: async () => (await load()).description(summary), loadOperations: null };
}

function madeOf(summary: string, loadOperations: () => Promise<readonly Operation[]>): ListedCommand {
  const load = async (name: string) =>
    subjectCommand(name, summary, await loadOperations(), readConfig, createProcessIo());
  return { summary, load, loadOperations };
}

/** Every command by name, under the headings of the help. */
export const GROUPS: Readonly<Record<string, Readonly<Record<string, ListedCommand>>>> = {
  "The service:": {
    start: written("Run the service: copy events, detect spikes, raise alerts.", async () =>
      (await import("./start/start.ts")).startCommand(readServiceConfig),
    ),
    status: written("Show whether the service runs, the stored events, and what needs attention.", async () =>
      (await import("./status/status.ts")).statusCommand(readConfig),
    ),
    doctor: written("Examine platform, stores, disk, channels and files.", async () =>
      (await import("./doctor/doctor.ts")).doctorCommand(examine),
    ),
    config: written("Check and list the settings.", async () =>
      (await import("./config/config.ts")).configCommand({
        check: readServiceConfig,
        config: readConfig,
        list: () => listSettings(process.env),
        running: () => readRuntimeFile(parseConfig(process.env).dataDir),
      }),
    ),
    jobs: madeOf("Show when the background jobs run.", async () => [
      (await import("#health/service/jobs.ts")).listJobs,
    ]),
    backup: written("Write the database and the archive into one file.", async () =>
      (await import("./backup.ts")).backupCommand(readConfig),
    ),
    restore: written("Put a backup into an empty database.", async () =>
      (await import("./restore.ts")).restoreCommand(readConfig),
    ),
    migrate: written("Bring the tables of a database to this version.", async () =>
      (await import("./backup.ts")).migrateCommand(readConfig),
    ),
    completion: written("Print a completion script for your shell.", async () =>
      (await import("./completion/completion.ts")).completionCommand(),
    ),
  },
  "On call:": {
    top: written("Watch zones, firing alerts and the rules that changed most.", async () =>
      (await import("./top/top.ts")).topCommand(readConfig),
    ),
    tail: written("Print events as they are stored.", async () =>
      (await import("./tail/tail.ts")).tailCommand(readConfig),
    ),
    search: written("Search and group everything that is kept.", async () =>
      (await import("./search/search.ts")).searchCommand(readConfig),
    ),
    export: written("Write kept events to a file or a pipe.", async () =>
      (await import("./export/export.ts")).exportCommand(readConfig),
    ),
    find: madeOf("Find an event by a log id, a request id or a part of its path.", async () => [
      (await import("#archive/search/find-events.ts")).findEvents,
    ]),
    compare: madeOf("Count events by groups, and compare them with another period or zone.", async () => [
      (await import("#archive/search/compare-events.ts")).compareEvents,
    ]),
    alerts: madeOf(
      "List, show, acknowledge, assign, comment, resolve and mark alerts.",
      async () => (await import("#alerts/operations/alerts.ts")).alertOperations,
    ),
    explain: madeOf("Say what an alert is, why, and what to do.", async () => [
      (await import("#alerts/operations/verdict.ts")).explainAlert,
    ]),
    silences: madeOf(
      "Add, list, extend and end silences.",
      async () => (await import("#alerts/silences/silences.ts")).silenceOperations,
    ),
    notes: madeOf(
      "List, add and delete notes on what was done to the sites, such as deploys.",
      async () => (await import("#alerts/notes.ts")).noteOperations,
    ),
    exclusion: madeOf(
      "Show what an exclusion of a rule would have silenced, and list proposed ones.",
      async () => [
        (await import("#detection/exclusions/try-exclusion.ts")).tryExclusion,
        (await import("#detection/exclusions/try-exclusion.ts")).listProposed,
      ],
    ),
    review: madeOf(
      "Plan which rules of a zone should block, proven on days that the plan was not made from.",
      async () => (await import("#detection/review/saved-plans.ts")).reviewOperations,
    ),
    known: madeOf(
      "List, add and remove known sources, which raise no source alert.",
      async () => (await import("#detection/known-sources.ts")).knownOperations,
    ),
    conditions: madeOf(
      "List, test, add and remove custom conditions: searches that raise an alert.",
      async () => (await import("#detection/custom-conditions.ts")).conditionOperations,
    ),
    blocklist: madeOf("Show the attackers that a firewall should block.", async () => [
      (await import("#detection/block-list/block-list.ts")).showBlockList,
    ]),
    digest: madeOf("Show the digest of a week.", async () => [
      (await import("#health/digest.ts")).showDigest,
    ]),
    accounts: madeOf("List the accounts of the platform and their state.", async () => [
      (await import("#health/service/accounts.ts")).listAccounts,
    ]),
    zones: madeOf("List zones and their state.", async () => [
      (await import("#health/service/zones.ts")).listZones,
    ]),
    rules: madeOf(
      "Rank rules, show a rule's counts and thresholds, and replay other settings.",
      async () => (await import("#detection/waf-rules/rules.ts")).ruleOperations,
    ),
    spikes: madeOf(
      "List spikes and show one.",
      async () => (await import("#detection/waf-rules/spikes.ts")).spikeOperations,
    ),
    trends: madeOf("Count events over time.", async () => [
      (await import("#detection/waf-rules/rule-replay.ts")).showTrend,
    ]),
    channels: written("List the channels, send test messages, and replay dead deliveries.", async () =>
      (await import("./channels/channels.ts")).channelsCommand(readConfig, () =>
        parseServiceConfig(adoptServiceFile(process.env).env),
      ),
    ),
    deliveries: madeOf(
      "List deliveries to the channels, and replay dead deliveries.",
      async () => (await import("#delivery/operations/deliveries.ts")).deliveryOperations,
    ),
    mcp: written("Let an assistant investigate alerts, over stdio (Model Context Protocol).", async () =>
      (await import("./mcp.ts")).mcpCommand(readConfig),
    ),
    backtest: written("Show which alerts the spike detector would have raised.", async () =>
      (await import("./backtest/backtest.ts")).backtestCommand(readConfig),
    ),
  },
  "Is anything missing?": {
    coverage: madeOf(
      "Show whether every hour is complete.",
      async () => (await import("#proof/coverage/coverage.ts")).coverageOperations,
    ),
    gaps: madeOf("List the hours that are lost, and why.", async () => [
      (await import("#proof/coverage/gaps.ts")).listGaps,
    ]),
    quarantine: madeOf(
      "List, show and try again entries of the platform that could not be stored.",
      async () => (await import("#ingest/quarantine.ts")).quarantineOperations,
    ),
    forward: madeOf(
      "Show what has arrived at the destinations of forwarded events, and send or prove it again.",
      async () => (await import("#delivery/forwarding/forwarding.ts")).forwardOperations,
    ),
    verify: written("Compare the stored data with the platform and with itself.", async () =>
      (await import("./verify/verify.ts")).verifyCommand(readConfig),
    ),
    backfill: written("Read a span of the last 72 hours again and store the missing events.", async () =>
      (await import("./backfill/backfill.ts")).backfillCommand(readConfig),
    ),
    import: written("Store the events of files as history that nothing has proven.", async () =>
      (await import("./import.ts")).importCommand(readConfig),
    ),
    archive: written("Old days as Parquet files: show, write, check, bring back.", async () =>
      (await import("./archive/archive.ts")).archiveCommand(readConfig),
    ),
  },
  "Access and personal data:": {
    keys: madeOf(
      "Create, list and revoke the keys of this service's own API.",
      async () => (await import("#people/keys/keys.ts")).keyOperations,
    ),
    "sign-in": written("Print a link that signs in to the console once.", async () =>
      (await import("./sign-in.ts")).signInCommand(readConfig),
    ),
    privacy: written("Show the retention of personal data; make pseudonyms and rotate their key.", async () =>
      (await import("./privacy/privacy.ts")).privacyCommand(readConfig),
    ),
    erase: written("Erase the data of an IP address or a network.", async () =>
      (await import("./erase/erase.ts")).eraseCommand(readConfig),
    ),
    audit: madeOf(
      "Show the audit trail.",
      async () => (await import("#people/audit-trail.ts")).auditOperations,
    ),
  },
  "The platform:": {
    edge: written("Call the edge platform's API.", async () =>
      (await import("./edge/edge.ts")).edgeCommand((asked) => requireEdge(readConfig(), asked)),
    ),
    emulator: written(
      "Run an emulator of the edge platform: its eleven operations over seeded WAF traffic.",
      async () => (await import("./emulator/emulator.ts")).emulatorCommand(),
    ),
  },
};

const ALL = Object.assign({}, ...Object.values(GROUPS)) as Readonly<Record<string, ListedCommand>>;

/** Loads the operations of a command that is made of them, and returns the function that creates the command. */
export async function loadSubject(name: string) {
  const { summary = "", loadOperations = null } = ALL[name] ?? {};
  const operations = (await loadOperations?.()) ?? [];
  return (readSettings: () => Config, io: StoreIo = createProcessIo()): Command =>
    subjectCommand(name, summary, operations, readSettings, io);
}
