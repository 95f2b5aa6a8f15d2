import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import type { Log } from "#lib/log.ts";
import { SEVERITIES, SUBJECT_KINDS } from "#model/kinds.ts";
import type { Subject } from "#model/subject.ts";
import { explainRouting, readLiveState } from "#operations/explain-routing.ts";
import type { ExplainedAlert } from "#stages/alerting/explain-alert.ts";
import type { Routing } from "#stages/alerting/routing/routing.ts";
import { writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { writeJson } from "../edge/write-json.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { describeExplained } from "./describe-explained.ts";

const MAX_RULE_CHARS = 255;

const HELP = `
Shows step by step what the service would do with an alert that does not exist: which routes match and why the others do
not, what mutes the alert, which quiet hours hold channels back, and who is notified of the beginning, of a rise a minute
later and of the end. The answer comes from the functions that decide in the service. Nothing is sent or stored.

With --live the silences and the spikes of the database count as well; without it the command connects to nothing.
Exit code 1 if no channel would be notified, now or after its quiet hours.

Examples:
  npm run -s longwatch -- config routes test --zone 101 --rule 942100 --severity critical
  npm run -s longwatch -- config routes test --zone shop --rule 942100 --severity error --at 2026-11-22T23:30
  npm run -s longwatch -- config routes test --kind self --severity error --live --json`;

interface Flags {
  readonly zone?: string;
  readonly rule?: string;
  readonly severity?: string;
  readonly kind?: string;
  readonly at?: string;
  readonly live?: true;
  readonly json?: true;
}

/** `longwatch config routes test`. */
export function testRoutesCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("test", "Show who would be notified of an alert, and why.", HELP, io)
    .option("--zone <zone>", "the shield zone, by number or by name (required, except with --kind self)")
    .option("--rule <id>", "the rule (required, except with --kind self)")
    .option("--severity <name>", `one of ${SEVERITIES.join(", ")} (required)`)
    .option("--kind <name>", `one of ${SUBJECT_KINDS.join(", ")} (default: spike)`)
    .option("--at <time>", "when: ISO-8601, epoch ms, relative such as +8h (default: now)")
    .option("--live", "also apply the silences and the spikes in the database")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const config = readConfig();
        const { routing } = config.alerting;
        const subject = readSubject(read, flags, routing);
        const nowMs = flags.at === undefined ? io.clock() : (read.time("at", flags.at) ?? 0);
        read.finish();
        const seen =
          flags.live === true
            ? await withStore(config, ({ db }) => readLiveState(db, createWarning(io), nowMs))
            : { silences: [], firing: [] };
        const explained = explainRouting(
          subject,
          { routing, channels: config.alerting.channels, nowMs },
          seen,
        );
        const facts = { subject, nowMs, isLive: flags.live === true, zones: routing.zones };
        if (flags.json === true)
          await writeJson(io.stdout, { at: new Date(nowMs).toISOString(), subject, ...explained });
        else await writeOut(io.stdout, describeExplained(explained, facts));
        if (!reachesChannel(explained)) io.setExitCode(1);
      }),
    );
}

function reachesChannel({ transitions: [first] }: ExplainedAlert): boolean {
  return first !== undefined && first.notified.length + first.held.length > 0;
}

function readSubject(read: FlagReader, flags: Flags, { zones = {} }: Routing): Subject {
  const kind =
    SUBJECT_KINDS.find((one) => one === (flags.kind ?? "spike")) ??
    read.wrong("kind", flags.kind, SUBJECT_KINDS.join(", "));
  const severity =
    SEVERITIES.find((one) => one === flags.severity) ??
    read.wrong("severity", flags.severity, `one of ${SEVERITIES.join(", ")}`);
  const isSelf = kind === "self";
  const named = Object.entries(zones).find(([, { name }]) => name !== null && name === flags.zone)?.[0];
  const zoneId =
    isSelf && flags.zone === undefined
      ? null
      : (read.id("zone", named ?? flags.zone, "a shield zone's number, or a name from zones") ?? null);
  if (!isSelf && (flags.rule === undefined || flags.rule === "" || flags.rule.length > MAX_RULE_CHARS))
    read.wrong("rule", flags.rule?.slice(0, 40), "a rule's id");
  if (isSelf && flags.rule !== undefined) read.mistakes.push("--rule must be left out with --kind self");
  return { kind: kind ?? "spike", zoneId, ruleId: flags.rule ?? null, severity: severity ?? "info" };
}

function createWarning({ stderr }: StoreIo): Pick<Log, "warn"> {
  const warn = (facts: unknown, text?: string) =>
    void stderr.write(`longwatch config routes test: ${text} ${JSON.stringify(facts)}\n`);
  return { warn } as Pick<Log, "warn">;
}
