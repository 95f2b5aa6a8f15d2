import type { Command } from "commander";
import type { AlertFilter } from "#db/alerting/alert-reports.ts";
import { ALERT_KINDS, ALERT_STATES, SEVERITIES, UNRESOLVED_STATES } from "#model/kinds.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { gather, readRulePattern, readWords } from "../options/read-list.ts";
import { readRowId } from "../options/read-row-id.ts";
import { readZone } from "../options/read-span.ts";

export interface FilterFlags {
  readonly state?: readonly string[];
  readonly zone?: string;
  readonly rule?: string;
  readonly severity?: readonly string[];
  readonly kind?: readonly string[];
  readonly group?: string;
  readonly since?: string;
  readonly until?: string;
}

/** Adds the options that select alerts. */
export function addFilterOptions(command: Command): Command {
  return command
    .option("--zone <id>", "only alerts of this shield zone")
    .option("--rule <id>", "only alerts of this rule, or of a family such as 942*")
    .option("--severity <names>", SEVERITIES.join(", "), gather)
    .option("--kind <names>", `${ALERT_KINDS.join(", ")}; self: alerts of Longwatch about itself`, gather)
    .option("--group <id>", "only the member alerts of this group alert")
    .option("--since <time>", "fired at this time or later: ISO-8601, epoch ms, or relative such as -24h")
    .option("--until <time>", "fired before this time (same formats)");
}

/** Reads these options. Without `--state`, resolved alerts are left out. */
export function readFilter(read: FlagReader, flags: FilterFlags): Omit<AlertFilter, "limit"> {
  const states: readonly string[] =
    readWords(read, "state", flags.state, [...ALERT_STATES, "all"]) ?? UNRESOLVED_STATES;
  return {
    states: states.includes("all") ? ALERT_STATES : ALERT_STATES.filter((state) => states.includes(state)),
    zoneId: readZone(read, flags, false),
    rule: flags.rule === undefined ? undefined : readRulePattern(read, flags.rule),
    severities: readWords(read, "severity", flags.severity, SEVERITIES),
    kinds: readWords(read, "kind", flags.kind, ALERT_KINDS),
    groupId: flags.group === undefined ? undefined : readRowId(read, flags.group, "alert"),
    sinceMs: flags.since === undefined ? undefined : read.time("since", flags.since),
    untilMs: flags.until === undefined ? undefined : read.time("until", flags.until),
  };
}
